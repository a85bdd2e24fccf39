//! Laws of pruning, defaulting and validation, over schemas and values made at random.

use std::sync::Arc;

use bellwether_schema::meta::Malformed;
use bellwether_schema::publish::{Definitions, OpenApi, publish_resource};
use bellwether_schema::{
    Change, CompiledSchema, Document, FieldError, FieldPath, Schema, aggregate, decode, default,
    definition, parse, prune,
};
use proptest::prelude::*;
use serde_json::{Map, Value, json};

fn no_metadata_rules(_: &Map<String, Value>, _: &FieldPath<'_>) -> Vec<FieldError> {
    Vec::new()
}

/// A few names, so that schemas and values meet.
fn name() -> impl Strategy<Value = String> {
    prop::sample::select(vec!["a", "b", "c", "kind", "metadata", "x-y"]).prop_map(str::to_owned)
}

fn scalar() -> impl Strategy<Value = Value> {
    prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        (-5_i64..5).prop_map(Value::from),
        (-5.0..5.0_f64).prop_map(Value::from),
        "[a-c]{0,3}".prop_map(Value::from),
    ]
}

fn value() -> impl Strategy<Value = Value> {
    scalar().prop_recursive(4, 40, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::Array),
            prop::collection::btree_map(name(), inner, 0..5).prop_map(|m| m.into_iter().collect()),
        ]
    })
}

/// Schemas that have structure and defaults, and no limits on the number of fields, which defaulting
/// and pruning may change.
fn structure() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(json!({"type": "string"})),
        Just(json!({"type": "string", "default": "a"})),
        Just(json!({"type": "string", "nullable": true, "maxLength": 2})),
        Just(json!({"type": "integer", "minimum": -2, "default": 1})),
        Just(json!({"type": "boolean"})),
        Just(json!({"x-kubernetes-int-or-string": true})),
        Just(json!({"x-kubernetes-preserve-unknown-fields": true})),
        Just(
            json!({"type": "object", "x-kubernetes-embedded-resource": true,
            "x-kubernetes-preserve-unknown-fields": true})
        ),
    ];
    leaf.prop_recursive(3, 30, 4, |inner| {
        prop_oneof![
            (
                prop::collection::btree_map(name(), inner.clone(), 0..4),
                any::<bool>(),
                any::<bool>()
            )
                .prop_map(|(properties, defaulted, preserves)| {
                    let mut schema = json!({"type": "object", "properties": properties});
                    if defaulted {
                        schema["default"] = json!({});
                    }
                    if preserves {
                        schema["x-kubernetes-preserve-unknown-fields"] = json!(true);
                    }
                    schema
                }),
            inner
                .clone()
                .prop_map(|items| json!({"type": "array", "items": items})),
            inner.prop_map(|values| json!({"type": "object", "additionalProperties": values})),
            Just(json!({"type": "object", "additionalProperties": true})),
        ]
    })
}

fn resource() -> impl Strategy<Value = Value> {
    prop::collection::btree_map(name(), structure(), 0..4)
        .prop_map(|spec| json!({"type": "object", "properties": {"spec": {"type": "object", "properties": spec}}}))
}

fn object() -> impl Strategy<Value = Value> {
    (value(), value()).prop_map(|(spec, other)| {
        json!({"apiVersion": "v1", "kind": "K", "metadata": {"name": "n"}, "spec": spec, "other": other})
    })
}

fn pruned(mut value: Value, schema: &Schema) -> Value {
    prune::prune(&mut value, schema);
    value
}

fn defaulted(mut value: Value, schema: &Schema) -> Value {
    default::drop_nulls(&mut value, schema);
    let _ = default::apply_defaults(&mut value, schema);
    value
}

proptest! {
    #[test]
    fn pruning_twice_is_pruning_once(schema in resource(), object in object()) {
        let schema = parse(&schema).unwrap();
        let once = pruned(object, &schema);
        let mut twice = once.clone();
        prop_assert_eq!(prune::prune(&mut twice, &schema), Vec::<String>::new());
        prop_assert_eq!(twice, once);
    }

    #[test]
    fn defaulting_twice_is_defaulting_once(schema in resource(), object in object()) {
        let schema = parse(&schema).unwrap();
        let once = defaulted(object, &schema);
        prop_assert_eq!(defaulted(once.clone(), &schema), once);
    }

    #[test]
    fn it_does_not_matter_whether_pruning_or_defaulting_comes_first(
        schema in resource(),
        object in object(),
    ) {
        let schema = parse(&schema).unwrap();
        let pruned_first = defaulted(pruned(object.clone(), &schema), &schema);
        prop_assert_eq!(pruned(defaulted(object, &schema), &schema), pruned_first);
    }

    #[test]
    fn what_is_valid_stays_valid(schema in resource(), object in object()) {
        let compiled = CompiledSchema::compile(Arc::new(parse(&schema).unwrap()), no_metadata_rules);
        if compiled.validate_values(Change::Create(&object)).is_empty() {
            let changed = defaulted(pruned(object, compiled.schema()), compiled.schema());
            let errors = compiled.validate_values(Change::Create(&changed));
            prop_assert!(errors.is_empty(), "{}", aggregate(&errors));
        }
    }

    #[test]
    fn an_unchanged_object_is_always_tolerated(schema in resource(), object in object()) {
        let compiled = CompiledSchema::compile(Arc::new(parse(&schema).unwrap()), no_metadata_rules);
        let mut object = object;
        // What the schema does not know cannot be compared, and is gone before validation.
        prop_assume!(compiled.coerce(&mut object, Malformed::Drop).is_ok());
        object = json!({"spec": object["spec"]});
        let is_open = schema.to_string().contains("preserve") || schema.to_string().contains(":true");
        if !is_open {
            let errors = compiled.validate_values(Change::Update { new: &object, old: &object });
            prop_assert!(errors.is_empty(), "{}", aggregate(&errors));
        }
    }

    #[test]
    fn good_definitions_are_accepted_and_published(schema in resource()) {
        let (document, unknown) = Document::parse(&schema).unwrap();
        prop_assert_eq!(unknown, Vec::<String>::new());
        let path = FieldPath::new("spec");
        let errors = definition::check(&document, true, no_metadata_rules, &path);
        prop_assert!(errors.is_empty(), "{}", aggregate(&errors));
        let schema = document.to_schema();
        let mut definitions = Definitions::new();
        let published = publish_resource(&schema, ("g", "v", "K"), OpenApi::V3, &mut definitions);
        let mut again = parse(&published["properties"]["spec"]).unwrap();
        // Publication adds what is implied, which only embedded resources and int-or-string have.
        if !published.to_string().contains("embedded") && !published.to_string().contains("int-or") {
            again.default = schema.properties["spec"].default.clone();
            prop_assert_eq!(&again, schema.properties["spec"].as_ref());
        }
    }
}

/// Anything that looks a little like a schema.
fn wild_schema() -> impl Strategy<Value = Value> {
    let keyword = prop::sample::select(vec![
        "type",
        "properties",
        "items",
        "additionalProperties",
        "default",
        "enum",
        "pattern",
        "format",
        "minimum",
        "maximum",
        "multipleOf",
        "maxLength",
        "minItems",
        "maxProperties",
        "required",
        "allOf",
        "anyOf",
        "oneOf",
        "not",
        "nullable",
        "uniqueItems",
        "$ref",
        "definitions",
        "x-kubernetes-preserve-unknown-fields",
        "x-kubernetes-embedded-resource",
        "x-kubernetes-int-or-string",
        "x-kubernetes-list-type",
        "x-kubernetes-list-map-keys",
        "x-kubernetes-map-type",
        "x-kubernetes-validations",
        "a",
        "metadata",
    ]);
    let leaf = prop_oneof![
        scalar(),
        prop::sample::select(vec![
            json!("object"),
            json!("array"),
            json!("string"),
            json!("integer"),
            json!("number"),
            json!("boolean"),
            json!("map"),
            json!("set"),
            json!("atomic"),
            json!("date-time"),
            json!("[a-z"),
            json!("^(a|b)*$"),
            json!(["a"]),
            json!([{"rule": "self.a", "fieldPath": ".a"}]),
        ]),
    ];
    leaf.prop_recursive(5, 60, 6, move |inner| {
        let keyword = keyword.clone().prop_map(str::to_owned);
        prop_oneof![
            4 => prop::collection::btree_map(keyword, inner.clone(), 0..6)
                .prop_map(|m| m.into_iter().collect::<Value>()),
            1 => prop::collection::vec(inner, 0..3).prop_map(Value::Array),
        ]
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn nothing_panics(schema in wild_schema(), object in value(), old in value()) {
        let Ok((document, _)) = Document::parse(&schema) else { return Ok(()) };
        let path = FieldPath::new("spec");
        let errors = definition::check(&document, true, no_metadata_rules, &path);
        prop_assert!(errors.iter().all(|error| !error.to_string().is_empty()));
        let schema = document.to_schema();
        let mut definitions = Definitions::new();
        publish_resource(&schema, ("g", "v", "K"), OpenApi::V2, &mut definitions);
        let _ = decode::decode(&mut object.clone(), &schema, "K");
        let compiled = CompiledSchema::compile(Arc::new(schema), no_metadata_rules);
        let mut object = object;
        let _ = compiled.coerce(&mut object, Malformed::Drop);
        let _ = compiled.default(&mut object);
        for change in [
            Change::Create(&object),
            Change::Update { new: &object, old: &old },
            Change::UpdateStatus { new: &object, old: &old },
        ] {
            let mut errors = compiled.validate_values(change);
            let limits = bellwether_schema::RuleLimits::default();
            compiled.validate_rules(change, &mut errors, limits).unwrap();
            aggregate(&errors);
        }
    }

    #[test]
    fn formats_and_patterns_never_panic(text in "\\PC{0,20}", format in 0..26_usize) {
        const FORMATS: [&str; 26] = [
            "bsonobjectid", "uri", "email", "hostname", "ipv4", "ipv6", "cidr", "mac", "uuid", "uuid3",
            "uuid4", "uuid5", "isbn", "isbn10", "isbn13", "creditcard", "ssn", "hexcolor", "rgbcolor",
            "byte", "password", "date", "duration", "date-time", "k8s-short-name", "k8s-long-name",
        ];
        let schema = parse(&json!({"type": "object", "properties": {
            "f": {"type": "string", "format": FORMATS[format]}, "p": {"type": "string", "pattern": text},
        }}))
        .unwrap();
        let compiled = CompiledSchema::compile(Arc::new(schema), no_metadata_rules);
        compiled.validate_values(Change::Create(&json!({"f": text, "p": text})));
    }
}
