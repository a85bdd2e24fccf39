//! Where writes are kept: the trait that an engine implements, and what it is asked to do.

use std::sync::Arc;

use crate::error::{OpenError, StorageError};
use crate::event::Record;
use crate::space::{Content, Garbage};

/// Keeps the records of keyspaces. Called by one thread at a time.
pub(crate) trait Engine<V>: Send + 'static {
    /// Everything that has been committed, by keyspace.
    fn load_all(&mut self) -> Result<Vec<(String, Content<V>)>, OpenError>;

    /// Makes the changes durable, all or none of them.
    ///
    /// After an error it is unknown which of both, and the engine is not used again.
    fn commit(&mut self, batch: &[Change<V>]) -> Result<(), StorageError>;
}

/// One step of a batch.
pub(crate) enum Change<V> {
    /// Adds records to a keyspace, which comes into being with its first one.
    Append {
        keyspace: Arc<str>,
        records: Vec<Record<V>>,
    },
    /// Removes records that are no longer needed.
    Compact {
        keyspace: Arc<str>,
        garbage: Garbage,
    },
    /// Removes a keyspace, if there is such.
    Drop { keyspace: Arc<str> },
}
