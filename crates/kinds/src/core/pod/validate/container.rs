//! Containers of a pod: those that run, those that run before, and those for debugging.

use std::collections::HashSet;

use bellwether_schema::{FieldError, FieldPath};
use serde_json::Value;

use super::volume::Volumes;
use super::{environment, probe, resources, security};
use crate::check::{self, Errors};
use crate::names;
use crate::value::{self, at, flag, has, int, list, text};

/// What is said about fields that only containers that keep running can have.
const ONLY_SIDECARS: &str = "may not be set for init containers without restartPolicy=Always";
/// Protocols that ports can have.
pub(crate) const PROTOCOLS: &[&str] = &["SCTP", "TCP", "UDP"];

/// Checks all containers of a pod.
pub(super) fn containers(
    spec: &Value,
    volumes: &Volumes<'_>,
    path: &FieldPath<'_>,
    errors: &mut Errors,
) {
    let containers = list(spec, &["containers"]);
    let own_path = path.child("containers");
    if containers.is_empty() {
        errors.push(FieldError::required(&own_path, ""));
    }
    let mut taken: HashSet<&str> = HashSet::new();
    for (index, container) in containers.iter().enumerate() {
        let path = own_path.index(index);
        common(container, spec, volumes, &path, errors);
        let name = text(container, &["name"]);
        if !taken.insert(name) {
            errors.push(FieldError::duplicate(&path.child("name"), name));
        }
        probe::all(container, spec, &path, errors);
        restart_policy(container, &path, errors);
    }
    host_ports(containers, &own_path, errors);
    init_containers(
        spec,
        volumes,
        &mut taken,
        &path.child("initContainers"),
        errors,
    );
    debug_containers(
        spec,
        volumes,
        &mut taken,
        &path.child("ephemeralContainers"),
        errors,
    );
}

fn init_containers<'a>(
    spec: &'a Value,
    volumes: &Volumes<'_>,
    taken: &mut HashSet<&'a str>,
    path: &FieldPath<'_>,
    errors: &mut Errors,
) {
    for (index, container) in list(spec, &["initContainers"]).iter().enumerate() {
        let list_path = path;
        let path = path.index(index);
        common(container, spec, volumes, &path, errors);
        restart_policy(container, &path, errors);
        let name = text(container, &["name"]);
        if taken.contains(name) {
            errors.push(FieldError::duplicate(&path.child("name"), name));
        } else if !name.is_empty() {
            taken.insert(name);
        }
        host_ports(std::slice::from_ref(container), list_path, errors);
        if text(container, &["restartPolicy"]) == "Always" {
            probe::all(container, spec, &path, errors);
            continue;
        }
        for field in [
            "lifecycle",
            "livenessProbe",
            "readinessProbe",
            "startupProbe",
        ] {
            if has(container, &[field]) {
                errors.push(FieldError::forbidden(&path.child(field), ONLY_SIDECARS));
            }
        }
    }
}

fn debug_containers<'a>(
    spec: &'a Value,
    volumes: &Volumes<'_>,
    taken: &mut HashSet<&'a str>,
    path: &FieldPath<'_>,
    errors: &mut Errors,
) {
    let mut targets = value::names(list(spec, &["containers"]));
    targets.extend(value::names(list(spec, &["initContainers"])));
    for (index, container) in list(spec, &["ephemeralContainers"]).iter().enumerate() {
        let path = path.index(index);
        common(container, spec, volumes, &path, errors);
        let name = text(container, &["name"]);
        if !taken.insert(name) {
            errors.push(FieldError::duplicate(&path.child("name"), name));
        }
        let target = text(container, &["targetContainerName"]);
        if !target.is_empty() && !targets.contains(target) {
            errors.push(FieldError::not_found(
                &path.child("targetContainerName"),
                target,
            ));
        }
        let forbidden = [
            "ports",
            "livenessProbe",
            "readinessProbe",
            "startupProbe",
            "lifecycle",
        ];
        for field in forbidden {
            if has(container, &[field]) {
                let detail = "cannot be set for an Ephemeral Container";
                errors.push(FieldError::forbidden(&path.child(field), detail));
            }
        }
    }
}

/// Checks what all kinds of containers have in common.
fn common(
    container: &Value,
    spec: &Value,
    volumes: &Volumes<'_>,
    path: &FieldPath<'_>,
    errors: &mut Errors,
) {
    let name = check::required(errors, container, path, "name");
    if !name.is_empty() {
        check::label(errors, &path.child("name"), name);
    }
    check::required(errors, container, path, "image");
    check::required_choice(
        errors,
        &path.child("terminationMessagePolicy"),
        text(container, &["terminationMessagePolicy"]),
        &["File", "FallbackToLogsOnError"],
    );
    ports(container, &path.child("ports"), errors);
    environment::variables(container, &path.child("env"), errors);
    environment::sources(container, &path.child("envFrom"), errors);
    volumes.mounts(container, &path.child("volumeMounts"), errors);
    volumes.devices(container, &path.child("volumeDevices"), errors);
    check::required_choice(
        errors,
        &path.child("imagePullPolicy"),
        text(container, &["imagePullPolicy"]),
        &["Always", "IfNotPresent", "Never"],
    );
    let resources_path = path.child("resources");
    let resources = at(container, &["resources"]);
    resources::container(resources, &volumes.claims, &resources_path, errors);
    resize_policy(container, spec, &path.child("resizePolicy"), errors);
    security::container(container, spec, &path.child("securityContext"), errors);
}

fn ports(container: &Value, path: &FieldPath<'_>, errors: &mut Errors) {
    let mut taken = HashSet::new();
    for (index, port) in list(container, &["ports"]).iter().enumerate() {
        let path = path.index(index);
        let name = text(port, &["name"]);
        let problems = names::port_name(name);
        if name.is_empty() {
        } else if !problems.is_empty() {
            check::report(errors, &path.child("name"), name, problems);
        } else if !taken.insert(name) {
            errors.push(FieldError::duplicate(&path.child("name"), name));
        }
        match int(port, &["containerPort"]) {
            0 => errors.push(FieldError::required(&path.child("containerPort"), "")),
            number => check::port_number(errors, &path.child("containerPort"), number),
        }
        let host = int(port, &["hostPort"]);
        if host != 0 {
            check::port_number(errors, &path.child("hostPort"), host);
        }
        let protocol = text(port, &["protocol"]);
        check::required_choice(errors, &path.child("protocol"), protocol, PROTOCOLS);
    }
}

/// No two containers can have the same port of the host.
fn host_ports(containers: &[Value], path: &FieldPath<'_>, errors: &mut Errors) {
    let mut taken = HashSet::new();
    for (index, container) in containers.iter().enumerate() {
        let path = path.index(index);
        let path = path.child("ports");
        for (index, port) in list(container, &["ports"]).iter().enumerate() {
            let number = int(port, &["hostPort"]);
            if number == 0 {
                continue;
            }
            let (protocol, address) = (text(port, &["protocol"]), text(port, &["hostIP"]));
            if !taken.insert((protocol, address, number)) {
                let key = format!("{protocol}/{address}/{number}");
                let path = path.index(index);
                errors.push(FieldError::duplicate(&path.child("hostPort"), key));
            }
        }
    }
}

fn restart_policy(container: &Value, path: &FieldPath<'_>, errors: &mut Errors) {
    let rules = list(container, &["restartPolicyRules"]);
    let policy = text(container, &["restartPolicy"]);
    if has(container, &["restartPolicy"]) {
        let path = path.child("restartPolicy");
        check::supported(errors, &path, policy, &["Always", "Never", "OnFailure"]);
    } else if !rules.is_empty() {
        let detail = "must specify restartPolicy when restart rules are used";
        errors.push(FieldError::required(&path.child("restartPolicy"), detail));
    }
}

fn resize_policy(container: &Value, spec: &Value, path: &FieldPath<'_>, errors: &mut Errors) {
    let mut seen = HashSet::new();
    for (index, policy) in list(container, &["resizePolicy"]).iter().enumerate() {
        let resource = text(policy, &["resourceName"]);
        if !seen.insert(resource) {
            errors.push(FieldError::duplicate(&path.index(index), resource));
        }
        check::required_choice(errors, path, resource, &["cpu", "memory"]);
        let restart = text(policy, &["restartPolicy"]);
        check::required_choice(errors, path, restart, &["NotRequired", "RestartContainer"]);
        if text(spec, &["restartPolicy"]) == "Never" && restart != "NotRequired" {
            let detail = "must be 'NotRequired' when `restartPolicy` is 'Never'";
            errors.push(FieldError::invalid(path, restart, detail));
        }
    }
}

/// Whether a container may do everything.
pub(super) fn is_privileged(container: &Value) -> bool {
    flag(container, &["securityContext", "privileged"])
}
