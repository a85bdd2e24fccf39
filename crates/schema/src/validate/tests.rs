use serde_json::json;

use super::*;
use crate::parse;

/// The errors of `value` as field `f` of an object.
fn errors(field: &Value, value: &Value) -> Vec<String> {
    let schema = parse(&json!({"type": "object", "properties": {"f": field}})).unwrap();
    let errors = Validator::compile(&schema).validate(&json!({"f": value}), &FieldPath::NIL);
    errors.iter().map(ToString::to_string).collect()
}

#[track_caller]
fn check(field: Value, value: Value, expected: &[&str]) {
    assert_eq!(errors(&field, &value), expected, "{value} against {field}");
}

#[test]
fn types() {
    let wrong = |found: &str, expected: &str| {
        format!("f: Invalid value: \"{found}\": f in body must be of type {expected}: \"{found}\"")
    };
    let cases = [
        ("integer", json!("x"), "string"),
        ("integer", json!(1.5), "number"),
        ("string", json!(1), "integer"),
        ("string", json!(null), "null"),
        ("boolean", json!({}), "object"),
        ("object", json!([]), "array"),
        ("array", json!(true), "boolean"),
    ];
    for (kind, value, found) in cases {
        check(json!({"type": kind}), value, &[&wrong(found, kind)]);
    }
    check(json!({"type": "integer"}), json!(2.0), &[]);
    check(json!({"type": "number"}), json!(2), &[]);
    check(
        json!({"type": "string", "nullable": true}),
        json!(null),
        &[],
    );
    let int_or_string = json!({"x-kubernetes-int-or-string": true});
    check(int_or_string.clone(), json!("a"), &[]);
    check(
        int_or_string,
        json!(true),
        &[&wrong("boolean", "integer,string")],
    );
}

#[test]
fn texts() {
    check(
        json!({"type": "string", "maxLength": 2, "minLength": 1}),
        json!("äöü"),
        &["f: Too long: may not be more than 2 bytes"],
    );
    check(
        json!({"type": "string", "minLength": 2}),
        json!("a"),
        &["f: Invalid value: \"a\": f in body should be at least 2 chars long"],
    );
    check(
        json!({"type": "string", "pattern": "^[a-z]+$"}),
        json!("A"),
        &["f: Invalid value: \"A\": f in body should match '^[a-z]+$'"],
    );
    check(
        json!({"type": "string", "enum": ["a", "b"]}),
        json!("c"),
        &["f: Unsupported value: \"c\": supported values: \"a\", \"b\""],
    );
    check(
        json!({"type": "string", "format": "made-up"}),
        json!("x"),
        &[],
    );
    check(
        json!({"type": "string", "format": "date-time"}),
        json!("x"),
        &["f: Invalid value: \"x\": f in body must be of type date-time: \"x\""],
    );
    check(
        json!({"type": "string", "format": "date-time"}),
        json!(3),
        &["f: Invalid value: \"int64\": f in body must be of type date-time: \"int64\""],
    );
}

#[test]
fn numbers() {
    let integer = |keyword: &str, bound: Value| json!({"type": "integer", keyword: bound});
    let fault =
        |value: &str, text: &str| format!("f: Invalid value: {value}: f in body should be {text}");
    let cases = [
        (
            integer("minimum", json!(1)),
            json!(0),
            fault("0", "greater than or equal to 1"),
        ),
        (
            integer("maximum", json!(1)),
            json!(2),
            fault("2", "less than or equal to 1"),
        ),
        (
            integer("multipleOf", json!(3)),
            json!(4),
            fault("4", "a multiple of 3"),
        ),
        (
            json!({"type": "number", "minimum": 1.5, "exclusiveMinimum": true}),
            json!(1.5),
            fault("1.5", "greater than 1.5"),
        ),
        (
            json!({"type": "number", "maximum": 2, "exclusiveMaximum": true}),
            json!(2),
            fault("2", "less than 2"),
        ),
        (
            json!({"type": "number", "multipleOf": 0.5}),
            json!(0.7),
            fault("0.7", "a multiple of 0.5"),
        ),
    ];
    for (field, value, expected) in cases {
        check(field, value, &[&expected]);
    }
    check(integer("minimum", json!(1.5)), json!(1), &[]);
    check(json!({"type": "integer", "enum": [1, 2]}), json!(2.0), &[]);
    check(
        json!({"type": "integer", "enum": [1, 2]}),
        json!(3),
        &["f: Unsupported value: 3: supported values: \"1\", \"2\""],
    );
    check(
        json!({"type": "integer", "multipleOf": 0.5}),
        json!(3),
        &["f: Invalid value: 0: factor MultipleOf declared for f must be positive: 0"],
    );
}

#[test]
fn lists_and_objects() {
    check(
        json!({"type": "array", "items": {"type": "integer"}, "minItems": 3, "maxItems": 1}),
        json!([1, "x"]),
        &[
            "f[1]: Invalid value: \"string\": f[1] in body must be of type integer: \"string\"",
            "f: Invalid value: 2: f in body should have at least 3 items",
            "f: Too many: 2: must have at most 1 item",
        ],
    );
    check(
        json!({"type": "array", "uniqueItems": true}),
        json!([1, {"a": 1}, {"a": 1}]),
        &["f: Invalid value: \"\": f in body shouldn't contain duplicates"],
    );
    check(
        json!({"type": "object", "additionalProperties": {"type": "string"}, "minProperties": 3,
               "maxProperties": 1, "required": ["r"]}),
        json!({"a": 1, "b": "x"}),
        &[
            "f: Invalid value: 2: f in body should have at least 3 properties",
            "f: Too many: 2: must have at most 1 item",
            "f.a: Invalid value: \"integer\": f.a in body must be of type string: \"integer\"",
            "f.r: Required value",
        ],
    );
    check(
        json!({"type": "object", "additionalProperties": false}),
        json!({"a": 1}),
        &["f: Invalid value: \"a\": f.a in body is a forbidden property"],
    );
}

#[test]
fn combinations() {
    let short = json!({"maxLength": 1});
    let digits = json!({"pattern": "^[0-9]+$"});
    let with = |junctor: &str| json!({"type": "string", junctor: [short, digits]});
    check(with("anyOf"), json!("12"), &[]);
    check(
        with("anyOf"),
        json!("ab"),
        &[
            "<nil>: Invalid value: \"\": \"f\" must validate at least one schema (anyOf)",
            "f: Too long: may not be more than 1 byte",
        ],
    );
    check(
        with("oneOf"),
        json!("1"),
        &[
            "<nil>: Invalid value: \"\": \"f\" must validate one and only one schema (oneOf). \
           Found 2 valid alternatives",
        ],
    );
    check(
        with("oneOf"),
        json!("ab"),
        &[
            "<nil>: Invalid value: \"\": \"f\" must validate one and only one schema (oneOf). \
             Found none valid",
            "f: Too long: may not be more than 1 byte",
        ],
    );
    check(
        with("allOf"),
        json!("12"),
        &[
            "f: Too long: may not be more than 1 byte",
            "<nil>: Invalid value: \"\": \"f\" must validate all the schemas (allOf)",
        ],
    );
    check(
        with("allOf"),
        json!("ab"),
        &[
            "f: Too long: may not be more than 1 byte",
            "f: Invalid value: \"ab\": f in body should match '^[0-9]+$'",
            "<nil>: Invalid value: \"\": \"f\" must validate all the schemas (allOf). None validated",
        ],
    );
    check(
        json!({"type": "string", "not": {"enum": ["x"]}}),
        json!("x"),
        &["<nil>: Invalid value: \"\": \"f\" must not validate the schema (not)"],
    );
}

#[test]
fn the_alternative_with_most_matches_is_reported() {
    check(
        json!({"type": "object", "anyOf": [
            {"required": ["a"]},
            {"properties": {"b": {"minimum": 5}}},
        ], "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}}}),
        json!({"b": 1}),
        &[
            "<nil>: Invalid value: \"\": \"f\" must validate at least one schema (anyOf)",
            "f.b: Invalid value: 1: f.b in body should be greater than or equal to 5",
        ],
    );
}

#[test]
fn the_path_in_front_is_not_part_of_the_text() {
    let schema =
        parse(&json!({"type": "object", "properties": {"phase": {"type": "string"}}})).unwrap();
    let errors =
        Validator::compile(&schema).validate(&json!({"phase": 3}), &FieldPath::new("status"));
    assert_eq!(
        errors[0].to_string(),
        "status.phase: Invalid value: \"integer\": phase in body must be of type string: \"integer\""
    );
}

#[test]
fn unchanged_errors_are_tolerated_on_update() {
    let schema = parse(&json!({"type": "object", "properties": {
        "kind": {"type": "string", "maxLength": 1},
        "a": {"type": "string", "maxLength": 1},
        "map": {"type": "object", "additionalProperties": {"type": "string", "maxLength": 1}},
        "plain": {"type": "array", "items": {"type": "string", "maxLength": 1}},
        "keyed": {"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["k"],
            "items": {"type": "object", "properties": {
                "k": {"type": "string"}, "v": {"type": "string", "maxLength": 1}}}},
        "either": {"type": "object", "properties": {"x": {"type": "string"}, "y": {"type": "string"}},
            "oneOf": [{"required": ["x"]}, {"required": ["y"]}]},
    }}))
    .unwrap();
    let validator = Validator::compile(&schema);
    let paths = |old: Value, new: Value| -> Vec<String> {
        let change = Correlated {
            new: &new,
            old: &old,
            schema: &schema,
        };
        let errors = validator.validate_change(change, &FieldPath::NIL);
        errors.into_iter().map(|error| error.path).collect()
    };
    let cases = [
        (json!({"a": "long"}), json!({"a": "long"}), vec![]),
        (json!({"a": "long"}), json!({"a": "other"}), vec!["a"]),
        (json!({}), json!({"a": "long"}), vec!["a"]),
        (
            json!({"a": "long", "map": {}}),
            json!({"a": "long", "map": {"k": "long"}}),
            vec!["map.k"],
        ),
        (
            json!({"map": {"k": "long"}}),
            json!({"map": {"k": "long", "l": "x"}}),
            vec![],
        ),
        (
            json!({"plain": ["long"], "a": "x"}),
            json!({"plain": ["long"], "a": "y"}),
            vec![],
        ),
        (
            json!({"plain": ["long"]}),
            json!({"plain": ["long", "x"]}),
            vec!["plain[0]"],
        ),
        (
            json!({"keyed": [{"k": "a", "v": "long"}]}),
            json!({"keyed": [{"k": "b", "v": "long"}, {"k": "a", "v": "long"}]}),
            vec!["keyed[0].v"],
        ),
        (
            json!({"kind": "Long", "a": "x"}),
            json!({"kind": "Long", "a": "y"}),
            vec!["kind"],
        ),
        (
            json!({"either": {}, "a": "x"}),
            json!({"either": {}, "a": "y"}),
            vec![],
        ),
        (
            json!({"either": {}}),
            json!({"either": {"x": "1", "y": "1"}}),
            vec!["<nil>"],
        ),
    ];
    for (old, new, expected) in cases {
        assert_eq!(
            paths(old.clone(), new.clone()),
            expected,
            "{new} from {old}"
        );
    }
}
