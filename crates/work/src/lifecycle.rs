//! When a work is done, when it goes, and when its leftovers are evicted.

use bellwether_api::meta::{Condition, TRUE};
use bellwether_api::work::ManifestWork;
use bellwether_api::work::names::{condition, label};
use jiff::{SignedDuration, Timestamp};

/// The condition of that type.
pub fn find<'a>(conditions: &'a [Condition], name: &str) -> Option<&'a Condition> {
    conditions.iter().find(|condition| condition.type_ == name)
}

/// Whether the condition of that type is True.
pub fn is_true(conditions: &[Condition], name: &str) -> bool {
    find(conditions, name).is_some_and(|condition| condition.status == TRUE)
}

/// What is to happen to a work that is done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AfterCompletion {
    /// It is not complete.
    NotComplete,
    /// It is complete and stays.
    Keep,
    /// It is complete and is deleted at this time.
    DeleteAt(Timestamp),
}

/// What is to happen to a work: nothing is applied any more once it is Complete, and a time to live
/// removes it, unless a replica set wants it to be there.
pub fn afterlife(work: &ManifestWork) -> AfterCompletion {
    let conditions = work
        .status
        .as_ref()
        .map_or(&[][..], |status| &status.conditions);
    let Some(complete) = find(conditions, condition::COMPLETE).filter(|found| found.status == TRUE)
    else {
        return AfterCompletion::NotComplete;
    };
    let labels = work.metadata.labels.as_ref();
    let is_wanted = labels.is_some_and(|labels| labels.contains_key(label::REPLICA_SET));
    let option = work.spec.delete_option.as_ref();
    let Some(seconds) = option.and_then(|option| option.ttl_seconds_after_finished) else {
        return AfterCompletion::Keep;
    };
    if is_wanted {
        return AfterCompletion::Keep;
    }
    let since = complete.last_transition_time.0;
    // The time of a condition is rounded up. Nothing has to be waited for if there is no time to
    // live.
    if seconds <= 0 {
        return AfterCompletion::DeleteAt(Timestamp::MIN);
    }
    let end = since.checked_add(SignedDuration::from_secs(seconds));
    AfterCompletion::DeleteAt(end.unwrap_or(Timestamp::MAX))
}

/// Returns true if a work that is complete has been reconciled since its spec changed last.
pub fn is_settled(work: &ManifestWork) -> bool {
    let status = work.status.as_ref();
    let conditions = status.map_or(&[][..], |status| &status.conditions);
    let complete = find(conditions, condition::COMPLETE);
    complete.is_some_and(|found| found.observed_generation == work.metadata.generation)
}

/// After so many hours nothing is ever evicted: a hundred years.
const NEVER_HOURS: i64 = 100 * 365 * 24;

/// What is to happen to a record whose work is missing on the hub, or whose hub is another one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Eviction {
    /// Nothing: it has a work, and no mark.
    None,
    /// The mark is taken away.
    Clear,
    /// It is marked now.
    Begin,
    /// It is reconciled again at this time.
    Wait(Timestamp),
    /// It is removed.
    Remove,
}

/// Decides about the eviction of a record.
pub fn eviction(
    has_work: bool,
    started: Option<Timestamp>,
    grace: SignedDuration,
    now: Timestamp,
) -> Eviction {
    let never = grace.as_hours() >= NEVER_HOURS;
    match started {
        None if has_work || never => Eviction::None,
        Some(_) if has_work || never => Eviction::Clear,
        None => Eviction::Begin,
        Some(started) => match started.checked_add(grace) {
            Ok(end) if now >= end => Eviction::Remove,
            Ok(end) => Eviction::Wait(end),
            Err(_) => Eviction::None,
        },
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn time(text: &str) -> Timestamp {
        text.parse().unwrap()
    }

    #[test]
    fn a_work_goes_when_its_time_has_come() {
        let check = |ttl: Value, complete: &str, labels: Value, expected: AfterCompletion| {
            let work: ManifestWork = serde_json::from_value(json!({
                "metadata": {"name": "w", "labels": labels},
                "spec": {"deleteOption": {"ttlSecondsAfterFinished": ttl}},
                "status": {"conditions": [{"type": "Complete", "status": complete, "reason": "R",
                    "message": "", "lastTransitionTime": "2026-01-01T00:00:00Z"}]},
            }))
            .unwrap();
            assert_eq!(afterlife(&work), expected, "{ttl} {complete}");
        };
        let at = |text: &str| AfterCompletion::DeleteAt(time(text));
        check(json!(30), "True", json!({}), at("2026-01-01T00:00:30Z"));
        let at_once = AfterCompletion::DeleteAt(Timestamp::MIN);
        check(json!(0), "True", json!({}), at_once);
        check(json!(-5), "True", json!({}), at_once);
        check(json!(null), "True", json!({}), AfterCompletion::Keep);
        check(json!(30), "False", json!({}), AfterCompletion::NotComplete);
        check(
            json!(30),
            "True",
            json!({(label::REPLICA_SET): "a.b"}),
            AfterCompletion::Keep,
        );
    }

    #[test]
    fn records_without_a_work_are_evicted_after_a_while() {
        let hour = SignedDuration::from_hours(1);
        let now = time("2026-01-01T01:00:00Z");
        let check = |has_work, started: Option<&str>, grace, expected| {
            assert_eq!(
                eviction(has_work, started.map(time), grace, now),
                expected,
                "{has_work} {started:?}"
            );
        };
        check(true, None, hour, Eviction::None);
        check(true, Some("2026-01-01T00:30:00Z"), hour, Eviction::Clear);
        check(false, None, hour, Eviction::Begin);
        let end = time("2026-01-01T01:30:00Z");
        check(
            false,
            Some("2026-01-01T00:30:00Z"),
            hour,
            Eviction::Wait(end),
        );
        check(false, Some("2026-01-01T00:00:00Z"), hour, Eviction::Remove);
        let century = SignedDuration::from_hours(NEVER_HOURS);
        check(
            false,
            Some("2026-01-01T00:00:00Z"),
            century,
            Eviction::Clear,
        );
        check(false, None, century, Eviction::None);
    }
}
