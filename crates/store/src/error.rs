//! Why an operation failed: one error per kind of operation.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use crate::value::{DecodeError, Entry, Revision};

/// A write that did not happen.
#[derive(thiserror::Error)]
pub enum WriteError<V> {
    /// The key is not in the state the writer expected; read it again and decide again.
    #[error("the key is not in the expected state: it {}", describe(current.as_ref()))]
    Conflict {
        /// What is there instead.
        current: Option<Entry<V>>,
    },
    /// There is nothing to delete.
    #[error("the key does not exist")]
    NotFound,
    /// The storage failed, now or earlier, and the store refuses writes; it goes on serving reads.
    /// Whether this write will be there after a restart is unknown. A store that recovers by itself,
    /// after [`StorageError::Full`], takes it back.
    #[error("{0}")]
    Storage(Arc<StorageError>),
    /// The store has been closed, or the keyspace dropped.
    #[error("the store is closed")]
    Closed,
}

impl<V> From<StorageError> for WriteError<V> {
    fn from(error: StorageError) -> Self {
        Self::Storage(Arc::new(error))
    }
}

fn describe<V>(current: Option<&Entry<V>>) -> String {
    match current {
        Some(entry) => format!("was last written at revision {}", entry.modified),
        None => "does not exist".to_owned(),
    }
}

impl<V> fmt::Debug for WriteError<V> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Conflict { current } => formatter
                .debug_struct("Conflict")
                .field("current", current)
                .finish(),
            Self::NotFound => formatter.write_str("NotFound"),
            Self::Storage(source) => formatter.debug_tuple("Storage").field(source).finish(),
            Self::Closed => formatter.write_str("Closed"),
        }
    }
}

/// A read of the past that is not possible.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum RangeError {
    /// The history needed to reconstruct that revision is gone.
    #[error("the revision has been compacted; the oldest one available is {oldest}")]
    Compacted {
        /// The oldest revision that can still be read.
        oldest: Revision,
    },
    /// No write has had that revision yet.
    #[error("the revision is in the future; the current one is {current}")]
    Future {
        /// The revision of the latest write.
        current: Revision,
    },
}

/// A watch that cannot start or go on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum WatchError {
    /// Events that the watcher has not seen are gone; it has to read everything again.
    #[error("the revision has been compacted; the oldest one to watch from is {oldest}")]
    Compacted {
        /// The oldest revision a watch can start from.
        oldest: Revision,
    },
    /// No write has had that revision yet.
    #[error("the revision is in the future; the current one is {current}")]
    Future {
        /// The revision of the latest write.
        current: Revision,
    },
    /// The store has been closed, or the keyspace dropped.
    #[error("the store is closed")]
    Closed,
}

/// A data directory that cannot be used. Nothing in it has been changed.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// The path leads to something that is not a directory.
    #[error("{} is not a directory", path.display())]
    NotADirectory {
        /// The path as given.
        path: PathBuf,
    },
    /// Another process, or another store in this process, has the directory open.
    #[error("{} is in use by another process", path.display())]
    Locked {
        /// The directory.
        path: PathBuf,
    },
    /// The directory has content that is not a store's.
    #[error("{} is not a data directory: it holds {found:?}; give an empty or a new one", path.display())]
    Foreign {
        /// The directory.
        path: PathBuf,
        /// A file in it that no store wrote.
        found: String,
    },
    /// A newer version wrote the directory.
    #[error("{} has data format {found}, and this version reads only {supported}; use a newer version", path.display())]
    Format {
        /// The directory.
        path: PathBuf,
        /// The format version it says it has.
        found: String,
        /// The format version this code reads and writes.
        supported: u32,
    },
    /// The data is damaged. It is left as it is, for a backup or an expert.
    #[error("the data in {} is damaged: {reason}", path.display())]
    Corrupt {
        /// The directory or file.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// A stored value cannot be read.
    #[error("the value of {key:?} in keyspace {keyspace:?} in {} cannot be read", path.display())]
    Value {
        /// The directory.
        path: PathBuf,
        /// The keyspace of the value.
        keyspace: String,
        /// Its key.
        key: String,
        /// Why it cannot be read.
        source: DecodeError,
    },
    /// The operating system refused.
    #[error("cannot {action} {}", path.display())]
    Io {
        /// What was attempted.
        action: &'static str,
        /// The file or directory concerned.
        path: PathBuf,
        /// The system's answer.
        source: std::io::Error,
    },
    /// The thread that writes cannot be started.
    #[error("cannot start a thread")]
    Thread(#[source] std::io::Error),
}

/// Why there is no backup.
#[derive(Debug, thiserror::Error)]
pub enum BackupError {
    /// The store is in memory only.
    #[error("the store is in memory only")]
    InMemory,
    /// The store has been closed.
    #[error("the store has been closed")]
    Closed,
    /// The storage does not work.
    #[error(transparent)]
    Storage(Arc<StorageError>),
    /// The directory cannot be written.
    #[error(transparent)]
    Write(#[from] OpenError),
}

/// The storage under a durable store failed.
#[derive(Debug, thiserror::Error)]
pub enum StorageError {
    /// The disk is full. The store accepts writes again by itself when there is space.
    #[error("cannot write: no space left on the disk of the data directory")]
    Full(#[source] std::io::Error),
    /// Something else went wrong, which only opening the store again can repair.
    #[error("cannot write to the data directory, restart when the disk is repaired: {0}")]
    Failed(Box<dyn std::error::Error + Send + Sync>),
}

impl StorageError {
    /// What an answer of the operating system means.
    pub(crate) fn from_io(error: std::io::Error) -> Self {
        use std::io::ErrorKind::{FileTooLarge, QuotaExceeded, StorageFull};
        match error.kind() {
            StorageFull | QuotaExceeded | FileTooLarge => Self::Full(error),
            _ => Self::Failed(Box::new(error)),
        }
    }

    /// True if the store recovers by itself.
    pub fn is_full(&self) -> bool {
        matches!(self, Self::Full(_))
    }
}
