//! Components with traits, the interface before Applications.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::GROUP;
use super::component::embedded;
use crate::TypeTag;
use crate::kind::kind;
use crate::meta::{
    Condition, IntOrString, ObjectMeta, Unknown, any_object, conditions, int_or_string,
};

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
    /// Which components.
    pub spec: ApplicationConfigurationSpec,
    /// Where it stands.
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

/// Which components.
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
    /// Its traits.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub traits: Vec<ComponentTrait>,
    /// Accepted for compatibility, without effect.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "crate::meta::manifests")]
    pub scopes: Vec<Value>,
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
    /// Fields that this version does not know.
    #[serde(flatten)]
    #[schemars(skip)]
    pub other: Unknown,
}

/// Where an ApplicationConfiguration stands.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ApplicationConfigurationStatus {
    /// Whether it is applied.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "conditions")]
    pub conditions: Vec<Condition>,
    /// The generation that this is about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// The workloads.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub workloads: Vec<AppliedWorkload>,
    /// Workloads of earlier revisions that are kept.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "any_objects")]
    pub history_workloads: Vec<Value>,
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
    pub trait_ref: TraitReference,
    /// Generation of the ApplicationConfiguration for which it was applied last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub applied_generation: Option<i64>,
    /// What a person should know.
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
    /// What identifies it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub uid: Option<String>,
    /// Fields that this version does not know.
    #[serde(flatten)]
    #[schemars(skip)]
    pub other: Unknown,
}

/// A trait.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TraitReference {
    /// Group and version.
    #[serde(default)]
    pub api_version: String,
    /// Kind.
    #[serde(default)]
    pub kind: String,
    /// Name.
    #[serde(default)]
    pub name: String,
    /// Fields that this version does not know.
    #[serde(flatten)]
    #[schemars(skip)]
    pub other: Unknown,
}

/// The schema of a value of a parameter.
fn number_or_text(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
    int_or_string(".*")
}

/// The schema of a list of values that this version does not look into.
fn any_objects(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
    let item = any_object(generator);
    schemars::json_schema!({"type": "array", "items": item})
}
