//! Why a work is not where it should be, as its member reports.

use std::fmt;

use bellwether_api::meta::{Condition, FALSE, TRUE};
use bellwether_api::work::names::condition;
use bellwether_api::work::{ManifestCondition, ManifestWork};

use crate::lifecycle::find;

/// What a member reports of one object that is not as it should be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cause {
    /// The kind of the object.
    pub kind: String,
    /// Its namespace; empty if it has none.
    pub namespace: String,
    /// Its name.
    pub name: String,
    /// How far it is, where that is known besides.
    pub progress: Option<String>,
    /// What is wrong with it.
    pub message: String,
}

impl Cause {
    /// The cause in words that say better what is wrong.
    pub fn with(&self, message: &str) -> String {
        let cause = Self {
            message: message.to_owned(),
            ..self.clone()
        };
        cause.to_string()
    }
}

impl fmt::Display for Cause {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            kind,
            name,
            progress,
            message,
            ..
        } = self;
        let kind = if kind.is_empty() { "manifest" } else { kind };
        write!(formatter, "{kind} {name}: ")?;
        if let Some(progress) = progress {
            write!(formatter, "{progress}, ")?;
        }
        formatter.write_str(message)
    }
}

/// What conditions say is wrong, if something is.
type Problem = fn(&[Condition]) -> Option<String>;

/// The objects of a work that are degraded, else those that could not be applied, else those that
/// are in progress. Empty if the member has not reported, or everything is as it should be.
pub fn of_work(work: &ManifestWork) -> Vec<Cause> {
    let manifests = work
        .status
        .as_ref()
        .and_then(|status| status.resource_status.as_ref())
        .map_or(&[][..], |status| &status.manifests);
    let steps: [Problem; 3] = [degraded, not_applied, in_progress];
    for (index, step) in steps.into_iter().enumerate() {
        let cause = |manifest: &ManifestCondition| {
            let conditions = &manifest.conditions;
            let progress = in_progress(conditions).filter(|_| index == 0);
            Some(cause(manifest, progress, step(conditions)?))
        };
        let found: Vec<Cause> = manifests.iter().filter_map(cause).collect();
        if !found.is_empty() {
            return found;
        }
    }
    Vec::new()
}

fn cause(manifest: &ManifestCondition, progress: Option<String>, message: String) -> Cause {
    let meta = &manifest.resource_meta;
    Cause {
        kind: meta.kind.clone(),
        namespace: meta.namespace.clone(),
        name: if meta.name.is_empty() {
            format!("number {}", meta.ordinal)
        } else {
            meta.name.clone()
        },
        progress,
        message,
    }
}

fn degraded(conditions: &[Condition]) -> Option<String> {
    holds(conditions, condition::DEGRADED, TRUE).map(text_of)
}

fn not_applied(conditions: &[Condition]) -> Option<String> {
    holds(conditions, condition::APPLIED, FALSE).map(text_of)
}

fn in_progress(conditions: &[Condition]) -> Option<String> {
    holds(conditions, condition::PROGRESSING, TRUE).map(text_of)
}

fn holds<'a>(conditions: &'a [Condition], name: &str, status: &str) -> Option<&'a Condition> {
    find(conditions, name).filter(|found| found.status == status)
}

/// The message in one line, without a full stop; the reason where there is no message.
fn text_of(condition: &Condition) -> String {
    let message = condition.message.replace('\n', " ");
    let message = message.trim().trim_end_matches('.');
    if message.is_empty() {
        format!("{} ({})", condition.type_, condition.reason)
    } else {
        message.to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn check(manifests: Value, expected: &[&str]) {
        let work: ManifestWork = serde_json::from_value(json!({
            "metadata": {"name": "w"}, "spec": {},
            "status": {"resourceStatus": {"manifests": manifests}},
        }))
        .unwrap();
        let found: Vec<String> = of_work(&work).iter().map(ToString::to_string).collect();
        assert_eq!(found, expected);
    }

    fn said(name: &str, status: &str, message: &str) -> Value {
        json!({"type": name, "status": status, "reason": "R", "message": message,
            "lastTransitionTime": "2026-01-01T00:00:00Z"})
    }

    fn object(name: &str, conditions: &[Value]) -> Value {
        json!({"resourceMeta": {"ordinal": 2, "kind": "Deployment", "name": name},
            "conditions": conditions})
    }

    #[test]
    fn what_is_degraded_comes_before_what_is_in_progress() {
        let moving = object(
            "a",
            &[said("Progressing", "True", "1 of 3 replicas are ready")],
        );
        let stuck = object(
            "b",
            &[
                said("Progressing", "True", "0 of 3 replicas are ready"),
                said("Degraded", "True", "it timed\nout."),
            ],
        );
        let refused = object("", &[said("Applied", "False", "")]);
        check(
            json!([moving, stuck, refused]),
            &["Deployment b: 0 of 3 replicas are ready, it timed out"],
        );
        check(
            json!([moving, refused]),
            &["Deployment number 2: Applied (R)"],
        );
        check(
            json!([moving]),
            &["Deployment a: 1 of 3 replicas are ready"],
        );
        check(
            json!([object("a", &[said("Progressing", "False", "")])]),
            &[],
        );
    }
}
