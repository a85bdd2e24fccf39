//! What of a pod may change once it exists.

use std::collections::HashSet;

use bellwether_schema::{FieldError, FieldPath};
use serde_json::Value;

use super::scheduling::tolerations;
use crate::check::{self, Errors};
use crate::names;
use crate::value::{self, at, existing, items, list, restore, same, text};

const SPEC: FieldPath<'static> = FieldPath::new("spec");

/// Checks that only what may change has changed.
pub(in crate::core::pod) fn pod_update(new: &Value, old: &Value, errors: &mut Errors) {
    let (new, old) = (at(new, &["spec"]), at(old, &["spec"]));
    for name in ["containers", "initContainers"] {
        let path = SPEC.child(name);
        if list(new, &[name]).len() != list(old, &[name]).len() {
            let detail = "pod updates may not add or remove containers";
            errors.push(FieldError::forbidden(&path, detail));
            return;
        }
        for (index, container) in list(new, &[name]).iter().enumerate() {
            let path = path.index(index);
            let image = check::required(errors, container, &path, "image");
            if image.trim() != image {
                let detail = "must not have leading or trailing whitespace";
                errors.push(FieldError::invalid(&path.child("image"), image, detail));
            }
        }
    }
    if !deadline(new, old, errors) {
        return;
    }
    only_added_tolerations(new, old, errors);
    only_removed_gates(new, old, errors);
    if !same(&with_allowed_changes_undone(new, old), old) {
        let detail = "pod updates may not change fields other than `spec.containers[*].image`,`spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,`spec.tolerations` (only additions to existing tolerations),`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)";
        errors.push(FieldError::forbidden(&SPEC, detail));
    }
}

/// A deadline can be set, and come nearer.
fn deadline(new: &Value, old: &Value, errors: &mut Errors) -> bool {
    let path = SPEC.child("activeDeadlineSeconds");
    let of = |spec: &Value| at(spec, &["activeDeadlineSeconds"]).as_i64();
    match (of(new), of(old)) {
        (Some(new), _) if !(0..=i64::from(i32::MAX)).contains(&new) => {
            let detail = names::between(0, i64::from(i32::MAX));
            errors.push(FieldError::invalid(&path, new, detail));
            false
        }
        (Some(new), Some(old)) if new > old => {
            let detail = "must be less than or equal to previous value";
            errors.push(FieldError::invalid(&path, new, detail));
            false
        }
        (None, Some(_)) => {
            let detail = "must not update from a positive integer to nil value";
            errors.push(FieldError::invalid(&path, Value::Null, detail));
            true
        }
        _ => true,
    }
}

fn only_added_tolerations(new: &Value, old: &Value, errors: &mut Errors) {
    let path = SPEC.child("tolerations");
    let identity =
        |toleration| ["key", "operator", "value", "effect"].map(|field| text(toleration, &[field]));
    let kept: HashSet<_> = list(new, &["tolerations"]).iter().map(identity).collect();
    for old in list(old, &["tolerations"]) {
        if !kept.contains(&identity(old)) {
            let detail = "existing toleration can not be modified except its tolerationSeconds";
            errors.push(FieldError::forbidden(&path, detail));
            return;
        }
    }
    tolerations(new, &path, errors);
}

fn only_removed_gates(new: &Value, old: &Value, errors: &mut Errors) {
    let path = SPEC.child("schedulingGates");
    let known = value::names(list(old, &["schedulingGates"]));
    for (index, gate) in list(new, &["schedulingGates"]).iter().enumerate() {
        let name = text(gate, &["name"]);
        if !known.contains(name) {
            let path = path.index(index);
            let detail =
                format!("only deletion is allowed, but found new scheduling gate '{name}'");
            errors.push(FieldError::forbidden(&path.child("name"), detail));
        }
    }
}

fn with_allowed_changes_undone(new: &Value, old: &Value) -> Value {
    let mut spec = new.clone();
    for name in ["containers", "initContainers"] {
        for (container, before) in items(&mut spec, &[name]).iter_mut().zip(list(old, &[name])) {
            restore(container, before, "image");
        }
    }
    for field in ["activeDeadlineSeconds", "schedulingGates", "tolerations"] {
        restore(&mut spec, old, field);
    }
    let grace = "terminationGracePeriodSeconds";
    let was_negative = at(old, &[grace])
        .as_i64()
        .is_some_and(|seconds| seconds < 0);
    if was_negative && at(new, &[grace]) == 1 {
        restore(&mut spec, old, grace);
    }
    if !list(old, &["schedulingGates"]).is_empty() {
        undo_narrowing(&mut spec, old);
    }
    spec
}

/// Until a pod may be scheduled, where it may run can be narrowed.
fn undo_narrowing(spec: &mut Value, old: &Value) {
    let before = at(old, &["nodeSelector"]).as_object();
    let kept = before
        .into_iter()
        .flatten()
        .all(|(key, value)| at(spec, &["nodeSelector"]).get(key) == Some(value));
    if kept {
        restore(spec, old, "nodeSelector");
    }
    if at(old, &["affinity", "nodeAffinity"]).is_null() {
        if let Some(affinity) = existing(spec, &["affinity"]) {
            affinity.remove("nodeAffinity");
        }
        if at(old, &["affinity"]).is_null()
            && at(spec, &["affinity"])
                .as_object()
                .is_some_and(serde_json::Map::is_empty)
        {
            restore(spec, old, "affinity");
        }
    }
}

/// Checks a part of a pod that is written on its own.
pub(in crate::core::pod) fn part(part: &str, new: &Value, old: &Value, errors: &mut Errors) {
    match part {
        "status" => status(new, old, errors),
        "ephemeralcontainers" => debug_containers(new, old, errors),
        "resize" => super::pod_spec(at(new, &["spec"]), super::Subject::Pod, &SPEC, errors),
        _ => {}
    }
}

fn status(new: &Value, old: &Value, errors: &mut Errors) {
    let path = FieldPath::new("status");
    let kinds = list(new, &["status", "conditions"]);
    let conditions = path.child("conditions");
    for (index, condition) in kinds.iter().enumerate() {
        let kind = text(condition, &["type"]);
        let standard = ["PodScheduled", "Ready", "Initialized"].contains(&kind);
        if !standard {
            let path = conditions.index(index);
            check::qualified_name(errors, &path.child("Type"), kind);
        }
    }
    let nominated = text(new, &["status", "nominatedNodeName"]);
    if !nominated.is_empty() && nominated != text(old, &["status", "nominatedNodeName"]) {
        check::subdomain(errors, &path.child("nominatedNodeName"), nominated);
    }
    check::immutable(
        errors,
        new,
        old,
        &["status", "qosClass"],
        &path.child("qosClass"),
    );
}

/// Containers for debugging can be added, and stay as they are.
fn debug_containers(new: &Value, old: &Value, errors: &mut Errors) {
    super::pod_spec(at(new, &["spec"]), super::Subject::Pod, &SPEC, errors);
    let path = SPEC.child("ephemeralContainers");
    let kept = value::by_name(list(new, &["spec", "ephemeralContainers"]));
    for (index, before) in list(old, &["spec", "ephemeralContainers"])
        .iter()
        .enumerate()
    {
        let name = text(before, &["name"]);
        match kept.get(name) {
            None => {
                let detail = format!("existing ephemeral containers {name:?} may not be removed\n");
                errors.push(FieldError::forbidden(&path, detail));
            }
            Some(now) if !same(now, before) => {
                let detail = format!("existing ephemeral containers {name:?} may not be changed\n");
                errors.push(FieldError::forbidden(&path.index(index), detail));
            }
            Some(_) => {}
        }
    }
}
