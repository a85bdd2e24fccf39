//! NetworkPolicies: served as data; the embedded clusters have no network to restrict.

use jiff::Timestamp;
use k8s_openapi::api::networking::v1::NetworkPolicy;
use serde_json::Value;

use crate::columns::{AGE, NAME, age, label_selector, name, words};
use crate::value::{Fill, at, existing, items, list};
use crate::{Column, Generation, Resource};

pub(crate) const RESOURCE: Resource = Resource {
    short_names: &["netpol"],
    generation: Generation::Spec,
    default,
    columns: COLUMNS,
    row,
    ..Resource::namespaced::<NetworkPolicy>(
        "networking.k8s.io",
        "v1",
        "NetworkPolicy",
        "networkpolicies",
    )
};

fn default(object: &mut Value) {
    for direction in ["ingress", "egress"] {
        for rule in items(object, &["spec", direction]) {
            for port in items(rule, &["ports"]) {
                if let Some(port) = port.as_object_mut() {
                    port.fill("protocol", "TCP");
                }
            }
        }
    }
    let mut kinds = vec![Value::from("Ingress")];
    if !list(object, &["spec", "egress"]).is_empty() {
        kinds.push("Egress".into());
    }
    if let Some(spec) = existing(object, &["spec"]) {
        spec.fill_zero("policyTypes", kinds);
    }
}

const COLUMNS: &[Column] = &[
    NAME,
    words("Pod-Selector", "Pods that the policy is for."),
    AGE,
];

fn row(object: &Value, now: Timestamp) -> Vec<Value> {
    vec![
        name(object),
        label_selector(at(object, &["spec", "podSelector"])),
        age(object, now),
    ]
}
