//! How fast texts become values and values become texts: `cargo bench -p bellwether-json`.
//!
//! `serde_json` stands beside the strict parser as the yardstick.

#![expect(clippy::expect_used, reason = "a benchmark on broken input must stop")]

use bellwether_json::{strict, yaml};
use divan::Bencher;
use divan::counter::BytesCount;
use serde_json::{Value, json};

fn main() {
    divan::main();
}

/// A deployment of everyday size.
fn deployment(index: usize) -> Value {
    let labels = json!({"app.kubernetes.io/name": format!("web-{index}"), "tier": "front"});
    let container = |name: &str| {
        json!({
            "name": name,
            "image": "registry.example.com/team/application:v1.2.3",
            "args": ["--listen=0.0.0.0:8080", "--verbose", "--config=/etc/application/config.yaml"],
            "env": [{"name": "POD_NAME", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}],
            "ports": [{"containerPort": 8080, "protocol": "TCP"}],
            "resources": {"limits": {"cpu": "500m", "memory": "512Mi"}, "requests": {"cpu": "100m"}},
        })
    };
    json!({
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": format!("web-{index}"), "namespace": "default", "labels": labels},
        "spec": {
            "replicas": 3,
            "selector": {"matchLabels": labels},
            "template": {
                "metadata": {"labels": labels},
                "spec": {"containers": [container("main"), container("sidecar")]},
            },
        },
        "status": {
            "readyReplicas": 3,
            "conditions": [{
                "type": "Available",
                "status": "True",
                "lastTransitionTime": "2026-11-02T03:04:05Z",
                "message": "Deployment has minimum availability.\nNothing \"else\" to say.",
            }],
        },
    })
}

fn objects(count: usize) -> Value {
    match count {
        1 => deployment(0),
        count => (0..count).map(deployment).collect(),
    }
}

const SIZES: [usize; 2] = [1, 100];

#[divan::bench(args = SIZES)]
fn json_strict(bencher: Bencher, count: usize) {
    let text = objects(count).to_string();
    bencher
        .counter(BytesCount::of_str(&text))
        .bench(|| strict::parse(text.as_bytes()).expect("it is JSON"));
}

#[divan::bench(args = SIZES)]
fn json_serde(bencher: Bencher, count: usize) {
    let text = objects(count).to_string();
    bencher.counter(BytesCount::of_str(&text)).bench(|| {
        let value: Value = serde_json::from_slice(text.as_bytes()).expect("it is JSON");
        value
    });
}

#[divan::bench(args = SIZES)]
fn yaml_read(bencher: Bencher, count: usize) {
    let text = yaml::to_yaml(&objects(count));
    bencher
        .counter(BytesCount::of_str(&text))
        .bench(|| yaml::from_yaml(&text).expect("it is YAML"));
}

#[divan::bench(args = SIZES)]
fn yaml_write(bencher: Bencher, count: usize) {
    let value = objects(count);
    bencher.bench(|| yaml::to_yaml(&value));
}
