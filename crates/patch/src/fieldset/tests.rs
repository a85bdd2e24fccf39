#![expect(
    clippy::needless_pass_by_value,
    reason = "literals read better without a reference"
)]

use serde_json::{Value, json};

use super::*;

fn read(fields: Value) -> FieldSet {
    FieldSet::from_json(&fields).unwrap()
}

#[test]
fn the_wire_form_survives_a_round_trip() {
    let fields = json!({
        "f:metadata": {"f:labels": {".": {}, "f:app": {}}},
        "f:spec": {
            "f:parts": {"k:{\"name\":\"a\"}": {".": {}, "f:size": {}}},
            "f:tags": {"v:\"x\"": {}, "v:3": {}, "v:true": {}},
            "f:old": {"i:0": {}},
        },
    });
    assert_eq!(read(fields.clone()).to_json(), fields);
}

#[test]
fn text_has_the_order_of_kubernetes() {
    let set = read(json!({
        "f:ports": {
            "k:{\"port\":8080}": {}, "k:{\"port\":80}": {}, "k:{\"port\":443}": {},
            "i:2": {}, "v:\"z\"": {}, "f:b": {}, ".": {},
        },
        "f:a&b": {},
    }));
    let expected = concat!(
        r#"{"f:a\u0026b":{},"f:ports":{".":{},"f:b":{},"#,
        r#""k:{\"port\":80}":{},"k:{\"port\":443}":{},"k:{\"port\":8080}":{},"v:\"z\"":{},"i:2":{}}}"#
    );
    assert_eq!(set.to_json_text(), expected);
}

#[test]
fn keys_are_written_in_one_order_whatever_order_they_came_in() {
    let set = read(json!({"k:{\"protocol\":\"TCP\",\"port\":80}": {}}));
    assert_eq!(
        set.to_json(),
        json!({"k:{\"port\":80,\"protocol\":\"TCP\"}": {}})
    );
}

#[test]
fn elements_of_a_future_version_are_skipped() {
    assert_eq!(
        read(json!({"x:new": {}, "f:a": {}})),
        read(json!({"f:a": {}}))
    );
}

#[test]
fn what_cannot_be_read_says_why() {
    let error = |fields: Value| FieldSet::from_json(&fields).unwrap_err().to_string();
    assert_eq!(
        error(json!({"f": {}})),
        "error decoding set: parsing key as path element: key must be 2 characters long:"
    );
    assert_eq!(
        error(json!({"field": {}})),
        "error decoding set: parsing key as path element: missing colon: field"
    );
    assert_eq!(
        error(json!("x")),
        "error decoding set: expect { or n, but found \""
    );
    assert!(error(json!({"k:[1]": {}})).contains("key is not an object"));
    assert!(error(json!({"i:x": {}})).contains("strconv.Atoi"));
    let mut deep = json!({});
    for _ in 0..MAX_DEPTH + 2 {
        deep = json!({"f:a": deep});
    }
    assert_eq!(FieldSet::from_json(&deep), Err(FieldSetError::TooDeep));
}

#[test]
fn differences_respect_or_ignore_children() {
    let set = read(json!({"f:a": {".": {}, "f:b": {".": {}, "f:c": {}}}, "f:d": {}}));
    let parent = read(json!({"f:a": {}}));
    assert_eq!(
        set.difference(&parent).to_json(),
        json!({"f:a": {"f:b": {".": {}, "f:c": {}}}, "f:d": {}})
    );
    assert_eq!(
        set.recursive_difference(&parent).to_json(),
        json!({"f:d": {}})
    );
    let child = read(json!({"f:a": {"f:b": {}}}));
    assert_eq!(
        set.difference(&child).to_json(),
        json!({"f:a": {".": {}, "f:b": {"f:c": {}}}, "f:d": {}})
    );
    assert_eq!(
        set.recursive_difference(&child).to_json(),
        json!({"f:a": {}, "f:d": {}})
    );
}

#[test]
fn leaves_are_the_paths_with_nothing_below() {
    let set = read(json!({"f:a": {".": {}, "f:b": {".": {}, "f:c": {}}}, "f:d": {}}));
    assert_eq!(
        set.leaves().to_json(),
        json!({"f:a": {"f:b": {"f:c": {}}}, "f:d": {}})
    );
}

#[test]
fn paths_read_as_in_conflicts() {
    let set = read(json!({
        "f:spec": {
            "f:ports": {"k:{\"port\":80,\"protocol\":\"TCP\"}": {".": {}, "f:note": {}}},
            "f:tags": {"v:\"a\\\"b\"": {}, "v:1.5": {}},
            "f:list": {"i:3": {}},
        },
        "f:top": {},
    }));
    let paths: Vec<String> = set.paths().iter().map(ToString::to_string).collect();
    assert_eq!(
        paths,
        [
            ".top",
            ".spec.list[3]",
            ".spec.ports[port=80,protocol=\"TCP\"]",
            ".spec.ports[port=80,protocol=\"TCP\"].note",
            ".spec.tags[=1.5]",
            ".spec.tags[=\"a\\\"b\"]",
        ]
    );
}

#[test]
fn membership_counts_paths_not_prefixes() {
    let set = FieldSet::of_fields(&[&["a", "b"], &["c"]]);
    assert_eq!(set.len(), 2);
    assert!(set.contains(&Path::fields(["a", "b"]).0));
    assert!(!set.contains(&Path::fields(["a"]).0));
    assert!(!set.contains(&[]));
    assert!(set.is_subset(&FieldSet::of_fields(&[&["a", "b"], &["c"], &["d"]])));
    assert!(!set.is_subset(&FieldSet::of_fields(&[&["a"], &["c"]])));
}

#[test]
fn numbers_that_are_equal_are_the_same_item() {
    let one = read(json!({"v:1": {}}));
    let also_one = read(json!({"v:1.0": {}}));
    assert_eq!(one, also_one);
    assert_eq!(one.union(also_one).len(), 1);
}
