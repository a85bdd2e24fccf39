//! What a member tries to do to others, with its own credentials, in vain.

#![allow(
    unreachable_pub,
    clippy::unwrap_used,
    reason = "shared by tests, each of which uses what it needs"
)]

use bellwether_testkit::JsonClient;
use kube::Client;
use serde_json::{Value, json};

const CLUSTERS: &str = "/apis/cluster.open-cluster-management.io/v1/managedclusters";
const WORKS: &str = "/apis/work.open-cluster-management.io/v1";
const LEASES: &str = "/apis/coordination.k8s.io/v1";
const REQUESTS: &str = "/apis/certificates.k8s.io/v1/certificatesigningrequests";
const RBAC: &str = "/apis/rbac.authorization.k8s.io/v1";

/// Checks that the agent of `own` can neither read nor write what belongs to `other`, nor raise
/// itself.
pub async fn all_fail(client: &Client, own: &str, other: &str) {
    for path in reads(own, other) {
        check(client, "GET", &path, &Value::Null).await;
        let mark = if path.contains('?') { '&' } else { '?' };
        check(
            client,
            "GET",
            &format!("{path}{mark}watch=true"),
            &Value::Null,
        )
        .await;
    }
    for (method, path, body) in writes(own, other) {
        check(client, method, &path, &body).await;
    }
    let disguised = http::Request::get(format!("{CLUSTERS}/{other}"))
        .header("Impersonate-User", "admin")
        .header("Impersonate-Group", "system:masters");
    let disguised = disguised.body(Vec::new()).unwrap();
    refused(client.request(disguised).await, "in disguise");
}

fn reads(own: &str, other: &str) -> Vec<String> {
    vec![
        CLUSTERS.to_owned(),
        format!("{CLUSTERS}/{other}"),
        format!("{CLUSTERS}?fieldSelector=metadata.name%3D{other}"),
        format!("{LEASES}/leases"),
        format!("{LEASES}/namespaces/{other}/leases"),
        format!("{LEASES}/namespaces/{other}/leases/managed-cluster-lease"),
        format!("{WORKS}/manifestworks"),
        format!("{WORKS}/namespaces/{other}/manifestworks"),
        format!("{WORKS}/namespaces/{other}/manifestworks/w"),
        format!("{RBAC}/clusterroles"),
        "/apis/cluster.open-cluster-management.io/v1beta1/placements".to_owned(),
        "/apis/cluster.open-cluster-management.io/v1beta1/placementdecisions".to_owned(),
        "/api/v1/namespaces".to_owned(),
        format!("/api/v1/namespaces/{other}/configmaps"),
        format!("/api/v1/namespaces/{other}/secrets"),
        format!("/api/v1/namespaces/{other}/events"),
        format!("/api/v1/namespaces/{own}/secrets"),
        "/api/v1/namespaces/kube-system/secrets".to_owned(),
    ]
}

fn writes(own: &str, other: &str) -> Vec<(&'static str, String, Value)> {
    let work = json!({
        "apiVersion": "work.open-cluster-management.io/v1", "kind": "ManifestWork",
        "metadata": {"name": "stolen"}, "spec": {"workload": {"manifests": [
            {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "m"}}]}},
    });
    let cluster = json!({
        "apiVersion": "cluster.open-cluster-management.io/v1", "kind": "ManagedCluster",
        "metadata": {"name": "invented"}, "spec": {"hubAcceptsClient": true},
    });
    let group = format!("system:open-cluster-management:{own}");
    let rbac = "rbac.authorization.k8s.io";
    let admin = json!({
        "apiVersion": format!("{rbac}/v1"), "kind": "ClusterRoleBinding",
        "metadata": {"name": "raised"},
        "roleRef": {"apiGroup": rbac, "kind": "ClusterRole", "name": "cluster-admin"},
        "subjects": [{"apiGroup": rbac, "kind": "Group", "name": group}],
    });
    let event = json!({
        "apiVersion": "v1", "kind": "Event", "metadata": {"name": "e", "namespace": other},
        "involvedObject": {"kind": "Pod", "namespace": other, "name": "p"},
    });
    let nothing = json!({"metadata": {"labels": {"touched": "true"}}});
    let own_role = format!("open-cluster-management:managedcluster:{own}");
    let token =
        json!({"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}});
    vec![
        ("PATCH", format!("{CLUSTERS}/{other}"), nothing.clone()),
        (
            "PATCH",
            format!("{CLUSTERS}/{other}/status"),
            json!({"status": {"conditions": []}}),
        ),
        ("DELETE", format!("{CLUSTERS}/{other}"), Value::Null),
        ("POST", CLUSTERS.to_owned(), cluster),
        // Labels, taints and acceptance of its own cluster are the hub's.
        ("PATCH", format!("{CLUSTERS}/{own}"), nothing.clone()),
        ("PATCH", format!("{REQUESTS}/{other}"), nothing.clone()),
        ("DELETE", REQUESTS.to_owned(), Value::Null),
        ("DELETE", format!("{CLUSTERS}/{own}"), Value::Null),
        (
            "PATCH",
            format!("{LEASES}/namespaces/{other}/leases/managed-cluster-lease"),
            nothing.clone(),
        ),
        (
            "DELETE",
            format!("{LEASES}/namespaces/{other}/leases/managed-cluster-lease"),
            Value::Null,
        ),
        (
            "POST",
            format!("{WORKS}/namespaces/{other}/manifestworks"),
            work.clone(),
        ),
        (
            "POST",
            format!("{WORKS}/namespaces/{own}/manifestworks"),
            work,
        ),
        (
            "PATCH",
            format!("{WORKS}/namespaces/{other}/manifestworks/w"),
            nothing.clone(),
        ),
        (
            "PATCH",
            format!("{WORKS}/namespaces/{other}/manifestworks/w/status"),
            json!({"status": {"conditions": []}}),
        ),
        (
            "DELETE",
            format!("{WORKS}/namespaces/{other}/manifestworks/w"),
            Value::Null,
        ),
        (
            "DELETE",
            format!("{WORKS}/namespaces/{other}/manifestworks"),
            Value::Null,
        ),
        ("POST", format!("/api/v1/namespaces/{other}/events"), event),
        (
            "POST",
            format!("/api/v1/namespaces/{own}/configmaps"),
            json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "m"}}),
        ),
        ("POST", format!("{RBAC}/clusterrolebindings"), admin),
        (
            "PATCH",
            format!("{RBAC}/clusterroles/{own_role}"),
            nothing.clone(),
        ),
        (
            "PATCH",
            format!("{REQUESTS}/{own}-renewal-0/approval"),
            nothing.clone(),
        ),
        (
            "POST",
            "/api/v1/namespaces/kube-system/serviceaccounts/default/token".to_owned(),
            token,
        ),
        ("DELETE", format!("/api/v1/namespaces/{other}"), Value::Null),
    ]
}

async fn check(client: &Client, method: &str, path: &str, body: &Value) {
    let client = JsonClient::from(client.clone());
    let answer = client.send(method, path, body).await;
    refused(answer, &format!("{method} {path}"));
}

fn refused(answer: Result<Value, kube::Error>, what: &str) {
    match answer {
        Err(kube::Error::Api(status)) => assert_eq!(status.code, 403, "{what}: {status:?}"),
        other => panic!("{what}: {other:?}"),
    }
}
