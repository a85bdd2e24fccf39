//! What a hub checks about policies besides their schema.

use bellwether_api::admission::{Admission, Denial, Operation, Review, Rule};
use bellwether_api::policy::names::label;
use bellwether_api::policy::{GROUP, Policy, PolicySet, RemediationAction};
use bellwether_placement::rollout::{Input, Strategy, decide};
use jiff::Timestamp;
use serde_json::Value;

/// How long namespace and name of a root policy may be together: with a dot between them they are the value of
/// a label.
const LONGEST_NAME: usize = 62;

/// Rules about policies and their sets.
#[derive(Debug, Clone, Copy, Default)]
pub struct PolicyAdmission;

const WRITES: &[Operation] = &[Operation::Create, Operation::Update];

impl Admission for PolicyAdmission {
    fn name(&self) -> &'static str {
        "policies"
    }

    fn rules(&self) -> &'static [Rule] {
        &[Rule {
            group: GROUP,
            resources: &["policies", "policysets"],
            operations: WRITES,
            condition: None,
        }]
    }

    fn validate(&self, review: &Review<'_>, object: &Value) -> Result<(), Denial> {
        // Anyone who lets go of an object that is being deleted is not asked what was in it.
        if object["metadata"]["deletionTimestamp"].is_string() {
            return Ok(());
        }
        let is_new = review.operation == Operation::Create;
        let refused = match review.resource {
            "policies" => policy(object, is_new),
            _ => set(object),
        };
        refused.map_or(Ok(()), |message| Err(Denial::Forbidden(message)))
    }
}

/// What is wrong with a policy.
fn policy(object: &Value, is_new: bool) -> Option<String> {
    let metadata = &object["metadata"];
    // A replica is what the hub made of a root policy that was checked.
    if !metadata["labels"][label::ROOT_POLICY].is_null() {
        return None;
    }
    let length = |field: &str| metadata[field].as_str().unwrap_or_default().chars().count();
    if is_new && length("namespace") + length("name") > LONGEST_NAME {
        return Some(format!(
            "the combined length of the policy namespace and name cannot exceed {LONGEST_NAME} characters"
        ));
    }
    let policy: Policy = serde_json::from_value(object.clone()).ok()?;
    let is_unset = |action: Option<&str>| action.is_none_or(str::is_empty);
    let own = policy.spec.remediation_action.as_ref();
    let lacks_action = policy.spec.policy_templates.iter().any(|template| {
        let definition = &template.object_definition;
        definition["kind"] == "ConfigurationPolicy"
            && is_unset(definition["spec"]["remediationAction"].as_str())
    });
    if is_unset(own.map(RemediationAction::as_str)) && lacks_action {
        return Some(
            "RemediationAction field of the policy and policy template cannot both be unset"
                .to_owned(),
        );
    }
    let written = policy.spec.rollout_strategy.as_ref()?;
    let read = Strategy::try_from(written);
    let problem = read.and_then(|strategy| {
        decide(&Input::new(&strategy, &[], &[], Timestamp::UNIX_EPOCH)).map(drop)
    });
    let error = problem.err()?;
    Some(format!("spec.rolloutStrategy: {error}"))
}

/// What is wrong with a set.
fn set(object: &Value) -> Option<String> {
    let set: PolicySet = serde_json::from_value(object.clone()).ok()?;
    let names = set.spec.exclusions.iter().map(|it| &it.policy_name);
    let unknown: Vec<&str> = names
        .clone()
        .filter(|name| !set.spec.policies.contains(name))
        .map(String::as_str)
        .collect();
    if !unknown.is_empty() {
        return Some(format!(
            "policy in spec.exclusions is not listed in spec.policies: {}",
            unknown.join(", ")
        ));
    }
    let mut seen = std::collections::BTreeSet::new();
    let mut twice: Vec<&str> = names
        .filter(|name| !seen.insert(name.as_str()))
        .map(String::as_str)
        .collect();
    twice.dedup();
    (!twice.is_empty()).then(|| {
        format!(
            "policy in spec.exclusions has a duplicate entry: {}",
            twice.join(", ")
        )
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn root(name: &str, spec: &Value) -> Value {
        json!({"metadata": {"name": name, "namespace": "policies"}, "spec": spec})
    }

    #[track_caller]
    #[expect(
        clippy::needless_pass_by_value,
        reason = "what is wrong, as it is returned"
    )]
    fn check(actual: Option<String>, expected: &str) {
        assert_eq!(actual.as_deref().unwrap_or_default(), expected);
    }

    #[test]
    fn names_that_no_label_holds_are_refused_when_a_root_policy_is_created() {
        let spec = json!({"disabled": false, "policy-templates": []});
        let too_long =
            "the combined length of the policy namespace and name cannot exceed 62 characters";
        check(policy(&root(&"x".repeat(54), &spec), true), "");
        check(policy(&root(&"x".repeat(55), &spec), true), too_long);
        check(policy(&root(&"x".repeat(55), &spec), false), "");
        let mut replica = root(&"x".repeat(55), &spec);
        replica["metadata"]["labels"] = json!({(label::ROOT_POLICY): "a.b"});
        check(policy(&replica, true), "");
    }

    #[test]
    fn somebody_has_to_say_what_is_done_about_violations() {
        let template = |spec: Value| json!([{"objectDefinition": {"kind": "ConfigurationPolicy", "spec": spec}}]);
        let with = |action: Value, templates: Value| {
            let spec = json!({"disabled": false, "remediationAction": action, "policy-templates": templates});
            policy(&root("a", &spec), true)
        };
        let unset =
            "RemediationAction field of the policy and policy template cannot both be unset";
        check(with(json!(null), template(json!({}))), unset);
        check(
            with(json!(""), template(json!({"remediationAction": ""}))),
            unset,
        );
        check(with(json!("inform"), template(json!({}))), "");
        check(
            with(
                json!(null),
                template(json!({"remediationAction": "inform"})),
            ),
            "",
        );
        check(
            with(
                json!(null),
                json!([{"objectDefinition": {"kind": "Other"}}]),
            ),
            "",
        );
    }

    #[test]
    fn a_strategy_that_could_never_release_a_cluster_is_refused() {
        let with = |strategy: Value| {
            let spec = json!({"disabled": false, "remediationAction": "enforce", "policy-templates": [],
                "rolloutStrategy": strategy});
            policy(&root("a", &spec), false)
        };
        check(with(json!({"type": "Progressive"})), "");
        check(
            with(json!({"type": "Progressive", "progressive": {"progressDeadline": "soon"}})),
            "spec.rolloutStrategy: invalid timeout format",
        );
        check(
            with(json!({"type": "Sideways"})),
            "spec.rolloutStrategy: incorrect rollout strategy type Sideways",
        );
    }

    #[test]
    fn exclusions_name_policies_of_the_set_once() {
        let with = |policies: &[&str], excluded: &[&str]| {
            let exclusions = excluded
                .iter()
                .map(|name| json!({"policyName": name, "clusterNames": ["a"]}));
            let exclusions: Vec<Value> = exclusions.collect();
            set(&json!({"spec": {"policies": policies, "exclusions": exclusions}}))
        };
        check(with(&["a", "b"], &["a"]), "");
        check(
            with(&["a"], &["b", "c"]),
            "policy in spec.exclusions is not listed in spec.policies: b, c",
        );
        check(
            with(&["a"], &["a", "a"]),
            "policy in spec.exclusions has a duplicate entry: a",
        );
    }
}
