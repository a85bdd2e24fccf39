//! A work as a tree, for people: what it applies, how it stands, what came back.

use std::fmt::Write as _;

use bellwether_api::meta::{Condition, FALSE, TRUE};
use bellwether_api::multicluster::{self, SyncValue, Work};
use bellwether_api::work::names::condition;
use bellwether_api::work::{
    FeedbackValue, FieldValue, ManifestCondition, ManifestWork, StatusFeedback, ValueType,
};
use bellwether_work::lifecycle::is_true;
use bellwether_work::work_api;
use serde_json::{Value, json};

use super::tree::{Node, Span, Tone, Tree};

/// A work of either interface, as `status` shows it.
#[derive(Debug, Clone)]
pub struct WorkSnapshot {
    kind: &'static str,
    work: ManifestWork,
}

impl WorkSnapshot {
    /// A ManifestWork.
    pub fn of_work(work: ManifestWork) -> Self {
        let kind = "ManifestWork";
        Self { kind, work }
    }

    /// A work of the work API.
    pub fn of_work_api(work: &Work) -> Self {
        let kind = "Work";
        let work = with_values(work);
        Self { kind, work }
    }
}

/// A work of the work API as a ManifestWork, with its values.
fn with_values(work: &Work) -> ManifestWork {
    let mut converted = work_api::as_manifest_work(work);
    let synced = work.status.iter().flat_map(|it| &it.manifest_conditions);
    let manifests = converted
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
    converted
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

impl WorkSnapshot {
    /// The page of `status`.
    pub fn status(&self) -> Tree {
        let metadata = &self.work.metadata;
        let name = metadata.name.as_deref().unwrap_or_default();
        let cluster = metadata.namespace.as_deref().unwrap_or_default();
        let generation = metadata.generation.unwrap_or_default();
        let title = format!("{} {name} on {cluster}, generation {generation}", self.kind);
        let line = |tone: Tone, text: String| Node::leaf(vec![Span::new(tone, text)]);
        let mut nodes = Vec::new();
        let conditions = self.conditions();
        if conditions.is_empty() {
            let text = "the agent has not reported yet".to_owned();
            nodes.push(line(Tone::Active, text));
        }
        for it in conditions {
            nodes.push(line(tone(it), condition_line(it, generation)));
        }
        let manifests = self.manifests();
        nodes.extend(manifests.iter().map(|it| manifest_node(it, generation)));
        match self.wanted().saturating_sub(manifests.len()) {
            0 => {}
            1 => nodes.push(line(
                Tone::Active,
                "1 manifest has no status yet".to_owned(),
            )),
            many => {
                let text = format!("{many} manifests have no status yet");
                nodes.push(line(Tone::Active, text));
            }
        }
        Tree {
            title: vec![Span::new(Tone::Title, title)],
            nodes,
            ..Tree::default()
        }
    }

    /// The document of `status`.
    pub fn document(&self) -> Value {
        let metadata = &self.work.metadata;
        let manifests = self.manifests().iter().map(|it| {
            let values = it.status_feedback.iter().flat_map(|it| &it.values);
            let values: serde_json::Map<String, Value> = values
                .map(|value| (value.name.clone(), value_text(value).into()))
                .collect();
            json!({
                "kind": it.resource_meta.kind, "namespace": it.resource_meta.namespace,
                "name": it.resource_meta.name, "ordinal": it.resource_meta.ordinal,
                "state": state(it), "conditions": it.conditions, "values": values,
            })
        });
        json!({
            "kind": self.kind, "name": metadata.name, "cluster": metadata.namespace,
            "generation": metadata.generation, "conditions": self.conditions(),
            "manifests": manifests.collect::<Vec<_>>(),
            "withoutStatus": self.wanted().saturating_sub(self.manifests().len()),
        })
    }

    fn conditions(&self) -> &[Condition] {
        let status = self.work.status.as_ref();
        status.map_or(&[], |status| &status.conditions)
    }

    fn manifests(&self) -> &[ManifestCondition] {
        let status = self.work.status.as_ref();
        let status = status.and_then(|status| status.resource_status.as_ref());
        status.map_or(&[], |status| &status.manifests)
    }

    /// How many manifests it has.
    fn wanted(&self) -> usize {
        let workload = self.work.spec.workload.as_ref();
        workload.map_or(0, |it| it.manifests.len())
    }
}

fn manifest_node(manifest: &ManifestCondition, generation: i64) -> Node {
    let worth = manifest.conditions.iter().filter(|it| is_worth_telling(it));
    let mut children: Vec<Node> = worth
        .map(|it| Node::leaf(vec![Span::new(tone(it), condition_line(it, generation))]))
        .collect();
    let values = manifest.status_feedback.iter().flat_map(|it| &it.values);
    children.extend(values.map(|value| {
        let text = format!("{} = {}", value.name, value_text(value));
        Node::leaf(vec![Span::plain(text)])
    }));
    Node {
        cells: vec![Span::plain(manifest_line(manifest))],
        children,
        ..Node::default()
    }
}

/// What a condition means: of some, True is bad.
fn tone(it: &Condition) -> Tone {
    match (it.type_.as_str(), it.status.as_str()) {
        (condition::APPLIED | condition::AVAILABLE | condition::COMPLETE, TRUE) => Tone::Good,
        (condition::APPLIED | condition::AVAILABLE, FALSE) | (condition::DEGRADED, TRUE) => {
            Tone::Bad
        }
        (condition::PROGRESSING, TRUE) => Tone::Active,
        _ => Tone::Plain,
    }
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
    format!("{kind} {name}: {}", state(manifest))
}

fn state(manifest: &ManifestCondition) -> &'static str {
    let says = |name: &str| is_true(&manifest.conditions, name);
    match (says(condition::APPLIED), says(condition::AVAILABLE)) {
        _ if says(condition::COMPLETE) => "complete",
        (true, true) => "applied, available",
        (true, false) => "applied, not available",
        (false, _) => "not applied",
    }
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
└─ 1 manifest has no status yet
";
        let tree = WorkSnapshot::of_work(work).status();
        assert_eq!(tree.render(false), expected);
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
        let tree = WorkSnapshot::of_work_api(&work).status();
        assert_eq!(tree.render(false), expected);
    }
}
