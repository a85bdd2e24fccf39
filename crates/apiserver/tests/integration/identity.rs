//! Who gets in, and where: certificates are good for one cluster, and role bindings decide the rest.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a test that cannot go on fails"
)]
#![allow(clippy::needless_pass_by_value, reason = "bodies are written in place")]

use crate::common;

use bellwether_apiserver::{HUB, Identity};
use common::TestServer;
use common::wire::Proof;
use k8s_openapi::api::core::v1::{ConfigMap, Namespace};
use kube::Api;
use kube::api::{ListParams, PostParams};
use serde_json::{Value, json};

fn code<T: std::fmt::Debug>(result: Result<T, kube::Error>) -> u16 {
    match result {
        Err(kube::Error::Api(status)) => status.code,
        other => panic!("wanted a refusal, got {other:?}"),
    }
}

#[tokio::test]
async fn a_certificate_of_one_cluster_is_worth_nothing_in_another() {
    let server = TestServer::start().await;
    let admin = Identity::administrator("root");
    let here: Api<Namespace> = Api::all(server.remote("cluster1", &admin, "cluster1").await);
    assert!(
        !here
            .list(&ListParams::default())
            .await
            .unwrap()
            .items
            .is_empty()
    );
    let there: Api<Namespace> = Api::all(server.remote("hub", &admin, "cluster1").await);
    assert_eq!(code(there.list(&ListParams::default()).await), 401);
}

/// `kubectl get --raw` drops the path of the server.
#[tokio::test]
async fn at_the_root_a_credential_belongs_to_its_own_cluster() {
    let server = TestServer::start().await;
    let map = json!({"metadata": {"name": "mine"}});
    let path = "/api/v1/namespaces/default/configmaps";
    let member = server.admin("cluster1");
    let created = server.send(&member, "POST", path, map).await;
    assert_eq!(created.code, 201, "{}", created.body);
    let own = format!("/clusters/cluster1{path}/mine");
    let seen = server.send(&member, "GET", &own, Value::Null).await;
    assert_eq!(
        seen.body["metadata"]["uid"],
        created.body["metadata"]["uid"]
    );
    let hub = server.admin(HUB);
    let absent = server
        .send(&hub, "GET", &format!("{path}/mine"), Value::Null)
        .await;
    assert_eq!(absent.code, 404);

    // So does a token: the issuer is a part of what is signed.
    let account = "/api/v1/namespaces/default/serviceaccounts";
    let bot = json!({"metadata": {"name": "bot"}});
    server.send(&member, "POST", account, bot).await.expect(201);
    let token = server
        .send(&member, "POST", &format!("{account}/bot/token"), json!({}))
        .await
        .expect(201);
    let bot = Proof::token(token["status"]["token"].as_str().unwrap());
    let review = "/apis/authentication.k8s.io/v1/selfsubjectreviews";
    let who = server.send(&bot, "POST", review, json!({})).await;
    let user = &who.body["status"]["userInfo"]["username"];
    assert_eq!(*user, "system:serviceaccount:default:bot", "{}", who.body);
    let there = format!("/clusters/{HUB}{review}");
    let refused = server.send(&bot, "POST", &there, json!({})).await;
    assert_eq!(refused.code, 401);
    let version = server.send(&member, "GET", "/version", Value::Null).await;
    assert_eq!(version.code, 200);
}

#[tokio::test]
async fn role_bindings_hold_in_process_as_over_tls() {
    let server = TestServer::start().await;
    let bob = Identity::authenticated("bob", []);
    let admin = server.local("cluster1");
    for client in [
        server.server.client("cluster1", bob.clone()),
        server.remote("cluster1", &bob, "cluster1").await,
    ] {
        let maps: Api<ConfigMap> = Api::namespaced(client, "default");
        let refused = maps.list(&ListParams::default()).await.unwrap_err();
        assert!(
            refused.to_string().contains(
                "configmaps is forbidden: User \"bob\" cannot list resource \"configmaps\" in API group \"\" in the namespace \"default\""
            ),
            "{refused}"
        );
    }
    let binding: k8s_openapi::api::rbac::v1::RoleBinding = serde_json::from_value(json!({
        "metadata": {"name": "viewers"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "view"},
        "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "bob"}],
    }))
    .unwrap();
    Api::namespaced(admin, "default")
        .create(&PostParams::default(), &binding)
        .await
        .unwrap();
    let bobs = server.remote("cluster1", &bob, "cluster1").await;
    Api::<ConfigMap>::namespaced(bobs.clone(), "default")
        .list(&ListParams::default())
        .await
        .unwrap();
    let elsewhere: Api<ConfigMap> = Api::namespaced(bobs.clone(), "kube-system");
    assert_eq!(code(elsewhere.list(&ListParams::default()).await), 403);
    let map = ConfigMap::default();
    let own: Api<ConfigMap> = Api::namespaced(bobs, "default");
    assert_eq!(code(own.create(&PostParams::default(), &map).await), 403);
}
