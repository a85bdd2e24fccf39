//! The list of object templates that a policy writes as a Go template.

use bellwether_api::policy::ObjectTemplate;
use bellwether_json::yaml::first_from_yaml;
use bellwether_template::World;
use serde_json::Value;

use super::facts::Facts;
use crate::field_names;
use crate::template::{
    Context, Keys, ManagedContext, Question, Request, Resolved, Side, Source, resolve,
};

/// Object templates, or why there are none.
pub(super) struct Expanded {
    pub(super) templates: Vec<ObjectTemplate>,
    /// Whether a template read a Secret or decrypted a text.
    pub(super) is_sensitive: bool,
}

/// Why there are none.
pub(super) struct RawError {
    /// What is reported.
    pub(super) message: String,
    /// Whether the policy itself is wrong, so that evaluating it again is of no use.
    pub(super) is_final: bool,
}

/// Resolves the text.
pub(super) fn expand(
    text: &str,
    keys: Option<&Keys>,
    facts: &Facts,
    world: &World<'_>,
) -> Result<Result<Expanded, RawError>, Vec<Question>> {
    if !Side::Managed.has_template(text) {
        let templates = first_from_yaml(text)
            .map_err(|error| {
                format!(
                    "error converting YAML to JSON: yaml: line {}: {}",
                    error.line, error.message
                )
            })
            .and_then(|value| {
                list(value).map_err(|error| {
                    format!("error unmarshaling JSON: while decoding JSON: {error}")
                })
            });
        return Ok(templates
            .map(|templates| Expanded {
                templates,
                is_sensitive: false,
            })
            .map_err(|error| RawError {
                message: format!("Error parsing object-templates-raw YAML: {error}"),
                is_final: true,
            }));
    }
    let request = Request {
        context: Context::Managed(ManagedContext::default()),
        source: Source::Raw(text.to_owned()),
        restriction: None,
        encrypt: None,
        decrypt: keys.cloned(),
        denied: Vec::new(),
    };
    let done = match resolve(&request, facts, world) {
        Resolved::Needs(questions) => return Err(questions),
        Resolved::Done(done) => done,
    };
    let refused = |message| RawError {
        message,
        is_final: false,
    };
    Ok(done
        .value
        .map_err(|error| refused(error.to_string()))
        .and_then(|value| {
            list(value).map_err(|error| {
                refused(format!(
                    "failed unmarshalling resolved object-templates-raw template: {error}"
                ))
            })
        })
        .map(|templates| Expanded {
            templates,
            is_sensitive: done.is_sensitive,
        }))
}

/// Reads a list of object templates, with errors as Go words them.
fn list(value: Value) -> Result<Vec<ObjectTemplate>, String> {
    let wrong = |kind: &str| {
        format!("json: cannot unmarshal {kind} into Go value of type []*v1.ObjectTemplate")
    };
    let items = match value {
        Value::Null => return Ok(Vec::new()),
        Value::Array(items) => items,
        Value::Object(_) => return Err(wrong("object")),
        Value::String(_) => return Err(wrong("string")),
        Value::Number(_) => return Err(wrong("number")),
        Value::Bool(_) => return Err(wrong("bool")),
    };
    let item = |mut item: Value| match item {
        Value::Object(_) => {
            field_names::rename(&mut item, &field_names::OBJECT_TEMPLATE);
            field_names::complete(&mut item);
            let read = serde_json::from_value(item);
            read.map_err(|error| format!("json: {error}"))
        }
        other => {
            let kind = match other {
                Value::String(_) => "string",
                Value::Number(_) => "number",
                Value::Bool(_) => "bool",
                Value::Array(_) => "array",
                _ => "null",
            };
            Err(format!(
                "json: cannot unmarshal {kind} into Go value of type v1.ObjectTemplate"
            ))
        }
    };
    items.into_iter().map(item).collect()
}
