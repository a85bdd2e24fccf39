//! Bearer tokens: of service accounts, in Secrets, and for bootstrapping.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a test that cannot go on fails"
)]
#![allow(clippy::needless_pass_by_value, reason = "bodies are written in place")]

use crate::common;

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use bellwether_apiserver::{BootstrapToken, HUB};
use common::wire::Proof;
use common::{TestServer, eventually};
use serde_json::{Value, json};

const ACCOUNTS: &str = "/api/v1/namespaces/default/serviceaccounts";
const SECRETS: &str = "/api/v1/namespaces/default/secrets";
const REVIEWS: &str = "/apis/authentication.k8s.io/v1/tokenreviews";
const WHOAMI: &str = "/apis/authentication.k8s.io/v1/selfsubjectreviews";

/// A server whose hub has the account `bot`.
async fn start() -> (TestServer, Proof) {
    let server = TestServer::start().await;
    let admin = server.admin(HUB);
    let account = json!({"metadata": {"name": "bot"}});
    server
        .send(&admin, "POST", ACCOUNTS, account)
        .await
        .expect(201);
    (server, admin)
}

async fn request_token(server: &TestServer, admin: &Proof, spec: Value) -> Value {
    let path = format!("{ACCOUNTS}/bot/token");
    server
        .send(admin, "POST", &path, json!({"spec": spec}))
        .await
        .expect(201)
}

fn token_of(answer: &Value) -> String {
    answer["status"]["token"].as_str().unwrap().to_owned()
}

async fn review(server: &TestServer, admin: &Proof, spec: Value) -> Value {
    let answer = server
        .send(admin, "POST", REVIEWS, json!({"spec": spec}))
        .await;
    answer.expect(201)["status"].clone()
}

#[tokio::test]
async fn a_requested_token_is_its_account() {
    let (server, admin) = start().await;
    let answer = request_token(&server, &admin, json!({})).await;
    assert_eq!(answer["kind"], "TokenRequest");
    assert_eq!(answer["metadata"]["name"], "bot");
    assert_eq!(answer["spec"]["expirationSeconds"], 3_600);
    let token = token_of(&answer);
    let claims = token.split('.').nth(1).unwrap();
    let claims: Value = serde_json::from_slice(&URL_SAFE_NO_PAD.decode(claims).unwrap()).unwrap();
    assert_eq!(claims["sub"], "system:serviceaccount:default:bot");
    assert_eq!(claims["kubernetes.io"]["namespace"], "default");
    assert_eq!(
        claims["exp"].as_i64(),
        claims["iat"].as_i64().map(|at| at + 3_600)
    );
    assert!(claims["iss"].as_str().unwrap().ends_with("/clusters/hub"));

    let whoami = server
        .send(&Proof::token(&token), "POST", WHOAMI, json!({}))
        .await
        .expect(201);
    let user = &whoami["status"]["userInfo"];
    assert_eq!(user["username"], "system:serviceaccount:default:bot");
    assert_eq!(user["uid"], answer["metadata"]["uid"]);
    assert_eq!(
        user["groups"],
        json!([
            "system:serviceaccounts",
            "system:serviceaccounts:default",
            "system:authenticated"
        ])
    );
    let id = format!("JTI={}", claims["jti"].as_str().unwrap());
    assert_eq!(
        user["extra"]["authentication.kubernetes.io/credential-id"],
        json!([id])
    );
    let refused = server
        .send(&Proof::token(&token), "GET", SECRETS, Value::Null)
        .await;
    assert_eq!(
        (refused.code, refused.message()),
        (
            403,
            "secrets is forbidden: User \"system:serviceaccount:default:bot\" cannot list resource \"secrets\" in API group \"\" in the namespace \"default\""
        )
    );
}

#[tokio::test]
async fn token_requests_are_checked_as_in_kubernetes() {
    let (server, admin) = start().await;
    let path = format!("{ACCOUNTS}/bot/token");
    server
        .send(&admin, "POST", SECRETS, json!({"metadata": {"name": "s"}}))
        .await
        .expect(201);
    let cases = [
        (
            json!({"spec": {"expirationSeconds": 60}}),
            422,
            "TokenRequest.authentication.k8s.io \"\" is invalid: spec.expirationSeconds: Invalid value: 60: may not specify a duration less than 10 minutes",
        ),
        (
            json!({"spec": {"expirationSeconds": 9_999_999_999_i64}}),
            422,
            "TokenRequest.authentication.k8s.io \"\" is invalid: spec.expirationSeconds: Invalid value: 9999999999: may not specify a duration larger than 2^32 seconds",
        ),
        (
            json!({"metadata": {"name": "x"}, "spec": {}}),
            422,
            "TokenRequest.authentication.k8s.io \"bot\" is invalid: metadata.name: Invalid value: \"x\": must match the service account name if specified",
        ),
        (
            json!({"metadata": {"namespace": "x"}, "spec": {}}),
            400,
            "the namespace of the provided object does not match the namespace sent on the request",
        ),
        (
            json!({"spec": {"boundObjectRef": {"kind": "Pod", "apiVersion": "v1", "name": "nope"}}}),
            404,
            "pods \"nope\" not found",
        ),
        (
            json!({"spec": {"boundObjectRef": {"kind": "ConfigMap", "apiVersion": "v1", "name": "x"}}}),
            400,
            "cannot bind token to object of type /v1, Kind=ConfigMap",
        ),
        (
            json!({"spec": {"boundObjectRef": {"kind": "Secret", "apiVersion": "v1", "name": "s", "uid": "zzz"}}}),
            409,
            "Operation cannot be fulfilled on Secret \"s\": the UID in the bound object reference (zzz) does not match the UID in record. The object might have been deleted and then recreated",
        ),
        (
            json!({"kind": "Pod", "apiVersion": "v1"}),
            400,
            "Pod in version \"v1\" cannot be handled as a TokenRequest: converting (v1.Pod) to (authentication.TokenRequest): unknown conversion",
        ),
        (
            json!({"kind": "TokenRequest", "apiVersion": "v1"}),
            400,
            "TokenRequest in version \"v1\" cannot be handled as a TokenRequest: no kind \"TokenRequest\" is registered for version \"v1\" in scheme \"pkg/runtime/scheme.go:111\"",
        ),
        (
            json!({"spec": {"audiences": "x"}}),
            400,
            "TokenRequest in version \"v1\" cannot be handled as a TokenRequest: json: cannot unmarshal string into Go struct field TokenRequestSpec.spec.audiences of type []string",
        ),
    ];
    for (body, code, message) in cases {
        let answer = server.send(&admin, "POST", &path, body.clone()).await;
        assert_eq!((answer.code, answer.message()), (code, message), "{body}");
    }
    let absent = format!("{ACCOUNTS}/nope/token");
    let answer = server.send(&admin, "POST", &absent, json!({})).await;
    assert_eq!(answer.message(), "serviceaccounts \"nope\" not found");
    assert_eq!(
        server.send(&admin, "GET", &path, Value::Null).await.code,
        405
    );
}

#[tokio::test]
async fn a_token_is_good_for_its_audiences_only() {
    let (server, admin) = start().await;
    let token = token_of(&request_token(&server, &admin, json!({"audiences": ["vault"]})).await);
    let proof = Proof::token(&token);
    assert_eq!(
        server
            .send(&proof, "GET", "/version", Value::Null)
            .await
            .code,
        401
    );
    let good = review(
        &server,
        &admin,
        json!({"token": token, "audiences": ["vault", "x"]}),
    )
    .await;
    assert_eq!(good["authenticated"], true);
    assert_eq!(good["audiences"], json!(["vault"]));
    let bad = review(&server, &admin, json!({"token": token})).await;
    assert_eq!(bad["user"], json!({}));
    assert_eq!(
        bad["error"],
        "[invalid bearer token, token audiences [\"vault\"] is invalid for the target audiences [\"https://kubernetes.default.svc.cluster.local\"]]"
    );
    let garbage = review(&server, &admin, json!({"token": "garbage"})).await;
    assert_eq!(garbage["error"], "invalid bearer token");
    let nothing = server
        .send(&admin, "POST", REVIEWS, json!({"spec": {}}))
        .await;
    assert_eq!(
        (nothing.code, nothing.message()),
        (400, "token is required for TokenReview in authentication")
    );
}

#[tokio::test]
async fn a_secret_of_the_type_gets_a_token_and_goes_with_its_account() {
    let (server, admin) = start().await;
    let secret = json!({
        "metadata": {"name": "legacy", "annotations": {"kubernetes.io/service-account.name": "bot"}},
        "type": "kubernetes.io/service-account-token",
    });
    server
        .send(&admin, "POST", SECRETS, secret)
        .await
        .expect(201);
    let path = format!("{SECRETS}/legacy");
    let data = eventually("a token in the secret", || async {
        let answer = server.send(&admin, "GET", &path, Value::Null).await;
        Some(answer.body["data"].clone()).filter(|data| data["token"].is_string())
    })
    .await;
    let text = |key: &str| {
        let bytes = STANDARD.decode(data[key].as_str().unwrap()).unwrap();
        String::from_utf8(bytes).unwrap()
    };
    assert_eq!(text("namespace"), "default");
    assert!(text("ca.crt").starts_with("-----BEGIN CERTIFICATE-----"));
    let proof = Proof::token(text("token"));
    server
        .send(&proof, "POST", WHOAMI, json!({}))
        .await
        .expect(201);

    let account = format!("{ACCOUNTS}/bot");
    server
        .send(&admin, "DELETE", &account, Value::Null)
        .await
        .expect(200);
    assert_eq!(
        server.send(&proof, "POST", WHOAMI, json!({})).await.code,
        401
    );
    eventually("the end of the secret", || async {
        let answer = server.send(&admin, "GET", &path, Value::Null).await;
        (answer.code == 404).then_some(())
    })
    .await;
}

#[tokio::test]
async fn bootstrap_tokens_let_newcomers_in() {
    let server = TestServer::start().await;
    let admin = server.admin(HUB);
    let path = "/api/v1/namespaces/kube-system/secrets";
    let minted = BootstrapToken::generate().unwrap();
    let secret = minted.to_secret("a test", &["system:bootstrappers:members"], None);
    server.send(&admin, "POST", path, secret).await.expect(201);
    let written = json!({
        "metadata": {"name": "bootstrap-token-abcdef"}, "type": "bootstrap.kubernetes.io/token",
        "stringData": {
            "token-id": "abcdef", "token-secret": "0123456789abcdef",
            "usage-bootstrap-authentication": "true",
        },
    });
    server.send(&admin, "POST", path, written).await.expect(201);

    let proof = Proof::token(minted.reveal());
    let whoami = server
        .send(&proof, "POST", WHOAMI, json!({}))
        .await
        .expect(201);
    let user = &whoami["status"]["userInfo"];
    assert_eq!(
        user["username"],
        format!("system:bootstrap:{}", minted.id())
    );
    assert_eq!(
        user["groups"],
        json!([
            "system:bootstrappers",
            "system:bootstrappers:members",
            "system:authenticated"
        ])
    );
    let written = Proof::token("abcdef.0123456789abcdef");
    server
        .send(&written, "POST", WHOAMI, json!({}))
        .await
        .expect(201);
    // A token of the hub is nobody's elsewhere.
    let elsewhere = format!("/clusters/cluster1{WHOAMI}");
    assert_eq!(
        server
            .send(&proof, "POST", &elsewhere, json!({}))
            .await
            .code,
        401
    );
    for wrong in ["abcdef.0123456789abcdeg", "abcdeg.0123456789abcdef"] {
        let proof = Proof::token(wrong);
        assert_eq!(
            server.send(&proof, "POST", WHOAMI, json!({})).await.code,
            401
        );
    }
    // Without the usage it is of no use.
    let item = format!("{path}/bootstrap-token-abcdef");
    let unused = json!({"data": {"usage-bootstrap-authentication": null}});
    server
        .send(&admin, "PATCH", &item, unused)
        .await
        .expect(200);
    assert_eq!(
        server.send(&written, "POST", WHOAMI, json!({})).await.code,
        401
    );
}

#[tokio::test]
async fn an_expired_bootstrap_token_is_removed() {
    let server = TestServer::start().await;
    let admin = server.admin(HUB);
    let path = "/api/v1/namespaces/kube-system/secrets";
    let token = BootstrapToken::generate().unwrap();
    let past = "2020-01-01T00:00:00Z".parse().unwrap();
    let secret = token.to_secret("long ago", &[], Some(past));
    server.send(&admin, "POST", path, secret).await.expect(201);
    let proof = Proof::token(token.reveal());
    assert_eq!(
        server.send(&proof, "POST", WHOAMI, json!({})).await.code,
        401
    );
    let item = format!("{path}/bootstrap-token-{}", token.id());
    eventually("the end of the secret", || async {
        let answer = server.send(&admin, "GET", &item, Value::Null).await;
        (answer.code == 404).then_some(())
    })
    .await;
}

#[tokio::test]
async fn the_public_key_of_tokens_is_published() {
    let (server, admin) = start().await;
    let keys = server
        .send(&admin, "GET", "/openid/v1/jwks", Value::Null)
        .await
        .expect(200);
    assert_eq!(keys["keys"][0]["crv"], "P-256");
    let path = "/clusters/cluster1/.well-known/openid-configuration";
    let admin = server.admin("cluster1");
    let found = server
        .send(&admin, "GET", path, Value::Null)
        .await
        .expect(200);
    assert!(
        found["issuer"]
            .as_str()
            .unwrap()
            .ends_with("/clusters/cluster1")
    );
}
