//! The roles and bindings that every cluster begins with.

use serde_json::{Value, json};

const GROUP: &str = "rbac.authorization.k8s.io";

/// Key prefix, name and content of the objects; they are written where they are missing.
pub(crate) fn bootstrap_objects() -> Vec<Value> {
    let read = ["get", "list", "watch"];
    let write = ["create", "delete", "deletecollection", "patch", "update"];
    let everyday = json!([
        {"apiGroups": [""], "resources": [
            "configmaps", "endpoints", "events", "persistentvolumeclaims", "pods", "pods/log", "pods/status",
            "replicationcontrollers", "replicationcontrollers/scale", "serviceaccounts", "services",
            "limitranges", "resourcequotas", "namespaces"], "verbs": read},
        {"apiGroups": ["apps", "batch", "autoscaling", "policy", "networking.k8s.io", "discovery.k8s.io"],
         "resources": ["*"], "verbs": read},
    ]);
    let edit = json!([
        {"apiGroups": [""], "resources": [
            "configmaps", "endpoints", "events", "persistentvolumeclaims", "pods", "pods/eviction",
            "replicationcontrollers", "replicationcontrollers/scale", "secrets", "serviceaccounts",
            "serviceaccounts/token", "services"], "verbs": write},
        {"apiGroups": [""], "resources": ["secrets"], "verbs": read},
        {"apiGroups": ["apps", "batch", "autoscaling", "policy", "networking.k8s.io", "coordination.k8s.io"],
         "resources": ["*"], "verbs": write},
        {"apiGroups": ["coordination.k8s.io"], "resources": ["leases"], "verbs": read},
    ]);
    let admin = json!([
        {"apiGroups": [GROUP], "resources": ["roles", "rolebindings"],
         "verbs": ["create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"]},
        {"apiGroups": ["authorization.k8s.io"], "resources": ["localsubjectaccessreviews"], "verbs": ["create"]},
    ]);
    let joined = |parts: &[&Value]| -> Value {
        parts
            .iter()
            .filter_map(|part| part.as_array())
            .flatten()
            .cloned()
            .collect()
    };
    vec![
        role(
            "cluster-admin",
            json!([
                {"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]},
                {"nonResourceURLs": ["*"], "verbs": ["*"]},
            ]),
        ),
        role("admin", joined(&[&everyday, &edit, &admin])),
        role("edit", joined(&[&everyday, &edit])),
        role("view", everyday),
        role(
            "system:discovery",
            json!([{"verbs": ["get"], "nonResourceURLs": [
            "/api", "/api/*", "/apis", "/apis/*", "/healthz", "/livez", "/openapi", "/openapi/*", "/readyz",
            "/version", "/version/"]}]),
        ),
        role(
            "system:basic-user",
            json!([
                {"apiGroups": ["authorization.k8s.io"],
                 "resources": ["selfsubjectaccessreviews", "selfsubjectrulesreviews"], "verbs": ["create"]},
                {"apiGroups": ["authentication.k8s.io"], "resources": ["selfsubjectreviews"], "verbs": ["create"]},
            ]),
        ),
        role(
            "system:public-info-viewer",
            json!([{"verbs": ["get"], "nonResourceURLs": [
            "/healthz", "/livez", "/readyz", "/version", "/version/"]}]),
        ),
        binding("cluster-admin", &["system:masters"]),
        binding("system:discovery", &["system:authenticated"]),
        binding("system:basic-user", &["system:authenticated"]),
        binding(
            "system:public-info-viewer",
            &["system:authenticated", "system:unauthenticated"],
        ),
    ]
}

fn metadata(name: &str) -> Value {
    json!({
        "name": name,
        "labels": {"kubernetes.io/bootstrapping": "rbac-defaults"},
        "annotations": {"rbac.authorization.kubernetes.io/autoupdate": "true"},
    })
}

#[expect(
    clippy::needless_pass_by_value,
    reason = "callers build the rules in place"
)]
fn role(name: &str, rules: Value) -> Value {
    json!({
        "apiVersion": format!("{GROUP}/v1"), "kind": "ClusterRole",
        "metadata": metadata(name), "rules": rules,
    })
}

fn binding(role: &str, groups: &[&str]) -> Value {
    let subjects: Vec<Value> = groups
        .iter()
        .map(|group| json!({"apiGroup": GROUP, "kind": "Group", "name": group}))
        .collect();
    json!({
        "apiVersion": format!("{GROUP}/v1"), "kind": "ClusterRoleBinding",
        "metadata": metadata(role),
        "roleRef": {"apiGroup": GROUP, "kind": "ClusterRole", "name": role},
        "subjects": subjects,
    })
}
