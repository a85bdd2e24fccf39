//! Where writes are kept: what the store asks of an engine.

pub(crate) mod disk;
pub(crate) mod memory;

use std::sync::Arc;

use crate::engine::disk::Snapshot;
use crate::error::{OpenError, StorageError};
use crate::event::Record;
use crate::space::{Content, Garbage};

/// Keeps the records of keyspaces.
pub(crate) trait Engine<V>: Send + 'static {
    /// Everything that has been committed.
    fn load_all(&mut self) -> Result<Vec<Content<V>>, OpenError>;

    /// Makes the changes durable, all or none of them.
    ///
    /// After an error it is unknown which of both, and the engine is not used again unless
    /// [`recover`](Self::recover) succeeds.
    fn commit(&mut self, batch: &[Change<'_, V>]) -> Result<(), StorageError>;

    /// Everything that has been committed so far, as a value that later commits do not change.
    fn snapshot(&self) -> Result<Snapshot, StorageError> {
        Err(StorageError::Failed("nothing is kept".into()))
    }

    /// Makes the engine usable after a commit that failed because the disk was full. Afterwards none
    /// of the records of that commit are there, and all of its removals are made.
    fn recover(&mut self, failed: &[Change<'_, V>]) -> Result<(), StorageError>;
}

/// One step of a batch.
pub(crate) enum Change<'a, V> {
    /// Adds records to a keyspace, which comes into being with its first one.
    Append {
        keyspace: &'a Arc<str>,
        records: &'a [Record<V>],
    },
    /// Removes records that are no longer needed.
    Compact {
        keyspace: &'a Arc<str>,
        garbage: &'a Garbage,
    },
    /// Removes a keyspace, if there is such.
    Drop { keyspace: &'a Arc<str> },
}
