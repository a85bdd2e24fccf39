//! Requests that are small to send and large to handle: others are served meanwhile.

use bellwether_apiserver::{HUB, Limits, ServerOptions};
use bellwether_store::{Options, Store};
use serde_json::{Value, json};

use crate::common::TestServer;

const PODS: &str = "/api/v1/namespaces/default/pods";
const MAPS: &str = "/api/v1/namespaces/default/configmaps";
const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
const THINGS: &str = "/apis/example.com/v1/things";

/// A definition of things with this specification.
async fn define(server: &TestServer, spec: Value) {
    let admin = server.admin(HUB);
    let schema = json!({"type": "object", "properties": {"spec": spec}});
    let version = json!({
        "name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": schema},
    });
    let definition = json!({
        "metadata": {"name": "things.example.com"},
        "spec": {
            "group": "example.com", "scope": "Cluster", "versions": [version],
            "names": {"plural": "things", "singular": "thing", "kind": "Thing", "listKind": "ThingList"},
        },
    });
    let created = server.send(&admin, "POST", DEFINITIONS, definition).await;
    created.expect(201);
}

fn thing(name: &str, spec: Value) -> Value {
    json!({
        "apiVersion": "example.com/v1", "kind": "Thing",
        "metadata": {"name": name}, "spec": spec,
    })
}

#[tokio::test]
async fn thousands_of_mistakes_are_counted_and_not_all_reported() {
    let server = TestServer::start().await;
    let admin = server.admin(HUB);
    let containers = vec![json!({"name": "c"}); 60_000];
    let pod = json!({"metadata": {"name": "p"}, "spec": {"containers": containers}});
    let refused = server.send(&admin, "POST", PODS, pod).await;
    assert_eq!(refused.code, 422, "{}", refused.head);
    let causes = refused.body["details"]["causes"].as_array().unwrap();
    assert_eq!(causes.len(), 101);
    let message = refused.message();
    assert!(message.ends_with("more errors are not shown]"), "{message}");
    assert!(message.len() < 20_000);
}

#[tokio::test]
async fn defaults_that_expand_are_refused_before_they_take_memory() {
    let server = TestServer::start().await;
    let admin = server.admin(HUB);
    let item = json!({
        "type": "object",
        "properties": {"f": {"type": "string", "default": "x".repeat(100_000)}},
    });
    define(&server, json!({"type": "array", "items": item})).await;
    let path = THINGS;
    let small = thing("small", json!([{}]));
    server.send(&admin, "POST", path, small).await.expect(201);
    // Sixty kilobytes that would become two gigabytes.
    let large = thing("large", json!(vec![json!({}); 20_000]));
    let refused = server.send(&admin, "POST", path, large).await;
    assert_eq!(refused.code, 500, "{}", refused.head);
    assert_eq!(refused.message(), "etcdserver: request is too large");
    // Nor can an object grow beyond what can be stored by being patched.
    let items = vec![json!({"f": "y".repeat(100_000)}); 20];
    let growth = json!({"spec": items});
    let patched = server
        .send(&admin, "PATCH", &format!("{path}/small"), growth)
        .await;
    assert_eq!(patched.message(), "etcdserver: request is too large");
}

#[tokio::test]
async fn what_takes_too_long_is_given_up() {
    let options = ServerOptions {
        limits: Limits {
            request_time: std::time::Duration::ZERO,
            ..Limits::default()
        },
        ..ServerOptions::default()
    };
    let store = Store::in_memory(Options::default());
    let server = TestServer::start_with(store, options).await;
    let admin = server.admin(HUB);
    let map = |name: &str, size: usize| json!({"metadata": {"name": name}, "data": {"a": "x".repeat(size)}});
    // What takes little work has no such limit.
    server
        .send(&admin, "POST", MAPS, map("small", 10))
        .await
        .expect(201);
    let large = server
        .send(&admin, "POST", MAPS, map("large", 100_000))
        .await;
    assert_eq!(
        (large.code, large.body["reason"].as_str()),
        (504, Some("Timeout"))
    );
}

#[tokio::test]
async fn rules_that_cost_much_are_run_apart_and_to_their_end() {
    let server = TestServer::start().await;
    let admin = server.admin(HUB);
    // Within what a definition may cost, and beyond what is run where all requests are served.
    let spec = json!({
        "type": "array", "maxItems": 200, "items": {"type": "integer"},
        "x-kubernetes-validations": [{
            "rule": "self.all(x, self.all(y, x + y >= 0))", "message": "too small",
        }],
    });
    define(&server, spec).await;
    let things = |first: i64| -> Value { (0..200).map(|number| number + first).collect() };
    let fine = thing("fine", things(1));
    server.send(&admin, "POST", THINGS, fine).await.expect(201);
    let wrong = server
        .send(&admin, "POST", THINGS, thing("wrong", things(-200)))
        .await;
    assert_eq!(wrong.code, 422, "{}", wrong.body);
    assert!(wrong.message().contains("too small"), "{}", wrong.message());
}
