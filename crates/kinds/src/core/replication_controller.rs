//! ReplicationControllers, which ReplicaSets have replaced.

use jiff::Timestamp;
use k8s_openapi::api::core::v1::ReplicationController;
use serde_json::Value;

use crate::apps::replica_set;
use crate::columns::labels;
use crate::resource::{ALL, SCALE, STATUS};
use crate::value::at;
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
    columns: replica_set::COLUMNS,
    row,
    ..Resource::namespaced::<ReplicationController>(
        "",
        "v1",
        "ReplicationController",
        "replicationcontrollers",
    )
};

fn row(object: &Value, now: Timestamp) -> Vec<Value> {
    let mut cells = replica_set::cells(object, now);
    cells.push(labels(at(object, &["spec", "selector"])));
    cells
}
