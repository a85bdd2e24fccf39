//! The store over an engine that does what the test wants: when writes are visible, and what happens
//! when the storage fails.

use std::io::ErrorKind;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::task::Poll;

use jiff::Timestamp;

use super::*;
use crate::engine::Change;
use crate::error::StorageError;
use crate::range::Range;
use crate::write::Expected;

/// Reports each commit, and waits to be told how it ends.
struct Puppet {
    commits: Sender<usize>,
    outcomes: Receiver<Outcome>,
}

#[derive(Debug, Clone, Copy)]
enum Outcome {
    Success,
    Failure,
    Full,
    Panic,
}

impl Engine<String> for Puppet {
    fn load_all(&mut self) -> Result<Vec<Content<String>>, OpenError> {
        Ok(Vec::new())
    }

    fn commit(&mut self, batch: &[Change<'_, String>]) -> Result<(), StorageError> {
        let writes = batch.iter().map(|change| match change {
            Change::Append { records, .. } => records.len(),
            Change::Compact { .. } | Change::Drop { .. } => 0,
        });
        self.commits.send(writes.sum()).unwrap();
        match self.outcomes.recv().unwrap() {
            Outcome::Success => Ok(()),
            Outcome::Failure => Err(StorageError::Failed("the disk is on fire".into())),
            Outcome::Full => Err(StorageError::Full(ErrorKind::StorageFull.into())),
            Outcome::Panic => panic!("the engine is broken"),
        }
    }

    fn recover(&mut self, failed: &[Change<'_, String>]) -> Result<(), StorageError> {
        self.commit(failed)
    }
}

/// A store over a puppet, with its strings.
struct Stage {
    store: Store<String>,
    commits: Receiver<usize>,
    outcomes: Sender<Outcome>,
}

impl Stage {
    fn new() -> Self {
        let (commits_sender, commits) = channel();
        let (outcomes, outcomes_receiver) = channel();
        let puppet = Puppet {
            commits: commits_sender,
            outcomes: outcomes_receiver,
        };
        let store = Store::with_engine(puppet, Options::default());
        Self {
            store: store.unwrap(),
            commits,
            outcomes,
        }
    }

    /// Starts a write, which has been queued when this returns.
    fn put(&self, key: &str, expected: Expected) -> PendingWrite {
        let keyspace = self.store.keyspace("hub");
        let key = key.to_owned();
        let mut write = Box::pin(async move {
            let value = format!("value of {key}");
            keyspace.put(&key, expected, |_| value).await
        });
        assert!(futures::FutureExt::now_or_never(&mut write).is_none());
        write
    }

    /// Waits for a commit to begin, and returns how many writes it makes durable.
    fn next_commit(&self) -> usize {
        self.commits.recv().unwrap()
    }

    fn end_commit(&self, outcome: Outcome) {
        self.outcomes.send(outcome).unwrap();
    }
}

type PendingWrite = std::pin::Pin<
    Box<dyn Future<Output = Result<crate::Entry<String>, WriteError<String>>> + Send>,
>;

#[tokio::test]
async fn a_write_is_visible_when_it_is_durable_and_not_before() {
    let stage = Stage::new();
    let keyspace = stage.store.keyspace("hub");
    let mut watch = keyspace.watch("", FIRST_REVISION).unwrap();
    let write = stage.put("key", Expected::Absent);
    assert_eq!(stage.next_commit(), 1);
    assert!(keyspace.get("key").is_none());
    assert_eq!(keyspace.revision(), FIRST_REVISION);
    assert!(keyspace.range(Range::default()).unwrap().entries.is_empty());
    assert!(futures::poll!(std::pin::pin!(watch.next())).is_pending());
    stage.end_commit(Outcome::Success);
    assert_eq!(write.await.unwrap().modified, 2);
    assert_eq!(keyspace.get("key").unwrap().modified, 2);
    assert_eq!(watch.next().await.unwrap().unwrap().revision, 2);
}

#[tokio::test]
async fn writes_that_wait_are_committed_together_and_in_order() {
    let stage = Stage::new();
    let first = stage.put("first", Expected::Absent);
    assert_eq!(stage.next_commit(), 1);
    // While that is being committed: new keys, and two writes of which the second must lose.
    let others: Vec<_> = (0..10)
        .map(|n| stage.put(&n.to_string(), Expected::Absent))
        .collect();
    let winner = stage.put("contested", Expected::Absent);
    let mut loser = stage.put("contested", Expected::Absent);
    stage.end_commit(Outcome::Success);
    assert_eq!(stage.next_commit(), 11);
    // Even the refusal waits: it speaks of a write that is not durable yet.
    assert!(matches!(futures::poll!(&mut loser), Poll::Pending));
    stage.end_commit(Outcome::Success);
    assert_eq!(first.await.unwrap().modified, 2);
    for (revision, write) in (3..).zip(others) {
        assert_eq!(write.await.unwrap().modified, revision);
    }
    let winner = winner.await.unwrap();
    let Err(WriteError::Conflict { current }) = loser.await else {
        panic!("the second write won as well");
    };
    assert_eq!(current.unwrap().modified, winner.modified);
}

#[tokio::test]
async fn a_failed_commit_stops_writes_but_not_reads() {
    let stage = Stage::new();
    let kept = stage.put("kept", Expected::Any);
    stage.end_commit(Outcome::Success);
    kept.await.unwrap();
    let lost = stage.put("lost", Expected::Any);
    stage.end_commit(Outcome::Failure);
    let error = lost.await.unwrap_err();
    assert!(matches!(error, WriteError::Storage(_)), "{error}");

    let keyspace = stage.store.keyspace("hub");
    assert!(keyspace.get("lost").is_none());
    assert_eq!(keyspace.get("kept").unwrap().modified, keyspace.revision());
    // The engine is not asked again: its state is unknown.
    let refused = keyspace
        .put("later", Expected::Any, |_| String::new())
        .await;
    assert!(matches!(refused, Err(WriteError::Storage(_))));
    assert_eq!(stage.commits.try_iter().count(), 2);
    let dropped = stage.store.drop_keyspace("hub").await;
    assert!(matches!(dropped, Err(WriteError::Storage(_))));
    stage.store.close().await;
}

#[tokio::test]
async fn nobody_waits_for_an_engine_that_has_panicked() {
    let stage = Stage::new();
    let first = stage.put("first", Expected::Any);
    assert_eq!(stage.next_commit(), 1);
    let second = stage.put("second", Expected::Any);
    stage.end_commit(Outcome::Panic);
    assert!(matches!(first.await, Err(WriteError::Closed)));
    assert!(matches!(second.await, Err(WriteError::Closed)));
    stage.store.close().await;
}

#[tokio::test]
async fn a_panic_in_a_closure_goes_to_its_caller_alone() {
    let stage = Stage::new();
    let keyspace = stage.store.keyspace("hub");
    let write = tokio::spawn(async move {
        let panics = |_| -> String { panic!("no value") };
        keyspace.put("key", Expected::Any, panics).await
    });
    assert!(write.await.unwrap_err().is_panic());
    let next = stage.put("key", Expected::Absent);
    stage.end_commit(Outcome::Success);
    assert_eq!(next.await.unwrap().modified, 2);
}

#[tokio::test]
async fn a_write_happens_although_nobody_waits_for_it() {
    let stage = Stage::new();
    drop(stage.put("key", Expected::Absent));
    stage.end_commit(Outcome::Success);
    let keyspace = stage.store.keyspace("hub");
    let mut watch = keyspace.watch("", FIRST_REVISION).unwrap();
    assert_eq!(&*watch.next().await.unwrap().unwrap().key, "key");
}

#[tokio::test]
async fn writes_after_a_drop_in_the_same_group_are_refused() {
    let stage = Stage::new();
    let first = stage.put("first", Expected::Absent);
    assert_eq!(stage.next_commit(), 1);
    let before = stage.put("before", Expected::Absent);
    let mut dropping = Box::pin(stage.store.drop_keyspace("hub"));
    assert!(futures::poll!(&mut dropping).is_pending());
    let after = stage.put("after", Expected::Absent);
    stage.end_commit(Outcome::Success);
    assert_eq!(stage.next_commit(), 1);
    stage.end_commit(Outcome::Success);
    first.await.unwrap();
    before.await.unwrap();
    assert!(dropping.await.unwrap());
    assert!(matches!(after.await, Err(WriteError::Closed)));
    let successor = stage.store.keyspace("hub");
    assert_eq!((successor.revision(), successor.len()), (FIRST_REVISION, 0));
    assert!(!stage.store.drop_keyspace("missing").await.unwrap());
}

#[test]
fn an_idle_keyspace_is_small() {
    // Beside this: an entry of the map that finds it, and its name.
    assert!(size_of::<Space<String>>() < 512);
}

#[tokio::test]
async fn a_busy_store_keeps_less_history_in_all_keyspaces() {
    let second = Arc::new(AtomicI64::new(1_000));
    let clock = Arc::clone(&second);
    let mut options = Options::new(Arc::new(move || {
        Timestamp::from_second(clock.load(Ordering::Relaxed)).unwrap()
    }));
    options.history_bytes = 100_000;
    let store: Store<String> = Store::in_memory(options);
    let (busy, quiet) = (store.keyspace("busy"), store.keyspace("quiet"));
    for keyspace in [&quiet, &busy] {
        keyspace
            .put("a", Expected::Any, |_| String::new())
            .await
            .unwrap();
    }
    for _ in 0..100 {
        second.fetch_add(1, Ordering::Relaxed);
        busy.put("a", Expected::Any, |_| "x".repeat(10_000))
            .await
            .unwrap();
    }
    assert!(!store.shared.retention.is_exceeded());
    assert!(busy.oldest() > FIRST_REVISION + 80, "{}", busy.oldest());
    assert_eq!(quiet.oldest(), FIRST_REVISION + 1);
    // What is kept is still there to be watched.
    assert!(busy.watch("a", busy.oldest()).is_ok());
    drop(busy);
    assert!(store.drop_keyspace("busy").await.unwrap());
    second.fetch_add(1, Ordering::Relaxed);
    for _ in 0..20 {
        store.compact();
    }
    quiet
        .put("a", Expected::Any, |_| String::new())
        .await
        .unwrap();
    second.fetch_add(290, Ordering::Relaxed);
    store.compact();
    assert_eq!(
        quiet.oldest(),
        FIRST_REVISION + 1,
        "there is room for five minutes again"
    );
}

#[tokio::test]
async fn a_full_disk_refuses_writes_with_the_cause_until_there_is_space() {
    let stage = Stage::new();
    let first = stage.put("first", Expected::Absent);
    assert_eq!(stage.next_commit(), 1);
    let waiting = stage.put("waiting", Expected::Absent);
    stage.end_commit(Outcome::Full);
    let full = "cannot write: no space left on the disk of the data directory";
    assert_eq!(first.await.unwrap_err().to_string(), full);
    assert_eq!(waiting.await.unwrap_err().to_string(), full);
    assert_eq!(stage.store.failure().unwrap().to_string(), full);
    // The storage is tried again without a write, and takes back what may be there of the first.
    assert_eq!(stage.next_commit(), 1);
    stage.end_commit(Outcome::Full);
    assert_eq!(stage.next_commit(), 1);
    stage.end_commit(Outcome::Success);
    let second = stage.put("first", Expected::Absent);
    assert_eq!(stage.next_commit(), 1);
    stage.end_commit(Outcome::Success);
    let entry = second.await.unwrap();
    assert_eq!(entry.modified, FIRST_REVISION + 1);
    assert!(stage.store.failure().is_none());
    assert!(stage.store.keyspace("hub").get("waiting").is_none());
}
