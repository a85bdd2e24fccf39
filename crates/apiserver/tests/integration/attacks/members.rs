//! Members of a fleet that look for requests of others, or stand in their way.

use std::sync::Arc;

use bellwether_apiserver::{HUB, ServerOptions};
use bellwether_placement::admission::FleetAdmission;
use bellwether_store::{Options, Store};
use rcgen::KeyPair;
use serde_json::{Value, json};

use super::certificates::{REQUESTS, params, request};
use super::grant;
use crate::common::TestServer;
use crate::common::wire::Proof;

const FIRST: &str = "system:open-cluster-management:c1:a";
/// A name that would widen a selector if it were put there as it is.
const SLY: &str = "system:open-cluster-management:c1:a,spec.username!=x";
const OTHER: &str = "system:open-cluster-management:c10:a";
const LABEL: &str = "open-cluster-management.io/cluster-name";

/// A server with three agents, each of which has asked for a certificate.
async fn start() -> (TestServer, Vec<(&'static str, Proof)>) {
    let options = ServerOptions {
        admission: vec![Arc::new(FleetAdmission)],
        ..ServerOptions::default()
    };
    let store = Store::in_memory(Options::default());
    let server = TestServer::start_with(store, options).await;
    let rules = json!([{
        "apiGroups": ["certificates.k8s.io"], "resources": ["certificatesigningrequests"],
        "verbs": ["create", "get", "list", "watch"],
    }]);
    let mut agents = Vec::new();
    for (number, user) in [FIRST, SLY, OTHER].into_iter().enumerate() {
        grant(&server, HUB, user, rules.clone()).await;
        let proof = server.certify(user, &[], HUB);
        let body = asked(json!({"name": format!("request{number}")}));
        let made = server.send(&proof, "POST", REQUESTS, body).await;
        made.expect(201);
        agents.push((user, proof));
    }
    (server, agents)
}

fn asked(metadata: Value) -> Value {
    let key = KeyPair::generate().unwrap();
    let mut request = request(&params("x", "y"), &key);
    request["metadata"] = metadata;
    request
}

#[tokio::test]
async fn no_selector_shows_requests_of_others() {
    let (server, agents) = start().await;
    for (user, proof) in &agents {
        for query in [
            String::new(),
            "?fieldSelector=spec.username!%3Dnobody".to_owned(),
            format!("?fieldSelector=spec.username%3D{OTHER}"),
            "?fieldSelector=spec.username!%3Dx&fieldSelector=spec.username!%3Dy".to_owned(),
            "?fieldSelector=metadata.name%3Drequest2".to_owned(),
            "?limit=1".to_owned(),
            "?watch=true&timeoutSeconds=1&resourceVersion=0".to_owned(),
        ] {
            let answer = server
                .send(proof, "GET", &format!("{REQUESTS}{query}"), Value::Null)
                .await;
            let text = match &answer.body {
                Value::String(text) => text.clone(),
                body => body.to_string(),
            };
            if !query.contains("Selector") {
                assert!(text.contains(&format!("\"username\":\"{user}\"")), "{text}");
            }
            for (other, _) in agents.iter().filter(|(other, _)| other != user) {
                let shown = format!("\"username\":\"{other}\"");
                assert!(!text.contains(&shown), "{user} {query}: {text}");
            }
        }
    }
    let (_, first) = &agents[0];
    let list = server.send(first, "GET", REQUESTS, Value::Null).await;
    let list = list.expect(200);
    assert_eq!(list["items"].as_array().unwrap().len(), 1, "{list}");
    for (name, code) in [("request0", 200), ("request2", 404), ("missing", 404)] {
        let path = format!("{REQUESTS}/{name}");
        let found = server.send(first, "GET", &path, Value::Null).await;
        assert_eq!(found.code, code, "{name}");
    }
}

#[tokio::test]
async fn requests_are_made_for_ones_own_cluster_under_ones_own_names() {
    let (server, agents) = start().await;
    let (_, first) = &agents[0];
    for (metadata, code) in [
        (json!({"name": "c10-renewal-0"}), 403),
        (json!({"name": "c1-renewal-0"}), 201),
        (
            json!({"generateName": "c1-", "labels": {LABEL: "c10"}}),
            403,
        ),
        (json!({"generateName": "c1-", "labels": {LABEL: "c1"}}), 201),
    ] {
        let made = server
            .send(first, "POST", REQUESTS, asked(metadata.clone()))
            .await;
        assert_eq!(made.code, code, "{metadata}: {}", made.message());
    }
}
