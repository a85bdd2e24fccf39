//! Deployments.

use bellwether_schema::{FieldError, FieldErrorKind, FieldPath};
use jiff::Timestamp;
use k8s_openapi::api::apps::v1::Deployment;
use serde_json::Value;

use crate::apps::workload;
use crate::check::{self, Errors};
use crate::columns::{
    AGE, CONTAINERS, IMAGES, NAME, SELECTOR, age, containers, fraction, name, number, words,
};
use crate::core::pod;
use crate::resource::{ALL, SCALE, STATUS};
use crate::value::{Fill, at, empty, existing, has, int, restore_at, text};
use crate::{Column, Generation, Resource, printed, selector};

const INVALID_SELECTOR: workload::Complaint = workload::Complaint::Says("invalid label selector");
/// The strategy that replaces pods little by little.
const ROLLING: &str = "RollingUpdate";

pub(crate) const RESOURCE: Resource = Resource {
    short_names: &["deploy"],
    categories: ALL,
    subresources: &[SCALE, STATUS],
    generation: Generation::SpecAndAnnotations,
    default,
    prepare_part,
    validate,
    validate_part,
    columns: COLUMNS,
    row,
    ..Resource::namespaced::<Deployment>("apps", "v1", "Deployment", "deployments")
};

fn default(object: &mut Value) {
    if let Some(spec) = existing(object, &["spec"]) {
        spec.fill("replicas", 1);
        spec.fill("revisionHistoryLimit", 10);
        spec.fill("progressDeadlineSeconds", 600);
    }
    if let Some(strategy) = existing(object, &["spec", "strategy"]) {
        strategy.fill_zero("type", ROLLING);
        if strategy.get("type") == Some(&ROLLING.into()) {
            strategy.fill("rollingUpdate", empty());
        }
    }
    let rolling = text(object, &["spec", "strategy", "type"]) == ROLLING;
    if let Some(update) = existing(object, &["spec", "strategy", "rollingUpdate"])
        && rolling
    {
        update.fill("maxUnavailable", "25%");
        update.fill("maxSurge", "25%");
    }
    pod::template(object, &["spec", "template"]);
}

/// Labels are copied to ReplicaSets: a status writer must not change them.
fn prepare_part(part: &str, new: &mut Value, old: &Value, _now: Timestamp) {
    if part == "status" {
        restore_at(new, old, &["metadata"], "labels");
    }
}

fn validate(new: &Value, old: Option<&Value>, errors: &mut Errors) {
    let path = FieldPath::new("spec");
    let spec = at(new, &["spec"]);
    check::not_negative(errors, spec, &path, "replicas");
    workload::selector(spec, "deployment", &path, errors);
    workload::template(spec, INVALID_SELECTOR, &path, errors);
    if at(spec, &["replicas"]).is_i64() {
        workload::keeps_running(spec, "ReplicaSet", &path, errors);
    }
    validate_strategy(at(spec, &["strategy"]), &path.child("strategy"), errors);
    for field in [
        "minReadySeconds",
        "revisionHistoryLimit",
        "progressDeadlineSeconds",
    ] {
        check::not_negative(errors, spec, &path, field);
    }
    let deadline = int(spec, &["progressDeadlineSeconds"]);
    if has(spec, &["progressDeadlineSeconds"]) && deadline <= int(spec, &["minReadySeconds"]) {
        let detail = "must be greater than minReadySeconds";
        let path = path.child("progressDeadlineSeconds");
        errors.push(FieldError::invalid(&path, deadline, detail));
    }
    if let Some(old) = old {
        check::immutable(
            errors,
            new,
            old,
            &["spec", "selector"],
            &path.child("selector"),
        );
    }
}

fn validate_strategy(strategy: &Value, path: &FieldPath<'_>, errors: &mut Errors) {
    let update = at(strategy, &["rollingUpdate"]);
    let update_path = path.child("rollingUpdate");
    match text(strategy, &["type"]) {
        "Recreate" if !update.is_null() => {
            let detail = "may not be specified when strategy `type` is 'Recreate'";
            errors.push(FieldError::forbidden(&update_path, detail));
        }
        "Recreate" => {}
        ROLLING => {
            let (unavailable, surge) = (at(update, &["maxUnavailable"]), at(update, &["maxSurge"]));
            let path = update_path.child("maxUnavailable");
            check::count_or_percentage(errors, &path, unavailable);
            check::count_or_percentage(errors, &update_path.child("maxSurge"), surge);
            if workload::amount(unavailable) == 0 && workload::amount(surge) == 0 {
                let detail = "may not be 0 when `maxSurge` is 0";
                errors.push(FieldError::invalid(&path, unavailable.clone(), detail));
            }
            check::at_most_all(errors, &path, unavailable);
        }
        _ => {
            let value = printed::structure(strategy, printed::STRATEGY);
            let detail = "supported values: \"Recreate\", \"RollingUpdate\"";
            let kind = FieldErrorKind::NotSupported;
            errors.push(printed::error(kind, path, &value, detail));
        }
    }
}

fn validate_part(part: &str, new: &Value, old: &Value, errors: &mut Errors) {
    if part != "status" {
        return;
    }
    let counts = [
        "observedGeneration",
        "replicas",
        "updatedReplicas",
        "readyReplicas",
        "availableReplicas",
        "unavailableReplicas",
        "terminatingReplicas",
        "collisionCount",
    ];
    let parts = [
        ("updatedReplicas", "replicas", "status.replicas"),
        ("readyReplicas", "replicas", "status.replicas"),
        ("availableReplicas", "replicas", "status.replicas"),
        ("availableReplicas", "readyReplicas", "readyReplicas"),
    ];
    workload::counts(new, &counts, &parts, errors);
    workload::collisions(new, old, errors);
}

const COLUMNS: &[Column] = &[
    NAME,
    words("Ready", "Pods that are ready, of those wanted."),
    words("Up-to-date", "Pods that have the current template."),
    words("Available", "Pods that have been ready for long enough."),
    AGE,
    CONTAINERS,
    IMAGES,
    SELECTOR,
];

fn row(object: &Value, now: Timestamp) -> Vec<Value> {
    let [names, images] = containers(at(object, &["spec", "template", "spec"]));
    vec![
        name(object),
        fraction(
            int(object, &["status", "readyReplicas"]),
            int(object, &["spec", "replicas"]),
        ),
        number(object, &["status", "updatedReplicas"]),
        number(object, &["status", "availableReplicas"]),
        age(object, now),
        names,
        images,
        selector::format(at(object, &["spec", "selector"])).into(),
    ]
}
