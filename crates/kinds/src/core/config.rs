//! ConfigMaps and Secrets.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use jiff::Timestamp;
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use serde_json::Value;

use crate::columns::{AGE, NAME, age, cell, name, words};
use crate::value::{Fill, entries, object, remove, restore, text};
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
    default: default_secret,
    prepare_update: prepare_secret_update,
    columns: SECRET_COLUMNS,
    row: secret_row,
    ..Resource::namespaced::<Secret>("", "v1", "Secret", "secrets")
};

fn default_secret(object: &mut Value) {
    let plain = remove(object, &[], "stringData");
    let Some(fields) = object.as_object_mut() else {
        return;
    };
    fields.fill_zero("type", "Opaque");
    let Some(Value::Object(plain)) = plain else {
        return;
    };
    if plain.is_empty() {
        return;
    }
    if let Some(data) = self::object(object, &["data"]) {
        for (key, value) in plain {
            let encoded = BASE64.encode(value.as_str().unwrap_or_default());
            data.insert(key, encoded.into());
        }
    }
}

/// An update that says no type keeps the one there is.
fn prepare_secret_update(new: &mut Value, old: &Value) {
    if text(new, &["type"]).is_empty() {
        restore(new, old, "type");
    }
}

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
