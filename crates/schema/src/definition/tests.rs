use serde_json::{Map, Value, json};

use super::*;

fn no_metadata_rules(_: &Map<String, Value>, _: &FieldPath<'_>) -> Vec<FieldError> {
    Vec::new()
}

fn errors(schema: &Value, has_status: bool) -> Vec<String> {
    let (document, _) = Document::parse(schema).unwrap();
    let errors = check(
        &document,
        has_status,
        no_metadata_rules,
        &FieldPath::new("v"),
    );
    let texts = errors.iter().map(ToString::to_string);
    texts
        .map(|text| text.replacen("v.openAPIV3Schema", "s", 1))
        .collect()
}

/// The errors of a schema with one field `a`.
#[track_caller]
fn wrong(field: Value, expected: &[&str]) {
    let schema = json!({"type": "object", "properties": {"a": field}});
    let found = errors(&schema, false);
    let found: Vec<_> = found
        .iter()
        .map(|text| text.replacen("s.properties[a]", "a", 1))
        .collect();
    assert_eq!(found, expected, "{schema}");
}

#[test]
fn good_schemas_pass() {
    wrong(
        json!({"type": "object", "default": {}, "x-kubernetes-map-type": "atomic", "properties": {
            "list": {"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["k"],
                "items": {"type": "object", "required": ["k"], "properties": {"k": {"type": "string"}}}},
            "set": {"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "string"}},
            "free": {"x-kubernetes-preserve-unknown-fields": true},
            "port": {"x-kubernetes-int-or-string": true, "default": "http"},
            "open": {"type": "object", "additionalProperties": true, "properties": {"x": {"type": "string"}}},
        }}),
        &[],
    );
}

#[test]
fn unsupported_keywords_are_forbidden() {
    wrong(
        json!({"type": "object", "$ref": "#/x", "id": "i", "uniqueItems": true}),
        &[
            "a.id: Forbidden: id is not supported",
            "a.$ref: Forbidden: $ref is not supported",
            "a.uniqueItems: Forbidden: uniqueItems cannot be set to true since the runtime complexity \
             becomes quadratic",
        ],
    );
    wrong(
        json!({"type": "null"}),
        &[
            "a.type: Unsupported value: \"null\": supported values: \"array\", \"boolean\", \"integer\", \
             \"number\", \"object\", \"string\"",
            "a.type: Forbidden: type cannot be set to null, use nullable as an alternative",
        ],
    );
    wrong(
        json!({"type": "object", "properties": {"x": {"type": "string"}}, "additionalProperties": {"type": "string"}}),
        &[
            "a.additionalProperties: Forbidden: additionalProperties and properties are mutual exclusive",
        ],
    );
}

#[test]
fn structure_is_checked_first() {
    wrong(
        json!({"items": {"type": "string"}}),
        &["a.type: Required value: must not be empty for specified object fields"],
    );
}

#[test]
fn list_types_go_with_their_items() {
    wrong(
        json!({"type": "string", "x-kubernetes-list-type": "bag"}),
        &[
            "a.type: Invalid value: \"string\": must be array if x-kubernetes-list-type is specified",
            "a.x-kubernetes-list-type: Unsupported value: \"bag\": supported values: \"atomic\", \"set\", \"map\"",
        ],
    );
    wrong(
        json!({"type": "array", "items": {"type": "object"}, "x-kubernetes-list-type": "set"}),
        &[
            "a.items.x-kubernetes-map-type: Invalid value: null: must be atomic as item of a list with \
           x-kubernetes-list-type=set",
        ],
    );
    wrong(
        json!({"type": "array", "items": {"type": "string"}, "x-kubernetes-list-map-keys": ["k"]}),
        &[
            "a.x-kubernetes-list-type: Required value: must be map if x-kubernetes-list-map-keys is non-empty",
        ],
    );
    wrong(
        json!({"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["k", "k", "o"],
            "items": {"type": "object", "nullable": true, "properties": {
                "k": {"type": "string", "nullable": true}, "o": {"type": "object"}}}}),
        &[
            "a.x-kubernetes-list-map-keys: Invalid value: [\"k\",\"k\",\"o\"]: must not contain duplicate entries",
            "a.items.properties[o].type: Invalid value: \"object\": must be a scalar type if parent \
             array's x-kubernetes-list-type is map",
            "a.items.nullable: Forbidden: cannot be nullable when x-kubernetes-list-type is map",
            "a.items.properties[k].default: Required value: this property is in \
             x-kubernetes-list-map-keys, so it must have a default or be a required property",
            "a.items.properties[k].nullable: Forbidden: this property is in \
             x-kubernetes-list-map-keys, so it cannot be nullable",
            "a.items.properties[k].default: Required value: this property is in \
             x-kubernetes-list-map-keys, so it must have a default or be a required property",
            "a.items.properties[k].nullable: Forbidden: this property is in \
             x-kubernetes-list-map-keys, so it cannot be nullable",
            "a.items.properties[o].default: Required value: this property is in \
             x-kubernetes-list-map-keys, so it must have a default or be a required property",
        ],
    );
    wrong(
        json!({"type": "object", "x-kubernetes-map-type": "odd"}),
        &[
            "a.x-kubernetes-map-type: Unsupported value: \"odd\": supported values: \"atomic\", \"granular\"",
        ],
    );
}

#[test]
fn defaults_are_valid_and_pruned() {
    wrong(
        json!({"type": "string", "default": 3}),
        &["a.default: Invalid value: \"integer\":  in body must be of type string: \"integer\""],
    );
    wrong(
        json!({"type": "object", "default": {"x": "1", "y": 2}, "properties": {"x": {"type": "integer"}}}),
        &[
            "a.default: Invalid value: {\"x\":\"1\",\"y\":2}: must not have unknown fields",
            "a.default.x: Invalid value: \"string\": x in body must be of type integer: \"string\"",
        ],
    );
    let resource = |default: Value| {
        json!({"type": "object", "x-kubernetes-embedded-resource": true,
            "properties": {"metadata": {"type": "object", "properties": {
                "labels": {"type": "object", "additionalProperties": {"type": "string"}, "default": default}}}}})
    };
    wrong(resource(json!({"a": "b"})), &[]);
    wrong(
        resource(json!({"a": 1})),
        &[
            "a.properties[metadata].properties[labels].default: Invalid value: {\"a\":1}: must result in \
           valid metadata: metadata: Invalid value: {\"labels\":{\"a\":1}}: json: cannot unmarshal \
           number into Go struct field ObjectMeta.labels of type string",
        ],
    );
}

#[test]
fn metadata_at_the_root_has_no_defaults() {
    let schema = json!({"type": "object", "properties": {"metadata": {"type": "object", "properties": {
        "name": {"type": "string", "default": "x"}}}}});
    assert_eq!(
        errors(&schema, false),
        [
            "s.properties[metadata].properties[name].default: Forbidden: must not be set in top-level metadata"
        ]
    );
}

#[test]
fn a_status_subresource_restricts_the_root() {
    assert_eq!(
        errors(&json!({"type": "object", "required": ["spec"]}), true),
        [""; 0]
    );
    let found = errors(
        &json!({"type": "object", "oneOf": [{"required": ["a"]}]}),
        true,
    );
    assert_eq!(found.len(), 1);
    assert!(
        found[0].starts_with("s: Invalid value: {\"ID\":\"\",\"Schema\":\"\",\"Ref\":null,"),
        "{found:?}"
    );
    assert!(
        found[0].contains("\"XValidations\":null}: only [Description Type Format Title "),
        "{found:?}"
    );
    assert_eq!(
        errors(&json!({"type": "object", "nullable": true}), false),
        ["s.nullable: Forbidden: nullable cannot be true at the root"]
    );
}

#[test]
fn rules_are_complete() {
    let rule = |rule: Value| json!({"type": "object", "properties": {"x": {"type": "string"}}, "x-kubernetes-validations": [rule]});
    let cases = [
        (
            json!({"rule": " "}),
            "rule: Required value: rule is not specified",
        ),
        (
            json!({"rule": "true", "message": " "}),
            "message: Invalid value: \" \": must be non-empty if specified",
        ),
        (
            json!({"rule": "true", "message": "a\nb"}),
            "message: Invalid value: \"a\\nb\": must not contain line breaks",
        ),
        (
            json!({"rule": "true\n&& true"}),
            "message: Required value: message must be specified if rule contains line breaks",
        ),
        (
            json!({"rule": "true", "messageExpression": " "}),
            "messageExpression: Required value: messageExpression must be non-empty if specified",
        ),
        (
            json!({"rule": "true", "reason": "Bad"}),
            "reason: Unsupported value: \"Bad\": supported values: \"FieldValueDuplicate\", \
             \"FieldValueForbidden\", \"FieldValueInvalid\", \"FieldValueRequired\"",
        ),
        (
            json!({"rule": "true", "fieldPath": ".y"}),
            "fieldPath: Invalid value: \".y\": must be a valid path",
        ),
    ];
    for (given, expected) in cases {
        wrong(
            rule(given),
            &[&format!("a.x-kubernetes-validations[0].{expected}")],
        );
    }
    wrong(
        rule(json!({"rule": "true", "fieldPath": ".x", "reason": "FieldValueInvalid"})),
        &[],
    );
}
