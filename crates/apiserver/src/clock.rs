//! The time of day, handed in so that tests can move it.

use std::sync::Arc;

use jiff::Timestamp;

/// Where the server gets the time from.
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

    /// What it shows.
    pub fn now(&self) -> Timestamp {
        (self.0)()
    }
}

impl std::fmt::Debug for Clock {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Clock({})", self.now())
    }
}
