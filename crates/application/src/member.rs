//! Objects of an application on a member: they go there in a work, and what is known of them comes back in its status.

use bellwether_api::oam::names::label;
use bellwether_api::work::ManifestWork;
use bellwether_json::path::str_at;
use serde_json::{Value, json};

use crate::context::AppContext;
use crate::label::Manifest;
use crate::path;

/// Values that come back, by the field that they are of; those that health snippets of workloads look at.
const FEEDBACK: [&str; 14] = [
    "metadata.generation",
    "status.observedGeneration",
    "status.replicas",
    "status.readyReplicas",
    "status.updatedReplicas",
    "status.numberReady",
    "status.desiredNumberScheduled",
    "status.currentNumberScheduled",
    "status.updatedNumberScheduled",
    "status.active",
    "status.failed",
    "status.succeeded",
    "spec.replicas",
    "spec.clusterIP",
];

/// Name of the work of an application.
pub fn work_name(app: &AppContext) -> String {
    format!("app-{}-{}", app.namespace, app.name)
}

/// The work that brings objects to a member; the namespace of the work is named after it.
pub fn work(app: &AppContext, cluster: &str, manifests: &[&Manifest]) -> Value {
    let configs: Vec<Value> = manifests
        .iter()
        .map(|manifest| config(&manifest.object))
        .collect();
    let objects: Vec<&Value> = manifests.iter().map(|manifest| &manifest.object).collect();
    json!({
        "apiVersion": "work.open-cluster-management.io/v1",
        "kind": "ManifestWork",
        "metadata": {
            "name": work_name(app),
            "namespace": cluster,
            "labels": {
                label::APP_NAME: app.name,
                label::APP_NAMESPACE: app.namespace,
                label::APP_REVISION: app.revision,
            },
        },
        "spec": {"workload": {"manifests": objects}, "manifestConfigs": configs},
    })
}

fn config(object: &Value) -> Value {
    let api_version = object["apiVersion"].as_str().unwrap_or_default();
    let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
    let kind = object["kind"].as_str().unwrap_or_default();
    let plural = match bellwether_kinds::find_kind(group, version, kind) {
        Some(resource) => resource.plural.to_owned(),
        None => format!("{}s", kind.to_lowercase()),
    };
    let paths: Vec<Value> = FEEDBACK
        .iter()
        .map(|field| json!({"name": field, "path": format!(".{field}")}))
        .collect();
    json!({
        "resourceIdentifier": {
            "group": group,
            "resource": plural,
            "name": object["metadata"]["name"],
            "namespace": str_at(object, &["metadata", "namespace"]).unwrap_or_default(),
        },
        "feedbackRules": [{"type": "JSONPaths", "jsonPaths": paths}],
        "feedbackScrapeType": "Watch",
    })
}

/// What is known of an object on a member; `None` until the member has applied this version of it.
pub fn live(work: &ManifestWork, manifest: &Value) -> Option<Value> {
    let work = serde_json::to_value(work).ok()?;
    let entries = work
        .pointer("/status/resourceStatus/manifests")?
        .as_array()?;
    let entry = entries.iter().find(|entry| {
        let meta = &entry["resourceMeta"];
        let text = |field: &str| meta[field].as_str().unwrap_or_default();
        text("kind") == manifest["kind"].as_str().unwrap_or_default()
            && text("name") == str_at(manifest, &["metadata", "name"]).unwrap_or_default()
            && text("namespace") == str_at(manifest, &["metadata", "namespace"]).unwrap_or_default()
    })?;
    let is_applied = entry["conditions"]
        .as_array()?
        .iter()
        .any(|condition| condition["type"] == "Applied" && condition["status"] == "True");
    if !is_applied {
        return None;
    }
    let mut live = manifest.clone();
    let values = entry
        .pointer("/statusFeedback/values")
        .and_then(Value::as_array);
    for value in values.into_iter().flatten() {
        let field = &value["fieldValue"];
        let found = [&field["integer"], &field["string"], &field["boolean"]]
            .into_iter()
            .find(|found| !found.is_null());
        if let (Some(name), Some(found)) = (value["name"].as_str(), found)
            && let Ok(steps) = path::parse(name)
        {
            path::set(&mut live, &steps, found.clone());
        }
    }
    Some(live)
}

/// Why objects on a member cannot be applied.
pub fn problem(work: &ManifestWork) -> Option<String> {
    let conditions = &work.status.as_ref()?.conditions;
    let applied = conditions
        .iter()
        .find(|condition| condition.type_ == "Applied")?;
    let cluster = work.metadata.namespace.as_deref().unwrap_or_default();
    (applied.status == "False").then(|| format!("cluster {cluster}: {}", applied.message))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_member_reports_becomes_a_live_object() {
        let manifest = json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web", "namespace": "n"}, "spec": {}});
        let status = |applied: &str| {
            json!({"metadata": {"name": "w", "namespace": "east"}, "spec": {}, "status": {"resourceStatus": {"manifests": [{
                "resourceMeta": {"ordinal": 0, "group": "apps", "version": "v1", "kind": "Deployment", "resource": "deployments", "name": "web", "namespace": "n"},
                "conditions": [{"type": "Applied", "status": applied, "reason": "X", "message": "", "lastTransitionTime": "2026-01-01T00:00:00Z"}],
                "statusFeedback": {"values": [
                    {"name": "status.readyReplicas", "fieldValue": {"type": "Integer", "integer": 2}},
                    {"name": "metadata.generation", "fieldValue": {"type": "Integer", "integer": 3}},
                ]},
            }]}}})
        };
        let read = |applied: &str| serde_json::from_value::<ManifestWork>(status(applied)).unwrap();
        let found = live(&read("True"), &manifest).unwrap();
        assert_eq!(found["status"]["readyReplicas"], 2);
        assert_eq!(found["metadata"]["generation"], 3);
        assert_eq!(live(&read("False"), &manifest), None);
    }
}
