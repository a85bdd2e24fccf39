//! Paths that are not what they seem, between clusters and within one.

use bellwether_apiserver::HUB;
use serde_json::{Value, json};

use crate::common::TestServer;
use crate::common::wire::Proof;

/// Requests of somebody who has all rights in `cluster1` and none in the hub.
#[tokio::test]
async fn no_path_leads_from_one_cluster_to_another() {
    let server = TestServer::start().await;
    let hub = server.admin(HUB);
    let secret = json!({"metadata": {"name": "treasure"}});
    let path = "/api/v1/namespaces/default/secrets";
    server.send(&hub, "POST", path, secret).await.expect(201);
    let member = server.admin("cluster1");
    let target = "api/v1/namespaces/default/secrets/treasure";
    for prefix in [
        "/",
        "//",
        "/./",
        "/clusters/hub/",
        "/clusters//hub/",
        "//clusters/hub/",
        "/clusters/cluster1/../hub/",
        "/clusters/cluster1/%2e%2e/hub/",
        "/clusters/cluster1/%2E%2E/hub/",
        "/clusters/cluster1/..%2fhub/",
        "/clusters/cluster1/..%2Fhub/",
        "/clusters/cluster1%2f..%2fhub/",
        "/clusters/cluster1%2F..%2Fhub/",
        "/clusters/cluster1/../../",
        "/clusters/cluster1/../",
        "/clusters/cluster1/./../hub/",
        "/clusters/cluster1//../hub/",
        "/clusters/cluster1/clusters/hub/",
        "/clusters/cluster1/\\..\\hub/",
        "/clusters/cluster1;/../hub/",
        "/clusters/hub%00cluster1/",
        "/clusters/cluster1%00/",
        "/clusters/%68ub/",
        "/clusters/HUB/",
        "/clusters/./hub/",
        "/clusters/../",
        "/clusters/",
        "https://localhost/clusters/hub/",
        "https://localhost/",
    ] {
        let path = format!("{prefix}{target}");
        let answer = server.send(&member, "GET", &path, Value::Null).await;
        assert!(
            matches!(answer.code, 400 | 401 | 403 | 404),
            "{path}: {} {}",
            answer.code,
            answer.body
        );
        assert!(!answer.body.to_string().contains("uid"), "{path}");
    }
}

/// Names with dots, slashes and nothing are names, and not places.
#[tokio::test]
async fn names_do_not_climb_out_of_their_namespace() {
    let server = TestServer::start().await;
    let admin = server.admin(HUB);
    let secret = json!({"metadata": {"name": "treasure"}});
    let path = "/api/v1/namespaces/kube-system/secrets";
    server.send(&admin, "POST", path, secret).await.expect(201);
    super::grant_in(&server, HUB, "shop", "bob", "admin").await;
    let bob = server.certify("bob", &[], HUB);
    for path in [
        "/api/v1/namespaces/shop/secrets/../../kube-system/secrets/treasure",
        "/api/v1/namespaces/shop/secrets/..%2f..%2fkube-system%2fsecrets%2ftreasure",
        "/api/v1/namespaces/shop/secrets/%2e%2e/%2e%2e/kube-system/secrets/treasure",
        "/api/v1/namespaces/shop%2f..%2fkube-system/secrets/treasure",
        "/api/v1/namespaces/shop/../kube-system/secrets/treasure",
        "/api/v1/namespaces/shop//secrets/treasure",
        "/api/v1/namespaces//kube-system/secrets/treasure",
        "/api/v1/namespaces/kube-system/secrets/treasure",
        "/api/v1//namespaces/kube-system/secrets/treasure",
        "/api/v1/namespaces/%6bube-system/secrets/treasure",
        "/api/v1/watch/namespaces/kube-system/secrets/treasure",
        "/api/v1/namespaces/shop/secrets/kube-system/treasure",
        "/apis//v1/namespaces/kube-system/secrets/treasure",
        "/api/v1/secrets/treasure",
        "/api/v1/namespaces/shop/secrets/x%00",
        "/api/v1/namespaces/shop/secrets/%ff%fe",
        "/api/v1/namespaces/shop/secrets/%",
        "/api/v1/namespaces/shop/secrets/%zz",
    ] {
        let answer = server.send(&bob, "GET", path, Value::Null).await;
        assert!(
            matches!(answer.code, 400 | 403 | 404),
            "{path}: {} {}",
            answer.code,
            answer.body
        );
        assert!(!answer.body.to_string().contains("\"uid\""), "{path}");
    }
    // Nor is anything created under such a name.
    let path = "/api/v1/namespaces/shop/configmaps";
    for name in ["..", ".", "a/b", "../kube-system/x", "x%2fy", "x\u{0}y", ""] {
        let answer = server
            .send(&bob, "POST", path, json!({"metadata": {"name": name}}))
            .await;
        assert!(matches!(answer.code, 400 | 422), "{name}: {}", answer.body);
    }
}

#[tokio::test]
async fn strangers_see_health_and_version_and_nothing_else() {
    let server = TestServer::start().await;
    let nobody = Proof::nothing();
    for base in ["", "/clusters/hub", "/clusters/cluster1"] {
        for path in ["/healthz", "/livez", "/readyz", "/version"] {
            let path = format!("{base}{path}");
            server
                .send(&nobody, "GET", &path, Value::Null)
                .await
                .expect(200);
        }
        for path in [
            "/",
            "/api",
            "/apis",
            "/api/v1",
            "/openapi/v2",
            "/openapi/v3",
            "/metrics",
            "/openid/v1/jwks",
            "/api/v1/namespaces",
            "/api/v1/namespaces/default/secrets",
            "/apis/nothing.example.com/v1/things",
            "/healthz/../metrics",
            "/version/../api",
        ] {
            let path = format!("{base}{path}");
            let answer = server.send(&nobody, "GET", &path, Value::Null).await;
            assert_eq!(answer.code, 403, "{path}: {}", answer.body);
        }
    }
    for (method, path) in [
        ("POST", "/api/v1/namespaces"),
        ("POST", "/apis/authentication.k8s.io/v1/selfsubjectreviews"),
        (
            "POST",
            "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews",
        ),
        ("DELETE", "/healthz"),
        ("POST", "/version"),
    ] {
        let answer = server.send(&nobody, method, path, json!({})).await;
        assert_eq!(answer.code, 403, "{method} {path}: {}", answer.body);
    }
}
