//! Objects that cases are made of, and where they are found.

use serde_json::{Value, json};

use super::{ADDRESS, MEMBER};

/// The condition of that type; null if there is none.
pub fn condition<'a>(status: &'a Value, name: &str) -> &'a Value {
    let list = status["conditions"].as_array();
    list.into_iter()
        .flatten()
        .find(|it| it["type"] == name)
        .unwrap_or(&Value::Null)
}

/// The condition of a manifest of a work.
pub fn manifest_condition<'a>(work: &'a Value, index: usize, name: &str) -> &'a Value {
    condition(&work["status"]["resourceStatus"]["manifests"][index], name)
}

/// The path of all objects like this one.
pub fn collection(object: &Value) -> String {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let api_version = text(&object["apiVersion"]);
    let root = if api_version.contains('/') {
        "/apis"
    } else {
        "/api"
    };
    let kind = text(&object["kind"]).to_lowercase();
    let plural = if kind.ends_with('y') {
        format!("{}ies", &kind[..kind.len() - 1])
    } else if kind.ends_with('s') {
        format!("{kind}es")
    } else {
        format!("{kind}s")
    };
    match object["metadata"]["namespace"].as_str() {
        Some(namespace) => format!("{root}/{api_version}/namespaces/{namespace}/{plural}"),
        None => format!("{root}/{api_version}/{plural}"),
    }
}

/// The path of an object.
pub fn path(object: &Value) -> String {
    format!(
        "{}/{}",
        collection(object),
        object["metadata"]["name"].as_str().unwrap()
    )
}

/// A ManifestWork for the member.
pub fn work(name: &str, manifests: Value) -> Value {
    json!({
        "apiVersion": "work.open-cluster-management.io/v1", "kind": "ManifestWork",
        "metadata": {"name": name, "namespace": MEMBER},
        "spec": {"workload": {"manifests": manifests}},
    })
}

/// A ManifestWork with more in its spec.
pub fn work_with(name: &str, manifests: Value, more: Value) -> Value {
    let mut object = work(name, manifests);
    for (key, value) in more.as_object().unwrap() {
        object["spec"][key] = value.clone();
    }
    object
}

pub fn config_map(name: &str, value: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"name": name, "namespace": "default"},
        "data": {"key": value},
    })
}

/// The record of a work on the member.
pub fn record(work: &str) -> Value {
    record_of(ADDRESS, work)
}

/// The record of a work of the hub at that address.
pub fn record_of(address: &str, work: &str) -> Value {
    let hash = bellwether_work::record::hub_hash(address);
    let name = bellwether_work::record::record_name(&hash, work);
    json!({
        "apiVersion": "work.open-cluster-management.io/v1", "kind": "AppliedManifestWork",
        "metadata": {"name": name},
    })
}

pub fn job(name: &str) -> Value {
    json!({
        "apiVersion": "batch/v1", "kind": "Job",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"template": {"spec": {"restartPolicy": "Never",
            "containers": [{"name": "main", "image": "busybox"}]}}},
    })
}

/// What a controller of jobs says of one that has come to a good end.
pub fn job_done() -> Value {
    let time = "2026-01-01T00:00:00Z";
    let holds = |name: &str| json!({"type": name, "status": "True", "lastProbeTime": time, "lastTransitionTime": time});
    json!({
        "startTime": time, "completionTime": time, "succeeded": 1,
        "uncountedTerminatedPods": {},
        "conditions": [holds("SuccessCriteriaMet"), holds("Complete")],
    })
}

pub fn deployment(name: &str, replicas: i64) -> Value {
    json!({
        "apiVersion": "apps/v1", "kind": "Deployment",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"replicas": replicas, "selector": {"matchLabels": {"app": name}},
            "template": {"metadata": {"labels": {"app": name}},
                "spec": {"containers": [{"name": "main", "image": "nginx"}]}}},
    })
}
