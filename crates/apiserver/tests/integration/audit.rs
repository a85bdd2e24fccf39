//! The audit log: who did what, when, and how it ended, without what was in it.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a test that cannot go on fails"
)]
#![allow(clippy::needless_pass_by_value, reason = "bodies are written in place")]

use crate::common;

use bellwether_apiserver::{AuditLog, HUB, ServerOptions};
use bellwether_store::{Options, Store};
use common::TestServer;
use common::wire::Proof;
use serde_json::{Value, json};

#[tokio::test]
async fn every_request_that_may_change_something_leaves_a_line() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("audit.jsonl");
    let log = AuditLog::open(&path).unwrap();
    let options = ServerOptions {
        audit: Some(log.clone()),
        ..ServerOptions::default()
    };
    let store = Store::in_memory(Options::default());
    let server = TestServer::start_with(store, options).await;
    let admin = server.admin(HUB);
    let secrets = "/api/v1/namespaces/default/secrets";
    let secret = json!({"metadata": {"generateName": "s-"}, "stringData": {"password": "hunter2"}});
    let created = server
        .send(&admin, "POST", secrets, secret)
        .await
        .expect(201);
    server
        .send(&admin, "GET", secrets, Value::Null)
        .await
        .expect(200);
    let bob = server.certify("bob", &["devs"], HUB);
    server
        .send(&bob, "DELETE", secrets, Value::Null)
        .await
        .expect(403);
    let as_ann = server.admin(HUB).with("impersonate-user", "ann");
    server
        .send(&as_ann, "POST", secrets, json!({}))
        .await
        .expect(403);
    let stolen = Proof::token("abcdef.0123456789abcdef");
    let elsewhere = "/clusters/cluster1/api/v1/namespaces";
    server
        .send(&stolen, "POST", elsewhere, json!({}))
        .await
        .expect(401);
    // A question is not a change.
    let whoami = "/apis/authentication.k8s.io/v1/selfsubjectreviews";
    server
        .send(&bob, "POST", whoami, json!({}))
        .await
        .expect(201);
    log.flush().await;

    let text = std::fs::read_to_string(&path).unwrap();
    let lines: Vec<Value> = text
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let summary: Vec<Value> = lines
        .iter()
        .map(|line| {
            json!([
                line["user"]["username"],
                line["impersonatedUser"]["username"],
                line["verb"],
                line["objectRef"]["resource"],
                line["responseStatus"]["code"],
                line["annotations"]["bellwether.dev/cluster"],
            ])
        })
        .collect();
    assert_eq!(
        summary,
        [
            json!(["root", null, "create", "secrets", 201, "hub"]),
            json!(["bob", null, "deletecollection", "secrets", 403, "hub"]),
            json!(["root", "ann", "create", "secrets", 403, "hub"]),
            json!([null, null, "post", null, 401, "cluster1"]),
        ]
    );
    assert_eq!(lines[0]["objectRef"]["name"], created["metadata"]["name"]);
    assert_eq!(lines[0]["objectRef"]["namespace"], "default");
    assert_eq!(lines[0]["sourceIPs"], json!(["127.0.0.1"]));
    assert_eq!(lines[1]["responseStatus"]["reason"], "Forbidden");
    for time in ["requestReceivedTimestamp", "stageTimestamp"] {
        let time = lines[0][time].as_str().unwrap();
        assert!(time.parse::<jiff::Timestamp>().is_ok(), "{time}");
    }
    for private in ["hunter2", "aHVudGVyMg", "0123456789abcdef"] {
        assert!(!text.contains(private), "{text}");
    }
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        let mode = std::fs::metadata(&path).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
    }
}
