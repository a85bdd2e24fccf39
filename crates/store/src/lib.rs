//! A revisioned key-value store with watch, in memory or on disk.
//!
//! It is what an embedded Kubernetes API server keeps its objects in. One [`Store`] holds many
//! [`Keyspace`]s, one per cluster. A keyspace is an ordered map with a revision counter of its own:
//! every write gets the next revision, names the state it expects, and becomes an [`Event`] that
//! [watches](Watch) see. A watch from a revision sees every later event once and in order; a
//! [range](Range) is read as of one revision, so that reading and then watching misses nothing.
//!
//! ```
//! use bellwether_store::{Expected, Options, Range, Store, WriteError};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let directory = tempfile::tempdir()?;
//! let store: Store<String> = Store::open(&directory.path().join("data"), Options::default())?;
//! let hub = store.keyspace("hub");
//!
//! // A value can carry the revision of its own write.
//! let created = hub
//!     .put("/pods/a", Expected::Absent, |revision| format!("a, as of {revision}"))
//!     .await?;
//! assert_eq!(*created.value, format!("a, as of {}", created.modified));
//!
//! // Read everything, then follow what happens.
//! let page = hub.range(Range::prefix("/pods/"))?;
//! assert_eq!(page.entries.len(), 1);
//! let mut watch = hub.watch("/pods/", page.revision)?;
//!
//! // A write is acknowledged when it is durable, and only then visible.
//! hub.put("/pods/a", Expected::Revision(created.modified), |_| "new".to_owned())
//!     .await?;
//! let event = watch.next().await.ok_or("the store has been closed")??;
//! assert_eq!((&*event.key, event.value().as_str()), ("/pods/a", "new"));
//!
//! // A writer that has not seen the latest write gets a conflict.
//! let stale = hub
//!     .delete("/pods/a", Expected::Revision(created.modified), |_| String::new())
//!     .await;
//! assert!(matches!(stale, Err(WriteError::Conflict { current: Some(_) })));
//!
//! // The past can be read as long as the history reaches back.
//! let past = Range { at: Some(page.revision), ..Range::prefix("/pods/") };
//! assert_eq!(hub.range(past)?.entries[0].value, created.value);
//! store.close().await;
//! # Ok(())
//! # }
//! ```
//!
//! # What is guaranteed
//!
//! - A write is acknowledged, and seen by reads and watches, only after it is durable. After a crash
//!   everything that was acknowledged is there, and revisions go on from where they were.
//! - [`Options`] say how many events are kept, how long, and how many bytes they may take. They are kept on disk as well: after a
//!   restart a watch resumes from any revision that was in the history, and sees every event or, if
//!   some are gone, [`WatchError::Compacted`].
//! - Readers and watches never wait for the disk, and a slow watch neither holds up writers nor
//!   costs memory. A write does work only for watches whose prefix its key has.
//! - A directory that is damaged, foreign, written by a later version or in use gives an
//!   [`OpenError`] and is left as it is.
//! - If the disk is full, writes are refused with [`StorageError::Full`] until there is space again;
//!   what was refused is not there afterwards. If the disk fails, writes are refused until the store
//!   is opened again, since it is then unknown what the disk holds. Reads go on, and
//!   [`Store::failure`] has the cause.
//!
//! # How it works
//!
//! All entries and the history are in memory (`space`), and serve all reads. With
//! [`Store::in_memory`] a write goes straight there, since its engine (`engine::memory`) keeps nothing
//! and never waits. With [`Store::open`] it first goes to one thread (`writer`) that takes all writes
//! that are waiting, decides them in order (`group`), has the engine (`engine::disk`) commit them in
//! one transaction, makes them visible and answers.

mod committer;
mod engine;
mod error;
mod event;
mod group;
mod history;
mod keyspace;
mod options;
mod range;
mod retention;
mod space;
mod store;
mod subscription;
mod value;
mod watch;
mod write;
mod writer;

pub use error::{BackupError, OpenError, RangeError, StorageError, WatchError, WriteError};
pub use event::{Event, EventKind};
pub use keyspace::Keyspace;
pub use options::{Clock, Options};
pub use range::{Page, Range};
pub use store::Store;
pub use value::{DecodeError, Entry, FIRST_REVISION, Revision, Value};
pub use watch::Watch;
pub use write::Expected;
