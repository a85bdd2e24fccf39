//! Schemas back in JSON, as a server returns them: known keywords only, without empty ones.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use super::{Additional, Document, Items};
use crate::model::Rule;

impl Document {
    /// The schema in JSON, with every keyword that was read.
    pub fn to_json(&self) -> Value {
        let mut writer = Writer::default();
        self.write_texts(&mut writer);
        self.write_limits(&mut writer);
        self.write_structure(&mut writer);
        self.write_extensions(&mut writer);
        Value::Object(writer.fields)
    }

    fn write_texts(&self, writer: &mut Writer) {
        writer.text("id", &self.id);
        writer.text("$schema", &self.schema);
        writer.set("$ref", self.reference.clone());
        writer.text("description", &self.description);
        writer.text("type", &self.kind);
        writer.text("format", &self.format);
        writer.text("title", &self.title);
        writer.set("default", self.default.clone());
        writer.set("example", self.example.clone());
        writer.set("externalDocs", self.external_docs.clone());
        writer.flag("nullable", self.nullable);
    }

    fn write_limits(&self, writer: &mut Writer) {
        writer.set("maximum", self.maximum.map(number));
        writer.flag("exclusiveMaximum", self.exclusive_maximum);
        writer.set("minimum", self.minimum.map(number));
        writer.flag("exclusiveMinimum", self.exclusive_minimum);
        writer.set("maxLength", self.max_length);
        writer.set("minLength", self.min_length);
        writer.text("pattern", &self.pattern);
        writer.set("maxItems", self.max_items);
        writer.set("minItems", self.min_items);
        writer.flag("uniqueItems", self.unique_items);
        writer.set("multipleOf", self.multiple_of.map(number));
        writer.list("enum", self.enumeration.clone());
        writer.set("maxProperties", self.max_properties);
        writer.set("minProperties", self.min_properties);
        writer.list(
            "required",
            self.required
                .iter()
                .map(|name| name.as_str().into())
                .collect(),
        );
    }

    fn write_structure(&self, writer: &mut Writer) {
        writer.set("items", self.items.as_ref().map(items));
        writer.list("allOf", self.all_of.iter().map(Document::to_json).collect());
        writer.list("oneOf", self.one_of.iter().map(Document::to_json).collect());
        writer.list("anyOf", self.any_of.iter().map(Document::to_json).collect());
        writer.set("not", self.not.as_ref().map(|not| not.to_json()));
        writer.map("properties", &self.properties);
        writer.set(
            "additionalProperties",
            self.additional_properties.as_ref().map(additional),
        );
        writer.map("patternProperties", &self.pattern_properties);
        writer.map("definitions", &self.definitions);
        writer.set(
            "additionalItems",
            self.additional_items.as_ref().map(additional),
        );
        let dependencies = &self.dependencies;
        let dependencies = (!dependencies.is_empty()).then(|| dependencies.clone().into_iter());
        writer.set("dependencies", dependencies.map(Iterator::collect::<Value>));
    }

    fn write_extensions(&self, writer: &mut Writer) {
        writer.set(
            "x-kubernetes-preserve-unknown-fields",
            self.preserve_unknown_fields,
        );
        writer.flag("x-kubernetes-embedded-resource", self.embedded_resource);
        writer.flag("x-kubernetes-int-or-string", self.int_or_string);
        let keys = self
            .list_map_keys
            .iter()
            .map(|key| key.as_str().into())
            .collect();
        writer.list("x-kubernetes-list-map-keys", keys);
        writer.set("x-kubernetes-list-type", self.list_type.clone());
        writer.set("x-kubernetes-map-type", self.map_type.clone());
        writer.list(
            "x-kubernetes-validations",
            self.rules.iter().map(rule).collect(),
        );
    }
}

/// One entry of `x-kubernetes-validations`.
pub(crate) fn rule(rule: &Rule) -> Value {
    let given = |text: &Option<String>| text.clone().filter(|text| !text.is_empty());
    let mut writer = Writer::default();
    writer.set("rule", Some(rule.rule.as_str()));
    writer.set("message", given(&rule.message));
    writer.set("messageExpression", given(&rule.message_expression));
    writer.set("reason", rule.reason.clone());
    writer.set("fieldPath", given(&rule.field_path));
    writer.set("optionalOldSelf", rule.optional_old_self);
    Value::Object(writer.fields)
}

fn items(items: &Items) -> Value {
    match items {
        Items::Schema(schema) => schema.to_json(),
        Items::Positions(positions) => positions.iter().map(Document::to_json).collect(),
    }
}

fn additional(additional: &Additional) -> Value {
    match additional {
        Additional::Allowed(allowed) => Value::Bool(*allowed),
        Additional::Schema(schema) => schema.to_json(),
    }
}

/// A bound, written as an integer where it is one.
pub(crate) fn number(value: f64) -> Value {
    /// Beyond this, floats skip integers.
    const EXACT: f64 = 9_007_199_254_740_992.0;
    if value.fract() == 0.0 && value.abs() < EXACT {
        #[expect(
            clippy::cast_possible_truncation,
            reason = "it is an integer within range"
        )]
        let integer = value as i64;
        return integer.into();
    }
    value.into()
}

#[derive(Default)]
struct Writer {
    fields: Map<String, Value>,
}

impl Writer {
    fn set(&mut self, key: &str, value: Option<impl Into<Value>>) {
        if let Some(value) = value {
            self.fields.insert(key.to_owned(), value.into());
        }
    }

    fn text(&mut self, key: &str, text: &str) {
        self.set(key, (!text.is_empty()).then_some(text));
    }

    fn flag(&mut self, key: &str, flag: bool) {
        self.set(key, flag.then_some(true));
    }

    fn list(&mut self, key: &str, items: Vec<Value>) {
        self.set(key, (!items.is_empty()).then_some(items));
    }

    fn map(&mut self, key: &str, entries: &BTreeMap<String, Document>) {
        let entries = (!entries.is_empty()).then(|| {
            let written = entries
                .iter()
                .map(|(name, entry)| (name.clone(), entry.to_json()));
            written.collect::<Map<_, _>>()
        });
        self.set(key, entries);
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_is_read_is_written() {
        let schema = json!({
            "type": "object", "description": "d", "title": "t", "format": "f", "nullable": true,
            "id": "i", "$schema": "s", "$ref": "r", "default": {"a": 1}, "example": [1],
            "externalDocs": {"url": "u"}, "required": ["a"], "minProperties": 1, "maxProperties": 2,
            "x-kubernetes-preserve-unknown-fields": true, "x-kubernetes-embedded-resource": true,
            "x-kubernetes-map-type": "granular",
            "properties": {
                "a": {"type": "integer", "minimum": 1, "maximum": 9.5, "exclusiveMinimum": true,
                    "exclusiveMaximum": true, "multipleOf": 2, "enum": [2, 4, null]},
                "b": {"type": "array", "items": {"type": "object"}, "minItems": 1, "maxItems": 3,
                    "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["k"],
                    "uniqueItems": true},
                "c": {"type": "string", "minLength": 0, "maxLength": 3, "pattern": "^a"},
                "d": {"x-kubernetes-int-or-string": true, "anyOf": [{"type": "integer"}, {}]},
                "e": {"type": "array", "items": [{}, {"type": "string"}], "additionalItems": false},
                "f": {"additionalProperties": {"type": "boolean"}, "patternProperties": {"x": {}}},
                "g": {"x-kubernetes-list-type": "atomic", "dependencies": {"a": ["b"]},
                    "definitions": {"x": {}}},
            },
            "x-kubernetes-validations": [{"rule": "true", "message": "m", "messageExpression": "'x'",
                "reason": "FieldValueInvalid", "fieldPath": ".a", "optionalOldSelf": false}, {"rule": "x"}],
            "allOf": [{"minProperties": 1}], "oneOf": [{"required": ["a"]}], "not": {"required": ["z"]},
        });
        let (document, unknown) = Document::parse(&schema).unwrap();
        assert_eq!(unknown, [""; 0]);
        assert_eq!(document.to_json(), schema);
    }

    #[test]
    fn what_is_unknown_or_empty_is_left_out() {
        let schema = json!({
            "bogus": 1, "type": "", "required": [], "properties": {}, "nullable": false,
            "items": {"odd": 2, "type": "string"},
        });
        let (document, _) = Document::parse(&schema).unwrap();
        assert_eq!(document.to_json(), json!({"items": {"type": "string"}}));
    }
}
