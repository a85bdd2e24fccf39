//! The same workloads beside a real kube-controller-manager, where `KUBEBUILDER_ASSETS` points at one:
//! statuses, conditions, reasons, messages and events have to be the same.

#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    unreachable_pub,
    reason = "a test that cannot go on fails, and one that is skipped says so"
)]
#![allow(
    clippy::needless_pass_by_value,
    reason = "objects are written in place"
)]

mod bounds;
mod jobs;
mod kubelet;
mod picture;
mod rollouts;
mod sets;
mod stage;

use picture::Picture;
use serde_json::{Value, json};

fn template(app: &str, annotations: Value) -> Value {
    json!({
        "metadata": {"labels": {"app": app}, "annotations": annotations},
        "spec": {"terminationGracePeriodSeconds": 1, "containers": [
            {"name": "main", "image": "registry.example/app:1", "ports": [{"name": "http", "containerPort": 80}],
             "resources": {"requests": {"cpu": "10m"}}}]},
    })
}

fn workload(version: &str, kind: &str, name: &str, mut spec: Value) -> Value {
    spec["selector"] = json!({"matchLabels": {"app": name}});
    if spec["template"].is_null() {
        spec["template"] = template(name, Value::Null);
    }
    json!({"apiVersion": version, "kind": kind, "metadata": {"name": name}, "spec": spec})
}

fn image(tag: &str) -> Value {
    let container = json!({"name": "main", "image": format!("registry.example/app:{tag}"),
                           "ports": [{"name": "http", "containerPort": 80}]});
    json!({"spec": {"template": {"spec": {"containers": [container]}}}})
}

fn number(picture: &Picture, key: &str, pointer: &str) -> i64 {
    picture.field(key, pointer).as_i64().unwrap_or(0)
}

/// The reason of a condition that is true.
fn reason(picture: &Picture, key: &str, kind: &str) -> String {
    let conditions = picture.field(key, "/status/conditions");
    let mut conditions = conditions.as_array().into_iter().flatten();
    let found = conditions.find(|found| found["type"] == kind && found["status"] == "True");
    let reason = found.and_then(|found| found["reason"].as_str());
    reason.unwrap_or_default().to_owned()
}
