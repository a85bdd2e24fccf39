//! From an OpenAPI v3 schema in JSON to the [`Schema`] tree.

use std::sync::Arc;

use serde_json::Value;

use crate::decode::DecodeError;
use crate::document::{Additional, Document};
use crate::model::{Limits, ListType, Logic, MapType, Schema, Type};

/// Reads `openAPIV3Schema` of a CustomResourceDefinition.
///
/// Unknown keywords are dropped. Whether the schema may be used is another question; see
/// [`crate::definition::check`].
pub fn parse(json: &Value) -> Result<Schema, DecodeError> {
    let (document, _) = Document::parse(json)?;
    Ok(document.to_schema())
}

impl Document {
    /// The tree that requests are served with. What a structural schema cannot contain (`$ref`,
    /// `definitions`, a list of item schemas...) is left out.
    pub fn to_schema(&self) -> Schema {
        let text = |text: &String| (!text.is_empty()).then(|| text.clone());
        Schema {
            kind: Type::parse(&self.kind),
            description: (!self.description.is_empty()).then(|| self.description.as_str().into()),
            format: text(&self.format),
            title: text(&self.title),
            nullable: self.nullable,
            default: self.default.clone(),
            properties: self
                .properties
                .iter()
                .map(|(name, property)| (name.clone(), Arc::new(property.to_schema())))
                .collect(),
            additional_properties: self.additional_properties.as_ref().map(|additional| {
                Arc::new(match additional {
                    Additional::Allowed(_) => Schema::default(),
                    Additional::Schema(schema) => schema.to_schema(),
                })
            }),
            closed: self.additional_properties == Some(Additional::Allowed(false)),
            required: self.required.clone(),
            items: self.item_schema().map(|items| Arc::new(items.to_schema())),
            limits: self.limits(),
            logic: Logic {
                all_of: self.all_of.iter().map(Document::to_schema).collect(),
                any_of: self.any_of.iter().map(Document::to_schema).collect(),
                one_of: self.one_of.iter().map(Document::to_schema).collect(),
                not: self.not.as_ref().map(|not| Box::new(not.to_schema())),
            },
            rules: self.rules.clone(),
            preserve_unknown_fields: self.preserve_unknown_fields == Some(true),
            embedded_resource: self.embedded_resource,
            int_or_string: self.int_or_string,
            list_type: match self.list_type.as_deref() {
                Some("set") => ListType::Set,
                Some("map") => ListType::Map(self.list_map_keys.clone()),
                _ => ListType::Atomic,
            },
            map_type: match self.map_type.as_deref() {
                Some("atomic") => MapType::Atomic,
                _ => MapType::Granular,
            },
            patch: None,
            type_name: None,
        }
    }

    fn limits(&self) -> Limits {
        // A negative count restricts like zero.
        let count = |count: Option<i64>| count.map(|count| u64::try_from(count).unwrap_or(0));
        Limits {
            minimum: self.minimum,
            exclusive_minimum: self.exclusive_minimum,
            maximum: self.maximum,
            exclusive_maximum: self.exclusive_maximum,
            multiple_of: self.multiple_of,
            min_length: count(self.min_length),
            max_length: count(self.max_length),
            pattern: (!self.pattern.is_empty()).then(|| self.pattern.clone()),
            min_items: count(self.min_items),
            max_items: count(self.max_items),
            unique_items: self.unique_items,
            min_properties: count(self.min_properties),
            max_properties: count(self.max_properties),
            one_of_values: self.enumeration.clone(),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn every_keyword_is_read() {
        let schema = parse(&json!({
            "type": "object", "description": "d", "title": "t", "format": "f", "nullable": true,
            "default": {"a": 1}, "required": ["a"], "minProperties": 1, "maxProperties": 2,
            "x-kubernetes-preserve-unknown-fields": true, "x-kubernetes-embedded-resource": true,
            "x-kubernetes-map-type": "atomic",
            "properties": {
                "a": {"type": "integer", "minimum": 1, "maximum": 9.5, "exclusiveMinimum": true,
                      "exclusiveMaximum": true, "multipleOf": 2, "enum": [2, 4, null]},
                "b": {"type": "array", "items": {"type": "object"}, "minItems": 1, "maxItems": 3,
                      "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["k"],
                      "uniqueItems": true},
                "c": {"type": "string", "minLength": 1, "maxLength": 3, "pattern": "^a"},
                "d": {"x-kubernetes-int-or-string": true, "anyOf": [{"type": "integer"}]},
                "e": {"type": "object", "additionalProperties": {"type": "boolean"}},
                "f": {"type": "object", "additionalProperties": true},
                "g": {"type": "object", "additionalProperties": false},
            },
            "x-kubernetes-validations": [
                {"rule": "true", "message": "m", "messageExpression": "'x'", "reason": "FieldValueInvalid",
                 "fieldPath": ".a", "optionalOldSelf": true}
            ],
            "allOf": [{"minProperties": 1}], "oneOf": [{"required": ["a"]}], "not": {"required": ["z"]},
        }))
        .unwrap();
        assert_eq!(schema.kind, Some(Type::Object));
        assert!(schema.nullable && schema.preserve_unknown_fields && schema.embedded_resource);
        assert_eq!(schema.map_type, MapType::Atomic);
        assert_eq!(schema.limits.max_properties, Some(2));
        assert_eq!(schema.properties["a"].limits.maximum, Some(9.5));
        assert_eq!(
            schema.properties["a"].limits.one_of_values,
            [json!(2), json!(4), json!(null)]
        );
        assert_eq!(
            schema.properties["b"].list_type,
            ListType::Map(vec!["k".to_owned()])
        );
        assert_eq!(schema.properties["c"].limits.pattern.as_deref(), Some("^a"));
        assert!(schema.properties["d"].int_or_string);
        assert_eq!(schema.properties["d"].logic.any_of.len(), 1);
        let additional = |name: &str| {
            schema.properties[name]
                .additional_properties
                .clone()
                .unwrap()
        };
        assert_eq!(additional("e").kind, Some(Type::Boolean));
        assert!(additional("f").is_unspecified() && !schema.properties["f"].closed);
        assert!(schema.properties["g"].closed);
        assert_eq!(schema.rules[0].field_path.as_deref(), Some(".a"));
        assert_eq!(schema.rules[0].optional_old_self, Some(true));
    }

    #[test]
    fn null_is_absence() {
        let schema = parse(&json!({"type": null, "default": null, "items": null})).unwrap();
        assert_eq!(schema, Schema::default());
    }

    #[test]
    fn wrong_types_are_refused_with_the_path() {
        let cases = [
            (
                json!({"properties": {"a": {"maxLength": "x"}}}),
                "json: cannot unmarshal string into Go struct field \
                 JSONSchemaProps.properties.maxLength of type int64",
            ),
            (
                json!({"maxLength": 1.5}),
                "json: cannot unmarshal number 1.5 into Go struct field \
                 JSONSchemaProps.maxLength of type int64",
            ),
            (
                json!({"additionalProperties": 3}),
                "boolean or JSON schema expected",
            ),
            (
                json!({"items": {"type": ["string"]}}),
                "json: cannot unmarshal array into Go struct field JSONSchemaProps.items.type of type string",
            ),
            (
                json!(3),
                "json: cannot unmarshal number into Go value of type v1.JSONSchemaProps",
            ),
        ];
        for (document, expected) in cases {
            assert_eq!(parse(&document).unwrap_err().to_string(), expected);
        }
    }

    #[test]
    fn unknown_keywords_are_named() {
        let document = json!({
            "bogus": 1,
            "properties": {"a": {"typo": 1, "items": {"hidden": 1}}},
            "allOf": [{"x-kubernetes-validations": [{"rule": "x", "odd": 1}]}],
        });
        let (_, unknown) = Document::parse(&document).unwrap();
        assert_eq!(
            unknown,
            [
                "allOf[0].x-kubernetes-validations[0].odd",
                "bogus",
                "properties.a.typo"
            ]
        );
    }

    #[test]
    fn endless_nesting_is_refused() {
        let mut document = json!({});
        for _ in 0..200 {
            document = json!({"not": document});
        }
        assert_eq!(parse(&document), Err(DecodeError::TooDeep));
    }
}
