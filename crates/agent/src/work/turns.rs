//! How often the status of a work is written: at most ten times a second. What is true then is
//! written; what was true in between is not.

use std::collections::{HashMap, VecDeque};

use jiff::{SignedDuration, Timestamp};

use super::WorkKey;

/// How many writes there are in a period.
const WRITES: usize = 10;
const PERIOD: SignedDuration = SignedDuration::from_secs(1);

/// After so many works it is seen to it that those are forgotten that rest.
const MAX_RESTING: usize = 256;

/// The latest writes of works.
#[derive(Debug, Default)]
pub(super) struct Turns(HashMap<WorkKey, VecDeque<Timestamp>>);

impl Turns {
    /// Takes a turn; if there were too many, says when there is the next.
    pub(super) fn take(&mut self, work: &WorkKey, now: Timestamp) -> Result<(), Timestamp> {
        let is_recent = |time: &Timestamp| now.duration_since(*time) < PERIOD;
        if self.0.len() > MAX_RESTING {
            self.0
                .retain(|_, times| times.back().is_some_and(is_recent));
        }
        let times = self.0.entry(work.clone()).or_default();
        while times.front().is_some_and(|time| !is_recent(time)) {
            times.pop_front();
        }
        match times.front() {
            Some(first) if times.len() >= WRITES => {
                Err(first.checked_add(PERIOD).unwrap_or(Timestamp::MAX))
            }
            _ => {
                times.push_back(now);
                Ok(())
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::WorkApi;
    use super::*;

    #[test]
    fn ten_writes_a_second_are_enough() {
        let work = |name: &str| WorkKey {
            cluster: "c".into(),
            work_api: WorkApi::ManifestWork,
            record: name.into(),
        };
        let mut turns = Turns::default();
        let start: Timestamp = "2026-01-01T00:00:00Z".parse().unwrap();
        let at = |ms: i64| start + SignedDuration::from_millis(ms);
        for index in 0..10 {
            assert_eq!(turns.take(&work("a"), at(index)), Ok(()));
        }
        assert_eq!(turns.take(&work("a"), at(500)), Err(at(1000)));
        assert_eq!(turns.take(&work("b"), at(500)), Ok(()), "each for itself");
        assert_eq!(turns.take(&work("a"), at(1000)), Ok(()));
        assert_eq!(turns.take(&work("a"), at(1000)), Err(at(1001)));
        for index in 0..1000 {
            let name = format!("w{index}");
            turns.take(&work(&name), at(10_000 + 10 * index)).unwrap();
        }
        assert!(turns.0.len() <= MAX_RESTING + 1, "{}", turns.0.len());
    }
}
