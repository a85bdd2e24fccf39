//! Warnings about what is accepted and has no effect, or contradicts what a definition says of itself.

use std::collections::BTreeSet;

use bellwether_api::oam::names::{component_type, policy as policy_type};
use bellwether_api::oam::{Application, ApplicationComponent, ApplicationPolicy};
use bellwether_api::workflow::WorkflowStepBase;
use serde_json::Value;

use crate::appfile::{self, Appfile, ENGINE_STEPS};
use crate::builtin;
use crate::catalog::Catalog;
use crate::context::namespace;
use crate::default_steps::policy_name;
use crate::definition::{Definition, DefinitionKind};
use crate::document::parameters;
use crate::world::World;

/// Policies that only do something in the steps that use them.
const PLACING: [&str; 4] = [
    policy_type::TOPOLOGY,
    policy_type::OVERRIDE,
    policy_type::REPLICATION,
    policy_type::ENV_BINDING,
];

/// What somebody who writes the application should know.
pub(super) fn of(application: &Application, catalog: &Catalog, world: &World) -> Vec<String> {
    let namespace = namespace(application);
    let mut advice = Vec::new();
    for component in &application.spec.components {
        let what = format!("component {}", component.name);
        let kind = DefinitionKind::Component;
        let definition = catalog.find(kind, &namespace, &component.component_type, false);
        if let Some(definition) = &definition
            && component.component_type != component_type::REF_OBJECTS
        {
            advice.extend(undeclared(&what, definition, component.properties.as_ref()));
        }
        for applied in &component.traits {
            let what = format!("trait {} of {what}", applied.trait_type);
            let found = catalog.find(
                DefinitionKind::Trait,
                &namespace,
                &applied.trait_type,
                false,
            );
            if let Some(found) = found {
                advice.extend(undeclared(&what, &found, applied.properties.as_ref()));
                advice.extend(conflicts(&what, &found, component));
            }
        }
    }
    for (index, policy) in application.spec.policies.iter().enumerate() {
        let what = format!("policy {}", policy_name(policy, index));
        let kind = DefinitionKind::Policy;
        if let Some(definition) = catalog.find(kind, &namespace, &policy.policy_type, false) {
            advice.extend(undeclared(&what, &definition, policy.properties.as_ref()));
        }
    }
    if let Ok(appfile) = appfile::parse(application, catalog, world, 1) {
        let steps: Vec<&WorkflowStepBase> = appfile
            .steps
            .iter()
            .flat_map(|step| std::iter::once(&step.base).chain(&step.sub_steps))
            .collect();
        for step in &steps {
            let what = format!("step {}", step.name);
            let kind = DefinitionKind::WorkflowStep;
            let given = step.properties.clone().map(Value::Object);
            if let Some(definition) = catalog.find(kind, &namespace, &step.step_type, false) {
                advice.extend(undeclared(&what, &definition, given.as_ref()));
            }
        }
        advice.extend(unused(&appfile, &steps));
    }
    advice
}

/// Policies that no step uses. Nothing is known of steps of types that are not built in.
fn unused(appfile: &Appfile<'_>, steps: &[&WorkflowStepBase]) -> Vec<String> {
    let kind = DefinitionKind::WorkflowStep;
    let is_built_in = |step: &&WorkflowStepBase| {
        let step_type = step.step_type.as_str();
        ENGINE_STEPS.contains(&step_type) || builtin::names(kind).any(|it| it == step_type)
    };
    if !steps.iter().all(is_built_in) {
        return Vec::new();
    }
    let is_used = |name: &str, policy: &ApplicationPolicy| {
        steps.iter().any(|step| {
            let properties = step.properties.as_ref();
            let takes_any = policy.policy_type == policy_type::ENV_BINDING
                && properties.is_some_and(|all| all.contains_key("env"));
            takes_any || properties.is_some_and(|all| all.values().any(|it| mentions(it, name)))
        })
    };
    let placing = appfile.policies.iter().filter(|(name, policy)| {
        PLACING.contains(&policy.policy_type.as_str()) && !is_used(name, policy)
    });
    placing
        .map(|(name, _)| format!("policy {name}: no step uses it, so it has no effect"))
        .collect()
}

/// True if a value is or has a text.
fn mentions(value: &Value, text: &str) -> bool {
    match value {
        Value::String(found) => found == text,
        Value::Array(items) => items.iter().any(|item| mentions(item, text)),
        Value::Object(fields) => fields.values().any(|field| mentions(field, text)),
        _ => false,
    }
}

/// Parameters that a definition does not have: they change nothing.
fn undeclared(what: &str, definition: &Definition, given: Option<&Value>) -> Vec<String> {
    let Some(Value::Object(given)) = given else {
        return Vec::new();
    };
    let declared: BTreeSet<String> = parameters(definition)
        .into_iter()
        .map(|parameter| {
            let path = parameter.path;
            path.split(['.', '[']).next().unwrap_or_default().to_owned()
        })
        .collect();
    // A template whose parameters cannot be listed may take any.
    if declared.is_empty() || declared.contains("*") || declared.contains("") {
        return Vec::new();
    }
    let unknown = given.keys().filter(|name| !declared.contains(*name));
    unknown
        .map(|name| {
            format!(
                "{what}: {} has no parameter {name:?}, so it has no effect",
                definition.type_name
            )
        })
        .collect()
}

/// Traits of the same component that a trait says it conflicts with.
fn conflicts(what: &str, definition: &Definition, component: &ApplicationComponent) -> Vec<String> {
    let list = definition.object["spec"]["conflictsWith"].as_array();
    let names = list.into_iter().flatten().filter_map(Value::as_str);
    names
        .filter(|name| {
            component
                .traits
                .iter()
                .any(|other| other.trait_type == *name && other.trait_type != definition.type_name)
        })
        .map(|name| format!("{what}: its definition says that it conflicts with trait {name}"))
        .collect()
}
