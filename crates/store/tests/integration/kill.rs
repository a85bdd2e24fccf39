//! Kills a process that writes with SIGKILL, again and again, and looks at what is left.
//!
//! The test starts itself as the process to be killed. That process reports each acknowledged write
//! and each event its watches see on its standard output, which survives it. After the kill the
//! test opens the directory and checks that everything that was reported is there, that nothing is
//! torn, that revisions have not gone back, and that a watch resumed from any reported revision
//! sees exactly what followed, or is told that it cannot.
//!
//! `STORE_KILLS` sets the number of kills, `STORE_KILL_SEED` the seed, which is printed on failure.
#![allow(clippy::unwrap_used, reason = "helpers of tests fail as tests do")]

use std::collections::{BTreeMap, BTreeSet};
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use bellwether_store::{Entry, Event, Expected, Keyspace, Options, Range, Revision, Store};

const TEST: &str = "kill::what_was_acknowledged_survives_sigkill";
const KEYSPACES: [&str; 3] = ["hub", "cluster1", "cluster2"];
const KEYS: u64 = 40;
const WRITERS: u64 = 16;

/// After so many kills a new directory is taken, so that its creation is interrupted as well.
const KILLS_PER_DIRECTORY: u64 = 12;

#[test]
fn what_was_acknowledged_survives_sigkill() {
    if let Some(directory) = variable("STORE_KILL_DIRECTORY") {
        let seed = number("STORE_KILL_SEED", 0);
        return write_until_killed(Path::new(&directory), seed);
    }
    let seed = number("STORE_KILL_SEED", 1);
    let kills = number("STORE_KILLS", 36);
    let mut random = Random::new(seed);
    let mut totals = Totals::default();
    let mut directory = tempfile::tempdir().unwrap();
    let mut past = Past::default();
    let mut reports = Vec::new();
    for kill in 0..kills {
        if kill % KILLS_PER_DIRECTORY == 0 {
            directory = tempfile::tempdir().unwrap();
            past = Past::default();
            reports.clear();
        }
        let path = directory.path().join("data");
        let round_seed = random.next();
        eprintln!("kill {kill} of {kills}, seed {seed}, round {round_seed}");
        let new_reports = run_and_kill(&path, round_seed, &mut random);
        totals.add(&new_reports);
        reports.extend(new_reports);
        // Otherwise the next process finds the directory as this one left it.
        if random.below(3) > 0 {
            past = inspect(&path, round_seed, &past, &reports);
            reports.clear();
        }
    }
    eprintln!("{kills} kills: {totals:?}");
    assert!(
        totals.acknowledged > kills,
        "too few writes to prove anything"
    );
    assert!(totals.events > kills, "too few events to prove anything");
}

#[expect(
    clippy::disallowed_methods,
    reason = "the test's own settings, and how it tells the process it starts that it is one"
)]
fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok()
}

fn number(name: &str, default: u64) -> u64 {
    variable(name).map_or(default, |value| value.parse().unwrap())
}

// The process that is killed.

/// Different in each round, so that a directory is opened with more and with less history than it
/// was written with, and that compaction happens between kills.
fn options(seed: u64) -> Options {
    Options {
        history_events: [50, 1000, 100_000][usize::try_from(seed % 3).unwrap()],
        ..Options::default()
    }
}

fn write_until_killed(directory: &Path, seed: u64) {
    report(format_args!("started"));
    let store = Store::open(directory, options(seed)).unwrap();
    report(format_args!("opened"));
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .build()
        .unwrap();
    runtime.block_on(async {
        for (index, name) in KEYSPACES.iter().enumerate() {
            tokio::spawn(follow(index, store.keyspace(name)));
        }
        let mut writers = tokio::task::JoinSet::new();
        for writer in 0..WRITERS {
            writers.spawn(write(store.clone(), Random::new(seed ^ (writer << 32))));
        }
        writers.join_all().await;
    });
}

async fn write(store: Store<String>, mut random: Random) {
    loop {
        let index = usize::try_from(random.below(3)).unwrap();
        let keyspace = store.keyspace(KEYSPACES[index]);
        let key = format!("key/{:02}", random.below(KEYS));
        let nonce = random.next();
        let current = keyspace.get(&key);
        let expected = match (random.below(4), &current) {
            (0, _) => Expected::Any,
            (_, Some(entry)) => Expected::Revision(entry.modified),
            (_, None) => Expected::Absent,
        };
        let of_key = key.clone();
        let make = move |revision| value(&of_key, revision, nonce);
        let (kind, written) = if random.below(4) == 0 {
            report(format_args!("deleting {index} 0 {nonce} {key}"));
            ("deleted", keyspace.delete(&key, expected, make).await)
        } else {
            ("put", keyspace.put(&key, expected, make).await)
        };
        match written {
            Ok(entry) => {
                let revision = entry.modified;
                report(format_args!("{kind} {index} {revision} {nonce} {key}"));
            }
            Err(_) => report(format_args!("refused {index} 0 {nonce} {key}")),
        }
    }
}

async fn follow(index: usize, keyspace: Keyspace<String>) {
    let from = keyspace.revision();
    let mut watch = keyspace.watch("", from).unwrap();
    // With little history a watch may fall behind; then there is nothing more to report.
    while let Some(Ok(event)) = watch.next().await {
        let (revision, key) = (event.revision, &event.key);
        let nonce = nonce(event.value());
        let kind = if event.is_delete() {
            "saw-deleted"
        } else {
            "saw-put"
        };
        report(format_args!("{kind} {index} {revision} {nonce} {key}"));
    }
}

fn report(line: std::fmt::Arguments<'_>) {
    // The process ends when nobody listens any more, should the test itself be killed.
    let line = format!("\n@{line}\n");
    if std::io::stdout().write_all(line.as_bytes()).is_err() {
        std::process::abort();
    }
}

/// A value that tells whether it is whole: the rest follows from its beginning.
fn value(key: &str, revision: Revision, nonce: u64) -> String {
    let mut value = format!("{nonce} {revision} {key} ");
    let mut random = Random::new(nonce);
    for _ in 0..random.below(300) {
        value.push_str(&random.next().to_string());
    }
    value
}

fn nonce(value: &str) -> u64 {
    value.split(' ').next().unwrap().parse().unwrap()
}

// The process that kills.

#[derive(Debug, Clone, PartialEq)]
struct Report {
    keyspace: usize,
    revision: Revision,
    nonce: u64,
    key: String,
    kind: Kind,
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Kind {
    /// A write has been acknowledged.
    Written { deleted: bool },
    /// A watch has seen an event.
    Seen { deleted: bool },
    /// A deletion is about to be asked for.
    Deleting,
    /// A write has been refused.
    Refused,
}

impl Report {
    fn is_seen(&self) -> bool {
        matches!(self.kind, Kind::Seen { .. })
    }

    /// Of something that has happened: whether it was a deletion.
    fn happened(&self) -> Option<bool> {
        match self.kind {
            Kind::Written { deleted } | Kind::Seen { deleted } => Some(deleted),
            Kind::Deleting | Kind::Refused => None,
        }
    }
}

#[derive(Debug, Default)]
struct Totals {
    opened: u64,
    acknowledged: u64,
    events: u64,
}

impl Totals {
    fn add(&mut self, reports: &[Report]) {
        for report in reports {
            self.events += u64::from(report.is_seen());
            self.acknowledged += u64::from(matches!(report.kind, Kind::Written { .. }));
        }
        self.opened += u64::from(!reports.is_empty());
    }
}

fn run_and_kill(directory: &Path, seed: u64, random: &mut Random) -> Vec<Report> {
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args([TEST, "--exact", "--nocapture"])
        .env("STORE_KILL_DIRECTORY", directory)
        .env("STORE_KILL_SEED", seed.to_string())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let lines = read_lines(child.stdout.take().unwrap());
    let mut reports = Vec::new();
    wait_for_moment(&mut child, &lines, random, &mut reports);
    child.kill().unwrap();
    let status = child.wait().unwrap();
    assert!(status.code().is_none(), "ended by itself: {status}");
    // What it had still said.
    reports.extend(lines.iter().filter_map(|line| parse(&line)));
    reports
}

/// Lets the process run to a random point: a number of reports, then a number of microseconds.
fn wait_for_moment(
    child: &mut Child,
    lines: &Receiver<String>,
    random: &mut Random,
    reports: &mut Vec<Report>,
) {
    // Often while it opens the directory, and otherwise some time later.
    let count = match random.below(4) {
        0 => random.below(3),
        _ => random.below(3000),
    };
    for _ in 0..count {
        match lines.recv_timeout(Duration::from_mins(1)) {
            Ok(line) => reports.extend(parse(&line)),
            Err(error) => {
                child.kill().unwrap();
                panic!("the process says nothing: {error}");
            }
        }
    }
    let moment = Duration::from_micros(random.below(4000));
    while let Ok(line) = lines.recv_timeout(moment) {
        reports.extend(parse(&line));
        if random.below(8) == 0 {
            return;
        }
    }
}

fn read_lines(output: ChildStdout) -> Receiver<String> {
    let (sender, receiver) = channel();
    std::thread::spawn(move || {
        for line in BufReader::new(output).lines() {
            let Ok(line) = line else { return };
            // The rest is what the test harness says.
            if line.starts_with('@') && sender.send(line).is_err() {
                return;
            }
        }
    });
    receiver
}

/// Reads a report of a write; nothing for others, and for a line that the kill cut short.
fn parse(line: &str) -> Option<Report> {
    let mut words = line.strip_prefix('@')?.split(' ');
    let kind = match words.next()? {
        "put" => Kind::Written { deleted: false },
        "deleted" => Kind::Written { deleted: true },
        "saw-put" => Kind::Seen { deleted: false },
        "saw-deleted" => Kind::Seen { deleted: true },
        "deleting" => Kind::Deleting,
        "refused" => Kind::Refused,
        _ => return None,
    };
    let report = Report {
        keyspace: words.next()?.parse().ok()?,
        revision: words.next()?.parse().ok()?,
        nonce: words.next()?.parse().ok()?,
        key: words.next()?.to_owned(),
        kind,
    };
    (report.key.len() == "key/00".len()).then_some(report)
}

/// What was found after the kill before: revisions and states that must still be true.
#[derive(Default)]
struct Past(BTreeMap<&'static str, (Revision, State)>);

type State = BTreeMap<String, (Revision, Revision, String)>;

fn state_of(entries: &[Entry<String>]) -> State {
    let entries = entries.iter();
    let entries = entries.map(|entry| {
        let content = (entry.created, entry.modified, entry.value.to_string());
        (entry.key.to_string(), content)
    });
    entries.collect()
}

fn inspect(directory: &Path, seed: u64, past: &Past, reports: &[Report]) -> Past {
    let store: Store<String> = Store::open(directory, options(seed)).unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .build()
        .unwrap();
    let mut found = Past::default();
    for (index, name) in KEYSPACES.into_iter().enumerate() {
        let keyspace = store.keyspace(name);
        let reports: Vec<_> = reports
            .iter()
            .filter(|report| report.keyspace == index)
            .collect();
        let before = past.0.get(name).cloned().unwrap_or((1, State::new()));
        let events = runtime.block_on(inspect_keyspace(&keyspace, &before, &reports));
        inspect_resumption(&runtime, &keyspace, &events, &reports);
        let page = keyspace.range(Range::default()).unwrap();
        found
            .0
            .insert(name, (page.revision, state_of(&page.entries)));
    }
    runtime.block_on(store.close());
    found
}

/// Checks a keyspace, and returns its history.
async fn inspect_keyspace(
    keyspace: &Keyspace<String>,
    (past_revision, past_state): &(Revision, State),
    reports: &[&Report],
) -> Vec<Arc<Event<String>>> {
    let revision = keyspace.revision();
    assert!(revision >= *past_revision, "the revision has gone back");
    let page = keyspace.range(Range::default()).unwrap();
    assert_eq!(page.revision, revision);
    for entry in &page.entries {
        let whole = value(&entry.key, entry.modified, nonce(&entry.value));
        assert_eq!(*entry.value, whole, "{entry:?} is torn");
        assert!(entry.created <= entry.modified && entry.modified <= revision);
    }
    let state = state_of(&page.entries);

    // The history leads from its beginning to the present, without a gap.
    let oldest = keyspace.oldest();
    let events = drain(keyspace, oldest).await;
    let revisions: Vec<_> = events.iter().map(|event| event.revision).collect();
    assert!(
        revisions.into_iter().eq(oldest + 1..=revision),
        "history has a gap"
    );
    let at = Range {
        at: Some(oldest),
        ..Range::default()
    };
    let mut replayed = state_of(&keyspace.range(at).unwrap().entries);
    for event in &events {
        if oldest < *past_revision && event.revision == past_revision + 1 {
            assert_eq!(&replayed, past_state, "the past has changed");
        }
        apply(&mut replayed, event);
    }
    assert_eq!(replayed, state, "history does not lead to the present");

    let mut unresolved = unresolved_deletions(reports);
    unresolved.extend(
        events
            .iter()
            .filter(|event| event.is_delete())
            .map(|event| &*event.key),
    );
    for report in reports {
        let Some(deleted) = report.happened() else {
            continue;
        };
        assert!(report.revision <= revision, "{report:?} is lost");
        if report.revision > oldest {
            let index = usize::try_from(report.revision - oldest - 1).unwrap();
            let event = &events[index];
            let found = (&*event.key, nonce(event.value()), event.is_delete());
            let reported = (report.key.as_str(), report.nonce, deleted);
            assert_eq!(found, reported, "{report:?} is not what happened");
            continue;
        }
        // Its event is gone, its effect must not be, unless a later write replaced it.
        match state.get(&report.key) {
            Some((_, modified, stored)) if *modified == report.revision => {
                assert!(!deleted && nonce(stored) == report.nonce);
            }
            Some((_, modified, _)) => assert!(*modified > report.revision, "{report:?} is lost"),
            None => {
                let explained = deleted
                    || unresolved.contains(&*report.key)
                    || reports.iter().any(|other| {
                        other.happened() == Some(true)
                            && other.key == report.key
                            && other.revision > report.revision
                    });
                assert!(explained, "{report:?} is lost");
            }
        }
    }
    events
}

/// The keys whose deletion was asked for, but that were not heard of before the kill.
fn unresolved_deletions<'a>(reports: &[&'a Report]) -> BTreeSet<&'a str> {
    let mut asked = BTreeMap::new();
    for report in reports {
        match report.kind {
            Kind::Deleting => {
                asked.insert(report.nonce, report.key.as_str());
            }
            Kind::Written { .. } | Kind::Refused => {
                asked.remove(&report.nonce);
            }
            Kind::Seen { .. } => {}
        }
    }
    asked.into_values().collect()
}

/// Checks that watches resumed from where those of the process were go on from there.
fn inspect_resumption(
    runtime: &tokio::runtime::Runtime,
    keyspace: &Keyspace<String>,
    events: &[Arc<Event<String>>],
    reports: &[&Report],
) {
    let last = reports
        .iter()
        .rev()
        .filter(|report| report.is_seen())
        .take(3);
    for report in last {
        if report.revision < keyspace.oldest() {
            assert!(keyspace.watch("", report.revision).is_err());
            continue;
        }
        let resumed = runtime.block_on(drain(keyspace, report.revision));
        let expected = events
            .iter()
            .filter(|event| event.revision > report.revision);
        assert!(
            resumed
                .iter()
                .map(|event| event.revision)
                .eq(expected.map(|it| it.revision))
        );
    }
}

async fn drain(keyspace: &Keyspace<String>, from: Revision) -> Vec<Arc<Event<String>>> {
    let mut watch = keyspace.watch("", from).unwrap();
    let mut events = Vec::new();
    while watch.revision() < keyspace.revision() {
        events.push(watch.next().await.unwrap().unwrap());
    }
    events
}

fn apply(state: &mut State, event: &Event<String>) {
    let before = state.remove(&*event.key);
    let previous = event.previous().map(ToString::to_string);
    assert_eq!(before.as_ref().map(|stored| stored.2.clone()), previous);
    if !event.is_delete() {
        let created = before.map_or(event.revision, |stored| stored.0);
        let content = (created, event.revision, event.value().to_string());
        state.insert(event.key.to_string(), content);
    }
}

/// A small generator of numbers (splitmix64).
struct Random(u64);

impl Random {
    fn new(seed: u64) -> Self {
        Self(seed)
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    fn below(&mut self, limit: u64) -> u64 {
        self.next() % limit
    }
}
