//! From the schema that is derived from a type to the structural one that a definition wants.
//!
//! [`root`] does it for a whole object. The other functions are for attributes of fields: they add
//! what a type cannot say.

use schemars::generate::SchemaSettings;
use schemars::transform::transform_subschemas;
use schemars::{JsonSchema, Schema};
use serde_json::{Map, Value, json};

/// Defaults set by the server are part of the interface, and declared with [`filled_with`]. They are kept apart
/// from what Rust takes for an absent field, which is nobody else's business.
const FILLED_WITH: &str = "x-bellwether-filled-with";

/// The schema of objects of a type.
pub(crate) fn root<K: JsonSchema>() -> Value {
    let settings = SchemaSettings::draft2020_12().with(|settings| {
        settings.inline_subschemas = true;
        settings.meta_schema = None;
    });
    let mut schema = settings.into_generator().into_root_schema_for::<K>();
    schema.remove("title");
    simplify(&mut schema);
    let properties = schema
        .ensure_object()
        .entry("properties")
        .or_insert_with(|| json!({}));
    properties["apiVersion"] = json!({
        "type": "string",
        "description": "Group and version that the object is written in.",
    });
    properties["kind"] = json!({
        "type": "string",
        "description": "Kind of the object.",
    });
    properties["metadata"] = json!({"type": "object"});
    schema.to_value()
}

/// A schema of whole objects that looks into nothing but its top level.
pub(crate) fn opened(schema: &Value) -> Value {
    let mut opened = schema.clone();
    for part in ["spec", "status"] {
        if let Some(part) = opened["properties"].get_mut(part) {
            *part = json!({
                "type": "object",
                "description": part["description"],
                "x-kubernetes-preserve-unknown-fields": true,
            });
        }
    }
    opened
}

/// Says the same in the words of a structural schema, here and in all subschemas.
fn simplify(schema: &mut Schema) {
    if let Some(keywords) = schema.as_object_mut() {
        forbid_null(keywords);
        keywords.remove("default");
        if let Some(value) = keywords.remove(FILLED_WITH) {
            keywords.insert("default".into(), value);
        }
        if let Some(Value::String(description)) = keywords.get_mut("description") {
            *description = unwrap_lines(description);
        }
    }
    transform_subschemas(&mut simplify, schema);
}

/// An optional field may be left out, but it is never null: servers drop nulls.
fn forbid_null(keywords: &mut Map<String, Value>) {
    let is_null = |alternative: &Value| alternative["type"] == "null";
    if let Some(Value::Array(alternatives)) = keywords.get_mut("anyOf")
        && alternatives.iter().any(is_null)
    {
        alternatives.retain(|alternative| !is_null(alternative));
        if let [Value::Object(only)] = alternatives.as_mut_slice() {
            let only = std::mem::take(only);
            keywords.remove("anyOf");
            for (keyword, value) in only {
                keywords.entry(keyword).or_insert(value);
            }
        }
    }
    if let Some(Value::Array(types)) = keywords.get_mut("type") {
        types.retain(|kind| kind != "null");
        if let [only] = types.as_mut_slice() {
            let only = only.take();
            keywords.insert("type".into(), only);
        }
    }
    if let Some(Value::Array(values)) = keywords.get_mut("enum") {
        values.retain(|value| !value.is_null());
    }
}

/// Paragraphs stay apart, but lines within one are joined: readers break them as they like.
fn unwrap_lines(text: &str) -> String {
    let paragraphs = text.split("\n\n").map(|paragraph| {
        let lines: Vec<&str> = paragraph.lines().map(str::trim).collect();
        lines.join(" ")
    });
    paragraphs.collect::<Vec<_>>().join("\n\n")
}

/// Default set by the server if the field is absent.
pub(crate) fn filled_with(value: impl Into<Value>) -> impl Fn(&mut Schema) {
    let value = value.into();
    move |schema| {
        schema.insert(FILLED_WITH.into(), value.clone());
    }
}

/// A list whose items are identified by a field.
pub(crate) fn keyed_by(key: &'static str) -> impl Fn(&mut Schema) {
    move |schema| key_list(schema, &[key])
}

/// A list whose items are identified by two fields.
pub(crate) fn keyed_by_both(first: &'static str, second: &'static str) -> impl Fn(&mut Schema) {
    move |schema| key_list(schema, &[first, second])
}

fn key_list(schema: &mut Schema, keys: &[&str]) {
    schema.insert("x-kubernetes-list-type".into(), "map".into());
    schema.insert("x-kubernetes-list-map-keys".into(), json!(keys));
}

/// A rule in CEL that every value has to keep.
pub(crate) fn rule(rule: impl Into<String>, message: impl Into<String>) -> impl Fn(&mut Schema) {
    let (rule, message) = (rule.into(), message.into());
    move |schema| {
        let rules = schema.ensure_object().entry("x-kubernetes-validations");
        if let Value::Array(rules) = rules.or_insert_with(|| json!([])) {
            rules.push(json!({"rule": rule, "message": message}));
        }
    }
}

/// Fields beyond those of the schema are kept: newer agents report more.
pub(crate) fn open(schema: &mut Schema) {
    schema.insert("x-kubernetes-preserve-unknown-fields".into(), true.into());
}

/// Null is a value of its own, for peers that write it.
pub(crate) fn nullable(schema: &mut Schema) {
    schema.insert("nullable".into(), true.into());
}

#[cfg(test)]
mod tests;
