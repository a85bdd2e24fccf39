//! The durable engine: a log of records in a redb database, in a directory of its own.
//!
//! Each record is a row under its keyspace and revision, written once. The latest record of a key
//! is its value, the rows after the compaction mark are the history, and what is neither is removed
//! some time after it left the history. So a write costs one row, the revision needs no place of
//! its own, and both the values and the history are there again after a restart.

mod database;
mod directory;
mod guarded;
mod replay;
mod row;
mod snapshot;

use std::collections::HashMap;
use std::io;
use std::path::Path;
use std::sync::Arc;

use redb::{Database, ReadTransaction, ReadableDatabase, ReadableTable, Table, WriteTransaction};

use self::database::{KEYSPACES, LOG, RowId, unreadable};
use self::directory::DataDirectory;
use self::guarded::GuardedFile;
use self::replay::Replay;
use self::row::Row;
pub(crate) use self::snapshot::Snapshot;
use super::{Change, Engine};
use crate::error::{OpenError, StorageError};
use crate::event::Record;
use crate::space::Content;
use crate::value::{FIRST_REVISION, Revision, Value};

/// The engine over an open database.
pub(crate) struct Disk {
    /// None while it cannot be opened again after a failure.
    database: Option<Database>,
    /// The file under the database, which stays as it is until everything has been read.
    file: GuardedFile,
    /// The number that each keyspace has in the log.
    keyspaces: HashMap<Arc<str>, u32>,
    /// The number of the next keyspace.
    next_number: u32,
    /// Last, because it holds the lock, and fields are dropped in order.
    directory: DataDirectory,
}

impl Disk {
    /// Locks the directory and opens the database in it, or creates both.
    pub(crate) fn open(path: &Path) -> Result<Self, OpenError> {
        let directory = DataDirectory::lock(path)?;
        if !directory.is_initialized() {
            database::create(&directory.new_database(), |_| Ok(()))?;
            directory.initialize()?;
        }
        let file = GuardedFile::open(&directory.database())?;
        Self::with_file(directory, file)
    }

    fn with_file(directory: DataDirectory, file: GuardedFile) -> Result<Self, OpenError> {
        Ok(Self {
            database: Some(database::open(&directory.database(), &file)?),
            file,
            keyspaces: HashMap::new(),
            next_number: 0,
            directory,
        })
    }

    /// Reads the table of keyspaces, and returns a replay for each, by number.
    fn load_keyspaces<V>(&mut self) -> Result<HashMap<u32, Replay<V>>, OpenError> {
        let path = self.directory.database();
        let transaction = self.read(&path)?;
        let table = transaction
            .open_table(KEYSPACES)
            .map_err(unreadable(&path))?;
        let mut replays = HashMap::new();
        for row in table.iter().map_err(unreadable(&path))? {
            let (name, about) = row.map_err(unreadable(&path))?;
            let (number, compacted) = about.value();
            let name: Arc<str> = name.value().into();
            replays.insert(number, Replay::new(Arc::clone(&name), compacted));
            self.keyspaces.insert(name, number);
            self.next_number = self.next_number.max(number.saturating_add(1));
        }
        Ok(replays)
    }

    /// Reads the log into the replays.
    fn load_log<V: Value>(&self, replays: &mut HashMap<u32, Replay<V>>) -> Result<(), OpenError> {
        let path = self.directory.database();
        let corrupt = |reason: String| OpenError::Corrupt {
            path: path.clone(),
            reason,
        };
        let transaction = self.read(&path)?;
        let table = transaction.open_table(LOG).map_err(unreadable(&path))?;
        for row in table.iter().map_err(unreadable(&path))? {
            let (id, bytes) = row.map_err(unreadable(&path))?;
            let id = RowId::from_bytes(id.value());
            let replay = replays
                .get_mut(&id.keyspace)
                .ok_or_else(|| corrupt(format!("{id} belongs to no keyspace")))?;
            let row =
                Row::decode(bytes.value()).ok_or_else(|| corrupt(format!("{id} is malformed")))?;
            let value = row.value().map_err(|source| OpenError::Value {
                path: path.clone(),
                keyspace: replay.name().to_owned(),
                key: row.key.to_owned(),
                source,
            })?;
            replay
                .add(id.revision, &row, value)
                .map_err(|reason| corrupt(format!("{id} {reason}")))?;
        }
        Ok(())
    }

    fn read(&self, path: &Path) -> Result<ReadTransaction, OpenError> {
        let database = self.database.as_ref().ok_or_else(|| OpenError::Io {
            action: "read",
            path: path.to_owned(),
            source: io::Error::other("it is closed"),
        })?;
        database.begin_read().map_err(unreadable(path))
    }

    /// Opens the database again after a failure, after which it refuses everything.
    fn reopen<V: Value>(&mut self) -> Result<(), OpenError> {
        let path = self.directory.database();
        let failed = |source| OpenError::Io {
            action: "open",
            path: path.clone(),
            source,
        };
        self.database = None;
        self.file = self.file.guard_again().map_err(failed)?;
        self.database = Some(database::open(&path, &self.file)?);
        self.keyspaces.clear();
        self.next_number = 0;
        self.load_keyspaces::<V>()?;
        self.file.release().map_err(failed)
    }

    /// Carries out changes in one transaction.
    fn transact<V: Value>(
        &mut self,
        batch: &[Change<'_, V>],
        step: impl Fn(&mut Self, &mut Step<'_>, &Change<'_, V>) -> Result<(), redb::Error>,
    ) -> Result<(), redb::Error> {
        let database = self.database.as_ref();
        let database = database.ok_or_else(|| io::Error::other("the database is closed"))?;
        let transaction = database.begin_write()?;
        {
            let log = transaction.open_table(LOG)?;
            let mut open = Step {
                transaction: &transaction,
                log,
            };
            for change in batch {
                step(self, &mut open, change)?;
            }
        }
        Ok(transaction.commit()?)
    }

    fn apply<V: Value>(
        &mut self,
        step: &mut Step<'_>,
        change: &Change<'_, V>,
    ) -> Result<(), redb::Error> {
        let Step { transaction, log } = step;
        match *change {
            Change::Append { keyspace, records } => {
                let number = self.number_of(transaction, keyspace)?;
                append(log, number, records)
            }
            Change::Compact { keyspace, garbage } => {
                let number = self.number_of(transaction, keyspace)?;
                for revision in &garbage.revisions {
                    log.remove(&RowId::new(number, *revision).to_bytes())?;
                }
                let mut keyspaces = transaction.open_table(KEYSPACES)?;
                keyspaces.insert(&**keyspace, (number, garbage.compacted))?;
                Ok(())
            }
            Change::Drop { keyspace } => {
                let Some(number) = self.keyspaces.remove(keyspace) else {
                    return Ok(());
                };
                let first = RowId::new(number, 0).to_bytes();
                let last = RowId::new(number, Revision::MAX).to_bytes();
                log.retain_in::<&[u8; 12], _>(&first..=&last, |_, _| false)?;
                transaction.open_table(KEYSPACES)?.remove(&**keyspace)?;
                Ok(())
            }
        }
    }

    /// Removes records that were refused, if they are there, and makes other changes.
    fn take_back<V: Value>(
        &mut self,
        step: &mut Step<'_>,
        change: &Change<'_, V>,
    ) -> Result<(), redb::Error> {
        let Change::Append { keyspace, records } = change else {
            return self.apply(step, change);
        };
        if let Some(number) = self.keyspaces.get(*keyspace) {
            for record in *records {
                let id = RowId::new(*number, record.event.revision).to_bytes();
                step.log.remove(&id)?;
            }
        }
        Ok(())
    }

    /// The number of a keyspace, which gets one if it is new.
    fn number_of(
        &mut self,
        transaction: &WriteTransaction,
        keyspace: &Arc<str>,
    ) -> Result<u32, redb::Error> {
        if let Some(number) = self.keyspaces.get(keyspace) {
            return Ok(*number);
        }
        let number = self.next_number;
        self.next_number = number.checked_add(1).ok_or_else(|| {
            io::Error::other("there have been too many keyspaces in this directory")
        })?;
        let mut keyspaces = transaction.open_table(KEYSPACES)?;
        keyspaces.insert(&**keyspace, (number, FIRST_REVISION))?;
        self.keyspaces.insert(Arc::clone(keyspace), number);
        Ok(number)
    }
}

impl<V: Value> Engine<V> for Disk {
    fn load_all(&mut self) -> Result<Vec<Content<V>>, OpenError> {
        let path = self.directory.database();
        let replays = database::catch(&path, || {
            let mut replays = self.load_keyspaces()?;
            self.load_log(&mut replays)?;
            Ok(replays)
        })?;
        self.file.release().map_err(|source| OpenError::Io {
            action: "write to",
            path,
            source,
        })?;
        Ok(replays.into_values().map(Replay::finish).collect())
    }

    fn commit(&mut self, batch: &[Change<'_, V>]) -> Result<(), StorageError> {
        self.transact(batch, Self::apply).map_err(failure)
    }

    fn snapshot(&self) -> Result<Snapshot, StorageError> {
        let database = self.database.as_ref();
        let closed = || StorageError::Failed("the database is closed".into());
        let transaction = database.ok_or_else(closed)?.begin_read();
        let transaction = transaction.map_err(|error| failure(error.into()))?;
        Ok(Snapshot::new(transaction))
    }

    fn recover(&mut self, failed: &[Change<'_, V>]) -> Result<(), StorageError> {
        self.directory.try_space().map_err(StorageError::from_io)?;
        let path = self.directory.database();
        let reopened = database::catch(&path, || self.reopen::<V>());
        reopened.map_err(|error| match error {
            OpenError::Io { source, .. } => StorageError::from_io(source),
            error => StorageError::Failed(Box::new(error)),
        })?;
        self.transact(failed, Self::take_back).map_err(failure)
    }
}

/// A transaction and its log.
struct Step<'a> {
    transaction: &'a WriteTransaction,
    log: Table<'a, &'static [u8; 12], &'static [u8]>,
}

fn failure(error: redb::Error) -> StorageError {
    match error {
        redb::Error::Io(error) => StorageError::from_io(error),
        error => StorageError::Failed(Box::new(error)),
    }
}

fn append<V: Value>(
    log: &mut Table<'_, &[u8; 12], &[u8]>,
    keyspace: u32,
    records: &[Record<V>],
) -> Result<(), redb::Error> {
    for record in records {
        let id = RowId::new(keyspace, record.event.revision).to_bytes();
        let value = record.event.value().encode();
        let row = Row {
            is_delete: record.event.is_delete(),
            created: record.created,
            time: record.time,
            key: &record.event.key,
            value: &value,
        };
        row.encode(log.insert_reserve(&id, row.encoded_length())?.as_mut());
    }
    Ok(())
}

#[cfg(test)]
mod tests;
