//! Which Events are recorded about a work, by what changed in its conditions.

use bellwether_api::meta::Condition;
use bellwether_api::work::names::{condition, event};

use crate::lifecycle::{find, is_true};
use crate::status::{Failure, Report};

/// An Event about a work.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WorkEvent {
    /// Whether something went wrong.
    pub is_warning: bool,
    /// The reason.
    pub reason: &'static str,
    /// The message.
    pub message: String,
}

/// Returns the Events about what is new in a status: the work was applied or could not be, or is complete.
pub fn of_change(
    before: &[Condition],
    after: &[Condition],
    reports: &[Report],
    generation: i64,
) -> Vec<WorkEvent> {
    let mut events = Vec::new();
    if is_new(before, after, condition::APPLIED) {
        events.push(if is_true(after, condition::APPLIED) {
            applied(reports.len(), generation)
        } else {
            failed(after, reports)
        });
    }
    if is_new(before, after, condition::COMPLETE) && is_true(after, condition::COMPLETE) {
        events.push(WorkEvent {
            is_warning: false,
            reason: event::COMPLETE,
            message: "the work is complete; it is no longer applied".to_owned(),
        });
    }
    events
}

/// Returns true if the work became applied just now, or in another generation.
pub fn is_newly_applied(before: &[Condition], after: &[Condition]) -> bool {
    is_new(before, after, condition::APPLIED) && is_true(after, condition::APPLIED)
}

/// Returns true if a condition has another status than before, or is about another generation.
fn is_new(before: &[Condition], after: &[Condition], name: &str) -> bool {
    match (find(before, name), find(after, name)) {
        (Some(old), Some(new)) => {
            old.status != new.status || old.observed_generation != new.observed_generation
        }
        (None, Some(_)) => true,
        _ => false,
    }
}

fn applied(count: usize, generation: i64) -> WorkEvent {
    let objects = if count == 1 { "object" } else { "objects" };
    WorkEvent {
        is_warning: false,
        reason: event::APPLIED,
        message: format!("applied {count} {objects} of generation {generation}"),
    }
}

/// What failed, manifest by manifest; what the condition says if no manifest did.
fn failed(after: &[Condition], reports: &[Report]) -> WorkEvent {
    let failures = reports.iter().filter_map(|report| match &report.applied {
        Err(Failure::Apply(error) | Failure::IgnoreFields(error)) => Some(format!(
            "{} {}: {error}",
            report.meta.kind, report.meta.name
        )),
        Ok(()) => None,
    });
    let mut message = failures.collect::<Vec<_>>().join("; ");
    if message.is_empty() {
        let condition = find(after, condition::APPLIED);
        message = condition.map(|it| it.message.clone()).unwrap_or_default();
    }
    WorkEvent {
        is_warning: true,
        reason: event::APPLY_FAILED,
        message,
    }
}

#[cfg(test)]
mod tests {
    use bellwether_api::work::ManifestResourceMeta;
    use serde_json::json;

    use super::*;
    use crate::status::Feedback;

    fn condition(name: &str, status: &str, generation: i64) -> Condition {
        serde_json::from_value(json!({"type": name, "status": status, "reason": "R",
            "message": "as it is", "observedGeneration": generation,
            "lastTransitionTime": "2026-01-01T00:00:00Z"}))
        .unwrap()
    }

    fn report(name: &str, applied: Result<(), Failure>) -> Report {
        Report {
            meta: ManifestResourceMeta {
                kind: "ConfigMap".into(),
                name: name.into(),
                ..ManifestResourceMeta::default()
            },
            applied,
            object_generation: None,
            available: None,
            conclusions: None,
            ruled: Vec::new(),
            unseen: Vec::new(),
            feedback: Feedback::Unchanged,
            is_remembered_complete: false,
        }
    }

    #[track_caller]
    fn check(before: &[Condition], after: &[Condition], reports: &[Report], expected: &[&str]) {
        let found: Vec<String> = of_change(before, after, reports, 2)
            .iter()
            .map(|event| {
                let kind = if event.is_warning {
                    "Warning"
                } else {
                    "Normal"
                };
                format!("{kind} {}: {}", event.reason, event.message)
            })
            .collect();
        assert_eq!(found, expected);
    }

    #[test]
    fn only_what_is_new_is_recorded() {
        let fine = [report("a", Ok(()))];
        let both = [report("a", Ok(())), report("b", Ok(()))];
        let applied = |status: &str, generation: i64| [condition("Applied", status, generation)];
        let one = "Normal Applied: applied 1 object of generation 2";
        let two = "Normal Applied: applied 2 objects of generation 2";
        check(&[], &applied("True", 2), &fine, &[one]);
        check(&applied("True", 2), &applied("True", 2), &fine, &[]);
        check(&applied("True", 1), &applied("True", 2), &both, &[two]);
        check(&applied("False", 2), &applied("True", 2), &fine, &[one]);
    }

    #[test]
    fn a_failure_names_the_manifests_that_failed() {
        let reports = [
            report("a", Err(Failure::Apply("no".into()))),
            report("b", Ok(())),
            report("c", Err(Failure::IgnoreFields("bad path".into()))),
        ];
        let failed = [condition("Applied", "False", 2)];
        let expected = "Warning ApplyFailed: ConfigMap a: no; ConfigMap c: bad path";
        check(&[], &failed, &reports, &[expected]);
        check(&[], &failed, &[], &["Warning ApplyFailed: as it is"]);
    }

    #[test]
    fn completion_is_recorded_once() {
        let complete = [condition("Complete", "True", 2)];
        let text = "Normal Complete: the work is complete; it is no longer applied";
        check(&[], &complete, &[], &[text]);
        check(&complete, &complete, &[], &[]);
        check(&[], &[condition("Complete", "False", 2)], &[], &[]);
    }
}
