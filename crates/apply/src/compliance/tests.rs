//! Tables for the rules by which objects are compared, and for what is written.

use proptest::prelude::*;
use proptest::strategy::Strategy as _;
use serde_json::{Value, json};

use super::*;
use crate::manifest::Manifest;
use crate::ownership::Ownership;
use crate::plan::{plan as decide, remember};
use crate::target::{Drift, Strategy};

const HAVE: Duty = Duty::MustHave;
const ONLY: Duty = Duty::MustOnlyHave;
const NOT: Duty = Duty::MustNotHave;

/// Compares an object of a kind with this spec with a definition that has this spec.
fn compare_spec(duty: Duty, template: &Value, live: &Value) -> Result<Comparison, String> {
    let object = |spec: &Value| {
        let mut object = json!({
            "apiVersion": "example.org/v1", "kind": "Ship", "metadata": {"name": "s"}});
        if !spec.is_null() {
            object["spec"] = spec.clone();
        }
        object
    };
    compare(&object(template), &object(live), Rule::of(duty))
}

/// Checks what a definition is merged to, and whether that is an update. A server decides only where
/// zero values are involved.
#[track_caller]
fn merges(duty: Duty, template: Value, live: Value, merged: &Value, verdict: &str) {
    let found = compare_spec(duty, &template, &live).unwrap();
    assert_eq!(found.merged["spec"], *merged, "{template} over {live}");
    let actual = match (found.needs_update, found.is_missing) {
        (true, _) => "update",
        (false, true) => "server decides",
        (false, false) => "same",
    };
    assert_eq!(actual, verdict, "{template} over {live}");
}

#[test]
fn lists_keep_what_is_live_behind_what_is_defined() {
    let list = |items: Value| json!({ "l": items });
    let check = |template: Value, live: Value, merged: Value, verdict: &str| {
        merges(HAVE, list(template), list(live), &list(merged), verdict);
    };
    check(json!([1, 2]), json!([2, 1, 3]), json!([1, 2, 3]), "same");
    check(json!([1, 1]), json!([1]), json!([1, 1]), "update");
    check(json!([1]), json!([1, 1]), json!([1, 1]), "same");
    check(json!(["x "]), json!(["x"]), json!(["x ", "x"]), "update");
    check(json!([4]), json!([]), json!([4]), "update");
    check(json!([]), json!([4]), json!([4]), "same");
    check(
        json!([{"name": "a", "v": 1}]),
        json!([{"name": "a", "v": 2, "x": 9}]),
        json!([{"name": "a", "v": 1, "x": 9}]),
        "update",
    );
    check(
        json!([{"port": 80}]),
        json!([{"port": 80, "protocol": "TCP"}]),
        json!([{"port": 80, "protocol": "TCP"}]),
        "same",
    );
    check(
        json!([{"name": "b"}]),
        json!([{"name": "a"}]),
        json!([{"name": "b"}, {"name": "a"}]),
        "update",
    );
    // The order of lists in lists counts, but such an item is still the same item.
    check(json!([[1, 2]]), json!([[2, 1]]), json!([[1, 2]]), "update");
    check(
        json!(["500m"]),
        json!(["0.5"]),
        json!(["500m", "0.5"]),
        "update",
    );
}

#[test]
fn texts_are_compared_as_quantities_only_where_both_are_texts() {
    let check = |template: Value, live: Value, verdict: &str| {
        let (template, live) = (json!({ "v": template }), json!({ "v": live }));
        merges(HAVE, template.clone(), live, &template, verdict);
    };
    check(json!("500m"), json!("0.5"), "same");
    check(json!("1Gi"), json!("1024Mi"), "same");
    check(json!("1Gi"), json!("1G"), "update");
    check(json!("1"), json!(1), "update");
    check(json!(1), json!("1"), "same");
    check(json!(1), json!("1000m"), "update");
    check(json!(true), json!("true"), "same");
    check(json!("on"), json!("off"), "update");
}

#[test]
fn a_server_decides_about_zero_values() {
    let check = |template: Value, verdict: &str| {
        let template = json!({ "v": template });
        merges(HAVE, template.clone(), json!({}), &template, verdict);
    };
    check(json!(0), "server decides");
    check(json!(false), "server decides");
    check(json!([]), "server decides");
    check(json!(null), "server decides");
    check(json!(""), "update");
    check(json!({}), "update");
    check(json!(1), "update");
}

#[test]
fn null_does_not_care_about_maps() {
    merges(
        HAVE,
        json!({"a": null}),
        json!({"a": {"x": 1}}),
        &json!({"a": {"x": 1}}),
        "same",
    );
    let null = json!({"a": null});
    merges(HAVE, null.clone(), json!({"a": 5}), &null, "update");
}

#[test]
fn must_only_have_replaces_keys_and_removes_others() {
    merges(
        ONLY,
        json!({"a": 1}),
        json!({"a": 1, "b": 2}),
        &json!({"a": 1}),
        "update",
    );
    merges(
        ONLY,
        json!({"l": [2, 1]}),
        json!({"l": [1, 2]}),
        &json!({"l": [2, 1]}),
        "same",
    );
    let found = compare_spec(ONLY, &Value::Null, &json!({"a": 1})).unwrap();
    assert!(found.needs_update && found.merged.get("spec").is_none());
}

#[test]
fn an_empty_list_asks_for_nothing() {
    let none = || json!({"a": []});
    merges(HAVE, none(), json!({"a": "500m"}), &none(), "same");
    merges(ONLY, none(), json!({}), &none(), "same");
    merges(HAVE, none(), json!({}), &none(), "server decides");
}

#[test]
fn a_zero_value_in_an_item_of_a_list_is_absent_only_below_the_top() {
    let template = json!([{"key": 80, "f": false}]);
    let live = json!([{"key": 80}]);
    merges(HAVE, template.clone(), live.clone(), &template, "update");
    let below = |list: &Value| json!({ "l": list });
    merges(
        HAVE,
        below(&template),
        below(&live),
        &below(&template),
        "server decides",
    );
}

#[test]
fn labels_and_annotations_that_are_not_defined_stay() {
    let live = json!({
        "apiVersion": "example.org/v1", "kind": "Ship",
        "metadata": {"name": "s", "labels": {"a": "b"}, "annotations": {"c": "d"}}, "spec": 1});
    let desired = json!({
        "apiVersion": "example.org/v1", "kind": "Ship", "metadata": {"name": "s"}, "spec": 2});
    let found = compare(&desired, &live, Rule::of(ONLY)).unwrap();
    assert!(found.needs_update);
    assert_eq!(found.merged["metadata"], live["metadata"]);
}

#[test]
fn a_type_that_does_not_fit_is_an_error_only_at_the_top() {
    let found = compare_spec(HAVE, &json!([1]), &json!({"a": 1}));
    let error = "Error merging changes into key \"spec\": object type of template and existing do not match";
    assert_eq!(found.unwrap_err(), error);
    let template = json!({"a": {"b": 1}});
    merges(
        HAVE,
        template.clone(),
        json!({"a": [1]}),
        &template,
        "update",
    );
}

#[test]
fn labels_follow_their_own_compliance_type() {
    let check = |metadata: Option<Duty>, needs_update: bool| {
        let object = |labels: Value| json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p", "labels": labels}});
        let rule = Rule {
            duty: HAVE,
            metadata,
        };
        let found = compare(
            &object(json!({"a": "b"})),
            &object(json!({"a": "b", "c": "d"})),
            rule,
        );
        assert_eq!(found.unwrap().needs_update, needs_update, "{metadata:?}");
    };
    check(None, false);
    check(Some(HAVE), false);
    check(Some(ONLY), true);
}

#[test]
fn of_metadata_only_labels_and_annotations_that_are_defined_take_part() {
    let object = |kind: &str, metadata: Value| {
        let mut object = json!({"apiVersion": "v1", "kind": kind, "metadata": {"name": "x"}});
        for (name, value) in metadata.as_object().into_iter().flatten() {
            object["metadata"][name] = value.clone();
        }
        object
    };
    let check = |duty: Duty, kind: &str, template: Value, live: Value, needs_update: bool| {
        let found = compare(
            &object(kind, template.clone()),
            &object(kind, live.clone()),
            Rule::of(duty),
        );
        let found = found.unwrap().needs_update;
        assert_eq!(
            found, needs_update,
            "{duty:?} {kind} {template} over {live}"
        );
    };
    let last = "kubectl.kubernetes.io/last-applied-configuration";
    let scc = "openshift.io/sa.scc.mcs";
    let labels = |labels: Value| json!({ "labels": labels });
    let annotations = |annotations: Value| json!({ "annotations": annotations });
    let a = || json!({"a": "b"});
    // What is not defined is not compared.
    check(HAVE, "Pod", json!({}), labels(a()), false);
    check(ONLY, "Pod", json!({}), labels(a()), false);
    check(
        ONLY,
        "Pod",
        labels(a()),
        json!({"labels": a(), "annotations": a()}),
        false,
    );
    check(HAVE, "Pod", labels(a()), labels(json!({})), true);
    check(HAVE, "Pod", labels(a()), labels(json!({"a": "c"})), true);
    // Nor is what servers and kubectl write.
    check(
        HAVE,
        "Pod",
        json!({"finalizers": ["x"], "generateName": "y"}),
        json!({}),
        false,
    );
    // Without that of kubectl no annotations are defined, which only a server can tell from none.
    check(
        HAVE,
        "Pod",
        annotations(json!({last: "{}"})),
        json!({}),
        true,
    );
    check(
        ONLY,
        "Pod",
        annotations(a()),
        annotations(json!({"a": "b", last: "{}"})),
        false,
    );
    check(
        ONLY,
        "Pod",
        json!({}),
        json!({"generation": 7, "managedFields": []}),
        false,
    );
    // Only namespaces keep what OpenShift sets.
    check(
        ONLY,
        "Namespace",
        annotations(a()),
        annotations(json!({"a": "b", scc: "s0"})),
        false,
    );
    check(
        ONLY,
        "Pod",
        annotations(a()),
        annotations(json!({"a": "b", scc: "s0"})),
        true,
    );
    for (side, value) in [("labels", json!(1)), ("annotations", json!(true))] {
        let wrong = compare(
            &object("Pod", json!({side: {"a": value}})),
            &object("Pod", json!({})),
            Rule::of(HAVE),
        );
        let what = side.trim_end_matches('s');
        assert!(
            wrong
                .unwrap_err()
                .starts_with(&format!("invalid {what}, error: "))
        );
    }
}

#[test]
fn some_keys_of_some_kinds_are_special() {
    let object = |kind: &str, rest: Value| {
        let mut object = json!({"apiVersion": "v1", "kind": kind, "metadata": {"name": "x"}});
        for (name, value) in rest.as_object().into_iter().flatten() {
            object[name] = value.clone();
        }
        object
    };
    let check = |duty: Duty, kind: &str, template: Value, live: Value, needs_update: bool| {
        let found = compare(
            &object(kind, template.clone()),
            &object(kind, live.clone()),
            Rule::of(duty),
        );
        let found = found.unwrap().needs_update;
        assert_eq!(
            found, needs_update,
            "{duty:?} {kind} {template} over {live}"
        );
    };
    // What is written as text is compared with what is stored.
    let hush = json!({"data": {"p": "aHVzaA=="}});
    check(
        HAVE,
        "Secret",
        json!({"stringData": {"p": "hush"}}),
        hush.clone(),
        false,
    );
    check(
        HAVE,
        "Secret",
        json!({"stringData": {"p": "loud"}}),
        hush,
        true,
    );
    // Top-level keys that are not defined go, but for those that servers fill in.
    let filled = json!({"secrets": [{"name": "t"}], "imagePullSecrets": [{"name": "t"}], "status": {"a": 1}});
    check(ONLY, "ServiceAccount", json!({}), filled.clone(), false);
    check(
        ONLY,
        "ConfigMap",
        json!({}),
        json!({"status": {"a": 1}}),
        false,
    );
    check(
        ONLY,
        "ConfigMap",
        json!({}),
        json!({"data": {"a": "1"}}),
        true,
    );
    check(
        HAVE,
        "ConfigMap",
        json!({}),
        json!({"data": {"a": "1"}}),
        false,
    );
    check(ONLY, "Pod", json!({}), filled, true);
}

#[test]
fn zero_values_are_absent_where_no_server_is_asked() {
    let object =
        |spec: Value| json!({"apiVersion": "example.org/v1", "kind": "Ship", "spec": spec});
    let check = |template: Value, live: Value, expected: bool| {
        let found = matches(&object(template.clone()), &object(live.clone()), HAVE);
        assert_eq!(found, expected, "{template} against {live}");
    };
    check(json!({"a": {}}), json!({}), true);
    check(json!({"a": 0}), json!({}), true);
    check(json!({"l": [{"b": {}}]}), json!({"l": [{}]}), true);
    check(json!({"a": 1}), json!({}), false);
    check(json!({"a": 1}), json!({"a": 1, "b": 2}), true);
    check(json!({"a": "0.5"}), json!({"a": "500m"}), true);
}

fn config_map(data: Value) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "m", "namespace": "n"}, "data": data})
}

fn living(data: Value) -> Value {
    let mut object = config_map(data);
    object["metadata"]["uid"] = json!("u");
    object["metadata"]["resourceVersion"] = json!("7");
    object
}

/// What is done to an object of this data by a definition of that data.
fn step(duty: Duty, definition: &Value, live: Live<'_>) -> Step {
    let manifest = Manifest::read(0, definition).unwrap();
    let strategy = Strategy::Comply(Rule::of(duty));
    decide(&target(&manifest, &strategy, None), live).unwrap()
}

fn target<'a>(
    manifest: &'a Manifest,
    strategy: &'a Strategy<'a>,
    baseline: Option<&'a crate::Baseline>,
) -> Target<'a> {
    Target {
        manifest,
        strategy,
        drift: Drift::Undo,
        ownership: Ownership::None,
        baseline,
        applied_before: false,
    }
}

#[test]
fn what_is_missing_is_created_and_what_must_not_be_is_deleted() {
    let definition = config_map(json!({"k": "v"}));
    let live = living(json!({"k": "w", "l": "x"}));
    for duty in [HAVE, ONLY] {
        let created = step(duty, &definition, Live::Absent);
        assert_eq!(created, Step::Create(definition.clone()), "{duty:?}");
        assert_eq!(step(duty, &definition, Live::Unknown), Step::Read);
    }
    assert_eq!(step(NOT, &definition, Live::Absent), Step::Leave);
    let deleted = Step::Delete {
        uid: "u".to_owned(),
    };
    assert_eq!(step(NOT, &definition, Live::Present(&live)), deleted);
}

#[test]
fn what_differs_is_replaced_by_what_was_merged() {
    let definition = config_map(json!({"k": "v"}));
    let live = living(json!({"k": "w", "l": "x"}));
    let merged = Step::Replace(living(json!({"k": "v", "l": "x"})));
    assert_eq!(step(HAVE, &definition, Live::Present(&live)), merged);
    let only = Step::Replace(living(json!({"k": "v"})));
    assert_eq!(step(ONLY, &definition, Live::Present(&live)), only);
    let right = living(json!({"k": "v", "l": "x"}));
    assert_eq!(step(HAVE, &definition, Live::Present(&right)), Step::Leave);
}

#[test]
fn what_the_server_made_of_zero_values_is_not_written_again() {
    let object = |spec: Value| {
        json!({"apiVersion": "example.org/v1", "kind": "Ship",
            "metadata": {"name": "s", "namespace": "n"}, "spec": spec})
    };
    let definition = object(json!({"size": 3, "paused": false}));
    let live = object(json!({"size": 3}));
    let manifest = Manifest::read(0, &definition).unwrap();
    let strategy = Strategy::Comply(Rule::of(HAVE));
    let first = target(&manifest, &strategy, None);
    let Step::Replace(_) = decide(&first, Live::Present(&live)).unwrap() else {
        panic!("only the server can tell");
    };
    let baseline = remember(&first, &live);
    let second = target(&manifest, &strategy, Some(&baseline));
    assert_eq!(decide(&second, Live::Present(&live)).unwrap(), Step::Leave);
    let drifted = object(json!({"size": 4}));
    let repaired = decide(&second, Live::Present(&drifted)).unwrap();
    assert!(matches!(repaired, Step::Replace(_)));
}

#[test]
fn a_wrong_status_is_for_others_to_write() {
    let mut definition = config_map(json!({"k": "v"}));
    definition["status"] = json!({"phase": "Ready"});
    let mut live = living(json!({"k": "v"}));
    live["status"] = json!({"phase": "Waiting"});
    let found = compare(&definition, &live, Rule::of(HAVE)).unwrap();
    assert!(found.is_status_wrong && !found.needs_update && !found.complies());
    assert_eq!(step(HAVE, &definition, Live::Present(&live)), Step::Leave);
}

fn value() -> impl proptest::strategy::Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        (0_i64..3).prop_map(Value::from),
        "[ab01]{0,2}".prop_map(Value::from),
    ];
    leaf.prop_recursive(3, 16, 3, |inner| {
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..3).prop_map(Value::from),
            proptest::collection::btree_map("name|[a-c]", inner, 0..3).prop_map(|map| json!(map)),
        ]
    })
}

proptest! {
    #[test]
    fn what_was_merged_complies(template in value(), live in value(), is_only in any::<bool>()) {
        let duty = if is_only { ONLY } else { HAVE };
        if let Ok(found) = compare_spec(duty, &template, &live) {
            let again = compare_spec(duty, &template, &found.merged["spec"]);
            let is_settled = again.as_ref().is_ok_and(|again| !again.needs_update);
            prop_assert!(is_settled, "{} over {} is {}: {:?}", template, live, found.merged, again);
        }
    }

    #[test]
    fn an_object_complies_with_itself(object in value()) {
        for duty in [HAVE, ONLY] {
            let found = compare_spec(duty, &object, &object).unwrap();
            prop_assert!(!found.needs_update, "{object}");
        }
    }
}
