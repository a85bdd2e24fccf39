//! Arithmetic with times that never overflows.

use std::time::Duration;

use jiff::Timestamp;

/// A moment later; at the end of the calendar, the end.
pub(crate) fn after(time: Timestamp, wait: Duration) -> Timestamp {
    time.checked_add(wait).unwrap_or(Timestamp::MAX)
}

/// So many seconds later; a negative number counts as none.
pub(crate) fn seconds_after(time: Timestamp, seconds: i64) -> Timestamp {
    after(
        time,
        Duration::from_secs(u64::try_from(seconds).unwrap_or(0)),
    )
}
