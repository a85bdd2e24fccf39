//! Which nodes get a pod of a daemon set, and which pods are replaced.

use serde_json::{Value, json};

use super::*;
use crate::plan::Action;

fn node(name: &str, spec: Value) -> Arc<Node> {
    let node = json!({
        "metadata": {"name": name, "labels": {"zone": name}}, "spec": spec,
        "status": {"conditions": [{"type": "Ready", "status": "True"}]},
    });
    Arc::new(serde_json::from_value(node).unwrap())
}

/// A pod as `node hash ready`.
fn pod(text: &str) -> Arc<Pod> {
    let mut words = text.split(' ');
    let (node, hash) = (words.next().unwrap(), words.next().unwrap());
    let ready = if words.next() == Some("ready") {
        "True"
    } else {
        "False"
    };
    let pod = json!({
        "metadata": {"name": format!("{node}-{hash}"), "uid": text, "labels": {CONTROLLER_REVISION_HASH: hash}},
        "spec": {"nodeName": node, "containers": []},
        "status": {"phase": "Running", "conditions": [{"type": "Ready", "status": ready, "lastTransitionTime": "2026-01-01T00:00:00Z"}]},
    });
    Arc::new(serde_json::from_value(pod).unwrap())
}

#[track_caller]
fn check(spec: Value, nodes: &[Arc<Node>], pods: &[&str], expected: &[&str]) {
    let template = json!({"spec": {"containers": []}});
    let mut set = json!({
        "metadata": {"name": "d", "namespace": "default", "uid": "d"},
        "spec": {"selector": {"matchLabels": {"a": "b"}}, "template": template,
                 "updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": 1, "maxSurge": 0}}},
    });
    for (key, value) in spec.as_object().unwrap() {
        set["spec"][key] = value.clone();
    }
    let template = set["spec"]["template"].clone();
    let set: DaemonSet = serde_json::from_value(set).unwrap();
    let mut data = template;
    data["$patch"] = json!("replace");
    let revision = json!({
        "metadata": {"name": "d-new", "labels": {CONTROLLER_REVISION_HASH: "new"}}, "revision": 1,
        "data": {"spec": {"template": data}},
    });
    let revisions = [Arc::new(serde_json::from_value(revision).unwrap())];
    let pods: Vec<_> = pods.iter().map(|text| pod(text)).collect();
    let view = View {
        set: &set,
        pods: &pods,
        orphans: &[],
        revisions: &revisions,
        nodes,
        now: "2026-01-01T00:01:00Z".parse().unwrap(),
    };
    let plan = decide(&view);
    let done: Vec<String> = plan
        .actions
        .iter()
        .filter_map(|action| match action {
            Action::Create(create) => {
                let pod: Pod = serde_json::from_value(create.object.clone()).unwrap();
                Some(format!("+{}", made_for(&pod).unwrap()))
            }
            Action::Delete { subject, .. } => Some(format!("-{}", subject.key.name)),
            _ => None,
        })
        .collect();
    assert_eq!(done, expected);
}

#[test]
fn every_node_that_will_have_it_gets_one_pod() {
    let nodes = [
        node("a", json!({})),
        node(
            "b",
            json!({"taints": [{"key": "gpu", "effect": "NoSchedule"}]}),
        ),
        node("c", json!({"unschedulable": true})),
    ];
    check(json!({}), &nodes, &[], &["+a", "+c"]);
    check(
        json!({}),
        &nodes,
        &["a new ready", "c new ready", "b new ready"],
        &["-b-new"],
    );
    let chosen = json!({"template": {"spec": {"containers": [], "nodeSelector": {"zone": "c"}}}});
    check(chosen, &nodes, &[], &["+c"]);
    let tolerant =
        json!({"template": {"spec": {"containers": [], "tolerations": [{"operator": "Exists"}]}}});
    check(tolerant, &nodes, &[], &["+a", "+b", "+c"]);
}

#[test]
fn pods_are_replaced_as_fast_as_allowed() {
    let nodes = [
        node("a", json!({})),
        node("b", json!({})),
        node("c", json!({})),
    ];
    check(
        json!({}),
        &nodes,
        &["a old ready", "b old ready", "c old ready"],
        &["-a-old"],
    );
    check(
        json!({}),
        &nodes,
        &["a new", "b old ready", "c old ready"],
        &[],
    );
    check(
        json!({}),
        &nodes,
        &["a new ready", "b old", "c old ready"],
        &["-b-old"],
    );
    let surge = json!({"updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": 0, "maxSurge": 1}}});
    check(
        surge.clone(),
        &nodes,
        &["a old ready", "b old ready", "c old ready"],
        &["+a"],
    );
    check(
        surge.clone(),
        &nodes,
        &["a old ready", "a new", "b old ready", "c old ready"],
        &[],
    );
    check(
        surge,
        &nodes,
        &["a old ready", "a new ready", "b old ready", "c old ready"],
        &["-a-old", "+b"],
    );
    check(
        json!({"updateStrategy": {"type": "OnDelete"}}),
        &nodes,
        &["a old ready", "b old ready", "c old ready"],
        &[],
    );
}
