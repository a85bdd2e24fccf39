//! Bodies that are too large, too deep, or not what they say.

use bellwether_apiserver::HUB;
use serde_json::{Value, json};

use crate::common::TestServer;

const MAPS: &str = "/api/v1/namespaces/default/configmaps";

fn nested(open: &str, close: &str, depth: usize) -> String {
    format!("{}{}", open.repeat(depth), close.repeat(depth))
}

#[tokio::test]
async fn deep_bodies_are_refused_in_every_format() {
    let server = TestServer::start().await;
    let admin = server.admin(HUB);
    let deep = 100_000;
    let cases = [
        ("POST", MAPS, "application/json", nested("[", "]", deep)),
        (
            "POST",
            MAPS,
            "application/json",
            nested("{\"a\":", "}", deep),
        ),
        ("POST", MAPS, "application/json", "[".repeat(deep)),
        ("POST", MAPS, "application/yaml", nested("[", "]", deep)),
        ("POST", MAPS, "application/yaml", "- ".repeat(deep)),
        ("POST", MAPS, "application/yaml", nested("{a: ", "}", deep)),
        (
            "POST",
            MAPS,
            "application/vnd.kubernetes.protobuf",
            "k8s\u{0}".to_owned() + &"\u{a}\u{7f}".repeat(deep),
        ),
        (
            "PATCH",
            "/api/v1/namespaces/default",
            "application/merge-patch+json",
            nested("{\"metadata\":", "}", deep),
        ),
        (
            "PATCH",
            "/api/v1/namespaces/default",
            "application/json-patch+json",
            nested("[", "]", deep),
        ),
        (
            "PATCH",
            "/api/v1/namespaces/default?fieldManager=x",
            "application/apply-patch+yaml",
            nested("{a: ", "}", deep),
        ),
        (
            "PATCH",
            "/api/v1/namespaces/default",
            "application/strategic-merge-patch+json",
            nested("{\"a\":", "}", deep),
        ),
        (
            "DELETE",
            "/api/v1/namespaces/default",
            "application/json",
            nested("[", "]", deep),
        ),
    ];
    for (method, path, kind, body) in cases {
        let proof = admin.clone().with("content-type", kind);
        let answer = server.send_text(&proof, method, path, &body).await;
        assert!(
            (400..500).contains(&answer.code),
            "{method} {kind}: {} {}",
            answer.code,
            answer.head
        );
    }
    // A path that is deep, too.
    let pointer = "/metadata".to_owned() + &"/a".repeat(deep);
    let patch = json!([{"op": "add", "path": pointer, "value": 1}]).to_string();
    let proof = admin
        .clone()
        .with("content-type", "application/json-patch+json");
    let answer = server
        .send_text(&proof, "PATCH", "/api/v1/namespaces/default", &patch)
        .await;
    assert!((400..500).contains(&answer.code), "{}", answer.code);
    server
        .send(&admin, "GET", "/readyz", Value::Null)
        .await
        .expect(200);
}

#[tokio::test]
async fn large_bodies_are_refused_before_they_are_held() {
    let server = TestServer::start().await;
    let admin = server.admin(HUB);
    let large = format!("{{\"data\":{{\"x\":\"{}\"}}}}", "y".repeat(4 * 1024 * 1024));
    let answer = server.send_text(&admin, "POST", MAPS, &large).await;
    // A server that hangs up while the client still sends may lose its last words on the way.
    assert!(matches!(answer.code, 413 | 0), "{}", answer.head);
    // Aliases that grow: nine levels of nine make some hundred million.
    let mut bomb = String::from("a0: &a0 [x,x,x,x,x,x,x,x,x]\n");
    for level in 1..10 {
        let before = level - 1;
        let aliases = vec![format!("*a{before}"); 9].join(",");
        bomb = format!("{bomb}a{level}: &a{level} [{aliases}]\n");
    }
    let yaml = admin.clone().with("content-type", "application/yaml");
    let answer = server.send_text(&yaml, "POST", MAPS, &bomb).await;
    assert!((400..500).contains(&answer.code), "{}", answer.head);
    // Headers that never end.
    let many = admin.clone().with("x-padding", &"y".repeat(1024 * 1024));
    let answer = server.send(&many, "GET", "/readyz", Value::Null).await;
    assert!(matches!(answer.code, 400 | 431 | 0), "{}", answer.head);
    server
        .send(&admin, "GET", "/readyz", Value::Null)
        .await
        .expect(200);
}

#[tokio::test]
async fn strangers_are_not_listened_to() {
    let server = TestServer::start().await;
    let nobody = crate::common::wire::Proof::nothing();
    // Refused by its headers: the body could be anything.
    let answer = server
        .send_text(&nobody, "POST", MAPS, &nested("[", "]", 1_000))
        .await;
    assert_eq!(answer.code, 403);
}
