//! A scheduler and a kubelet for the real cluster, played by hand: pods are put on the only node, run,
//! and end as annotations of the simulator say.

use std::time::Duration;

use kube::Client;
use serde_json::{Value, json};

use super::stage::{list, send};

const NODE: &str = "hub-node";
const PAUSE: Duration = Duration::from_millis(150);

/// Plays until the test ends.
pub async fn run(client: Client) {
    let node = json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": NODE}});
    send(&client, "POST", "/api/v1/nodes", &node).await;
    let path = format!("/api/v1/nodes/{NODE}");
    for round in 0_u64.. {
        if round.is_multiple_of(20) {
            let now = now();
            let ready = json!({"type": "Ready", "status": "True", "reason": "KubeletReady",
                               "lastHeartbeatTime": now, "lastTransitionTime": now});
            let amounts = json!({"cpu": "64", "memory": "256Gi", "pods": "512"});
            let status =
                json!({"conditions": [ready], "capacity": amounts, "allocatable": amounts});
            send(
                &client,
                "PATCH",
                &format!("{path}/status"),
                &json!({"status": status}),
            )
            .await;
            send(&client, "PATCH", &path, &json!({"spec": {"taints": null}})).await;
        }
        for pod in list(&client, "/api/v1/pods").await {
            step(&client, &pod).await;
        }
        tokio::time::sleep(PAUSE).await;
    }
}

fn now() -> String {
    bellwether_json::time::format_time(bellwether_apiserver::Clock::system().now())
}

/// Does the next thing for a pod.
async fn step(client: &Client, pod: &Value) {
    let metadata = &pod["metadata"];
    let [namespace, name] = ["namespace", "name"].map(|field| metadata[field].as_str().unwrap());
    let path = format!("/api/v1/namespaces/{namespace}/pods/{name}");
    let phase = pod["status"]["phase"].as_str().unwrap_or("Pending");
    let note = |name: &str| {
        let name = format!("simulator.bellwether.dev/{name}");
        metadata["annotations"][name].as_str().unwrap_or_default()
    };
    if metadata["deletionTimestamp"].is_string() {
        let held = metadata["finalizers"]
            .as_array()
            .is_some_and(|list| !list.is_empty());
        if held && !matches!(phase, "Succeeded" | "Failed") {
            end(client, &path, pod, 143).await;
        }
        let options = json!({"gracePeriodSeconds": 0});
        send(client, "DELETE", &path, &options).await;
        return;
    }
    if pod["spec"]["nodeName"].is_null() {
        if pod["spec"]["nodeSelector"].is_null() {
            let target = json!({"apiVersion": "v1", "kind": "Node", "name": NODE});
            let binding = json!({"apiVersion": "v1", "kind": "Binding",
                                 "metadata": {"name": name}, "target": target});
            send(client, "POST", &format!("{path}/binding"), &binding).await;
        }
        return;
    }
    match phase {
        "Pending" if note("fail") != "image" => start(client, &path, pod).await,
        "Running" if pod["spec"]["restartPolicy"] != "Always" && note("run-for").is_empty() => {
            let index = &metadata["annotations"]["batch.kubernetes.io/job-completion-index"];
            let spared = !note("fail-indexes").is_empty() && note("fail-indexes") != *index;
            let code = match note("exit-code") {
                _ if note("fail").is_empty() || spared => 0,
                "" => 1,
                code => code.parse().unwrap(),
            };
            end(client, &path, pod, code).await;
        }
        _ => {}
    }
}

async fn start(client: &Client, path: &str, pod: &Value) {
    let since = now();
    let condition =
        |kind: &str| json!({"type": kind, "status": "True", "lastTransitionTime": since});
    let conditions = ["Initialized", "Ready", "ContainersReady", "PodScheduled"].map(condition);
    let number = pod["metadata"]["resourceVersion"].as_str().unwrap();
    let number: u32 = number.parse().unwrap();
    let address = format!("10.244.{}.{}", number / 250 % 250, number % 250 + 1);
    let status = json!({
        "phase": "Running", "podIP": address, "podIPs": [{"ip": address}], "startTime": since,
        "conditions": conditions,
        "containerStatuses": containers(pod, true, &json!({"running": {"startedAt": since}})),
    });
    send(
        client,
        "PATCH",
        &format!("{path}/status"),
        &json!({"status": status}),
    )
    .await;
}

async fn end(client: &Client, path: &str, pod: &Value, code: i32) {
    let since = now();
    let state = json!({"terminated": {"exitCode": code, "finishedAt": since, "startedAt": since,
                                      "reason": if code == 0 { "Completed" } else { "Error" }}});
    let reason = if code == 0 {
        "PodCompleted"
    } else {
        "PodFailed"
    };
    let status = json!({
        "phase": if code == 0 { "Succeeded" } else { "Failed" },
        "conditions": [{"type": "Ready", "status": "False", "reason": reason, "lastTransitionTime": since}],
        "containerStatuses": containers(pod, false, &state),
    });
    send(
        client,
        "PATCH",
        &format!("{path}/status"),
        &json!({"status": status}),
    )
    .await;
}

fn containers(pod: &Value, ready: bool, state: &Value) -> Vec<Value> {
    let containers = pod["spec"]["containers"].as_array().unwrap().iter();
    let status = |container: &Value| {
        json!({"name": container["name"], "image": container["image"], "imageID": "x", "ready": ready,
               "restartCount": 0, "state": state})
    };
    containers.map(status).collect()
}
