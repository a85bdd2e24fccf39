//! Rests between two plans of a large replica set.
//!
//! Thousands of works report within seconds. A plan looks at all of them, so that what comes in during a rest
//! is reconciled together. A change of the replica set or of a placement is not kept waiting.

use std::collections::HashMap;
use std::sync::Arc;

use bellwether_runtime::ObjectKey;
use jiff::{SignedDuration, Timestamp};
use parking_lot::Mutex;

/// Replica sets of fewer works do not rest.
const SMALL: usize = 100;
/// How long a replica set rests after a plan, for each of its works, in microseconds: about ten times as
/// long as a plan takes.
const REST_PER_WORK: i64 = 50;
/// How long it rests at most.
const LONGEST_REST: SignedDuration = SignedDuration::from_secs(1);

/// How long a replica set rests after reports were counted: they share a write of its status.
pub(super) const AFTER_COUNT: SignedDuration = SignedDuration::from_millis(20);

/// How long a replica set of so many works rests after a plan.
pub(crate) fn rest_after(works: usize) -> Option<SignedDuration> {
    if works < SMALL {
        return None;
    }
    let works = i64::try_from(works).unwrap_or(i64::MAX);
    let rest = SignedDuration::from_micros(works.saturating_mul(REST_PER_WORK));
    Some(rest.min(LONGEST_REST))
}

/// Until when replica sets rest.
pub(crate) type Rests = Arc<Mutex<HashMap<ObjectKey, Timestamp>>>;

/// Until when a replica set rests, if it does.
pub(crate) fn rests_until(rests: &Rests, key: &ObjectKey, now: Timestamp) -> Option<Timestamp> {
    let until = *rests.lock().get(key)?;
    // A time further away is that of a clock that was set back.
    let rest = until.duration_since(now);
    (rest.is_positive() && rest <= LONGEST_REST).then_some(until)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn large_replica_sets_rest_and_small_ones_do_not() {
        let check = |works: usize, expected: Option<i64>| {
            let expected = expected.map(SignedDuration::from_millis);
            assert_eq!(rest_after(works), expected, "{works}");
        };
        check(0, None);
        check(99, None);
        check(100, Some(5));
        check(10_000, Some(500));
        check(1_000_000, Some(1000));
    }

    #[test]
    fn a_rest_ends_also_if_the_time_of_day_is_set_back() {
        let rests = Rests::default();
        let key = ObjectKey::new("default", "web");
        let now: Timestamp = "2026-01-01T00:00:00Z".parse().unwrap();
        let until = now + SignedDuration::from_millis(500);
        assert_eq!(rests_until(&rests, &key, now), None);
        rests.lock().insert(key.clone(), until);
        assert_eq!(rests_until(&rests, &key, now), Some(until));
        assert_eq!(rests_until(&rests, &key, until), None);
        let earlier = now - SignedDuration::from_hours(1);
        assert_eq!(rests_until(&rests, &key, earlier), None);
    }
}
