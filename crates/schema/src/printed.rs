//! Schemas and rules as Go prints its internal structs: all fields, by their Go names, in their order.
//!
//! A few errors about CustomResourceDefinitions repeat the offending part in this form.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::document::{Additional, Document, Items};
use crate::model::Rule;
use crate::text;

/// One rule.
pub(crate) fn rule(rule: &Rule) -> String {
    let optional =
        |text: Option<&String>| text.map_or_else(|| "null".to_owned(), |text| string(text));
    let plain = |text: Option<&String>| string(text.map_or("", String::as_str));
    let flag = rule
        .optional_old_self
        .map_or("null", |flag| if flag { "true" } else { "false" });
    structure(&[
        ("Rule", string(&rule.rule)),
        ("Message", plain(rule.message.as_ref())),
        ("MessageExpression", plain(rule.message_expression.as_ref())),
        ("Reason", optional(rule.reason.as_ref())),
        ("FieldPath", plain(rule.field_path.as_ref())),
        ("OptionalOldSelf", flag.to_owned()),
    ])
}

/// One schema.
pub(crate) fn document(schema: &Document) -> String {
    let float = |number: Option<f64>| number.map_or_else(null, |number| text::json(&number.into()));
    let count = |number: Option<i64>| number.map_or_else(null, |number| number.to_string());
    let raw = |value: Option<&Value>| value.map_or_else(null, text::json);
    let optional = |text: Option<&String>| text.map_or_else(null, |text| string(text));
    let mut fields = vec![
        ("ID", string(&schema.id)),
        ("Schema", string(&schema.schema)),
        ("Ref", optional(schema.reference.as_ref())),
        ("Description", string(&schema.description)),
        ("Type", string(&schema.kind)),
        ("Nullable", schema.nullable.to_string()),
        ("Format", string(&schema.format)),
        ("Title", string(&schema.title)),
        ("Default", raw(schema.default.as_ref())),
        ("Maximum", float(schema.maximum)),
        ("ExclusiveMaximum", schema.exclusive_maximum.to_string()),
        ("Minimum", float(schema.minimum)),
        ("ExclusiveMinimum", schema.exclusive_minimum.to_string()),
        ("MaxLength", count(schema.max_length)),
        ("MinLength", count(schema.min_length)),
        ("Pattern", string(&schema.pattern)),
        ("MaxItems", count(schema.max_items)),
        ("MinItems", count(schema.min_items)),
        ("UniqueItems", schema.unique_items.to_string()),
        ("MultipleOf", float(schema.multiple_of)),
        ("Enum", list(&schema.enumeration, text::json)),
        ("MaxProperties", count(schema.max_properties)),
        ("MinProperties", count(schema.min_properties)),
        ("Required", list(&schema.required, |name| string(name))),
    ];
    fields.extend(structure_fields(schema));
    structure(&fields)
}

/// The fields behind those that restrict single values.
fn structure_fields(schema: &Document) -> Vec<(&'static str, String)> {
    let raw = |value: Option<&Value>| value.map_or_else(null, text::json);
    let optional = |text: Option<&String>| text.map_or_else(null, |text| string(text));
    vec![
        ("Items", schema.items.as_ref().map_or_else(null, items)),
        ("AllOf", list(&schema.all_of, document)),
        ("OneOf", list(&schema.one_of, document)),
        ("AnyOf", list(&schema.any_of, document)),
        ("Not", schema.not.as_deref().map_or_else(null, document)),
        ("Properties", map(&schema.properties)),
        (
            "AdditionalProperties",
            schema
                .additional_properties
                .as_ref()
                .map_or_else(null, additional),
        ),
        ("PatternProperties", map(&schema.pattern_properties)),
        ("Dependencies", null()),
        (
            "AdditionalItems",
            schema
                .additional_items
                .as_ref()
                .map_or_else(null, additional),
        ),
        ("Definitions", map(&schema.definitions)),
        ("ExternalDocs", raw(schema.external_docs.as_ref())),
        ("Example", raw(schema.example.as_ref())),
        (
            "XPreserveUnknownFields",
            schema
                .preserve_unknown_fields
                .map_or_else(null, |flag| flag.to_string()),
        ),
        ("XEmbeddedResource", schema.embedded_resource.to_string()),
        ("XIntOrString", schema.int_or_string.to_string()),
        (
            "XListMapKeys",
            list(&schema.list_map_keys, |name| string(name)),
        ),
        ("XListType", optional(schema.list_type.as_ref())),
        ("XMapType", optional(schema.map_type.as_ref())),
        ("XValidations", list(&schema.rules, rule)),
    ]
}

/// The value of `items`.
pub(crate) fn items(items: &Items) -> String {
    match items {
        Items::Schema(schema) => {
            structure(&[("Schema", document(schema)), ("JSONSchemas", null())])
        }
        Items::Positions(positions) => structure(&[
            ("Schema", null()),
            ("JSONSchemas", list(positions, document)),
        ]),
    }
}

fn additional(additional: &Additional) -> String {
    match additional {
        Additional::Allowed(allowed) => {
            structure(&[("Allows", allowed.to_string()), ("Schema", null())])
        }
        Additional::Schema(schema) => {
            structure(&[("Allows", "true".to_owned()), ("Schema", document(schema))])
        }
    }
}

fn null() -> String {
    "null".to_owned()
}

fn string(value: &str) -> String {
    text::json(&Value::from(value))
}

fn structure(fields: &[(&str, String)]) -> String {
    let fields: Vec<_> = fields
        .iter()
        .map(|(name, value)| format!("\"{name}\":{value}"))
        .collect();
    format!("{{{}}}", fields.join(","))
}

/// Go prints a list that was never made as null.
fn list<T>(items: &[T], print: impl Fn(&T) -> String) -> String {
    if items.is_empty() {
        return null();
    }
    format!(
        "[{}]",
        items.iter().map(print).collect::<Vec<_>>().join(",")
    )
}

fn map(entries: &BTreeMap<String, Document>) -> String {
    if entries.is_empty() {
        return null();
    }
    let entries: Vec<_> = entries
        .iter()
        .map(|(name, entry)| format!("{}:{}", string(name), document(entry)))
        .collect();
    format!("{{{}}}", entries.join(","))
}
