use serde_json::json;

use super::*;
use crate::manifest::Manifest;
use crate::ownership::Ownership;
use crate::plan::plan;
use crate::target::{Drift, Strategy};

const MUST_HAVE: Compliance = Compliance {
    object: ComplianceType::MustHave,
    metadata: ComplianceType::MustHave,
};
const MUST_ONLY_HAVE: Compliance = Compliance {
    object: ComplianceType::MustOnlyHave,
    metadata: ComplianceType::MustOnlyHave,
};
const MUST_NOT_HAVE: Compliance = Compliance {
    object: ComplianceType::MustNotHave,
    metadata: ComplianceType::MustHave,
};

/// What a comparison comes to, in a word.
#[derive(Debug, PartialEq)]
enum Verdict {
    Compliant,
    /// Only the server can tell.
    DryRun,
    Update,
}

fn verdict(comparison: &Comparison) -> Verdict {
    match comparison {
        Comparison {
            is_equal: true,
            has_missing_field: false,
            ..
        } => Verdict::Compliant,
        Comparison {
            has_missing_field: true,
            ..
        } => Verdict::DryRun,
        _ => Verdict::Update,
    }
}

/// Compares the spec of two objects.
#[track_caller]
fn check(compliance: Compliance, template: Value, live: Value, merged: Value, expected: Verdict) {
    let (template, live) = (json!({"spec": template}), json!({"spec": live}));
    let found = compare(&template, &live, compliance).unwrap();
    assert_eq!(found.merged["spec"], merged);
    assert_eq!(verdict(&found), expected, "{found:?}");
}

#[test]
fn a_template_is_merged_into_what_is_there() {
    use Verdict::{Compliant, DryRun, Update};
    let check =
        |template, live, merged, expected| check(MUST_HAVE, template, live, merged, expected);
    check(
        json!([{"name": "a", "v": 1}]),
        json!([{"name": "a", "v": 2, "x": 9}]),
        json!([{"name": "a", "v": 1, "x": 9}]),
        Update,
    );
    check(
        json!([{"port": 80}]),
        json!([{"port": 80, "protocol": "TCP"}]),
        json!([{"port": 80, "protocol": "TCP"}]),
        Compliant,
    );
    check(
        json!([{"name": "b"}]),
        json!([{"name": "a"}]),
        json!([{"name": "b"}, {"name": "a"}]),
        Update,
    );
    check(json!([1, 2]), json!([2, 1, 3]), json!([1, 2, 3]), Compliant);
    check(json!(["x "]), json!(["x "]), json!(["x "]), Compliant);
    check(json!(["x "]), json!(["x"]), json!(["x ", "x"]), Update);
    check(
        json!({"cpu": "0.5"}),
        json!({"cpu": "500m"}),
        json!({"cpu": "0.5"}),
        Compliant,
    );
    check(json!({"n": 0}), json!({}), json!({"n": 0}), DryRun);
    check(json!({"m": {}}), json!({}), json!({"m": {}}), DryRun);
    check(
        json!({"l": []}),
        json!({"l": null}),
        json!({"l": []}),
        Compliant,
    );
    check(
        json!({"a": null}),
        json!({"a": {"b": 1}}),
        json!({"a": {"b": 1}}),
        Compliant,
    );
    check(
        json!({"a": [1]}),
        json!({"a": {"b": 1}}),
        json!({"a": [1]}),
        Update,
    );
}

#[test]
fn repeated_items_are_kept_and_not_added_twice() {
    let check =
        |template, live, merged, expected| check(MUST_HAVE, template, live, merged, expected);
    check(json!([1]), json!([1, 1]), json!([1, 1]), Verdict::Compliant);
    check(json!([1, 1]), json!([1]), json!([1, 1]), Verdict::Update);
    check(json!([]), json!([1, 2]), json!([1, 2]), Verdict::Compliant);
}

#[test]
fn texts_and_numbers_are_compared_as_they_print_but_quantities_by_value() {
    let check = |template: Value, live: Value, expected: Verdict| {
        let (template, live) = (json!({"v": template}), json!({"v": live}));
        check(MUST_HAVE, template.clone(), live, template, expected);
    };
    check(json!("1Gi"), json!("1024Mi"), Verdict::Compliant);
    check(json!("1"), json!(1), Verdict::Update);
    check(json!(1), json!("1"), Verdict::Compliant);
    check(json!("true"), json!(true), Verdict::Compliant);
    check(json!(1), json!(1.0), Verdict::Compliant);
    check(json!("a"), json!("b"), Verdict::Update);
}

#[test]
fn nothing_else_may_be_there_where_only_the_template_counts() {
    let check =
        |template, live, merged, expected| check(MUST_ONLY_HAVE, template, live, merged, expected);
    check(
        json!([2, 1]),
        json!([1, 2]),
        json!([2, 1]),
        Verdict::Compliant,
    );
    check(json!([1]), json!([1, 2]), json!([1]), Verdict::Update);
    check(
        json!({"a": 1}),
        json!({"a": 1, "b": 2}),
        json!({"a": 1}),
        Verdict::Update,
    );
    let (template, live) = (json!({"data": {}}), json!({"data": {}, "immutable": true}));
    let found = compare(&template, &live, MUST_ONLY_HAVE).unwrap();
    assert_eq!((found.is_equal, found.merged), (false, json!({"data": {}})));
    let account = json!({"kind": "ServiceAccount"});
    let live = json!({"kind": "ServiceAccount", "secrets": [1]});
    assert!(compare(&account, &live, MUST_ONLY_HAVE).unwrap().is_equal);
}

#[test]
fn of_metadata_only_labels_and_annotations_count() {
    let check = |compliance, template: Value, live: Value, merged: Value, expected: bool| {
        let (template, live) = (
            json!({"metadata": template}),
            json!({"kind": "Namespace", "metadata": live}),
        );
        let found = compare(&template, &live, compliance).unwrap();
        assert_eq!(found.merged["metadata"], merged);
        assert_eq!(found.is_equal, expected);
    };
    let live = json!({"name": "x", "labels": {"a": "b", "c": "d"}});
    check(
        MUST_HAVE,
        json!({"name": "y"}),
        live.clone(),
        live.clone(),
        true,
    );
    check(
        MUST_HAVE,
        json!({"labels": {"a": "b"}}),
        live.clone(),
        live.clone(),
        true,
    );
    let fewer = json!({"name": "x", "labels": {"a": "b"}});
    check(
        MUST_ONLY_HAVE,
        json!({"labels": {"a": "b"}}),
        live,
        fewer,
        false,
    );
    let annotated = json!({"annotations": {"openshift.io/sa.scc.mcs": "s0", "x": "y"}});
    let kept = json!({"annotations": {"openshift.io/sa.scc.mcs": "s0"}});
    check(
        MUST_ONLY_HAVE,
        json!({"annotations": {}}),
        annotated,
        kept,
        false,
    );
}

#[test]
fn what_cannot_be_compared_is_an_error() {
    let check = |template: Value, live: Value, expected: &str| {
        let error = compare(&template, &live, MUST_HAVE).unwrap_err();
        assert_eq!(error.to_string(), expected);
    };
    check(
        json!({"spec": {"a": 1}}),
        json!({"spec": [1]}),
        "Error merging changes into key \"spec\": object type of template and existing do not match",
    );
    check(
        json!({"metadata": {"labels": {"a": 1}}}),
        json!({}),
        "invalid label, error: the value of \"a\" is not a string",
    );
    let items = |offset: u64| -> Value { (0..2000).map(|n| json!({"n": n + offset})).collect() };
    check(
        json!({"spec": {"list": items(0)}}),
        json!({"spec": {"list": items(5000)}}),
        "the lists of the object are too long to be compared",
    );
}

#[test]
fn a_status_is_compared_and_never_written() {
    let live = json!({"status": {"phase": "Pending"}});
    let found = compare(&json!({"status": {"phase": "Ready"}}), &live, MUST_HAVE).unwrap();
    assert!(found.status_differs && found.is_equal);
    assert_eq!(found.merged, live);
}

fn step(compliance: Compliance, object: &Value, live: Live<'_>, dry_run: Option<&Value>) -> Step {
    let manifest = Manifest::read(0, object).unwrap();
    let strategy = Strategy::Comply(compliance);
    let target = Target {
        manifest: &manifest,
        strategy: &strategy,
        drift: Drift::Undo,
        ownership: Ownership::None,
        baseline: None,
        dry_run,
        applied_before: false,
    };
    plan(&target, live).unwrap()
}

#[test]
fn the_server_decides_what_only_it_can_know() {
    let template = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"},
        "spec": {"hostNetwork": false}});
    let live = json!({"apiVersion": "v1", "kind": "Pod",
        "metadata": {"name": "p", "uid": "u", "resourceVersion": "1"}, "spec": {}});
    let present = Live::Present(&live);
    let mut merged = live.clone();
    merged["spec"]["hostNetwork"] = json!(false);
    let found = step(MUST_HAVE, &template, present, None);
    assert_eq!(found, Step::DryRun(merged.clone()));
    assert_eq!(
        step(MUST_HAVE, &template, present, Some(&live)),
        Step::Leave
    );
    let found = step(MUST_HAVE, &template, present, Some(&merged));
    assert_eq!(found, Step::Replace(merged));
}

#[test]
fn what_must_not_exist_is_deleted_and_what_must_is_created() {
    let template = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}});
    let live = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p", "uid": "u"}});
    let check = |compliance, live, expected| {
        assert_eq!(step(compliance, &template, live, None), expected);
    };
    check(MUST_NOT_HAVE, Live::Absent, Step::Leave);
    check(MUST_NOT_HAVE, Live::Unknown, Step::Read);
    let delete = Step::Delete { uid: "u".into() };
    check(MUST_NOT_HAVE, Live::Present(&live), delete);
    check(MUST_HAVE, Live::Absent, Step::Create(template.clone()));
    check(MUST_HAVE, Live::Present(&live), Step::Leave);
}
