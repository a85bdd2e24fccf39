#![expect(
    clippy::needless_pass_by_value,
    reason = "literals read better without a reference"
)]

use serde_json::{Value, json};

use super::*;

#[track_caller]
fn check(mut document: Value, patch: Value, expected: Value) {
    apply(&mut document, patch.clone()).unwrap();
    assert_eq!(document, expected, "{patch}");
}

#[test]
fn objects_merge_null_removes_and_the_rest_replaces() {
    check(
        json!({"a": {"b": 1, "c": 2}, "d": [1]}),
        json!({"a": {"b": null, "e": {"f": 3}}, "d": [2, 3]}),
        json!({"a": {"c": 2, "e": {"f": 3}}, "d": [2, 3]}),
    );
    check(json!({"a": 1}), json!({"a": {"b": null}}), json!({"a": {}}));
    check(json!({"a": {"b": 1}}), json!({"a": [1]}), json!({"a": [1]}));
    check(json!([1]), json!({"a": 1}), json!({"a": 1}));
    check(json!({"a": 1}), json!("text"), json!("text"));
}

#[test]
fn nulls_inside_a_new_list_are_dropped_as_kubernetes_does() {
    check(
        json!({}),
        json!({"l": [{"a": null, "b": 1}, null]}),
        json!({"l": [{"b": 1}, null]}),
    );
}

#[test]
fn a_difference_turns_the_one_into_the_other() {
    let original = json!({"a": {"b": 1, "c": [1, 2]}, "gone": true});
    let modified = json!({"a": {"b": 2, "c": [1, 2]}, "new": {"x": {}}});
    let patch = diff(&original, &modified).unwrap();
    assert_eq!(
        patch,
        json!({"a": {"b": 2}, "gone": null, "new": {"x": {}}})
    );
    check(original, patch, modified);
}

#[test]
fn depth_is_bounded() {
    let mut deep = json!(1);
    for _ in 0..MAX_DEPTH + 10 {
        deep = json!({"a": deep});
    }
    assert_eq!(apply(&mut json!({}), deep.clone()), Err(TooDeep));
    assert_eq!(diff(&deep, &json!({"a": 1})).map(drop), Ok(()));
}
