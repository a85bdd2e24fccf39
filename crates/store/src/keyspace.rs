//! The operations on one keyspace.

use std::fmt;
use std::sync::Arc;

use crate::error::{RangeError, StorageError, WatchError, WriteError};
use crate::range::{Page, Range};
use crate::space::Space;
use crate::store::Shared;
use crate::value::{Entry, Revision, Value};
use crate::watch::Watch;
use crate::write::{Action, Expected, Intent};

/// An ordered map with its own revision counter; one per cluster. Cheap to clone.
///
/// Reads are answered from memory, see only what is durable, and block nobody for long.
pub struct Keyspace<V> {
    space: Arc<Space<V>>,
    shared: Arc<Shared<V>>,
}

impl<V: Value> Keyspace<V> {
    pub(crate) fn new(space: Arc<Space<V>>, shared: Arc<Shared<V>>) -> Self {
        Self { space, shared }
    }

    /// The name it is known by in its store.
    pub fn name(&self) -> &str {
        &self.space.name
    }

    /// The revision of the latest write; [`FIRST_REVISION`](crate::FIRST_REVISION) if there was
    /// none.
    pub fn revision(&self) -> Revision {
        self.space.read().revision
    }

    /// How many keys there are.
    pub fn len(&self) -> usize {
        self.space.read().entries.len()
    }

    /// Whether there are no keys.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Why the storage accepts no writes, if it does not.
    pub fn failure(&self) -> Option<Arc<StorageError>> {
        self.shared.committer.failure()
    }

    /// The entry of a key.
    pub fn get(&self, key: &str) -> Option<Entry<V>> {
        self.space.get(key)
    }

    /// Entries in the order of their keys, all as of one revision.
    ///
    /// The cost is that of the entries returned, plus a step for each one that remains, and for a
    /// read of the past plus a step for each write since then.
    pub fn range(&self, range: Range<'_>) -> Result<Page<V>, RangeError> {
        self.space.range(&range)
    }

    /// Gives a key a value, and returns when that is durable.
    ///
    /// `value` is called once, and only if the write happens, with the revision that the write
    /// gets, so that a value can carry its own revision. It must be quick, since other writes wait
    /// for it, and must not use the store. If it panics nothing is written, and the panic goes on in
    /// the caller.
    ///
    /// A write happens even if the future is dropped once it has been polled.
    pub async fn put(
        &self,
        key: &str,
        expected: Expected,
        value: impl FnOnce(Revision) -> V + Send + 'static,
    ) -> Result<Entry<V>, WriteError<V>> {
        let intent = Intent {
            key,
            action: Action::Put,
            expected,
        };
        self.write(intent, value).await
    }

    /// Removes a key, and returns its final entry when that is durable.
    ///
    /// `last` gives the final state that watchers see, with the revision of the deletion; it is
    /// called as the closure of [`put`](Self::put) is.
    pub async fn delete(
        &self,
        key: &str,
        expected: Expected,
        last: impl FnOnce(Revision) -> V + Send + 'static,
    ) -> Result<Entry<V>, WriteError<V>> {
        let intent = Intent {
            key,
            action: Action::Delete,
            expected,
        };
        self.write(intent, last).await
    }

    async fn write(
        &self,
        intent: Intent<'_>,
        make: impl FnOnce(Revision) -> V + Send + 'static,
    ) -> Result<Entry<V>, WriteError<V>> {
        let written = self.shared.committer.write(&self.space, intent, make).await;
        self.shared.relieve();
        written
    }

    /// Follows the keys with the prefix: every event with a revision greater than `from`, in order,
    /// without a gap or a duplicate, then live ones.
    pub fn watch(&self, prefix: &str, from: Revision) -> Result<Watch<V>, WatchError> {
        Watch::new(Arc::clone(&self.space), prefix, from)
    }

    /// The oldest revision that can be watched from or read at.
    pub fn oldest(&self) -> Revision {
        self.space.read().history.compacted()
    }

    /// Drops the history up to and including the revision: reads and watches from before it fail
    /// from now on. What is too old or too much is dropped without being told.
    ///
    /// On disk it is removed some time later, so that a restart may bring some of it back.
    pub fn compact(&self, through: Revision) {
        self.space.compact(through);
    }
}

impl<V> Clone for Keyspace<V> {
    fn clone(&self) -> Self {
        Self {
            space: Arc::clone(&self.space),
            shared: Arc::clone(&self.shared),
        }
    }
}

impl<V> fmt::Debug for Keyspace<V> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_tuple("Keyspace")
            .field(&self.space.name)
            .finish()
    }
}
