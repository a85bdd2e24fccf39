//! Environment variables of containers, and the downward API.

use bellwether_schema::{FieldError, FieldPath};
use serde_json::Value;

use crate::check::{self, Errors, quantity};
use crate::names;
use crate::value::{at, has, list, text};

/// Fields of a pod that a variable can have.
const VARIABLE_FIELDS: &[&str] = &[
    "metadata.name",
    "metadata.namespace",
    "metadata.uid",
    "spec.nodeName",
    "spec.serviceAccountName",
    "status.hostIP",
    "status.hostIPs",
    "status.podIP",
    "status.podIPs",
];
/// Fields of a pod that a file can have.
pub(super) const FILE_FIELDS: &[&str] = &[
    "metadata.annotations",
    "metadata.labels",
    "metadata.name",
    "metadata.namespace",
    "metadata.uid",
];
/// Fields of a pod that either can name, whether or not it can have them.
const KNOWN_FIELDS: &[&str] = &[
    "metadata.annotations",
    "metadata.labels",
    "metadata.name",
    "metadata.namespace",
    "metadata.uid",
    "spec.nodeName",
    "spec.restartPolicy",
    "spec.serviceAccountName",
    "spec.schedulerName",
    "status.phase",
    "status.hostIP",
    "status.hostIPs",
    "status.podIP",
    "status.podIPs",
];
const RESOURCES: &[&str] = &[
    "limits.cpu",
    "limits.ephemeral-storage",
    "limits.memory",
    "requests.cpu",
    "requests.ephemeral-storage",
    "requests.memory",
];
/// Units in which bytes can be counted.
const BYTE_UNITS: &[&str] = &[
    "1", "1k", "1M", "1G", "1T", "1P", "1E", "1Ki", "1Mi", "1Gi", "1Ti", "1Pi", "1Ei",
];

pub(super) fn variables(container: &Value, path: &FieldPath<'_>, errors: &mut Errors) {
    for (index, variable) in list(container, &["env"]).iter().enumerate() {
        let path = path.index(index);
        let name = check::required(errors, variable, &path, "name");
        if !name.is_empty() {
            let messages = names::environment_variable(name);
            check::report(errors, &path.child("name"), name, messages);
        }
        if has(variable, &["valueFrom"]) {
            value_from(variable, &path.child("valueFrom"), errors);
        }
    }
}

fn value_from(variable: &Value, path: &FieldPath<'_>, errors: &mut Errors) {
    let from = at(variable, &["valueFrom"]);
    let mut count = 0;
    if has(from, &["fieldRef"]) {
        count += 1;
        field(
            at(from, &["fieldRef"]),
            VARIABLE_FIELDS,
            &path.child("fieldRef"),
            errors,
        );
    }
    if has(from, &["resourceFieldRef"]) {
        count += 1;
        let path = path.child("resourceFieldRef");
        resource(at(from, &["resourceFieldRef"]), false, &path, errors);
    }
    for source in ["configMapKeyRef", "secretKeyRef"] {
        if has(from, &[source]) {
            count += 1;
            key(at(from, &[source]), &path.child(source), errors);
        }
    }
    count += i32::from(has(from, &["fileKeyRef"]));
    let problem = if count == 0 {
        "must specify one of: `fieldRef`, `resourceFieldRef`, `configMapKeyRef`, `secretKeyRef` or `fileKeyRef`"
    } else if !text(variable, &["value"]).is_empty() {
        "may not be specified when `value` is not empty"
    } else if count > 1 {
        "may not have more than one field specified at a time"
    } else {
        return;
    };
    errors.push(FieldError::invalid(path, "", problem));
}

fn key(reference: &Value, path: &FieldPath<'_>, errors: &mut Errors) {
    check::subdomain(errors, &path.child("name"), text(reference, &["name"]));
    let key = check::required(errors, reference, path, "key");
    if !key.is_empty() {
        check::report(errors, &path.child("key"), key, names::config_key(key));
    }
}

/// Checks a reference to a field of the pod.
pub(super) fn field(
    reference: &Value,
    allowed: &[&str],
    path: &FieldPath<'_>,
    errors: &mut Errors,
) {
    if check::required(errors, reference, path, "apiVersion").is_empty() {
        return;
    }
    let name = check::required(errors, reference, path, "fieldPath");
    if name.is_empty() {
        return;
    }
    let subscripted = name
        .strip_suffix("']")
        .and_then(|name| name.split_once("['"));
    let plain = subscripted.map_or(name, |(plain, _)| plain);
    if text(reference, &["apiVersion"]) != "v1" {
        let detail = format!(
            "error converting fieldPath: unsupported pod version: {}",
            text(reference, &["apiVersion"])
        );
        errors.push(FieldError::invalid(&path.child("fieldPath"), name, detail));
        return;
    }
    if !KNOWN_FIELDS.contains(&plain) && plain != "spec.host" {
        let detail = format!("error converting fieldPath: field label not supported: {name}");
        errors.push(FieldError::invalid(&path.child("fieldPath"), name, detail));
        return;
    }
    match subscripted {
        Some(("metadata.annotations", key)) => {
            let key = key.to_lowercase();
            check::qualified_name(errors, path, &key);
        }
        Some(("metadata.labels", key)) => check::qualified_name(errors, path, key),
        Some((plain, _)) => {
            errors.push(FieldError::invalid(
                path,
                plain,
                "does not support subscript",
            ));
        }
        None => {
            check::supported(errors, &path.child("fieldPath"), name, allowed);
        }
    }
}

/// Checks a reference to what a container asks for.
pub(super) fn resource(
    reference: &Value,
    of_other_container: bool,
    path: &FieldPath<'_>,
    errors: &mut Errors,
) {
    let name = text(reference, &["resource"]);
    let huge = name.starts_with("requests.hugepages-") || name.starts_with("limits.hugepages-");
    if of_other_container && text(reference, &["containerName"]).is_empty() {
        errors.push(FieldError::required(&path.child("containerName"), ""));
    } else if name.is_empty() {
        errors.push(FieldError::required(&path.child("resource"), ""));
    } else if !huge {
        check::supported(errors, &path.child("resource"), name, RESOURCES);
    }
    divisor(reference, name, huge, &path.child("divisor"), errors);
}

fn divisor(reference: &Value, name: &str, huge: bool, path: &FieldPath<'_>, errors: &mut Errors) {
    let divisor = at(reference, &["divisor"]);
    if quantity(divisor).is_none_or(|divisor| divisor.is_zero()) {
        return;
    }
    let (units, kind) = match name.split_once('.').map(|(_, resource)| resource) {
        Some("cpu") => (&["1m", "1"][..], "cpu"),
        Some("memory") => (BYTE_UNITS, "memory"),
        Some("ephemeral-storage") => (BYTE_UNITS, "local ephemeral storage"),
        _ if huge => (BYTE_UNITS, "hugepages"),
        _ => return,
    };
    if !divisor
        .as_str()
        .is_some_and(|divisor| units.contains(&divisor))
    {
        let list = if kind == "cpu" {
            "1m and 1".to_owned()
        } else {
            units.join(", ")
        };
        let detail = format!("only divisor's values {list} are supported with the {kind} resource");
        errors.push(FieldError::invalid(path, name, detail));
    }
}

pub(super) fn sources(container: &Value, path: &FieldPath<'_>, errors: &mut Errors) {
    for (index, source) in list(container, &["envFrom"]).iter().enumerate() {
        let item = path.index(index);
        let prefix = text(source, &["prefix"]);
        if !prefix.is_empty() {
            let messages = names::environment_variable(prefix);
            check::report(errors, &item.child("prefix"), prefix, messages);
        }
        let mut count = 0;
        for kind in ["configMapRef", "secretRef"] {
            if has(source, &[kind]) {
                count += 1;
                let item = item.child(kind);
                let name = check::required(errors, at(source, &[kind]), &item, "name");
                if !name.is_empty() {
                    check::subdomain(errors, &item.child("name"), name);
                }
            }
        }
        let problem = match count {
            0 => "must specify one of: `configMapRef` or `secretRef`",
            1 => continue,
            _ => "may not have more than one field specified at a time",
        };
        errors.push(FieldError::invalid(path, "", problem));
    }
}
