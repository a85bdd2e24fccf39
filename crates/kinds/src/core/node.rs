//! Nodes.

use std::collections::BTreeSet;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::Node;
use serde_json::{Value, json};

use crate::columns::{AGE, NAME, age, cell, cell_or, name, wide, words};
use crate::resource::STATUS;
use crate::value::{Fill, at, entries, existing, flag, is_zero, list, object, text};
use crate::{Column, Creation, FieldSelector, Resource};

pub(crate) const RESOURCE: Resource = Resource {
    short_names: &["no"],
    subresources: &[STATUS],
    field_selectors: &[FieldSelector {
        label: "spec.unschedulable",
        paths: &[&["spec", "unschedulable"]],
        absent: "false",
    }],
    keeps_status: true,
    default,
    prepare_create,
    columns: COLUMNS,
    row,
    ..Resource::cluster::<Node>("", "v1", "Node", "nodes")
};

/// A new node takes no pods until somebody sees that it is ready.
fn prepare_create(object: &mut Value, _creation: &Creation<'_>) {
    const NOT_READY: &str = "node.kubernetes.io/not-ready";
    let Some(spec) = self::object(object, &["spec"]) else {
        return;
    };
    spec.fill_zero("taints", Value::Array(Vec::new()));
    if let Some(Value::Array(taints)) = spec.get_mut("taints") {
        let is_known = |taint: &Value| {
            text(taint, &["key"]) == NOT_READY && text(taint, &["effect"]) == "NoSchedule"
        };
        if !taints.iter().any(is_known) {
            taints.push(json!({"key": NOT_READY, "effect": "NoSchedule"}));
        }
    }
}

/// Labels that begin so name a role.
const ROLE_PREFIX: &str = "node-role.kubernetes.io/";

fn default(object: &mut Value) {
    let capacity = at(object, &["status", "capacity"]).clone();
    if let Some(status) = existing(object, &["status"])
        && !is_zero(&capacity)
    {
        status.fill_zero("allocatable", capacity);
    }
}

const COLUMNS: &[Column] = &[
    NAME,
    words("Status", "Whether the node is ready, and takes pods."),
    words("Roles", "What the node is for."),
    AGE,
    words("Version", "Version of the kubelet."),
    wide("Internal-IP", "Address inside the cluster."),
    wide("External-IP", "Address outside the cluster."),
    wide("OS-Image", "Operating system."),
    wide("Kernel-Version", "Version of the kernel."),
    wide("Container-Runtime", "Container runtime and its version."),
];

fn row(object: &Value, now: Timestamp) -> Vec<Value> {
    let info = |key: &str| cell_or(object, &["status", "nodeInfo", key], "<unknown>");
    vec![
        name(object),
        status(object).into(),
        roles(object).into(),
        age(object, now),
        cell(object, &["status", "nodeInfo", "kubeletVersion"]),
        address(object, "InternalIP").into(),
        address(object, "ExternalIP").into(),
        info("osImage"),
        info("kernelVersion"),
        info("containerRuntimeVersion"),
    ]
}

fn status(object: &Value) -> String {
    let ready = list(object, &["status", "conditions"])
        .iter()
        .rfind(|condition| text(condition, &["type"]) == "Ready");
    let shown = match ready {
        None => "Unknown",
        Some(condition) if text(condition, &["status"]) == "True" => "Ready",
        Some(_) => "NotReady",
    };
    if flag(object, &["spec", "unschedulable"]) {
        format!("{shown},SchedulingDisabled")
    } else {
        shown.to_owned()
    }
}

fn roles(object: &Value) -> String {
    let roles: BTreeSet<_> = entries(object, &["metadata", "labels"])
        .filter_map(|(key, value)| match key.strip_prefix(ROLE_PREFIX) {
            Some(role) => Some(role),
            None if key == "kubernetes.io/role" => value.as_str(),
            None => None,
        })
        .filter(|role| !role.is_empty())
        .collect();
    if roles.is_empty() {
        "<none>".to_owned()
    } else {
        Vec::from_iter(roles).join(",")
    }
}

fn address<'a>(object: &'a Value, kind: &str) -> &'a str {
    list(object, &["status", "addresses"])
        .iter()
        .find(|address| text(address, &["type"]) == kind)
        .map_or("<none>", |address| text(address, &["address"]))
}
