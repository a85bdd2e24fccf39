#![expect(
    clippy::needless_pass_by_value,
    reason = "literals read better without a reference"
)]

use serde_json::{Value, json};

use super::*;

#[track_caller]
fn check(document: Value, patch: Value, expected: Result<Value, &str>) {
    let actual = JsonPatch::parse(&patch).and_then(|parsed| parsed.apply(document));
    match (actual, expected) {
        (Ok(actual), Ok(expected)) => assert_eq!(actual, expected, "{patch}"),
        (Err(error), Err(expected)) => assert_eq!(error.to_string(), expected, "{patch}"),
        (actual, expected) => panic!("{patch}: got {actual:?}, want {expected:?}"),
    }
}

#[test]
fn each_operation_does_what_its_name_says() {
    let document = || json!({"a": {"b": 1}, "l": [1, 2, 3]});
    check(
        document(),
        json!([{"op": "add", "path": "/a/c", "value": 2}]),
        Ok(json!({"a": {"b": 1, "c": 2}, "l": [1, 2, 3]})),
    );
    check(
        document(),
        json!([{"op": "add", "path": "/l/1", "value": 9}, {"op": "add", "path": "/l/-", "value": 4}]),
        Ok(json!({"a": {"b": 1}, "l": [1, 9, 2, 3, 4]})),
    );
    check(
        document(),
        json!([{"op": "remove", "path": "/l/0"}]),
        Ok(json!({"a": {"b": 1}, "l": [2, 3]})),
    );
    check(
        document(),
        json!([{"op": "replace", "path": "/a", "value": null}]),
        Ok(json!({"a": null, "l": [1, 2, 3]})),
    );
    check(
        document(),
        json!([{"op": "move", "from": "/a/b", "path": "/l/0"}]),
        Ok(json!({"a": {}, "l": [1, 1, 2, 3]})),
    );
    check(
        document(),
        json!([{"op": "copy", "from": "/l", "path": "/a/b"}]),
        Ok(json!({"a": {"b": [1, 2, 3]}, "l": [1, 2, 3]})),
    );
    check(
        document(),
        json!([{"op": "test", "path": "/l/2", "value": 3}]),
        Ok(document()),
    );
    check(
        document(),
        json!([{"op": "replace", "path": "", "value": {}}]),
        Ok(json!({})),
    );
}

#[test]
fn pointers_are_unescaped_and_may_be_empty_segments() {
    check(
        json!({"a/b": {"~": 1}, "": {"": 2}}),
        json!([{"op": "remove", "path": "/a~1b/~0"}, {"op": "test", "path": "//", "value": 2}]),
        Ok(json!({"a/b": {}, "": {"": 2}})),
    );
    // `~01` is the escaped form of `~1`, not of `/`.
    check(
        json!({"~1": 1}),
        json!([{"op": "remove", "path": "/~01"}]),
        Ok(json!({})),
    );
}

#[test]
fn what_does_not_fit_is_not_applicable() {
    let one = |operation: Value| json!([operation]);
    check(
        json!({"a": 1}),
        one(json!({"op": "test", "path": "/a", "value": 2})),
        Err("testing value /a failed: test failed"),
    );
    check(
        json!({}),
        one(json!({"op": "remove", "path": "/a"})),
        Err("error in remove for path: '/a': Unable to remove nonexistent key: a: missing value"),
    );
    check(
        json!({}),
        one(json!({"op": "add", "path": "/a/b", "value": 1})),
        Err("add operation does not apply: doc is missing path: \"/a/b\": missing value"),
    );
    check(
        json!({"l": []}),
        one(json!({"op": "add", "path": "/l/1", "value": 1})),
        Err(
            "error in add for path: '/l/1': Unable to access invalid index: 1: invalid index referenced",
        ),
    );
    check(
        json!({"l": []}),
        one(json!({"op": "add", "path": "/l/x", "value": 1})),
        Err(
            "error in add for path: '/l/x': value was not a proper array index: 'x': \
             strconv.Atoi: parsing \"x\": invalid syntax",
        ),
    );
    check(
        json!({}),
        one(json!({"op": "jump", "path": "/a"})),
        Err("Unexpected kind: jump"),
    );
    check(
        json!({}),
        one(json!({"op": "move", "path": "/a"})),
        Err("move operation failed to decode from: operation, missing from field: missing value"),
    );
    check(
        json!({"a": 1}),
        one(json!({"op": "remove", "path": "a"})),
        Err("remove operation does not apply: doc is missing path: \"a\": missing value"),
    );
}

#[test]
fn leniencies_of_kubernetes_are_kept() {
    check(
        json!({"a": {}}),
        json!([{"op": "replace", "path": "/a/b", "value": 1}]),
        Ok(json!({"a": {"b": 1}})),
    );
    check(
        json!({"l": [1, 2]}),
        json!([{"op": "remove", "path": "/l/-1"}]),
        Ok(json!({"l": [1]})),
    );
    check(
        json!({}),
        json!([{"op": "test", "path": "/absent", "value": null}]),
        Ok(json!({})),
    );
    check(
        json!({}),
        json!([{"op": "copy", "from": "/absent", "path": "/a"}]),
        Ok(json!({"a": null})),
    );
    check(json!({}), json!(null), Ok(json!({})));
}

#[test]
fn malformed_patches_are_told_from_inapplicable_ones() {
    let parse = |patch: Value| JsonPatch::parse(&patch).unwrap_err();
    let malformed = |text: &str| JsonPatchError::Malformed(text.to_owned());
    assert_eq!(
        parse(json!({})),
        malformed(
            "error decoding patch: json: cannot unmarshal object into Go value of type []handlers.jsonPatchOp"
        )
    );
    assert_eq!(
        parse(json!(["x"])),
        malformed(
            "error decoding patch: json: cannot unmarshal string into Go value of type handlers.jsonPatchOp"
        )
    );
    assert_eq!(
        parse(json!([{"op": 1}])),
        malformed(
            "error decoding patch: json: cannot unmarshal number into Go struct field jsonPatchOp.op of type string"
        )
    );
    let many = vec![json!({"op": "test", "path": ""}); MAX_OPERATIONS + 1];
    assert_eq!(
        parse(Value::Array(many)),
        JsonPatchError::TooManyOperations(MAX_OPERATIONS + 1)
    );
}

#[test]
fn unknown_members_are_reported_for_strict_validation() {
    let patch = json!([{"op": "test", "path": "/a", "value": null, "colour": "red"}]);
    let patch = JsonPatch::parse(&patch).unwrap();
    assert_eq!(
        patch.warnings(),
        ["json patch unknown field \"[0].colour\""]
    );
}

#[test]
fn copying_cannot_blow_up_a_document() {
    let double = json!({"op": "copy", "from": "/a", "path": "/a/-"});
    let patch = JsonPatch::parse(&Value::Array(vec![double; 60])).unwrap();
    let error = patch
        .apply(json!({"a": ["some text to start with"]}))
        .unwrap_err();
    assert!(
        error.to_string().starts_with("Unable to complete the copy"),
        "{error}"
    );
}

#[test]
fn a_patch_is_applied_as_a_whole_or_not_at_all() {
    let document = json!({"a": 1});
    let patch = json!([{"op": "remove", "path": "/a"}, {"op": "test", "path": "/b", "value": 1}]);
    assert!(
        JsonPatch::parse(&patch)
            .unwrap()
            .apply(document.clone())
            .is_err()
    );
    assert_eq!(document, json!({"a": 1}));
}

#[test]
fn operations_are_found_at_their_places_and_can_be_moved_to_others() {
    let patch = |value: Value| JsonPatch::parse(&value).unwrap();
    let two = patch(json!([
        {"op": "test", "path": "/a~1b/7/c~0d", "value": 1},
        {"op": "add", "path": "/x/-", "value": 2},
    ]));
    let places = two.places().unwrap();
    assert_eq!(places[0].segments, ["a/b", "7", "c~d"]);
    let resizes: Vec<bool> = places.iter().map(|it| it.adds_or_removes).collect();
    assert_eq!(resizes, [false, true]);
    assert_eq!(two.at_places(&places), two);
    let mut others = places;
    others[0].segments[1] = "0".to_owned();
    let document = json!({"a/b": [{"c~d": 1}], "x": []});
    let moved = two.at_places(&others).apply(document);
    assert_eq!(moved.unwrap()["x"], json!([2]));
    for operation in [
        json!({"op": "move", "from": "/a", "path": "/b"}),
        json!({"op": "copy", "from": "/a", "path": "/b"}),
        json!({"op": "replace", "path": "", "value": {}}),
        json!({"op": "test", "path": "a"}),
        json!({"op": "add", "value": 1}),
    ] {
        assert_eq!(patch(json!([operation])).places(), None, "{operation}");
    }
}
