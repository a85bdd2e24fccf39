use serde_json::{Map, json};

use super::*;
use crate::parse;

fn no_metadata_rules(_: &Map<String, Value>, _: &FieldPath<'_>) -> Vec<FieldError> {
    Vec::new()
}

fn compiled() -> CompiledSchema {
    let schema = json!({"type": "object", "properties": {
        "spec": {
            "type": "object",
            "properties": {
                "size": {"type": "integer", "minimum": 1, "default": 3},
                "name": {"type": "string", "maxLength": 3},
                "tags": {"type": "array", "items": {"type": "string"}, "x-kubernetes-list-type": "set"},
                "raw": {"type": "object", "x-kubernetes-embedded-resource": true,
                    "x-kubernetes-preserve-unknown-fields": true},
            },
            "x-kubernetes-validations": [{"rule": "self.size < 10", "message": "too big"}],
        },
        "status": {"type": "object", "properties": {"phase": {"type": "string"}}},
    }});
    CompiledSchema::compile(Arc::new(parse(&schema).unwrap()), no_metadata_rules)
}

fn object(spec: Value) -> Value {
    json!({"apiVersion": "v1", "kind": "K", "metadata": {"name": "n"}, "spec": spec})
}

/// All errors of a change, in the order in which a server reports them.
fn errors(change: Change<'_>) -> Vec<String> {
    let compiled = compiled();
    let mut errors = compiled.validate_values(change);
    let limits = RuleLimits::default();
    compiled
        .validate_rules(change, &mut errors, limits)
        .unwrap();
    errors.iter().map(ToString::to_string).collect()
}

#[track_caller]
fn create(spec: Value, expected: &[&str]) {
    assert_eq!(
        errors(Change::Create(&object(spec.clone()))),
        expected,
        "{spec}"
    );
}

const UNCHECKED: &str = "<nil>: Invalid value: null: some validation rules were not checked because \
    the object was invalid; correct the existing errors to complete validation";

#[test]
fn a_body_becomes_an_object() {
    let mut body = json!({
        "apiVersion": "v1", "kind": "K", "metadata": {"name": "n", "odd": 1, "labels": null}, "more": 1,
        "spec": {"size": null, "name": null, "typo": 1, "raw": {"metadata": {"wrong": 1}, "free": 1}},
    });
    let compiled = compiled();
    let unknown = compiled.coerce(&mut body, Malformed::Refuse).unwrap();
    assert_eq!(
        unknown,
        [
            "metadata.odd",
            "more",
            "spec.typo",
            "spec.raw.metadata.wrong"
        ]
    );
    compiled.default(&mut body).unwrap();
    let expected = object(json!({"size": 3, "raw": {"metadata": {}, "free": 1}}));
    assert_eq!(body, expected);
}

#[test]
fn malformed_metadata_is_refused() {
    let mut body = json!({"metadata": {"name": 3}});
    let error = compiled().coerce(&mut body, Malformed::Refuse).unwrap_err();
    assert_eq!(
        error.to_string(),
        "json: cannot unmarshal number into Go struct field ObjectMeta.name of type string"
    );
}

#[test]
fn rules_wait_for_values_of_the_right_type() {
    create(json!({"size": 11}), &["spec: Invalid value: too big"]);
    create(
        json!({"size": 0}),
        &["spec.size: Invalid value: 0: spec.size in body should be greater than or equal to 1"],
    );
    create(
        json!({"size": 11, "name": "long"}),
        &[
            "spec.name: Too long: may not be more than 3 bytes",
            UNCHECKED,
        ],
    );
    create(
        json!({"size": 1, "raw": {"kind": "K"}}),
        &["spec.raw.apiVersion: Required value", UNCHECKED],
    );
    create(
        json!({"size": 11, "tags": ["a", "a"]}),
        &[
            "spec.tags[1]: Duplicate value: \"a\"",
            "spec: Invalid value: too big",
        ],
    );
}

#[test]
fn duplicates_that_were_there_may_stay() {
    let old = object(json!({"size": 1, "tags": ["a", "a"]}));
    let new = object(json!({"size": 2, "tags": ["a", "a", "b", "b"]}));
    assert_eq!(
        errors(Change::Update {
            new: &new,
            old: &old
        }),
        [""; 0]
    );
    let old = object(json!({"size": 1, "tags": ["a"]}));
    assert_eq!(
        errors(Change::Update {
            new: &new,
            old: &old
        }),
        [
            "spec.tags[1]: Duplicate value: \"a\"",
            "spec.tags[3]: Duplicate value: \"b\""
        ]
    );
}

#[test]
fn a_status_update_is_judged_by_the_status_alone() {
    let old = object(json!({"size": 1, "name": "long"}));
    let mut new = old.clone();
    new["status"] = json!({"phase": 3});
    assert_eq!(
        errors(Change::UpdateStatus {
            new: &new,
            old: &old
        }),
        [
            "status.phase: Invalid value: \"integer\": phase in body must be of type string: \"integer\"",
            UNCHECKED,
        ]
    );
    new["status"] = json!({"phase": "fine"});
    assert_eq!(
        errors(Change::UpdateStatus {
            new: &new,
            old: &old
        }),
        [""; 0]
    );
}

#[test]
fn one_compiled_schema_serves_many_threads() {
    fn shared<T: Send + Sync>(_: &T) {}
    shared(&compiled());
}
