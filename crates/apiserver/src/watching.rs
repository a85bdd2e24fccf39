//! Looking at a watch without waiting for it.

use std::sync::Arc;

use bellwether_store::{Event, Watch, WatchError};
use futures::FutureExt;

/// The next event if it is there already. A later `next` misses nothing.
pub(crate) fn try_next<V>(watch: &mut Watch<V>) -> Option<Result<Arc<Event<V>>, WatchError>> {
    watch.next().now_or_never().flatten()
}
