//! Objects that tests are made of, and where they are found.

use serde_json::{Map, Value, json};

use crate::clusters::MEMBER;

/// The condition of that type in a status; null if there is none.
pub fn condition<'a>(status: &'a Value, name: &str) -> &'a Value {
    let list = status["conditions"].as_array();
    list.into_iter()
        .flatten()
        .find(|it| it["type"] == name)
        .unwrap_or(&Value::Null)
}

/// The condition of a manifest of a ManifestWork.
pub fn manifest_condition<'a>(work: &'a Value, index: usize, name: &str) -> &'a Value {
    condition(&work["status"]["resourceStatus"]["manifests"][index], name)
}

/// The path of all objects of the same kind, in the same namespace.
pub fn collection(object: &Value) -> String {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let api_version = text(&object["apiVersion"]);
    let root = if api_version.contains('/') {
        "/apis"
    } else {
        "/api"
    };
    let plural = plural(&text(&object["kind"]).to_lowercase());
    match object["metadata"]["namespace"].as_str() {
        Some(namespace) => format!("{root}/{api_version}/namespaces/{namespace}/{plural}"),
        None => format!("{root}/{api_version}/{plural}"),
    }
}

fn plural(kind: &str) -> String {
    // Kinds whose singular is a plural.
    if kind == "endpoints" {
        return kind.to_owned();
    }
    match kind.strip_suffix('y') {
        Some(stem) => format!("{stem}ies"),
        None if kind.ends_with('s') => format!("{kind}es"),
        None => format!("{kind}s"),
    }
}

/// The path of an object.
pub fn path(object: &Value) -> String {
    let name = object["metadata"]["name"].as_str().unwrap_or_default();
    format!("{}/{name}", collection(object))
}

/// A Namespace.
pub fn namespace(name: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
}

/// A ConfigMap in the namespace `default`, with one value.
pub fn config_map(name: &str, value: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"name": name, "namespace": "default"},
        "data": {"key": value},
    })
}

/// A Deployment in the namespace `default`.
pub fn deployment(name: &str, replicas: i64) -> Value {
    json!({
        "apiVersion": "apps/v1", "kind": "Deployment",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"replicas": replicas, "selector": {"matchLabels": {"app": name}},
            "template": {"metadata": {"labels": {"app": name}},
                "spec": {"containers": [{"name": "main", "image": "nginx"}]}}},
    })
}

/// A Job in the namespace `default`.
pub fn job(name: &str) -> Value {
    json!({
        "apiVersion": "batch/v1", "kind": "Job",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"template": {"spec": {"restartPolicy": "Never",
            "containers": [{"name": "main", "image": "busybox"}]}}},
    })
}

/// The status of a Job that has succeeded.
pub fn job_done() -> Value {
    let time = crate::START;
    let holds = |name: &str| json!({"type": name, "status": "True", "lastProbeTime": time, "lastTransitionTime": time});
    json!({
        "startTime": time, "completionTime": time, "succeeded": 1,
        "uncountedTerminatedPods": {},
        "conditions": [holds("SuccessCriteriaMet"), holds("Complete")],
    })
}

/// A ManifestWork for the member.
#[expect(clippy::needless_pass_by_value, reason = "callers write it in place")]
pub fn work(name: &str, manifests: Value) -> Value {
    json!({
        "apiVersion": "work.open-cluster-management.io/v1", "kind": "ManifestWork",
        "metadata": {"name": name, "namespace": MEMBER},
        "spec": {"workload": {"manifests": manifests}},
    })
}

/// A ManifestWork for the member, with more fields in its spec.
#[expect(clippy::needless_pass_by_value, reason = "callers write it in place")]
pub fn work_with(name: &str, manifests: Value, more: Value) -> Value {
    let mut object = work(name, manifests);
    for (key, value) in more.as_object().into_iter().flatten() {
        object["spec"][key] = value.clone();
    }
    object
}

/// An accepted ManagedCluster in the set `default`, or in the one that its labels name.
pub fn managed_cluster(name: &str, labels: &[(&str, &str)]) -> Value {
    let mut all: Map<String, Value> = labels
        .iter()
        .map(|(key, value)| ((*key).to_owned(), json!(value)))
        .collect();
    all.entry("cluster.open-cluster-management.io/clusterset")
        .or_insert(json!("default"));
    json!({
        "apiVersion": "cluster.open-cluster-management.io/v1", "kind": "ManagedCluster",
        "metadata": {"name": name, "labels": all},
        "spec": {"hubAcceptsClient": true},
    })
}

/// A ManagedClusterSet.
pub fn cluster_set(name: &str) -> Value {
    json!({
        "apiVersion": "cluster.open-cluster-management.io/v1beta2", "kind": "ManagedClusterSet",
        "metadata": {"name": name},
    })
}

/// A ManagedClusterSetBinding: placements of the namespace may choose clusters of the set.
pub fn cluster_set_binding(namespace: &str, set: &str) -> Value {
    json!({
        "apiVersion": "cluster.open-cluster-management.io/v1beta2",
        "kind": "ManagedClusterSetBinding",
        "metadata": {"name": set, "namespace": namespace},
        "spec": {"clusterSet": set},
    })
}

/// A Placement in the namespace `default`.
#[expect(clippy::needless_pass_by_value, reason = "callers write it in place")]
pub fn placement(name: &str, spec: Value) -> Value {
    json!({
        "apiVersion": "cluster.open-cluster-management.io/v1beta1", "kind": "Placement",
        "metadata": {"name": name, "namespace": "default"},
        "spec": spec,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_those_of_kubernetes() {
        let of = |api_version: &str, kind: &str, namespace: Option<&str>| {
            path(&json!({"apiVersion": api_version, "kind": kind,
                "metadata": {"name": "x", "namespace": namespace}}))
        };
        assert_eq!(of("v1", "Namespace", None), "/api/v1/namespaces/x");
        assert_eq!(
            of("v1", "Endpoints", Some("default")),
            "/api/v1/namespaces/default/endpoints/x"
        );
        assert_eq!(
            of("networking.k8s.io/v1", "Ingress", Some("a")),
            "/apis/networking.k8s.io/v1/namespaces/a/ingresses/x"
        );
        assert_eq!(
            of("policy.open-cluster-management.io/v1", "Policy", Some("a")),
            "/apis/policy.open-cluster-management.io/v1/namespaces/a/policies/x"
        );
    }
}
