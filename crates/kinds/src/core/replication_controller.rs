//! ReplicationControllers, which ReplicaSets have replaced.

use bellwether_schema::{FieldError, FieldPath};
use jiff::Timestamp;
use k8s_openapi::api::core::v1::ReplicationController;
use serde_json::Value;

use crate::apps::replica_set;
use crate::apps::workload;
use crate::check::{self, Errors};
use crate::columns::labels;
use crate::core::pod;
use crate::resource::{ALL, SCALE, STATUS};
use crate::value::{Fill, at, existing, is_zero};
use crate::{FieldSelector, Generation, Resource};

pub(crate) const RESOURCE: Resource = Resource {
    short_names: &["rc"],
    categories: ALL,
    subresources: &[SCALE, STATUS],
    orphans_dependents: true,
    generation: Generation::Spec,
    field_selectors: &[FieldSelector {
        label: "status.replicas",
        paths: &[&["status", "replicas"]],
        absent: "0",
    }],
    default,
    validate,
    validate_part: replica_set::validate_part,
    columns: replica_set::COLUMNS,
    row,
    ..Resource::namespaced::<ReplicationController>(
        "",
        "v1",
        "ReplicationController",
        "replicationcontrollers",
    )
};

fn default(object: &mut Value) {
    let labels = at(object, &["spec", "template", "metadata", "labels"]).clone();
    if let Some(spec) = existing(object, &["spec"]) {
        spec.fill("replicas", 1);
        if !is_zero(&labels) {
            spec.fill_zero("selector", labels.clone());
        }
    }
    if !is_zero(&labels)
        && let Some(metadata) = existing(object, &["metadata"])
    {
        metadata.fill_zero("labels", labels);
    }
    pod::template(object, &["spec", "template"]);
}

fn validate(new: &Value, _old: Option<&Value>, errors: &mut Errors) {
    let path = FieldPath::new("spec");
    let spec = at(new, &["spec"]);
    check::not_negative(errors, spec, &path, "minReadySeconds");
    let selector = at(spec, &["selector"]);
    if is_zero(selector) {
        errors.push(FieldError::required(&path.child("selector"), ""));
    }
    check::not_negative(errors, spec, &path, "replicas");
    let template = at(spec, &["template"]);
    let template_path = path.child("template");
    if template.is_null() {
        errors.push(FieldError::required(&template_path, ""));
        return;
    }
    let labels = at(template, &["metadata", "labels"]);
    let selected = selector.as_object().into_iter().flatten();
    if !selected
        .into_iter()
        .all(|(key, value)| labels.get(key) == Some(value))
    {
        let path = template_path.child("metadata");
        let path = path.child("labels");
        errors.push(FieldError::invalid(
            &path,
            labels.clone(),
            workload::NO_MATCH,
        ));
    }
    pod::validate_template(template, &template_path, errors);
    workload::keeps_running(spec, "ReplicationController", &path, errors);
}

fn row(object: &Value, now: Timestamp) -> Vec<Value> {
    let mut cells = replica_set::cells(object, now);
    cells.push(labels(at(object, &["spec", "selector"])));
    cells
}
