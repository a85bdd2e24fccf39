//! Warnings about what is accepted and has no effect, or contradicts what a definition says of itself.

use std::collections::BTreeSet;

use bellwether_api::oam::names::component_type;
use bellwether_api::oam::{Application, ApplicationComponent};
use serde_json::Value;

use crate::catalog::Catalog;
use crate::context::namespace;
use crate::definition::{Definition, DefinitionKind};
use crate::document::parameters;

/// What somebody who writes the application should know.
pub(super) fn of(application: &Application, catalog: &Catalog) -> Vec<String> {
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
    advice
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
