//! Objects that go with their policy.

use bellwether_api::policy::{ConfigurationPolicy, PruneObjectBehavior, RelatedObject};
use bellwether_template::World;
use jiff::Timestamp;
use serde_json::Value;

use super::conclude::{Report, cleanup_failed};
use super::facts::{Facts, Need, Verb, Write, WriteErrorKind, WriteOutcome};
use crate::template::{Answer, Question};

/// What came of pruning.
#[derive(Debug, Clone, PartialEq)]
pub enum Pruning {
    /// Something has to be known or deleted first.
    Needs(Vec<Need>),
    /// All objects that had to go are gone.
    Done,
    /// These are not: what is said about them.
    Failed(String),
}

impl Pruning {
    /// What is reported of a policy that waits for its objects to be gone.
    pub fn report(
        message: &str,
        policy: &ConfigurationPolicy,
        now: Timestamp,
        world: &World<'_>,
    ) -> Report {
        cleanup_failed(policy, message.to_owned(), now, world)
    }
}

/// Deletes objects that a policy does not speak of any more, as far as it says so. A policy that
/// informs deletes nothing.
pub fn prune(policy: &ConfigurationPolicy, objects: &[RelatedObject], facts: &Facts) -> Pruning {
    if !policy.spec.remediation_action.is_enforce() {
        return Pruning::Done;
    }
    let only_created = match &policy.spec.prune_object_behavior {
        Some(PruneObjectBehavior::DeleteAll) => false,
        Some(PruneObjectBehavior::DeleteIfCreated) => true,
        _ => return Pruning::Done,
    };
    let mut needs = Vec::new();
    let mut failures = Vec::new();
    for object in objects {
        match remove(object, only_created, facts) {
            Removal::Needs(need) => needs.push(need),
            Removal::Done => {}
            Removal::Failed => failures.push(shown(object)),
        }
    }
    if !needs.is_empty() {
        Pruning::Needs(needs)
    } else if failures.is_empty() {
        Pruning::Done
    } else {
        Pruning::Failed(format!("Failed to delete objects: {}", failures.join(", ")))
    }
}

enum Removal {
    Needs(Need),
    Done,
    Failed,
}

fn remove(object: &RelatedObject, only_created: bool, facts: &Facts) -> Removal {
    let text = |text: &Option<String>| text.clone().unwrap_or_default();
    let reference = &object.object;
    let (api_version, kind) = (text(&reference.api_version), text(&reference.kind));
    let name = text(&reference.metadata.name);
    let namespace = text(&reference.metadata.namespace);
    // What was looked for without a name was never created by the policy.
    if name.is_empty() || name == "-" {
        return Removal::Done;
    }
    let question = Question::Object {
        api_version: api_version.clone(),
        kind: kind.clone(),
        namespace: namespace.clone(),
        name: name.clone(),
    };
    let live = match facts.get(&question) {
        None => return Removal::Needs(Need::Read(question)),
        Some(Answer::Object(live)) => live,
        Some(Answer::Failed(_)) => return Removal::Failed,
        Some(_) => return Removal::Done,
    };
    let uid = live["metadata"]["uid"].as_str().unwrap_or_default();
    let is_own = object.properties.as_ref().is_some_and(|properties| {
        properties.created_by_policy == Some(true) && properties.uid == uid
    });
    if only_created && !is_own {
        return Removal::Done;
    }
    let write = Write {
        verb: Verb::Delete,
        api_version,
        kind,
        namespace,
        name,
        object: live.clone(),
    };
    let is_going = live["metadata"]["deletionTimestamp"].is_string();
    match facts.written(&write) {
        None if !is_going => Removal::Needs(Need::Write(write)),
        Some(WriteOutcome::Done(Value::Null)) => Removal::Done,
        Some(WriteOutcome::Failed(error)) if error.kind == WriteErrorKind::NotFound => {
            Removal::Done
        }
        _ => Removal::Failed,
    }
}

/// An object as messages name it: group, version and kind as Go prints them.
fn shown(object: &RelatedObject) -> String {
    let text = |text: &Option<String>| text.clone().unwrap_or_default();
    let reference = &object.object;
    let api_version = text(&reference.api_version);
    let api_version = if api_version.contains('/') {
        api_version
    } else {
        format!("/{api_version}")
    };
    format!(
        "{api_version}, Kind={} \"{}\" in namespace {}",
        text(&reference.kind),
        text(&reference.metadata.name),
        text(&reference.metadata.namespace)
    )
}
