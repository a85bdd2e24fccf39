//! Asking for too much at a time: told to wait, and nobody else notices.

use bellwether_apiserver::{HUB, Limits, ServerOptions};
use bellwether_store::{Options, Store};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use super::grant;
use crate::common::TestServer;
use crate::common::wire::read_answer;

const MAPS: &str = "/api/v1/namespaces/default/configmaps";

async fn start() -> TestServer {
    let limits = Limits {
        requests_per_user: 3,
        watches_per_user: 5,
        ..Limits::default()
    };
    let options = ServerOptions {
        limits,
        ..ServerOptions::default()
    };
    let store = Store::in_memory(Options::default());
    let server = TestServer::start_with(store, options).await;
    let rules = json!([{"apiGroups": [""], "resources": ["configmaps"], "verbs": ["*"]}]);
    grant(&server, HUB, "bob", rules.clone()).await;
    grant(&server, HUB, "ann", rules).await;
    server
}

#[tokio::test]
async fn one_user_cannot_keep_the_others_out() {
    let server = start().await;
    let bob = server.certify("bob", &[], HUB);
    let ann = server.certify("ann", &[], HUB);
    // Requests whose bodies do not come.
    let mut slow = Vec::new();
    for _ in 0..3 {
        let mut stream = server.connect(bob.certificate.as_ref()).await.unwrap();
        let head = format!(
            "POST {MAPS} HTTP/1.1\r\nhost: x\r\ncontent-length: 10\r\nexpect: 100-continue\r\n\r\n"
        );
        stream.write_all(head.as_bytes()).await.unwrap();
        // The server asks for the body once the request is under way.
        let mut buffer = [0; 64];
        let read = stream.read(&mut buffer).await.unwrap();
        assert!(buffer[..read].starts_with(b"HTTP/1.1 100"));
        slow.push(stream);
    }
    let refused = server.send(&bob, "GET", MAPS, Value::Null).await;
    assert_eq!(refused.code, 429);
    assert_eq!(refused.body["reason"], "TooManyRequests");
    assert_eq!(refused.body["details"]["retryAfterSeconds"], 1);
    assert!(refused.head.contains("retry-after: 1"), "{}", refused.head);
    server
        .send(&ann, "GET", MAPS, Value::Null)
        .await
        .expect(200);
    let admin = server.admin(HUB);
    server
        .send(&admin, "GET", MAPS, Value::Null)
        .await
        .expect(200);
    // What is not an object counts as well.
    let discovery = server.send(&bob, "GET", "/apis", Value::Null).await;
    assert_eq!(discovery.code, 429);
    // Health is for everybody, always.
    server
        .send(&bob, "GET", "/readyz", Value::Null)
        .await
        .expect(200);
    drop(slow);
    crate::common::eventually("bob's turn", || async {
        let answer = server.send(&bob, "GET", MAPS, Value::Null).await;
        (answer.code == 200).then_some(())
    })
    .await;
}

#[tokio::test]
async fn impersonating_does_not_multiply_ones_share() {
    let server = start().await;
    let path = "/apis/rbac.authorization.k8s.io/v1/clusterroles/bob";
    let rules = json!({"rules": [
        {"apiGroups": [""], "resources": ["configmaps"], "verbs": ["*"]},
        {"apiGroups": [""], "resources": ["users"], "verbs": ["impersonate"]},
    ]});
    let admin = server.admin(HUB);
    server.send(&admin, "PATCH", path, rules).await.expect(200);
    let as_ann = server
        .certify("bob", &[], HUB)
        .with("impersonate-user", "ann");
    let watches = open_watches(&server, 5).await;
    let watch = format!("{MAPS}?watch=1&timeoutSeconds=60");
    assert_eq!(
        server.send(&as_ann, "GET", &watch, Value::Null).await.code,
        429
    );
    drop(watches);
}

/// Watches of bob's, each on a connection of its own.
async fn open_watches(
    server: &TestServer,
    count: usize,
) -> Vec<tokio_rustls::client::TlsStream<tokio::net::TcpStream>> {
    let bob = server.certify("bob", &[], HUB);
    let mut open = Vec::new();
    for _ in 0..count {
        let mut stream = server.connect(bob.certificate.as_ref()).await.unwrap();
        let head = format!(
            "GET {MAPS}?watch=1&resourceVersion=0 HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n"
        );
        stream.write_all(head.as_bytes()).await.unwrap();
        let mut buffer = [0; 512];
        let read = stream.read(&mut buffer).await.unwrap();
        assert!(buffer[..read].starts_with(b"HTTP/1.1 200"));
        open.push(stream);
    }
    open
}

#[tokio::test]
async fn watches_are_counted_by_themselves() {
    let server = start().await;
    let bob = server.certify("bob", &[], HUB);
    let mut open = open_watches(&server, 5).await;
    let watch = format!("{MAPS}?watch=1");
    assert_eq!(
        server.send(&bob, "GET", &watch, Value::Null).await.code,
        429
    );
    server
        .send(&bob, "GET", MAPS, Value::Null)
        .await
        .expect(200);
    let mut gone = open.pop().unwrap();
    gone.shutdown().await.unwrap();
    drop(gone);
    crate::common::eventually("a place for a watch", || async {
        let short = format!("{watch}&timeoutSeconds=1");
        let answer = server.send(&bob, "GET", &short, Value::Null).await;
        (answer.code == 200).then_some(())
    })
    .await;
}

#[tokio::test]
async fn a_body_that_does_not_come_is_not_waited_for() {
    let options = ServerOptions {
        limits: Limits {
            body_time: std::time::Duration::from_millis(50),
            ..Limits::default()
        },
        ..ServerOptions::default()
    };
    let store = Store::in_memory(Options::default());
    let server = TestServer::start_with(store, options).await;
    let admin = server.admin(HUB);
    let mut stream = server.connect(admin.certificate.as_ref()).await.unwrap();
    let head = format!("POST {MAPS} HTTP/1.1\r\nhost: x\r\ncontent-length: 10\r\n\r\n{{");
    stream.write_all(head.as_bytes()).await.unwrap();
    let answer = read_answer(&mut stream).await;
    assert_eq!(answer.code, 408, "{}", answer.body);
}
