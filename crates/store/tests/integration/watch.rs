//! Watches: what they see, when they wake, and when they end.
#![allow(clippy::unwrap_used, reason = "helpers of tests fail as tests do")]

use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll, Wake, Waker};

use bellwether_store::{
    Event, Expected, FIRST_REVISION, Keyspace, Options, Revision, Store, Watch, WatchError,
};
use futures::{FutureExt, StreamExt};

fn store(history_events: usize) -> Store<String> {
    Store::in_memory(Options {
        history_events,
        ..Options::default()
    })
}

async fn put(keyspace: &Keyspace<String>, key: &str) -> Revision {
    let value = |revision: Revision| revision.to_string();
    keyspace
        .put(key, Expected::Any, value)
        .await
        .unwrap()
        .modified
}

/// What the watch says without waiting.
fn now(watch: &mut Watch<String>) -> Poll<Option<Result<Arc<Event<String>>, WatchError>>> {
    watch
        .next()
        .now_or_never()
        .map_or(Poll::Pending, Poll::Ready)
}

#[track_caller]
fn event(polled: Poll<Option<Result<Arc<Event<String>>, WatchError>>>) -> Revision {
    match polled {
        Poll::Ready(Some(Ok(event))) => event.revision,
        other => panic!("{other:?} is no event"),
    }
}

/// Counts how often it is woken.
#[derive(Default)]
struct Alarm(AtomicUsize);

impl Wake for Alarm {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

#[tokio::test]
async fn a_write_wakes_the_watches_of_its_prefix_and_no_others() {
    let keyspace = store(100).keyspace("hub");
    let mut watches = Vec::new();
    for prefix in [
        "/pods/",
        "/pods/default/",
        "/pods/default/a",
        "/pod",
        "",
        "/leases/",
        "/z",
    ] {
        let mut watch = keyspace.watch(prefix, keyspace.revision()).unwrap();
        let alarm = Arc::new(Alarm::default());
        let waker = Waker::from(Arc::clone(&alarm));
        let mut context = Context::from_waker(&waker);
        assert!(watch.poll_next_unpin(&mut context).is_pending());
        watches.push((prefix, watch, alarm));
    }
    put(&keyspace, "/pods/default/b").await;
    for (prefix, watch, alarm) in &mut watches {
        let matches = "/pods/default/b".starts_with(*prefix);
        assert_eq!(
            alarm.0.load(Ordering::Relaxed),
            usize::from(matches),
            "{prefix}"
        );
        assert_eq!(now(watch).is_ready(), matches, "{prefix}");
    }
}

#[tokio::test]
async fn watches_share_their_events() {
    let keyspace = store(100).keyspace("hub");
    let mut one = keyspace.watch("a", FIRST_REVISION).unwrap();
    let mut other = keyspace.watch("", FIRST_REVISION).unwrap();
    put(&keyspace, "a").await;
    let (one, other) = (one.next().await, other.next().await);
    assert!(Arc::ptr_eq(
        &one.unwrap().unwrap(),
        &other.unwrap().unwrap()
    ));
}

#[tokio::test]
async fn a_watch_that_falls_behind_the_history_ends() {
    let keyspace = store(10).keyspace("hub");
    let mut watch = keyspace.watch("a", FIRST_REVISION).unwrap();
    for _ in 0..11 {
        put(&keyspace, "a").await;
    }
    let oldest = keyspace.oldest();
    assert_eq!(oldest, 2);
    let compacted = Err(WatchError::Compacted { oldest });
    assert_eq!(now(&mut watch).map_ok(|_| ()), Poll::Ready(Some(compacted)));
    assert!(matches!(now(&mut watch), Poll::Ready(None)));
}

#[tokio::test]
async fn a_watch_of_a_quiet_prefix_does_not_end() {
    let keyspace = store(10).keyspace("hub");
    let mut watch = keyspace.watch("quiet", FIRST_REVISION).unwrap();
    for _ in 0..100 {
        put(&keyspace, "noisy").await;
    }
    assert!(now(&mut watch).is_pending());
    assert_eq!(watch.revision(), keyspace.revision());
    let revision = put(&keyspace, "quiet").await;
    assert_eq!(watch.next().await.unwrap().unwrap().revision, revision);
}

#[tokio::test]
async fn progress_is_what_has_been_handed_out() {
    let keyspace = store(100).keyspace("hub");
    let mut watch = keyspace.watch("a", FIRST_REVISION).unwrap();
    assert_eq!(watch.revision(), FIRST_REVISION);
    put(&keyspace, "b").await;
    assert_eq!(watch.revision(), 2);
    put(&keyspace, "a").await;
    put(&keyspace, "a").await;
    put(&keyspace, "b").await;
    // There are events that it has not handed out: nothing is known beyond what it has.
    assert_eq!(watch.revision(), FIRST_REVISION);
    watch.next().await.unwrap().unwrap();
    assert_eq!(watch.revision(), 3);
    watch.next().await.unwrap().unwrap();
    assert_eq!(watch.revision(), 5);
    assert!(now(&mut watch).is_pending());
}

#[tokio::test]
async fn a_future_that_is_dropped_loses_no_event() {
    let keyspace = store(100).keyspace("hub");
    let mut watch = keyspace.watch("", FIRST_REVISION).unwrap();
    {
        let mut next = pin!(watch.next());
        assert!(futures::poll!(&mut next).is_pending());
        put(&keyspace, "a").await;
    }
    assert_eq!(event(now(&mut watch)), 2);
}

#[tokio::test]
async fn a_watch_ends_with_its_keyspace_after_the_last_event() {
    let store = store(100);
    let keyspace = store.keyspace("hub");
    let mut watch = keyspace.watch("", FIRST_REVISION).unwrap();
    put(&keyspace, "a").await;
    assert!(store.drop_keyspace("hub").await.unwrap());
    assert_eq!(watch.next().await.unwrap().unwrap().revision, 2);
    assert!(watch.next().await.is_none());
    assert_eq!(keyspace.watch("", 2).unwrap_err(), WatchError::Closed);
    assert!(keyspace.get("a").is_none());
    assert!(store.keyspaces().is_empty());
}

#[tokio::test]
async fn a_watch_ends_when_the_store_is_closed_or_dropped() {
    for close in [true, false] {
        let store = store(100);
        let keyspace = store.keyspace("hub");
        put(&keyspace, "a").await;
        let mut watch = keyspace.watch("", 2).unwrap();
        let waiting = tokio::spawn(async move { watch.next().await.is_none() });
        if close {
            store.close().await;
            assert!(
                keyspace
                    .put("b", Expected::Any, |_| String::new())
                    .await
                    .is_err()
            );
            assert!(keyspace.get("a").is_some());
        } else {
            drop((store, keyspace));
        }
        assert!(waiting.await.unwrap());
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn watches_see_everything_while_many_write() {
    let directory = tempfile::tempdir().unwrap();
    let durable = Store::open(directory.path(), Options::default()).unwrap();
    for store in [store(100_000), durable] {
        let keyspace = store.keyspace("hub");
        let (writers, each) = (8, 200);
        let last = FIRST_REVISION + writers * each;
        let mut watchers = tokio::task::JoinSet::new();
        for prefix in ["", "key/1", "key/3"].into_iter().cycle().take(30) {
            let mut watch = keyspace.watch(prefix, FIRST_REVISION).unwrap();
            watchers.spawn(async move {
                let mut seen = Vec::new();
                while watch.revision() < last {
                    let event = watch.next().await.unwrap().unwrap();
                    assert!(event.key.starts_with(prefix));
                    assert_eq!(event.value().as_str(), event.revision.to_string());
                    seen.push(event.revision);
                }
                assert!(seen.is_sorted_by(|earlier, later| earlier < later));
                (prefix, seen.len() as u64)
            });
        }
        let mut writing = tokio::task::JoinSet::new();
        for writer in 0..writers {
            let keyspace = keyspace.clone();
            writing.spawn(async move {
                for _ in 0..each {
                    put(&keyspace, &format!("key/{writer}")).await;
                }
            });
        }
        writing.join_all().await;
        // A watch that waits for its last event only learns of the end by one more.
        for key in ["key/1", "key/3"] {
            put(&keyspace, key).await;
        }
        for (prefix, seen) in watchers.join_all().await {
            let expected = if prefix.is_empty() {
                writers * each
            } else {
                each
            };
            assert!(
                (expected..=expected + 2).contains(&seen),
                "{prefix} saw {seen}"
            );
        }
        store.close().await;
    }
}
