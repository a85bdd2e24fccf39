//! Parameters that stay as they were when the application was created: those marked with `// +immutable`.

use bellwether_api::oam::Application;
use bellwether_api::oam::names::annotation;
use serde_json::Value;

use super::Violation;
use crate::catalog::Catalog;
use crate::context::namespace;
use crate::definition::{Definition, DefinitionKind};
use crate::document::parameters;

/// What an update changes that has to stay.
pub fn check(old: &Value, application: &Application, catalog: &Catalog) -> Vec<Violation> {
    let annotations = application.metadata.annotations.as_ref();
    let is_forced = annotations
        .and_then(|all| all.get(annotation::FORCE_PARAM_MUTATIONS))
        .is_some_and(|value| value == "true");
    if is_forced {
        return Vec::new();
    }
    let namespace = namespace(application);
    let empty = Vec::new();
    let before = old["spec"]["components"].as_array().unwrap_or(&empty);
    let mut violations = Vec::new();
    for component in &application.spec.components {
        let Some(before) = before.iter().find(|before| {
            before["name"] == component.name && before["type"] == component.component_type
        }) else {
            continue;
        };
        let kind = DefinitionKind::Component;
        if let Some(definition) = catalog.find(kind, &namespace, &component.component_type, false) {
            let field = format!("spec.components[{}].properties", component.name);
            let after = component.properties.as_ref().unwrap_or(&Value::Null);
            violations.extend(changes(&definition, &field, &before["properties"], after));
        }
        for (index, applied) in component.traits.iter().enumerate() {
            let before = &before["traits"][index];
            let definition = catalog.find(
                DefinitionKind::Trait,
                &namespace,
                &applied.trait_type,
                false,
            );
            if let Some(definition) = definition.filter(|_| before["type"] == applied.trait_type) {
                let field = format!(
                    "spec.components[{}].traits[{index}].properties",
                    component.name
                );
                let after = applied.properties.as_ref().unwrap_or(&Value::Null);
                violations.extend(changes(&definition, &field, &before["properties"], after));
            }
        }
    }
    violations
}

/// Parameters that were set before, and are something else now.
fn changes(definition: &Definition, field: &str, before: &Value, after: &Value) -> Vec<Violation> {
    if !definition
        .source()
        .unwrap_or_default()
        .contains("+immutable")
    {
        return Vec::new();
    }
    let marked = parameters(definition).into_iter().filter(|it| it.immutable);
    marked
        .filter_map(|parameter| {
            // What is in lists is compared with the whole list.
            let path = parameter.path.split("[]").next().unwrap_or_default();
            let at = |value: &Value| {
                let mut value = Some(value);
                for part in path.split('.') {
                    value = value.and_then(|value| value.get(part));
                }
                value.cloned().unwrap_or_default()
            };
            let (before, after) = (at(before), at(after));
            (!before.is_null() && before != after).then(|| Violation {
                field: format!("{field}.{path}"),
                detail: format!(
                    "it is immutable and was {before}; leave it, or set the annotation {}: \"true\"",
                    annotation::FORCE_PARAM_MUTATIONS
                ),
                is_missing: false,
            })
        })
        .collect()
}
