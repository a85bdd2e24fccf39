//! Certificate signing requests: asked for by one, approved by another, signed by the cluster.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a test that cannot go on fails"
)]
#![allow(clippy::needless_pass_by_value, reason = "bodies are written in place")]

use crate::common;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bellwether_apiserver::{Credentials, HUB};
use common::wire::Proof;
use common::{TestServer, eventually};
use rcgen::{CertificateParams, DistinguishedName, DnType, KeyPair, SanType};
use serde_json::{Value, json};

const REQUESTS: &str = "/apis/certificates.k8s.io/v1/certificatesigningrequests";
const WHOAMI: &str = "/apis/authentication.k8s.io/v1/selfsubjectreviews";
const CLIENT: &str = "kubernetes.io/kube-apiserver-client";

/// A key, and a request for a certificate for it.
fn request(user: &str, group: &str, uris: &[&str]) -> (KeyPair, String) {
    let mut params = CertificateParams::default();
    params.distinguished_name = DistinguishedName::new();
    params.distinguished_name.push(DnType::CommonName, user);
    params
        .distinguished_name
        .push(DnType::OrganizationName, group);
    params.subject_alt_names = uris
        .iter()
        .map(|uri| SanType::URI((*uri).try_into().unwrap()))
        .collect();
    let key = KeyPair::generate().unwrap();
    let pem = params.serialize_request(&key).unwrap().pem().unwrap();
    (key, STANDARD.encode(pem))
}

fn object(name: &str, request: &str) -> Value {
    json!({
        "metadata": {"name": name},
        "spec": {"request": request, "signerName": CLIENT, "usages": ["client auth"]},
    })
}

fn decision(kind: &str) -> Value {
    json!({"status": {"conditions": [
        {"type": kind, "status": "True", "reason": "Test", "message": "because"},
    ]}})
}

async fn decide(server: &TestServer, by: &Proof, name: &str, kind: &str) -> common::wire::Answer {
    let path = format!("{REQUESTS}/{name}/approval");
    server.send(by, "PATCH", &path, decision(kind)).await
}

async fn certificate(server: &TestServer, admin: &Proof, name: &str) -> String {
    let path = format!("{REQUESTS}/{name}");
    let encoded = eventually("a certificate", || async {
        let answer = server.send(admin, "GET", &path, Value::Null).await;
        answer.body["status"]["certificate"]
            .as_str()
            .map(str::to_owned)
    })
    .await;
    String::from_utf8(STANDARD.decode(encoded).unwrap()).unwrap()
}

/// Lets a user create requests, and see them.
async fn let_ask(server: &TestServer, admin: &Proof, user: &str) {
    let role = json!({"metadata": {"name": "asker"}, "rules": [{
        "apiGroups": ["certificates.k8s.io"], "resources": ["certificatesigningrequests", "certificatesigningrequests/approval", "certificatesigningrequests/status"],
        "verbs": ["create", "get", "list", "watch", "update", "patch"],
    }]});
    let binding = json!({
        "metadata": {"name": "asker"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "asker"},
        "subjects": [{"kind": "User", "apiGroup": "rbac.authorization.k8s.io", "name": user}],
    });
    let group = "/apis/rbac.authorization.k8s.io/v1";
    let roles = format!("{group}/clusterroles");
    let bindings = format!("{group}/clusterrolebindings");
    server.send(admin, "POST", &roles, role).await.expect(201);
    server
        .send(admin, "POST", &bindings, binding)
        .await
        .expect(201);
}

#[tokio::test]
async fn an_approved_request_becomes_a_certificate_that_lets_in() {
    let server = TestServer::start().await;
    let admin = server.admin(HUB);
    let bob = server.certify("bob", &["devs"], HUB);
    let_ask(&server, &admin, "bob").await;
    let (key, pem) = request("ann", "writers", &[]);
    let mut wanted = object("ann", &pem);
    wanted["spec"]["username"] = "root".into();
    wanted["spec"]["groups"] = json!(["system:masters"]);
    wanted["spec"]["expirationSeconds"] = 3_600.into();
    let created = server
        .send(&bob, "POST", REQUESTS, wanted)
        .await
        .expect(201);
    // Who asks is what the server knows, whatever the request says.
    assert_eq!(created["spec"]["username"], "bob");
    assert_eq!(
        created["spec"]["groups"],
        json!(["devs", "system:authenticated"])
    );

    let refused = decide(&server, &bob, "ann", "Approved").await;
    assert_eq!(
        (refused.code, refused.message()),
        (
            403,
            "certificatesigningrequests.certificates.k8s.io \"ann\" is forbidden: user not permitted to approve requests with signerName \"kubernetes.io/kube-apiserver-client\""
        )
    );
    decide(&server, &admin, "ann", "Approved").await.expect(200);
    let issued = certificate(&server, &admin, "ann").await;
    let ann = Proof::certificate(Credentials {
        certificate: issued,
        key: key.serialize_pem(),
    });
    let whoami = server
        .send(&ann, "POST", WHOAMI, json!({}))
        .await
        .expect(201);
    let user = &whoami["status"]["userInfo"];
    assert_eq!(user["username"], "ann");
    assert_eq!(user["groups"], json!(["writers", "system:authenticated"]));
    let elsewhere = format!("/clusters/cluster1{WHOAMI}");
    assert_eq!(
        server.send(&ann, "POST", &elsewhere, json!({})).await.code,
        401
    );
}

#[tokio::test]
async fn a_denied_request_is_not_signed_and_a_decision_is_final() {
    let server = TestServer::start().await;
    let admin = server.admin(HUB);
    let (_, pem) = request("ann", "writers", &[]);
    server
        .send(&admin, "POST", REQUESTS, object("ann", &pem))
        .await
        .expect(201);
    decide(&server, &admin, "ann", "Denied").await.expect(200);
    let changed = decide(&server, &admin, "ann", "Approved").await;
    assert_eq!(changed.code, 422, "{}", changed.body);
    let path = format!("{REQUESTS}/ann");
    let spec = json!({"spec": {"username": "root", "signerName": "example.com/x"}});
    let after = server.send(&admin, "PATCH", &path, spec).await.expect(200);
    assert_eq!(after["spec"]["username"], "root");
    assert_eq!(after["spec"]["signerName"], CLIENT);
    assert!(after["status"]["certificate"].is_null());
}

#[tokio::test]
async fn a_request_that_cannot_be_signed_fails_visibly() {
    let server = TestServer::start().await;
    let admin = server.admin(HUB);
    let (_, pem) = request("ann", "writers", &[]);
    let mut wanted = object("ann", &pem);
    wanted["spec"]["usages"] = json!(["server auth"]);
    server
        .send(&admin, "POST", REQUESTS, wanted)
        .await
        .expect(201);
    decide(&server, &admin, "ann", "Approved").await.expect(200);
    let path = format!("{REQUESTS}/ann");
    let failed = eventually("a failure", || async {
        let answer = server.send(&admin, "GET", &path, Value::Null).await;
        let conditions = answer.body["status"]["conditions"].as_array()?.clone();
        conditions
            .into_iter()
            .find(|found| found["type"] == "Failed")
    })
    .await;
    assert_eq!(failed["reason"], "SignerValidationFailure");
    assert_eq!(
        failed["message"],
        "invalid usage for client certificate: server auth"
    );
}

#[tokio::test]
async fn certificates_of_other_signers_come_from_users_who_may_sign() {
    let server = TestServer::start().await;
    let admin = server.admin(HUB);
    let bob = server.certify("bob", &[], HUB);
    let_ask(&server, &admin, "bob").await;
    let (_, pem) = request("ann", "writers", &[]);
    let mut wanted = object("ann", &pem);
    wanted["spec"]["signerName"] = "example.com/mine".into();
    server
        .send(&admin, "POST", REQUESTS, wanted)
        .await
        .expect(201);
    let path = format!("{REQUESTS}/ann/status");
    let issue = json!({"status": {"certificate": STANDARD.encode("-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n")}});
    let refused = server.send(&bob, "PATCH", &path, issue.clone()).await;
    assert_eq!(
        (refused.code, refused.message()),
        (
            403,
            "certificatesigningrequests.certificates.k8s.io \"ann\" is forbidden: user not permitted to sign requests with signerName \"example.com/mine\""
        )
    );
    let role = json!({"rules": [
        {"apiGroups": ["certificates.k8s.io"], "resources": ["certificatesigningrequests/status"], "verbs": ["patch"]},
        {"apiGroups": ["certificates.k8s.io"], "resources": ["signers"], "resourceNames": ["example.com/*"], "verbs": ["sign"]},
    ]});
    let asker = "/apis/rbac.authorization.k8s.io/v1/clusterroles/asker";
    server.send(&admin, "PATCH", asker, role).await.expect(200);
    server.send(&bob, "PATCH", &path, issue).await.expect(200);
}

#[tokio::test]
async fn requests_go_a_day_after_nobody_decided() {
    let server = TestServer::start().await;
    let admin = server.admin(HUB);
    let (_, pem) = request("ann", "writers", &[]);
    server
        .send(&admin, "POST", REQUESTS, object("old", &pem))
        .await
        .expect(201);
    server.pass(jiff::SignedDuration::from_hours(25));
    server
        .send(&admin, "POST", REQUESTS, object("new", &pem))
        .await
        .expect(201);
    let path = format!("{REQUESTS}/old");
    eventually("the end of the old one", || async {
        let answer = server.send(&admin, "GET", &path, Value::Null).await;
        (answer.code == 404).then_some(())
    })
    .await;
    let path = format!("{REQUESTS}/new");
    server
        .send(&admin, "GET", &path, Value::Null)
        .await
        .expect(200);
}
