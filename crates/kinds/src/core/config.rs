//! ConfigMaps and Secrets.

use jiff::Timestamp;
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use serde_json::Value;

use crate::columns::{AGE, NAME, age, cell, name, words};
use crate::value::entries;
use crate::{Column, FieldSelector, Resource};

pub(crate) const CONFIG_MAP: Resource = Resource {
    short_names: &["cm"],
    columns: &[NAME, words("Data", "Number of entries."), AGE],
    row: config_map_row,
    ..Resource::namespaced::<ConfigMap>("", "v1", "ConfigMap", "configmaps")
};

pub(crate) const SECRET: Resource = Resource {
    field_selectors: &[FieldSelector {
        label: "type",
        paths: &[&["type"]],
        absent: "",
    }],
    columns: SECRET_COLUMNS,
    row: secret_row,
    ..Resource::namespaced::<Secret>("", "v1", "Secret", "secrets")
};

fn config_map_row(object: &Value, now: Timestamp) -> Vec<Value> {
    let count = entries(object, &["data"]).count() + entries(object, &["binaryData"]).count();
    vec![name(object), count.into(), age(object, now)]
}

const SECRET_COLUMNS: &[Column] = &[
    NAME,
    words("Type", "What the secret is for."),
    words("Data", "Number of entries."),
    AGE,
];

fn secret_row(object: &Value, now: Timestamp) -> Vec<Value> {
    vec![
        name(object),
        cell(object, &["type"]),
        entries(object, &["data"]).count().into(),
        age(object, now),
    ]
}
