//! What an application consists of.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::GROUP;
use super::application_status::ApplicationStatus;
use crate::TypeTag;
use crate::kind::kind;
use crate::meta::{ObjectMeta, Unknown, any_object};
use crate::workflow::{StepInput, StepOutput, WorkflowExecuteMode, WorkflowStep};

/// Components with their traits, delivered to clusters by a workflow.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Application {
    /// Group, version and kind.
    #[serde(flatten)]
    #[schemars(skip)]
    pub types: TypeTag<Self>,
    /// Name, labels and so on.
    #[serde(default)]
    #[schemars(skip)]
    pub metadata: ObjectMeta,
    /// Components, policies and workflow of the application.
    pub spec: ApplicationSpec,
    /// Status of the application.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<ApplicationStatus>,
    /// Fields that this version does not know.
    #[serde(flatten)]
    #[schemars(skip)]
    pub other: Unknown,
}

kind! {
    Application: GROUP, "v1beta1", "applications", "application", Namespaced;
    spec: ApplicationSpec;
    status: ApplicationStatus;
    short: ["app", "velaapp"];
    categories: ["oam"];
    columns: [
        ("COMPONENT", "string", ".spec.components[*].name"),
        ("TYPE", "string", ".spec.components[*].type"),
        ("PHASE", "string", ".status.status"),
        ("HEALTHY", "boolean", ".status.services[*].healthy"),
        ("STATUS", "string", ".status.services[*].message"),
        ("AGE", "date", ".metadata.creationTimestamp"),
    ];
}

/// Components, policies and workflow of an application.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ApplicationSpec {
    /// The components, in the order in which they are applied.
    #[serde(deserialize_with = "crate::compact::exact")]
    pub components: Vec<ApplicationComponent>,
    /// Policies: target clusters, overrides, and treatment of objects.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[serde(deserialize_with = "crate::compact::exact")]
    pub policies: Vec<ApplicationPolicy>,
    /// Workflow that delivers the components; without it, all of them at once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workflow: Option<ApplicationWorkflow>,
    /// Fields that this version does not know.
    #[serde(flatten)]
    #[schemars(skip)]
    pub other: Unknown,
}

/// A component.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ApplicationComponent {
    /// Name of the component, unique in the application.
    pub name: String,
    /// Name of a ComponentDefinition, with a version such as webservice@v1 if wanted.
    #[serde(rename = "type")]
    pub component_type: String,
    /// Parameters of the definition.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "any_object")]
    pub properties: Option<Value>,
    /// Revision that others gave the component.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub external_revision: String,
    /// Names of the components that have to be healthy first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub depends_on: Vec<String>,
    /// Values that come from other components.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[serde(deserialize_with = "crate::compact::exact")]
    pub inputs: Vec<StepInput>,
    /// Values that other components can use.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[serde(deserialize_with = "crate::compact::exact")]
    pub outputs: Vec<StepOutput>,
    /// Traits, in the order in which they change the component.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[serde(deserialize_with = "crate::compact::exact")]
    pub traits: Vec<ApplicationTrait>,
    /// Accepted for compatibility, without effect.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub scopes: BTreeMap<String, String>,
    /// Fields that this version does not know.
    #[serde(flatten)]
    #[schemars(skip)]
    pub other: Unknown,
}

/// An addition to a component, or a change of it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ApplicationTrait {
    /// Name of a TraitDefinition.
    #[serde(rename = "type")]
    pub trait_type: String,
    /// Parameters of the definition.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "any_object")]
    pub properties: Option<Value>,
    /// Fields that this version does not know.
    #[serde(flatten)]
    #[schemars(skip)]
    pub other: Unknown,
}

/// A policy of an application.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ApplicationPolicy {
    /// Name by which steps refer to it. Without one it is called TYPE-auto-gen-INDEX.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub name: String,
    /// One of the built-in types, or the name of a PolicyDefinition.
    #[serde(rename = "type")]
    pub policy_type: String,
    /// Parameters of the type.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "any_object")]
    pub properties: Option<Value>,
    /// Fields that this version does not know.
    #[serde(flatten)]
    #[schemars(skip)]
    pub other: Unknown,
}

/// Workflow that delivers the components.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ApplicationWorkflow {
    /// Name of a Workflow in the same namespace, instead of steps.
    #[serde(rename = "ref", default, skip_serializing_if = "String::is_empty")]
    pub workflow_ref: String,
    /// Order of steps; default: one after the other, and within groups as a graph.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mode: Option<WorkflowExecuteMode>,
    /// The steps.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[serde(deserialize_with = "crate::compact::exact")]
    pub steps: Vec<WorkflowStep>,
    /// Fields that this version does not know.
    #[serde(flatten)]
    #[schemars(skip)]
    pub other: Unknown,
}
