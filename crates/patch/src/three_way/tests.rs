#![expect(
    clippy::needless_pass_by_value,
    reason = "literals read better without a reference"
)]

use serde_json::{Value, json};

use super::*;
use crate::strategic;
use crate::testing::crate_of_bottles;

#[test]
fn merge_patch_removes_what_was_applied_and_keeps_what_others_added() {
    let original = json!({"a": 1, "b": {"c": 1, "d": 1}, "l": [1]});
    let modified = json!({"b": {"c": 2}, "l": [1, 2], "e": {}});
    let current = json!({"a": 1, "b": {"c": 1, "d": 1, "other": 1}, "l": [1], "foreign": true});
    let patch = merge_patch(&original, &modified, &current).unwrap();
    assert_eq!(
        patch,
        json!({"a": null, "b": {"c": 2, "d": null}, "l": [1, 2], "e": {}})
    );
    let mut result = current;
    merge::apply(&mut result, patch).unwrap();
    assert_eq!(
        result,
        json!({"b": {"c": 2, "other": 1}, "l": [1, 2], "e": {}, "foreign": true})
    );
}

#[test]
fn drift_is_corrected_and_equality_is_an_empty_patch() {
    let applied = json!({"a": {"b": 1}});
    assert_eq!(
        merge_patch(&applied, &applied, &json!({"a": {"b": 5}, "x": 1})).unwrap(),
        json!({"a": {"b": 1}})
    );
    assert_eq!(
        merge_patch(&applied, &applied, &json!({"a": {"b": 1}, "x": 1})).unwrap(),
        json!({})
    );
}

#[track_caller]
fn check(original: Value, modified: Value, current: Value, patch: Value, result: Value) {
    let schema = crate_of_bottles();
    let actual = strategic_patch(&original, &modified, &current, &schema).unwrap();
    assert_eq!(actual, patch);
    assert_eq!(strategic::apply(current, actual, &schema).unwrap(), result);
}

#[test]
fn strategic_patch_merges_lists_by_key() {
    check(
        json!({"spec": {"bottles": [{"name": "mine"}, {"name": "old"}]}}),
        json!({"spec": {"bottles": [{"name": "mine", "content": "milk"}, {"name": "new"}]}}),
        json!({"spec": {"bottles": [{"name": "injected"}, {"name": "old"}, {"name": "mine", "content": "oil"}]}}),
        json!({"spec": {
            "$setElementOrder/bottles": [{"name": "mine"}, {"name": "new"}],
            "bottles": [
                {"name": "mine", "content": "milk"}, {"name": "new"}, {"name": "old", "$patch": "delete"},
            ],
        }}),
        json!({"spec": {"bottles": [
            {"name": "injected"}, {"name": "mine", "content": "milk"}, {"name": "new"},
        ]}}),
    );
}

#[test]
fn strategic_patch_clears_the_other_members_of_a_union() {
    check(
        json!({"spec": {"plan": {"kind": "Fast", "fast": {"speed": 1}}}}),
        json!({"spec": {"plan": {"kind": "Slow"}}}),
        json!({"spec": {"plan": {"kind": "Fast", "fast": {"speed": 1}}}}),
        json!({"spec": {"plan": {"$retainKeys": ["kind"], "kind": "Slow", "fast": null}}}),
        json!({"spec": {"plan": {"kind": "Slow"}}}),
    );
}

#[test]
fn nothing_was_applied_before() {
    check(
        Value::Null,
        json!({"spec": {"marks": ["a"]}}),
        json!({"spec": {"marks": ["b"], "order": ["x"]}}),
        json!({"spec": {"$setElementOrder/marks": ["a"], "marks": ["a"]}}),
        json!({"spec": {"marks": ["a", "b"], "order": ["x"]}}),
    );
}
