//! How much history all keyspaces of a store keep together.
//!
//! History is kept for a certain time, but in a busy store that could be more than fits into memory.
//! So when it takes too many bytes, the time is made shorter, for all keyspaces alike, until it does
//! not; when there is room again, it becomes longer, up to what was asked for.

use std::sync::atomic::{AtomicI64, AtomicUsize, Ordering};

use crate::options::Options;

/// History is kept for so long, in milliseconds, whatever it takes: a watch that is read at all does
/// not fall behind.
const SHORTEST: i64 = 5_000;
/// How long to wait, in milliseconds, before the time is made shorter once more.
const PAUSE: i64 = 1_000;

/// What is known of the history of all keyspaces.
pub(crate) struct Retention {
    pub(crate) options: Options,
    /// About how many bytes the history takes.
    bytes: AtomicUsize,
    /// For how long it is kept, in milliseconds.
    window: AtomicI64,
    /// When that was last made shorter, in milliseconds since 1970.
    narrowed: AtomicI64,
}

impl Retention {
    pub(crate) fn new(options: Options) -> Self {
        Self {
            window: AtomicI64::new(longest(&options)),
            options,
            bytes: AtomicUsize::new(0),
            narrowed: AtomicI64::new(i64::MIN),
        }
    }

    /// Milliseconds since 1970.
    pub(crate) fn now(&self) -> i64 {
        (self.options.clock)().as_millisecond()
    }

    /// Since when history is kept.
    pub(crate) fn since(&self, now: i64) -> i64 {
        now.saturating_sub(self.window.load(Ordering::Relaxed))
    }

    /// The history of a keyspace takes so many bytes instead of so many.
    pub(crate) fn account(&self, before: usize, after: usize) {
        if after > before {
            self.bytes.fetch_add(after - before, Ordering::Relaxed);
        } else {
            self.bytes.fetch_sub(before - after, Ordering::Relaxed);
        }
    }

    /// Whether there is too much history.
    pub(crate) fn is_exceeded(&self) -> bool {
        self.bytes.load(Ordering::Relaxed) > self.options.history_bytes
    }

    /// Makes the time shorter if there is too much history. Returns whether it is, so that all
    /// keyspaces have to be looked at.
    pub(crate) fn narrow(&self) -> bool {
        if !self.is_exceeded() {
            return false;
        }
        let now = self.now();
        let last = self.narrowed.load(Ordering::Relaxed);
        if now.saturating_sub(last) < PAUSE {
            return false;
        }
        let order = Ordering::Relaxed;
        if self
            .narrowed
            .compare_exchange(last, now, order, order)
            .is_err()
        {
            return false;
        }
        let window = self.window.load(order);
        let shortest = SHORTEST.min(longest(&self.options));
        self.window.store((window / 2).max(shortest), order);
        true
    }

    /// Makes the time longer if there is room for twice as much. To be called from time to time.
    pub(crate) fn widen(&self) {
        if self.bytes.load(Ordering::Relaxed) < self.options.history_bytes / 2 {
            let window = self.window.load(Ordering::Relaxed);
            let wider = window.saturating_mul(2).min(longest(&self.options));
            self.window.store(wider, Ordering::Relaxed);
        }
    }
}

fn longest(options: &Options) -> i64 {
    i64::try_from(options.history_age.as_millis()).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::time::Duration;

    use jiff::Timestamp;

    use super::*;

    #[test]
    fn the_time_becomes_shorter_under_load_and_longer_again() {
        let second = Arc::new(AtomicI64::new(1_000));
        let clock = Arc::clone(&second);
        let mut options = Options::new(Arc::new(move || {
            Timestamp::from_second(clock.load(Ordering::Relaxed)).unwrap()
        }));
        options.history_age = Duration::from_secs(100);
        options.history_bytes = 1_000;
        let retention = Retention::new(options);
        let window = || retention.now() - retention.since(retention.now());
        retention.account(0, 1_000);
        assert!(!retention.narrow());
        retention.account(0, 1);
        assert!(retention.narrow());
        assert!(!retention.narrow(), "not at once");
        assert_eq!(window(), 50_000);
        for _ in 0..9 {
            second.fetch_add(1, Ordering::Relaxed);
            assert!(retention.narrow());
        }
        assert_eq!(window(), SHORTEST);
        retention.widen();
        assert_eq!(window(), SHORTEST, "there is no room");
        retention.account(1_001, 10);
        for _ in 0..9 {
            retention.widen();
        }
        assert_eq!(window(), 100_000);
    }
}
