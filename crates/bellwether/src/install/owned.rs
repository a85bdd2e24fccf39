//! The objects that an installation has on a cluster, found by their labels: whatever values they were made with.

use anyhow::Context as _;
use bellwether_webhook::configuration::NAME as WEBHOOKS;
use http::Request;
use kube::Client;
use serde_json::{Value, json};

/// An installation, as its objects name it.
#[derive(Debug, Clone)]
pub(super) struct Identity {
    /// The name of the release.
    pub(super) name: String,
    /// The namespace of its processes.
    pub(super) namespace: String,
    /// `hub` or `agent`.
    pub(super) mode: &'static str,
}

/// The kinds of the chart, in the order in which they go, and their path. A process goes first, because a hub creates its
/// webhooks again; then webhooks, so that no write waits for a hub that is gone. Secrets stay: those of agents are credentials.
const KINDS: &[(&str, &str, &str)] = &[
    ("apps/v1", "Deployment", "deployments"),
    (
        "admissionregistration.k8s.io/v1",
        "MutatingWebhookConfiguration",
        "mutatingwebhookconfigurations",
    ),
    (
        "admissionregistration.k8s.io/v1",
        "ValidatingWebhookConfiguration",
        "validatingwebhookconfigurations",
    ),
    ("v1", "Service", "services"),
    ("policy/v1", "PodDisruptionBudget", "poddisruptionbudgets"),
    ("networking.k8s.io/v1", "NetworkPolicy", "networkpolicies"),
    (
        "rbac.authorization.k8s.io/v1",
        "ClusterRoleBinding",
        "clusterrolebindings",
    ),
    (
        "rbac.authorization.k8s.io/v1",
        "RoleBinding",
        "rolebindings",
    ),
    (
        "rbac.authorization.k8s.io/v1",
        "ClusterRole",
        "clusterroles",
    ),
    ("rbac.authorization.k8s.io/v1", "Role", "roles"),
    ("v1", "ServiceAccount", "serviceaccounts"),
];

/// Returns the objects of an installation, in the order in which they go: what they are, and where.
pub(super) async fn find(client: &Client, identity: &Identity) -> anyhow::Result<Vec<Value>> {
    let Identity { name, mode, .. } = identity;
    let selector = format!(
        "app.kubernetes.io%2Fname%3Dbellwether%2Capp.kubernetes.io%2Finstance%3D{name}%2Capp.kubernetes.io%2Fcomponent%3D{mode}"
    );
    let mut found = Vec::new();
    for (api_version, kind, plural) in KINDS {
        let root = if api_version.contains('/') {
            "/apis"
        } else {
            "/api"
        };
        // A hub that finds none creates them itself, without the labels of an installation.
        let query = if kind.ends_with("WebhookConfiguration") {
            format!("fieldSelector=metadata.name%3D{WEBHOOKS}")
        } else {
            format!("labelSelector={selector}")
        };
        let path = format!("{root}/{api_version}/{plural}?{query}");
        let request = Request::get(&path).body(Vec::new())?;
        let list = client.request::<Value>(request).await;
        let list = list.with_context(|| format!("cannot list {plural}"))?;
        for object in list["items"].as_array().into_iter().flatten() {
            if identity.has(object) {
                found.push(reference(api_version, kind, &object["metadata"]));
            }
        }
    }
    Ok(found)
}

fn reference(api_version: &str, kind: &str, metadata: &Value) -> Value {
    let mut reference =
        json!({"apiVersion": api_version, "kind": kind, "metadata": {"name": metadata["name"]}});
    if metadata["namespace"].is_string() {
        reference["metadata"]["namespace"] = metadata["namespace"].clone();
    }
    reference
}

impl Identity {
    /// True if an object with the labels of this installation is not one of the same name in another namespace.
    fn has(&self, object: &Value) -> bool {
        let metadata = &object["metadata"];
        if metadata["namespace"] == self.namespace.as_str() {
            return true;
        }
        let name = metadata["name"].as_str().unwrap_or_default();
        if name == WEBHOOKS && object["webhooks"].is_array() {
            let service = &object["webhooks"][0]["clientConfig"]["service"];
            let is_here = service.is_null() || service["namespace"] == self.namespace.as_str();
            return self.mode == "hub" && is_here;
        }
        let own = format!("{}-{}", self.name, self.namespace);
        let rest = name.strip_prefix(own.as_str());
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with("-execution"))
            || name == format!("{}-credentials", self.name)
    }
}

/// Returns those of the objects that are there which are not among those that should be.
pub(super) fn surplus(there: Vec<Value>, wanted: &[Value]) -> Vec<Value> {
    let key = |object: &Value| {
        let metadata = &object["metadata"];
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        (
            text(&object["kind"]),
            text(&metadata["namespace"]),
            text(&metadata["name"]),
        )
    };
    let wanted: Vec<_> = wanted.iter().map(key).collect();
    let mut there = there;
    there.retain(|object| !wanted.contains(&key(object)));
    there
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn installations_of_one_name_in_two_namespaces_are_told_apart() {
        let identity = Identity {
            name: "hub".to_owned(),
            namespace: "one".to_owned(),
            mode: "hub",
        };
        let check = |object: Value, expected: bool| {
            assert_eq!(identity.has(&object), expected, "{object}");
        };
        let object = |namespace: &str, name: &str| {
            let metadata = match namespace {
                "" => json!({"name": name}),
                namespace => json!({"name": name, "namespace": namespace}),
            };
            json!({"metadata": metadata})
        };
        check(object("one", "anything"), true);
        check(object("two", "hub"), false);
        check(object("kube-system", "hub-one"), true);
        check(object("kube-system", "hub-two"), false);
        check(object("", "hub-one"), true);
        check(object("", "hub-one-execution-cluster-admin"), true);
        check(object("", "hub-one-two"), false);
        check(object("", "hub-two-execution"), false);
        for (namespace, expected) in [("one", true), ("two", false)] {
            let mut webhooks = object("", WEBHOOKS);
            webhooks["webhooks"] = json!([{"clientConfig": {"service": {"namespace": namespace}}}]);
            check(webhooks, expected);
        }
    }

    #[test]
    fn only_what_is_not_wanted_any_more_is_surplus() {
        let role = |name: &str| json!({"kind": "ClusterRole", "metadata": {"name": name}});
        let left = surplus(vec![role("a"), role("b")], &[role("b"), role("c")]);
        assert_eq!(left, [role("a")]);
    }
}
