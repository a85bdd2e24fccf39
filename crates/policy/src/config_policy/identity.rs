//! What a definition says about itself: apiVersion, kind, name and namespace.

use serde_json::Value;

use super::desired::Stop;
use super::{Finding, reason};

/// What a definition says about itself before its templates are resolved.
pub(super) struct Identity<'d> {
    pub(super) api_version: &'d str,
    pub(super) kind: &'d str,
    pub(super) name: &'d str,
    pub(super) namespace: &'d str,
}

/// Reads apiVersion, kind, name and namespace, which have to be texts.
pub(super) fn identity(definition: &Value) -> Result<Identity<'_>, Stop> {
    let metadata = &definition["metadata"];
    let stop = |error: String| {
        let message = "Error parsing the namespace from the object definition".to_owned();
        let finding = Finding::with_message(false, reason::DECODE_ERROR, message);
        Stop::found(finding, None, Some(error))
    };
    // A definition that is null or absent is no text at all in Go.
    if definition.is_null() {
        return Err(stop("unexpected end of JSON input".to_owned()));
    }
    let wrong = |field: &str, value: &Value| {
        let kind = match value {
            Value::Null => "null",
            Value::Bool(_) => "bool",
            Value::Number(_) => "number",
            Value::String(_) => "string",
            Value::Array(_) => "array",
            Value::Object(_) => "object",
        };
        stop(format!(
            "json: cannot unmarshal {kind} into Go struct field minimumMetadata.{field} of type string"
        ))
    };
    if !(metadata.is_null() || metadata.is_object()) {
        return Err(wrong("metadata", metadata));
    }
    for (field, value) in [
        ("apiVersion", &definition["apiVersion"]),
        ("kind", &definition["kind"]),
        ("metadata.name", &metadata["name"]),
        ("metadata.namespace", &metadata["namespace"]),
    ] {
        if !(value.is_null() || value.is_string()) {
            return Err(wrong(field, value));
        }
    }
    Ok(Identity {
        api_version: definition["apiVersion"].as_str().unwrap_or_default(),
        kind: definition["kind"].as_str().unwrap_or_default(),
        name: metadata["name"].as_str().unwrap_or_default(),
        namespace: metadata["namespace"].as_str().unwrap_or_default(),
    })
}

/// The version of an apiVersion, without the group.
pub(super) fn version(api_version: &str) -> &str {
    api_version
        .split_once('/')
        .map_or(api_version, |(_, version)| version)
}
