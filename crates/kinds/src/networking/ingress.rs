//! Ingresses and IngressClasses.

use jiff::Timestamp;
use k8s_openapi::api::networking::v1::{Ingress, IngressClass};
use serde_json::Value;

use crate::columns::{AGE, NAME, age, cell, cell_or, name, words};
use crate::core::service::load_balancer;
use crate::resource::STATUS;
use crate::value::{Fill, at, existing, has, list, text};
use crate::{Column, Generation, Resource};

pub(crate) const INGRESS: Resource = Resource {
    short_names: &["ing"],
    subresources: &[STATUS],
    generation: Generation::Spec,
    columns: COLUMNS,
    row,
    ..Resource::namespaced::<Ingress>("networking.k8s.io", "v1", "Ingress", "ingresses")
};

pub(crate) const INGRESS_CLASS: Resource = Resource {
    generation: Generation::Spec,
    default: default_class,
    columns: CLASS_COLUMNS,
    row: class_row,
    ..Resource::cluster::<IngressClass>("networking.k8s.io", "v1", "IngressClass", "ingressclasses")
};

fn default_class(object: &mut Value) {
    if let Some(parameters) = existing(object, &["spec", "parameters"]) {
        parameters.fill("scope", "Cluster");
    }
}

/// Hosts that are shown before the rest is counted.
const HOSTS_SHOWN: usize = 3;

const COLUMNS: &[Column] = &[
    NAME,
    words("Class", "The class that implements it."),
    words("Hosts", "Hosts that the rules are for."),
    words("Address", "Where traffic gets in."),
    words("Ports", "Ports that are open."),
    AGE,
];

fn row(object: &Value, now: Timestamp) -> Vec<Value> {
    let ports = if list(object, &["spec", "tls"]).is_empty() {
        "80"
    } else {
        "80, 443"
    };
    vec![
        name(object),
        cell_or(object, &["spec", "ingressClassName"], "<none>"),
        hosts(list(object, &["spec", "rules"])).into(),
        load_balancer(object).into(),
        ports.into(),
        age(object, now),
    ]
}

fn hosts(rules: &[Value]) -> String {
    let mut shown = Vec::new();
    let mut more = false;
    for rule in rules {
        more |= shown.len() == HOSTS_SHOWN;
        let host = text(rule, &["host"]);
        if !more && !host.is_empty() {
            shown.push(host);
        }
    }
    match (shown.is_empty(), more) {
        (true, _) => "*".to_owned(),
        (false, false) => shown.join(","),
        (false, true) => format!(
            "{} + {} more...",
            shown.join(","),
            rules.len() - HOSTS_SHOWN
        ),
    }
}

const CLASS_COLUMNS: &[Column] = &[
    NAME,
    words("Controller", "Who implements ingresses of the class."),
    words("Parameters", "Further settings of the controller."),
    AGE,
];

fn class_row(object: &Value, now: Timestamp) -> Vec<Value> {
    let parameters = at(object, &["spec", "parameters"]);
    let shown = if parameters.is_null() {
        "<none>".to_owned()
    } else if has(parameters, &["apiGroup"]) {
        format!(
            "{}.{}/{}",
            text(parameters, &["kind"]),
            text(parameters, &["apiGroup"]),
            text(parameters, &["name"])
        )
    } else {
        format!(
            "{}/{}",
            text(parameters, &["kind"]),
            text(parameters, &["name"])
        )
    };
    vec![
        name(object),
        cell(object, &["spec", "controller"]),
        shown.into(),
        age(object, now),
    ]
}
