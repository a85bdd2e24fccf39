//! Large requests to our server and, where `KUBEBUILDER_ASSETS` points at one, to a real kube-apiserver:
//! what is too large is refused in the same words, and long lists are merged to the same result.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a test that cannot go on fails"
)]

use crate::common;

use common::contract::{Question, ask, both, compare, root, until};
use serde_json::{Value, json};

const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
const WOOL: &str = "/apis/large.example.com/v1/wools";
const PODS: &str = "/api/v1/namespaces/default/pods";
const SERVICES: &str = "/api/v1/namespaces/default/services";
const STRATEGIC: &str = "application/strategic-merge-patch+json";
const APPLY: &str = "application/apply-patch+yaml";

/// As many items as a real server merges in reasonable time.
const ITEMS: usize = 300;

fn definition() -> Value {
    let item = json!({"type": "object", "properties": {
        "name": {"type": "string"},
        "thread": {"type": "string", "default": "x".repeat(50_000)},
    }});
    let spec = json!({"type": "object", "properties": {
        "text": {"type": "string"}, "items": {"type": "array", "items": item},
    }});
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "wools.large.example.com"},
        "spec": {
            "group": "large.example.com", "scope": "Cluster", "names": {"plural": "wools", "kind": "Wool"},
            "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": {
                "type": "object", "properties": {"spec": spec},
            }}}],
        },
    })
}

fn wool(name: &str, spec: &Value) -> Value {
    json!({"apiVersion": "large.example.com/v1", "kind": "Wool", "metadata": {"name": name}, "spec": spec})
}

fn text(length: usize) -> String {
    "x".repeat(length)
}

/// Custom resources beyond what can be stored, also by being patched, applied or defaulted.
fn about_sizes() -> Vec<Question> {
    let one = format!("{WOOL}/one");
    let kind: &[&str] = &["/kind"];
    vec![
        root("POST", WOOL, wool("one", &json!({"text": text(1_400_000)}))).showing(kind),
        root("POST", WOOL, wool("two", &json!({"text": text(1_700_000)}))),
        root("PATCH", &one, json!({"spec": {"text": text(1_700_000)}})),
        root(
            "PATCH",
            format!("{one}?fieldManager=me&force=true"),
            wool("one", &json!({"text": text(1_700_000)})),
        )
        .by(APPLY),
        root("POST", WOOL, wool("few", &json!({"items": [{}, {}]}))).showing(kind),
        root(
            "POST",
            WOOL,
            wool("many", &json!({"items": vec![json!({}); 40]})),
        ),
    ]
}

fn containers(image: &str, step: usize) -> Value {
    let container = |number: usize| json!({"name": format!("c{number}"), "image": image});
    (0..ITEMS).step_by(step).map(container).collect()
}

fn ports(first: usize, step: usize) -> Value {
    let port = |number: usize| json!({"name": format!("p{number}"), "port": first + number});
    (0..ITEMS).step_by(step).map(port).collect()
}

/// Long lists that are merged by their keys.
fn about_lists() -> Vec<Question> {
    let (pod, service) = (format!("{PODS}/long"), format!("{SERVICES}/long"));
    let named = json!({"name": "long"});
    let applied = |containers: Value| json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "long"}, "spec": {"containers": containers}});
    let delete: Value = (0..ITEMS)
        .step_by(3)
        .map(|number| json!({"$patch": "delete", "port": 2000 + number}))
        .collect();
    let (in_pod, in_service): (&[&str], &[&str]) = (&["/spec/containers"], &["/spec/ports"]);
    vec![
        root(
            "POST",
            PODS,
            json!({"metadata": named, "spec": {"containers": containers("a", 1)}}),
        )
        .showing(in_pod),
        root(
            "PATCH",
            &pod,
            json!({"spec": {"containers": containers("b", 2)}}),
        )
        .by(STRATEGIC)
        .showing(in_pod),
        root(
            "PATCH",
            format!("{pod}?fieldManager=me"),
            applied(containers("c", 3)),
        )
        .by(APPLY),
        root(
            "PATCH",
            format!("{pod}?fieldManager=me&force=true"),
            applied(containers("c", 3)),
        )
        .by(APPLY)
        .showing(in_pod),
        root(
            "POST",
            SERVICES,
            json!({"metadata": named, "spec": {"ports": ports(1000, 1)}}),
        )
        .showing(in_service),
        root(
            "PATCH",
            &service,
            json!({"spec": {"ports": ports(2000, 4)}}),
        )
        .by(STRATEGIC),
        root(
            "PATCH",
            &service,
            json!({"spec": {"ports": ports(2000, 1)}}),
        )
        .showing(in_service),
        root("PATCH", &service, json!({"spec": {"ports": delete}}))
            .by(STRATEGIC)
            .showing(in_service),
    ]
}

/// Lists with thousands of mistakes: how they are refused, without the list of them, which ours cuts.
fn about_mistakes() -> Vec<Question> {
    const MISTAKES: usize = 3_000;
    let pod = |containers: Value, volumes: Value| json!({"metadata": {"name": "wrong"}, "spec": {"containers": containers, "volumes": volumes}});
    let same = json!(vec![json!({"name": "c", "image": "x"}); MISTAKES]);
    let fine = json!([{"name": "c", "image": "x"}]);
    let volumes = json!(vec![json!({"name": "v", "emptyDir": {}}); MISTAKES]);
    let ports = json!(vec![json!({"name": "p", "port": 80}); MISTAKES]);
    vec![
        root("POST", PODS, pod(same, json!([]))),
        root("POST", PODS, pod(fine, volumes)),
        root(
            "POST",
            SERVICES,
            json!({"metadata": {"name": "wrong"}, "spec": {"ports": ports}}),
        ),
    ]
}

#[tokio::test]
async fn large_requests_are_treated_as_by_kubernetes() {
    let Some((_real, theirs, _server, ours)) = both().await else {
        return;
    };
    let define = [root("POST", DEFINITIONS, definition()).showing(&["/kind"])];
    let mut different = compare(&theirs, &ours, &define).await;
    for client in [&theirs, &ours] {
        until(client, WOOL, "/kind", &json!("WoolList")).await;
    }
    different.extend(compare(&theirs, &ours, &about_sizes()).await);
    different.extend(compare(&theirs, &ours, &about_lists()).await);
    for question in about_mistakes() {
        let (expected, _, _) = ask(&theirs, &question).await;
        let (code, _, body) = ask(&ours, &question).await;
        if (code, expected) != (422, 422) {
            let path = &question.path;
            different.push(format!("{path}: real {expected}, ours {code}, {body}"));
        }
    }
    assert!(different.is_empty(), "{}", different.join("\n"));
}
