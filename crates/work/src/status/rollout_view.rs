//! What a rollout reads from the status of a work: one manifest that is on its way or degraded counts,
//! whatever the conditions of the whole work say.

use bellwether_api::meta::{Condition, FALSE, TRUE, UNKNOWN};
use bellwether_api::work::names::condition;
use bellwether_api::work::{ManifestCondition, ManifestWork};
use jiff::Timestamp;

use crate::lifecycle::find;

/// What is true of at least one manifest of a work, and since when.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Seen {
    /// `True`, `False` or `Unknown`.
    pub status: &'static str,
    /// Since when.
    pub since: Timestamp,
}

/// Returns whether any manifest of a work is Progressing, or Degraded, as of its present
/// generation; nothing if the agent has not reported it yet.
pub fn of_any(work: &ManifestWork, name: &str) -> Option<Seen> {
    let status = work.status.as_ref()?;
    let generation = work.metadata.generation;
    let is_current = |found: &&Condition| found.observed_generation == generation;
    let of_work = find(&status.conditions, name).filter(is_current);
    let manifests = status.resource_status.as_ref();
    let manifests = manifests.map_or(&[][..], |status| &status.manifests);
    // What does not say of which generation it is counts.
    let is_outdated = |found: &&Condition| {
        let observed = found.observed_generation;
        observed.is_some() && observed != generation
    };
    let of_manifests = manifests
        .iter()
        .filter_map(|manifest| find(&manifest.conditions, name))
        .filter(|found| !is_outdated(found));
    let known: Vec<&Condition> = of_work.into_iter().chain(of_manifests).collect();
    let times = |status: &'static str| {
        let found = known.iter().filter(move |found| found.status == status);
        found.map(|found| found.last_transition_time.0)
    };
    let lacking = manifests
        .iter()
        .filter_map(|manifest| lacking(manifest, name));
    if let Some(since) = times(TRUE).chain(lacking).min() {
        return Some(Seen {
            status: TRUE,
            since,
        });
    }
    if let Some(since) = times(UNKNOWN).min() {
        return Some(Seen {
            status: UNKNOWN,
            since,
        });
    }
    // The last one that came to its end ends the wait.
    let since = times(FALSE).max()?;
    Some(Seen {
        status: FALSE,
        since,
    })
}

/// Returns true if any manifest of a work is Progressing, or Degraded, whatever its generation.
pub fn is_any(work: &ManifestWork, name: &str) -> bool {
    true_since(work, name).is_some()
}

/// Since when a condition holds for a work or for one of its manifests, whatever its generation: one
/// that is degraded is enough, whatever the work as a whole says.
pub fn true_since(work: &ManifestWork, name: &str) -> Option<Timestamp> {
    let status = work.status.as_ref()?;
    let manifests = status.resource_status.as_ref();
    let manifests = manifests.into_iter().flat_map(|status| &status.manifests);
    let of_manifests = manifests.filter_map(|manifest| find(&manifest.conditions, name));
    let holds = |found: &&Condition| found.status == TRUE;
    let times = of_manifests
        .filter(holds)
        .map(|it| it.last_transition_time.0);
    // The work says it since the first manifest does.
    match find(&status.conditions, name).filter(holds) {
        Some(of_work) => Some(of_work.last_transition_time.0),
        None => times.min(),
    }
}

/// Since when a manifest lacks what no rule has to ask for: a manifest that is not applied is on its
/// way and degraded, one that is not available is on its way.
fn lacking(manifest: &ManifestCondition, name: &str) -> Option<Timestamp> {
    let asked: &[&str] = match name {
        condition::PROGRESSING => &[condition::APPLIED, condition::AVAILABLE],
        condition::DEGRADED => &[condition::APPLIED],
        _ => &[],
    };
    let found = asked
        .iter()
        .filter_map(|asked| find(&manifest.conditions, asked));
    let missing = found.filter(|found| found.status != TRUE);
    missing.map(|found| found.last_transition_time.0).min()
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    const EARLY: &str = "2026-01-01T00:00:00Z";
    const LATE: &str = "2026-01-01T00:01:00Z";

    fn said(name: &str, status: &str, since: &str) -> Value {
        json!({"type": name, "status": status, "reason": "R", "message": "",
            "observedGeneration": 2, "lastTransitionTime": since})
    }

    fn work(conditions: Value, manifests: &[Value]) -> ManifestWork {
        let manifests: Vec<Value> = manifests
            .iter()
            .map(|conditions| json!({"resourceMeta": {"ordinal": 0}, "conditions": conditions}))
            .collect();
        serde_json::from_value(json!({
            "metadata": {"name": "w", "generation": 2},
            "status": {"conditions": conditions, "resourceStatus": {"manifests": manifests}},
        }))
        .unwrap()
    }

    #[track_caller]
    fn check(work: &ManifestWork, name: &str, expected: Option<(&str, &str)>) {
        let found = of_any(work, name);
        let found = found.map(|seen| (seen.status, seen.since.to_string()));
        let expected = expected.map(|(status, since)| (status, since.to_owned()));
        assert_eq!(found, expected);
    }

    #[test]
    fn one_manifest_is_enough() {
        let progressing = |status: &str, since: &str| json!([said("Progressing", status, since)]);
        let of_work = || progressing("False", EARLY);
        let check_all = |manifests: &[Value], expected| {
            check(&work(of_work(), manifests), "Progressing", expected);
        };
        check_all(&[], Some(("False", EARLY)));
        check_all(
            &[progressing("False", EARLY), progressing("True", LATE)],
            Some(("True", LATE)),
        );
        check_all(&[progressing("Unknown", LATE)], Some(("Unknown", LATE)));
        // Each manifest had its own time: the soak time begins with the last.
        check_all(
            &[progressing("False", EARLY), progressing("False", LATE)],
            Some(("False", LATE)),
        );
        // What was said of another generation does not count.
        let mut old = progressing("True", LATE);
        old[0]["observedGeneration"] = json!(1);
        check_all(&[old], Some(("False", EARLY)));
        check(&work(json!([]), &[]), "Progressing", None);
    }

    #[test]
    fn what_is_not_there_is_on_its_way_whatever_rules_say() {
        let conditions = json!([
            said("Progressing", "False", EARLY),
            said("Degraded", "False", EARLY)
        ]);
        let missing = json!([
            said("Applied", "True", EARLY),
            said("Available", "False", LATE)
        ]);
        let failed = json!([said("Applied", "False", LATE)]);
        let with = |manifest: Value| work(conditions.clone(), &[manifest]);
        check(&with(missing.clone()), "Progressing", Some(("True", LATE)));
        check(&with(missing), "Degraded", Some(("False", EARLY)));
        check(&with(failed.clone()), "Progressing", Some(("True", LATE)));
        check(&with(failed), "Degraded", Some(("True", LATE)));
    }
}
