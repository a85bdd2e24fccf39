//! Components with traits, the interface before Applications.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::GROUP;
use super::component::embedded;
use super::data_passing::{DataInput, DataOutput, DependencyStatus};
use crate::TypeTag;
use crate::kind::kind;
use crate::meta::{Condition, IntOrString, ObjectMeta, Unknown, conditions, int_or_string};

/// Components with their traits.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ApplicationConfiguration {
    /// Group, version and kind.
    #[serde(flatten)]
    #[schemars(skip)]
    pub types: TypeTag<Self>,
    /// Name, labels and so on.
    #[serde(default)]
    #[schemars(skip)]
    pub metadata: ObjectMeta,
    /// Names of the components.
    pub spec: ApplicationConfigurationSpec,
    /// Status of the ApplicationConfiguration.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<ApplicationConfigurationStatus>,
    /// Fields that this version does not know.
    #[serde(flatten)]
    #[schemars(skip)]
    pub other: Unknown,
}

kind! {
    ApplicationConfiguration: GROUP, "v1alpha2", "applicationconfigurations", "applicationconfiguration", Namespaced;
    spec: ApplicationConfigurationSpec;
    status: ApplicationConfigurationStatus;
    short: ["appconfig"];
    categories: ["oam"];
    columns: [
        ("AGE", "date", ".metadata.creationTimestamp"),
    ];
}

/// Names of the components.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ApplicationConfigurationSpec {
    /// The components.
    pub components: Vec<ApplicationConfigurationComponent>,
    /// Fields that this version does not know.
    #[serde(flatten)]
    #[schemars(skip)]
    pub other: Unknown,
}

/// A component with its traits.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ApplicationConfigurationComponent {
    /// Name of a Component; its latest revision is used.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub component_name: String,
    /// Name of a revision of a Component, instead of its name.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub revision_name: String,
    /// Values of its parameters.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub parameter_values: Vec<ParameterValue>,
    /// Values of the workload that others can use.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub data_outputs: Vec<DataOutput>,
    /// Values of others that the workload waits for.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub data_inputs: Vec<DataInput>,
    /// Its traits.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub traits: Vec<ComponentTrait>,
    /// Scopes that it belongs to.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub scopes: Vec<ComponentScope>,
    /// Fields that this version does not know.
    #[serde(flatten)]
    #[schemars(skip)]
    pub other: Unknown,
}

/// The value of a parameter.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ParameterValue {
    /// Name of the parameter.
    pub name: String,
    /// Its value.
    #[schemars(schema_with = "number_or_text")]
    pub value: IntOrString,
    /// Fields that this version does not know.
    #[serde(flatten)]
    #[schemars(skip)]
    pub other: Unknown,
}

/// A trait of a component.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ComponentTrait {
    /// The trait, a whole object.
    #[serde(rename = "trait")]
    #[schemars(schema_with = "embedded")]
    pub component_trait: Value,
    /// Values of the trait that others can use.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub data_outputs: Vec<DataOutput>,
    /// Values of others that the trait waits for.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub data_inputs: Vec<DataInput>,
    /// Fields that this version does not know.
    #[serde(flatten)]
    #[schemars(skip)]
    pub other: Unknown,
}

/// A scope that a component belongs to.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ComponentScope {
    /// The scope, an object in the same namespace.
    pub scope_ref: ObjectReference,
    /// Fields that this version does not know.
    #[serde(flatten)]
    #[schemars(skip)]
    pub other: Unknown,
}

/// Status of an ApplicationConfiguration.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ApplicationConfigurationStatus {
    /// Conditions: whether it is applied.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "conditions")]
    pub conditions: Vec<Condition>,
    /// The generation that this is about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// The workloads.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub workloads: Vec<AppliedWorkload>,
    /// Objects that wait for values of others.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dependency: Option<DependencyStatus>,
    /// Workloads of earlier revisions that are kept.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub history_workloads: Vec<HistoryWorkload>,
    /// Fields that this version does not know.
    #[serde(flatten)]
    #[schemars(skip)]
    pub other: Unknown,
}

/// A workload of an earlier revision that is kept.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct HistoryWorkload {
    /// Revision of the component.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub revision: String,
    /// Component that it belongs to.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub component_name: String,
    /// The workload.
    #[serde(default)]
    pub workload_ref: ObjectReference,
    /// Fields that this version does not know.
    #[serde(flatten)]
    #[schemars(skip)]
    pub other: Unknown,
}

/// A workload that is applied.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AppliedWorkload {
    /// State of the workload.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub status: String,
    /// Component that it belongs to.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub component_name: String,
    /// Revision of the component.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub component_revision_name: String,
    /// Revision of the component that was applied last.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub applied_component_revision: String,
    /// True if it waits for values of others.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub dependency_unsatisfied: bool,
    /// The workload.
    #[serde(default)]
    pub workload_ref: ObjectReference,
    /// Its traits.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub traits: Vec<AppliedTrait>,
    /// Fields that this version does not know.
    #[serde(flatten)]
    #[schemars(skip)]
    pub other: Unknown,
}

/// A trait that is applied.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AppliedTrait {
    /// State of the trait.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub status: String,
    /// The trait.
    #[serde(default)]
    pub trait_ref: ObjectReference,
    /// Generation of the ApplicationConfiguration for which it was applied last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub applied_generation: Option<i64>,
    /// True if it waits for values of others.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub dependency_unsatisfied: bool,
    /// Message for people.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub message: String,
    /// Fields that this version does not know.
    #[serde(flatten)]
    #[schemars(skip)]
    pub other: Unknown,
}

/// An object.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ObjectReference {
    /// Group and version.
    #[serde(default)]
    pub api_version: String,
    /// Kind.
    #[serde(default)]
    pub kind: String,
    /// Name.
    #[serde(default)]
    pub name: String,
    /// Namespace, if it is not that of the object that has this reference.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
    /// Identifier of the object.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub uid: Option<String>,
    /// Fields that this version does not know.
    #[serde(flatten)]
    #[schemars(skip)]
    pub other: Unknown,
}

/// The schema of a value of a parameter.
fn number_or_text(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
    int_or_string(".*")
}
