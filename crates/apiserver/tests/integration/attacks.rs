//! Attacks, over TLS as an attacker would come: each has to fail, and to leave the server well.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a test that cannot go on fails"
)]
#![allow(clippy::needless_pass_by_value, reason = "bodies are written in place")]

use crate::common;

mod bodies;
mod certificates;
mod escalation;
mod heavy;
mod impersonation;
mod limits;
mod members;
mod paths;
mod slow;
mod tokens;

use common::TestServer;
use common::wire::Proof;
use serde_json::{Value, json};

const RBAC: &str = "/apis/rbac.authorization.k8s.io/v1";
const WHOAMI: &str = "/apis/authentication.k8s.io/v1/selfsubjectreviews";

/// Gives a user of a cluster these rules, everywhere.
async fn grant(server: &TestServer, cluster: &str, user: &str, rules: Value) {
    let admin = server.admin(cluster);
    let base = format!("/clusters/{cluster}{RBAC}");
    let role = json!({"metadata": {"name": user}, "rules": rules});
    let path = format!("{base}/clusterroles");
    server.send(&admin, "POST", &path, role).await.expect(201);
    let path = format!("{base}/clusterrolebindings");
    let binding = binding(user, "ClusterRole", user, user);
    server
        .send(&admin, "POST", &path, binding)
        .await
        .expect(201);
}

/// Gives a user a ClusterRole in one namespace.
async fn grant_in(server: &TestServer, cluster: &str, namespace: &str, user: &str, role: &str) {
    let admin = server.admin(cluster);
    let base = format!("/clusters/{cluster}");
    let body = json!({"metadata": {"name": namespace}});
    let path = format!("{base}/api/v1/namespaces");
    server.send(&admin, "POST", &path, body).await.expect(201);
    let path = format!("{base}{RBAC}/namespaces/{namespace}/rolebindings");
    let binding = binding(user, "ClusterRole", role, user);
    server
        .send(&admin, "POST", &path, binding)
        .await
        .expect(201);
}

fn binding(name: &str, kind: &str, role: &str, user: &str) -> Value {
    let group = "rbac.authorization.k8s.io";
    json!({
        "metadata": {"name": name},
        "roleRef": {"apiGroup": group, "kind": kind, "name": role},
        "subjects": [{"kind": "User", "apiGroup": group, "name": user}],
    })
}

/// Who the server takes somebody for.
async fn whoami(server: &TestServer, proof: &Proof) -> Value {
    let answer = server.send(proof, "POST", WHOAMI, json!({})).await;
    answer.expect(201)["status"]["userInfo"].clone()
}
