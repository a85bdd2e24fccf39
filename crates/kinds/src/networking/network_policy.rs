//! NetworkPolicies: served as data; the embedded clusters have no network to restrict.

use jiff::Timestamp;
use k8s_openapi::api::networking::v1::NetworkPolicy;
use serde_json::Value;

use crate::columns::{AGE, NAME, age, label_selector, name, words};
use crate::value::at;
use crate::{Column, Generation, Resource};

pub(crate) const RESOURCE: Resource = Resource {
    short_names: &["netpol"],
    generation: Generation::Spec,
    columns: COLUMNS,
    row,
    ..Resource::namespaced::<NetworkPolicy>(
        "networking.k8s.io",
        "v1",
        "NetworkPolicy",
        "networkpolicies",
    )
};

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
