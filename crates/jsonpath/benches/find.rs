//! How fast paths find values: `cargo bench -p bellwether-jsonpath`.

#![expect(clippy::expect_used, reason = "a benchmark of a broken path must stop")]

use bellwether_jsonpath::JsonPath;
use serde_json::{Value, json};

fn main() {
    divan::main();
}

fn deployment() -> Value {
    let conditions: Vec<Value> = (0..10)
        .map(|i| json!({"type": format!("Type{i}"), "status": "True", "reason": "MinimumReplicas"}))
        .collect();
    json!({"spec": {"replicas": 3}, "status": {"readyReplicas": 3, "conditions": conditions}})
}

#[divan::bench(args = [
    "{.status.readyReplicas}",
    "{.status.conditions[?(@.type==\"Type7\")].status}",
    "{..type}",
    "{range .status.conditions[*]}{.type}={.status}{\"\\n\"}{end}",
])]
fn find(bencher: divan::Bencher, path: &str) {
    let object = deployment();
    let path = JsonPath::parse(path).expect("the path is valid");
    bencher.bench(|| path.find(&object).map(|results| results.len()));
}

#[divan::bench]
fn parse() -> JsonPath {
    JsonPath::parse("{.status.conditions[?(@.type==\"Type7\")].status}").expect("it is valid")
}
