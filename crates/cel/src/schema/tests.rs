use serde_json::json;

use super::*;

fn read_type(schema: &Json) -> String {
    DeclType::from_schema(schema, false)
        .and_then(|decl| decl.cel_type("T"))
        .map_or_else(|| "none".to_owned(), |of| of.to_string())
}

#[test]
fn schemas_become_types() {
    for (schema, expected) in [
        (json!({"type": "string"}), "string"),
        (
            json!({"type": "string", "format": "date-time"}),
            "timestamp",
        ),
        (json!({"type": "string", "format": "duration"}), "duration"),
        (json!({"type": "string", "format": "byte"}), "bytes"),
        (json!({"type": "string", "format": "email"}), "string"),
        (json!({"type": "integer"}), "int"),
        (json!({"type": "number"}), "double"),
        (json!({"type": "boolean"}), "bool"),
        (json!({"x-kubernetes-int-or-string": true}), "dyn"),
        (
            json!({"type": "array", "items": {"type": "integer"}}),
            "list(int)",
        ),
        (json!({"type": "array"}), "none"),
        (
            json!({"type": "object", "additionalProperties": {"type": "integer"}}),
            "map(string, int)",
        ),
        (json!({"type": "object"}), "T"),
        (
            json!({"x-kubernetes-preserve-unknown-fields": true}),
            "none",
        ),
    ] {
        assert_eq!(read_type(&schema), expected, "{schema}");
    }
}

#[test]
fn object_types_are_named_by_their_place() {
    let schema = json!({"type": "object", "properties": {
        "items": {"type": "array", "items": {"type": "object", "properties": {"a-b": {"type": "object"}}}},
        "hidden": {"x-kubernetes-preserve-unknown-fields": true},
        "1st": {"type": "string"},
    }});
    let decl = DeclType::from_schema(&schema, false).unwrap();
    let Some(Type::Object(root)) = decl.cel_type("self") else {
        panic!("not an object");
    };
    assert_eq!(root.fields["items"].to_string(), "list(self.items.@idx)");
    assert!(!root.fields.contains_key("hidden"));
    assert!(!root.fields.contains_key("1st"));
    let Type::List(item) = &root.fields["items"] else {
        panic!("not a list");
    };
    let Type::Object(item) = &**item else {
        panic!("not an object");
    };
    assert_eq!(
        item.fields["a__dash__b"].to_string(),
        "self.items.@idx.a__dash__b"
    );
}

#[test]
fn sizes_are_bounded_by_the_schema_or_the_request() {
    let bound = |schema: Json| {
        DeclType::from_schema(&schema, false)
            .unwrap()
            .max_elements()
    };
    assert_eq!(bound(json!({"type": "string", "maxLength": 10})), 40);
    assert_eq!(bound(json!({"type": "string", "enum": ["a", "long"]})), 4);
    assert_eq!(bound(json!({"type": "string"})), 3 * 1024 * 1024 - 2);
    assert_eq!(
        bound(json!({"type": "array", "maxItems": 7, "items": {"type": "string"}})),
        7
    );
    assert_eq!(
        bound(json!({"type": "array", "items": {"type": "boolean"}})),
        (3 * 1024 * 1024 - 2) / 5
    );
    assert_eq!(bound(json!({"type": "string", "maxLength": -1})), 0);
}

#[test]
fn required_fields_limit_how_often_an_object_fits() {
    let optional = json!({"type": "object", "properties": {"name": {"type": "string"}}});
    let required =
        json!({"type": "object", "required": ["name"], "properties": {"name": {"type": "string"}}});
    let cardinality = |schema: &Json| {
        DeclType::from_schema(schema, false)
            .unwrap()
            .max_cardinality()
    };
    assert_eq!(cardinality(&optional), 3 * 1024 * 1024 / 3);
    assert_eq!(cardinality(&required), 3 * 1024 * 1024 / 13);
}

#[test]
fn endless_schemas_end() {
    let mut schema = json!({"type": "string"});
    for _ in 0..300 {
        schema = json!({"type": "array", "items": schema});
    }
    assert_eq!(DeclType::from_schema(&schema, false), None);
}
