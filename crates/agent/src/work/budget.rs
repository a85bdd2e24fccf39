//! Programs of users that exceeded their budget: their verdict stands for a while, so that they do not
//! take the time of others again and again.

use bellwether_work::feedback::Answers;
use bellwether_work::rules::Conclusion;
use bellwether_work::status::Failure;
use jiff::{SignedDuration, Timestamp};

/// How long a verdict stands, unless the work changes.
const STANDS_FOR: SignedDuration = SignedDuration::from_mins(1);

/// What is reported about one object instead of running programs again that exceeded their budget.
#[derive(Debug, Default)]
pub(super) struct Exhausted {
    /// What rules conclude.
    pub(super) rules: Option<Verdict<Vec<Conclusion>>>,
    /// Why fields to be ignored cannot be found out.
    pub(super) fields: Option<Verdict<Failure>>,
    /// Values that come back.
    pub(super) values: Option<Verdict<Answers>>,
}

/// A verdict about one generation of a work.
#[derive(Debug, Clone)]
pub(super) struct Verdict<T> {
    generation: i64,
    until: Timestamp,
    value: T,
}

impl<T: Clone> Verdict<T> {
    /// A verdict that stands from now on.
    pub(super) fn new(value: T, generation: i64, now: Timestamp) -> Self {
        Self {
            generation,
            until: now.checked_add(STANDS_FOR).unwrap_or(Timestamp::MAX),
            value,
        }
    }

    /// The verdict and until when it stands, if it still does.
    pub(super) fn standing(&self, generation: i64, now: Timestamp) -> Option<(T, Timestamp)> {
        let stands = self.generation == generation && now < self.until;
        stands.then(|| (self.value.clone(), self.until))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_verdict_stands_for_a_minute_and_one_generation() {
        let now: Timestamp = "2026-01-01T00:00:00Z".parse().unwrap();
        let verdict = Verdict::new("no", 2, now);
        let end = now + STANDS_FOR;
        assert_eq!(verdict.standing(2, now), Some(("no", end)));
        assert_eq!(verdict.standing(3, now), None);
        assert_eq!(verdict.standing(2, end), None);
    }
}
