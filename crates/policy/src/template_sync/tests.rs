//! What templates become on a cluster.

use serde_json::json;

use super::*;

fn policy(spec: Value) -> Policy {
    let mut spec = spec;
    spec["disabled"] = json!(false);
    serde_json::from_value(json!({
        "apiVersion": "policy.open-cluster-management.io/v1", "kind": "Policy",
        "metadata": {
            "name": "ns.p", "namespace": "c1", "uid": "u",
            "labels": {"policy.open-cluster-management.io/cluster-name": "c1"},
        },
        "spec": spec,
    }))
    .unwrap()
}

fn template(name: &str, action: &str) -> Value {
    json!({"objectDefinition": {
        "apiVersion": "policy.open-cluster-management.io/v1", "kind": "ConfigurationPolicy",
        "metadata": {"name": name}, "spec": {"remediationAction": action},
    }})
}

fn target(spec: Value) -> (Policy, Target) {
    let policy = policy(spec);
    let Some(Parsed::Target(target)) = parse(&policy, "c1").pop() else {
        panic!("it cannot be an object");
    };
    (policy, *target)
}

#[track_caller]
#[expect(clippy::needless_pass_by_value, reason = "tables are easier to read")]
fn fails(templates: Value, name: &str, message: &str) {
    let policy = policy(json!({ "policy-templates": templates }));
    let expected = Parsed::Error {
        name: name.to_owned(),
        message: message.to_owned(),
    };
    assert_eq!(parse(&policy, "c1")[0], expected);
}

#[test]
fn templates_that_cannot_be_objects_say_why() {
    fails(
        json!([template("a", "inform"), template("a", "inform")]),
        "a",
        "All policy-template names must be unique within a policy",
    );
    fails(
        json!([{"objectDefinition": {"apiVersion": "v1", "kind": "X", "metadata": {}}}]),
        "template-0",
        "Failed to parse or get name from policy template at index 0",
    );
    fails(
        json!([{"objectDefinition": {"apiVersion": "v1"}}]),
        "template-0",
        "Failed to decode policy template with err: Object 'Kind' is missing in '{\"apiVersion\":\"v1\"}'",
    );
    let on = |state: &str| {
        json!({
            "apiVersion": "policy.open-cluster-management.io/v1", "kind": "Policy",
            "name": "fleet.zz", "compliance": state,
        })
    };
    let mut conflicting = template("a", "inform");
    conflicting["extraDependencies"] = json!([on("Compliant"), on("Pending")]);
    fails(
        json!([conflicting]),
        "a",
        "Failed to decode policy template with err: dependency on fleet.zz has conflicting compliance states",
    );
}

#[test]
fn the_action_of_the_policy_is_copied_as_it_is_written() {
    let check = |of_policy: Value, own: &str, expected: &str| {
        let spec =
            json!({"policy-templates": [template("a", own)], "remediationAction": of_policy});
        let (policy, target) = target(spec);
        let object = object(&target, &policy, "c1", true);
        assert_eq!(object["spec"]["remediationAction"], expected);
    };
    check(json!("Enforce"), "inform", "Enforce");
    check(json!("Enforce"), "InformOnly", "inform");
    check(json!(null), "enforce", "enforce");
}

#[test]
fn an_object_belongs_to_its_policy() {
    let (policy, target) = target(json!({"policy-templates": [template("a", "inform")]}));
    let desired = object(&target, &policy, "c1", true);
    assert_eq!(
        desired["metadata"]["labels"]["policy.open-cluster-management.io/policy"],
        "ns.p"
    );
    assert_eq!(change(&desired, None), Change::Create);
    let mut live = desired.clone();
    live["spec"]["pruneObjectBehavior"] = json!("None");
    live["status"] = json!({"compliant": "Compliant"});
    assert_eq!(change(&desired, Some(&live)), Change::None);
    live["spec"]["severity"] = json!("low");
    let Change::Update(updated) = change(&desired, Some(&live)) else {
        panic!("it has to be updated");
    };
    assert_eq!(updated["spec"], desired["spec"]);
    assert_eq!(updated["status"], live["status"]);
    live["metadata"]["ownerReferences"][0]["name"] = json!("ns.other");
    let text = "Template name must be unique. Policy template with kind: ConfigurationPolicy name: a already exists in policy ns.other";
    assert_eq!(
        change(&desired, Some(&live)),
        Change::Taken(text.to_owned())
    );
    live["metadata"]["ownerReferences"] = json!([]);
    let text = "Template name must be unique. Policy template with kind: ConfigurationPolicy name: a already exists outside of a Policy";
    assert_eq!(
        change(&desired, Some(&live)),
        Change::Taken(text.to_owned())
    );
}

#[test]
fn open_dependencies_are_named_in_order() {
    let dependency = |kind: &str, name: &str| {
        json!({
            "apiVersion": "policy.open-cluster-management.io/v1", "kind": kind,
            "name": name, "compliance": "Compliant",
        })
    };
    let mut own = template("a", "inform");
    own["extraDependencies"] = json!([dependency("ConfigurationPolicy", "base")]);
    let spec =
        json!({"policy-templates": [own], "dependencies": [dependency("Policy", "fleet.x")]});
    let (_, mut target) = target(spec);
    let none = |_: &Dependency| String::new();
    assert_eq!(
        pending(&target, none).unwrap(),
        "Pending; Dependencies were not satisfied: 2 are still pending (ConfigurationPolicy base, Policy fleet.x)"
    );
    let one = |dependency: &Dependency| match dependency.kind.as_str() {
        "Policy" => "Compliant".to_owned(),
        _ => "NonCompliant".to_owned(),
    };
    target.ignores_pending = true;
    assert_eq!(
        pending(&target, one).unwrap(),
        "Compliant; Dependencies were not satisfied: 1 is still pending (ConfigurationPolicy base) but ignorePending is true"
    );
    assert_eq!(pending(&target, |_| "Compliant".to_owned()), None);
}

#[test]
fn a_copy_is_written_only_if_it_differs() {
    let replica = policy(json!({"policy-templates": []}));
    let copy = copied(&replica, None, "c1", false).unwrap();
    assert_eq!(copied(&replica, Some(&copy), "c1", false), None);
    let mut live = copy.clone();
    live["metadata"]["labels"]["stray"] = json!("x");
    assert_eq!(copied(&replica, Some(&live), "c1", false), None);
    live["spec"]["remediationAction"] = json!("enforce");
    let updated = copied(&replica, Some(&live), "c1", false).unwrap();
    assert_eq!(updated["spec"], copy["spec"]);
    assert_eq!(updated["metadata"]["labels"]["stray"], "x");
}
