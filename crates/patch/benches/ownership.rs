//! What a write to an object of everyday size costs.
#![expect(
    clippy::unwrap_used,
    reason = "a benchmark that cannot start should stop"
)]

use std::sync::Arc;

use bellwether_patch::managed::{self, Write};
use bellwether_patch::{json_patch, merge, strategic};
use bellwether_schema::{ListType, PatchStrategy, Schema, Type};
use divan::Bencher;
use serde_json::{Value, json};

fn main() {
    divan::main();
}

fn scalar(kind: Type) -> Arc<Schema> {
    Arc::new(Schema {
        kind: Some(kind),
        ..Schema::default()
    })
}

fn object(properties: &[(&str, Arc<Schema>)]) -> Arc<Schema> {
    Arc::new(Schema {
        kind: Some(Type::Object),
        properties: properties
            .iter()
            .map(|(name, schema)| ((*name).to_owned(), schema.clone()))
            .collect(),
        ..Schema::default()
    })
}

fn texts() -> Arc<Schema> {
    Arc::new(Schema {
        kind: Some(Type::Object),
        additional_properties: Some(scalar(Type::String)),
        ..Schema::default()
    })
}

fn list_by(key: &[&str], items: Arc<Schema>) -> Arc<Schema> {
    Arc::new(Schema {
        kind: Some(Type::Array),
        items: Some(items),
        list_type: ListType::Map(key.iter().map(|key| (*key).to_owned()).collect()),
        patch: Some(PatchStrategy {
            merge: true,
            retain_keys: false,
            merge_key: Some(key[0].to_owned()),
        }),
        ..Schema::default()
    })
}

/// A schema that is shaped like that of a Deployment.
fn schema() -> Arc<Schema> {
    let text = || scalar(Type::String);
    let number = || scalar(Type::Integer);
    let container = object(&[
        ("name", text()),
        ("image", text()),
        ("imagePullPolicy", text()),
        ("terminationMessagePath", text()),
        ("terminationMessagePolicy", text()),
        (
            "env",
            list_by(&["name"], object(&[("name", text()), ("value", text())])),
        ),
        (
            "ports",
            list_by(
                &["containerPort", "protocol"],
                object(&[
                    ("containerPort", number()),
                    ("name", text()),
                    ("protocol", text()),
                ]),
            ),
        ),
        (
            "resources",
            object(&[("limits", texts()), ("requests", texts())]),
        ),
    ]);
    let template = object(&[
        ("metadata", object(&[("labels", texts())])),
        (
            "spec",
            object(&[
                ("containers", list_by(&["name"], container)),
                ("restartPolicy", text()),
                ("dnsPolicy", text()),
                ("schedulerName", text()),
                ("terminationGracePeriodSeconds", number()),
            ]),
        ),
    ]);
    object(&[
        (
            "spec",
            object(&[
                ("replicas", number()),
                ("progressDeadlineSeconds", number()),
                ("revisionHistoryLimit", number()),
                ("selector", object(&[("matchLabels", texts())])),
                ("template", template),
            ]),
        ),
        (
            "status",
            object(&[("replicas", number()), ("observedGeneration", number())]),
        ),
    ])
}

fn deployment() -> Value {
    let container = |name: &str| {
        json!({
            "name": name, "image": format!("registry.example/{name}:1.2.3"),
            "imagePullPolicy": "IfNotPresent",
            "terminationMessagePath": "/dev/termination-log", "terminationMessagePolicy": "File",
            "env": (0..6).map(|n| json!({"name": format!("VARIABLE_{n}"), "value": "x"})).collect::<Vec<_>>(),
            "ports": [
                {"containerPort": 8080, "name": "http", "protocol": "TCP"},
                {"containerPort": 9090, "name": "metrics", "protocol": "TCP"},
            ],
            "resources": {"limits": {"cpu": "1", "memory": "1Gi"}, "requests": {"cpu": "100m", "memory": "64Mi"}},
        })
    };
    json!({
        "apiVersion": "apps/v1", "kind": "Deployment",
        "metadata": {
            "name": "web", "namespace": "shop", "labels": {"app": "web", "team": "shop"},
            "annotations": {"note": "an annotation"},
        },
        "spec": {
            "replicas": 3, "progressDeadlineSeconds": 600, "revisionHistoryLimit": 10,
            "selector": {"matchLabels": {"app": "web"}},
            "template": {
                "metadata": {"labels": {"app": "web", "version": "1"}},
                "spec": {
                    "containers": [container("web"), container("sidecar")],
                    "restartPolicy": "Always", "dnsPolicy": "ClusterFirst",
                    "schedulerName": "default-scheduler", "terminationGracePeriodSeconds": 30,
                },
            },
        },
    })
}

fn write<'a>(schema: &'a Schema, manager: &'a str) -> Write<'a> {
    Write {
        schema,
        api_version: "apps/v1",
        kind: "Deployment",
        subresource: "",
        manager,
        reset_fields: None,
        now: "2026-11-15T20:12:00Z",
        versions: None,
    }
}

fn stored(schema: &Schema) -> Value {
    let mut stored = managed::update(&json!({}), deployment(), &write(schema, "creator"));
    stored["metadata"]["uid"] = "1".into();
    stored
}

#[divan::bench]
fn create(bencher: Bencher) {
    let schema = schema();
    bencher
        .with_inputs(deployment)
        .bench_values(|new| managed::update(&json!({}), new, &write(&schema, "creator")));
}

#[divan::bench]
fn update_one_field(bencher: Bencher) {
    let schema = schema();
    let live = stored(&schema);
    let mut new = live.clone();
    new["spec"]["replicas"] = 4.into();
    bencher
        .with_inputs(|| new.clone())
        .bench_values(|new| managed::update(&live, new, &write(&schema, "scaler")));
}

#[divan::bench]
fn update_without_effect(bencher: Bencher) {
    let schema = schema();
    let live = stored(&schema);
    bencher
        .with_inputs(|| live.clone())
        .bench_values(|new| managed::update(&live, new, &write(&schema, "creator")));
}

#[divan::bench]
fn apply_again(bencher: Bencher) {
    let schema = schema();
    let write = write(&schema, "applier");
    let mut live = managed::apply(&json!({}), &deployment(), &write, false)
        .unwrap()
        .object;
    live["metadata"]["uid"] = "1".into();
    bencher.bench(|| managed::apply(&live, &deployment(), &write, false));
}

#[divan::bench]
fn apply_a_change(bencher: Bencher) {
    let schema = schema();
    let write = write(&schema, "applier");
    let mut live = managed::apply(&json!({}), &deployment(), &write, false)
        .unwrap()
        .object;
    live["metadata"]["uid"] = "1".into();
    let mut next = deployment();
    next["spec"]["template"]["spec"]["containers"][0]["image"] = "registry.example/web:2".into();
    next["metadata"]["labels"] = json!({"app": "web"});
    bencher.bench(|| managed::apply(&live, &next, &write, false));
}

#[divan::bench]
fn strategic_merge(bencher: Bencher) {
    let schema = schema();
    let patch =
        json!({"spec": {"template": {"spec": {"containers": [{"name": "web", "image": "x"}]}}}});
    bencher
        .with_inputs(|| (deployment(), patch.clone()))
        .bench_values(|(live, patch)| strategic::apply(live, patch, &schema));
}

#[divan::bench]
fn merge_patch(bencher: Bencher) {
    bencher
        .with_inputs(|| (deployment(), json!({"spec": {"replicas": 5}})))
        .bench_values(|(mut live, patch)| merge::apply(&mut live, patch).map(|()| live));
}

#[divan::bench]
fn json_patch_one_field(bencher: Bencher) {
    let patch = json!([{"op": "replace", "path": "/spec/replicas", "value": 5}]);
    bencher.with_inputs(deployment).bench_values(|live| {
        json_patch::JsonPatch::parse(&patch).and_then(|patch| patch.apply(live))
    });
}
