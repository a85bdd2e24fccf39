//! Endpoints, which EndpointSlices have replaced.

use bellwether_schema::{FieldError, FieldPath};
use jiff::Timestamp;
use k8s_openapi::api::core::v1::Endpoints;
use serde_json::Value;

use crate::Resource;
use crate::check::{self, Errors};
use crate::columns::{AGE, NAME, age, first_few, name, words};
use crate::core::service::endpoint_address;
use crate::value::{Fill, int, items, list, text};

pub(crate) const RESOURCE: Resource = Resource {
    short_names: &["ep"],
    create_on_update: true,
    default,
    validate,
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

fn validate(new: &Value, _old: Option<&Value>, errors: &mut Errors) {
    let path = FieldPath::new("subsets");
    for (index, subset) in list(new, &["subsets"]).iter().enumerate() {
        let path = path.index(index);
        let ready = list(subset, &["addresses"]);
        let other = list(subset, &["notReadyAddresses"]);
        if ready.is_empty() && other.is_empty() {
            let detail = "must specify `addresses` or `notReadyAddresses`";
            errors.push(FieldError::required(&path, detail));
        }
        for (field, addresses) in [("addresses", ready), ("notReadyAddresses", other)] {
            let path = path.child(field);
            for (index, address) in addresses.iter().enumerate() {
                validate_address(address, &path.index(index), errors);
            }
        }
        let path = path.child("ports");
        let ports = list(subset, &["ports"]);
        for (index, port) in ports.iter().enumerate() {
            let path = path.index(index);
            let name = text(port, &["name"]);
            if !name.is_empty() {
                check::label(errors, &path.child("name"), name);
            } else if ports.len() > 1 {
                errors.push(FieldError::required(&path.child("name"), ""));
            }
            check::port_number(errors, &path.child("port"), int(port, &["port"]));
            let protocol = text(port, &["protocol"]);
            let protocols = ["SCTP", "TCP", "UDP"];
            check::required_choice(errors, &path.child("protocol"), protocol, &protocols);
        }
    }
}

fn validate_address(address: &Value, path: &FieldPath<'_>, errors: &mut Errors) {
    let ip = text(address, &["ip"]);
    let host = text(address, &["hostname"]);
    check::ip(errors, &path.child("ip"), ip);
    if !host.is_empty() {
        check::label(errors, &path.child("hostname"), host);
    }
    if let Ok(parsed) = ip.parse() {
        endpoint_address(parsed, ip, &path.child("ip"), errors);
    } else {
        let detail = "must be a valid IP address";
        errors.push(FieldError::invalid(&path.child("ip"), ip, detail));
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
