//! Probes and lifecycle hooks of containers.

use bellwether_schema::{FieldError, FieldPath};
use serde_json::Value;

use crate::check::{self, Errors};
use crate::names;
use crate::value::{at, has, int, list, text};

/// Checks probes and hooks of one container.
pub(super) fn all(container: &Value, spec: &Value, path: &FieldPath<'_>, errors: &mut Errors) {
    let grace = at(spec, &["terminationGracePeriodSeconds"]).as_i64();
    let lifecycle = at(container, &["lifecycle"]);
    let hooks = path.child("lifecycle");
    for hook in ["postStart", "preStop"] {
        if has(lifecycle, &[hook]) {
            handler(at(lifecycle, &[hook]), grace, &hooks.child(hook), errors);
        }
    }
    if has(lifecycle, &["stopSignal"]) && !has(spec, &["os"]) {
        let detail = "may not be set for containers with empty `spec.os.name`";
        errors.push(FieldError::forbidden(&hooks.child("stopSignal"), detail));
    }
    for name in ["livenessProbe", "readinessProbe", "startupProbe"] {
        let found = at(container, &[name]);
        if found.is_object() {
            probe(found, name, grace, &path.child(name), errors);
        }
    }
}

fn probe(probe: &Value, name: &str, grace: Option<i64>, path: &FieldPath<'_>, errors: &mut Errors) {
    handler(probe, grace, path, errors);
    for field in [
        "initialDelaySeconds",
        "timeoutSeconds",
        "periodSeconds",
        "successThreshold",
        "failureThreshold",
    ] {
        check::not_negative(errors, probe, path, field);
    }
    let own_grace = at(probe, &["terminationGracePeriodSeconds"]).as_i64();
    let grace_path = path.child("terminationGracePeriodSeconds");
    if let Some(seconds) = own_grace {
        if seconds <= 0 {
            errors.push(FieldError::invalid(
                &grace_path,
                seconds,
                "must be greater than 0",
            ));
        }
        if name == "readinessProbe" {
            let detail = "must not be set for readinessProbes";
            errors.push(FieldError::invalid(&grace_path, seconds, detail));
        }
    }
    let threshold = int(probe, &["successThreshold"]);
    if name != "readinessProbe" && threshold != 1 {
        errors.push(FieldError::invalid(
            &path.child("successThreshold"),
            threshold,
            "must be 1",
        ));
    }
}

fn handler(handler: &Value, grace: Option<i64>, path: &FieldPath<'_>, errors: &mut Errors) {
    let mut found = false;
    for kind in ["exec", "httpGet", "tcpSocket", "grpc", "sleep"] {
        let action = at(handler, &[kind]);
        if !action.is_object() {
            continue;
        }
        let path = path.child(kind);
        if found {
            let detail = "may not specify more than 1 handler type";
            errors.push(FieldError::forbidden(&path, detail));
            continue;
        }
        found = true;
        match kind {
            "exec" if list(action, &["command"]).is_empty() => {
                errors.push(FieldError::required(&path.child("command"), ""));
            }
            "httpGet" => http_get(action, &path, errors),
            "tcpSocket" | "grpc" => {
                check::port(errors, &path.child("port"), at(action, &["port"]));
            }
            "sleep" => sleep(int(action, &["seconds"]), grace, &path, errors),
            _ => {}
        }
    }
    if !found {
        errors.push(FieldError::required(path, "must specify a handler type"));
    }
}

fn http_get(action: &Value, path: &FieldPath<'_>, errors: &mut Errors) {
    check::required(errors, action, path, "path");
    check::port(errors, &path.child("port"), at(action, &["port"]));
    let scheme = text(action, &["scheme"]);
    check::supported(errors, &path.child("scheme"), scheme, &["HTTP", "HTTPS"]);
    for header in list(action, &["httpHeaders"]) {
        let name = text(header, &["name"]);
        let path = path.child("httpHeaders");
        check::report(errors, &path, name, names::header_name(name));
    }
}

fn sleep(seconds: i64, grace: Option<i64>, path: &FieldPath<'_>, errors: &mut Errors) {
    if let Some(grace) = grace
        && !(0..=grace).contains(&seconds)
    {
        let detail =
            format!("must be non-negative and less than terminationGracePeriodSeconds ({grace})");
        errors.push(FieldError::invalid(path, seconds, detail));
    }
}
