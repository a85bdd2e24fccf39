//! Power failures: what has been synced is there afterwards, of the rest any part may be. And full
//! disks: what was refused is not there afterwards.
//!
//! Killing the process does not show whether a commit waits for the disk, since the system keeps
//! what was written. So here the engine writes to a disk that forgets.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::Mutex;
use redb::StorageBackend;

use super::*;
use crate::event::{Event, EventKind};
use crate::retention::Retention;
use crate::space::{Garbage, Space};
use crate::{Options, Range};

const SECTOR: usize = 512;

/// How many batches are committed in each life of the disk.
const BATCHES: u64 = 40;

/// A disk that, when the power fails, has of what was not synced each sector or not.
#[derive(Debug)]
struct Forgetful {
    state: Mutex<State>,
    /// How many batches the engine has acknowledged.
    acknowledged: AtomicU64,
}

#[derive(Debug)]
struct State {
    synced: Vec<u8>,
    current: Vec<u8>,
    /// Lengths and writes since the last sync.
    unsynced: Vec<Unsynced>,
    random: u64,
    /// What was left of the disk at some moments, and how much had been acknowledged then.
    failures: Vec<(Vec<u8>, u64)>,
    /// After how many more writes, lengths and syncs the disk is full; never if none.
    full_after: Option<u64>,
}

#[derive(Debug)]
enum Unsynced {
    Length(usize),
    Write(usize, Vec<u8>),
}

impl State {
    /// Fails once the disk is full.
    fn use_space(&mut self) -> io::Result<()> {
        match &mut self.full_after {
            None => Ok(()),
            Some(0) => Err(io::ErrorKind::StorageFull.into()),
            Some(left) => {
                *left -= 1;
                Ok(())
            }
        }
    }

    fn random(&mut self, below: u64) -> u64 {
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        self.random % below
    }

    /// What is left if the power fails now.
    fn fail(&mut self) -> Vec<u8> {
        let lengths = self.unsynced.iter().filter_map(|change| match change {
            Unsynced::Length(length) => Some(*length),
            Unsynced::Write(..) => None,
        });
        let lengths: Vec<_> = [self.synced.len()].into_iter().chain(lengths).collect();
        let kept = self.random(lengths.len() as u64);
        let length = lengths[usize::try_from(kept).unwrap()];
        let mut left = self.synced.clone();
        left.resize(length, 0);
        let unsynced = std::mem::take(&mut self.unsynced);
        for change in &unsynced {
            let Unsynced::Write(offset, data) = change else {
                continue;
            };
            // Most are lost or there as a whole.
            let fate = self.random(3);
            for (number, sector) in data.chunks(SECTOR).enumerate() {
                let start = offset + number * SECTOR;
                let lost = fate == 0 || (fate == 1 && self.random(2) == 0);
                if let (false, Some(to)) = (lost, left.get_mut(start..start + sector.len())) {
                    to.copy_from_slice(sector);
                }
            }
        }
        self.unsynced = unsynced;
        left
    }
}

impl Forgetful {
    fn new(content: Vec<u8>, seed: u64) -> Arc<Self> {
        Arc::new(Self {
            state: Mutex::new(State {
                synced: content.clone(),
                current: content,
                unsynced: Vec::new(),
                random: seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1,
                failures: Vec::new(),
                full_after: None,
            }),
            acknowledged: AtomicU64::new(0),
        })
    }

    /// Lets the power fail now, in another world, now and then.
    fn maybe_fail(&self, state: &mut State) {
        if state.random(12) == 0 {
            let left = state.fail();
            let acknowledged = self.acknowledged.load(Ordering::Relaxed);
            state.failures.push((left, acknowledged));
        }
    }
}

impl StorageBackend for Forgetful {
    fn len(&self) -> io::Result<u64> {
        Ok(self.state.lock().current.len() as u64)
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        let offset = usize::try_from(offset).unwrap();
        let state = self.state.lock();
        let bytes = state.current.get(offset..offset + out.len());
        out.copy_from_slice(bytes.ok_or(io::ErrorKind::UnexpectedEof)?);
        Ok(())
    }

    fn set_len(&self, length: u64) -> io::Result<()> {
        let length = usize::try_from(length).unwrap();
        let mut state = self.state.lock();
        state.use_space()?;
        state.current.resize(length, 0);
        state.unsynced.push(Unsynced::Length(length));
        Ok(())
    }

    fn sync_data(&self) -> io::Result<()> {
        let mut state = self.state.lock();
        state.use_space()?;
        self.maybe_fail(&mut state);
        state.synced = state.current.clone();
        state.unsynced.clear();
        self.maybe_fail(&mut state);
        Ok(())
    }

    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        let offset = usize::try_from(offset).unwrap();
        let mut state = self.state.lock();
        state.use_space()?;
        state.current[offset..offset + data.len()].copy_from_slice(data);
        let write = Unsynced::Write(offset, data.to_vec());
        state.unsynced.push(write);
        self.maybe_fail(&mut state);
        Ok(())
    }
}

/// Opens the engine on a disk, and the keyspace in it.
fn open(path: &Path, disk: &Arc<Forgetful>) -> (Disk, Space<String>) {
    let file = GuardedFile::over(Arc::clone(disk) as Arc<dyn StorageBackend>).unwrap();
    let directory = DataDirectory::lock(path).unwrap();
    let mut engine = Disk::with_file(directory, file).unwrap();
    let content = Engine::load_all(&mut engine).unwrap().pop();
    let content = content.unwrap_or_else(|| Content::new("hub".into(), FIRST_REVISION));
    (
        engine,
        Space::stored(content, Arc::new(Retention::new(Options::default()))),
    )
}

/// Commits batches of creations, and now and then removes what is no longer needed.
fn write(engine: &mut Disk, disk: &Forgetful, space: &Space<String>) {
    let mut revision = space.read().revision;
    for batch in 1..=BATCHES {
        let count = disk.state.lock().random(4) + 1;
        let records: Vec<_> = (0..count)
            .map(|_| {
                revision += 1;
                created(revision)
            })
            .collect();
        let (keyspace, records) = (&space.name, records.as_slice());
        let mut changes = vec![Change::Append { keyspace, records }];
        let garbage = Garbage {
            revisions: Vec::new(),
            compacted: revision - count,
        };
        if batch.is_multiple_of(8) {
            let garbage = &garbage;
            changes.push(Change::Compact { keyspace, garbage });
        }
        engine.commit(&changes).unwrap();
        disk.acknowledged.store(revision, Ordering::Relaxed);
    }
}

fn created(revision: Revision) -> Record<String> {
    let kind = EventKind::Put {
        value: Arc::new(value(revision)),
        previous: None,
    };
    Record {
        event: Arc::new(Event {
            revision,
            key: format!("key{revision:05}").into(),
            kind,
        }),
        created: revision,
        previous_modified: None,
        time: 0,
    }
}

fn value(revision: Revision) -> String {
    format!("{revision} ").repeat(usize::try_from(revision % 700).unwrap())
}

#[test]
fn what_was_acknowledged_survives_a_power_failure() {
    let directory = tempfile::tempdir().unwrap();
    drop(Disk::open(directory.path()).unwrap());
    let empty = std::fs::read(directory.path().join("store.redb")).unwrap();
    let mut inspected = 0;
    for seed in 1..=4 {
        let disk = Forgetful::new(empty.clone(), seed);
        let (mut engine, space) = open(directory.path(), &disk);
        write(&mut engine, &disk, &space);
        drop(engine);
        let failures = std::mem::take(&mut disk.state.lock().failures);
        for (left, acknowledged) in failures {
            let (engine, space) = open(directory.path(), &Forgetful::new(left, seed));
            let page = space.range(&Range::default()).unwrap();
            assert!(page.revision >= acknowledged, "revisions have gone back");
            let revisions: Vec<_> = page.entries.iter().map(|entry| entry.modified).collect();
            assert!(revisions.into_iter().eq(FIRST_REVISION + 1..=page.revision));
            for entry in page.entries {
                assert_eq!(*entry.value, value(entry.modified));
            }
            drop(engine);
            inspected += 1;
        }
    }
    assert!(inspected > 50, "only {inspected} failures");
}

/// The revisions that the engine has stored.
fn stored(engine: &mut Disk) -> Vec<Revision> {
    let mut replays = engine.load_keyspaces::<String>().unwrap();
    engine.load_log(&mut replays).unwrap();
    let contents: Vec<Content<String>> = replays.into_values().map(Replay::finish).collect();
    let mut revisions = Vec::new();
    for content in contents {
        let space = Space::stored(content, Arc::new(Retention::new(Options::default())));
        let page = space.range(&Range::default()).unwrap();
        revisions.extend(page.entries.iter().map(|entry| entry.modified));
    }
    revisions
}

#[test]
fn a_full_disk_loses_nothing_and_keeps_nothing_that_was_refused() {
    let directory = tempfile::tempdir().unwrap();
    drop(Disk::open(directory.path()).unwrap());
    let empty = std::fs::read(directory.path().join("store.redb")).unwrap();
    let keyspace: Arc<str> = "hub".into();
    let mut refused = 0;
    // The disk is full at each step of a commit in turn.
    for full_after in 0..12 {
        let disk = Forgetful::new(empty.clone(), full_after + 1);
        let (mut engine, _) = open(directory.path(), &disk);
        let append = |engine: &mut Disk, revision: Revision| {
            let records = [created(revision)];
            let change = Change::Append {
                keyspace: &keyspace,
                records: &records,
            };
            engine.commit(&[change])
        };
        append(&mut engine, FIRST_REVISION + 1).unwrap();
        disk.state.lock().full_after = Some(full_after);
        let Err(error) = append(&mut engine, FIRST_REVISION + 2) else {
            continue;
        };
        assert!(error.is_full(), "{error}");
        refused += 1;
        let records = [created(FIRST_REVISION + 2)];
        let failed = [Change::Append {
            keyspace: &keyspace,
            records: &records,
        }];
        // It stays full for a while.
        assert!(engine.recover(&failed).unwrap_err().is_full());
        disk.state.lock().full_after = None;
        engine.recover(&failed).unwrap();
        assert_eq!(stored(&mut engine), [FIRST_REVISION + 1]);
        append(&mut engine, FIRST_REVISION + 2).unwrap();
        assert_eq!(
            stored(&mut engine),
            [FIRST_REVISION + 1, FIRST_REVISION + 2]
        );
        drop(engine);
        let left = disk.state.lock().current.clone();
        let (mut engine, _) = open(directory.path(), &Forgetful::new(left, 1));
        assert_eq!(
            stored(&mut engine),
            [FIRST_REVISION + 1, FIRST_REVISION + 2]
        );
    }
    assert!(refused > 2, "only {refused} commits were refused");
}
