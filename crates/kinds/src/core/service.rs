//! Services.

use jiff::Timestamp;
use k8s_openapi::api::core::v1::Service;
use serde_json::Value;

use crate::columns::{AGE, NAME, SELECTOR, age, cell, labels, name, words};
use crate::resource::{ALL, STATUS};
use crate::value::{at, int, list, text, texts};
use crate::{Column, FieldSelector, NameRule, Resource};

pub(crate) const RESOURCE: Resource = Resource {
    short_names: &["svc"],
    categories: ALL,
    subresources: &[STATUS],
    names: NameRule::Label1035,
    create_on_update: true,
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
    columns: COLUMNS,
    row,
    ..Resource::namespaced::<Service>("", "v1", "Service", "services")
};

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
