//! How much history a store keeps, and where it takes the time from.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;

/// Tells the store what time it is; only the age of history depends on it.
pub type Clock = Arc<dyn Fn() -> Timestamp + Send + Sync>;

/// Settings of a store.
#[derive(Clone)]
pub struct Options {
    /// How many events each keyspace keeps for watches that resume and for reads of the past.
    ///
    /// A watcher that falls further behind than this has to list again. At least one is kept.
    pub history_events: usize,
    /// How long an event is kept at most.
    pub history_age: Duration,
    /// About how many bytes the history of all keyspaces may take together: what has been replaced
    /// or deleted. If it is more, events are kept for a shorter time, though for some seconds at
    /// least.
    pub history_bytes: usize,
    /// Where the time comes from.
    pub clock: Clock,
}

impl Options {
    /// Five minutes of history, as kube-apiserver keeps it, and at most 10,000 events for each
    /// keyspace and 64 MiB for all: enough for a client that pages through a large list while others
    /// write.
    pub fn new(clock: Clock) -> Self {
        Self {
            history_events: 10_000,
            history_age: Duration::from_mins(5),
            history_bytes: 64 << 20,
            clock,
        }
    }
}

impl Default for Options {
    /// [`Options::new`] with the time of the system.
    fn default() -> Self {
        #[expect(
            clippy::disallowed_methods,
            reason = "this is the clock that is injected unless the caller has another"
        )]
        Self::new(Arc::new(Timestamp::now))
    }
}

impl fmt::Debug for Options {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Options")
            .field("history_events", &self.history_events)
            .field("history_age", &self.history_age)
            .field("history_bytes", &self.history_bytes)
            .finish_non_exhaustive()
    }
}
