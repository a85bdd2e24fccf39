//! How long to wait before a step is looked at again, if nothing wakes it before.
//!
//! The n-th wait is `int(0.05 · 2^(n-1))` seconds, at least one second and at most what the settings say:
//! 1, 1, 1, 1, 1, 1, 3, 6, 12, 25, 51 and so on.

use jiff::{SignedDuration, Timestamp};

/// Waits are not doubled further than this; the maximum is reached long before.
const LAST_DOUBLING: u32 = 15;

/// The wait after the n-th execution, counted from one.
pub fn delay(execution: u32, maximum: SignedDuration) -> SignedDuration {
    let doublings = execution.saturating_sub(1).min(LAST_DOUBLING);
    let seconds = (1_i64 << doublings) / 20;
    let wait = SignedDuration::from_secs(seconds.max(1));
    wait.min(maximum.max(SignedDuration::from_secs(1)))
}

/// The next time of the schedule that began with a first execution at `since`.
///
/// It depends on the time alone, so that a hub that was restarted goes on where it was.
pub fn next_after(since: Timestamp, now: Timestamp, maximum: SignedDuration) -> Timestamp {
    let mut time = since;
    for execution in 1..=LAST_DOUBLING + 1 {
        time = add(time, delay(execution, maximum));
        if time > now {
            return time;
        }
    }
    let last = delay(LAST_DOUBLING + 1, maximum);
    let passed = now.duration_since(time).as_secs() / last.as_secs().max(1);
    let whole = last.as_secs().max(1);
    add(
        time,
        SignedDuration::from_secs(whole.saturating_mul(passed.saturating_add(1))),
    )
}

/// A later time; the last one there is if it would be beyond it.
pub fn add(time: Timestamp, span: SignedDuration) -> Timestamp {
    time.checked_add(span).unwrap_or(Timestamp::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_grow_as_the_table_says() {
        let waits = |maximum: i64| -> Vec<i64> {
            let maximum = SignedDuration::from_secs(maximum);
            (1..=14)
                .map(|execution| delay(execution, maximum).as_secs())
                .collect()
        };
        assert_eq!(waits(60), [1, 1, 1, 1, 1, 1, 3, 6, 12, 25, 51, 60, 60, 60]);
        assert_eq!(
            waits(300),
            [1, 1, 1, 1, 1, 1, 3, 6, 12, 25, 51, 102, 204, 300]
        );
    }

    #[test]
    fn the_schedule_goes_on_after_a_pause() {
        let since: Timestamp = "2026-01-01T00:00:00Z".parse().unwrap();
        let maximum = SignedDuration::from_secs(60);
        let next = |seconds: i64| {
            let now = add(since, SignedDuration::from_secs(seconds));
            next_after(since, now, maximum)
                .duration_since(since)
                .as_secs()
        };
        assert_eq!(
            [next(0), next(1), next(5), next(6), next(8)],
            [1, 2, 6, 9, 9]
        );
        assert_eq!(next(27), 52);
        assert_eq!(next(103), 163);
        let late = next(100_000);
        assert!((100_001..=100_060).contains(&late), "{late}");
    }
}
