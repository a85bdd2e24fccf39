//! Endpoints, which EndpointSlices have replaced.

use jiff::Timestamp;
use k8s_openapi::api::core::v1::Endpoints;
use serde_json::Value;

use crate::Resource;
use crate::columns::{AGE, NAME, age, first_few, name, words};
use crate::value::{Fill, int, items, list, text};

pub(crate) const RESOURCE: Resource = Resource {
    short_names: &["ep"],
    create_on_update: true,
    default,
    columns: &[NAME, words("Endpoints", "Addresses and ports."), AGE],
    row,
    ..Resource::namespaced::<Endpoints>("", "v1", "Endpoints", "endpoints")
};

fn default(object: &mut Value) {
    for subset in items(object, &["subsets"]) {
        for port in items(subset, &["ports"]) {
            if let Some(port) = port.as_object_mut() {
                port.fill_zero("protocol", "TCP");
            }
        }
    }
}

/// Endpoints that are shown before the rest is counted.
const SHOWN: usize = 3;

fn row(object: &Value, now: Timestamp) -> Vec<Value> {
    let mut all = Vec::new();
    for subset in list(object, &["subsets"]) {
        let addresses = list(subset, &["addresses"]);
        let ports = list(subset, &["ports"]);
        if ports.is_empty() {
            all.extend(addresses.iter().map(|one| text(one, &["ip"]).to_owned()));
        }
        for port in ports {
            let number = int(port, &["port"]);
            all.extend(addresses.iter().map(|one| match text(one, &["ip"]) {
                ip if ip.contains(':') => format!("[{ip}]:{number}"),
                ip => format!("{ip}:{number}"),
            }));
        }
    }
    // Subsets without a ready address print as nothing; no subset at all prints as `<none>`.
    let none = if list(object, &["subsets"]).is_empty() {
        "<none>"
    } else {
        ""
    };
    vec![
        name(object),
        first_few(&all, SHOWN, ",", none).into(),
        age(object, now),
    ]
}
