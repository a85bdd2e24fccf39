//! The way of a write: straight through an engine that never waits, or by the thread of one that does.

use std::panic::resume_unwind;
use std::sync::Arc;

use tokio::sync::oneshot;

use crate::engine::disk::Snapshot;
use crate::engine::memory::Memory;
use crate::error::{BackupError, StorageError, WriteError};
use crate::space::Space;
use crate::value::{Entry, Revision, Value};
use crate::write::Intent;
use crate::writer::{Request, WriteRequest, Writer};

/// How writes get to the engine before they become visible.
pub(crate) enum Committer<V> {
    /// Each by itself, without a change of thread.
    Direct(Memory),
    /// Many at a time, by a thread that waits for the engine.
    Grouped(Writer<V>),
}

impl<V: Value> Committer<V> {
    /// Carries out a write, and returns when it is durable and visible.
    pub(crate) async fn write(
        &self,
        space: &Arc<Space<V>>,
        intent: Intent<'_>,
        make: impl FnOnce(Revision) -> V + Send + 'static,
    ) -> Result<Entry<V>, WriteError<V>> {
        let writer = match self {
            Self::Direct(engine) => return space.write_through(*engine, &intent, make),
            Self::Grouped(writer) => writer,
        };
        let (answer, answered) = oneshot::channel();
        writer.submit(Request::Write(WriteRequest {
            space: Arc::clone(space),
            key: intent.key.into(),
            action: intent.action,
            expected: intent.expected,
            make: Box::new(make),
            answer,
        }));
        match answered.await {
            Ok(Ok(result)) => result,
            Ok(Err(panic)) => resume_unwind(panic),
            // The request has been dropped unanswered: the thread is gone.
            Err(_) => Err(WriteError::Closed),
        }
    }

    /// Removes a keyspace with all that is in it.
    pub(crate) async fn remove(&self, space: Arc<Space<V>>) -> Result<(), WriteError<V>> {
        let writer = match self {
            Self::Direct(engine) => return space.drop_through(*engine),
            Self::Grouped(writer) => writer,
        };
        let (answer, answered) = oneshot::channel();
        writer.submit(Request::Drop { space, answer });
        match answered.await {
            Ok(result) => result.map_err(WriteError::Storage),
            Err(_) => Err(WriteError::Closed),
        }
    }

    /// Has the storage of the keyspaces freed of what is no longer needed, some time soon.
    pub(crate) fn sweep(&self, spaces: Vec<Arc<Space<V>>>) {
        if let Self::Grouped(writer) = self {
            writer.submit(Request::Sweep(spaces));
        }
    }

    /// The state after all writes that have been answered.
    pub(crate) async fn snapshot(&self) -> Result<Snapshot, BackupError> {
        let Self::Grouped(writer) = self else {
            return Err(BackupError::InMemory);
        };
        let (answer, answered) = oneshot::channel();
        writer.submit(Request::Snapshot(answer));
        match answered.await {
            Ok(snapshot) => snapshot.map_err(BackupError::Storage),
            Err(_) => Err(BackupError::Closed),
        }
    }

    /// Why the storage accepts no writes, if it does not.
    pub(crate) fn failure(&self) -> Option<Arc<StorageError>> {
        match self {
            Self::Direct(_) => None,
            Self::Grouped(writer) => writer.failure(),
        }
    }

    /// Completes the writes that are under way, and releases the storage.
    pub(crate) async fn close(&self) {
        if let Self::Grouped(writer) = self {
            writer.close().await;
        }
    }
}
