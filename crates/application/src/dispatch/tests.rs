use bellwether_api::oam::Application;
use serde_json::json;

use super::*;

fn object(app: &str, data: &Value) -> Value {
    let mut object = json!({"apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"name": "settings", "namespace": "n", "labels": {}}, "data": data});
    if !app.is_empty() {
        object["metadata"]["labels"] = json!({"app.oam.dev/name": app, "app.oam.dev/namespace": "n", "app.oam.dev/component": "web"});
    }
    object
}

fn policies(policies: &Value) -> ResourcePolicies {
    let application: Application = serde_json::from_value(
        json!({"metadata": {"name": "shop"}, "spec": {"components": [], "policies": policies}}),
    )
    .unwrap();
    ResourcePolicies::of(&application).unwrap()
}

fn of_type(kind: &str, rest: Value) -> Value {
    let mut rule = json!({"selector": {"componentNames": ["web"]}});
    if !rest.is_null() {
        rule["strategy"] = rest;
    }
    json!([{"name": "p", "type": kind, "properties": {"enable": true, "rules": [rule]}}])
}

/// What happens to an object that should be `{"a": "1"}`, in short: `leave`, `create`, `replace`, or the patch.
fn outcome(
    policy: &Value,
    live: Option<&Value>,
    last: Option<&Value>,
    occasion: Occasion,
) -> String {
    let manifest = object("shop", &json!({"a": "1"}));
    let policies = policies(policy);
    let request = Request {
        manifest: &manifest,
        last_applied: last,
        live,
        policies: &policies,
        occasion,
    };
    match decide(request) {
        Ok(Step::Leave) => "leave".to_owned(),
        Ok(Step::Create(created)) => format!("create {}", created["data"]),
        Ok(Step::Replace(whole)) => format!("replace {}", whole["data"]),
        Ok(Step::Recreate { object, .. }) => format!("recreate {}", object["data"]),
        Ok(Step::Patch(patch)) => patch.content.to_string(),
        Ok(Step::Own(patch)) => format!("own {patch}"),
        Ok(other) => format!("{other:?}"),
        Err(error) => error.to_string(),
    }
}

#[track_caller]
fn check(policy: &Value, live: Option<&Value>, occasion: Occasion, expected: &str) {
    assert_eq!(outcome(policy, live, None, occasion), expected);
}

const UPDATE: Occasion = Occasion::Update;
const KEEP: Occasion = Occasion::StateKeep;

#[test]
fn objects_are_created_patched_and_left() {
    let none = json!([]);
    let wanted = object("shop", &json!({"a": "1"}));
    check(&none, None, UPDATE, r#"create {"a":"1"}"#);
    check(&none, Some(&wanted), UPDATE, "leave");
    let drifted = object("shop", &json!({"a": "9", "foreign": "x"}));
    check(&none, Some(&drifted), KEEP, r#"{"data":{"a":"1"}}"#);
    let before = object("shop", &json!({"a": "9", "old": "x"}));
    let both = object("shop", &json!({"a": "1", "old": "x", "foreign": "y"}));
    let patch = outcome(&none, Some(&both), Some(&before), UPDATE);
    assert_eq!(patch, r#"{"data":{"old":null}}"#);
}

#[test]
fn what_was_applied_is_on_the_object_or_in_the_tracker() {
    let mut deployment = object("shop", &json!({}));
    let annotated = |object: &Value| {
        let policies = policies(&json!([]));
        let request = Request {
            manifest: object,
            last_applied: None,
            live: None,
            policies: &policies,
            occasion: UPDATE,
        };
        match decide(request) {
            Ok(Step::Create(created)) => {
                created["metadata"]["annotations"][annotation::APP_LAST_APPLIED].is_string()
            }
            other => panic!("{other:?}"),
        }
    };
    assert!(!annotated(&deployment), "a ConfigMap may be large");
    deployment["apiVersion"] = "apps/v1".into();
    deployment["kind"] = "Deployment".into();
    assert!(annotated(&deployment));
}

#[test]
fn objects_of_others_are_not_touched() {
    let (none, other) = (json!([]), object("other", &json!({})));
    let refused = "ConfigMap n/settings belongs to application n/other; rename it, or share it by a shared-resource policy in both";
    check(&none, Some(&other), UPDATE, refused);
    check(&none, Some(&other), KEEP, refused);
    let unowned = object("", &json!({"a": "1"}));
    let refused = "ConfigMap n/settings exists and belongs to no application; take it with a take-over policy, or rename it";
    check(&none, Some(&unowned), UPDATE, refused);
    let labels = r#"{"metadata":{"labels":{"app.oam.dev/name":"shop","app.oam.dev/namespace":"n","app.oam.dev/component":"web"}}}"#;
    let found = outcome(
        &of_type("take-over", Value::Null),
        Some(&unowned),
        None,
        UPDATE,
    );
    let (found, labels): (Value, Value) = (
        serde_json::from_str(&found).unwrap(),
        serde_json::from_str(labels).unwrap(),
    );
    assert_eq!(found, labels);
    // Labels that others took away are put back on what was applied.
    let found = outcome(&none, Some(&unowned), None, KEEP);
    assert_eq!(serde_json::from_str::<Value>(&found).unwrap(), labels);
}

#[test]
fn what_is_read_only_has_to_exist() {
    let policy = of_type("read-only", Value::Null);
    let missing = "ConfigMap n/settings is read-only by policy and does not exist; create it, or remove the policy";
    check(&policy, None, UPDATE, missing);
    check(&policy, Some(&object("", &json!({}))), UPDATE, "leave");
}

#[test]
fn shared_objects_stay_with_the_first_application() {
    let mut live = object("other", &json!({"a": "theirs"}));
    live["metadata"]["annotations"] = json!({"app.oam.dev/shared-by": "n/other"});
    let policy = of_type("shared-resource", Value::Null);
    let joined = r#"own {"metadata":{"annotations":{"app.oam.dev/shared-by":"n/other,n/shop"}}}"#;
    check(&policy, Some(&live), UPDATE, joined);
    live["metadata"]["annotations"] = json!({"app.oam.dev/shared-by": "n/other,n/shop"});
    check(&policy, Some(&live), UPDATE, "leave");
    live["metadata"]["annotations"] = json!({});
    let found = outcome(&policy, Some(&live), None, UPDATE);
    assert!(found.contains("belongs to application n/other"), "{found}");
}

#[test]
fn apply_once_keeps_what_others_changed() {
    let whole = json!([{"name": "p", "type": "apply-once", "properties": {"enable": true}}]);
    let drifted = object("shop", &json!({"a": "9"}));
    let undone = r#"{"data":{"a":"1"}}"#;
    let created = r#"create {"a":"1"}"#;
    check(&whole, Some(&drifted), KEEP, "leave");
    check(&whole, Some(&drifted), UPDATE, undone);
    check(&whole, None, KEEP, "leave");
    check(&whole, None, UPDATE, created);
    for (affect, occasion, present, absent) in [
        ("", UPDATE, "leave", created),
        ("", KEEP, "leave", "leave"),
        ("always", UPDATE, "leave", created),
        ("always", KEEP, "leave", "leave"),
        ("onStateKeep", UPDATE, undone, created),
        ("onStateKeep", KEEP, "leave", "leave"),
        ("onUpdate", UPDATE, "leave", created),
        ("onUpdate", KEEP, undone, created),
    ] {
        let rule = of_type("apply-once", json!({"path": ["data.a"], "affect": affect}));
        let found = |live| outcome(&rule, live, None, occasion);
        assert_eq!(found(Some(&drifted)), present, "{affect} {occasion:?}");
        assert_eq!(found(None), absent, "{affect} {occasion:?}");
    }
    let everything = of_type("apply-once", json!({"path": ["*"]}));
    check(&everything, Some(&drifted), UPDATE, "leave");
    let without = of_type("apply-once", Value::Null);
    check(&without, Some(&drifted), KEEP, undone);
}

#[test]
fn resource_update_replaces_and_recreates() {
    let drifted = object("shop", &json!({"a": "9", "foreign": "x"}));
    let replace = of_type("resource-update", json!({"op": "replace"}));
    check(&replace, Some(&drifted), UPDATE, r#"replace {"a":"1"}"#);
    check(
        &replace,
        Some(&object("shop", &json!({"a": "1"}))),
        UPDATE,
        "leave",
    );
    let recreate = of_type("resource-update", json!({"recreateFields": ["data.a"]}));
    check(&recreate, Some(&drifted), UPDATE, r#"recreate {"a":"1"}"#);
}

#[test]
fn keys_of_data_stay_when_a_later_version_does_not_have_them() {
    let mut before = object("shop", &json!({"a": "1", "old": "x"}));
    before["metadata"]["annotations"] = json!({"old": "x"});
    let none = json!([]);
    let compared = compared(before.clone());
    let found = outcome(&none, Some(&before), Some(&compared), UPDATE);
    assert_eq!(found, r#"{"metadata":{"annotations":null}}"#);
    let deployment = json!({"apiVersion": "apps/v1", "kind": "Deployment", "data": {"a": "1"}});
    assert_eq!(super::compared(deployment.clone()), deployment);
}

#[test]
fn an_object_is_handed_over_until_its_new_owner_wrote_it() {
    let of = |app: &str, revision: &str| {
        let mut object = object(app, &json!({}));
        object["metadata"]["labels"]["app.oam.dev/appRevision"] = json!(revision);
        object
    };
    let manifest = of("shop", "shop-v2");
    assert!(is_handed_over(&manifest, &of("shop", "other-v1")));
    assert!(!is_handed_over(&manifest, &of("shop", "shop-v1")));
    assert!(!is_handed_over(&manifest, &of("other", "other-v1")));
    assert!(!is_handed_over(&manifest, &object("shop", &json!({}))));
}
