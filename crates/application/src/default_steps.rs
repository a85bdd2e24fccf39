//! The steps of an application whose workflow has none, and the policies that steps deploy by.
//!
//! | policies of the application | steps |
//! |---|---|
//! | topologies | a deploy step for each, with all overrides |
//! | overrides, or a component that copies objects | one deploy step |
//! | env-bindings | a step for each environment |
//! | others | a step for each component |

use bellwether_api::oam::names::{
    DEPLOY_STEP, DEPLOY_TO_ENV_STEP, component_type, policy as policy_type,
};
use bellwether_api::oam::{ApplicationComponent, ApplicationPolicy};
use bellwether_api::workflow::names::step_type;
use bellwether_api::workflow::{WorkflowStep, WorkflowStepBase};
use serde::Deserialize;
use serde_json::Value;

use crate::decode::decode;
use crate::environment::EnvBindingPolicy;
use crate::error::{Class, RenderError, Stage};

/// The name of a policy, or the one that it gets by its position.
pub fn policy_name(policy: &ApplicationPolicy, index: usize) -> String {
    if policy.name.is_empty() {
        format!("{}-auto-gen-{index}", policy.policy_type)
    } else {
        policy.name.clone()
    }
}

/// The steps of an application whose workflow has none.
pub fn default_steps(
    policies: &[ApplicationPolicy],
    components: &[ApplicationComponent],
) -> Result<Vec<WorkflowStep>, RenderError> {
    let of_type = |wanted: &'static str| {
        let policies = policies.iter().enumerate();
        policies
            .filter(move |(_, policy)| policy.policy_type == wanted)
            .map(|(index, policy)| (policy_name(policy, index), policy))
    };
    let overrides: Vec<String> = of_type(policy_type::OVERRIDE)
        .map(|(name, _)| name)
        .collect();
    let topologies = of_type(policy_type::TOPOLOGY).map(|(topology, _)| {
        let name = format!("{DEPLOY_STEP}-{topology}");
        let policies = overrides.iter().cloned().chain([topology]).collect();
        deploy_step(&name, policies)
    });
    let steps: Vec<WorkflowStep> = topologies.collect();
    if !steps.is_empty() {
        return Ok(steps);
    }
    let is_copy =
        |component: &ApplicationComponent| component.component_type == component_type::REF_OBJECTS;
    if !overrides.is_empty() || components.iter().any(is_copy) {
        return Ok(vec![deploy_step(DEPLOY_STEP, overrides)]);
    }
    let mut steps = Vec::new();
    for (name, policy) in of_type(policy_type::ENV_BINDING) {
        let binding = EnvBindingPolicy::of(&name, policy.properties.as_ref())?;
        steps.extend(binding.envs.iter().map(|env| env_step(&name, &env.name)));
    }
    if !steps.is_empty() {
        return Ok(steps);
    }
    Ok(components.iter().map(apply_step).collect())
}

fn deploy_step(name: &str, policies: Vec<String>) -> WorkflowStep {
    step(
        name,
        DEPLOY_STEP,
        [("policies".to_owned(), policies.into())],
    )
}

fn env_step(policy: &str, env: &str) -> WorkflowStep {
    step(
        &format!("{DEPLOY_STEP}-{policy}-{env}"),
        DEPLOY_TO_ENV_STEP,
        [
            ("policy".to_owned(), policy.into()),
            ("env".to_owned(), env.into()),
        ],
    )
}

fn apply_step(component: &ApplicationComponent) -> WorkflowStep {
    let name = component.name.as_str();
    let mut step = step(
        name,
        step_type::APPLY_COMPONENT,
        [("component".to_owned(), name.into())],
    );
    step.base.depends_on.clone_from(&component.depends_on);
    step
}

fn step(
    name: &str,
    step_type: &str,
    properties: impl IntoIterator<Item = (String, Value)>,
) -> WorkflowStep {
    WorkflowStep {
        base: WorkflowStepBase {
            name: name.to_owned(),
            step_type: step_type.to_owned(),
            properties: Some(properties.into_iter().collect()),
            ..WorkflowStepBase::default()
        },
        ..WorkflowStep::default()
    }
}

/// The properties of a deploy step. Others are refused, as in KubeVela.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
struct DeployProperties {
    auto: Option<bool>,
    policies: Option<Vec<String>>,
    parallelism: Option<i64>,
    ignore_terraform_component: Option<bool>,
}

/// Names of the policies that a deploy step deploys by.
pub fn policy_names(step: &WorkflowStepBase) -> Result<Vec<String>, RenderError> {
    let Some(properties) = &step.properties else {
        return Ok(Vec::new());
    };
    let read: DeployProperties = decode(&Value::Object(properties.clone())).map_err(|problem| {
        let message = format!("step {} of type {DEPLOY_STEP}: {problem}", step.name);
        RenderError::new(Stage::Parse, Class::InvalidInput, message)
    })?;
    Ok(read.policies.unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[track_caller]
    fn check(policies: Value, components: Value, expected: &[&str]) {
        let policies: Vec<ApplicationPolicy> = serde_json::from_value(policies).unwrap();
        let components: Vec<ApplicationComponent> = serde_json::from_value(components).unwrap();
        let steps = default_steps(&policies, &components).unwrap();
        let steps: Vec<String> = steps
            .iter()
            .map(|step| {
                let properties = json!(step.base.properties);
                format!("{} {} {properties}", step.base.step_type, step.base.name)
            })
            .collect();
        assert_eq!(steps, expected);
    }

    #[test]
    fn policies_say_which_steps_there_are() {
        let web = json!([{"name": "web", "type": "worker"}]);
        let topology = json!({"name": "east", "type": "topology", "properties": {}});
        let change = json!({"type": "override", "properties": {}});
        let envs = json!({"name": "envs", "type": "env-binding", "properties": {"envs": [
            {"name": "test", "placement": {"clusterSelector": {"name": "one"}}}, {"name": "prod"}]}});
        check(
            json!([]),
            web.clone(),
            &["apply-component web {\"component\":\"web\"}"],
        );
        check(
            json!([topology, change, envs]),
            web.clone(),
            &["deploy deploy-east {\"policies\":[\"override-auto-gen-1\",\"east\"]}"],
        );
        check(
            json!([change]),
            web.clone(),
            &["deploy deploy {\"policies\":[\"override-auto-gen-0\"]}"],
        );
        check(
            json!([]),
            json!([{"name": "copy", "type": "ref-objects"}]),
            &["deploy deploy {\"policies\":[]}"],
        );
        check(
            json!([envs]),
            web,
            &[
                "deploy2env deploy-envs-test {\"env\":\"test\",\"policy\":\"envs\"}",
                "deploy2env deploy-envs-prod {\"env\":\"prod\",\"policy\":\"envs\"}",
            ],
        );
    }

    #[track_caller]
    #[expect(clippy::needless_pass_by_value, reason = "tables are written in place")]
    fn check_deploy(properties: Value, expected: Result<&[&str], &str>) {
        let step = json!({"name": "out", "type": "deploy", "properties": properties});
        let step: WorkflowStepBase = serde_json::from_value(step).unwrap();
        match (policy_names(&step), expected) {
            (Ok(names), Ok(expected)) => assert_eq!(names, expected),
            (Err(error), Err(part)) => {
                assert!(error.message.starts_with("step out of type deploy: "));
                assert!(error.message.contains(part), "{error}");
            }
            (found, expected) => panic!("got {found:?}, want {expected:?}"),
        }
    }

    #[test]
    fn properties_of_deploy_steps_have_to_fit() {
        check_deploy(
            json!({"policies": ["a", "b"], "auto": false}),
            Ok(&["a", "b"]),
        );
        check_deploy(json!({"parallelism": 2}), Ok(&[]));
        check_deploy(
            json!({"policies": "prod"}),
            Err("policies: invalid type: string"),
        );
        check_deploy(
            json!({"policies": ["a", 1]}),
            Err("policies[1]: invalid type"),
        );
        check_deploy(json!({"policy": ["prod"]}), Err("unknown field `policy`"));
    }
}
