//! Tokens that are stolen, old, forged, or of another cluster.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bellwether_apiserver::{BootstrapToken, HUB};
use jiff::SignedDuration;
use serde_json::{Value, json};

use super::WHOAMI;
use crate::common::TestServer;
use crate::common::wire::Proof;

async fn account_token(server: &TestServer, cluster: &str, spec: Value) -> String {
    let admin = server.admin(cluster);
    let base = format!("/clusters/{cluster}/api/v1/namespaces/default/serviceaccounts");
    let account = json!({"metadata": {"name": "bot"}});
    // It may be there already.
    server.send(&admin, "POST", &base, account).await;
    let path = format!("{base}/bot/token");
    let answer = server
        .send(&admin, "POST", &path, json!({"spec": spec}))
        .await
        .expect(201);
    answer["status"]["token"].as_str().unwrap().to_owned()
}

async fn code(server: &TestServer, token: &str, cluster: &str) -> u16 {
    let path = format!("/clusters/{cluster}{WHOAMI}");
    let answer = server
        .send(&Proof::token(token), "POST", &path, json!({}))
        .await;
    answer.code
}

#[tokio::test]
async fn a_stolen_token_ends_with_its_account_even_if_that_comes_back() {
    let server = TestServer::start().await;
    let admin = server.admin(HUB);
    let token = account_token(&server, HUB, json!({})).await;
    assert_eq!(code(&server, &token, HUB).await, 201);
    let path = "/api/v1/namespaces/default/serviceaccounts/bot";
    server
        .send(&admin, "DELETE", path, Value::Null)
        .await
        .expect(200);
    assert_eq!(code(&server, &token, HUB).await, 401);
    let fresh = account_token(&server, HUB, json!({})).await;
    assert_eq!(code(&server, &fresh, HUB).await, 201);
    assert_eq!(code(&server, &token, HUB).await, 401);
}

#[tokio::test]
async fn a_bound_token_ends_with_what_it_is_bound_to() {
    let server = TestServer::start().await;
    let admin = server.admin(HUB);
    let secrets = "/api/v1/namespaces/default/secrets";
    let secret = json!({"metadata": {"name": "s"}});
    server
        .send(&admin, "POST", secrets, secret.clone())
        .await
        .expect(201);
    let bound = json!({"boundObjectRef": {"kind": "Secret", "apiVersion": "v1", "name": "s"}});
    let token = account_token(&server, HUB, bound).await;
    assert_eq!(code(&server, &token, HUB).await, 201);
    let path = format!("{secrets}/s");
    server
        .send(&admin, "DELETE", &path, Value::Null)
        .await
        .expect(200);
    assert_eq!(code(&server, &token, HUB).await, 401);
    server
        .send(&admin, "POST", secrets, secret)
        .await
        .expect(201);
    assert_eq!(code(&server, &token, HUB).await, 401);
}

#[tokio::test]
async fn a_token_ends_in_time() {
    let server = TestServer::start().await;
    let token = account_token(&server, HUB, json!({"expirationSeconds": 600})).await;
    server.pass(SignedDuration::from_mins(10));
    assert_eq!(
        code(&server, &token, HUB).await,
        201,
        "clocks differ by a little"
    );
    server.pass(SignedDuration::from_mins(2));
    assert_eq!(code(&server, &token, HUB).await, 401);

    let admin = server.admin(HUB);
    let token = BootstrapToken::generate().unwrap();
    let end = server.now() + SignedDuration::from_mins(5);
    let secret = token.to_secret("x", &[], Some(end));
    let path = "/api/v1/namespaces/kube-system/secrets";
    server.send(&admin, "POST", path, secret).await.expect(201);
    assert_eq!(code(&server, &token.reveal(), HUB).await, 201);
    server.pass(SignedDuration::from_mins(5));
    assert_eq!(code(&server, &token.reveal(), HUB).await, 401);
}

#[tokio::test]
async fn a_token_of_one_cluster_is_nothing_in_another() {
    let server = TestServer::start().await;
    let here = account_token(&server, "cluster1", json!({})).await;
    let there = account_token(&server, HUB, json!({})).await;
    assert_eq!(code(&server, &here, "cluster1").await, 201);
    assert_eq!(code(&server, &here, HUB).await, 401);
    assert_eq!(code(&server, &there, "cluster1").await, 401);
    // A reviewer of the other cluster gets the same answer.
    let path = "/clusters/cluster1/apis/authentication.k8s.io/v1/tokenreviews";
    let admin = server.admin("cluster1");
    let review = server
        .send(&admin, "POST", path, json!({"spec": {"token": there}}))
        .await
        .expect(201);
    assert!(review["status"]["authenticated"].is_null(), "{review}");
    // A token beside a certificate of another cluster is judged by itself.
    let mut both = server.admin(HUB);
    both.token = Some(here);
    let path = format!("/clusters/cluster1{WHOAMI}");
    let found = server
        .send(&both, "POST", &path, json!({}))
        .await
        .expect(201);
    assert_eq!(
        found["status"]["userInfo"]["username"],
        "system:serviceaccount:default:bot"
    );
}

#[tokio::test]
async fn a_forged_token_is_not_believed() {
    let server = TestServer::start().await;
    let other = TestServer::start().await;
    let good = account_token(&server, HUB, json!({})).await;
    let foreign = account_token(&other, HUB, json!({})).await;
    let parts: Vec<&str> = good.split('.').collect();
    let none = "eyJhbGciOiJub25lIn0";
    for forged in [
        foreign,
        format!("{none}.{}.", parts[1]),
        format!("{none}.{}.{}", parts[1], parts[2]),
        format!("{}.{}.{}", parts[0], parts[1], parts[0]),
        format!("{}x", &good[..good.len() - 1]),
        "a.b.c".to_owned(),
        "x".repeat(10_000),
    ] {
        assert_eq!(code(&server, &forged, HUB).await, 401, "{forged}");
    }
    // Even where nobody need prove anything, a wrong token is refused.
    let answer = server
        .send(&Proof::token("garbage"), "GET", "/healthz", Value::Null)
        .await;
    assert_eq!(answer.code, 401);
}

#[tokio::test]
async fn the_token_in_a_secret_ends_when_it_is_taken_out() {
    let server = TestServer::start().await;
    let admin = server.admin(HUB);
    account_token(&server, HUB, json!({})).await;
    let secrets = "/api/v1/namespaces/default/secrets";
    let secret = json!({
        "metadata": {"name": "s", "annotations": {"kubernetes.io/service-account.name": "bot"}},
        "type": "kubernetes.io/service-account-token",
    });
    server
        .send(&admin, "POST", secrets, secret)
        .await
        .expect(201);
    let path = format!("{secrets}/s");
    let token = |before: String| {
        let (server, admin, path) = (&server, &admin, &path);
        crate::common::eventually("a token", move || {
            let before = before.clone();
            async move {
                let answer = server.send(admin, "GET", path, Value::Null).await;
                let encoded = answer.body["data"]["token"].as_str()?.to_owned();
                let bytes = STANDARD.decode(encoded).ok()?;
                String::from_utf8(bytes)
                    .ok()
                    .filter(|token| *token != before)
            }
        })
    };
    let first = token(String::new()).await;
    assert_eq!(code(&server, &first, HUB).await, 201);
    let removed = json!({"data": {"token": null}});
    server
        .send(&admin, "PATCH", &path, removed)
        .await
        .expect(200);
    let second = token(first.clone()).await;
    assert_eq!(code(&server, &second, HUB).await, 201);
    assert_eq!(code(&server, &first, HUB).await, 401);
}
