use serde_json::{Value, json};

use super::*;

#[track_caller]
fn wrong(schema: Value, expected: &[&str]) {
    let (document, _) = Document::parse(&schema).unwrap();
    let errors = check(&document, &FieldPath::new("s"));
    let texts: Vec<_> = errors.iter().map(ToString::to_string).collect();
    assert_eq!(texts, expected, "{schema}");
}

fn object(properties: Value) -> Value {
    json!({"type": "object", "properties": properties})
}

#[test]
fn every_value_has_a_type() {
    wrong(
        json!({}),
        &["s.type: Required value: must not be empty at the root"],
    );
    wrong(
        json!({"type": "string"}),
        &["s.type: Invalid value: \"string\": must be object at the root"],
    );
    wrong(
        object(json!({"a": {}, "b": {"type": "array"}, "c": {"type": "array", "items": {}}})),
        &[
            "s.properties[a].type: Required value: must not be empty for specified object fields",
            "s.properties[b].items: Required value: must be specified",
            "s.properties[c].items.type: Required value: must not be empty for specified array items",
        ],
    );
    wrong(
        object(json!({
            "a": {"x-kubernetes-int-or-string": true},
            "b": {"x-kubernetes-preserve-unknown-fields": true},
        })),
        &[],
    );
}

#[test]
fn extensions_exclude_each_other() {
    wrong(
        object(
            json!({"a": {"x-kubernetes-int-or-string": true, "x-kubernetes-preserve-unknown-fields": true}}),
        ),
        &[
            "s.properties[a].x-kubernetes-preserve-unknown-fields: Invalid value: true: must be false \
           if x-kubernetes-int-or-string is true",
        ],
    );
    wrong(
        object(json!({"a": {"type": "string", "x-kubernetes-embedded-resource": true}})),
        &[
            "s.properties[a].properties: Required value: must not be empty if \
             x-kubernetes-embedded-resource is true without x-kubernetes-preserve-unknown-fields",
            "s.properties[a].type: Invalid value: \"string\": must be object if \
             x-kubernetes-embedded-resource is true",
        ],
    );
    wrong(
        json!({"type": "object", "additionalProperties": {"type": "string"}}),
        &["s.additionalProperties: Forbidden: must not be used at the root"],
    );
}

#[test]
fn metadata_may_only_restrict_names() {
    wrong(
        object(json!({"metadata": {"type": "object", "properties": {
            "name": {"type": "string", "maxLength": 3}, "generateName": {"type": "string"}}}})),
        &[],
    );
    wrong(
        object(
            json!({"metadata": {"type": "object", "properties": {"labels": {"type": "object"}}},
            "kind": {"type": "integer"}}),
        ),
        &[
            "s.properties[kind].type: Invalid value: \"integer\": must be string",
            "s.properties[metadata]: Forbidden: must not specify anything other than name and \
             generateName, but metadata is implicitly specified",
        ],
    );
}

#[test]
fn junctors_restrict_but_do_not_structure() {
    wrong(
        json!({"type": "object", "properties": {"a": {"type": "string"}}, "anyOf": [
            {"properties": {"a": {"type": "string", "default": "x", "description": "d"},
                            "metadata": {}}},
            {"required": ["a"]},
        ]}),
        &[
            "s.anyOf[0].properties[a].default: Forbidden: must be undefined to be structural",
            "s.anyOf[0].properties[a].description: Forbidden: must be empty to be structural",
            "s.anyOf[0].properties[a].type: Forbidden: must be empty to be structural",
            "s.anyOf[0].properties[metadata]: Forbidden: must not be specified in a nested context",
            "s.properties[metadata]: Required value: because it is defined in s.anyOf[0].properties[metadata]",
        ],
    );
    wrong(
        object(
            json!({"a": {"type": "array", "items": {"type": "string"}, "not": {"items": {"enum": ["x"]}}}}),
        ),
        &[],
    );
    wrong(
        json!({"type": "object", "not": {"properties": {"b": {"items": {}}}}}),
        &["s.properties[b]: Required value: because it is defined in s.not.properties[b]"],
    );
}

#[test]
fn int_or_string_may_be_spelled_out() {
    let both = json!([{"type": "integer"}, {"type": "string"}]);
    let field = |schema: Value| object(json!({"a": schema}));
    wrong(
        field(json!({"x-kubernetes-int-or-string": true, "anyOf": both})),
        &[],
    );
    wrong(
        field(
            json!({"x-kubernetes-int-or-string": true, "allOf": [{"anyOf": both}, {"minimum": 1}]}),
        ),
        &[],
    );
    wrong(
        field(json!({"x-kubernetes-int-or-string": true, "anyOf": [{"type": "string"}]})),
        &["s.properties[a].anyOf[0].type: Forbidden: must be empty to be structural"],
    );
}

#[test]
fn patterns_have_to_compile() {
    wrong(
        object(json!({"a": {"type": "string", "pattern": "["}})),
        &[
            "s.properties[a].pattern: Invalid value: \"[\": must be a valid regular expression, but isn't: \
           error parsing regexp: missing closing ]: `[`",
        ],
    );
}

#[test]
fn unsupported_keywords_are_named_first() {
    let cases = [
        (
            json!({"properties": {"a": {"$ref": "#/x"}}}),
            Some("OpenAPIV3Schema '$ref' is not supported"),
        ),
        (
            json!({"not": {"id": "x"}}),
            Some("OpenAPIV3Schema 'id' is not supported"),
        ),
        (
            json!({"items": [{}]}),
            Some("OpenAPIV3Schema 'items' must be a schema, but is an array"),
        ),
        (
            json!({"x-kubernetes-preserve-unknown-fields": false}),
            Some(
                "internal error: 'x-kubernetes-preserve-unknown-fields' must be true or undefined",
            ),
        ),
        (json!({"type": "object"}), None),
    ];
    for (schema, expected) in cases {
        let (document, _) = Document::parse(&schema).unwrap();
        assert_eq!(unsupported(&document).as_deref(), expected);
    }
}
