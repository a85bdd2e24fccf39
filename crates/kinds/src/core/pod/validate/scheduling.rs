//! Where pods may run: affinity, tolerations, spreading.

use std::collections::HashMap;

use bellwether_schema::{FieldError, FieldPath};
use serde_json::Value;

use crate::check::{self, Errors};
use crate::value::{at, has, int, list, text, texts};
use crate::{names, selector};

const REQUIRED: &str = "requiredDuringSchedulingIgnoredDuringExecution";
const PREFERRED: &str = "preferredDuringSchedulingIgnoredDuringExecution";
const EFFECTS: &[&str] = &["NoSchedule", "PreferNoSchedule", "NoExecute"];
const NO_OPERATOR: &str = "not a valid selector operator";

/// Checks `affinity`.
pub(super) fn affinity(affinity: &Value, path: &FieldPath<'_>, errors: &mut Errors) {
    let node = at(affinity, &["nodeAffinity"]);
    let node_path = path.child("nodeAffinity");
    if has(node, &[REQUIRED]) {
        node_selector(at(node, &[REQUIRED]), &node_path.child(REQUIRED), errors);
    }
    let preferred = node_path.child(PREFERRED);
    for (index, term) in list(node, &[PREFERRED]).iter().enumerate() {
        let path = preferred.index(index);
        weight(term, &path, errors);
        let preference = at(term, &["preference"]);
        node_term(preference, false, &path.child("preference"), errors);
    }
    for kind in ["podAffinity", "podAntiAffinity"] {
        let pods = at(affinity, &[kind]);
        let path = path.child(kind);
        let required = path.child(REQUIRED);
        for (index, term) in list(pods, &[REQUIRED]).iter().enumerate() {
            pod_term(term, &required.index(index), errors);
        }
        let preferred = path.child(PREFERRED);
        for (index, term) in list(pods, &[PREFERRED]).iter().enumerate() {
            let path = preferred.index(index);
            weight(term, &path, errors);
            let term = at(term, &["podAffinityTerm"]);
            pod_term(term, &path.child("podAffinityTerm"), errors);
        }
    }
}

fn weight(term: &Value, path: &FieldPath<'_>, errors: &mut Errors) {
    let weight = int(term, &["weight"]);
    if !(1..=100).contains(&weight) {
        let detail = "must be in the range 1-100";
        errors.push(FieldError::invalid(&path.child("weight"), weight, detail));
    }
}

/// Checks a selector of nodes.
pub(crate) fn node_selector(selector: &Value, path: &FieldPath<'_>, errors: &mut Errors) {
    let path = path.child("nodeSelectorTerms");
    let terms = list(selector, &["nodeSelectorTerms"]);
    if terms.is_empty() {
        let detail = "must have at least one node selector term";
        errors.push(FieldError::required(&path, detail));
    }
    for (index, term) in terms.iter().enumerate() {
        node_term(term, true, &path.index(index), errors);
    }
}

fn node_term(term: &Value, check_values: bool, path: &FieldPath<'_>, errors: &mut Errors) {
    let expressions = path.child("matchExpressions");
    for (index, requirement) in list(term, &["matchExpressions"]).iter().enumerate() {
        node_requirement(requirement, check_values, &expressions.index(index), errors);
    }
    let fields = path.child("matchFields");
    for (index, requirement) in list(term, &["matchFields"]).iter().enumerate() {
        node_field(requirement, &fields.index(index), errors);
    }
}

fn node_requirement(
    requirement: &Value,
    check_values: bool,
    path: &FieldPath<'_>,
    errors: &mut Errors,
) {
    let values = list(requirement, &["values"]);
    let operator = text(requirement, &["operator"]);
    let values_path = path.child("values");
    match operator {
        "In" | "NotIn" if values.is_empty() => errors.push(FieldError::required(
            &values_path,
            "must be specified when `operator` is 'In' or 'NotIn'",
        )),
        "Exists" | "DoesNotExist" if !values.is_empty() => errors.push(FieldError::forbidden(
            &values_path,
            "may not be specified when `operator` is 'Exists' or 'DoesNotExist'",
        )),
        "Gt" | "Lt" if values.len() != 1 => errors.push(FieldError::required(
            &values_path,
            "must be specified single value when `operator` is 'Lt' or 'Gt'",
        )),
        "In" | "NotIn" | "Exists" | "DoesNotExist" | "Gt" | "Lt" => {}
        _ => errors.push(FieldError::invalid(
            &path.child("operator"),
            operator,
            NO_OPERATOR,
        )),
    }
    check::qualified_name(errors, &path.child("key"), text(requirement, &["key"]));
    if check_values {
        for (index, value) in texts(requirement, &["values"]).enumerate() {
            check::report(
                errors,
                &values_path.index(index),
                value,
                names::label_value(value),
            );
        }
    }
}

fn node_field(requirement: &Value, path: &FieldPath<'_>, errors: &mut Errors) {
    let values_path = path.child("values");
    let operator = text(requirement, &["operator"]);
    match operator {
        "In" | "NotIn" => {
            if list(requirement, &["values"]).len() != 1 {
                let detail = "must be only one value when `operator` is 'In' or 'NotIn' for node field selector";
                errors.push(FieldError::required(&values_path, detail));
            }
        }
        _ => errors.push(FieldError::invalid(
            &path.child("operator"),
            operator,
            NO_OPERATOR,
        )),
    }
    let key = text(requirement, &["key"]);
    if key == "metadata.name" {
        for (index, value) in texts(requirement, &["values"]).enumerate() {
            check::subdomain(errors, &values_path.index(index), value);
        }
    } else {
        let detail = "not a valid field selector key";
        errors.push(FieldError::invalid(&path.child("key"), key, detail));
    }
}

fn pod_term(term: &Value, path: &FieldPath<'_>, errors: &mut Errors) {
    for field in ["labelSelector", "namespaceSelector"] {
        selector::validate(at(term, &[field]), &path.child(field), errors);
    }
    for namespace in texts(term, &["namespaces"]) {
        check::label(errors, &path.child("namespace"), namespace);
    }
    let key = text(term, &["topologyKey"]);
    let path = path.child("topologyKey");
    if key.is_empty() {
        errors.push(FieldError::required(&path, "can not be empty"));
    }
    check::qualified_name(errors, &path, key);
}

/// Checks `topologySpreadConstraints`.
pub(super) fn spread(spec: &Value, path: &FieldPath<'_>, errors: &mut Errors) {
    let all = list(spec, &["topologySpreadConstraints"]);
    // Of several that are the same, all but the last are reported.
    let mut last = HashMap::new();
    for (index, constraint) in all.iter().enumerate() {
        let key = text(constraint, &["topologyKey"]);
        last.insert((key, text(constraint, &["whenUnsatisfiable"])), index);
    }
    for (index, constraint) in all.iter().enumerate() {
        let path = path.index(index);
        check::positive(
            errors,
            &path.child("maxSkew"),
            int(constraint, &["maxSkew"]),
        );
        let key = text(constraint, &["topologyKey"]);
        if key.is_empty() {
            errors.push(FieldError::required(
                &path.child("topologyKey"),
                "can not be empty",
            ));
        }
        let action = text(constraint, &["whenUnsatisfiable"]);
        let actions = ["DoNotSchedule", "ScheduleAnyway"];
        check::supported(errors, &path.child("whenUnsatisfiable"), action, &actions);
        if last.get(&(key, action)) != Some(&index) {
            let path = path.child("{topologyKey, whenUnsatisfiable}");
            errors.push(FieldError::duplicate(&path, format!("{{{key}, {action}}}")));
        }
        least_domains(constraint, action, &path.child("minDomains"), errors);
        for field in ["nodeAffinityPolicy", "nodeTaintsPolicy"] {
            if has(constraint, &[field]) {
                let policy = text(constraint, &[field]);
                check::supported(errors, &path.child(field), policy, &["Honor", "Ignore"]);
            }
        }
        let labels = at(constraint, &["labelSelector"]);
        selector::validate(labels, &path.child("labelSelector"), errors);
    }
}

fn least_domains(constraint: &Value, action: &str, path: &FieldPath<'_>, errors: &mut Errors) {
    let Some(number) = at(constraint, &["minDomains"]).as_i64() else {
        return;
    };
    check::positive(errors, path, number);
    if action != "DoNotSchedule" {
        let detail =
            format!("can only use minDomains if whenUnsatisfiable=DoNotSchedule, not {action}");
        errors.push(FieldError::invalid(path, number, detail));
    }
}

/// Checks `tolerations`.
pub(crate) fn tolerations(spec: &Value, path: &FieldPath<'_>, errors: &mut Errors) {
    for (index, toleration) in list(spec, &["tolerations"]).iter().enumerate() {
        self::toleration(toleration, &path.index(index), errors);
    }
}

fn toleration(toleration: &Value, path: &FieldPath<'_>, errors: &mut Errors) {
    let key = text(toleration, &["key"]);
    let operator = text(toleration, &["operator"]);
    let effect = text(toleration, &["effect"]);
    let value = text(toleration, &["value"]);
    let operator_path = path.child("operator");
    if !key.is_empty() {
        check::qualified_name(errors, &path.child("key"), key);
    } else if operator != "Exists" {
        let detail = "operator must be Exists when `key` is empty, which means \"match all values and all keys\"";
        errors.push(FieldError::invalid(&operator_path, operator, detail));
    }
    if has(toleration, &["tolerationSeconds"]) && effect != "NoExecute" {
        let detail = "effect must be 'NoExecute' when `tolerationSeconds` is set";
        errors.push(FieldError::invalid(&path.child("effect"), effect, detail));
    }
    match operator {
        "Equal" | "" => {
            let messages = names::label_value(value);
            if !messages.is_empty() {
                errors.push(FieldError::invalid(
                    &operator_path,
                    value,
                    messages.join(";"),
                ));
            }
        }
        "Exists" if !value.is_empty() => {
            let detail = "value must be empty when `operator` is 'Exists'";
            errors.push(FieldError::invalid(&operator_path, value, detail));
        }
        "Exists" => {}
        "Lt" | "Gt" => {
            let all = ["Equal", "Exists", "Lt", "Gt"];
            errors.push(FieldError::not_supported(&operator_path, operator, &all));
        }
        _ => {
            check::supported(errors, &operator_path, operator, &["Equal", "Exists"]);
        }
    }
    if !effect.is_empty() {
        check::supported(errors, &path.child("effect"), effect, EFFECTS);
    }
}

/// Checks the effect of a taint.
pub(crate) fn taint_effect(effect: &str, path: &FieldPath<'_>, errors: &mut Errors) {
    check::required_choice(errors, path, effect, EFFECTS);
}
