//! ReplicaSets.

use bellwether_schema::FieldPath;
use jiff::Timestamp;
use k8s_openapi::api::apps::v1::ReplicaSet;
use serde_json::Value;

use crate::apps::workload;
use crate::check::{self, Errors};
use crate::columns::{
    AGE, CONTAINERS, IMAGES, NAME, SELECTOR, age, column, containers, label_selector, name, number,
};
use crate::core::pod;
use crate::resource::{ALL, SCALE, STATUS};
use crate::value::{Fill, at, existing};
use crate::{Column, Generation, Resource};

pub(crate) const RESOURCE: Resource = Resource {
    short_names: &["rs"],
    categories: ALL,
    subresources: &[SCALE, STATUS],
    generation: Generation::Spec,
    default,
    validate,
    validate_part,
    columns: COLUMNS,
    row,
    ..Resource::namespaced::<ReplicaSet>("apps", "v1", "ReplicaSet", "replicasets")
};

fn default(object: &mut Value) {
    if let Some(spec) = existing(object, &["spec"]) {
        spec.fill("replicas", 1);
    }
    pod::template(object, &["spec", "template"]);
}

fn validate(new: &Value, old: Option<&Value>, errors: &mut Errors) {
    let path = FieldPath::new("spec");
    let spec = at(new, &["spec"]);
    check::not_negative(errors, spec, &path, "replicas");
    check::not_negative(errors, spec, &path, "minReadySeconds");
    workload::selector(spec, "deployment", &path, errors);
    let complaint = workload::Complaint::Says("invalid label selector");
    workload::template(spec, complaint, &path, errors);
    workload::keeps_running(spec, "ReplicaSet", &path, errors);
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

/// Checks the status; ReplicationControllers have the same.
pub(crate) fn validate_part(part: &str, new: &Value, _old: &Value, errors: &mut Errors) {
    if part != "status" {
        return;
    }
    let counts = [
        "replicas",
        "fullyLabeledReplicas",
        "readyReplicas",
        "availableReplicas",
        "observedGeneration",
        "terminatingReplicas",
    ];
    let parts = [
        ("fullyLabeledReplicas", "replicas", "status.replicas"),
        ("readyReplicas", "replicas", "status.replicas"),
        ("availableReplicas", "replicas", "status.replicas"),
        ("availableReplicas", "readyReplicas", "readyReplicas"),
    ];
    workload::counts(new, &counts, &parts, errors);
}

/// Columns that ReplicationControllers share.
pub(crate) const COLUMNS: &[Column] = &[
    NAME,
    column("Desired", "integer", "Pods that are wanted."),
    column("Current", "integer", "Pods that exist."),
    column("Ready", "integer", "Pods that are ready."),
    AGE,
    CONTAINERS,
    IMAGES,
    SELECTOR,
];

/// All cells but the selector.
pub(crate) fn cells(object: &Value, now: Timestamp) -> Vec<Value> {
    let [names, images] = containers(at(object, &["spec", "template", "spec"]));
    vec![
        name(object),
        number(object, &["spec", "replicas"]),
        number(object, &["status", "replicas"]),
        number(object, &["status", "readyReplicas"]),
        age(object, now),
        names,
        images,
    ]
}

fn row(object: &Value, now: Timestamp) -> Vec<Value> {
    let mut cells = cells(object, now);
    cells.push(label_selector(at(object, &["spec", "selector"])));
    cells
}
