//! Getting more rights than one has: by roles, bindings, aggregation, and by other people's namespaces.

use bellwether_apiserver::HUB;
use serde_json::{Value, json};

use super::{RBAC, binding, grant, grant_in};
use crate::common::wire::Proof;
use crate::common::{TestServer, eventually};

/// A server on which bob may write roles and bindings, read pods, and nothing else.
async fn start() -> (TestServer, Proof) {
    let server = TestServer::start().await;
    let rules = json!([
        {"apiGroups": ["rbac.authorization.k8s.io"],
         "resources": ["roles", "rolebindings", "clusterroles", "clusterrolebindings"],
         "verbs": ["create", "get", "list", "update", "patch", "delete"]},
        {"apiGroups": [""], "resources": ["pods"], "verbs": ["get", "list"]},
    ]);
    grant(&server, HUB, "bob", rules).await;
    let bob = server.certify("bob", &["devs"], HUB);
    (server, bob)
}

const EVERYTHING: &str = "*";

fn all_rights() -> Value {
    json!([{"apiGroups": [EVERYTHING], "resources": [EVERYTHING], "verbs": [EVERYTHING]}])
}

fn secrets() -> Value {
    json!([{"apiGroups": [""], "resources": ["secrets"], "verbs": ["get"]}])
}

/// Bob still cannot read secrets.
async fn assert_powerless(server: &TestServer, bob: &Proof) {
    for path in ["/api/v1/secrets", "/api/v1/namespaces/default/secrets"] {
        assert_eq!(server.send(bob, "GET", path, Value::Null).await.code, 403);
    }
}

#[tokio::test]
async fn nobody_writes_a_role_with_rights_that_they_lack() {
    let (server, bob) = start().await;
    let roles = format!("{RBAC}/namespaces/default/roles");
    let own = json!({"metadata": {"name": "own"}, "rules": [
        {"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]},
    ]});
    server.send(&bob, "POST", &roles, own).await.expect(201);
    let more = json!({"metadata": {"name": "more"}, "rules": secrets()});
    let refused = server.send(&bob, "POST", &roles, more.clone()).await;
    assert_eq!(
        (refused.code, refused.message()),
        (
            403,
            "roles.rbac.authorization.k8s.io \"more\" is forbidden: user \"bob\" (groups=[\"devs\" \"system:authenticated\"]) is attempting to grant RBAC permissions not currently held:\n{APIGroups:[\"\"], Resources:[\"secrets\"], Verbs:[\"get\"]}"
        )
    );
    // By every way in which a role can be written.
    let item = format!("{roles}/own");
    let absent = format!("{roles}/more");
    let patch = json!({"rules": secrets()});
    let put = json!({"metadata": {"name": "own"}, "rules": all_rights()});
    let apply = Proof::certificate(bob.certificate.clone().unwrap())
        .with("content-type", "application/apply-patch+yaml");
    let applied = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role",
        "metadata": {"name": "more"}, "rules": secrets(),
    });
    let force = format!("{absent}?fieldManager=x&force=true");
    let dry = format!("{roles}?dryRun=All");
    let json_patch = Proof::certificate(bob.certificate.clone().unwrap())
        .with("content-type", "application/json-patch+json");
    let add = json!([{"op": "add", "path": "/rules/-", "value": secrets()[0]}]);
    for (proof, method, path, body) in [
        (&bob, "PATCH", &item, patch),
        (&bob, "PUT", &item, put),
        (&bob, "PUT", &absent, more.clone()),
        (&apply, "PATCH", &force, applied),
        (&bob, "POST", &dry, more),
        (&json_patch, "PATCH", &item, add),
    ] {
        let answer = server.send(proof, method, path, body).await;
        assert_eq!(answer.code, 403, "{method} {path}: {}", answer.body);
    }
    assert_powerless(&server, &bob).await;
}

#[tokio::test]
async fn nobody_binds_a_role_with_rights_that_they_lack() {
    let (server, bob) = start().await;
    let admin = server.admin(HUB);
    let bindings = format!("{RBAC}/namespaces/default/rolebindings");
    let everywhere = format!("{RBAC}/clusterrolebindings");
    for (path, role) in [
        (&bindings, "edit"),
        (&bindings, "cluster-admin"),
        (&everywhere, "cluster-admin"),
    ] {
        let body = binding("mine", "ClusterRole", role, "bob");
        let answer = server.send(&bob, "POST", path, body).await;
        assert_eq!(answer.code, 403, "{path} {role}: {}", answer.body);
        assert!(answer.message().contains("not currently held"));
    }
    // Nor do they join an existing binding, or bind a role that is to come.
    let item = format!("{everywhere}/cluster-admin");
    let subjects = json!({"subjects": [
        {"kind": "User", "apiGroup": "rbac.authorization.k8s.io", "name": "bob"},
    ]});
    assert_eq!(server.send(&bob, "PATCH", &item, subjects).await.code, 403);
    let later = binding("later", "ClusterRole", "later", "bob");
    assert_eq!(server.send(&bob, "POST", &bindings, later).await.code, 404);
    // A binding cannot be pointed at another role.
    let harmless = json!({"metadata": {"name": "harmless"}, "rules": [
        {"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]},
    ]});
    let roles = format!("{RBAC}/clusterroles");
    server
        .send(&admin, "POST", &roles, harmless)
        .await
        .expect(201);
    let mine = binding("mine", "ClusterRole", "harmless", "bob");
    server.send(&bob, "POST", &bindings, mine).await.expect(201);
    let item = format!("{bindings}/mine");
    let turned = json!({"roleRef": {"name": "cluster-admin"}});
    assert!(server.send(&bob, "PATCH", &item, turned).await.code >= 400);
    assert_powerless(&server, &bob).await;
}

#[tokio::test]
async fn nobody_gathers_rights_by_aggregation() {
    let (server, bob) = start().await;
    let roles = format!("{RBAC}/clusterroles");
    let gather = json!({"metadata": {"name": "gather"}, "rules": [], "aggregationRule": {
        "clusterRoleSelectors": [{"matchLabels": {"kubernetes.io/bootstrapping": "rbac-defaults"}}],
    }});
    let refused = server.send(&bob, "POST", &roles, gather).await;
    assert_eq!(
        (refused.code, refused.message()),
        (
            403,
            "clusterroles.rbac.authorization.k8s.io \"gather\" is forbidden: must have cluster-admin privileges to use the aggregationRule"
        )
    );
    // A label that an aggregated role looks for brings in only what its writer has.
    let label = "rbac.authorization.k8s.io/aggregate-to-view";
    let smuggled = json!({
        "metadata": {"name": "smuggled", "labels": {label: "true"}}, "rules": secrets(),
    });
    assert_eq!(server.send(&bob, "POST", &roles, smuggled).await.code, 403);
    // An existing aggregated role is not theirs to widen, nor to turn into something else.
    let view = format!("{roles}/view");
    for change in [
        json!({"rules": secrets()}),
        json!({"aggregationRule": {"clusterRoleSelectors": [{"matchLabels": {"a": "b"}}]}}),
        json!({"aggregationRule": null}),
    ] {
        let answer = server.send(&bob, "PATCH", &view, change).await;
        assert_eq!(answer.code, 403, "{}", answer.body);
    }
    assert_powerless(&server, &bob).await;
}

#[tokio::test]
async fn aggregated_roles_follow_their_parts() {
    let server = TestServer::start().await;
    let admin = server.admin(HUB);
    let roles = format!("{RBAC}/clusterroles");
    let ann = server.certify("ann", &[], HUB);
    grant_in(&server, HUB, "shop", "ann", "view").await;
    let path = "/api/v1/namespaces/shop/secrets";
    assert_eq!(server.send(&ann, "GET", path, Value::Null).await.code, 403);
    let label = "rbac.authorization.k8s.io/aggregate-to-view";
    let part = json!({"metadata": {"name": "part", "labels": {label: "true"}}, "rules": [
        {"apiGroups": [""], "resources": ["secrets"], "verbs": ["list"]},
    ]});
    server.send(&admin, "POST", &roles, part).await.expect(201);
    eventually("the right to see secrets", || async {
        let answer = server.send(&ann, "GET", path, Value::Null).await;
        (answer.code == 200).then_some(())
    })
    .await;
    let part = format!("{roles}/part");
    server
        .send(&admin, "DELETE", &part, Value::Null)
        .await
        .expect(200);
    eventually("the loss of that right", || async {
        let answer = server.send(&ann, "GET", path, Value::Null).await;
        (answer.code == 403).then_some(())
    })
    .await;
}

#[tokio::test]
async fn escalate_and_bind_let_those_who_may() {
    let (server, bob) = start().await;
    let admin = server.admin(HUB);
    let roles = format!("{RBAC}/clusterroles/bob");
    let more = json!({"rules": [
        {"apiGroups": ["rbac.authorization.k8s.io"], "resources": ["roles"], "verbs": ["create", "escalate"]},
        {"apiGroups": ["rbac.authorization.k8s.io"], "resources": ["rolebindings"], "verbs": ["create"]},
        {"apiGroups": ["rbac.authorization.k8s.io"], "resources": ["clusterroles"], "resourceNames": ["view"], "verbs": ["bind"]},
    ]});
    server.send(&admin, "PATCH", &roles, more).await.expect(200);
    let base = format!("{RBAC}/namespaces/default");
    let role = json!({"metadata": {"name": "x"}, "rules": secrets()});
    let path = format!("{base}/roles");
    server.send(&bob, "POST", &path, role).await.expect(201);
    let path = format!("{base}/rolebindings");
    let view = binding("view", "ClusterRole", "view", "bob");
    server.send(&bob, "POST", &path, view).await.expect(201);
    for (kind, role) in [("ClusterRole", "edit"), ("Role", "x")] {
        let body = binding("other", kind, role, "bob");
        assert_eq!(server.send(&bob, "POST", &path, body).await.code, 403);
    }
}

#[tokio::test]
async fn a_role_that_takes_for_ever_to_compare_is_refused_at_once() {
    let (server, bob) = start().await;
    let many: Vec<String> = (0..2_000).map(|number| format!("x{number}")).collect();
    let role = json!({"metadata": {"name": "huge"}, "rules": [
        {"apiGroups": many, "resources": many, "verbs": many, "resourceNames": many},
    ]});
    let path = format!("{RBAC}/namespaces/default/roles");
    let answer = server.send(&bob, "POST", &path, role).await;
    assert_eq!(answer.code, 403);
    assert!(answer.message().contains("combinations"), "{}", answer.body);
}

#[tokio::test]
async fn members_do_not_reach_each_others_namespaces() {
    let server = TestServer::start().await;
    for member in ["one", "two"] {
        grant_in(&server, HUB, member, member, "admin").await;
    }
    let one = server.certify("one", &[], HUB);
    let map = json!({"metadata": {"name": "x"}});
    let own = "/api/v1/namespaces/one/configmaps";
    server
        .send(&one, "POST", own, map.clone())
        .await
        .expect(201);
    let theirs = "/api/v1/namespaces/two/configmaps";
    let mut elsewhere = map.clone();
    elsewhere["metadata"]["namespace"] = "two".into();
    for (method, path, body) in [
        ("GET", theirs, Value::Null),
        ("POST", theirs, map),
        ("DELETE", theirs, Value::Null),
        ("GET", "/api/v1/configmaps", Value::Null),
        (
            "GET",
            "/api/v1/configmaps?fieldSelector=metadata.namespace=one",
            Value::Null,
        ),
        ("GET", "/api/v1/namespaces/two/secrets?watch=1", Value::Null),
        (
            "GET",
            "/apis/apps/v1/namespaces/two/deployments",
            Value::Null,
        ),
        (
            "POST",
            "/api/v1/namespaces/two/serviceaccounts/default/token",
            json!({}),
        ),
        ("GET", "/api/v1/namespaces/two", Value::Null),
        ("DELETE", "/api/v1/namespaces/two", Value::Null),
        ("GET", "/api/v1/nodes", Value::Null),
    ] {
        let answer = server.send(&one, method, path, body).await;
        assert_eq!(answer.code, 403, "{method} {path}: {}", answer.body);
    }
    // The path decides, whatever the body says.
    assert_eq!(server.send(&one, "POST", own, elsewhere).await.code, 400);
}

#[tokio::test]
async fn who_may_only_patch_does_not_create() {
    let server = TestServer::start().await;
    let rules = json!([{"apiGroups": ["", "rbac.authorization.k8s.io"], "resources": ["configmaps", "roles"], "verbs": ["get", "patch", "update"]}]);
    grant(&server, HUB, "pat", rules).await;
    let pat = server.certify("pat", &[], HUB);
    let apply = server
        .certify("pat", &[], HUB)
        .with("content-type", "application/apply-patch+yaml");
    let map = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "x"}});
    let path = "/api/v1/namespaces/default/configmaps/x?fieldManager=pat";
    let refused = server.send(&apply, "PATCH", path, map).await;
    assert_eq!(
        (refused.code, refused.message()),
        (
            403,
            "configmaps \"x\" is forbidden: User \"pat\" cannot create resource \"configmaps\" in API group \"\" in the namespace \"default\""
        )
    );
    let role = json!({"metadata": {"name": "x"}, "rules": []});
    let path = format!("{RBAC}/namespaces/default/roles/x");
    assert_eq!(server.send(&pat, "PUT", &path, role).await.code, 403);
}

#[tokio::test]
async fn a_definition_does_not_become_the_way_into_a_built_in_kind() {
    let server = TestServer::start().await;
    let rules = json!([
        {"apiGroups": ["apiextensions.k8s.io"], "resources": ["customresourcedefinitions"], "verbs": ["*"]},
        {"apiGroups": ["rbac.authorization.k8s.io"], "resources": ["clusterroles", "clusterrolebindings"], "verbs": ["create", "get", "update", "patch", "delete"]},
    ]);
    grant(&server, HUB, "bob", rules).await;
    let bob = server.certify("bob", &[], HUB);
    let group = "rbac.authorization.k8s.io";
    let definition = json!({
        "metadata": {
            "name": format!("clusterroles.{group}"),
            "annotations": {"api-approved.kubernetes.io": "unapproved, an attack"},
        },
        "spec": {
            "group": group, "scope": "Cluster",
            "names": {"plural": "clusterroles", "singular": "fake", "kind": "Fake", "listKind": "FakeList"},
            "versions": [{"name": "v9", "served": true, "storage": true, "schema": {"openAPIV3Schema": {
                "type": "object", "x-kubernetes-preserve-unknown-fields": true,
            }}}],
        },
    });
    let path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
    let answer = server.send(&bob, "POST", path, definition).await;
    assert_eq!(answer.code, 422, "{}", answer.body);
    // Neither a new way to write roles, nor an end of those that are there.
    let role = json!({"apiVersion": format!("{group}/v9"), "kind": "Fake", "metadata": {"name": "bob"}, "rules": all_rights()});
    let path = format!("/apis/{group}/v9/clusterroles");
    assert!(server.send(&bob, "POST", &path, role.clone()).await.code >= 400);
    let path = format!("{path}/bob");
    assert!(server.send(&bob, "PUT", &path, role).await.code >= 400);
    let path =
        format!("/apis/apiextensions.k8s.io/v1/customresourcedefinitions/clusterroles.{group}");
    server.send(&bob, "DELETE", &path, Value::Null).await;
    assert_powerless(&server, &bob).await;
}

#[tokio::test]
async fn evictions_reach_no_further_than_their_right_and_their_budget() {
    let server = TestServer::start().await;
    let admin = server.admin(HUB);
    let rules = json!([{"apiGroups": [""], "resources": ["pods/eviction"], "verbs": ["create"]}]);
    let role = json!({"metadata": {"name": "evictor"}, "rules": rules});
    let clusterwide = format!("{RBAC}/clusterroles");
    server
        .send(&admin, "POST", &clusterwide, role)
        .await
        .expect(201);
    grant_in(&server, HUB, "shop", "bob", "evictor").await;
    let bob = server.certify("bob", &[], HUB);
    let pods = "/api/v1/namespaces/shop/pods";
    let pod = json!({"metadata": {"name": "p", "labels": {"app": "a"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}});
    server.send(&admin, "POST", pods, pod).await.expect(201);
    let running = json!({"status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}});
    let merge = server.admin(HUB);
    let merge = merge.with("content-type", "application/merge-patch+json");
    let status = format!("{pods}/p/status");
    server
        .send(&merge, "PATCH", &status, running)
        .await
        .expect(200);
    let budgets = "/apis/policy/v1/namespaces/shop/poddisruptionbudgets";
    let budget = json!({"metadata": {"name": "b"}, "spec": {"minAvailable": 1, "selector": {"matchLabels": {"app": "a"}}}});
    server
        .send(&admin, "POST", budgets, budget)
        .await
        .expect(201);
    let eviction = |name: &str| json!({"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": name}});
    let path = format!("{pods}/p/eviction");
    // Nobody has said yet what the budget allows: nothing.
    let refused = server.send(&bob, "POST", &path, eviction("p")).await;
    assert_eq!(refused.code, 429, "{}", refused.body);
    // Neither another name in the body, nor the plain way, nor another namespace helps.
    assert_eq!(
        server.send(&bob, "POST", &path, eviction("q")).await.code,
        400
    );
    let plain = format!("{pods}/p");
    assert_eq!(
        server.send(&bob, "DELETE", &plain, Value::Null).await.code,
        403
    );
    let elsewhere = "/api/v1/namespaces/kube-system/pods/p/eviction";
    assert_eq!(
        server
            .send(&bob, "POST", elsewhere, eviction("p"))
            .await
            .code,
        403
    );
    // The budget is the controller's: anyone who evicts does not write it.
    let free = json!({"status": {"disruptionsAllowed": 9}});
    let item = format!("{budgets}/b/status");
    let forged = server.certify("bob", &[], HUB);
    let forged = forged.with("content-type", "application/merge-patch+json");
    assert_eq!(server.send(&forged, "PATCH", &item, free).await.code, 403);
    server
        .send(&admin, "GET", &plain, Value::Null)
        .await
        .expect(200);
    // One disruption is one disruption.
    let allowed = json!({"status": {"observedGeneration": 1, "disruptionsAllowed": 1, "currentHealthy": 2,
                                    "desiredHealthy": 1, "expectedPods": 2}});
    server
        .send(&merge, "PATCH", &item, allowed)
        .await
        .expect(200);
    server
        .send(&bob, "POST", &path, eviction("p"))
        .await
        .expect(201);
    let left = server
        .send(&admin, "GET", &format!("{budgets}/b"), Value::Null)
        .await;
    let status = &left.expect(200)["status"];
    assert_eq!(status["disruptionsAllowed"], 0, "{status}");
    assert!(status["disruptedPods"]["p"].is_string(), "{status}");
}
