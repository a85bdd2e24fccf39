//! Policies of type env-binding: environments of old applications, each a place and what differs there.
//!
//! A step of type `deploy2env` deploys to one of them, as a deploy step with a topology and an override does.

use std::collections::BTreeMap;

use bellwether_api::oam::ApplicationPolicy;
use bellwether_api::oam::names::policy as policy_type;
use bellwether_api::workflow::WorkflowStepBase;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use crate::decode::decode;
use crate::error::{Class, RenderError, Stage};

/// The properties of an env-binding policy.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub struct EnvBindingPolicy {
    /// The environments.
    pub envs: Vec<Environment>,
}

/// A place and what differs there.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub struct Environment {
    /// Name by which steps refer to it.
    pub name: String,
    placement: Placement,
    selector: Components,
    patch: Components,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Placement {
    cluster_selector: Named,
    namespace_selector: Named,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
struct Named {
    name: String,
    labels: Option<BTreeMap<String, String>>,
}

/// Names of components, or components that are merged.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
struct Components {
    components: Vec<Value>,
}

impl EnvBindingPolicy {
    /// Reads the properties of a policy.
    pub fn of(name: &str, properties: Option<&Value>) -> Result<Self, RenderError> {
        let properties = properties.cloned().unwrap_or_else(|| json!({}));
        decode(&properties).map_err(|problem| {
            let message = format!(
                "policy {name} of type {}: {problem}",
                policy_type::ENV_BINDING
            );
            RenderError::new(Stage::Parse, Class::InvalidInput, message)
        })
    }
}

impl Environment {
    /// A topology and an override that mean the same.
    pub fn policies(&self) -> Vec<ApplicationPolicy> {
        let Placement {
            cluster_selector,
            namespace_selector,
        } = &self.placement;
        let mut topology = Map::new();
        if !cluster_selector.name.is_empty() {
            topology.insert("clusters".to_owned(), json!([cluster_selector.name]));
        }
        if let Some(labels) = &cluster_selector.labels {
            topology.insert("clusterLabelSelector".to_owned(), json!(labels));
        }
        if !namespace_selector.name.is_empty() {
            topology.insert("namespace".to_owned(), json!(namespace_selector.name));
        }
        let mut changes = Map::new();
        if !self.patch.components.is_empty() {
            changes.insert("components".to_owned(), json!(self.patch.components));
        }
        if !self.selector.components.is_empty() {
            changes.insert("selector".to_owned(), json!(self.selector.components));
        }
        let policy =
            |name: &str, policy_type: &str, properties: Map<String, Value>| ApplicationPolicy {
                name: name.to_owned(),
                policy_type: policy_type.to_owned(),
                properties: Some(properties.into()),
                ..ApplicationPolicy::default()
            };
        vec![
            policy("placement", policy_type::TOPOLOGY, topology),
            policy("changes", policy_type::OVERRIDE, changes),
        ]
    }
}

/// The environment that a step deploys to.
pub fn environment_of(
    step: &WorkflowStepBase,
    policies: &BTreeMap<String, ApplicationPolicy>,
) -> Result<Environment, RenderError> {
    let property = |name: &str| {
        let value = step.properties.as_ref().and_then(|all| all.get(name));
        value.and_then(Value::as_str).unwrap_or_default()
    };
    let (wanted, env) = (property("policy"), property("env"));
    for (name, policy) in policies {
        let is_wanted = wanted.is_empty() || name == wanted;
        if !is_wanted || policy.policy_type != policy_type::ENV_BINDING {
            continue;
        }
        let binding = EnvBindingPolicy::of(name, policy.properties.as_ref())?;
        if let Some(found) = binding.envs.into_iter().find(|found| found.name == env) {
            return Ok(found);
        }
    }
    let message = format!(
        "step {}: env {env} is in no env-binding policy {wanted}",
        step.name
    );
    Err(RenderError::new(
        Stage::Deploy,
        Class::NotFound,
        message.trim_end(),
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn policies() -> BTreeMap<String, ApplicationPolicy> {
        let policy = json!({"name": "envs", "type": "env-binding", "properties": {"envs": [
            {"name": "test"},
            {"name": "prod", "placement": {"clusterSelector": {"name": "one"}, "namespaceSelector": {"name": "live"}},
             "selector": {"components": ["web"]}, "patch": {"components": [{"name": "web", "type": "worker"}]}},
            {"name": "west", "placement": {"clusterSelector": {"labels": {"region": "w"}}}, "selector": {"components": []}},
        ]}});
        BTreeMap::from([("envs".to_owned(), serde_json::from_value(policy).unwrap())])
    }

    #[track_caller]
    #[expect(clippy::needless_pass_by_value, reason = "tables are written in place")]
    fn check(properties: Value, expected: Result<[Value; 2], &str>) {
        let step = json!({"name": "out", "type": "deploy2env", "properties": properties});
        let step: WorkflowStepBase = serde_json::from_value(step).unwrap();
        match (environment_of(&step, &policies()), expected) {
            (Ok(found), Ok(expected)) => {
                let found = found.policies();
                let found: Vec<_> = found.into_iter().map(|it| it.properties.unwrap()).collect();
                assert_eq!(found, expected);
            }
            (Err(error), Err(part)) => assert!(error.message.contains(part), "{error}"),
            (found, expected) => panic!("got {found:?}, want {expected:?}"),
        }
    }

    #[test]
    fn an_environment_is_a_topology_and_an_override() {
        check(json!({"env": "test"}), Ok([json!({}), json!({})]));
        check(
            json!({"env": "prod", "policy": "envs"}),
            Ok([
                json!({"clusters": ["one"], "namespace": "live"}),
                json!({"selector": ["web"], "components": [{"name": "web", "type": "worker"}]}),
            ]),
        );
        check(
            json!({"env": "west"}),
            Ok([json!({"clusterLabelSelector": {"region": "w"}}), json!({})]),
        );
        check(
            json!({"env": "prod", "policy": "other"}),
            Err("env prod is in no env-binding policy other"),
        );
    }
}
