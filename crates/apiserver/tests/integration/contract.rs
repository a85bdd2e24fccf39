//! The same questions about access to our server and, where `KUBEBUILDER_ASSETS` points at one, to a
//! real kube-apiserver: codes, reasons and messages have to be the same.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a test that cannot go on fails"
)]
#![allow(clippy::needless_pass_by_value, reason = "bodies are written in place")]

use crate::common;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use common::contract::{Question, ask, both, compare, root};
use common::eventually;
use rcgen::{CertificateParams, DistinguishedName, DnType, KeyPair};
use serde_json::{Value, json};

const RBAC: &str = "/apis/rbac.authorization.k8s.io/v1";
const LOCAL: &str = "/apis/rbac.authorization.k8s.io/v1/namespaces/default";
const ACCESS: &str = "/apis/authorization.k8s.io/v1";
const REQUESTS: &str = "/apis/certificates.k8s.io/v1/certificatesigningrequests";
const TOKEN: &str = "/api/v1/namespaces/default/serviceaccounts/bot/token";
const REVIEWS: &str = "/apis/authentication.k8s.io/v1/tokenreviews";
const WHOAMI: &str = "/apis/authentication.k8s.io/v1/selfsubjectreviews";

/// What bob asks.
fn bob(method: &'static str, path: impl Into<String>, body: Value) -> Question {
    root(method, path, body)
        .with("impersonate-user", "bob")
        .with("impersonate-group", "devs")
}

fn role(name: &str, rules: Value) -> Value {
    json!({"metadata": {"name": name}, "rules": rules})
}

fn binding(name: &str, kind: &str, role: &str) -> Value {
    let group = "rbac.authorization.k8s.io";
    json!({
        "metadata": {"name": name},
        "roleRef": {"apiGroup": group, "kind": kind, "name": role},
        "subjects": [{"kind": "User", "apiGroup": group, "name": "bob"}],
    })
}

/// Bob may write roles and bindings, read pods, and handle certificate signing requests.
async fn prepare(client: &kube::Client) {
    let rules = json!([
        {"apiGroups": ["rbac.authorization.k8s.io"],
         "resources": ["roles", "rolebindings", "clusterroles", "clusterrolebindings"],
         "verbs": ["create", "get", "update", "patch"]},
        {"apiGroups": [""], "resources": ["pods", "pods/log"], "verbs": ["get", "list"]},
        {"apiGroups": ["certificates.k8s.io"],
         "resources": ["certificatesigningrequests", "certificatesigningrequests/approval"],
         "verbs": ["create", "get", "update", "patch"]},
    ]);
    for question in [
        root("POST", format!("{RBAC}/clusterroles"), role("bobs", rules)),
        root(
            "POST",
            format!("{RBAC}/clusterrolebindings"),
            binding("bobs", "ClusterRole", "bobs"),
        ),
        root(
            "POST",
            "/api/v1/namespaces/default/serviceaccounts",
            json!({"metadata": {"name": "bot"}}),
        ),
    ] {
        let (code, _, body) = ask(client, &question).await;
        assert_eq!(code, 201, "{body}");
    }
    let question = bob(
        "POST",
        format!("{ACCESS}/selfsubjectaccessreviews"),
        json!({"spec": {"resourceAttributes": {"verb": "list", "resource": "pods"}}}),
    );
    eventually("bob's rights", || async {
        let (_, _, answer) = ask(client, &question).await;
        (answer["status"]["allowed"] == true).then_some(())
    })
    .await;
}

fn signing_request(group: &str) -> Value {
    let mut params = CertificateParams::default();
    params.distinguished_name = DistinguishedName::new();
    params.distinguished_name.push(DnType::CommonName, "ann");
    params
        .distinguished_name
        .push(DnType::OrganizationName, group);
    let key = KeyPair::generate().unwrap();
    let pem = params.serialize_request(&key).unwrap().pem().unwrap();
    json!({
        "metadata": {"name": "ann"},
        "spec": {
            "request": STANDARD.encode(pem), "usages": ["client auth"],
            "signerName": "kubernetes.io/kube-apiserver-client",
        },
    })
}

/// Roles and bindings.
fn about_roles() -> Vec<Question> {
    let secrets =
        || json!([{"apiGroups": [""], "resources": ["secrets"], "verbs": ["get", "list"]}]);
    let pods = || json!([{"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]}]);
    let roles = format!("{LOCAL}/roles");
    let bindings = format!("{LOCAL}/rolebindings");
    let everywhere = format!("{RBAC}/clusterroles");
    let mixed = json!([
        {"apiGroups": ["", "apps"], "resources": ["pods", "*"], "verbs": ["get", "*"], "resourceNames": ["a", "b"]},
        {"apiGroups": [""], "resources": ["pods"], "verbs": ["get", "watch"]},
    ]);
    vec![
        bob("POST", &roles, role("own", pods())),
        bob("POST", &roles, role("more", secrets())),
        bob("POST", &roles, role("mixed", mixed)),
        bob("PUT", format!("{roles}/own"), role("own", secrets())),
        bob("PUT", format!("{roles}/absent"), role("absent", secrets())),
        bob("PATCH", format!("{roles}/own"), json!({"rules": secrets()})),
        bob(
            "PATCH",
            format!("{roles}/own"),
            json!({"metadata": {"labels": {"a": "b"}}}),
        ),
        bob(
            "POST",
            &everywhere,
            role(
                "paths",
                json!([{"nonResourceURLs": ["/metrics"], "verbs": ["get"]}]),
            ),
        ),
        bob(
            "POST",
            &everywhere,
            json!({
                "metadata": {"name": "gather"}, "rules": [],
                "aggregationRule": {"clusterRoleSelectors": [{"matchLabels": {"a": "b"}}]},
            }),
        ),
        bob("POST", &bindings, binding("own", "Role", "own")),
        bob(
            "POST",
            &bindings,
            binding("x", "ClusterRole", "cluster-admin"),
        ),
        bob("POST", &bindings, binding("x", "ClusterRole", "absent")),
        bob("POST", &bindings, binding("x", "Role", "absent")),
        bob("POST", &bindings, binding("x", "User", "bob")),
        bob(
            "POST",
            format!("{RBAC}/clusterrolebindings"),
            binding("x", "ClusterRole", "cluster-admin"),
        ),
        bob(
            "POST",
            format!("{RBAC}/clusterrolebindings"),
            binding("x", "ClusterRole", "bobs"),
        ),
        root(
            "POST",
            &roles,
            role("wrong", json!([{"apiGroups": [""], "resources": ["pods"]}])),
        ),
    ]
}

/// Reviews, impersonation, and plain refusals.
fn about_rights() -> Vec<Question> {
    let own = format!("{ACCESS}/selfsubjectaccessreviews");
    let others = format!("{ACCESS}/subjectaccessreviews");
    let local = format!("{ACCESS}/namespaces/default/localsubjectaccessreviews");
    let resource = |verb: &str, resource: &str| json!({"namespace": "default", "verb": verb, "resource": resource});
    let path = json!({"path": "/healthz", "verb": "get"});
    vec![
        bob(
            "POST",
            &own,
            json!({"spec": {"resourceAttributes": resource("list", "pods")}}),
        ),
        bob(
            "POST",
            &own,
            json!({"spec": {"resourceAttributes": resource("list", "nodes")}}),
        ),
        bob(
            "POST",
            &own,
            json!({"spec": {"nonResourceAttributes": path}}),
        ),
        bob("POST", &own, json!({"spec": {}})),
        bob(
            "POST",
            &own,
            json!({"spec": {"nonResourceAttributes": path, "resourceAttributes": resource("list", "pods")}}),
        ),
        root(
            "POST",
            &others,
            json!({"spec": {"user": "bob", "resourceAttributes": resource("get", "pods")}}),
        ),
        root(
            "POST",
            &others,
            json!({"spec": {"resourceAttributes": resource("get", "pods")}}),
        ),
        root(
            "POST",
            &local,
            json!({"spec": {"user": "bob", "resourceAttributes": resource("get", "pods")}}),
        ),
        root(
            "POST",
            &local,
            json!({"spec": {"user": "bob", "resourceAttributes": {"namespace": "x", "verb": "get"}}}),
        ),
        root(
            "POST",
            &local,
            json!({"spec": {"user": "bob", "nonResourceAttributes": path}}),
        ),
        bob(
            "POST",
            &others,
            json!({"spec": {"user": "bob", "resourceAttributes": resource("get", "pods")}}),
        ),
        bob(
            "POST",
            format!("{ACCESS}/selfsubjectrulesreviews"),
            json!({"spec": {}}),
        ),
        root("POST", WHOAMI, json!({})).with("impersonate-group", "a"),
        root("POST", WHOAMI, json!({})).with("impersonate-uid", "a"),
        root("POST", WHOAMI, json!({})).with("impersonate-extra-x", "a"),
        bob("GET", "/api/v1/namespaces/default/secrets", Value::Null),
        bob("GET", "/api/v1/namespaces/default/secrets/x", Value::Null),
        bob("DELETE", "/api/v1/namespaces/default/secrets", Value::Null),
        bob("GET", "/api/v1/secrets?watch=1", Value::Null),
        bob(
            "GET",
            "/api/v1/namespaces/default/secrets?fieldSelector=metadata.name=x",
            Value::Null,
        ),
        bob(
            "PATCH",
            "/api/v1/namespaces/default/configmaps/x",
            json!({}),
        ),
        bob("GET", "/api/v1/namespaces/default", Value::Null),
        bob("GET", "/metrics", Value::Null),
        bob("POST", "/apis/absent.example.com/v1/things", json!({})),
    ]
}

/// Tokens and certificates.
fn about_credentials() -> Vec<Question> {
    let bound = |kind: &str| json!({"spec": {"boundObjectRef": {"kind": kind, "apiVersion": "v1", "name": "absent"}}});
    let approve = || json!({"status": {"conditions": [{"type": "Approved", "status": "True", "reason": "x", "message": "x"}]}});
    let broken = STANDARD.encode("garbage");
    let mut garbage = signing_request("devs");
    garbage["spec"]["request"] = broken.into();
    vec![
        root("POST", TOKEN, json!({"spec": {"expirationSeconds": 60}})),
        root(
            "POST",
            TOKEN,
            json!({"spec": {"expirationSeconds": 9_999_999_999_i64}}),
        ),
        root(
            "POST",
            TOKEN,
            json!({"metadata": {"name": "x"}, "spec": {}}),
        ),
        root(
            "POST",
            TOKEN,
            json!({"metadata": {"namespace": "x"}, "spec": {}}),
        ),
        root("POST", TOKEN, bound("Pod")),
        root("POST", TOKEN, bound("Secret")),
        root("POST", TOKEN, bound("Node")),
        root("POST", TOKEN, bound("ConfigMap")),
        root("POST", TOKEN, json!({"kind": "Pod", "apiVersion": "v1"})),
        root("POST", TOKEN, json!({"spec": {"audiences": "x"}})),
        root(
            "POST",
            format!("{TOKEN}?fieldValidation=Strict"),
            json!({"spec": {"x": 1}}),
        ),
        root("POST", TOKEN.replace("bot", "absent"), json!({})),
        root("GET", TOKEN, Value::Null),
        root("POST", REVIEWS, json!({"spec": {"token": "garbage"}})),
        root("POST", REVIEWS, json!({"spec": {}})),
        bob("POST", REQUESTS, signing_request("system:masters")),
        bob("POST", REQUESTS, garbage),
        bob("POST", REQUESTS, signing_request("devs")),
        bob("PATCH", format!("{REQUESTS}/ann/approval"), approve()),
        root(
            "PATCH",
            format!("{REQUESTS}/ann/status"),
            json!({"status": {"certificate": STANDARD.encode("x")}}),
        ),
        root("PATCH", format!("{REQUESTS}/ann/approval"), approve()),
        root(
            "PATCH",
            format!("{REQUESTS}/ann/approval"),
            json!({"status": {"conditions": []}}),
        ),
        root(
            "PATCH",
            format!("{REQUESTS}/ann"),
            json!({"status": {"conditions": []}}),
        ),
    ]
}

/// Requests that are too large, hold too much, or are wrong in many places.
fn about_sizes() -> Vec<Question> {
    const MAPS: &str = "/api/v1/namespaces/default/configmaps";
    const PODS: &str = "/api/v1/namespaces/default/pods";
    const JSON_PATCH: &str = "application/json-patch+json";
    let map = |name: &str, size: usize| json!({"metadata": {"name": name}, "data": {"a": "x".repeat(size)}});
    let long_role = |name: &str, size: usize| {
        let rule = json!({
            "apiGroups": [""], "resources": ["pods"], "verbs": ["get"],
            "resourceNames": ["x".repeat(size)],
        });
        role(name, json!([rule]))
    };
    let pod = |containers: usize| {
        let container = json!({"name": "c", "image": "i"});
        json!({
            "metadata": {"name": "p"},
            "spec": {"containers": vec![container; containers]},
        })
    };
    let nothing = json!({"op": "test", "path": "/metadata/name", "value": "small"});
    let copy = json!({"op": "copy", "from": "/data", "path": "/data/a"});
    let json_patch = |operation: &Value, count: usize| {
        let patch = Value::from(vec![operation.clone(); count]);
        root("PATCH", format!("{MAPS}/small"), patch).by(JSON_PATCH)
    };
    let roles = format!("{RBAC}/clusterroles");
    vec![
        root("POST", MAPS, map("small", 500_000)),
        root("POST", MAPS, map("long", 1_100_000)),
        root("POST", MAPS, map("longer", 4_000_000)),
        root("POST", roles.as_str(), long_role("fits", 1_400_000)),
        root("POST", roles.as_str(), long_role("large", 1_700_000)),
        root("PUT", format!("{roles}/fits"), long_role("fits", 1_700_000)),
        root("POST", PODS, pod(40)),
        json_patch(&nothing, 10_000),
        json_patch(&nothing, 10_001),
        json_patch(&copy, 30),
    ]
}

#[tokio::test]
async fn sizes_are_limited_as_by_kubernetes() {
    let Some((_real, theirs, _server, ours)) = both().await else {
        return;
    };
    let different = compare(&theirs, &ours, &about_sizes()).await;
    let short = |text: &String| text.chars().take(2_000).collect::<String>();
    let different: Vec<String> = different.iter().map(short).collect();
    assert!(different.is_empty(), "{}", different.join("\n"));
}

#[tokio::test]
async fn access_is_refused_in_the_same_words_as_by_kubernetes() {
    let Some((_real, theirs, _server, ours)) = both().await else {
        return;
    };
    prepare(&theirs).await;
    prepare(&ours).await;
    let mut different = Vec::new();
    for questions in [about_roles(), about_rights(), about_credentials()] {
        different.extend(compare(&theirs, &ours, &questions).await);
    }
    assert!(different.is_empty(), "{}", different.join("\n"));
}
