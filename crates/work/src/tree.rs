//! A work as a tree, for people: what it applies, how it stands, what came back.

use std::fmt::Write as _;

use bellwether_api::meta::{Condition, TRUE};
use bellwether_api::multicluster::{self, SyncValue, Work};
use bellwether_api::work::names::condition;
use bellwether_api::work::{
    FeedbackValue, FieldValue, ManifestCondition, ManifestWork, ManifestWorkReplicaSet,
    StatusFeedback, ValueType,
};

use crate::work_api;

/// The tree of a work of the work API.
pub fn of_small_work(work: &Work) -> String {
    let mut large = work_api::as_manifest_work(work);
    let synced = work.status.iter().flat_map(|it| &it.manifest_conditions);
    let manifests = large
        .status
        .iter_mut()
        .filter_map(|it| it.resource_status.as_mut())
        .flat_map(|it| &mut it.manifests);
    for (manifest, synced) in manifests.zip(synced) {
        let values = synced.status_sync.iter().flat_map(|it| &it.values);
        manifest.status_feedback = Some(StatusFeedback {
            values: values.map(as_feedback).collect(),
            ..StatusFeedback::default()
        });
    }
    of("Work", &large)
}

/// A value of the work API as one of a ManifestWork.
fn as_feedback(value: &SyncValue) -> FeedbackValue {
    let it = &value.field_value;
    let json = it.byte_array.as_ref();
    let json = json.map(|bytes| String::from_utf8_lossy(&bytes.0).into_owned());
    let kind = match it.kind {
        multicluster::ValueType::Integer => ValueType::Integer,
        multicluster::ValueType::String => ValueType::String,
        multicluster::ValueType::Boolean => ValueType::Boolean,
        _ => ValueType::JsonRaw,
    };
    FeedbackValue {
        name: value.name.clone(),
        field_value: FieldValue {
            kind,
            integer: it.integer,
            string: it.string.clone(),
            boolean: it.boolean,
            json_raw: json,
            ..FieldValue::default()
        },
        ..FeedbackValue::default()
    }
}

/// The tree of a work.
pub fn of_work(work: &ManifestWork) -> String {
    of("ManifestWork", work)
}

fn of(kind: &str, work: &ManifestWork) -> String {
    let metadata = &work.metadata;
    let name = metadata.name.as_deref().unwrap_or_default();
    let cluster = metadata.namespace.as_deref().unwrap_or_default();
    let generation = metadata.generation.unwrap_or_default();
    let mut tree = Tree::new(&format!(
        "{kind} {name} on {cluster}, generation {generation}"
    ));
    let status = work.status.clone().unwrap_or_default();
    let manifests = status
        .resource_status
        .map(|it| it.manifests)
        .unwrap_or_default();
    let wanted = work
        .spec
        .workload
        .as_ref()
        .map_or(0, |it| it.manifests.len());
    if status.conditions.is_empty() {
        tree.line(0, "no agent has reported yet");
    }
    for condition in &status.conditions {
        tree.line(0, &condition_line(condition, generation));
    }
    for manifest in &manifests {
        tree.line(0, &manifest_line(manifest));
        for condition in manifest.conditions.iter().filter(|it| is_worth_telling(it)) {
            tree.line(1, &condition_line(condition, generation));
        }
        let values = manifest.status_feedback.iter().flat_map(|it| &it.values);
        for value in values {
            tree.line(1, &format!("{} = {}", value.name, value_text(value)));
        }
    }
    if manifests.len() < wanted {
        let missing = wanted - manifests.len();
        tree.line(
            0,
            &format!("{missing} manifests have not been looked at yet"),
        );
    }
    tree.finish()
}

/// The tree of a replica set.
pub fn of_replica_set(set: &ManifestWorkReplicaSet) -> String {
    let name = set.metadata.name.as_deref().unwrap_or_default();
    let mut tree = Tree::new(&format!("ManifestWorkReplicaSet {name}"));
    let status = set.status.clone().unwrap_or_default();
    if status.conditions.is_empty() {
        tree.line(0, "it has not been looked at yet");
    }
    for condition in &status.conditions {
        tree.line(0, &condition_line(condition, 0));
    }
    for placement in &status.placement_summary {
        let text = format!(
            "Placement {}: {}",
            placement.name, placement.available_decision_groups
        );
        tree.line(0, &text);
        let counts = &placement.summary;
        let text = format!(
            "{} works: {} applied, {} available, {} progressing, {} degraded",
            counts.total, counts.applied, counts.available, counts.progressing, counts.degraded
        );
        tree.line(1, &text);
    }
    tree.finish()
}

/// What goes without saying is left out: that all is well.
fn is_worth_telling(it: &Condition) -> bool {
    match it.type_.as_str() {
        condition::APPLIED
        | condition::AVAILABLE
        | condition::STATUS_FEEDBACK_SYNCED
        | condition::STATUS_SYNCED => it.status != "True",
        _ => true,
    }
}

fn condition_line(it: &Condition, generation: i64) -> String {
    let mut line = format!("{} {}", it.type_, it.status);
    // Writing to a String cannot fail.
    if !it.message.is_empty() {
        let _ = write!(line, ": {}", it.message.replace('\n', " "));
    } else if it.status != TRUE {
        let _ = write!(line, ": {}", it.reason);
    }
    if it.observed_generation.is_some_and(|seen| seen < generation) {
        line.push_str(" (of an earlier generation)");
    }
    line
}

fn manifest_line(manifest: &ManifestCondition) -> String {
    let meta = &manifest.resource_meta;
    let kind = if meta.kind.is_empty() {
        "manifest"
    } else {
        &meta.kind
    };
    let name = match (meta.namespace.as_str(), meta.name.as_str()) {
        ("", "") => format!("number {}", meta.ordinal),
        ("", name) => name.to_owned(),
        (namespace, name) => format!("{namespace}/{name}"),
    };
    let says = |name: &str| crate::lifecycle::is_true(&manifest.conditions, name);
    let state = match (says(condition::APPLIED), says(condition::AVAILABLE)) {
        _ if says(condition::COMPLETE) => "complete",
        (true, true) => "applied, available",
        (true, false) => "applied, not available",
        (false, _) => "not applied",
    };
    format!("{kind} {name}: {state}")
}

fn value_text(value: &FeedbackValue) -> String {
    let it = &value.field_value;
    let text = match it.kind {
        ValueType::Integer => it.integer.map(|integer| integer.to_string()),
        ValueType::Boolean => it.boolean.map(|boolean| boolean.to_string()),
        ValueType::String => it.string.clone(),
        ValueType::JsonRaw => it.json_raw.clone(),
        ValueType::Other(_) => None,
    };
    text.unwrap_or_else(|| "?".to_owned())
}

/// Lines with the depth of each, drawn when it is known which are the last of their kind.
struct Tree {
    title: String,
    lines: Vec<(usize, String)>,
}

impl Tree {
    fn new(title: &str) -> Self {
        Self {
            title: title.to_owned(),
            lines: Vec::new(),
        }
    }

    fn line(&mut self, depth: usize, text: &str) {
        self.lines.push((depth, text.to_owned()));
    }

    fn finish(self) -> String {
        let mut text = format!("{}\n", self.title);
        for (index, (depth, line)) in self.lines.iter().enumerate() {
            let rest = &self.lines[index + 1..];
            // Whether more comes at a depth before the tree returns above it.
            let goes_on = |at: usize| {
                rest.iter()
                    .take_while(|(other, _)| *other >= at)
                    .any(|(other, _)| *other == at)
            };
            for above in 0..*depth {
                text.push_str(if goes_on(above) { "│  " } else { "   " });
            }
            text.push_str(if goes_on(*depth) {
                "├─ "
            } else {
                "└─ "
            });
            text.push_str(line);
            text.push('\n');
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_work_is_a_tree_of_what_matters() {
        let said = |name: &str, status: &str, message: &str| {
            json!({"type": name, "status": status, "reason": "R", "message": message,
                "observedGeneration": 1, "lastTransitionTime": "2026-01-01T00:00:00Z"})
        };
        let work: ManifestWork = serde_json::from_value(json!({
            "metadata": {"name": "web", "namespace": "cluster1", "generation": 2},
            "spec": {"workload": {"manifests": [{}, {}, {}]}},
            "status": {"conditions": [said("Applied", "False", "Failed to apply manifest work")],
                "resourceStatus": {"manifests": [
                    {"resourceMeta": {"ordinal": 0, "kind": "Deployment", "namespace": "default", "name": "web"},
                     "conditions": [said("Applied", "True", ""), said("Available", "True", "")],
                     "statusFeedback": {"values": [{"name": "ReadyReplicas", "fieldValue": {"type": "Integer", "integer": 2}}]}},
                    {"resourceMeta": {"ordinal": 1, "kind": "Bird", "name": "robin"},
                     "conditions": [said("Applied", "False", "Failed to apply manifest: no such kind")]}]}},
        }))
        .unwrap();
        let expected = "\
ManifestWork web on cluster1, generation 2
├─ Applied False: Failed to apply manifest work (of an earlier generation)
├─ Deployment default/web: applied, available
│  └─ ReadyReplicas = 2
├─ Bird robin: not applied
│  └─ Applied False: Failed to apply manifest: no such kind (of an earlier generation)
└─ 1 manifests have not been looked at yet
";
        assert_eq!(of_work(&work), expected);
    }

    #[test]
    fn a_work_of_the_work_api_is_one_too() {
        let said = |name: &str| {
            json!({"type": name, "status": "True", "reason": "R", "message": "",
                "lastTransitionTime": "2026-01-01T00:00:00Z"})
        };
        let work: Work = serde_json::from_value(json!({
            "metadata": {"name": "web", "namespace": "cluster1", "generation": 1},
            "spec": {"workload": {"manifests": [{}]}},
            "status": {"conditions": [said("Applied")], "manifestConditions": [{
                "identifier": {"ordinal": 0, "kind": "Deployment", "namespace": "default", "name": "web"},
                "conditions": [said("Applied"), said("Available"), said("StatusSynced")],
                "statusSync": {"values": [
                    {"name": "isReady", "fieldValue": {"type": "Boolean", "boolean": true}},
                    {"name": "all", "fieldValue": {"type": "ByteArray", "byteArray": "eyJhIjoxfQ=="}}]}}]},
        }))
        .unwrap();
        let expected = "\
Work web on cluster1, generation 1
├─ Applied True
└─ Deployment default/web: applied, available
   ├─ isReady = true
   └─ all = {\"a\":1}
";
        assert_eq!(of_small_work(&work), expected);
    }

    #[test]
    fn a_replica_set_says_why_it_is_not_as_it_should_be() {
        let said = |name: &str, status: &str, reason: &str, message: &str| {
            json!({"type": name, "status": status, "reason": reason, "message": message,
                "lastTransitionTime": "2026-01-01T00:00:00Z"})
        };
        let set: ManifestWorkReplicaSet = serde_json::from_value(json!({
            "metadata": {"name": "web", "namespace": "default"},
            "spec": {"placementRefs": [{"name": "all"}]},
            "status": {"conditions": [
                said("PlacementVerified", "True", "AsExpected", ""),
                said("ManifestworkApplied", "False", "Processing", ""),
                said("PlacementRolledOut", "False", "Progressing", "all: a does not start")],
                "placementSummary": [{"name": "all",
                    "availableDecisionGroups": "1 (1 / 2 clusters applied)",
                    "summary": {"total": 1, "progressing": 1}}]},
        }))
        .unwrap();
        let expected = "\
ManifestWorkReplicaSet web
├─ PlacementVerified True
├─ ManifestworkApplied False: Processing
├─ PlacementRolledOut False: all: a does not start
└─ Placement all: 1 (1 / 2 clusters applied)
   └─ 1 works: 0 applied, 0 available, 1 progressing, 0 degraded
";
        assert_eq!(of_replica_set(&set), expected);
    }
}
