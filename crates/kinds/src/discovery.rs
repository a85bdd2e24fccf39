//! The `discovery.k8s.io` group: EndpointSlices.

use std::collections::HashSet;

use std::net::IpAddr;

use bellwether_schema::{FieldError, FieldPath};
use jiff::Timestamp;
use k8s_openapi::api::discovery::v1::EndpointSlice;
use serde_json::Value;

use crate::check::{self, Errors};
use crate::columns::{AGE, NAME, age, cell, first_few, name, words};
use crate::core::service::endpoint_address;
use crate::value::{Fill, at, has, items, list, same, text, texts};
use crate::{Column, Generation, Resource};

pub(crate) const ENDPOINT_SLICE: Resource = Resource {
    generation: Generation::SpecAndLabels,
    default,
    validate,
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

/// Most endpoints, ports and addresses of an endpoint.
const ENDPOINTS: usize = 1000;
const PORTS: usize = 20_000;
const ADDRESSES: usize = 100;

fn validate(new: &Value, old: Option<&Value>, errors: &mut Errors) {
    let kind = text(new, &["addressType"]);
    let path = FieldPath::new("addressType");
    check::required_choice(errors, &path, kind, &["FQDN", "IPv4", "IPv6"]);
    validate_ports(new, errors);
    let unchanged = old.is_some_and(|old| same(at(new, &["endpoints"]), at(old, &["endpoints"])));
    if !unchanged {
        validate_endpoints(new, kind, errors);
    }
    if let Some(old) = old {
        check::immutable(errors, new, old, &["addressType"], &path);
    }
}

fn validate_ports(new: &Value, errors: &mut Errors) {
    let path = FieldPath::new("ports");
    let ports = list(new, &["ports"]);
    if ports.len() > PORTS {
        errors.push(FieldError::too_many(
            &path,
            ports.len() as u64,
            PORTS as u64,
        ));
        return;
    }
    let mut seen = HashSet::new();
    for (index, port) in ports.iter().enumerate() {
        let path = path.index(index);
        let name = text(port, &["name"]);
        if !name.is_empty() {
            check::label(errors, &path.child("name"), name);
        }
        if !seen.insert(name) {
            errors.push(FieldError::duplicate(&path.child("name"), name));
        }
        let protocol = text(port, &["protocol"]);
        let protocols = ["SCTP", "TCP", "UDP"];
        check::required_choice(errors, &path.child("protocol"), protocol, &protocols);
        if has(port, &["appProtocol"]) {
            let path = path.child("appProtocol");
            check::qualified_name(errors, &path, text(port, &["appProtocol"]));
        }
    }
}

fn validate_endpoints(new: &Value, kind: &str, errors: &mut Errors) {
    let path = FieldPath::new("endpoints");
    let endpoints = list(new, &["endpoints"]);
    if endpoints.len() > ENDPOINTS {
        errors.push(FieldError::too_many(
            &path,
            endpoints.len() as u64,
            ENDPOINTS as u64,
        ));
        return;
    }
    for (index, endpoint) in endpoints.iter().enumerate() {
        let path = path.index(index);
        let addresses = path.child("addresses");
        let count = list(endpoint, &["addresses"]).len();
        if count == 0 {
            let detail = "must contain at least 1 address";
            errors.push(FieldError::required(&addresses, detail));
        } else if count > ADDRESSES {
            errors.push(FieldError::too_many(
                &addresses,
                count as u64,
                ADDRESSES as u64,
            ));
        }
        for (index, address) in texts(endpoint, &["addresses"]).enumerate() {
            validate_address(address, kind, &addresses.index(index), &addresses, errors);
        }
        if has(endpoint, &["nodeName"]) {
            let name = text(endpoint, &["nodeName"]);
            check::subdomain(errors, &path.child("nodeName"), name);
        }
        if has(endpoint, &["hostname"]) {
            check::label(
                errors,
                &path.child("hostname"),
                text(endpoint, &["hostname"]),
            );
        }
    }
}

fn validate_address(
    address: &str,
    kind: &str,
    path: &FieldPath<'_>,
    list_path: &FieldPath<'_>,
    errors: &mut Errors,
) {
    if kind == "FQDN" {
        let name = address.strip_suffix('.').unwrap_or(address);
        check::subdomain(errors, path, name);
        if !name.contains('.') {
            let detail = "should be a domain with at least two segments separated by dots";
            errors.push(FieldError::invalid(path, address, detail));
        }
        return;
    }
    let Ok(parsed) = address.parse::<IpAddr>() else {
        check::ip(errors, path, address);
        return;
    };
    let fits = match kind {
        "IPv4" => parsed.is_ipv4(),
        "IPv6" => parsed.is_ipv6(),
        _ => return,
    };
    if !fits {
        let detail = format!("must be an {kind} address");
        errors.push(FieldError::invalid(list_path, address, detail));
    }
    endpoint_address(parsed, address, path, errors);
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
    let shown = |port: &Value| match at(port, &["port"]).as_i64() {
        Some(number) => number.to_string(),
        None => match at(port, &["name"]).as_str() {
            Some(name) => name.to_owned(),
            None => "*".to_owned(),
        },
    };
    let ports: Vec<_> = list(object, &["ports"]).iter().map(shown).collect();
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
