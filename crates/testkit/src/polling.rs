//! Waiting for something that nobody announces: ask, pause, ask again.

use std::fmt::Display;
use std::time::Duration;

/// How often something is asked for, and how long to pause in between. Pauses are timers of the runtime: where its
/// time is paused, they take no time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Polling {
    /// How often to ask at most.
    pub attempts: usize,
    /// The pause between two attempts.
    pub interval: Duration,
}

impl Polling {
    /// For clusters in this process, on a runtime whose time is paused.
    pub const LEAPING: Self = Self {
        attempts: 800,
        interval: Duration::from_millis(5),
    };
    /// For servers of their own: half a minute.
    pub const REAL: Self = Self {
        attempts: 1200,
        interval: Duration::from_millis(25),
    };

    /// Asks until there is an answer, and returns it.
    ///
    /// # Panics
    /// If there is none after the last attempt; the message has what was there instead.
    pub async fn until<T, E: Display>(
        self,
        what: impl Display,
        mut ask: impl AsyncFnMut() -> Result<T, E>,
    ) -> T {
        let mut last = None;
        for _ in 0..self.attempts {
            match ask().await {
                Ok(found) => return found,
                Err(instead) => last = Some(instead),
            }
            tokio::time::sleep(self.interval).await;
        }
        let last = last.map(|instead| instead.to_string());
        panic!(
            "timed out waiting until {what}; last state: {}",
            last.unwrap_or_default()
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn what_comes_late_is_found() {
        let (start, mut left) = (tokio::time::Instant::now(), 3);
        let found = Polling::LEAPING
            .until("it is there", async || {
                left -= 1;
                (left == 0).then_some("it").ok_or(left)
            })
            .await;
        assert_eq!(found, "it");
        assert_eq!(start.elapsed(), Duration::from_millis(10));
    }

    #[tokio::test(start_paused = true)]
    async fn what_never_comes_fails_with_the_last_state() {
        let waiting = tokio::spawn(Polling::REAL.until("it is there", async || Err::<(), _>("no")));
        let panic = waiting.await.unwrap_err().into_panic();
        let message = panic.downcast_ref::<String>().unwrap();
        assert_eq!(
            message,
            "timed out waiting until it is there; last state: no"
        );
    }
}
