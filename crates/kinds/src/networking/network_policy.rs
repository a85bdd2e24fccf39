//! NetworkPolicies: served as data; the embedded clusters have no network to restrict.

use std::net::IpAddr;

use bellwether_schema::{FieldError, FieldPath};
use jiff::Timestamp;
use k8s_openapi::api::networking::v1::NetworkPolicy;
use serde_json::Value;

use crate::check::{self, Errors};
use crate::columns::{AGE, NAME, age, label_selector, name, words};
use crate::value::{Fill, at, existing, has, items, list, text, texts};
use crate::{Column, Generation, Resource, selector};

pub(crate) const RESOURCE: Resource = Resource {
    short_names: &["netpol"],
    generation: Generation::Spec,
    default,
    validate,
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

fn validate(new: &Value, _old: Option<&Value>, errors: &mut Errors) {
    let path = FieldPath::new("spec");
    let spec = at(new, &["spec"]);
    selector::validate(
        at(spec, &["podSelector"]),
        &path.child("podSelector"),
        errors,
    );
    for (direction, side) in [("ingress", "from"), ("egress", "to")] {
        let path = path.child(direction);
        for (index, rule) in list(spec, &[direction]).iter().enumerate() {
            let path = path.index(index);
            let ports = path.child("ports");
            for (index, port) in list(rule, &["ports"]).iter().enumerate() {
                validate_port(port, &ports.index(index), errors);
            }
            let peers = path.child(side);
            for (index, peer) in list(rule, &[side]).iter().enumerate() {
                validate_peer(peer, &peers.index(index), errors);
            }
        }
    }
    let path = path.child("policyTypes");
    if list(spec, &["policyTypes"]).len() > 2 {
        let detail = "may not specify more than two policyTypes";
        let value = at(spec, &["policyTypes"]).clone();
        errors.push(FieldError::invalid(&path, value, detail));
        return;
    }
    for (index, kind) in texts(spec, &["policyTypes"]).enumerate() {
        check::supported(errors, &path.index(index), kind, &["Ingress", "Egress"]);
    }
}

fn validate_port(port: &Value, path: &FieldPath<'_>, errors: &mut Errors) {
    if has(port, &["protocol"]) {
        let protocol = text(port, &["protocol"]);
        check::supported(
            errors,
            &path.child("protocol"),
            protocol,
            &["TCP", "UDP", "SCTP"],
        );
    }
    let end_path = path.child("endPort");
    let end = at(port, &["endPort"]).as_i64();
    match (at(port, &["port"]), end) {
        (Value::Null, Some(end)) => {
            let detail = "may not be specified when `port` is not specified";
            errors.push(FieldError::invalid(&end_path, end, detail));
        }
        (Value::Null, None) => {}
        (name @ Value::String(_), end) => {
            if let Some(end) = end {
                let detail = "may not be specified when `port` is non-numeric";
                errors.push(FieldError::invalid(&end_path, end, detail));
            }
            check::port(errors, &path.child("port"), name);
        }
        (number, end) => {
            check::port(errors, &path.child("port"), number);
            let start = number.as_i64().unwrap_or_default();
            if let Some(end) = end {
                if end < start {
                    let detail = "must be greater than or equal to `port`";
                    errors.push(FieldError::invalid(&end_path, start, detail));
                }
                check::port_number(errors, &end_path, end);
            }
        }
    }
}

fn validate_peer(peer: &Value, path: &FieldPath<'_>, errors: &mut Errors) {
    let mut count = 0;
    for field in ["podSelector", "namespaceSelector"] {
        if has(peer, &[field]) {
            count += 1;
            selector::validate(at(peer, &[field]), &path.child(field), errors);
        }
    }
    let block = at(peer, &["ipBlock"]);
    if block.is_object() {
        validate_block(block, &path.child("ipBlock"), errors);
        if count > 0 {
            let detail = "may not specify both ipBlock and another peer";
            errors.push(FieldError::forbidden(path, detail));
        }
    } else if count == 0 {
        errors.push(FieldError::required(path, "must specify a peer"));
    }
}

fn validate_block(block: &Value, path: &FieldPath<'_>, errors: &mut Errors) {
    let range = check::required(errors, block, path, "cidr");
    if range.is_empty() || !check::cidr(errors, &path.child("cidr"), range) {
        return;
    }
    let Some(outer) = check::parse_cidr(range) else {
        return;
    };
    let path = path.child("except");
    for (index, except) in texts(block, &["except"]).enumerate() {
        if check::cidr(errors, &path.index(index), except)
            && !check::parse_cidr(except).is_some_and(|inner| is_within(inner, outer))
        {
            let detail = "must be a strict subset of `cidr`";
            errors.push(FieldError::invalid(&path.index(index), except, detail));
        }
    }
}

/// Whether one range is a part of another, and not all of it.
fn is_within((inner, inner_length): (IpAddr, u8), (outer, outer_length): (IpAddr, u8)) -> bool {
    let bits = |address: IpAddr| match address {
        IpAddr::V4(address) => (u128::from(address.to_bits()) << 96, true),
        IpAddr::V6(address) => (address.to_bits(), false),
    };
    let ((inner, inner_is_v4), (outer, outer_is_v4)) = (bits(inner), bits(outer));
    let shift = 128 - u32::from(outer_length);
    let prefix = |bits: u128| bits.checked_shr(shift).unwrap_or_default();
    inner_is_v4 == outer_is_v4 && inner_length > outer_length && prefix(inner) == prefix(outer)
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
