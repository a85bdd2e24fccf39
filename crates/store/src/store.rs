//! The store: a set of named keyspaces over one engine.

use std::collections::BTreeMap;
use std::fmt;
use std::path::Path;
use std::sync::Arc;

use parking_lot::RwLock;

use crate::committer::Committer;
use crate::engine::Engine;
use crate::engine::disk::Disk;
use crate::engine::memory::Memory;
use crate::error::{BackupError, OpenError, StorageError, WriteError};
use crate::keyspace::Keyspace;
use crate::options::Options;
use crate::retention::Retention;
use crate::space::{Content, Space};
use crate::value::{FIRST_REVISION, Value};
use crate::writer::Writer;

/// Many keyspaces over one engine. Cheap to clone; all clones are the same store.
///
/// It lives until it is [closed](Self::close), or until it and all its keyspaces are dropped.
pub struct Store<V> {
    shared: Arc<Shared<V>>,
}

/// What all handles of a store share.
pub(crate) struct Shared<V> {
    pub(crate) retention: Arc<Retention>,
    pub(crate) committer: Committer<V>,
    spaces: RwLock<Spaces<V>>,
}

struct Spaces<V> {
    by_name: BTreeMap<Arc<str>, Arc<Space<V>>>,
    closed: bool,
}

impl<V: Value> Store<V> {
    /// A store that is gone with the process.
    pub fn in_memory(options: Options) -> Self {
        Self::new(
            Arc::new(Retention::new(options)),
            Committer::Direct(Memory),
            BTreeMap::new(),
        )
    }

    /// The durable store in a directory of its own, which is created if need be.
    ///
    /// The directory is locked as long as the store lives. Everything in it is verified and read
    /// into memory; if that fails the directory is left as it is. Blocks meanwhile.
    pub fn open(directory: &Path, options: Options) -> Result<Self, OpenError> {
        Self::with_engine(Disk::open(directory)?, options)
    }

    /// A store over an engine that has to be waited for.
    fn with_engine(mut engine: impl Engine<V>, options: Options) -> Result<Self, OpenError> {
        let retention = Arc::new(Retention::new(options));
        let mut spaces = BTreeMap::new();
        for content in engine.load_all()? {
            let space = Space::stored(content, Arc::clone(&retention));
            spaces.insert(Arc::clone(&space.name), Arc::new(space));
        }
        let writer = Writer::start(engine).map_err(OpenError::Thread)?;
        Ok(Self::new(retention, Committer::Grouped(writer), spaces))
    }

    fn new(
        retention: Arc<Retention>,
        committer: Committer<V>,
        by_name: BTreeMap<Arc<str>, Arc<Space<V>>>,
    ) -> Self {
        let closed = false;
        Self {
            shared: Arc::new(Shared {
                retention,
                committer,
                spaces: RwLock::new(Spaces { by_name, closed }),
            }),
        }
    }

    /// The keyspace of that name, which comes into being by being asked for.
    pub fn keyspace(&self, name: &str) -> Keyspace<V> {
        if let Some(keyspace) = self.existing_keyspace(name) {
            return keyspace;
        }
        let space = self.shared.add_space(name);
        Keyspace::new(space, Arc::clone(&self.shared))
    }

    /// The keyspace of that name, if there is one.
    pub fn existing_keyspace(&self, name: &str) -> Option<Keyspace<V>> {
        let spaces = self.shared.spaces.read();
        let space = Arc::clone(spaces.live(name)?);
        Some(Keyspace::new(space, Arc::clone(&self.shared)))
    }

    /// The names of all keyspaces, in order.
    ///
    /// A keyspace that has never been written to is not stored: after a restart it is listed when
    /// it has been asked for again.
    pub fn keyspaces(&self) -> Vec<String> {
        let spaces = self.shared.spaces.read();
        let names = spaces
            .by_name
            .keys()
            .filter(|name| spaces.live(name).is_some());
        names.map(ToString::to_string).collect()
    }

    /// Removes a keyspace with all that is in it, and tells whether there was one.
    ///
    /// Its watches end, and writes through handles that still exist fail. A keyspace of the same
    /// name that is asked for later is a new one, and counts from the beginning.
    pub async fn drop_keyspace(&self, name: &str) -> Result<bool, WriteError<V>> {
        let space = self.shared.spaces.read().live(name).map(Arc::clone);
        let Some(space) = space else {
            return Ok(false);
        };
        self.shared.committer.remove(Arc::clone(&space)).await?;
        let mut spaces = self.shared.spaces.write();
        // Someone may have asked for a successor already.
        if spaces
            .by_name
            .get(name)
            .is_some_and(|found| Arc::ptr_eq(found, &space))
        {
            spaces.by_name.remove(name);
        }
        Ok(true)
    }

    /// Drops the history that is too old in all keyspaces, also in those that nobody writes to, and
    /// frees their storage. To be called from time to time.
    pub fn compact(&self) {
        self.shared.retention.widen();
        let spaces = self.shared.compact();
        self.shared.committer.sweep(spaces);
    }

    /// Writes everything that has been acknowledged so far to a directory of another store, which must be missing or empty. Reads and
    /// writes go on meanwhile; what is written after the call began may or may not be in it.
    pub async fn backup(&self, directory: &Path) -> Result<(), BackupError> {
        let snapshot = self.shared.committer.snapshot().await?;
        let directory = directory.to_owned();
        let written = tokio::task::spawn_blocking(move || snapshot.write_to(&directory)).await;
        match written {
            Ok(written) => Ok(written?),
            // The task is never cancelled; a panic in it is ours.
            Err(_) => Err(BackupError::Closed),
        }
    }

    /// Why the storage accepts no writes, if it does not.
    pub fn failure(&self) -> Option<Arc<StorageError>> {
        self.shared.committer.failure()
    }

    /// Completes the writes that are under way, refuses others, ends all watches and releases the
    /// directory. Reads through handles that still exist go on.
    pub async fn close(self) {
        self.shared.committer.close().await;
        self.shared.close();
    }
}

impl<V: Value> Shared<V> {
    /// Drops history that is not to be kept from all keyspaces, and returns them.
    fn compact(&self) -> Vec<Arc<Space<V>>> {
        let spaces: Vec<_> = self.spaces.read().by_name.values().cloned().collect();
        for space in &spaces {
            space.compact(0);
        }
        spaces
    }

    /// Keeps less history if there is too much of it. To be called after writes.
    pub(crate) fn relieve(&self) {
        if self.retention.narrow() {
            self.compact();
        }
    }

    /// Adds a keyspace, unless somebody else just did.
    fn add_space(&self, name: &str) -> Arc<Space<V>> {
        let mut spaces = self.spaces.write();
        if let Some(space) = spaces.live(name) {
            return Arc::clone(space);
        }
        let (name, retention): (Arc<str>, _) = (name.into(), Arc::clone(&self.retention));
        let space = Arc::new(match self.committer {
            Committer::Direct(_) => Space::in_memory(name, retention),
            Committer::Grouped(_) => Space::stored(Content::new(name, FIRST_REVISION), retention),
        });
        if spaces.closed {
            space.close();
        }
        spaces
            .by_name
            .insert(Arc::clone(&space.name), Arc::clone(&space));
        space
    }
}

impl<V> Shared<V> {
    fn close(&self) {
        let mut spaces = self.spaces.write();
        spaces.closed = true;
        for space in spaces.by_name.values() {
            space.close();
        }
    }
}

impl<V> Spaces<V> {
    /// The keyspace of that name, unless it has been dropped.
    fn live(&self, name: &str) -> Option<&Arc<Space<V>>> {
        let space = self.by_name.get(name)?;
        (self.closed || !space.is_closed()).then_some(space)
    }
}

impl<V> Drop for Shared<V> {
    fn drop(&mut self) {
        // For watches, which are no reason for the store to live.
        self.close();
    }
}

impl<V> Clone for Store<V> {
    fn clone(&self) -> Self {
        Self {
            shared: Arc::clone(&self.shared),
        }
    }
}

impl<V> fmt::Debug for Store<V> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Store")
            .field("options", &self.shared.retention.options)
            .field("keyspaces", &self.shared.spaces.read().by_name.len())
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
