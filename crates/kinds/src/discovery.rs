//! The `discovery.k8s.io` group: EndpointSlices.

use jiff::Timestamp;
use k8s_openapi::api::discovery::v1::EndpointSlice;
use serde_json::Value;

use crate::columns::{AGE, NAME, age, cell, first_few, name, words};
use crate::value::{Fill, at, items, list, text, texts};
use crate::{Column, Generation, Resource};

pub(crate) const ENDPOINT_SLICE: Resource = Resource {
    generation: Generation::SpecAndLabels,
    default,
    columns: COLUMNS,
    row,
    ..Resource::namespaced::<EndpointSlice>(
        "discovery.k8s.io",
        "v1",
        "EndpointSlice",
        "endpointslices",
    )
};

fn default(object: &mut Value) {
    for port in items(object, &["ports"]) {
        if let Some(port) = port.as_object_mut() {
            port.fill("name", "");
            port.fill("protocol", "TCP");
        }
    }
}

/// Ports or addresses that are shown before the rest is counted.
const SHOWN: usize = 3;

const COLUMNS: &[Column] = &[
    NAME,
    words("AddressType", "Kind of the addresses."),
    words("Ports", "Ports of the endpoints."),
    words("Endpoints", "Addresses of the endpoints."),
    AGE,
];

fn row(object: &Value, now: Timestamp) -> Vec<Value> {
    let ports: Vec<_> = list(object, &["ports"])
        .iter()
        .map(
            |port| match (at(port, &["port"]).as_i64(), text(port, &["name"])) {
                (Some(number), _) => number.to_string(),
                (None, "") => "*".to_owned(),
                (None, name) => name.to_owned(),
            },
        )
        .collect();
    let addresses: Vec<_> = list(object, &["endpoints"])
        .iter()
        .flat_map(|endpoint| texts(endpoint, &["addresses"]))
        .map(str::to_owned)
        .collect();
    vec![
        name(object),
        cell(object, &["addressType"]),
        first_few(&ports, SHOWN, ",", "<unset>").into(),
        first_few(&addresses, SHOWN, ",", "<unset>").into(),
        age(object, now),
    ]
}
