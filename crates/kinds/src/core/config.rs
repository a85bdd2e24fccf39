//! ConfigMaps and Secrets.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use bellwether_schema::{FieldError, FieldPath};
use jiff::Timestamp;
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use serde_json::Value;

use crate::check::{self, Errors};
use crate::columns::{AGE, NAME, age, cell, name, words};
use crate::value::{Fill, at, entries, flag, object, remove, restore, same, text};
use crate::{Column, FieldSelector, Resource, names};

pub(crate) const CONFIG_MAP: Resource = Resource {
    short_names: &["cm"],
    validate: validate_config_map,
    revalidates: true,
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
    validate: validate_secret,
    revalidates: true,
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

/// What all entries may have together, in bytes.
const DATA_SIZE: usize = 1024 * 1024;
const FIXED: &str = "field is immutable when `immutable` is set";

fn validate_config_map(new: &Value, old: Option<&Value>, errors: &mut Errors) {
    if let Some(old) = old {
        validate_immutable(new, old, &["data", "binaryData"], errors);
    }
    let mut size = 0;
    for (key, value) in entries(new, &["data"]) {
        let path = FieldPath::new("data");
        check::report(errors, &path.key(key), key, names::config_key(key));
        if at(new, &["binaryData"]).get(key).is_some() {
            let detail = "duplicate of key present in binaryData";
            errors.push(FieldError::invalid(&path.key(key), key.as_str(), detail));
        }
        size += value.as_str().map_or(0, str::len);
    }
    for (key, value) in entries(new, &["binaryData"]) {
        let path = FieldPath::new("binaryData");
        check::report(errors, &path.key(key), key, names::config_key(key));
        size += decoded_size(value);
    }
    if size > DATA_SIZE {
        errors.push(FieldError::too_long(&FieldPath::new(""), DATA_SIZE as u64));
    }
}

/// How many bytes a value in Base64 stands for.
fn decoded_size(value: &Value) -> usize {
    let text = value.as_str().unwrap_or_default();
    let padding = text.bytes().rev().take_while(|byte| *byte == b'=').count();
    (text.len() / 4 * 3).saturating_sub(padding)
}

fn validate_immutable(new: &Value, old: &Value, fields: &[&str], errors: &mut Errors) {
    if !flag(old, &["immutable"]) {
        return;
    }
    if !flag(new, &["immutable"]) {
        errors.push(FieldError::forbidden(&FieldPath::new("immutable"), FIXED));
    }
    for field in fields {
        if !same(at(new, &[field]), at(old, &[field])) {
            errors.push(FieldError::forbidden(&FieldPath::new(field), FIXED));
        }
    }
}

fn validate_secret(new: &Value, old: Option<&Value>, errors: &mut Errors) {
    let path = FieldPath::new("data");
    if let Some(old) = old {
        check::immutable(errors, new, old, &["type"], &FieldPath::new("type"));
        validate_immutable(new, old, &["data"], errors);
    }
    let mut size = 0;
    for (key, value) in entries(new, &["data"]) {
        check::report(errors, &path.key(key), key, names::config_key(key));
        size += decoded_size(value);
    }
    if size > DATA_SIZE {
        errors.push(FieldError::too_long(&path, DATA_SIZE as u64));
    }
    validate_secret_type(new, &path, errors);
}

/// Checks that a secret has what its type promises.
fn validate_secret_type(new: &Value, path: &FieldPath<'_>, errors: &mut Errors) {
    let has_key = |key: &str| at(new, &["data"]).get(key).is_some();
    let missing = |errors: &mut Errors, key: &str| {
        errors.push(FieldError::required(&path.key(key), ""));
    };
    match text(new, &["type"]) {
        "kubernetes.io/service-account-token" => {
            let key = "kubernetes.io/service-account.name";
            if text(new, &["metadata", "annotations", key]).is_empty() {
                let path = FieldPath::new("metadata");
                let path = path.child("annotations");
                errors.push(FieldError::required(&path.key(key), ""));
            }
        }
        "kubernetes.io/dockercfg" => validate_json(new, ".dockercfg", path, errors),
        "kubernetes.io/dockerconfigjson" => {
            validate_json(new, ".dockerconfigjson", path, errors);
        }
        "kubernetes.io/basic-auth" if !has_key("username") && !has_key("password") => {
            missing(errors, "username");
            missing(errors, "password");
        }
        "kubernetes.io/ssh-auth" if text(new, &["data", "ssh-privatekey"]).is_empty() => {
            missing(errors, "ssh-privatekey");
        }
        "kubernetes.io/tls" => {
            for key in ["tls.crt", "tls.key"] {
                if !has_key(key) {
                    missing(errors, key);
                }
            }
        }
        _ => {}
    }
}

/// Checks that an entry is a JSON object; what it says is not repeated, for it is secret.
fn validate_json(new: &Value, key: &str, path: &FieldPath<'_>, errors: &mut Errors) {
    let Some(encoded) = at(new, &["data"]).get(key) else {
        errors.push(FieldError::required(&path.key(key), ""));
        return;
    };
    let decoded = BASE64
        .decode(encoded.as_str().unwrap_or_default())
        .unwrap_or_default();
    let problem = match serde_json::from_slice(&decoded) {
        Ok(Value::Object(_) | Value::Null) => return,
        Ok(_) => "json: cannot unmarshal into Go value of type map[string]interface {}".to_owned(),
        Err(_) => match decoded.first() {
            None => "unexpected end of JSON input".to_owned(),
            Some(first) => format!(
                "invalid character '{}' looking for beginning of value",
                char::from(*first)
            ),
        },
    };
    let value = "<secret contents redacted>";
    errors.push(FieldError::invalid(&path.key(key), value, problem));
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
