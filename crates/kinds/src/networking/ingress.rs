//! Ingresses and IngressClasses.

use std::net::IpAddr;

use bellwether_schema::{FieldError, FieldPath};
use jiff::Timestamp;
use k8s_openapi::api::networking::v1::{Ingress, IngressClass};
use serde_json::Value;

use crate::check::{self, Errors};
use crate::columns::{AGE, NAME, age, cell, cell_or, name, words};
use crate::core::service::load_balancer;
use crate::resource::STATUS;
use crate::value::{Fill, at, existing, has, int, list, text, texts};
use crate::{Column, Generation, Resource, names};

pub(crate) const INGRESS: Resource = Resource {
    short_names: &["ing"],
    subresources: &[STATUS],
    generation: Generation::Spec,
    validate,
    revalidates: true,
    validate_part,
    columns: COLUMNS,
    row,
    ..Resource::namespaced::<Ingress>("networking.k8s.io", "v1", "Ingress", "ingresses")
};

pub(crate) const INGRESS_CLASS: Resource = Resource {
    generation: Generation::Spec,
    default: default_class,
    validate: validate_class,
    revalidates: true,
    columns: CLASS_COLUMNS,
    row: class_row,
    ..Resource::cluster::<IngressClass>("networking.k8s.io", "v1", "IngressClass", "ingressclasses")
};

/// Longest name of the controller of a class.
const CONTROLLER_LENGTH: u64 = 250;
const NOT_AN_ADDRESS: &str = "must be a DNS name, not an IP address";

fn validate(new: &Value, old: Option<&Value>, errors: &mut Errors) {
    let path = FieldPath::new("spec");
    let spec = at(new, &["spec"]);
    let rules = list(spec, &["rules"]);
    let backend = at(spec, &["defaultBackend"]);
    if rules.is_empty() && backend.is_null() {
        let detail = "either `defaultBackend` or `rules` must be specified";
        let value = at(spec, &["rules"]).clone();
        errors.push(FieldError::invalid(&path, value, detail));
    }
    if !backend.is_null() {
        validate_backend(backend, &path.child("defaultBackend"), errors);
    }
    let rules_path = path.child("rules");
    for (index, rule) in rules.iter().enumerate() {
        validate_rule(rule, &rules_path.index(index), errors);
    }
    let tls_path = path.child("tls");
    for (index, tls) in list(spec, &["tls"]).iter().enumerate() {
        let path = tls_path.index(index);
        let hosts = path.child("hosts");
        for (index, host) in texts(tls, &["hosts"]).enumerate() {
            validate_host(host, &hosts.index(index), errors);
        }
        let secret = text(tls, &["secretName"]);
        if !secret.is_empty() {
            check::subdomain(errors, &path.child("secretName"), secret);
        }
    }
    let class = text(spec, &["ingressClassName"]);
    if has(spec, &["ingressClassName"]) {
        check::subdomain(errors, &path.child("ingressClassName"), class);
    }
    let note = text(new, &["metadata", "annotations", CLASS_ANNOTATION]);
    if old.is_none() && has(spec, &["ingressClassName"]) && !note.is_empty() && note != class {
        let path = FieldPath::new("annotations");
        let detail = "must match `ingressClassName` when both are specified";
        errors.push(FieldError::invalid(
            &path.child(CLASS_ANNOTATION),
            note,
            detail,
        ));
    }
}

/// Before there was a field for it, the class was an annotation.
const CLASS_ANNOTATION: &str = "kubernetes.io/ingress.class";

fn validate_host(host: &str, path: &FieldPath<'_>, errors: &mut Errors) {
    let messages = if host.contains('*') {
        names::wildcard_subdomain(host)
    } else {
        names::subdomain(host)
    };
    check::report(errors, path, host, messages);
}

fn validate_rule(rule: &Value, path: &FieldPath<'_>, errors: &mut Errors) {
    let host = text(rule, &["host"]);
    if !host.is_empty() {
        let path = path.child("host");
        if host.parse::<IpAddr>().is_ok() {
            errors.push(FieldError::invalid(&path, host, NOT_AN_ADDRESS));
        }
        validate_host(host, &path, errors);
    }
    if !has(rule, &["http"]) {
        return;
    }
    let path = path.child("http");
    let path = path.child("paths");
    let paths = list(rule, &["http", "paths"]);
    if paths.is_empty() {
        errors.push(FieldError::required(&path, ""));
    }
    for (index, found) in paths.iter().enumerate() {
        validate_path(found, &path.index(index), errors);
    }
}

fn validate_path(value: &Value, path: &FieldPath<'_>, errors: &mut Errors) {
    if !has(value, &["pathType"]) {
        let detail = "pathType must be specified";
        errors.push(FieldError::required(&path.child("pathType"), detail));
        return;
    }
    let kind = text(value, &["pathType"]);
    let place = text(value, &["path"]);
    let place_path = path.child("path");
    let optional = kind == "ImplementationSpecific" && place.is_empty();
    if matches!(kind, "Exact" | "Prefix" | "ImplementationSpecific") {
        if !place.starts_with('/') && !optional {
            let detail = "must be an absolute path";
            errors.push(FieldError::invalid(&place_path, place, detail));
        }
    } else {
        let kinds = ["Exact", "ImplementationSpecific", "Prefix"];
        check::supported(errors, &path.child("pathType"), kind, &kinds);
    }
    if matches!(kind, "Exact" | "Prefix") {
        for sequence in ["//", "/./", "/../", "%2f", "%2F"] {
            if place.contains(sequence) {
                let detail = format!("must not contain '{sequence}'");
                errors.push(FieldError::invalid(&place_path, place, detail));
            }
        }
        for suffix in ["/..", "/."] {
            if place.ends_with(suffix) {
                let detail = format!("cannot end with '{suffix}'");
                errors.push(FieldError::invalid(&place_path, place, detail));
            }
        }
    }
    validate_backend(at(value, &["backend"]), &path.child("backend"), errors);
}

fn validate_backend(backend: &Value, path: &FieldPath<'_>, errors: &mut Errors) {
    let (resource, service) = (at(backend, &["resource"]), at(backend, &["service"]));
    match (resource.is_object(), service.is_object()) {
        (true, true) => {
            let detail = "cannot set both resource and service backends";
            errors.push(FieldError::invalid(path, "", detail));
        }
        (false, false) => {
            let detail = "resource or service backend is required";
            errors.push(FieldError::invalid(path, "", detail));
        }
        (true, false) => {
            let path = path.child("resource");
            check::required(errors, resource, &path, "kind");
            check::required(errors, resource, &path, "name");
        }
        (false, true) => validate_service(service, path, errors),
    }
}

fn validate_service(service: &Value, path: &FieldPath<'_>, errors: &mut Errors) {
    let service_path = path.child("service");
    let name = check::required(errors, service, &service_path, "name");
    if !name.is_empty() {
        let messages = names::label_1035(name);
        check::report(errors, &service_path.child("name"), name, messages);
    }
    let port = text(service, &["port", "name"]);
    let number = int(service, &["port", "number"]);
    let port_path = service_path.child("port");
    match (port.is_empty(), number) {
        (false, 0) => {
            check::report(
                errors,
                &port_path.child("name"),
                port,
                names::port_name(port),
            );
        }
        (false, _) => {
            let detail = "cannot set both port name & port number";
            errors.push(FieldError::invalid(path, "", detail));
        }
        (true, 0) => {
            errors.push(FieldError::required(
                path,
                "port name or number is required",
            ));
        }
        (true, number) => check::port_number(errors, &port_path.child("number"), number),
    }
}

fn validate_part(part: &str, new: &Value, _old: &Value, errors: &mut Errors) {
    if part != "status" {
        return;
    }
    let path = FieldPath::new("status");
    let path = path.child("loadBalancer");
    let path = path.child("ingress");
    let points = list(new, &["status", "loadBalancer", "ingress"]);
    for (index, point) in points.iter().enumerate() {
        let path = path.index(index);
        let ip = text(point, &["ip"]);
        if !ip.is_empty() {
            check::ip(errors, &path.child("ip"), ip);
        }
        let host = text(point, &["hostname"]);
        if !host.is_empty() {
            check::subdomain(errors, &path.child("hostname"), host);
            if host.parse::<IpAddr>().is_ok() {
                errors.push(FieldError::invalid(
                    &path.child("hostname"),
                    host,
                    NOT_AN_ADDRESS,
                ));
            }
        }
    }
}

fn validate_class(new: &Value, old: Option<&Value>, errors: &mut Errors) {
    let path = FieldPath::new("spec");
    let spec = at(new, &["spec"]);
    if let Some(old) = old {
        let path = path.child("controller");
        check::immutable(errors, new, old, &["spec", "controller"], &path);
    }
    let controller = text(spec, &["controller"]);
    if controller.len() as u64 > CONTROLLER_LENGTH {
        errors.push(FieldError::too_long(
            &path.child("controller"),
            CONTROLLER_LENGTH,
        ));
    }
    check::domain_prefixed_path(errors, &path.child("controller"), controller);
    let parameters = at(spec, &["parameters"]);
    if parameters.is_null() {
        return;
    }
    let path = path.child("parameters");
    let group = text(parameters, &["apiGroup"]);
    if !group.is_empty() {
        check::subdomain(errors, &path.child("apiGroup"), group);
    }
    for field in ["kind", "name"] {
        let found = check::required(errors, parameters, &path, field);
        check::report(
            errors,
            &path.child(field),
            found,
            names::path_segment(found, false),
        );
    }
    let namespace = text(parameters, &["namespace"]);
    let scope = text(parameters, &["scope"]);
    check::supported(
        errors,
        &path.child("scope"),
        scope,
        &["Cluster", "Namespace"],
    );
    if scope == "Namespace" && namespace.is_empty() {
        let detail = "`parameters.scope` is set to 'Namespace'";
        errors.push(FieldError::required(&path.child("namespace"), detail));
    }
    if scope == "Cluster" && has(parameters, &["namespace"]) {
        let detail = "`parameters.scope` is set to 'Cluster'";
        errors.push(FieldError::forbidden(&path.child("namespace"), detail));
    }
}

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
