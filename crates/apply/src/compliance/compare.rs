//! Compares a whole object with its definition, key by key.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Value, json};

use super::equivalent::{equivalent, sprint, type_name};
use super::merge::Merge;
use super::{Duty, Rule};

/// The annotation in which kubectl keeps what it applied last. It takes no part.
const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";

/// Annotations of namespaces that OpenShift sets, and that stay.
const SCC: &str = "openshift.io/sa.scc.";

/// What a comparison of an object found.
#[derive(Debug, Clone, PartialEq)]
pub struct Comparison {
    /// The live object with the definition merged in.
    pub merged: Value,
    /// Whether it has to be updated.
    pub needs_update: bool,
    /// Whether the status is not as defined. An update does not change it.
    pub is_status_wrong: bool,
    /// Whether zero values are involved, so that only a server can decide.
    pub is_missing: bool,
}

impl Comparison {
    /// Returns true if the object is as defined, without asking a server.
    pub fn complies(&self) -> bool {
        !self.needs_update && !self.is_missing && !self.is_status_wrong
    }
}

/// Removes what servers keep for themselves, and what changes without a meaning.
pub fn strip(object: &mut Value) {
    let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) else {
        return;
    };
    metadata.remove("managedFields");
    metadata.remove("generation");
    let is_empty = match metadata.get_mut("annotations") {
        Some(Value::Object(annotations)) => {
            annotations.remove(LAST_APPLIED);
            annotations.is_empty()
        }
        _ => false,
    };
    if is_empty {
        metadata.remove("annotations");
    }
}

/// Compares a live object with its definition. The error is a text for people.
pub fn compare(desired: &Value, live: &Value, rule: Rule) -> Result<Comparison, String> {
    let mut stripped = live.clone();
    strip(&mut stripped);
    let mut comparison = Comparison {
        merged: live.clone(),
        needs_update: false,
        is_status_wrong: false,
        is_missing: false,
    };
    let fields = desired.as_object();
    for key in fields.into_iter().flatten().map(|(key, _)| key) {
        let of_key = match rule.metadata {
            Some(metadata) if key == "metadata" => metadata,
            _ => rule.duty,
        };
        let Some(found) = compare_key(key, desired, &stripped, of_key, false)? else {
            continue;
        };
        comparison.is_missing |= found.is_missing;
        if found.needs_update && key == "status" {
            comparison.is_status_wrong = true;
        } else {
            comparison.needs_update |= found.needs_update;
        }
        if key == "metadata" {
            set_metadata(&mut comparison.merged, &found.merged)?;
        } else {
            comparison.merged[key] = found.merged;
        }
    }
    if rule.duty == Duty::MustOnlyHave {
        comparison.needs_update |= remove_others(&mut comparison.merged, desired);
    }
    Ok(comparison)
}

/// Whether an unnamed definition is about this object. No server is asked, so zero values are absent.
pub fn matches(desired: &Value, live: &Value, duty: Duty) -> bool {
    let keys = desired.as_object().into_iter().flatten();
    keys.map(|(key, _)| key)
        .all(|key| match compare_key(key, desired, live, duty, true) {
            Ok(found) => found.is_none_or(|found| !found.needs_update),
            Err(_) => false,
        })
}

/// What a comparison of one key found.
struct KeyComparison {
    merged: Value,
    needs_update: bool,
    is_missing: bool,
}

/// Compares one key; nothing for those that take no part.
fn compare_key(
    key: &str,
    desired: &Value,
    live: &Value,
    duty: Duty,
    zero_is_absent: bool,
) -> Result<Option<KeyComparison>, String> {
    if matches!(key, "apiVersion" | "kind") {
        return Ok(None);
    }
    let merge = Merge {
        is_only: duty == Duty::MustOnlyHave,
        zero_is_absent,
    };
    let template = match key {
        "metadata" => labels_and_annotations(&desired[key]),
        _ => desired[key].clone(),
    };
    let live_value = live.get(key);
    let mut is_missing = live_value.is_none();
    let wrong_type = || {
        format!(
            "Error merging changes into key \"{key}\": object type of template and existing do not match"
        )
    };
    let mut merged = match (&template, live_value) {
        (Value::Array(template), Some(Value::Array(live))) => {
            let found = merge.lists(template, live);
            is_missing |= found.is_missing;
            found.value
        }
        (Value::Object(template), Some(Value::Object(live))) => {
            let found = merge.maps(template, live);
            is_missing |= found.is_missing;
            found.value
        }
        (Value::Array(_) | Value::Object(_), Some(live)) if !live.is_null() => {
            return Err(wrong_type());
        }
        _ => template,
    };
    let mut compared = live_value.cloned().unwrap_or_default();
    if key == "metadata" {
        let is_namespace = desired["apiVersion"] == "v1" && desired["kind"] == "Namespace";
        (merged, compared) = metadata_for_comparison(&merged, &compared, is_namespace);
    }
    if key == "stringData" && live["kind"] == "Secret" {
        compared = decoded_data(live)?;
    }
    let found = equivalent(&merged, &compared, zero_is_absent);
    Ok(Some(KeyComparison {
        merged,
        needs_update: !found.is_equal,
        is_missing: is_missing || found.is_missing,
    }))
}

/// The part of metadata that definitions speak of.
fn labels_and_annotations(metadata: &Value) -> Value {
    let mut part = Map::new();
    if let Some(labels) = metadata.get("labels") {
        part.insert("labels".to_owned(), labels.clone());
    }
    if let Some(annotations) = metadata.get("annotations") {
        part.insert("annotations".to_owned(), own_annotations(annotations));
    }
    Value::Object(part)
}

fn own_annotations(annotations: &Value) -> Value {
    let mut annotations = annotations.clone();
    if let Some(annotations) = annotations.as_object_mut() {
        annotations.remove(LAST_APPLIED);
    }
    annotations
}

/// What of merged and live metadata is compared: what the merged one has.
fn metadata_for_comparison(merged: &Value, live: &Value, is_namespace: bool) -> (Value, Value) {
    let (mut left, mut right) = (Map::new(), Map::new());
    for key in ["labels", "annotations"] {
        let Some(value) = merged.get(key) else {
            continue;
        };
        left.insert(key.to_owned(), own_annotations(value));
        if let Some(live) = live.get(key) {
            right.insert(key.to_owned(), own_annotations(live));
        }
    }
    if is_namespace
        && let Some(Value::Object(live)) = right.get("annotations")
        && let Some(Value::Object(merged)) = left.get_mut("annotations")
    {
        let kept = live.iter().filter(|(key, _)| key.starts_with(SCC));
        for (key, value) in kept {
            merged.entry(key).or_insert_with(|| value.clone());
        }
    }
    (Value::Object(left), Value::Object(right))
}

/// Sets labels and annotations of an object; those that are not defined stay as they are.
fn set_metadata(object: &mut Value, metadata: &Value) -> Result<(), String> {
    for (key, what) in [("annotations", "annotation"), ("labels", "label")] {
        let strings = match metadata.get(key) {
            None => continue,
            Some(Value::Object(strings)) => {
                if let Some((key, value)) = strings.iter().find(|(_, value)| !value.is_string()) {
                    return Err(format!(
                        "invalid {what}, error: contains non-string value in the map under key {key:?}: {} is of the type {}, expected string",
                        sprint(value),
                        type_name(value)
                    ));
                }
                strings.clone()
            }
            Some(other) => {
                return Err(format!(
                    "invalid {what}, error: {} is of the type {}, expected map[string]interface{{}}",
                    sprint(other),
                    type_name(other)
                ));
            }
        };
        if let Some(target) = object.get_mut("metadata").and_then(Value::as_object_mut) {
            target.insert(key.to_owned(), Value::Object(strings));
        }
    }
    Ok(())
}

/// Removes keys that a definition does not have, and tells whether there were any.
fn remove_others(object: &mut Value, desired: &Value) -> bool {
    let is_service_account = object["apiVersion"] == "v1" && object["kind"] == "ServiceAccount";
    let Some(fields) = object.as_object_mut() else {
        return false;
    };
    let before = fields.len();
    fields.retain(|key, _| {
        let is_kept = matches!(key.as_str(), "metadata" | "status" | "apiVersion" | "kind");
        // These Kubernetes manages itself.
        let is_managed =
            is_service_account && matches!(key.as_str(), "secrets" | "imagePullSecrets");
        is_kept || is_managed || desired.get(key).is_some()
    });
    fields.len() < before
}

/// The data of a Secret as texts.
fn decoded_data(secret: &Value) -> Result<Value, String> {
    let mut decoded = Map::new();
    let Some(data) = secret.get("data") else {
        return Ok(Value::Object(decoded));
    };
    let Some(data) = data.as_object() else {
        return Err("Error accessing encoded data".to_owned());
    };
    for (key, value) in data {
        let Some(text) = value.as_str() else {
            return Err("Error accessing encoded data".to_owned());
        };
        let Ok(bytes) = STANDARD.decode(text) else {
            let name = secret["metadata"]["name"].as_str().unwrap_or_default();
            return Err(format!("Error decoding secret: {name}"));
        };
        let text = String::from_utf8_lossy(&bytes);
        decoded.insert(key.clone(), json!(text));
    }
    Ok(Value::Object(decoded))
}
