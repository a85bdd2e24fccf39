//! Random operations, compared with a model that keeps every state there ever was.
#![allow(clippy::unwrap_used, reason = "helpers of tests fail as tests do")]

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use bellwether_store::{
    Event, Expected, FIRST_REVISION, Keyspace, Options, Range, RangeError, Revision, Store, Watch,
    WatchError, WriteError,
};
use jiff::Timestamp;
use proptest::prelude::*;

const KEYSPACES: [&str; 2] = ["hub", "member"];
const KEYS: [&str; 7] = ["a", "a/b", "a/bc", "a/bé", "a/c/d", "b", "é"];
const PREFIXES: [&str; 8] = ["", "a", "a/", "a/b", "a/bc", "c", "é", "zz"];
const HISTORY_SECONDS: u64 = 100;

#[derive(Debug, Clone)]
enum Operation {
    Put(usize, usize, Guess),
    Delete(usize, usize, Guess),
    Watch(usize, usize),
    Compact(usize, u64),
    Wait(u64),
    Sweep,
    DropKeyspace(usize),
    Reopen,
}

/// What the writer expects, relative to what is there.
#[derive(Debug, Clone, Copy)]
enum Guess {
    Absent,
    Current,
    Older,
    Newer,
    Any,
}

fn operations() -> impl Strategy<Value = Vec<Operation>> {
    let keyspace = 0..KEYSPACES.len();
    let key = 0..KEYS.len();
    let guess = prop_oneof![
        Just(Guess::Absent),
        Just(Guess::Current),
        Just(Guess::Older),
        Just(Guess::Newer),
        Just(Guess::Any)
    ];
    let target = (keyspace.clone(), key, guess);
    let operation = prop_oneof![
        12 => target.clone().prop_map(|(space, key, guess)| Operation::Put(space, key, guess)),
        6 => target.prop_map(|(space, key, guess)| Operation::Delete(space, key, guess)),
        2 => (keyspace.clone(), 0..PREFIXES.len())
            .prop_map(|(space, prefix)| Operation::Watch(space, prefix)),
        1 => (keyspace.clone(), 0..6u64).prop_map(|(space, back)| Operation::Compact(space, back)),
        1 => (0..HISTORY_SECONDS).prop_map(Operation::Wait),
        1 => Just(Operation::Sweep),
        1 => keyspace.prop_map(Operation::DropKeyspace),
        1 => Just(Operation::Reopen),
    ];
    prop::collection::vec(operation, 1..80)
}

type State = BTreeMap<String, Stored>;

#[derive(Debug, Clone, PartialEq)]
struct Stored {
    value: String,
    created: Revision,
    modified: Revision,
}

/// One write, as a watcher should see it.
#[derive(Debug, Clone, PartialEq)]
struct Seen {
    revision: Revision,
    key: String,
    value: String,
    previous: Option<String>,
    deleted: bool,
}

impl From<&Event<String>> for Seen {
    fn from(event: &Event<String>) -> Self {
        Self {
            revision: event.revision,
            key: event.key.to_string(),
            value: event.value().to_string(),
            previous: event.previous().map(ToString::to_string),
            deleted: event.is_delete(),
        }
    }
}

/// A keyspace as it should be: the state after each revision, and the events in between.
#[derive(Debug, Clone)]
struct Model {
    states: BTreeMap<Revision, State>,
    events: Vec<Seen>,
    /// When the events happened, in seconds.
    times: Vec<i64>,
    /// What has been asked to be compacted.
    compacted: Revision,
}

impl Model {
    fn new() -> Self {
        Self {
            states: BTreeMap::from([(FIRST_REVISION, State::new())]),
            events: Vec::new(),
            times: Vec::new(),
            compacted: FIRST_REVISION,
        }
    }

    /// The oldest revision that has to be gone because of the number or the age of events.
    fn oldest(&self, history_events: usize, now: i64) -> Revision {
        let age = i64::try_from(HISTORY_SECONDS).unwrap();
        let too_old = self
            .times
            .iter()
            .take_while(|time| **time < now - age)
            .count();
        let too_many = self.events.len().saturating_sub(history_events);
        FIRST_REVISION + too_old.max(too_many) as u64
    }

    fn revision(&self) -> Revision {
        *self.states.last_key_value().unwrap().0
    }

    fn state(&self) -> &State {
        self.states.last_key_value().unwrap().1
    }

    fn push(&mut self, seen: Seen, time: i64) {
        self.times.push(time);
        let mut state = self.state().clone();
        let revision = seen.revision;
        assert_eq!(revision, self.revision() + 1);
        if seen.deleted {
            state.remove(&seen.key).unwrap();
        } else {
            let created = state.get(&seen.key).map_or(revision, |old| old.created);
            let stored = Stored {
                value: seen.value.clone(),
                created,
                modified: revision,
            };
            state.insert(seen.key.clone(), stored);
        }
        self.states.insert(revision, state);
        self.events.push(seen);
    }

    fn events(&self, prefix: &str, from: Revision) -> Vec<Seen> {
        let events = self.events.iter();
        let wanted = events.filter(|event| event.revision > from && event.key.starts_with(prefix));
        wanted.cloned().collect()
    }
}

/// A watch that was opened at some time, and what it should see in the end.
struct Follower {
    keyspace: usize,
    prefix: &'static str,
    from: Revision,
    watch: Watch<String>,
    seen: Vec<Seen>,
}

struct World {
    store: Option<Store<String>>,
    directory: Option<tempfile::TempDir>,
    options: Options,
    seconds: Arc<AtomicI64>,
    models: Vec<Model>,
    followers: Vec<Follower>,
    counter: u64,
}

impl World {
    fn new(durable: bool, history_events: usize) -> Self {
        let seconds = Arc::new(AtomicI64::new(1_000_000));
        let now = Arc::clone(&seconds);
        let mut options = Options::new(Arc::new(move || {
            Timestamp::from_second(now.load(Ordering::Relaxed)).unwrap()
        }));
        options.history_events = history_events;
        options.history_age = Duration::from_secs(HISTORY_SECONDS);
        let directory = durable.then(|| tempfile::tempdir().unwrap());
        let mut world = Self {
            store: None,
            directory,
            options,
            seconds,
            models: vec![Model::new(); KEYSPACES.len()],
            followers: Vec::new(),
            counter: 0,
        };
        world.open();
        world
    }

    fn open(&mut self) {
        let options = self.options.clone();
        self.store = Some(match &self.directory {
            Some(directory) => Store::open(directory.path(), options).unwrap(),
            None => Store::in_memory(options),
        });
    }

    fn keyspace(&self, index: usize) -> Keyspace<String> {
        self.store.as_ref().unwrap().keyspace(KEYSPACES[index])
    }

    async fn run(&mut self, operation: Operation) {
        match operation {
            Operation::Put(space, key, guess) => self.write(space, KEYS[key], guess, false).await,
            Operation::Delete(space, key, guess) => self.write(space, KEYS[key], guess, true).await,
            Operation::Watch(space, prefix) => {
                let from = self.models[space].revision();
                let prefix = PREFIXES[prefix];
                self.followers.push(Follower {
                    keyspace: space,
                    prefix,
                    from,
                    watch: self.keyspace(space).watch(prefix, from).unwrap(),
                    seen: Vec::new(),
                });
            }
            Operation::Compact(space, back) => {
                let through = self.models[space].revision().saturating_sub(back);
                let keyspace = self.keyspace(space);
                keyspace.compact(through);
                let compacted = &mut self.models[space].compacted;
                *compacted = through.max(*compacted);
                assert!(keyspace.oldest() >= through.max(FIRST_REVISION));
            }
            Operation::Wait(seconds) => {
                let seconds = i64::try_from(seconds).unwrap();
                self.seconds.fetch_add(seconds, Ordering::Relaxed);
            }
            Operation::Sweep => self.store.as_ref().unwrap().compact(),
            Operation::DropKeyspace(space) => {
                let store = self.store.as_ref().unwrap();
                let existed = store.keyspaces().contains(&KEYSPACES[space].to_owned());
                let dropped = store.drop_keyspace(KEYSPACES[space]).await.unwrap();
                assert_eq!(dropped, existed);
                self.end_followers(|follower| follower.keyspace == space)
                    .await;
                self.models[space] = Model::new();
            }
            Operation::Reopen => {
                if self.directory.is_some() {
                    self.store.take().unwrap().close().await;
                    self.end_followers(|_| true).await;
                    self.open();
                }
            }
        }
    }

    async fn write(&mut self, space: usize, key: &'static str, guess: Guess, delete: bool) {
        let keyspace = self.keyspace(space);
        let model = &mut self.models[space];
        let before = model.state().get(key).cloned();
        let modified = before.as_ref().map(|stored| stored.modified);
        let expected = match guess {
            Guess::Absent => Expected::Absent,
            Guess::Current => Expected::Revision(modified.unwrap_or(1)),
            Guess::Older => Expected::Revision(modified.unwrap_or(1) - 1),
            Guess::Newer => Expected::Revision(modified.unwrap_or(1) + 1),
            Guess::Any => Expected::Any,
        };
        self.counter += 1;
        let counter = self.counter;
        let make = move |revision: Revision| format!("{key}@{revision}#{counter}");
        let result = if delete {
            keyspace.delete(key, expected, make).await
        } else {
            keyspace.put(key, expected, make).await
        };
        let met = match guess {
            Guess::Absent => before.is_none(),
            Guess::Current => before.is_some(),
            Guess::Older | Guess::Newer => false,
            Guess::Any => true,
        };
        match result {
            Ok(entry) => {
                assert!(met && (before.is_some() || !delete));
                assert_eq!(entry.modified, model.revision() + 1);
                assert_eq!(*entry.value, make(entry.modified));
                let created = before.as_ref().map_or(entry.modified, |old| old.created);
                assert_eq!(entry.created, created);
                let seen = Seen {
                    revision: entry.modified,
                    key: key.to_owned(),
                    value: entry.value.to_string(),
                    previous: before.map(|stored| stored.value),
                    deleted: delete,
                };
                model.push(seen, self.seconds.load(Ordering::Relaxed));
            }
            Err(WriteError::NotFound) => assert!(before.is_none() && delete),
            Err(WriteError::Conflict { current }) => {
                assert!(!met);
                assert_eq!(current.map(|entry| entry.modified), modified);
            }
            Err(error) => panic!("{error}"),
        }
        assert_eq!(keyspace.revision(), model.revision());
        let stored = keyspace.get(key).map(|entry| entry.modified);
        let expected = model.state().get(key).map(|stored| stored.modified);
        assert_eq!(stored, expected);
    }

    /// Checks that the watches have seen everything, and have ended.
    async fn end_followers(&mut self, which: impl Fn(&Follower) -> bool) {
        for mut follower in self.followers.extract_if(.., |follower| which(follower)) {
            let model = &self.models[follower.keyspace];
            let compacted = follower
                .read(&model.events(follower.prefix, follower.from))
                .await;
            assert!(compacted || follower.watch.next().await.is_none());
        }
    }

    async fn check(&mut self) {
        for (index, model) in self.models.iter().enumerate() {
            let keyspace = self.keyspace(index);
            check_ranges(&keyspace, model);
            // The ranges just read were in the past, so that what is too old is gone by now.
            let now = self.seconds.load(Ordering::Relaxed);
            let expected = model.oldest(self.options.history_events, now);
            assert!(keyspace.oldest() >= expected, "more is kept than should be");
            assert!(
                keyspace.oldest() <= expected.max(model.compacted),
                "less is kept"
            );
            check_watches(&keyspace, model).await;
        }
        for mut follower in std::mem::take(&mut self.followers) {
            let model = &self.models[follower.keyspace];
            let events = model.events(follower.prefix, follower.from);
            if !follower.read(&events).await {
                assert_eq!(follower.watch.revision(), model.revision());
            }
        }
    }
}

impl Follower {
    /// Reads what there should be, or up to the error that says that it is gone; tells which.
    async fn read(&mut self, expected: &[Seen]) -> bool {
        while self.seen.len() < expected.len() {
            match self.watch.next().await.unwrap() {
                Ok(event) => self.seen.push(Seen::from(&*event)),
                Err(WatchError::Compacted { .. }) => {
                    assert!(expected.starts_with(&self.seen));
                    assert!(self.watch.next().await.is_none());
                    return true;
                }
                Err(error) => panic!("{error}"),
            }
        }
        assert_eq!(self.seen, expected);
        false
    }
}

fn check_ranges(keyspace: &Keyspace<String>, model: &Model) {
    let oldest = keyspace.oldest();
    for (at, state) in &model.states {
        for (prefix, start_after, limit) in PREFIXES.iter().flat_map(|prefix| {
            let starts = [None, Some("a/b"), Some("b")];
            let limits = [None, Some(0), Some(2)];
            let pairs = starts
                .into_iter()
                .flat_map(move |start| limits.into_iter().map(move |limit| (start, limit)));
            pairs.map(move |(start, limit)| (*prefix, start, limit))
        }) {
            let range = Range {
                prefix,
                start_after,
                limit,
                at: Some(*at),
                uncounted: false,
            };
            let wanted: Vec<_> = state
                .iter()
                .filter(|(key, _)| key.starts_with(prefix))
                .filter(|(key, _)| start_after.is_none_or(|start| key.as_str() > start))
                .collect();
            match keyspace.range(range) {
                Err(error) => {
                    assert_eq!(
                        error,
                        RangeError::Compacted {
                            oldest: keyspace.oldest()
                        }
                    );
                    assert!(*at < keyspace.oldest());
                }
                Ok(page) => {
                    assert!(*at >= oldest);
                    assert_eq!(page.revision, *at);
                    let count = limit.unwrap_or(usize::MAX).min(wanted.len());
                    assert_eq!(page.remaining, wanted.len() - count);
                    let uncounted = Range {
                        uncounted: true,
                        ..range
                    };
                    let remaining = keyspace.range(uncounted).unwrap().remaining;
                    assert_eq!(remaining, page.remaining.min(1));
                    let read: Vec<_> = page
                        .entries
                        .iter()
                        .map(|entry| {
                            let stored = Stored {
                                value: entry.value.to_string(),
                                created: entry.created,
                                modified: entry.modified,
                            };
                            (entry.key.to_string(), stored)
                        })
                        .collect();
                    let wanted = wanted[..count].iter();
                    let wanted: Vec<_> = wanted
                        .map(|(key, stored)| ((*key).clone(), (*stored).clone()))
                        .collect();
                    assert_eq!(read, wanted);
                }
            }
        }
    }
    let future = Range {
        at: Some(model.revision() + 1),
        ..Range::default()
    };
    let current = model.revision();
    assert_eq!(
        keyspace.range(future).unwrap_err(),
        RangeError::Future { current }
    );
}

async fn check_watches(keyspace: &Keyspace<String>, model: &Model) {
    for from in 0..=model.revision() {
        for prefix in PREFIXES {
            match keyspace.watch(prefix, from) {
                Err(error) => {
                    let oldest = keyspace.oldest();
                    assert_eq!(error, WatchError::Compacted { oldest });
                    assert!(from < oldest);
                }
                Ok(mut watch) => {
                    assert!(from >= keyspace.oldest());
                    for expected in model.events(prefix, from) {
                        let event = watch.next().await.unwrap().unwrap();
                        assert_eq!(Seen::from(&*event), expected);
                    }
                    assert_eq!(watch.revision(), model.revision());
                }
            }
        }
    }
    let current = model.revision();
    let future = keyspace.watch("", current + 1).unwrap_err();
    assert_eq!(future, WatchError::Future { current });
}

fn run(durable: bool, history_events: usize, operations: Vec<Operation>) {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .build()
        .unwrap();
    runtime.block_on(async {
        let mut world = World::new(durable, history_events);
        for operation in operations {
            world.run(operation).await;
        }
        world.check().await;
        world.run(Operation::Reopen).await;
        world.check().await;
    });
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]

    #[test]
    fn a_store_in_memory_does_as_the_model(
        operations in operations(),
        history_events in prop_oneof![1..10usize, Just(1000)],
    ) {
        run(false, history_events, operations);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 40, ..ProptestConfig::default() })]

    #[test]
    fn a_store_on_disk_does_as_the_model(
        operations in operations(),
        history_events in prop_oneof![1..10usize, Just(1000)],
    ) {
        run(true, history_events, operations);
    }
}
