//! Checks that workloads share.

use bellwether_schema::{FieldError, FieldPath};
use serde_json::Value;

use crate::check::{self, Errors};
use crate::core::pod;
use crate::selector;
use crate::value::{at, has, int};

/// What is said about a selector that would not find the pods.
pub(crate) const NO_MATCH: &str = "`selector` does not match template `labels`";

/// What is said about a selector that cannot be used, besides what is wrong with it.
#[derive(Clone, Copy)]
pub(crate) enum Complaint {
    /// Nothing, and the template is checked all the same.
    None,
    /// This, and the template is not checked.
    Says(&'static str),
}

/// Checks that there is a selector which selects something; `kind` is the word for the workload.
pub(crate) fn selector(spec: &Value, kind: &str, path: &FieldPath<'_>, errors: &mut Errors) {
    let value = at(spec, &["selector"]);
    let path = path.child("selector");
    if value.is_null() {
        errors.push(FieldError::required(&path, ""));
        return;
    }
    selector::validate(value, &path, errors);
    if selector::is_empty(value) {
        let detail = format!("empty selector is invalid for {kind}");
        errors.push(FieldError::invalid(&path, value.clone(), detail));
    }
}

/// Checks that the selector selects pods of the template.
fn selects_template(spec: &Value, path: &FieldPath<'_>, errors: &mut Errors) {
    let value = at(spec, &["selector"]);
    let labels = at(spec, &["template", "metadata", "labels"]);
    let selects_all = value.is_object() && selector::is_empty(value);
    if !selects_all && !selector::matches(value, labels) {
        let path = path.child("template");
        let path = path.child("metadata");
        let labels = labels.clone();
        errors.push(FieldError::invalid(&path.child("labels"), labels, NO_MATCH));
    }
}

/// Checks the template, and that the selector selects it; `complaint` is what is said about a
/// selector that cannot be used.
pub(crate) fn template(
    spec: &Value,
    complaint: Complaint,
    path: &FieldPath<'_>,
    errors: &mut Errors,
) {
    let value = at(spec, &["selector"]);
    if selector::is_valid(value) {
        selects_template(spec, path, errors);
    } else if let Complaint::Says(words) = complaint {
        errors.push(FieldError::invalid(
            &path.child("selector"),
            value.clone(),
            words,
        ));
        return;
    }
    let template_path = path.child("template");
    pod::validate_template(at(spec, &["template"]), &template_path, errors);
}

/// Checks that pods of the template keep running.
pub(crate) fn keeps_running(spec: &Value, kind: &str, path: &FieldPath<'_>, errors: &mut Errors) {
    let pod_spec = at(spec, &["template", "spec"]);
    let path = path.child("template");
    let path = path.child("spec");
    let policy = at(pod_spec, &["restartPolicy"])
        .as_str()
        .unwrap_or_default();
    check::supported(errors, &path.child("restartPolicy"), policy, &["Always"]);
    if has(pod_spec, &["activeDeadlineSeconds"]) {
        let detail = format!("activeDeadlineSeconds in {kind} is not Supported");
        errors.push(FieldError::forbidden(
            &path.child("activeDeadlineSeconds"),
            detail,
        ));
    }
}

/// The number that a count or percentage says.
pub(crate) fn amount(value: &Value) -> i64 {
    check::percentage(value)
        .or(value.as_i64())
        .unwrap_or_default()
}

/// Checks counts in a status: none is negative, and parts are not more than the whole.
pub(crate) fn counts(
    new: &Value,
    counts: &[&str],
    parts: &[(&str, &str, &str)],
    errors: &mut Errors,
) {
    let path = FieldPath::new("status");
    let status = at(new, &["status"]);
    for name in counts {
        check::not_negative(errors, status, &path, name);
    }
    for (part, whole, words) in parts {
        let number = int(status, &[part]);
        if number > int(status, &[whole]) {
            let detail = format!("cannot be greater than {words}");
            errors.push(FieldError::invalid(&path.child(part), number, detail));
        }
    }
}

/// Checks that a count of name collisions only grows.
pub(crate) fn collisions(new: &Value, old: &Value, errors: &mut Errors) {
    let names = ["status", "collisionCount"];
    if int(new, &names) < int(old, &names) {
        let path = FieldPath::new("status");
        let detail = "cannot be decremented";
        errors.push(FieldError::invalid(
            &path.child("collisionCount"),
            int(new, &names),
            detail,
        ));
    }
}
