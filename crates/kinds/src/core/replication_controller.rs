//! ReplicationControllers, which ReplicaSets have replaced.

use jiff::Timestamp;
use k8s_openapi::api::core::v1::ReplicationController;
use serde_json::Value;

use crate::apps::replica_set;
use crate::columns::labels;
use crate::core::pod;
use crate::resource::{ALL, SCALE, STATUS};
use crate::value::{Fill, at, existing, is_zero};
use crate::{FieldSelector, Generation, Resource};

pub(crate) const RESOURCE: Resource = Resource {
    short_names: &["rc"],
    categories: ALL,
    subresources: &[SCALE, STATUS],
    generation: Generation::Spec,
    field_selectors: &[FieldSelector {
        label: "status.replicas",
        paths: &[&["status", "replicas"]],
        absent: "0",
    }],
    default,
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

fn row(object: &Value, now: Timestamp) -> Vec<Value> {
    let mut cells = replica_set::cells(object, now);
    cells.push(labels(at(object, &["spec", "selector"])));
    cells
}
