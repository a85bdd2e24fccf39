//! The time of day, handed in so that tests can move it.

use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use tokio::sync::watch;
use tokio::time::{Duration, Instant, sleep};

/// Where the time comes from.
#[derive(Clone)]
pub struct Clock {
    now: Arc<dyn Fn() -> Timestamp + Send + Sync>,
    /// By how much it was set forward, if it can be.
    ahead: Option<watch::Receiver<SignedDuration>>,
}

/// Sets a clock forward.
#[derive(Debug)]
pub struct Forward(watch::Sender<SignedDuration>);

impl Forward {
    /// Sets the clock forward by so much; whoever waits for a time in between is woken.
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

    /// Waits until it shows that time, as far as the runtime's timers go along with it.
    pub async fn until(&self, time: Timestamp) {
        let mut ahead = self.ahead.clone();
        loop {
            if let Some(ahead) = &mut ahead {
                ahead.mark_unchanged();
            }
            // A timer may be early by a fraction of a millisecond.
            let Some(rest) = self.time_until(time) else {
                return;
            };
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
}
