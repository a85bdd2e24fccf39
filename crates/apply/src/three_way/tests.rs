use super::*;
use crate::manifest::Manifest;
use crate::ownership::Ownership;
use crate::plan::plan;
use crate::target::{Drift, Strategy};

const ANNOTATION: &str = "example.com/last-applied";

fn settings(recreate: &[String]) -> ThreeWay<'_> {
    ThreeWay {
        annotation: Some(ANNOTATION),
        recorded: None,
        fallback: Some("other.example/last-applied"),
        recreate,
        replace: false,
    }
}

fn step(object: &Value, settings: ThreeWay<'_>, live: Live<'_>) -> Step {
    let manifest = Manifest::read(0, object).unwrap();
    let strategy = Strategy::ThreeWay(settings);
    let target = Target {
        manifest: &manifest,
        strategy: &strategy,
        drift: Drift::Undo,
        ownership: Ownership::None,
        baseline: None,
        applied_before: false,
    };
    plan(&target, live).unwrap()
}

fn deployment(image: &str) -> Value {
    json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "d", "namespace": "n"},
        "spec": {"template": {"spec": {"containers": [{"name": "main", "image": image}]}}}})
}

/// What the server has after an object was applied and others added to it.
fn stored(object: &Value) -> Value {
    let mut live = with_last_applied(object.clone(), ANNOTATION);
    live["metadata"]["uid"] = json!("u");
    live["metadata"]["resourceVersion"] = json!("7");
    live["spec"]["replicas"] = json!(3);
    live
}

#[test]
fn what_is_missing_is_created_with_what_was_applied() {
    let object = deployment("a<b");
    let Step::Create(created) = step(&object, settings(&[]), Live::Absent) else {
        panic!();
    };
    let text = created["metadata"]["annotations"][ANNOTATION]
        .as_str()
        .unwrap();
    assert!(text.ends_with("}\n"), "{text}");
    assert!(text.contains(r"a\u003cb"), "as Go writes it: {text}");
    let again: Value = serde_json::from_str(text).unwrap();
    assert_eq!(again["spec"], object["spec"]);
    // What may not be there yet is created; if it exists after all, the server says so.
    assert_eq!(
        step(&object, settings(&[]), Live::Unknown),
        Step::Create(created.clone())
    );
}

#[test]
fn lists_of_built_in_kinds_are_merged_by_their_keys() {
    let (before, after) = (deployment("a"), deployment("b"));
    let mut live = stored(&before);
    let sidecar = json!({"name": "sidecar", "image": "s"});
    let containers = &mut live["spec"]["template"]["spec"]["containers"];
    containers.as_array_mut().unwrap().push(sidecar);
    assert_eq!(
        step(&before, settings(&[]), Live::Present(&live)),
        Step::Leave
    );
    let Step::Patch(patch) = step(&after, settings(&[]), Live::Present(&live)) else {
        panic!();
    };
    assert!(patch.is_strategic);
    let containers = &patch.content["spec"]["template"]["spec"]["containers"];
    assert_eq!(*containers, json!([{"name": "main", "image": "b"}]));
}

#[test]
fn what_was_applied_and_is_no_longer_wanted_is_removed_from_custom_resources() {
    let bird = |spec: Value| {
        json!({"apiVersion": "zoo.example/v1", "kind": "Bird",
        "metadata": {"name": "b"}, "spec": spec})
    };
    let live = stored(&bird(json!({"song": "la", "size": 1})));
    let wanted = bird(json!({"size": 2}));
    let Step::Patch(patch) = step(&wanted, settings(&[]), Live::Present(&live)) else {
        panic!();
    };
    assert!(!patch.is_strategic);
    assert_eq!(patch.content["spec"], json!({"song": null, "size": 2}));
}

#[test]
fn the_annotation_of_another_client_is_read_where_ours_is_missing() {
    let check = |name: &str, expected: Value| {
        let before = json!({"apiVersion": "zoo.example/v1", "kind": "Bird",
            "metadata": {"name": "b"}, "spec": {"song": "la"}});
        let live = with_last_applied(before.clone(), name);
        let mut wanted = before;
        wanted["spec"] = json!({});
        let Step::Patch(patch) = step(&wanted, settings(&[]), Live::Present(&live)) else {
            panic!();
        };
        assert_eq!(patch.content.get("spec"), expected.get("spec"), "{name}");
    };
    check(
        "other.example/last-applied",
        json!({"spec": {"song": null}}),
    );
    check("unknown.example/last-applied", json!({}));
}

#[test]
fn an_object_that_differs_in_a_fixed_field_is_made_again() {
    let check = |path: &str, expected: bool| {
        let live = stored(&deployment("a"));
        let paths = [path.to_owned()];
        let found = step(&deployment("b"), settings(&paths), Live::Present(&live));
        let is_new = matches!(&found, Step::Recreate { uid, .. } if uid == "u");
        assert_eq!(is_new, expected, "{path}: {found:?}");
    };
    check("spec.template.spec.containers[0].image", true);
    check("metadata.name", false);
    check("spec.replicas", false);
}

#[test]
fn an_object_may_be_replaced_instead() {
    let settings = ThreeWay {
        replace: true,
        ..settings(&[])
    };
    let live = stored(&deployment("a"));
    assert_eq!(
        step(&deployment("a"), settings, Live::Present(&live)),
        Step::Leave
    );
    let Step::Replace(object) = step(&deployment("b"), settings, Live::Present(&live)) else {
        panic!();
    };
    assert_eq!(object["metadata"]["resourceVersion"], "7");
    assert_eq!(object["spec"].get("replicas"), None, "it is replaced whole");
}

#[test]
fn what_the_caller_recorded_is_used_where_nothing_is_annotated() {
    let map = |data: Value| {
        json!({"apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"name": "m", "namespace": "n"}, "data": data})
    };
    let before = map(json!({"a": "1", "b": "2"}));
    let settings = ThreeWay {
        annotation: None,
        recorded: Some(&before),
        ..settings(&[])
    };
    let mut live = before.clone();
    live["data"]["foreign"] = json!("x");
    let Step::Patch(patch) = step(&map(json!({"a": "1"})), settings, Live::Present(&live)) else {
        panic!();
    };
    assert_eq!(patch.content, json!({"data": {"b": null}}));
}

#[test]
fn a_text_that_is_too_long_for_an_annotation_is_left_out() {
    let object = deployment(&"x".repeat(ANNOTATION_LIMIT));
    let Step::Create(created) = step(&object, settings(&[]), Live::Absent) else {
        panic!();
    };
    assert_eq!(created["metadata"].get("annotations"), Some(&json!({})));
}
