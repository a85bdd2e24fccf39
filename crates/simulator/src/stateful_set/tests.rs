//! Which pod of a stateful set comes or goes next.

use serde_json::{Value, json};

use super::*;
use crate::plan::Action;

/// A pod as `name state revision`; states are `ready`, `starting`, `failed`, `leaving`.
fn pod(text: &str) -> Arc<Pod> {
    let mut words = text.split(' ');
    let (name, state, revision) = (
        words.next().unwrap(),
        words.next().unwrap(),
        words.next().unwrap_or("new"),
    );
    let ready = if state == "ready" { "True" } else { "False" };
    let phase = if state == "failed" {
        "Failed"
    } else {
        "Running"
    };
    let mut pod = json!({
        "metadata": {"name": name, "namespace": "default", "uid": name, "labels": {"controller-revision-hash": revision}},
        "spec": {"containers": []},
        "status": {"phase": phase, "conditions": [{"type": "Ready", "status": ready, "lastTransitionTime": "2026-01-01T00:00:00Z"}]},
    });
    if state == "leaving" {
        pod["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
    }
    Arc::new(serde_json::from_value(pod).unwrap())
}

#[track_caller]
fn check(spec: Value, pods: &[&str], expected: &[&str]) {
    let mut set = json!({
        "metadata": {"name": "db", "namespace": "default", "uid": "s"},
        "spec": {"replicas": 3, "selector": {"matchLabels": {"a": "b"}}, "serviceName": "db",
                 "template": {"spec": {"containers": []}}},
        "status": {"replicas": 0, "currentRevision": "old"},
    });
    for (key, value) in spec.as_object().unwrap() {
        set["spec"][key] = value.clone();
    }
    let set: StatefulSet = serde_json::from_value(set).unwrap();
    let revision = |name: &str, number: i64, image: Value| -> Arc<ControllerRevision> {
        let mut template = json!({"spec": {"containers": []}, "$patch": "replace"});
        if !image.is_null() {
            template["metadata"] = json!({"annotations": {"image": image}});
        }
        let object = json!({"metadata": {"name": name}, "revision": number, "data": {"spec": {"template": template}}});
        Arc::new(serde_json::from_value(object).unwrap())
    };
    let revisions = [
        revision("old", 1, json!("old")),
        revision("new", 2, Value::Null),
    ];
    let pods: Vec<_> = pods.iter().map(|text| pod(text)).collect();
    let view = View {
        set: &set,
        pods: &pods,
        orphans: &[],
        revisions: &revisions,
        claims: &[],
        now: "2026-01-01T00:01:00Z".parse().unwrap(),
    };
    let plan = decide(&view);
    let done: Vec<String> = plan
        .actions
        .iter()
        .filter_map(|action| match action {
            Action::Create(create) => {
                let labels = &create.object["metadata"]["labels"];
                Some(format!(
                    "+{} {}",
                    create.object["metadata"]["name"].as_str().unwrap(),
                    labels["controller-revision-hash"].as_str().unwrap()
                ))
            }
            Action::Delete { subject, .. } => Some(format!("-{}", subject.key.name)),
            _ => None,
        })
        .collect();
    assert_eq!(done, expected);
}

#[test]
fn pods_come_one_after_the_other() {
    check(json!({}), &[], &["+db-0 new"]);
    check(json!({}), &["db-0 starting"], &[]);
    check(json!({}), &["db-0 ready"], &["+db-1 new"]);
    check(json!({}), &["db-0 ready", "db-2 ready"], &["+db-1 new"]);
    check(json!({}), &["db-0 failed", "db-1 ready"], &["-db-0"]);
    check(json!({"minReadySeconds": 120}), &["db-0 ready"], &[]);
    check(
        json!({"ordinals": {"start": 5}}),
        &["db-5 ready"],
        &["+db-6 new"],
    );
    check(
        json!({"podManagementPolicy": "Parallel"}),
        &["db-1 starting"],
        &["+db-0 new", "+db-2 new"],
    );
}

#[test]
fn pods_go_from_the_last_to_the_first() {
    let all = ["db-0 ready", "db-1 ready", "db-2 ready"];
    check(json!({"replicas": 1}), &all, &["-db-2"]);
    check(
        json!({"replicas": 1}),
        &["db-0 ready", "db-1 ready", "db-2 leaving"],
        &[],
    );
    check(
        json!({"replicas": 1}),
        &["db-0 starting", "db-1 ready", "db-2 ready"],
        &[],
    );
    check(
        json!({"replicas": 1, "podManagementPolicy": "Parallel"}),
        &all,
        &["-db-2", "-db-1"],
    );
}

#[test]
fn updates_go_from_the_last_to_the_partition() {
    let strategy = |partition: i32, unavailable: i32| json!({"updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"partition": partition, "maxUnavailable": unavailable}}});
    let old = ["db-0 ready old", "db-1 ready old", "db-2 ready old"];
    check(strategy(0, 1), &old, &["-db-2"]);
    check(strategy(0, 2), &old, &["-db-2", "-db-1"]);
    check(
        strategy(2, 1),
        &["db-0 ready old", "db-1 ready old", "db-2 ready new"],
        &[],
    );
    check(
        strategy(0, 1),
        &["db-0 ready old", "db-1 ready old", "db-2 starting new"],
        &[],
    );
    check(
        strategy(1, 1),
        &["db-1 ready old", "db-2 ready old"],
        &["+db-0 old"],
    );
    check(json!({"updateStrategy": {"type": "OnDelete"}}), &old, &[]);
}
