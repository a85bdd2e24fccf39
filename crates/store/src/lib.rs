//! A revisioned key-value store with watch, in memory or on disk.

mod committer;
mod engine;
mod error;
mod event;
mod group;
mod history;
mod keyspace;
mod options;
mod range;
mod space;
mod store;
mod subscription;
mod value;
mod watch;
mod write;
mod writer;

pub use error::{OpenError, RangeError, StorageError, WatchError, WriteError};
pub use event::{Event, EventKind};
pub use keyspace::Keyspace;
pub use options::{Clock, Options};
pub use range::{Page, Range};
pub use store::Store;
pub use value::{DecodeError, Entry, FIRST_REVISION, Revision, Value};
pub use watch::Watch;
pub use write::Expected;
