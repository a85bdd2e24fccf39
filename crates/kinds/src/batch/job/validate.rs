//! Whether a job makes sense, and what of it may change.

use std::collections::HashSet;

use bellwether_schema::{FieldError, FieldErrorKind, FieldPath};
use serde_json::Value;

use super::{CONTROLLER_UID, JOB_NAME};
use crate::apps::workload::NO_MATCH;
use crate::check::{self, Errors};
use crate::core::pod;
use crate::value::{at, existing, flag, has, int, list, restore_at, same, text};
use crate::{names, selector};

/// Most pods of an indexed job that run at once.
const INDEXED_PARALLELISM: i64 = 100_000;
/// Most rules of a policy, and most patterns of a rule.
const RULES: usize = 20;
/// Most exit codes of a rule.
const EXIT_CODES: usize = 255;

const SPEC: FieldPath<'static> = FieldPath::new("spec");

/// Checks a job that is to be created, or to replace `old`.
pub(super) fn job(new: &Value, old: Option<&Value>, errors: &mut Errors) {
    let spec = at(new, &["spec"]);
    generated_labels(new, errors);
    job_spec(spec, &SPEC, errors);
    let selector_path = SPEC.child("selector");
    let wanted = at(spec, &["selector"]);
    if wanted.is_null() {
        errors.push(FieldError::required(&selector_path, ""));
    } else {
        selector::validate(wanted, &selector_path, errors);
    }
    let labels = at(spec, &["template", "metadata", "labels"]);
    if selector::is_valid(wanted) && !selector::matches(wanted, labels) {
        let path = SPEC.child("template");
        let path = path.child("metadata");
        errors.push(FieldError::invalid(
            &path.child("labels"),
            labels.clone(),
            NO_MATCH,
        ));
    }
    match old {
        Some(old) => update(new, old, errors),
        None => host_names(new, errors),
    }
}

/// Labels that the server generates cannot be chosen.
fn generated_labels(new: &Value, errors: &mut Errors) {
    let spec = at(new, &["spec"]);
    if flag(spec, &["manualSelector"]) || !has(spec, &["selector"]) {
        return;
    }
    let uid = text(new, &["metadata", "uid"]);
    let name = text(new, &["metadata", "name"]);
    let labels = at(spec, &["template", "metadata", "labels"]);
    let path = SPEC.child("template");
    let path = path.child("metadata");
    let path = path.child("labels");
    let expected = [
        ("controller-uid", uid),
        ("job-name", name),
        (CONTROLLER_UID, uid),
        (JOB_NAME, name),
    ];
    for (key, value) in expected {
        let found = text(labels, &[key]);
        // The server has set what was absent; before it has chosen a uid, any will do.
        if found != value && (!value.is_empty() || found.is_empty()) {
            let detail = format!("must be '{value}'");
            errors.push(FieldError::invalid(&path.key(key), labels.clone(), detail));
        }
    }
    let mut of_pods = serde_json::Map::new();
    for (key, value) in expected {
        let value = if value.is_empty() {
            text(labels, &[key])
        } else {
            value
        };
        of_pods.insert(key.to_owned(), value.into());
    }
    let wanted = at(spec, &["selector"]);
    if !selector::matches(wanted, &of_pods.into()) {
        let detail = "`selector` not auto-generated";
        errors.push(FieldError::invalid(
            &SPEC.child("selector"),
            wanted.clone(),
            detail,
        ));
    }
}

/// Pods of an indexed job are named after it, and their names are host names.
fn host_names(new: &Value, errors: &mut Errors) {
    let completions = int(new, &["spec", "completions"]);
    if text(new, &["spec", "completionMode"]) != "Indexed" || completions < 1 {
        return;
    }
    let name = text(new, &["metadata", "name"]);
    let longest = format!("{name}-{}", completions - 1);
    if !names::label(&longest).is_empty() {
        let detail = format!("will not able to create pod with invalid DNS label: {longest}");
        let path = FieldPath::new("metadata");
        errors.push(FieldError::invalid(&path.child("name"), name, detail));
    }
}

/// Checks the template of a job.
pub(crate) fn template(template: &Value, path: &FieldPath<'_>, errors: &mut Errors) {
    let spec = at(template, &["spec"]);
    let path = path.child("spec");
    job_spec(spec, &path, errors);
    if has(spec, &["selector"]) {
        let detail = "`selector` will be auto-generated";
        let value = at(spec, &["selector"]).clone();
        errors.push(FieldError::invalid(&path.child("selector"), value, detail));
    }
    if flag(spec, &["manualSelector"]) {
        let path = path.child("manualSelector");
        errors.push(FieldError::not_supported(&path, true, &["nil", "false"]));
    }
}

fn job_spec(spec: &Value, path: &FieldPath<'_>, errors: &mut Errors) {
    for field in [
        "parallelism",
        "completions",
        "activeDeadlineSeconds",
        "backoffLimit",
        "ttlSecondsAfterFinished",
        "backoffLimitPerIndex",
        "maxFailedIndexes",
    ] {
        check::not_negative(errors, spec, path, field);
    }
    if has(spec, &["maxFailedIndexes"]) && !has(spec, &["backoffLimitPerIndex"]) {
        let detail = "when maxFailedIndexes is specified";
        errors.push(FieldError::required(
            &path.child("backoffLimitPerIndex"),
            detail,
        ));
    }
    if has(spec, &["managedBy"]) {
        let manager = text(spec, &["managedBy"]);
        check::domain_prefixed_path(errors, &path.child("managedBy"), manager);
    }
    completion_mode(spec, path, errors);
    if has(spec, &["podFailurePolicy"]) {
        failure_policy(spec, &path.child("podFailurePolicy"), errors);
    }
    success_policy(spec, &path.child("successPolicy"), errors);
    replacement_policy(spec, &path.child("podReplacementPolicy"), errors);
    pod::validate_template(at(spec, &["template"]), &path.child("template"), errors);
    restart_policy(spec, path, errors);
}

fn completion_mode(spec: &Value, path: &FieldPath<'_>, errors: &mut Errors) {
    let mode = text(spec, &["completionMode"]);
    if has(spec, &["completionMode"]) {
        let path = path.child("completionMode");
        check::supported(errors, &path, mode, &["NonIndexed", "Indexed"]);
    }
    let number = |field: &str| at(spec, &[field]).as_i64();
    if mode == "Indexed" {
        if number("completions").is_none() {
            let detail = "when completion mode is Indexed";
            errors.push(FieldError::required(&path.child("completions"), detail));
        }
        let parallelism = int(spec, &["parallelism"]);
        if parallelism > INDEXED_PARALLELISM {
            let detail = format!(
                "must be less than or equal to {INDEXED_PARALLELISM} when completion mode is Indexed"
            );
            errors.push(FieldError::invalid(
                &path.child("parallelism"),
                parallelism,
                detail,
            ));
        }
        if let (Some(failed), Some(completions)) =
            (number("maxFailedIndexes"), number("completions"))
            && failed > completions
        {
            let detail = "must be less than or equal to completions";
            errors.push(FieldError::invalid(
                &path.child("maxFailedIndexes"),
                failed,
                detail,
            ));
        }
    } else if matches!(mode, "" | "NonIndexed") {
        for field in ["backoffLimitPerIndex", "maxFailedIndexes"] {
            if let Some(number) = number(field) {
                let detail = "requires indexed completion mode";
                errors.push(FieldError::invalid(&path.child(field), number, detail));
            }
        }
    }
}

fn restart_policy(spec: &Value, path: &FieldPath<'_>, errors: &mut Errors) {
    let path = path.child("template");
    let path = path.child("spec");
    let path = path.child("restartPolicy");
    let policy = text(spec, &["template", "spec", "restartPolicy"]);
    match policy {
        "" | "Always" => {
            let detail = "valid values: \"OnFailure\", \"Never\"";
            errors.push(FieldError::required(&path, detail));
        }
        "OnFailure" if has(spec, &["podFailurePolicy"]) => {
            let detail = "only \"Never\" is supported when podFailurePolicy is specified";
            errors.push(FieldError::invalid(&path, policy, detail));
        }
        _ => {
            check::supported(errors, &path, policy, &["OnFailure", "Never"]);
        }
    }
}

fn replacement_policy(spec: &Value, path: &FieldPath<'_>, errors: &mut Errors) {
    if !has(spec, &["podReplacementPolicy"]) {
        return;
    }
    let allowed: &[&str] = if has(spec, &["podFailurePolicy"]) {
        &["Failed"]
    } else {
        &["Failed", "TerminatingOrFailed"]
    };
    check::supported(errors, path, text(spec, &["podReplacementPolicy"]), allowed);
}

fn failure_policy(spec: &Value, path: &FieldPath<'_>, errors: &mut Errors) {
    let path = path.child("rules");
    let rules = list(spec, &["podFailurePolicy", "rules"]);
    if rules.len() > RULES {
        errors.push(FieldError::too_many(
            &path,
            rules.len() as u64,
            RULES as u64,
        ));
    }
    // Each is compared with all containers, so that only as many are as may be.
    for (index, rule) in rules.iter().enumerate().take(RULES) {
        failure_rule(spec, rule, &path.index(index), errors);
    }
}

fn failure_rule(spec: &Value, rule: &Value, path: &FieldPath<'_>, errors: &mut Errors) {
    let actions = ["Count", "FailIndex", "FailJob", "Ignore"];
    let action = text(rule, &["action"]);
    let action_path = path.child("action");
    if action.is_empty() {
        let detail = format!("valid values: {}", quoted(&actions));
        errors.push(FieldError::required(&action_path, detail));
    } else if action == "FailIndex" && !has(spec, &["backoffLimitPerIndex"]) {
        let detail = "requires the backoffLimitPerIndex to be set";
        errors.push(FieldError::invalid(&action_path, action, detail));
    } else {
        check::supported(errors, &action_path, action, &actions);
    }
    let codes = at(rule, &["onExitCodes"]);
    let patterns = list(rule, &["onPodConditions"]);
    if codes.is_object() {
        exit_codes(spec, codes, &path.child("onExitCodes"), errors);
    }
    let patterns_path = path.child("onPodConditions");
    if patterns.len() > RULES {
        errors.push(FieldError::too_many(
            &patterns_path,
            patterns.len() as u64,
            RULES as u64,
        ));
    }
    for (index, pattern) in patterns.iter().enumerate() {
        let path = patterns_path.index(index);
        check::qualified_name(errors, &path.child("type"), text(pattern, &["type"]));
        let status = text(pattern, &["status"]);
        check::supported(
            errors,
            &path.child("status"),
            status,
            &["False", "True", "Unknown"],
        );
    }
    let detail = match (codes.is_object(), patterns.is_empty()) {
        (true, false) => "specifying both OnExitCodes and OnPodConditions is not supported",
        (false, true) => "specifying one of OnExitCodes and OnPodConditions is required",
        _ => return,
    };
    errors.push(FieldError::new(FieldErrorKind::Invalid, path, None, detail));
}

fn exit_codes(spec: &Value, codes: &Value, path: &FieldPath<'_>, errors: &mut Errors) {
    let operators = ["In", "NotIn"];
    let operator = text(codes, &["operator"]);
    let operator_path = path.child("operator");
    if operator.is_empty() {
        let detail = format!("valid values: {}", quoted(&operators));
        errors.push(FieldError::required(&operator_path, detail));
    } else {
        check::supported(errors, &operator_path, operator, &operators);
    }
    let container = text(codes, &["containerName"]);
    let known = ["containers", "initContainers"].iter().any(|kind| {
        let all = list(spec, &["template", "spec", kind]);
        all.iter().any(|found| text(found, &["name"]) == container)
    });
    if has(codes, &["containerName"]) && !known {
        let detail = "must be one of the container or initContainer names in the pod template";
        errors.push(FieldError::invalid(
            &path.child("containerName"),
            container,
            detail,
        ));
    }
    let values = list(codes, &["values"]);
    let path = path.child("values");
    if values.is_empty() {
        let detail = "at least one value is required";
        errors.push(FieldError::invalid(&path, values.to_vec(), detail));
    } else if values.len() > EXIT_CODES {
        errors.push(FieldError::too_many(
            &path,
            values.len() as u64,
            EXIT_CODES as u64,
        ));
    }
    let mut seen = HashSet::new();
    for (index, value) in values.iter().enumerate() {
        if operator == "In" && value == 0 {
            let detail = "must not be 0 for the In operator";
            errors.push(FieldError::invalid(&path.index(index), 0, detail));
        }
        if !seen.insert(value) {
            errors.push(FieldError::duplicate(&path.index(index), value.clone()));
        }
    }
    let numbers: Vec<_> = values.iter().filter_map(Value::as_i64).collect();
    if !numbers.is_sorted() {
        errors.push(FieldError::invalid(
            &path,
            values.to_vec(),
            "must be ordered",
        ));
    }
}

fn success_policy(spec: &Value, path: &FieldPath<'_>, errors: &mut Errors) {
    let policy = at(spec, &["successPolicy"]);
    if policy.is_null() {
        return;
    }
    if text(spec, &["completionMode"]) != "Indexed" {
        let detail = "requires indexed completion mode";
        errors.push(FieldError::invalid(path, policy.clone(), detail));
        return;
    }
    let path = path.child("rules");
    let rules = list(policy, &["rules"]);
    if rules.is_empty() {
        let detail = "at least one rules must be specified when the successPolicy is specified";
        errors.push(FieldError::required(&path, detail));
    }
    if rules.len() > RULES {
        errors.push(FieldError::too_many(
            &path,
            rules.len() as u64,
            RULES as u64,
        ));
    }
    let completions = int(spec, &["completions"]);
    for (index, rule) in rules.iter().enumerate() {
        let path = path.index(index);
        if !has(rule, &["succeededCount"]) && !has(rule, &["succeededIndexes"]) {
            let detail = "at least one of succeededCount or succeededIndexes must be specified";
            errors.push(FieldError::required(&path, detail));
        }
        check::not_negative(errors, rule, &path, "succeededCount");
        let count = int(rule, &["succeededCount"]);
        if count > completions {
            let detail = format!(
                "must be less than or equal to {completions} (the number of specified completions)"
            );
            errors.push(FieldError::invalid(
                &path.child("succeededCount"),
                count,
                detail,
            ));
        }
    }
}

/// What may not change once a job exists.
fn update(new: &Value, old: &Value, errors: &mut Errors) {
    let spec = at(new, &["spec"]);
    let completions = ["spec", "completions"];
    let path = SPEC.child("completions");
    if text(spec, &["completionMode"]) != "Indexed" {
        check::immutable(errors, new, old, &completions, &path);
    } else if at(new, &completions) != at(old, &completions)
        && int(new, &completions) != int(spec, &["parallelism"])
    {
        let detail = "can only be modified in tandem with spec.parallelism";
        errors.push(FieldError::invalid(
            &path,
            at(new, &completions).clone(),
            detail,
        ));
    }
    check::immutable(
        errors,
        new,
        old,
        &["spec", "selector"],
        &SPEC.child("selector"),
    );
    template_update(new, old, errors);
    for field in [
        "completionMode",
        "podFailurePolicy",
        "backoffLimitPerIndex",
        "managedBy",
        "successPolicy",
    ] {
        check::immutable(errors, new, old, &["spec", field], &SPEC.child(field));
    }
}

/// The template is fixed, but a job that has not started may change where its pods will run.
fn template_update(new: &Value, old: &Value, errors: &mut Errors) {
    let now = at(new, &["spec", "template"]);
    let mut before = at(old, &["spec", "template"]).clone();
    let suspended = flag(old, &["spec", "suspend"]);
    if suspended && !has(old, &["status", "startTime"]) {
        for field in ["nodeSelector", "tolerations", "schedulingGates"] {
            restore_at(&mut before, now, &["spec"], field);
        }
        for field in ["annotations", "labels"] {
            restore_at(&mut before, now, &["metadata"], field);
        }
        let affinity = at(now, &["spec", "affinity", "nodeAffinity"]);
        if has(&before, &["spec", "affinity"]) || !affinity.is_null() {
            if let Some(found) = crate::value::object(&mut before, &["spec", "affinity"]) {
                found.insert("nodeAffinity".to_owned(), affinity.clone());
            }
            if affinity.is_null()
                && let Some(found) = existing(&mut before, &["spec", "affinity"])
            {
                found.remove("nodeAffinity");
            }
        }
    }
    if !same(now, &before) {
        let path = SPEC.child("template");
        let detail = crate::meta::IMMUTABLE;
        errors.push(FieldError::invalid(&path, now.clone(), detail));
    }
}

/// Checks the status of a job.
pub(super) fn part(part: &str, new: &Value, _old: &Value, errors: &mut Errors) {
    if part != "status" {
        return;
    }
    let path = FieldPath::new("status");
    for field in ["active", "succeeded", "failed", "ready", "terminating"] {
        check::not_negative(errors, at(new, &["status"]), &path, field);
    }
}

/// Words as Go prints a list of them.
fn quoted(words: &[&str]) -> String {
    let all: Vec<_> = words.iter().map(|word| format!("{word:?}")).collect();
    format!("[{}]", all.join(" "))
}
