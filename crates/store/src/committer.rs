//! The way of a write: straight into memory, or through the thread that commits to an engine.

use std::sync::Arc;

use crate::error::WriteError;
use crate::space::Space;
use crate::value::{Entry, Revision, Value};
use crate::write::Intent;

/// Where writes go before they become visible.
pub(crate) enum Committer<V> {
    /// Nowhere: they are visible at once, without a change of thread.
    Memory,
    #[expect(dead_code)]
    Disk(std::marker::PhantomData<V>),
}

impl<V: Value> Committer<V> {
    #[expect(clippy::unused_async)]
    pub(crate) async fn write(
        &self,
        space: &Arc<Space<V>>,
        intent: Intent<'_>,
        make: impl FnOnce(Revision) -> V + Send + 'static,
    ) -> Result<Entry<V>, WriteError<V>> {
        space.write_through(&intent, make)
    }
}
