//! The spec of a definition as its author writes it: which fields are not part of the kind.
//!
//! Servers drop fields that they do not know, so that a misspelled one would have no effect and nobody would be told.

use bellwether_api::oam::{
    ComponentDefinitionSpec, DefinitionReference, PolicyDefinitionSpec, Schematic, StatusTemplates,
    TraitDefinitionSpec, WorkflowStepDefinitionSpec,
};
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use crate::definition::DefinitionKind;

/// Says what is wrong with the spec of a definition: values of the wrong type, and fields that the kind does not have. `place` is
/// where the author has the spec.
pub fn problems(kind: DefinitionKind, place: &str, spec: &Value) -> Vec<String> {
    let unknown = match kind {
        DefinitionKind::Component => read(spec).map(|spec| of_component(&spec)),
        DefinitionKind::Trait => read(spec).map(|spec| of_trait(&spec)),
        DefinitionKind::Policy => read(spec).map(|spec| of_policy(&spec)),
        DefinitionKind::WorkflowStep => read(spec).map(|spec| of_step(&spec)),
    };
    match unknown {
        Err(error) => vec![format!("{place}: {error}")],
        Ok(Unknown(paths)) => paths
            .iter()
            .map(|path| format!("{place}.{path} is not a field of {}", kind.object_kind()))
            .collect(),
    }
}

fn read<Spec: DeserializeOwned>(spec: &Value) -> Result<Spec, serde_json::Error> {
    serde_json::from_value(spec.clone())
}

/// Paths of fields that a kind does not have.
#[derive(Default)]
struct Unknown(Vec<String>);

impl Unknown {
    /// Adds the unknown fields of the object at a path, which ends in a dot.
    fn add(&mut self, path: &str, fields: &Map<String, Value>) {
        self.0
            .extend(fields.keys().map(|name| format!("{path}{name}")));
    }

    fn add_status(&mut self, status: Option<&StatusTemplates>) {
        if let Some(status) = status {
            self.add("status.", &status.other);
        }
    }

    fn add_reference(&mut self, reference: Option<&DefinitionReference>) {
        if let Some(reference) = reference {
            self.add("definitionRef.", &reference.other);
        }
    }

    fn add_schematic(&mut self, schematic: Option<&Schematic>) {
        if let Some(schematic) = schematic {
            self.add("schematic.", &schematic.other);
            if let Some(cue) = &schematic.cue {
                self.add("schematic.cue.", &cue.other);
            }
        }
    }
}

fn of_component(spec: &ComponentDefinitionSpec) -> Unknown {
    let mut unknown = Unknown::default();
    unknown.add("", &spec.other);
    unknown.add("workload.", &spec.workload.other);
    if let Some(definition) = &spec.workload.definition {
        unknown.add("workload.definition.", &definition.other);
    }
    for (index, child) in spec.child_resource_kinds.iter().enumerate() {
        unknown.add(&format!("childResourceKinds[{index}]."), &child.other);
    }
    unknown.add_status(spec.status.as_ref());
    unknown.add_schematic(spec.schematic.as_ref());
    unknown
}

fn of_trait(spec: &TraitDefinitionSpec) -> Unknown {
    let mut unknown = Unknown::default();
    unknown.add("", &spec.other);
    unknown.add_reference(spec.definition_ref.as_ref());
    unknown.add_status(spec.status.as_ref());
    unknown.add_schematic(spec.schematic.as_ref());
    unknown
}

fn of_policy(spec: &PolicyDefinitionSpec) -> Unknown {
    let mut unknown = Unknown::default();
    unknown.add("", &spec.other);
    unknown.add_reference(spec.definition_ref.as_ref());
    unknown.add_schematic(spec.schematic.as_ref());
    unknown
}

fn of_step(spec: &WorkflowStepDefinitionSpec) -> Unknown {
    let mut unknown = Unknown::default();
    unknown.add("", &spec.other);
    unknown.add_reference(spec.definition_ref.as_ref());
    unknown.add_schematic(spec.schematic.as_ref());
    unknown
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[track_caller]
    fn check(kind: DefinitionKind, spec: &Value, expected: &[&str]) {
        assert_eq!(problems(kind, "attributes", spec), expected, "{spec}");
    }

    #[test]
    fn fields_that_a_kind_does_not_have_are_named() {
        use DefinitionKind::{Component, Policy, Trait, WorkflowStep};
        check(
            Component,
            &json!({
                "workload": {"type": "deployments.apps", "kind": "Deployment", "definition": {"kind": "Deployment", "group": "apps"}},
                "childResourceKinds": [{"apiVersion": "v1", "kind": "Pod", "name": "it"}],
                "status": {"health": "isHealth: true"},
                "podDisruptive": true,
            }),
            &[
                "attributes.podDisruptive is not a field of ComponentDefinition",
                "attributes.workload.kind is not a field of ComponentDefinition",
                "attributes.workload.definition.group is not a field of ComponentDefinition",
                "attributes.childResourceKinds[0].name is not a field of ComponentDefinition",
                "attributes.status.health is not a field of ComponentDefinition",
            ],
        );
        check(
            Trait,
            &json!({"appliesToWorkload": ["*"], "stage": "PreDispatch", "status": {"details": "a: 1"}}),
            &["attributes.appliesToWorkload is not a field of TraitDefinition"],
        );
        check(
            Policy,
            &json!({"definitionRef": {"name": "it", "kind": "It"}}),
            &["attributes.definitionRef.kind is not a field of PolicyDefinition"],
        );
        check(
            WorkflowStep,
            &json!({"scope": "Application", "schematic": {"cue": {"template": "", "file": ""}}}),
            &[
                "attributes.scope is not a field of WorkflowStepDefinition",
                "attributes.schematic.cue.file is not a field of WorkflowStepDefinition",
            ],
        );
    }

    #[test]
    fn values_of_the_wrong_type_are_refused() {
        let found = problems(
            DefinitionKind::Trait,
            "spec",
            &json!({"appliesToWorkloads": "*"}),
        );
        assert!(found[0].starts_with("spec: invalid type"), "{found:?}");
    }
}
