//! What an ApplicationConfiguration becomes: the workloads of its Components and their traits, with names, labels and references.

use std::collections::BTreeMap;

use bellwether_api::oam::names::{annotation, label};
use bellwether_api::oam::{
    ApplicationConfiguration, ApplicationConfigurationComponent, AppliedWorkload, ComponentSpec,
    DataInput, DataOutput, ObjectReference, TraitDefinition,
};
use serde_json::{Map, Value, json};

use super::apply_once::Role;
use super::parameter::{self, ParameterError};
use crate::path;
use crate::revision::short_hash;

/// The middle of the name of a trait whose type is not known.
const ANY_TRAIT: &str = "trait";

/// Annotations of an ApplicationConfiguration that its objects do not get.
const OWN_ANNOTATIONS: [&str; 5] = [
    annotation::ROLLOUT_TEMPLATE,
    annotation::ROLLING_COMPONENTS,
    annotation::INPLACE_UPGRADE,
    annotation::KUBECTL_LAST_APPLIED,
    annotation::APP_LAST_APPLIED,
];

/// Which Component is used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reference<'a> {
    /// The latest revision of a Component.
    Latest(&'a str),
    /// A revision of a Component.
    Revision(&'a str),
}

/// A Component as it is used.
#[derive(Debug, Clone, PartialEq)]
pub struct Source {
    /// Its name.
    pub name: String,
    /// The revision.
    pub revision: String,
    /// Its content in that revision.
    pub spec: ComponentSpec,
}

/// What is known of a type of trait.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct TraitSettings {
    /// Its name; empty if there is no definition.
    pub name: String,
    /// Whether workloads are named after their revision.
    pub is_revision_enabled: bool,
    /// Where the trait refers to the workload; empty if it does not.
    pub workload_ref_path: String,
}

impl TraitSettings {
    /// Reads a definition.
    pub fn of(definition: &TraitDefinition) -> Self {
        Self {
            name: definition.metadata.name.clone().unwrap_or_default(),
            is_revision_enabled: definition.spec.revision_enabled,
            workload_ref_path: definition.spec.workload_ref_path.clone(),
        }
    }

    /// Returns what holds for traits of a kind that has no definition.
    pub fn without_definition(component_trait: &Value) -> Self {
        let is_scaler = component_trait["kind"] == "ManualScalerTrait"
            && component_trait["apiVersion"] == "core.oam.dev/v1alpha2";
        if !is_scaler {
            return Self::default();
        }
        Self {
            name: "manualscaler".to_owned(),
            workload_ref_path: "spec.workloadRef".to_owned(),
            ..Self::default()
        }
    }
}

/// Why an ApplicationConfiguration cannot be rendered.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RenderError {
    /// A component has no name, or two.
    #[error("spec.components[{0}]: give either componentName or revisionName")]
    Reference(usize),
    /// Something that is not supported.
    #[error("component {component:?}: {field} is not supported")]
    Unsupported {
        /// The component.
        component: String,
        /// The field.
        field: &'static str,
    },
    /// Parameters are wrong.
    #[error("component {component:?}: {error}")]
    Parameter {
        /// The component.
        component: String,
        /// What is wrong.
        error: ParameterError,
    },
    /// A workload or trait has no kind.
    #[error("component {component:?}: {what} has no {field}")]
    Incomplete {
        /// The component.
        component: String,
        /// The workload or a trait.
        what: String,
        /// What is missing.
        field: &'static str,
    },
    /// A definition has a path that is none.
    #[error("component {component:?}: workloadRefPath of TraitDefinition {definition:?}: {reason}")]
    ReferencePath {
        /// The component.
        component: String,
        /// The definition.
        definition: String,
        /// What is wrong.
        reason: String,
    },
    /// Two parts make the same object.
    #[error("components {one:?} and {other:?} both have {object}")]
    Twice {
        /// A component.
        one: String,
        /// Another one, or the same.
        other: String,
        /// Kind and name.
        object: String,
    },
}

/// A component as it is applied.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RenderedComponent {
    /// Its name.
    pub name: String,
    /// The revision.
    pub revision: String,
    /// Whether its workload is named after the revision.
    pub is_revision_enabled: bool,
}

/// An object as it should be.
#[derive(Debug, Clone, PartialEq)]
pub struct RenderedObject {
    /// Place of its component.
    pub component: usize,
    /// What it is to the component.
    pub role: Role,
    /// The object.
    pub object: Value,
    /// Values that others can use.
    pub outputs: Vec<DataOutput>,
    /// Values that it waits for.
    pub inputs: Vec<DataInput>,
}

impl RenderedObject {
    /// Returns the reference that a status has of it.
    pub fn reference(&self, own_namespace: &str) -> ObjectReference {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let namespace = self.object["metadata"]["namespace"].as_str();
        ObjectReference {
            api_version: text(&self.object["apiVersion"]),
            kind: text(&self.object["kind"]),
            name: text(&self.object["metadata"]["name"]),
            namespace: namespace
                .filter(|namespace| *namespace != own_namespace)
                .map(str::to_owned),
            ..ObjectReference::default()
        }
    }
}

/// Everything that an ApplicationConfiguration becomes.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Rendered {
    /// Its components, in order.
    pub components: Vec<RenderedComponent>,
    /// The objects: of each component the workload, then its traits.
    pub objects: Vec<RenderedObject>,
}

/// Returns the Components that have to be looked up, in order.
pub fn references(
    configuration: &ApplicationConfiguration,
) -> Result<Vec<Reference<'_>>, RenderError> {
    let components = configuration.spec.components.iter().enumerate();
    components
        .map(|(index, component)| {
            match (
                component.component_name.as_str(),
                component.revision_name.as_str(),
            ) {
                ("", "") => Err(RenderError::Reference(index)),
                (name, "") => Ok(Reference::Latest(name)),
                ("", revision) => Ok(Reference::Revision(revision)),
                _ => Err(RenderError::Reference(index)),
            }
        })
        .collect()
}

/// Renders an ApplicationConfiguration. The sources are those of [`references`], in the same order; the settings say what is
/// known of the type of a trait.
pub fn render(
    configuration: &ApplicationConfiguration,
    sources: &[Source],
    settings: impl Fn(&Value) -> TraitSettings,
) -> Result<Rendered, RenderError> {
    let mut rendered = Rendered::default();
    for (component, source) in configuration.spec.components.iter().zip(sources) {
        let part = Part {
            configuration,
            component,
            source,
        };
        part.render(&settings, &mut rendered)?;
    }
    refuse_twins(&rendered)?;
    Ok(rendered)
}

/// One component on its way.
struct Part<'a> {
    configuration: &'a ApplicationConfiguration,
    component: &'a ApplicationConfigurationComponent,
    source: &'a Source,
}

impl Part<'_> {
    fn render(
        &self,
        settings: &impl Fn(&Value) -> TraitSettings,
        rendered: &mut Rendered,
    ) -> Result<(), RenderError> {
        self.refuse_unsupported()?;
        let traits: Vec<(Value, TraitSettings)> = self
            .component
            .traits
            .iter()
            .map(|it| (it.component_trait.clone(), settings(&it.component_trait)))
            .collect();
        let is_revision_enabled = traits.iter().any(|(_, known)| known.is_revision_enabled);
        let index = rendered.components.len();
        let workload = self.workload(is_revision_enabled)?;
        let mut objects = vec![RenderedObject {
            component: index,
            role: Role::Workload,
            outputs: self.component.data_outputs.clone(),
            inputs: self.component.data_inputs.clone(),
            object: workload,
        }];
        let mut names = Vec::new();
        for ((object, settings), written) in traits.into_iter().zip(&self.component.traits) {
            let object = self.component_trait(object, &settings, &objects[0].object, &names)?;
            names.push(text(&object["metadata"]["name"]).to_owned());
            objects.push(RenderedObject {
                component: index,
                role: Role::Trait,
                outputs: written.data_outputs.clone(),
                inputs: written.data_inputs.clone(),
                object,
            });
        }
        rendered.components.push(RenderedComponent {
            name: self.source.name.clone(),
            revision: self.source.revision.clone(),
            is_revision_enabled,
        });
        rendered.objects.append(&mut objects);
        Ok(())
    }

    fn refuse_unsupported(&self) -> Result<(), RenderError> {
        let traits = self.component.traits.iter();
        let inputs = traits.clone().flat_map(|it| &it.data_inputs);
        let outputs = traits.flat_map(|it| &it.data_outputs);
        let mut inputs = self.component.data_inputs.iter().chain(inputs);
        let mut outputs = self.component.data_outputs.iter().chain(outputs);
        let unsupported = if self.source.spec.helm.is_some() {
            "spec.helm of the Component"
        } else if !self.component.scopes.is_empty() {
            "scopes"
        } else if outputs.any(|output| output.output_store.is_some()) {
            "dataOutputs.outputStore"
        } else if inputs.any(|input| input.input_store.is_some()) {
            "dataInputs.inputStore"
        } else {
            return Ok(());
        };
        Err(RenderError::Unsupported {
            component: self.source.name.clone(),
            field: unsupported,
        })
    }

    fn workload(&self, is_revision_enabled: bool) -> Result<Value, RenderError> {
        let mut workload = self.source.spec.workload.clone();
        self.check(&workload, "the workload")?;
        let (parameters, values) = (
            &self.source.spec.parameters,
            &self.component.parameter_values,
        );
        parameter::set(&mut workload, parameters, values).map_err(|error| {
            RenderError::Parameter {
                component: self.source.name.clone(),
                error,
            }
        })?;
        self.complete(&mut workload, Role::Workload);
        if text(&workload["metadata"]["name"]).is_empty() {
            workload["metadata"]["name"] =
                self.workload_name(&workload, is_revision_enabled).into();
        }
        Ok(workload)
    }

    /// The name of a workload that has none. One that exists for this very revision keeps its name.
    fn workload_name(&self, workload: &Value, is_revision_enabled: bool) -> String {
        if !is_revision_enabled {
            return self.source.name.clone();
        }
        let known = self.applied().find(|known| {
            known.component_revision_name == self.source.revision
                && is_of_kind(&known.workload_ref, workload)
        });
        known.map_or_else(
            || self.source.revision.clone(),
            |known| known.workload_ref.name.clone(),
        )
    }

    /// What the status has of this component.
    fn applied(&self) -> impl Iterator<Item = &AppliedWorkload> {
        let workloads = self
            .configuration
            .status
            .iter()
            .flat_map(|it| &it.workloads);
        workloads.filter(|known| known.component_name == self.source.name)
    }

    fn component_trait(
        &self,
        mut object: Value,
        settings: &TraitSettings,
        workload: &Value,
        taken: &[String],
    ) -> Result<Value, RenderError> {
        self.check(&object, "a trait")?;
        let written = object.clone();
        self.complete(&mut object, Role::Trait);
        if text(&object["metadata"]["name"]).is_empty() {
            object["metadata"]["name"] = self.trait_name(&written, settings, taken).into();
        }
        if !settings.workload_ref_path.is_empty() {
            let steps = path::parse(&settings.workload_ref_path).map_err(|reason| {
                RenderError::ReferencePath {
                    component: self.source.name.clone(),
                    definition: settings.name.clone(),
                    reason,
                }
            })?;
            let reference = json!({
                "apiVersion": workload["apiVersion"],
                "kind": workload["kind"],
                "name": workload["metadata"]["name"],
            });
            path::set(&mut object, &steps, reference);
        }
        Ok(object)
    }

    /// The name of a trait that has none: the one that is on record, or one after its type and content.
    fn trait_name(&self, written: &Value, settings: &TraitSettings, taken: &[String]) -> String {
        let mut recorded = self.applied().flat_map(|known| &known.traits);
        let known = recorded.find(|known| {
            is_of_kind(&known.trait_ref, written) && !taken.contains(&known.trait_ref.name)
        });
        if let Some(known) = known {
            return known.trait_ref.name.clone();
        }
        let kind = settings.name.split('.').next().unwrap_or_default();
        let kind = if kind.is_empty() { ANY_TRAIT } else { kind };
        let mut hashed = written.clone();
        loop {
            let name = format!("{}-{kind}-{}", self.source.name, short_hash(&hashed));
            if !taken.contains(&name) {
                return name;
            }
            // The very same trait once more.
            hashed = json!([hashed]);
        }
    }

    fn check(&self, object: &Value, what: &str) -> Result<(), RenderError> {
        let mut fields = ["apiVersion", "kind"].into_iter();
        let Some(field) = fields.find(|field| text(&object[*field]).is_empty()) else {
            return Ok(());
        };
        Err(RenderError::Incomplete {
            component: self.source.name.clone(),
            what: what.to_owned(),
            field,
        })
    }

    /// Adds namespace, labels and annotations.
    fn complete(&self, object: &mut Value, role: Role) {
        let metadata = &self.configuration.metadata;
        let namespace = metadata.namespace.as_deref().unwrap_or_default();
        if !object["metadata"].is_object() {
            object["metadata"] = json!({});
        }
        if text(&object["metadata"]["namespace"]).is_empty() {
            object["metadata"]["namespace"] = namespace.into();
        }
        let none = BTreeMap::new();
        let inherited = metadata.labels.as_ref().unwrap_or(&none).iter();
        let name = metadata.name.as_deref().unwrap_or_default();
        let own = [
            (label::APP_NAME, name),
            (label::COMPONENT, &self.source.name),
            (label::RESOURCE_TYPE, role.label()),
            (label::REVISION, &self.source.revision),
        ];
        fill(object, "labels", inherited, &own);
        let generation = metadata.generation.unwrap_or_default().to_string();
        let inherited = metadata.annotations.as_ref().unwrap_or(&none).iter();
        let inherited = inherited.filter(|(key, _)| !OWN_ANNOTATIONS.contains(&key.as_str()));
        let own = [(annotation::GENERATION, generation.as_str())];
        fill(object, "annotations", inherited, &own);
    }
}

/// Adds inherited labels or annotations that an object does not have, and sets our own.
fn fill<'a>(
    object: &mut Value,
    field: &str,
    inherited: impl Iterator<Item = (&'a String, &'a String)>,
    own: &[(&str, &str)],
) {
    let place = &mut object["metadata"][field];
    if !place.is_object() {
        *place = Value::Object(Map::new());
    }
    if let Some(known) = place.as_object_mut() {
        for (key, value) in inherited {
            known.entry(key).or_insert_with(|| value.as_str().into());
        }
        for (key, value) in own {
            known.insert((*key).to_owned(), (*value).into());
        }
    }
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

fn is_of_kind(reference: &ObjectReference, object: &Value) -> bool {
    object["apiVersion"] == *reference.api_version && object["kind"] == *reference.kind
}

fn refuse_twins(rendered: &Rendered) -> Result<(), RenderError> {
    let mut seen: BTreeMap<[&str; 4], usize> = BTreeMap::new();
    for part in &rendered.objects {
        let (object, metadata) = (&part.object, &part.object["metadata"]);
        let group = text(&object["apiVersion"]);
        let group = group.split_once('/').map_or("", |(group, _)| group);
        let [kind, namespace, name] =
            [&object["kind"], &metadata["namespace"], &metadata["name"]].map(text);
        if let Some(one) = seen.insert([group, kind, namespace, name], part.component) {
            let component = |index: usize| rendered.components[index].name.clone();
            return Err(RenderError::Twice {
                one: component(one),
                other: component(part.component),
                object: format!("{kind} {name}"),
            });
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests;
