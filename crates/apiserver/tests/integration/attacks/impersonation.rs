//! Acting as somebody else takes permission, for each part of the other's identity.

use bellwether_apiserver::HUB;
use serde_json::{Value, json};

use super::{WHOAMI, grant, whoami};
use crate::common::TestServer;

#[tokio::test]
async fn nobody_becomes_somebody_else_without_permission() {
    let server = TestServer::start().await;
    for (headers, message) in [
        (
            vec![("impersonate-user", "root")],
            "users \"root\" is forbidden: User \"bob\" cannot impersonate resource \"users\" in API group \"\" at the cluster scope",
        ),
        (
            vec![
                ("impersonate-user", "bob"),
                ("impersonate-group", "system:masters"),
            ],
            "users \"bob\" is forbidden: User \"bob\" cannot impersonate resource \"users\" in API group \"\" at the cluster scope",
        ),
        (
            vec![("impersonate-user", "system:serviceaccount:kube-system:x")],
            "serviceaccounts \"x\" is forbidden: User \"bob\" cannot impersonate resource \"serviceaccounts\" in API group \"\" in the namespace \"kube-system\"",
        ),
    ] {
        let mut bob = server.certify("bob", &[], HUB);
        for (name, value) in headers {
            bob = bob.with(name, value);
        }
        let answer = server.send(&bob, "POST", WHOAMI, json!({})).await;
        assert_eq!((answer.code, answer.message()), (403, message));
    }
    // Parts without a user are refused rather than ignored.
    for (name, value) in [
        ("impersonate-group", "system:masters"),
        ("impersonate-uid", "1"),
        ("impersonate-extra-scopes", "all"),
    ] {
        let admin = server.admin(HUB).with(name, value);
        let answer = server.send(&admin, "POST", WHOAMI, json!({})).await;
        assert_eq!(answer.code, 400, "{name}: {}", answer.body);
    }
}

#[tokio::test]
async fn permission_for_a_user_is_none_for_groups_uid_or_extra() {
    let server = TestServer::start().await;
    let rules = json!([
        {"apiGroups": [""], "resources": ["users"], "verbs": ["impersonate"], "resourceNames": ["ann"]},
        {"apiGroups": [""], "resources": ["groups"], "verbs": ["impersonate"], "resourceNames": ["devs"]},
        {"apiGroups": ["authentication.k8s.io"], "resources": ["userextras/scopes"], "verbs": ["impersonate"], "resourceNames": ["dev"]},
    ]);
    grant(&server, HUB, "bob", rules).await;
    let bob = || server.certify("bob", &[], HUB);
    let good = bob()
        .with("impersonate-user", "ann")
        .with("impersonate-group", "devs")
        .with("impersonate-extra-scopes", "dev");
    let user = whoami(&server, &good).await;
    assert_eq!(
        user,
        json!({
            "username": "ann", "groups": ["devs", "system:authenticated"],
            "extra": {"scopes": ["dev"]},
        })
    );
    for wrong in [
        good.clone().with("impersonate-group", "system:masters"),
        good.clone().with("impersonate-uid", "1"),
        good.clone().with("impersonate-extra-scopes", "admin"),
        good.clone().with("impersonate-extra-other", "dev"),
        bob().with("impersonate-user", "root"),
    ] {
        let answer = server.send(&wrong, "POST", WHOAMI, json!({})).await;
        assert_eq!(answer.code, 403, "{:?}: {}", wrong.headers, answer.body);
    }
    // What one may not do, one may not do as somebody who may not either.
    let path = "/api/v1/secrets";
    assert_eq!(server.send(&good, "GET", path, Value::Null).await.code, 403);
}

#[tokio::test]
async fn nobody_without_credentials_acts_as_anybody() {
    let server = TestServer::start().await;
    let nobody = crate::common::wire::Proof::nothing()
        .with("impersonate-user", "root")
        .with("impersonate-group", "system:masters");
    for path in ["/api/v1/secrets", "/version"] {
        let answer = server.send(&nobody, "GET", path, Value::Null).await;
        assert_eq!(answer.code, 403, "{path}: {}", answer.body);
    }
}

#[tokio::test]
async fn a_name_that_cannot_be_read_is_not_passed_over() {
    let server = TestServer::start().await;
    // Anyone who acts for others must never act as themselves by mistake.
    let admin = server.admin(HUB).with("impersonate-user", "jürgen");
    assert_eq!(whoami(&server, &admin).await["username"], "jürgen");
    let path = "/api/v1/secrets";
    assert_eq!(
        server.send(&admin, "GET", path, Value::Null).await.code,
        403
    );
}
