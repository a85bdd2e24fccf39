use std::sync::Arc;

use super::*;
use crate::parse;

#[track_caller]
fn check(schema: Value, version: OpenApi, expected: Value) {
    let mut definitions = Definitions::new();
    let published = publish(&parse(&schema).unwrap(), version, &mut definitions);
    assert_eq!(published, expected, "{schema}");
    assert!(definitions.is_empty());
}

#[test]
fn version_3_says_everything() {
    let schema = json!({
        "type": "object", "description": "d", "title": "t", "required": ["a"], "minProperties": 1,
        "properties": {
            "a": {"type": "integer", "format": "int32", "minimum": 1, "maximum": 2.5, "nullable": true,
                "exclusiveMinimum": true, "multipleOf": 1, "default": 2, "enum": [1, 2]},
            "b": {"type": "array", "items": {"type": "object", "x-kubernetes-map-type": "atomic"},
                "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["k"], "maxItems": 3},
            "c": {"type": "string", "pattern": "^a", "minLength": 1, "maxLength": 2,
                "x-kubernetes-validations": [{"rule": "true", "message": "m", "optionalOldSelf": true}]},
            "d": {"x-kubernetes-int-or-string": true, "anyOf": [{"type": "integer"}, {"type": "string"}]},
            "e": {"type": "object", "additionalProperties": {"type": "boolean"}},
            "f": {"type": "object", "additionalProperties": true},
            "g": {"type": "object", "x-kubernetes-preserve-unknown-fields": true},
        },
        "not": {"required": ["z"]}, "oneOf": [{"required": ["a"]}],
    });
    check(schema.clone(), OpenApi::V3, schema);
}

#[test]
fn int_or_string_is_spelled_out() {
    let both = json!([{"type": "integer"}, {"type": "string"}]);
    let ours = |extra: Value| {
        let mut schema = json!({"x-kubernetes-int-or-string": true});
        schema
            .as_object_mut()
            .unwrap()
            .extend(extra.as_object().unwrap().clone());
        schema
    };
    let cases = [
        (json!({}), json!({"anyOf": both})),
        (
            json!({"allOf": [{"anyOf": both}]}),
            json!({"allOf": [{"anyOf": both}]}),
        ),
        (
            json!({"anyOf": [{"minimum": 1}], "allOf": [{"maximum": 2}]}),
            json!({"anyOf": [{"minimum": 1}], "allOf": [{"anyOf": both}, {"maximum": 2}]}),
        ),
    ];
    for (given, expected) in cases {
        check(ours(given), OpenApi::V3, ours(expected));
    }
}

#[test]
fn version_2_leaves_out_what_it_cannot_say() {
    check(
        json!({
            "type": "object", "required": ["a", "b"], "oneOf": [{"required": ["a"]}],
            "properties": {
                "a": {"type": "object", "nullable": true, "properties": {"x": {"type": "string"}}},
                "b": {"type": "object", "x-kubernetes-preserve-unknown-fields": true},
                "c": {"type": "array", "items": {"type": "string"}},
            },
        }),
        OpenApi::V2,
        json!({
            "type": "object", "required": ["b"],
            "properties": {
                "a": {},
                "b": {"x-kubernetes-preserve-unknown-fields": true},
                "c": {"type": "array", "items": {"type": "string"}},
            },
        }),
    );
}

#[test]
fn named_types_become_references() {
    let leaf = Arc::new(Schema {
        kind: Some(Type::String),
        type_name: Some("x.Leaf".into()),
        ..Schema::default()
    });
    let patched = Schema {
        kind: Some(Type::Array),
        items: Some(Arc::clone(&leaf)),
        patch: Some(PatchStrategy {
            merge: true,
            retain_keys: false,
            merge_key: Some("k".to_owned()),
        }),
        ..Schema::default()
    };
    let schema = Schema {
        kind: Some(Type::Object),
        properties: [("a".to_owned(), leaf), ("b".to_owned(), Arc::new(patched))].into(),
        ..Schema::default()
    };
    let mut definitions = Definitions::new();
    let expected = json!({"type": "object", "properties": {
        "a": {"$ref": "#/components/schemas/x.Leaf"},
        "b": {"type": "array", "items": {"$ref": "#/components/schemas/x.Leaf"},
            "x-kubernetes-patch-strategy": "merge", "x-kubernetes-patch-merge-key": "k"},
    }});
    assert_eq!(publish(&schema, OpenApi::V3, &mut definitions), expected);
    assert_eq!(
        definitions,
        [("x.Leaf".to_owned(), json!({"type": "string"}))].into()
    );
}

#[test]
fn fields_of_named_types_keep_their_description() {
    let field = Schema {
        kind: Some(Type::Object),
        description: Some("of the field".into()),
        type_name: Some("x.Leaf".into()),
        ..Schema::default()
    };
    let schema = Schema {
        items: Some(Arc::new(field)),
        ..Schema::default()
    };
    let items = |version| publish(&schema, version, &mut Definitions::new())["items"].clone();
    assert_eq!(
        items(OpenApi::V3),
        json!({"allOf": [{"$ref": "#/components/schemas/x.Leaf"}], "description": "of the field"})
    );
    assert_eq!(
        items(OpenApi::V2),
        json!({"$ref": "#/definitions/x.Leaf", "description": "of the field"})
    );
}

#[test]
fn resources_have_type_and_metadata() {
    let schema = parse(&json!({"type": "object", "properties": {
        "metadata": {"type": "object"},
        "raw": {"type": "object", "x-kubernetes-embedded-resource": true,
            "x-kubernetes-preserve-unknown-fields": true},
    }}))
    .unwrap();
    let mut definitions = Definitions::new();
    let gvk = ("example.com", "v1", "Kettle");
    let published = publish_resource(&schema, gvk, OpenApi::V3, &mut definitions);
    let meta = "#/components/schemas/io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta";
    assert_eq!(
        published["properties"]["metadata"]["allOf"][0]["$ref"],
        meta
    );
    assert_eq!(published["properties"]["kind"]["type"], "string");
    assert_eq!(
        published["x-kubernetes-group-version-kind"][0]["kind"],
        "Kettle"
    );
    let raw = &published["properties"]["raw"];
    assert_eq!(raw["required"], json!(["kind", "apiVersion"]));
    assert_eq!(raw["properties"]["metadata"]["allOf"][0]["$ref"], meta);

    let open = Schema {
        preserve_unknown_fields: true,
        ..schema
    };
    let published = publish_resource(&open, gvk, OpenApi::V2, &mut definitions);
    assert_eq!(published["type"], "object");
    assert_eq!(published.get("properties"), None);
}
