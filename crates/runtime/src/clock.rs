//! The time of day, handed in so that tests can move it.

use std::sync::Arc;

use jiff::Timestamp;
use tokio::time::{Duration, Instant, sleep};

/// Where the time comes from.
#[derive(Clone)]
pub struct Clock(Arc<dyn Fn() -> Timestamp + Send + Sync>);

impl Clock {
    /// A clock that shows what the function returns.
    pub fn new(now: impl Fn() -> Timestamp + Send + Sync + 'static) -> Self {
        Self(Arc::new(now))
    }

    /// The machine's clock.
    pub fn system() -> Self {
        #[expect(
            clippy::disallowed_methods,
            reason = "the one place where the clock is read"
        )]
        Self::new(Timestamp::now)
    }

    /// A clock that shows `start` now, and from then on goes as the timers of the runtime do.
    ///
    /// In a test whose runtime has been paused, time then leaps to the next timer as soon as there
    /// is nothing else to do, and hours pass in no time.
    pub fn of_runtime(start: Timestamp) -> Self {
        let origin = Instant::now();
        Self::new(move || {
            // Past the end of the calendar, time stands still.
            start
                .checked_add(origin.elapsed())
                .unwrap_or(Timestamp::MAX)
        })
    }

    /// What it shows.
    pub fn now(&self) -> Timestamp {
        (self.0)()
    }

    /// Waits until it shows that time, as far as the runtime's timers go along with it.
    pub async fn until(&self, time: Timestamp) {
        // A timer may be early by a fraction of a millisecond.
        while let Some(rest) = self.time_until(time) {
            sleep(rest).await;
        }
    }

    /// How long it takes until that time; nothing if it has come.
    fn time_until(&self, time: Timestamp) -> Option<Duration> {
        let rest = Duration::try_from(time.duration_since(self.now())).ok()?;
        (!rest.is_zero()).then_some(rest)
    }
}

impl std::fmt::Debug for Clock {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Clock({})", self.now())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_clock_of_the_runtime_leaps_over_what_is_waited_for() {
        let start: Timestamp = "2026-01-01T00:00:00Z".parse().unwrap();
        let clock = Clock::of_runtime(start);
        clock.until("2026-01-01T05:00:00Z".parse().unwrap()).await;
        assert_eq!(clock.now().to_string(), "2026-01-01T05:00:00Z");
        clock.until(start).await;
        assert_eq!(clock.now().to_string(), "2026-01-01T05:00:00Z");
    }
}
