//! Backups of a store that is written to meanwhile.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use bellwether_store::{BackupError, Expected, OpenError, Options, Range, Store};

fn open(path: &std::path::Path) -> Store<String> {
    Store::open(path, Options::default()).unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_backup_has_the_state_of_one_moment() {
    let directory = tempfile::tempdir().unwrap();
    let store = open(&directory.path().join("live"));
    // Two keys of two keyspaces that are written in turn: the first is never behind the second.
    let written = Arc::new(AtomicU64::new(0));
    let writer = {
        let (store, written) = (store.clone(), Arc::clone(&written));
        tokio::spawn(async move {
            for number in 1_u64.. {
                for name in ["first", "second"] {
                    let keyspace = store.keyspace(name);
                    let value = move |_| number.to_string();
                    if keyspace.put("/a", Expected::Any, value).await.is_err() {
                        return;
                    }
                }
                written.store(number, Ordering::Release);
            }
        })
    };
    for round in 0..5 {
        while written.load(Ordering::Acquire) < 20 * (round + 1) {
            tokio::task::yield_now().await;
        }
        let acknowledged = written.load(Ordering::Acquire);
        let path = directory.path().join(format!("backup-{round}"));
        store.backup(&path).await.unwrap();
        let copy = open(&path);
        let value = |name: &str| -> u64 {
            let page = copy.keyspace(name).range(Range::prefix("/")).unwrap();
            page.entries[0].value.parse().unwrap()
        };
        let (first, second) = (value("first"), value("second"));
        assert!(second >= acknowledged, "{second} is before {acknowledged}");
        assert!(first == second || first == second + 1, "{first} {second}");
        copy.close().await;
        let again = store.backup(&path).await;
        let refused = matches!(again, Err(BackupError::Write(OpenError::Foreign { .. })));
        assert!(refused, "a backup is never overwritten: {again:?}");
    }
    store.close().await;
    writer.await.unwrap();
}

#[tokio::test]
async fn what_is_in_memory_has_no_backup() {
    let store: Store<String> = Store::in_memory(Options::default());
    let path = std::path::Path::new("nowhere");
    let refused = store.backup(path).await;
    assert!(matches!(refused, Err(BackupError::InMemory)));
    assert!(!path.exists());
    let directory = tempfile::tempdir().unwrap();
    let store = open(&directory.path().join("live"));
    store.clone().close().await;
    let refused = store.backup(&directory.path().join("late")).await;
    assert!(matches!(refused, Err(BackupError::Closed)));
}
