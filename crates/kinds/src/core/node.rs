//! Nodes.

use std::collections::HashSet;

use std::collections::BTreeSet;

use bellwether_schema::{FieldError, FieldErrorKind, FieldPath};
use jiff::Timestamp;
use k8s_openapi::api::core::v1::Node;
use serde_json::{Value, json};

use crate::check::{self, Errors};
use crate::columns::{AGE, NAME, age, cell, cell_or, name, wide, words};
use crate::core::pod;
use crate::resource::{STATUS, proxy};
use crate::value::{Fill, at, entries, existing, flag, is_zero, list, object, text, texts};
use crate::{Column, Creation, FieldSelector, Resource, names, printed};

pub(crate) const RESOURCE: Resource = Resource {
    short_names: &["no"],
    subresources: &[proxy("NodeProxyOptions"), STATUS],
    field_selectors: &[FieldSelector {
        label: "spec.unschedulable",
        paths: &[&["spec", "unschedulable"]],
        absent: "false",
    }],
    keeps_status: true,
    default,
    prepare_create,
    validate,
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

fn validate(new: &Value, old: Option<&Value>, errors: &mut Errors) {
    const METADATA: FieldPath<'static> = FieldPath::new("metadata");
    // Kubernetes blames the metadata for taints.
    validate_taints(new, &METADATA.child("taints"), errors);
    let path = FieldPath::new("spec");
    let ranges = path.child("podCIDRs");
    for (index, range) in texts(new, &["spec", "podCIDRs"]).enumerate() {
        check::cidr(errors, &ranges.index(index), range);
    }
    let Some(old) = old else {
        return;
    };
    let changed = |field: &str| {
        let before = at(old, &["spec", field]);
        !is_zero(before) && before != at(new, &["spec", field])
    };
    if changed("podCIDRs") {
        let detail = "node updates may not change podCIDR except from \"\" to valid";
        errors.push(FieldError::forbidden(&ranges, detail));
    }
    if changed("providerID") {
        let detail = "node updates may not change providerID except from \"\" to valid";
        errors.push(FieldError::forbidden(&path.child("providerID"), detail));
    }
    validate_taints(new, &METADATA.child("taints"), errors);
}

fn validate_taints(new: &Value, path: &FieldPath<'_>, errors: &mut Errors) {
    let taints = list(new, &["spec", "taints"]);
    let mut seen = HashSet::new();
    for (index, taint) in taints.iter().enumerate() {
        let path = path.index(index);
        let key = text(taint, &["key"]);
        check::qualified_name(errors, &path.child("key"), key);
        let value = text(taint, &["value"]);
        let messages = names::label_value(value);
        if !messages.is_empty() {
            errors.push(FieldError::invalid(
                &path.child("value"),
                value,
                messages.join(";"),
            ));
        }
        let effect = text(taint, &["effect"]);
        pod::taint_effect(effect, &path.child("effect"), errors);
        if !seen.insert((key, effect)) {
            let fields = [
                printed::words("Key", "key"),
                printed::words("Value", "value"),
                printed::words("Effect", "effect"),
                printed::pointer("TimeAdded", "timeAdded"),
            ];
            let value = printed::structure(taint, &fields);
            let detail = "taints must be unique by key and effect pair";
            let kind = FieldErrorKind::Duplicate;
            errors.push(printed::error(kind, &path, &value, detail));
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
