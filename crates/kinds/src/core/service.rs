//! Services.

mod allocate;
mod validate;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::Service;
use serde_json::Value;

use crate::columns::{AGE, NAME, SELECTOR, age, cell, labels, name, words};
use crate::resource::{ALL, STATUS, proxy};
pub use allocate::{ServiceNeeds, service_needs, set_cluster_ip, set_node_port};
pub(crate) use validate::endpoint_address;

use crate::value::{
    Fill, at, existing, int, is_zero, items, list, object, remove, same, text, texts,
};
use crate::{Column, FieldSelector, NameRule, Resource};

pub(crate) const RESOURCE: Resource = Resource {
    short_names: &["svc"],
    categories: ALL,
    subresources: &[proxy("ServiceProxyOptions"), STATUS],
    names: NameRule::Label1035,
    create_on_update: true,
    returns_deleted: true,
    field_selectors: &[
        FieldSelector {
            label: "spec.clusterIP",
            paths: &[&["spec", "clusterIP"]],
            absent: "",
        },
        FieldSelector {
            label: "spec.type",
            paths: &[&["spec", "type"]],
            absent: "",
        },
    ],
    default,
    prepare_create: |object, _| allocate::complete_addresses(object),
    prepare_update,
    validate: validate::service,
    validate_part: validate::part,
    columns: COLUMNS,
    row,
    ..Resource::namespaced::<Service>("", "v1", "Service", "services")
};

fn default(object: &mut Value) {
    let Some(spec) = existing(object, &["spec"]) else {
        return;
    };
    spec.fill_zero("sessionAffinity", "None");
    spec.fill_zero("type", "ClusterIP");
    default_affinity(object);
    default_policies(object);
    for port in items(object, &["spec", "ports"]) {
        let number = int(port, &["port"]);
        if let Some(port) = port.as_object_mut() {
            port.fill_zero("protocol", "TCP");
            port.fill_zero("targetPort", number);
        }
    }
    if text(object, &["spec", "type"]) == "LoadBalancer" {
        for ingress in items(object, &["status", "loadBalancer", "ingress"]) {
            if let Some(ingress) = ingress.as_object_mut()
                && ingress.get("ip").is_some_and(|ip| !is_zero(ip))
            {
                ingress.fill("ipMode", "VIP");
            }
        }
    }
}

/// How long a client sticks to a pod: three hours.
const AFFINITY_SECONDS: i64 = 10800;

fn default_affinity(object: &mut Value) {
    let affinity = text(object, &["spec", "sessionAffinity"]).to_owned();
    if affinity == "None" {
        remove(object, &["spec"], "sessionAffinityConfig");
    }
    if affinity == "ClientIP"
        && let Some(config) = self::object(object, &["spec", "sessionAffinityConfig", "clientIP"])
    {
        config.fill("timeoutSeconds", AFFINITY_SECONDS);
    }
}

fn default_policies(object: &mut Value) {
    let kind = text(object, &["spec", "type"]).to_owned();
    let external = !list(object, &["spec", "externalIPs"]).is_empty();
    let Some(spec) = existing(object, &["spec"]) else {
        return;
    };
    let is_reachable = matches!(kind.as_str(), "LoadBalancer" | "NodePort");
    if is_reachable || (kind == "ClusterIP" && external) {
        spec.fill_zero("externalTrafficPolicy", "Cluster");
    }
    if is_reachable || kind == "ClusterIP" {
        spec.fill("internalTrafficPolicy", "Cluster");
    }
    if kind == "LoadBalancer" {
        spec.fill("allocateLoadBalancerNodePorts", true);
    }
}

/// Whether traffic gets in from outside.
fn is_externally_reachable(spec: &Value) -> bool {
    let external = !list(spec, &["externalIPs"]).is_empty();
    match text(spec, &["type"]) {
        "LoadBalancer" | "NodePort" => true,
        "ClusterIP" => external,
        _ => false,
    }
}

/// Drops what the old type needed and the new one does not, unless the user changed it.
fn prepare_update(new: &mut Value, old: &Value) {
    allocate::keep_allocated(new, old);
    let kind = text(new, &["spec", "type"]).to_owned();
    let before = text(old, &["spec", "type"]);
    let kept =
        |new: &Value, field: &str| same(at(new, &["spec", field]), at(old, &["spec", field]));
    let has_address = |kind: &str| matches!(kind, "ClusterIP" | "NodePort" | "LoadBalancer");
    let has_node_ports = |kind: &str| matches!(kind, "NodePort" | "LoadBalancer");
    if has_address(before) && !has_address(&kind) {
        if kept(new, "clusterIP") && kept(new, "clusterIPs") {
            remove(new, &["spec"], "clusterIP");
            remove(new, &["spec"], "clusterIPs");
        }
        for field in ["ipFamilies", "ipFamilyPolicy"] {
            if kept(new, field) {
                remove(new, &["spec"], field);
            }
        }
    }
    if has_node_ports(before) && !has_node_ports(&kind) {
        drop_node_ports(new, old);
    }
    for (field, of_type) in [
        ("allocateLoadBalancerNodePorts", "LoadBalancer"),
        ("loadBalancerClass", "LoadBalancer"),
    ] {
        if before == of_type && kind != of_type && kept(new, field) {
            remove(new, &["spec"], field);
        }
    }
    let checks_health = |kind: &str, policy: &str| kind == "LoadBalancer" && policy == "Local";
    let policy = text(new, &["spec", "externalTrafficPolicy"]).to_owned();
    if checks_health(before, text(old, &["spec", "externalTrafficPolicy"]))
        && !checks_health(&kind, &policy)
        && kept(new, "healthCheckNodePort")
    {
        remove(new, &["spec"], "healthCheckNodePort");
    }
    if has_node_ports(before) && !has_node_ports(&kind) && kept(new, "externalTrafficPolicy") {
        remove(new, &["spec"], "externalTrafficPolicy");
    }
}

fn drop_node_ports(new: &mut Value, old: &Value) {
    let ports = |service: &Value| -> Vec<i64> {
        let ports = list(service, &["spec", "ports"]).iter();
        ports.map(|port| int(port, &["nodePort"])).collect()
    };
    if ports(new) != ports(old) {
        return;
    }
    for port in items(new, &["spec", "ports"]) {
        remove(port, &[], "nodePort");
    }
}

const COLUMNS: &[Column] = &[
    NAME,
    words("Type", "How the service is reached."),
    words("Cluster-IP", "Its address inside the cluster."),
    words("External-IP", "Its address outside the cluster."),
    words("Port(s)", "Its ports."),
    AGE,
    SELECTOR,
];

fn row(object: &Value, now: Timestamp) -> Vec<Value> {
    let address = texts(object, &["spec", "clusterIPs"])
        .next()
        .unwrap_or("<none>");
    vec![
        name(object),
        cell(object, &["spec", "type"]),
        address.into(),
        external_address(object).into(),
        ports(object).into(),
        age(object, now),
        labels(at(object, &["spec", "selector"])),
    ]
}

fn external_address(object: &Value) -> String {
    let external: Vec<_> = texts(object, &["spec", "externalIPs"]).collect();
    match text(object, &["spec", "type"]) {
        "ClusterIP" | "NodePort" if external.is_empty() => "<none>".to_owned(),
        "ClusterIP" | "NodePort" => external.join(","),
        "LoadBalancer" => {
            let balanced = load_balancer(object);
            let mut all: Vec<&str> = balanced.split(',').filter(|one| !one.is_empty()).collect();
            all.extend(external);
            if all.is_empty() {
                "<pending>".to_owned()
            } else {
                all.join(",")
            }
        }
        "ExternalName" => text(object, &["spec", "externalName"]).to_owned(),
        _ => "<unknown>".to_owned(),
    }
}

/// Where a load balancer lets traffic in: addresses and host names, sorted, each once.
pub(crate) fn load_balancer(object: &Value) -> String {
    let mut all: Vec<_> = list(object, &["status", "loadBalancer", "ingress"])
        .iter()
        .map(|ingress| match text(ingress, &["ip"]) {
            "" => text(ingress, &["hostname"]),
            ip => ip,
        })
        .filter(|one| !one.is_empty())
        .collect();
    all.sort_unstable();
    all.dedup();
    all.join(",")
}

fn ports(object: &Value) -> String {
    let all: Vec<_> = list(object, &["spec", "ports"])
        .iter()
        .map(|port| {
            let number = int(port, &["port"]);
            let protocol = text(port, &["protocol"]);
            match int(port, &["nodePort"]) {
                node_port if node_port > 0 => format!("{number}:{node_port}/{protocol}"),
                _ => format!("{number}/{protocol}"),
            }
        })
        .collect();
    if all.is_empty() {
        "<none>".to_owned()
    } else {
        all.join(",")
    }
}
