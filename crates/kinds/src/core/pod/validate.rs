//! Whether a pod, or the template of one, makes sense.

mod container;
mod environment;
mod probe;
mod resources;
mod scheduling;
mod security;
mod update;
mod volume;

use std::collections::HashSet;

use bellwether_schema::{FieldError, FieldPath};
use serde_json::Value;

use crate::check::{self, Errors};
use crate::meta::validate_annotations;
use crate::names;
use crate::selector::validate_labels;
use crate::value::{at, flag, has, int, list, text, texts};

pub(crate) use resources::{resource_amount, resource_name};
pub(crate) use scheduling::{node_selector, taint_effect, tolerations};
pub(super) use update::{part, pod_update};

/// Most DNS servers and search paths of a pod.
const DNS_SERVERS: usize = 3;
const DNS_SEARCHES: usize = 32;
const DNS_SEARCH_LENGTH: usize = 2048;

/// What is being checked, where it matters: a pod is stricter than a template.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Subject {
    /// A pod that is to run.
    Pod,
    /// The template of pods to be.
    Template,
}

/// Checks a pod that is to be created, or to replace `old`.
pub(super) fn pod(new: &Value, old: Option<&Value>, errors: &mut Errors) {
    let path = FieldPath::new("spec");
    let spec = at(new, &["spec"]);
    pod_spec(spec, Subject::Pod, &path, errors);
    token_needs_account(spec, &path, errors);
    for name in ["containers", "initContainers"] {
        let path = path.child(name);
        for (index, container) in list(spec, &[name]).iter().enumerate() {
            let image = text(container, &["image"]);
            if image.trim() != image {
                let detail = "must not have leading or trailing whitespace";
                let path = path.index(index);
                errors.push(FieldError::invalid(&path.child("image"), image, detail));
            }
        }
    }
    match old {
        Some(old) => pod_update(new, old, errors),
        None => pod_create(spec, &path, errors),
    }
}

fn pod_create(spec: &Value, path: &FieldPath<'_>, errors: &mut Errors) {
    if !list(spec, &["ephemeralContainers"]).is_empty() {
        let path = path.child("ephemeralContainers");
        errors.push(FieldError::forbidden(&path, "cannot be set on create"));
    }
    if !text(spec, &["nodeName"]).is_empty() && !list(spec, &["schedulingGates"]).is_empty() {
        let detail = "cannot be set until all schedulingGates have been cleared";
        errors.push(FieldError::forbidden(&path.child("nodeName"), detail));
    }
}

/// Checks the template of a pod.
pub(crate) fn template(template: &Value, path: &FieldPath<'_>, errors: &mut Errors) {
    let metadata = at(template, &["metadata"]);
    // Kubernetes leaves `metadata` out of these two paths.
    validate_labels(at(metadata, &["labels"]), &path.child("labels"), errors);
    let annotations = at(metadata, &["annotations"]);
    validate_annotations(annotations, &path.child("annotations"), errors);
    let spec = at(template, &["spec"]);
    let spec_path = path.child("spec");
    pod_spec(spec, Subject::Template, &spec_path, errors);
    if !list(spec, &["ephemeralContainers"]).is_empty() {
        let detail = "ephemeral containers not allowed in pod template";
        let path = spec_path.child("ephemeralContainers");
        errors.push(FieldError::forbidden(&path, detail));
    }
}

fn pod_spec(spec: &Value, subject: Subject, path: &FieldPath<'_>, errors: &mut Errors) {
    if !has(spec, &["terminationGracePeriodSeconds"]) {
        let path = path.child("terminationGracePeriodSeconds");
        errors.push(FieldError::required(&path, ""));
    }
    let volumes = volume::volumes(spec, &path.child("volumes"), errors);
    container::containers(spec, &volumes, path, errors);
    host_ports(spec, subject, path, errors);
    let restart = ["Always", "OnFailure", "Never"];
    check::required_choice(
        errors,
        &path.child("restartPolicy"),
        text(spec, &["restartPolicy"]),
        &restart,
    );
    let dns = ["ClusterFirstWithHostNet", "ClusterFirst", "Default", "None"];
    check::required_choice(
        errors,
        &path.child("dnsPolicy"),
        text(spec, &["dnsPolicy"]),
        &dns,
    );
    validate_labels(
        at(spec, &["nodeSelector"]),
        &path.child("nodeSelector"),
        errors,
    );
    security::pod(spec, &path.child("securityContext"), errors);
    scheduling::affinity(at(spec, &["affinity"]), &path.child("affinity"), errors);
    dns_config(spec, &path.child("dnsConfig"), errors);
    gates(spec, path, errors);
    scheduling::spread(spec, &path.child("topologySpreadConstraints"), errors);
    pod_names(spec, path, errors);
    scheduling::tolerations(spec, &path.child("tolerations"), errors);
    host_aliases(spec, &path.child("hostAliases"), errors);
    classes(spec, path, errors);
}

/// Names that the pod gives, or that it refers to.
fn pod_names(spec: &Value, path: &FieldPath<'_>, errors: &mut Errors) {
    for field in ["serviceAccountName", "nodeName"] {
        let name = text(spec, &[field]);
        if !name.is_empty() {
            check::subdomain(errors, &path.child(field), name);
        }
    }
    if let Some(seconds) = at(spec, &["activeDeadlineSeconds"]).as_i64()
        && !(1..=i64::from(i32::MAX)).contains(&seconds)
    {
        let detail = names::between(1, i64::from(i32::MAX));
        let path = path.child("activeDeadlineSeconds");
        errors.push(FieldError::invalid(&path, seconds, detail));
    }
    for field in ["hostname", "subdomain"] {
        let name = text(spec, &[field]);
        if !name.is_empty() {
            check::label(errors, &path.child(field), name);
        }
    }
}

fn classes(spec: &Value, path: &FieldPath<'_>, errors: &mut Errors) {
    for field in ["priorityClassName", "runtimeClassName"] {
        let name = text(spec, &[field]);
        if !name.is_empty() || (field == "runtimeClassName" && has(spec, &[field])) {
            check::subdomain(errors, &path.child(field), name);
        }
    }
    if has(spec, &["preemptionPolicy"]) {
        let policy = text(spec, &["preemptionPolicy"]);
        let path = path.child("preemptionPolicy");
        check::required_choice(errors, &path, policy, &["PreemptLowerPriority", "Never"]);
    }
    if has(spec, &["os"]) {
        let path = path.child("os");
        let name = check::required(errors, at(spec, &["os"]), &path, "name");
        if !name.is_empty() {
            check::supported(errors, &path, name, &["linux", "windows"]);
        }
    }
}

fn gates(spec: &Value, path: &FieldPath<'_>, errors: &mut Errors) {
    let gates = path.child("readinessGates");
    for (index, gate) in list(spec, &["readinessGates"]).iter().enumerate() {
        let path = gates.index(index);
        let kind = text(gate, &["conditionType"]);
        check::qualified_name(errors, &path.child("conditionType"), kind);
    }
    let gates = path.child("schedulingGates");
    let mut seen = HashSet::new();
    for (index, gate) in list(spec, &["schedulingGates"]).iter().enumerate() {
        let name = text(gate, &["name"]);
        check::qualified_name(errors, &gates.index(index), name);
        if !seen.insert(name) {
            errors.push(FieldError::duplicate(&gates.index(index), name));
        }
    }
}

/// On the network of the host, a container cannot have another port than the host.
fn host_ports(spec: &Value, subject: Subject, path: &FieldPath<'_>, errors: &mut Errors) {
    if !flag(spec, &["hostNetwork"]) {
        return;
    }
    let path = path.child("containers");
    for (index, container) in list(spec, &["containers"]).iter().enumerate() {
        let path = path.index(index);
        let path = path.child("ports");
        for (index, port) in list(container, &["ports"]).iter().enumerate() {
            let host = int(port, &["hostPort"]);
            let given = subject == Subject::Pod || host != 0;
            if given && host != int(port, &["containerPort"]) {
                let detail = "must match `containerPort` when `hostNetwork` is true";
                let path = path.index(index);
                errors.push(FieldError::invalid(&path.child("hostPort"), host, detail));
            }
        }
    }
}

fn dns_config(spec: &Value, path: &FieldPath<'_>, errors: &mut Errors) {
    let config = at(spec, &["dnsConfig"]);
    let servers = list(config, &["nameservers"]);
    if text(spec, &["dnsPolicy"]) == "None" {
        if config.is_null() {
            let detail = "must provide `dnsConfig` when `dnsPolicy` is None";
            errors.push(FieldError::required(path, detail));
            return;
        }
        if servers.is_empty() {
            let detail = "must provide at least one DNS nameserver when `dnsPolicy` is None";
            errors.push(FieldError::required(&path.child("nameservers"), detail));
            return;
        }
    }
    let servers_path = path.child("nameservers");
    if servers.len() > DNS_SERVERS {
        let detail = format!("must not have more than {DNS_SERVERS} nameservers");
        errors.push(FieldError::invalid(&servers_path, servers.to_vec(), detail));
    }
    for (index, server) in texts(config, &["nameservers"]).enumerate() {
        check::ip(errors, &servers_path.index(index), server);
    }
    dns_searches(config, &path.child("searches"), errors);
    let options = path.child("options");
    for (index, option) in list(config, &["options"]).iter().enumerate() {
        if text(option, &["name"]).is_empty() {
            errors.push(FieldError::required(
                &options.index(index),
                "must not be empty",
            ));
        }
    }
}

fn dns_searches(config: &Value, path: &FieldPath<'_>, errors: &mut Errors) {
    let all: Vec<_> = texts(config, &["searches"]).collect();
    let value = || at(config, &["searches"]).clone();
    if all.len() > DNS_SEARCHES {
        let detail = format!("must not have more than {DNS_SEARCHES} search paths");
        errors.push(FieldError::invalid(path, value(), detail));
    }
    if all.join(" ").len() > DNS_SEARCH_LENGTH {
        let detail = format!(
            "must not have more than {DNS_SEARCH_LENGTH} characters (including spaces) in the search list"
        );
        errors.push(FieldError::invalid(path, value(), detail));
    }
    for (index, search) in all.into_iter().enumerate() {
        if search != "." {
            let search = search.strip_suffix('.').unwrap_or(search);
            let messages = names::subdomain_with_underscores(search);
            check::report(errors, &path.index(index), search, messages);
        }
    }
}

fn host_aliases(spec: &Value, path: &FieldPath<'_>, errors: &mut Errors) {
    for (index, alias) in list(spec, &["hostAliases"]).iter().enumerate() {
        let path = path.index(index);
        check::ip(errors, &path.child("ip"), text(alias, &["ip"]));
        let path = path.child("hostnames");
        for (index, name) in texts(alias, &["hostnames"]).enumerate() {
            check::subdomain(errors, &path.index(index), name);
        }
    }
}

/// A token for a service account needs one.
fn token_needs_account(spec: &Value, path: &FieldPath<'_>, errors: &mut Errors) {
    if !text(spec, &["serviceAccountName"]).is_empty() {
        return;
    }
    let path = path.child("volumes");
    for (index, volume) in list(spec, &["volumes"]).iter().enumerate() {
        let path = path.index(index);
        let path = path.child("projected");
        let path = path.child("sources");
        for (index, source) in list(volume, &["projected", "sources"]).iter().enumerate() {
            if has(source, &["serviceAccountToken"]) {
                let path = path.index(index);
                let detail = "must not be specified when serviceAccountName is not set";
                let path = path.child("serviceAccountToken");
                errors.push(FieldError::forbidden(&path, detail));
            }
        }
    }
}
