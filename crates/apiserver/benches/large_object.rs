//! What it costs to change one item of a list in an object of custom kind: a policy that lists the state of so many
//! clusters. Once by a patch that names the item, and once by one that needs the whole object. A report, never a
//! verdict.

#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    missing_docs,
    reason = "a benchmark"
)]

use std::time::Duration;

use bellwether_api::policy::Policy;
use bellwether_apiserver::{ApiServer, Caller, Clock, HUB, Identity};
use bellwether_store::{Options, Store};
use bytes::Bytes;
use http::Request;
use http_body_util::{BodyExt as _, Full};
use serde_json::{Value, json};

const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
const POLICIES: &str = "/apis/policy.open-cluster-management.io/v1/namespaces/default/policies";
/// What the program allocates with.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// How often each patch is sent.
const TIMES: u32 = 200;

#[tokio::main(flavor = "current_thread")]
async fn main() {
    let server = ApiServer::new(Store::in_memory(Options::default()), Clock::system());
    server.add_cluster(HUB).await.unwrap();
    let definition = serde_json::to_value(bellwether_api::definition::<Policy>()).unwrap();
    send(&server, "POST", DEFINITIONS, "application/json", definition).await;
    let chosen: Vec<usize> = std::env::args().filter_map(|it| it.parse().ok()).collect();
    let sizes = if chosen.is_empty() {
        vec![10, 100, 1000]
    } else {
        chosen
    };
    for clusters in sizes {
        let name = format!("policy-{clusters}");
        create(&server, &name, clusters).await;
        for (what, whole) in [("one item", false), ("the whole", true)] {
            let took = measure(&server, &name, clusters, whole).await;
            println!("{clusters:>5} clusters, {what}: {took:>9.1?} for each patch");
        }
    }
}

/// The time that a patch takes on processors.
async fn measure(server: &ApiServer, name: &str, clusters: usize, whole: bool) -> Duration {
    change(server, name, clusters - 1, 0, whole).await;
    let before = used();
    for number in 1..=TIMES {
        change(server, name, clusters - 1, number, whole).await;
    }
    used().saturating_sub(before) / TIMES
}

/// Processor time of the process, which handles large requests on threads of their own.
fn used() -> Duration {
    // The kernel brings the figure up to date when a thread gives way.
    std::thread::yield_now();
    let tasks = std::fs::read_dir("/proc/self/task").unwrap().flatten();
    let nanos = tasks.map(|task| {
        let text = std::fs::read_to_string(task.path().join("schedstat")).unwrap_or_default();
        text.split(' ')
            .next()
            .and_then(|it| it.parse().ok())
            .unwrap_or(0)
    });
    Duration::from_nanos(nanos.sum())
}

async fn create(server: &ApiServer, name: &str, clusters: usize) {
    let object = json!({"apiVersion": "policy.open-cluster-management.io/v1", "kind": "Policy",
        "metadata": {"name": name}, "spec": {"disabled": false, "remediationAction": "inform", "policy-templates": [
            {"objectDefinition": {"apiVersion": "policy.open-cluster-management.io/v1", "kind": "ConfigurationPolicy",
                "metadata": {"name": "part"}, "spec": {"remediationAction": "inform", "severity": "low",
                    "object-templates": [{"complianceType": "musthave", "objectDefinition": {"apiVersion": "v1",
                        "kind": "ConfigMap", "metadata": {"name": "x", "namespace": "default"},
                        "data": {"text": "x".repeat(300)}}}]}}}]}});
    send(server, "POST", POLICIES, "application/json", object).await;
    let entry = |number: usize| {
        json!({"clustername": format!("c{number:05}"),
        "clusternamespace": format!("c{number:05}"), "compliant": "Compliant", "rolloutStatus": "Succeeded",
        "rolloutStatusLastTransitionTime": "2026-11-15T20:12:00.000000Z"})
    };
    let entries: Vec<Value> = (0..clusters).map(entry).collect();
    let status = json!({"status": {"compliant": "Compliant", "status": entries}});
    let url = format!("{POLICIES}/{name}/status");
    send(
        server,
        "PATCH",
        &url,
        "application/merge-patch+json",
        status,
    )
    .await;
}

async fn change(server: &ApiServer, name: &str, cluster: usize, number: u32, whole: bool) {
    let state = if number.is_multiple_of(2) {
        "NonCompliant"
    } else {
        "Compliant"
    };
    let entry = format!("/status/status/{cluster}");
    let mut patch = vec![
        json!({"op": "test", "path": format!("{entry}/clustername"), "value": format!("c{cluster:05}")}),
        json!({"op": "add", "path": format!("{entry}/compliant"), "value": state}),
        json!({"op": "add", "path": "/status/compliant", "value": state}),
    ];
    if whole {
        patch.push(json!({"op": "copy", "from": "/spec/disabled", "path": "/spec/disabled"}));
    }
    let url = format!("{POLICIES}/{name}/status");
    send(
        server,
        "PATCH",
        &url,
        "application/json-patch+json",
        patch.into(),
    )
    .await;
}

async fn send(server: &ApiServer, method: &str, path: &str, content_type: &str, body: Value) {
    let accept = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1";
    let request = Request::builder()
        .method(method)
        .uri(path)
        .header("content-type", content_type)
        .header("accept", accept)
        .header("user-agent", "bench/1")
        .extension(caller())
        .body(Full::new(Bytes::from(body.to_string())))
        .unwrap();
    let response = server.handle(request).await;
    let status = response.status();
    let bytes = response.into_body().collect().await.unwrap().to_bytes();
    assert!(
        status.is_success(),
        "{status} {}",
        String::from_utf8_lossy(&bytes)
    );
}

fn caller() -> Caller {
    Caller {
        identity: Some(Identity::administrator("bench")),
        only_cluster: Some(HUB.into()),
        expires: None,
        address: None,
        in_process: true,
    }
}
