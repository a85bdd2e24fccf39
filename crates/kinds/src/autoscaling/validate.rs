//! Whether a HorizontalPodAutoscaler makes sense, in its stored version.

use bellwether_schema::{FieldError, FieldPath};
use serde_json::Value;

use crate::check::{self, Errors};
use crate::names;
use crate::value::{at, has, int, list, text};

/// Longest time to wait before following a metric, and longest period of a policy, in seconds.
const WINDOW_SECONDS: i64 = 3600;
const PERIOD_SECONDS: i64 = 1800;
/// Types of metrics and the fields that hold them.
const SOURCES: &[(&str, &str)] = &[
    ("Object", "object"),
    ("External", "external"),
    ("Pods", "pods"),
    ("Resource", "resource"),
    ("ContainerResource", "containerResource"),
];
const TYPES: &[&str] = &[
    "ContainerResource",
    "External",
    "Object",
    "Pods",
    "Resource",
];

pub(super) fn autoscaler(new: &Value, _old: Option<&Value>, errors: &mut Errors) {
    let path = FieldPath::new("spec");
    let spec = at(new, &["spec"]);
    let least = at(spec, &["minReplicas"]).as_i64();
    let most = int(spec, &["maxReplicas"]);
    if let Some(least) = least
        && least < 1
    {
        let detail = "must be greater than or equal to 1";
        errors.push(FieldError::invalid(
            &path.child("minReplicas"),
            least,
            detail,
        ));
    }
    let most_path = path.child("maxReplicas");
    if most < 1 {
        errors.push(FieldError::invalid(
            &most_path,
            most,
            "must be greater than 0",
        ));
    }
    if least.is_some_and(|least| most < least) {
        let detail = "must be greater than or equal to `minReplicas`";
        errors.push(FieldError::invalid(&most_path, most, detail));
    }
    let target = at(spec, &["scaleTargetRef"]);
    let target_path = path.child("scaleTargetRef");
    reference(target, &target_path, errors);
    let version = text(target, &["apiVersion"]);
    if !version.contains('/') && text(target, &["kind"]) != "ReplicationController" {
        let path = target_path.child("apiVersion");
        let detail = "apiVersion must specify API group";
        errors.push(FieldError::invalid(&path, version, detail));
    }
    let metrics = path.child("metrics");
    for (index, metric) in list(spec, &["metrics"]).iter().enumerate() {
        self::metric(metric, &metrics.index(index), errors);
    }
    let scales_to_zero = |metric: &Value| matches!(text(metric, &["type"]), "Object" | "External");
    if least == Some(0) && !list(spec, &["metrics"]).iter().any(scales_to_zero) {
        let detail = "must specify at least one Object or External metric to support scaling to zero replicas";
        errors.push(FieldError::forbidden(&metrics, detail));
    }
    let behavior = path.child("behavior");
    for field in ["scaleUp", "scaleDown"] {
        let rules = at(spec, &["behavior", field]);
        if rules.is_object() {
            scaling_rules(rules, &behavior.child(field), errors);
        }
    }
}

pub(super) fn part(part: &str, new: &Value, _old: &Value, errors: &mut Errors) {
    if part != "status" {
        return;
    }
    let path = FieldPath::new("status");
    for field in ["currentReplicas", "desiredReplicas"] {
        check::not_negative(errors, at(new, &["status"]), &path, field);
    }
}

fn reference(reference: &Value, path: &FieldPath<'_>, errors: &mut Errors) {
    for field in ["kind", "name"] {
        let found = check::required(errors, reference, path, field);
        check::report(
            errors,
            &path.child(field),
            found,
            names::path_segment(found, false),
        );
    }
    let version = text(reference, &["apiVersion"]);
    if version.matches('/').count() > 1 {
        let detail = format!("unexpected GroupVersion string: {version}");
        errors.push(FieldError::invalid(
            &path.child("apiVersion"),
            version,
            detail,
        ));
    }
}

fn metric(metric: &Value, path: &FieldPath<'_>, errors: &mut Errors) {
    let kind = text(metric, &["type"]);
    let type_path = path.child("type");
    if kind.is_empty() {
        let detail = "must specify a metric source type";
        errors.push(FieldError::required(&type_path, detail));
    }
    check::supported(errors, &type_path, kind, TYPES);
    let present: Vec<_> = SOURCES
        .iter()
        .filter(|(_, field)| has(metric, &[field]))
        .collect();
    if let Some((_, field)) = present.first() {
        source(field, at(metric, &[field]), &path.child(field), errors);
    }
    let expected = SOURCES.iter().find(|(known, _)| *known == kind);
    match expected {
        Some((_, field)) if !has(metric, &[field]) => {
            let detail = "must populate information for the given metric source";
            errors.push(FieldError::required(&path.child(field), detail));
        }
        Some(_) => {}
        None => {
            check::supported(errors, &type_path, kind, TYPES);
        }
    }
    if present.len() != 1 {
        for (_, field) in present.iter().filter(|found| Some(**found) != expected) {
            let detail = "must populate the given metric source only";
            errors.push(FieldError::forbidden(&path.child(field), detail));
        }
    }
}

fn source(field: &str, source: &Value, path: &FieldPath<'_>, errors: &mut Errors) {
    let target = at(source, &["target"]);
    let target_path = path.child("target");
    let given = |name: &str| has(target, &[name]);
    match field {
        "resource" | "containerResource" => {
            if text(source, &["name"]).is_empty() {
                let detail = "must specify a resource name";
                errors.push(FieldError::required(&path.child("name"), detail));
            }
            if field == "containerResource" {
                let container = text(source, &["container"]);
                if container.is_empty() {
                    let detail = "must specify a container";
                    errors.push(FieldError::required(&path.child("container"), detail));
                } else {
                    check::label(errors, &path.child("container"), container);
                }
            }
            amounts(target, &target_path, errors);
            let (percent, value) = (given("averageUtilization"), given("averageValue"));
            if !percent && !value {
                let detail = "must set either a target raw value or a target utilization";
                errors.push(FieldError::required(
                    &target_path.child("averageUtilization"),
                    detail,
                ));
            } else if percent && value {
                let detail = "may not set both a target raw value and a target utilization";
                errors.push(FieldError::forbidden(
                    &target_path.child("averageValue"),
                    detail,
                ));
            }
            return;
        }
        "object" => {
            let object = at(source, &["describedObject"]);
            reference(object, &path.child("describedObject"), errors);
        }
        _ => {}
    }
    identifier(at(source, &["metric"]), &path.child("metric"), errors);
    amounts(target, &target_path, errors);
    let average = target_path.child("averageValue");
    match field {
        "pods" if !given("averageValue") => {
            let detail = "must specify a positive target averageValue";
            errors.push(FieldError::required(&average, detail));
        }
        "object" if !given("value") && !given("averageValue") => {
            let detail = "must set either a target value or averageValue";
            errors.push(FieldError::required(&average, detail));
        }
        "external" if !given("value") && !given("averageValue") => {
            let detail = "must set either a target value for metric or a per-pod target";
            errors.push(FieldError::required(&average, detail));
        }
        "external" if given("value") && given("averageValue") => {
            let detail = "may not set both a target value for metric and a per-pod target";
            errors.push(FieldError::forbidden(&target_path.child("value"), detail));
        }
        _ => {}
    }
}

fn identifier(metric: &Value, path: &FieldPath<'_>, errors: &mut Errors) {
    let name = text(metric, &["name"]);
    let path = path.child("name");
    if name.is_empty() {
        errors.push(FieldError::required(&path, "must specify a metric name"));
    } else {
        check::report(errors, &path, name, names::path_segment(name, false));
    }
}

fn amounts(target: &Value, path: &FieldPath<'_>, errors: &mut Errors) {
    let kind = text(target, &["type"]);
    let type_path = path.child("type");
    if kind.is_empty() {
        let detail = "must specify a metric target type";
        errors.push(FieldError::required(&type_path, detail));
    }
    if !matches!(kind, "Utilization" | "Value" | "AverageValue") {
        let detail = "must be either Utilization, Value, or AverageValue";
        errors.push(FieldError::invalid(&type_path, kind, detail));
    }
    for field in ["value", "averageValue"] {
        let amount = at(target, &[field]);
        if check::quantity(amount).is_some_and(|amount| amount.signum() <= 0) {
            let value = amount.clone();
            errors.push(FieldError::invalid(
                &path.child(field),
                value,
                "must be positive",
            ));
        }
    }
    if let Some(percent) = at(target, &["averageUtilization"]).as_i64()
        && percent < 1
    {
        let path = path.child("averageUtilization");
        errors.push(FieldError::invalid(
            &path,
            percent,
            "must be greater than 0",
        ));
    }
}

fn scaling_rules(rules: &Value, path: &FieldPath<'_>, errors: &mut Errors) {
    let window_path = path.child("stabilizationWindowSeconds");
    if let Some(seconds) = at(rules, &["stabilizationWindowSeconds"]).as_i64() {
        if seconds < 0 {
            let detail = "must be greater than or equal to zero";
            errors.push(FieldError::invalid(&window_path, seconds, detail));
        }
        if seconds > WINDOW_SECONDS {
            let detail = format!("must be less than or equal to {WINDOW_SECONDS}");
            errors.push(FieldError::invalid(&window_path, seconds, detail));
        }
    }
    if has(rules, &["selectPolicy"]) {
        let policy = text(rules, &["selectPolicy"]);
        let path = path.child("selectPolicy");
        check::supported(errors, &path, policy, &["Disabled", "Max", "Min"]);
    }
    let policies_path = path.child("policies");
    let policies = list(rules, &["policies"]);
    if policies.is_empty() {
        let detail = "must specify at least one Policy";
        errors.push(FieldError::required(&policies_path, detail));
    }
    for (index, policy) in policies.iter().enumerate() {
        let path = policies_path.index(index);
        let kind = text(policy, &["type"]);
        check::supported(errors, &path.child("type"), kind, &["Percent", "Pods"]);
        for field in ["value", "periodSeconds"] {
            check::positive(errors, &path.child(field), int(policy, &[field]));
        }
        let seconds = int(policy, &["periodSeconds"]);
        if seconds > PERIOD_SECONDS {
            let detail = format!("must be less than or equal to {PERIOD_SECONDS}");
            errors.push(FieldError::invalid(
                &path.child("periodSeconds"),
                seconds,
                detail,
            ));
        }
    }
    check::quantity_not_negative(errors, &path.child("tolerance"), at(rules, &["tolerance"]));
}
