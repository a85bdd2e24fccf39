//! The `scheduling.k8s.io` and `node.k8s.io` groups: PriorityClasses and RuntimeClasses.

use jiff::Timestamp;
use k8s_openapi::api::node::v1::RuntimeClass;
use k8s_openapi::api::scheduling::v1::PriorityClass;
use serde_json::Value;

use crate::columns::{AGE, NAME, age, cell, column, name, number, wide, words};
use crate::value::{Fill, flag};
use crate::{Column, Generation, Resource};

pub(crate) const PRIORITY_CLASS: Resource = Resource {
    short_names: &["pc"],
    generation: Generation::Constant,
    default: default_priority,
    columns: PRIORITY_COLUMNS,
    row: priority_row,
    ..Resource::cluster::<PriorityClass>(
        "scheduling.k8s.io",
        "v1",
        "PriorityClass",
        "priorityclasses",
    )
};

pub(crate) const RUNTIME_CLASS: Resource = Resource {
    unconditional_update: false,
    create_on_update: true,
    columns: &[NAME, words("Handler", "The runtime that is meant."), AGE],
    row: runtime_row,
    ..Resource::cluster::<RuntimeClass>("node.k8s.io", "v1", "RuntimeClass", "runtimeclasses")
};

fn default_priority(object: &mut Value) {
    if let Some(class) = object.as_object_mut() {
        class.fill("preemptionPolicy", "PreemptLowerPriority");
    }
}

const PRIORITY_COLUMNS: &[Column] = &[
    NAME,
    column("Value", "integer", "The higher, the more important."),
    column(
        "Global-Default",
        "boolean",
        "Whether pods without a class get it.",
    ),
    AGE,
    wide("PreemptionPolicy", "Whether its pods may push others out."),
];

fn priority_row(object: &Value, now: Timestamp) -> Vec<Value> {
    vec![
        name(object),
        number(object, &["value"]),
        flag(object, &["globalDefault"]).into(),
        age(object, now),
        cell(object, &["preemptionPolicy"]),
    ]
}

fn runtime_row(object: &Value, now: Timestamp) -> Vec<Value> {
    vec![name(object), cell(object, &["handler"]), age(object, now)]
}
