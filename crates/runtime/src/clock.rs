//! The time of day and the time that passes, handed in so that tests can move them.

use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use tokio::sync::watch;
use tokio::time::{Duration, Instant, sleep};

/// Where the time comes from.
///
/// [`now`](Self::now) is the time of day, which an operator or a time server may set.
/// [`monotonic`](Self::monotonic) only counts how much time passes. Measure how long something lasts by
/// the latter: a time of day that is set forward makes every stored time look old.
#[derive(Clone)]
pub struct Clock {
    now: Arc<dyn Fn() -> Timestamp + Send + Sync>,
    /// Where `monotonic` counts from.
    origin: Instant,
    /// By how much it was set forward, if it can be.
    ahead: Option<watch::Receiver<SignedDuration>>,
}

/// Sets a clock forward.
#[derive(Debug)]
pub struct Forward(watch::Sender<SignedDuration>);

impl Forward {
    /// Sets the clock forward by so much; anyone who waits for a time in between is woken.
    pub fn by(&self, span: Duration) {
        let span = SignedDuration::try_from(span).unwrap_or(SignedDuration::MAX);
        self.0
            .send_modify(|ahead| *ahead = ahead.saturating_add(span));
    }
}

impl Clock {
    /// A clock that shows what the function returns.
    pub fn new(now: impl Fn() -> Timestamp + Send + Sync + 'static) -> Self {
        Self {
            now: Arc::new(now),
            origin: Instant::now(),
            ahead: None,
        }
    }

    /// This clock, and what sets it forward: for tests beside servers whose time cannot be paused.
    #[must_use]
    pub fn adjustable(self) -> (Self, Forward) {
        let (sender, ahead) = watch::channel(SignedDuration::ZERO);
        let (inner, receiver) = (self.now, ahead.clone());
        let now = move || {
            let span = *receiver.borrow();
            inner().checked_add(span).unwrap_or(Timestamp::MAX)
        };
        let clock = Self {
            now: Arc::new(now),
            origin: self.origin,
            ahead: Some(ahead),
        };
        (clock, Forward(sender))
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
        (self.now)()
    }

    /// How much time has passed since the clock was made. It never goes back and never jumps.
    pub fn monotonic(&self) -> Duration {
        let ahead = self.ahead.as_ref().map(|ahead| *ahead.borrow());
        let ahead = ahead.and_then(|ahead| Duration::try_from(ahead).ok());
        self.origin
            .elapsed()
            .saturating_add(ahead.unwrap_or_default())
    }

    /// Waits until it shows that time, as far as the runtime's timers go along with it.
    pub async fn until(&self, time: Timestamp) {
        self.pass(|| Duration::try_from(time.duration_since(self.now())).unwrap_or_default())
            .await;
    }

    /// Waits for as long as that, by the time that passes.
    pub async fn sleep(&self, span: Duration) {
        self.until_monotonic(self.monotonic().saturating_add(span))
            .await;
    }

    /// Waits until that much time has passed since the clock was made.
    pub async fn until_monotonic(&self, time: Duration) {
        self.pass(|| time.saturating_sub(self.monotonic())).await;
    }

    /// Waits until nothing is left to wait for.
    async fn pass(&self, rest: impl Fn() -> Duration) {
        let mut ahead = self.ahead.clone();
        loop {
            if let Some(ahead) = &mut ahead {
                ahead.mark_unchanged();
            }
            // A timer may be early by a fraction of a millisecond.
            let rest = rest();
            if rest.is_zero() {
                return;
            }
            match &mut ahead {
                None => sleep(rest).await,
                Some(ahead) => tokio::select! {
                    () = sleep(rest) => {}
                    // Who cannot set it forward any more, is not waited for.
                    Ok(()) = ahead.changed() => {}
                },
            }
        }
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

    #[tokio::test(start_paused = true)]
    async fn a_clock_that_is_set_forward_wakes_who_waits() {
        let start: Timestamp = "2026-01-01T00:00:00Z".parse().unwrap();
        let (clock, forward) = Clock::of_runtime(start).adjustable();
        let began = Instant::now();
        let waiting = tokio::spawn({
            let clock = clock.clone();
            async move { clock.until("2026-01-01T05:00:00Z".parse().unwrap()).await }
        });
        tokio::task::yield_now().await;
        forward.by(Duration::from_hours(5));
        waiting.await.unwrap();
        assert!(began.elapsed() < Duration::from_hours(1));
        drop(forward);
        clock.until("2026-01-01T06:00:00Z".parse().unwrap()).await;
        assert_eq!(clock.now().to_string(), "2026-01-01T06:00:00Z");
    }

    #[tokio::test(start_paused = true)]
    async fn time_that_passes_does_not_follow_the_time_of_day() {
        let day: Arc<parking_lot::Mutex<Timestamp>> = Arc::default();
        let shown = Arc::clone(&day);
        let (clock, forward) = Clock::new(move || *shown.lock()).adjustable();
        let began = clock.monotonic();
        *day.lock() = "2026-01-01T00:00:00Z".parse().unwrap();
        assert_eq!(clock.monotonic(), began);
        sleep(Duration::from_secs(5)).await;
        *day.lock() = Timestamp::UNIX_EPOCH;
        assert_eq!(clock.monotonic(), began + Duration::from_secs(5));
        let waiting = clock.until_monotonic(began + Duration::from_mins(10));
        let moved = async { forward.by(Duration::from_mins(10)) };
        tokio::join!(waiting, moved);
        assert!(clock.monotonic() >= began + Duration::from_mins(10));
    }
}
