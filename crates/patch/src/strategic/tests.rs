#![expect(
    clippy::needless_pass_by_value,
    reason = "literals read better without a reference"
)]

use serde_json::{Value, json};

use super::*;
use crate::testing::crate_of_bottles;

#[track_caller]
fn check(document: Value, patch: Value, expected: Result<Value, &str>) {
    let actual = apply(document, patch.clone(), &crate_of_bottles());
    match (actual, expected) {
        (Ok(actual), Ok(expected)) => assert_eq!(actual, expected, "{patch}"),
        (Err(error), Err(expected)) => assert_eq!(error.to_string(), expected, "{patch}"),
        (actual, expected) => panic!("{patch}: got {actual:?}, want {expected:?}"),
    }
}

fn spec(spec: Value) -> Value {
    json!({"spec": spec})
}

#[test]
fn items_merge_by_key_and_new_ones_come_first() {
    check(
        spec(json!({"bottles": [{"name": "a", "content": "milk"}, {"name": "b"}]})),
        spec(json!({"bottles": [{"name": "c"}, {"name": "b", "content": "oil"}]})),
        Ok(spec(json!({"bottles": [
            {"name": "c"}, {"name": "a", "content": "milk"}, {"name": "b", "content": "oil"},
        ]}))),
    );
    check(
        spec(json!({"bottles": [{"name": "a"}]})),
        spec(json!({"bottles": [{"name": "d"}]})),
        Ok(spec(json!({"bottles": [{"name": "d"}, {"name": "a"}]}))),
    );
}

#[test]
fn lists_without_a_strategy_are_replaced() {
    check(
        spec(json!({"order": ["a", "b"], "sizes": {"a": "1", "b": "2"}})),
        spec(json!({"order": ["c"], "sizes": {"b": null, "c": "3"}})),
        Ok(spec(json!({"order": ["c"], "sizes": {"a": "1", "c": "3"}}))),
    );
}

#[test]
fn scalars_merge_as_a_set() {
    check(
        spec(json!({"marks": ["a", "b", "c"]})),
        spec(json!({"marks": ["d", "b"]})),
        Ok(spec(json!({"marks": ["d", "a", "b", "c"]}))),
    );
    check(
        spec(json!({"marks": ["a", "b", "c"]})),
        spec(json!({"$deleteFromPrimitiveList/marks": ["b", "x"], "marks": ["d"]})),
        Ok(spec(json!({"marks": ["d", "a", "c"]}))),
    );
}

#[test]
fn patch_directives_delete_and_replace() {
    let document = || spec(json!({"bottles": [{"name": "a"}, {"name": "b"}], "sizes": {"x": "1"}}));
    check(
        document(),
        spec(json!({"bottles": [{"name": "a", "$patch": "delete"}, {"name": "c"}]})),
        Ok(spec(
            json!({"bottles": [{"name": "c"}, {"name": "b"}], "sizes": {"x": "1"}}),
        )),
    );
    check(
        document(),
        spec(json!({"bottles": [{"$patch": "replace"}, {"name": "c"}]})),
        Ok(spec(
            json!({"bottles": [{"name": "c"}], "sizes": {"x": "1"}}),
        )),
    );
    check(
        document(),
        spec(json!({"sizes": {"$patch": "replace", "y": "2"}, "bottles": null})),
        Ok(spec(json!({"sizes": {"y": "2"}}))),
    );
    check(
        document(),
        spec(json!({"sizes": {"$patch": "delete"}, "bottles": null})),
        Ok(spec(json!({"sizes": {}}))),
    );
}

#[test]
fn an_order_arranges_named_items_and_leaves_the_others_where_they_can_be() {
    check(
        spec(json!({"bottles": [{"name": "a"}, {"name": "live"}, {"name": "b"}]})),
        spec(json!({
            "$setElementOrder/bottles": [{"name": "b"}, {"name": "a"}, {"name": "c"}],
            "bottles": [{"name": "c", "content": "wine"}],
        })),
        Ok(spec(json!({"bottles": [
            {"name": "live"}, {"name": "b"}, {"name": "a"}, {"name": "c", "content": "wine"},
        ]}))),
    );
    check(
        spec(json!({"marks": ["a", "b"]})),
        spec(json!({"$setElementOrder/marks": ["c", "b", "a"], "marks": ["c"]})),
        Ok(spec(json!({"marks": ["c", "b", "a"]}))),
    );
}

#[test]
fn an_order_has_to_agree_with_the_patch() {
    check(
        spec(json!({"marks": ["a"]})),
        spec(json!({"$setElementOrder/marks": ["b", "c"], "marks": ["c", "b"]})),
        Err("The order in patch list:\n[c b]\n doesn't match $setElementOrder list:\n[b c]\n"),
    );
    check(
        spec(json!({"marks": ["a"]})),
        spec(json!({"$setElementOrder": ["b"]})),
        Err("invalid patch format of setElementOrder list"),
    );
}

#[test]
fn retained_keys_are_all_that_remains() {
    let document = || spec(json!({"plan": {"kind": "Fast", "fast": {"speed": 3}}}));
    check(
        document(),
        spec(json!({"plan": {"$retainKeys": ["kind"], "kind": "Slow"}})),
        Ok(spec(json!({"plan": {"kind": "Slow"}}))),
    );
    check(
        document(),
        spec(json!({"plan": {"$retainKeys": ["fast"], "kind": "Slow"}})),
        Err("invalid patch format of retainKeys"),
    );
    check(
        document(),
        spec(json!({"plan": {"$retainKeys": "kind"}})),
        Err("invalid patch format of retainKeys"),
    );
}

#[test]
fn nested_lists_merge_too() {
    check(
        spec(
            json!({"bottles": [{"name": "a", "labels": [{"at": 1, "text": "x"}], "notes": ["n"]}]}),
        ),
        spec(
            json!({"bottles": [{"name": "a", "labels": [{"at": 2}, {"at": 1, "text": "y"}], "notes": ["m"]}]}),
        ),
        Ok(spec(json!({"bottles": [{
            "name": "a", "labels": [{"at": 2}, {"at": 1, "text": "y"}], "notes": ["m", "n"],
        }]}))),
    );
}

#[test]
fn metadata_merges_in_every_kind() {
    check(
        json!({"metadata": {"finalizers": ["a"], "ownerReferences": [{"uid": "1", "name": "x"}]}}),
        json!({"metadata": {
            "finalizers": ["b"], "ownerReferences": [{"uid": "2"}, {"uid": "1", "$patch": "delete"}],
        }}),
        Ok(json!({"metadata": {"finalizers": ["b", "a"], "ownerReferences": [{"uid": "2"}]}})),
    );
}

#[test]
fn directives_and_nulls_do_not_reach_the_document() {
    check(
        spec(json!({})),
        spec(json!({
            "sizes": {"$patch": "delete"},
            "bottles": [{"name": "a", "content": null, "$setElementOrder/notes": []}],
            "plan": {"kind": "x", "fast": null},
        })),
        Ok(spec(
            json!({"bottles": [{"name": "a"}], "plan": {"kind": "x"}}),
        )),
    );
}

#[test]
fn refusals_have_the_words_of_kubernetes() {
    let document = || spec(json!({"bottles": [{"name": "a"}], "marks": ["a"]}));
    check(
        document(),
        spec(json!({"bottles": [{"content": "milk"}]})),
        Err("map: map[content:milk] does not contain declared merge key: name"),
    );
    check(
        document(),
        spec(json!({"bottles": ["a"]})),
        Err("list element types are not identical: [[map[name:a]] [a]]"),
    );
    check(
        document(),
        spec(json!({"marks": [["a"]]})),
        Err("list element types are not identical: [[a] [[a]]]"),
    );
    check(
        document(),
        spec(json!({"$patch": "mend"})),
        Err("unknown patch type: mend in map: map[$patch:mend]"),
    );
    check(
        document(),
        spec(json!({"bottles": [{"name": "a", "$patch": "merge"}]})),
        Err("merging lists cannot yet be specified in the patch"),
    );
    check(
        document(),
        spec(json!({"$setElementOrder/nothing": []})),
        Err("unable to find api field in struct  for the json field \"nothing\""),
    );
    check(document(), json!([]), Err("invalid JSON document"));
    check(
        spec(json!({"order": [["a"]], "marks": [["a"]]})),
        spec(json!({"marks": [["b"]]})),
        Err("lists of lists are not supported"),
    );
}

#[test]
fn a_difference_turns_the_one_into_the_other() {
    let original = spec(json!({
        "bottles": [{"name": "a", "content": "milk"}, {"name": "b"}, {"name": "c"}],
        "marks": ["x", "y"], "order": ["1"], "plan": {"kind": "Fast", "fast": {"speed": 1}},
    }));
    let modified = spec(json!({
        "bottles": [{"name": "c"}, {"name": "a", "content": "oil"}, {"name": "d"}],
        "marks": ["z", "x"], "order": ["2"], "plan": {"kind": "Slow"},
    }));
    let patch = diff(&original, &modified, &crate_of_bottles()).unwrap();
    assert_eq!(
        patch,
        spec(json!({
            "$setElementOrder/bottles": [{"name": "c"}, {"name": "a"}, {"name": "d"}],
            "bottles": [
                {"name": "a", "content": "oil"}, {"name": "d"}, {"name": "b", "$patch": "delete"},
            ],
            "$setElementOrder/marks": ["z", "x"],
            "$deleteFromPrimitiveList/marks": ["y"],
            "marks": ["z"],
            "order": ["2"],
            "plan": {"$retainKeys": ["kind"], "kind": "Slow", "fast": null},
        }))
    );
    check(original, patch, Ok(modified));
}

#[test]
fn depth_is_bounded() {
    let mut deep = json!(1);
    for _ in 0..crate::MAX_DEPTH + 10 {
        deep = json!({"a": deep});
    }
    let schema = Schema::default();
    assert_eq!(
        apply(json!({}), deep.clone(), &schema),
        Err(StrategicError::TOO_DEEP)
    );
    assert_eq!(
        apply(deep.clone(), deep.clone(), &schema),
        Err(StrategicError::TOO_DEEP)
    );
}
