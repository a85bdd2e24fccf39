//! What the server has to allocate for a service, and what it keeps from before.

use std::collections::HashMap;

use std::net::IpAddr;

use serde_json::{Value, json};

use super::validate::is_headless;
use crate::value::{Fill, at, existing, int, is_zero, items, list, object, same, text, texts};

/// What a service needs that only the server can give.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ServiceNeeds {
    /// An address in the cluster; [`set_cluster_ip`] takes it.
    pub cluster_ip: bool,
    /// Ports of the nodes for the ports at these indices; [`set_node_port`] takes them.
    pub node_ports: Vec<usize>,
    /// A port of the nodes for health checks, in `spec.healthCheckNodePort`.
    pub health_check_port: bool,
}

/// What has to be allocated before the service is validated and stored.
pub fn service_needs(service: &Value) -> ServiceNeeds {
    let spec = at(service, &["spec"]);
    let kind = text(spec, &["type"]);
    let has_address = matches!(kind, "ClusterIP" | "NodePort" | "LoadBalancer");
    let balanced = kind == "LoadBalancer";
    let opens_ports =
        kind == "NodePort" || balanced && at(spec, &["allocateLoadBalancerNodePorts"]) != false;
    let ports = list(spec, &["ports"]).iter().enumerate();
    ServiceNeeds {
        cluster_ip: has_address && text(spec, &["clusterIP"]).is_empty(),
        node_ports: ports
            .filter(|(_, port)| opens_ports && int(port, &["nodePort"]) == 0)
            .map(|(index, _)| index)
            .collect(),
        health_check_port: balanced
            && text(spec, &["externalTrafficPolicy"]) == "Local"
            && int(spec, &["healthCheckNodePort"]) == 0,
    }
}

/// Gives a service its address.
pub fn set_cluster_ip(service: &mut Value, address: IpAddr) {
    if let Some(spec) = existing(service, &["spec"]) {
        spec.insert("clusterIP".to_owned(), address.to_string().into());
    }
    complete_addresses(service);
}

/// Gives a port of a service a port of the nodes.
pub fn set_node_port(service: &mut Value, index: usize, port: u16) {
    if let Some(found) = items(service, &["spec", "ports"]).get_mut(index)
        && let Some(fields) = found.as_object_mut()
    {
        fields.insert("nodePort".to_owned(), port.into());
    }
}

/// Fills in what follows from the address: the list of addresses and their families.
pub(super) fn complete_addresses(service: &mut Value) {
    let spec = at(service, &["spec"]);
    let external = text(spec, &["type"]) == "ExternalName";
    let address = text(spec, &["clusterIP"]).to_owned();
    if address.is_empty() {
        return;
    }
    // Without a selector nobody knows which families the endpoints will have.
    let any_family = is_headless(spec) && is_zero(at(spec, &["selector"]));
    let families = match address.parse() {
        _ if any_family => json!(["IPv4", "IPv6"]),
        Ok(IpAddr::V6(_)) => json!(["IPv6"]),
        _ => json!(["IPv4"]),
    };
    let policy = if any_family {
        "RequireDualStack"
    } else {
        "SingleStack"
    };
    if let Some(spec) = object(service, &["spec"]) {
        spec.fill_zero("clusterIPs", json!([address]));
        if external {
            return;
        }
        spec.fill("ipFamilyPolicy", policy);
        spec.fill_zero("ipFamilies", families);
    }
}

/// Keeps addresses and ports that the user left out of an update.
pub(super) fn keep_allocated(new: &mut Value, old: &Value) {
    let before = at(old, &["spec"]);
    let kind = text(new, &["spec", "type"]).to_owned();
    let has_address = |kind: &str| matches!(kind, "ClusterIP" | "NodePort" | "LoadBalancer");
    if has_address(&kind) && has_address(text(before, &["type"])) {
        keep_addresses(new, before);
    }
    let has_node_ports = |kind: &str| matches!(kind, "NodePort" | "LoadBalancer");
    if has_node_ports(&kind) && has_node_ports(text(before, &["type"])) {
        let key = |port: &Value| (int(port, &["port"]), text(port, &["protocol"]).to_owned());
        // Of several that are the same the first counts.
        let known = list(before, &["ports"]).iter().rev();
        let known: HashMap<_, _> = known
            .map(|port| (key(port), int(port, &["nodePort"])))
            .collect();
        for port in items(new, &["spec", "ports"]) {
            let number = known.get(&key(port)).copied().unwrap_or(0);
            if let (Some(fields), true) = (port.as_object_mut(), number != 0) {
                fields.fill_zero("nodePort", number);
            }
        }
    }
    let port = int(before, &["healthCheckNodePort"]);
    let checks = |kind: &str, policy: &str| kind == "LoadBalancer" && policy == "Local";
    let policy = text(new, &["spec", "externalTrafficPolicy"]).to_owned();
    let checked = checks(
        text(before, &["type"]),
        text(before, &["externalTrafficPolicy"]),
    );
    if port != 0
        && checked
        && checks(&kind, &policy)
        && let Some(spec) = existing(new, &["spec"])
    {
        spec.fill_zero("healthCheckNodePort", port);
    }
}

fn keep_addresses(new: &mut Value, before: &Value) {
    let address = text(new, &["spec", "clusterIP"]).to_owned();
    let listed = at(new, &["spec", "clusterIPs"]).clone();
    let old_address = text(before, &["clusterIP"]);
    let Some(spec) = existing(new, &["spec"]) else {
        return;
    };
    if address.is_empty() {
        spec.fill_zero("clusterIP", old_address);
        spec.fill_zero("clusterIPs", at(before, &["clusterIPs"]).clone());
    } else if is_zero(&listed)
        || (address != old_address && same(&listed, at(before, &["clusterIPs"])))
    {
        let mut all: Vec<Value> = texts(before, &["clusterIPs"]).map(Value::from).collect();
        if all.is_empty() {
            all.push(address.into());
        } else {
            all[0] = address.into();
        }
        spec.insert("clusterIPs".to_owned(), all.into());
    }
    for field in ["ipFamilies", "ipFamilyPolicy"] {
        if let Some(value) = before.get(field) {
            spec.fill_zero(field, value.clone());
        }
    }
}
