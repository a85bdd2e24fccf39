//! How types of components, traits, policies and workflow steps are rendered.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::GROUP;
use super::application_status::RevisionReference;
use crate::TypeTag;
use crate::kind::kind;
use crate::meta::{Condition, ObjectMeta, Unknown, any_object, conditions};
use crate::open_enum::open_enum;

/// A type of component.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ComponentDefinition {
    /// Group, version and kind.
    #[serde(flatten)]
    #[schemars(skip)]
    pub types: TypeTag<Self>,
    /// Name, labels and so on.
    #[serde(default)]
    #[schemars(skip)]
    pub metadata: ObjectMeta,
    /// Template and parameters it is rendered from.
    pub spec: ComponentDefinitionSpec,
    /// Status of the definition.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<DefinitionStatus>,
    /// Fields that this version does not know.
    #[serde(flatten)]
    #[schemars(skip)]
    pub other: Unknown,
}

kind! {
    ComponentDefinition: GROUP, "v1beta1", "componentdefinitions", "componentdefinition", Namespaced;
    spec: ComponentDefinitionSpec;
    status: DefinitionStatus;
    short: ["comp"];
    categories: ["oam"];
    columns: [
        ("WORKLOAD-KIND", "string", ".spec.workload.definition.kind"),
        ("DESCRIPTION", "string", ".metadata.annotations.definition\\.oam\\.dev/description"),
    ];
}

/// Definition of a type of component.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ComponentDefinitionSpec {
    /// Type of its output.
    #[serde(default)]
    pub workload: WorkloadReference,
    /// Kinds of objects that its output makes, for people.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub child_resource_kinds: Vec<ChildResourceKind>,
    /// Label of pods with their revision, for people.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub revision_label: String,
    /// For people: path of the pod template in its output.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub pod_spec_path: String,
    /// Rules for reporting its status.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<StatusTemplates>,
    /// Version of the definition, such as 1.2.0; revisions are named after it.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub version: String,
    /// Engine and source of the template.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub schematic: Option<Schematic>,
    /// Further settings; template in it is where old definitions have their template.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "any_object")]
    pub extension: Option<Value>,
    /// Fields that this version does not know.
    #[serde(flatten)]
    #[schemars(skip)]
    pub other: Unknown,
}

/// Type of the output of a component.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct WorkloadReference {
    /// Resource with its group, such as deployments.apps; autodetects.core.oam.dev if it depends.
    #[serde(rename = "type", default, skip_serializing_if = "String::is_empty")]
    pub workload_type: String,
    /// Group, version and kind.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub definition: Option<super::WorkloadKind>,
    /// Fields that this version does not know.
    #[serde(flatten)]
    #[schemars(skip)]
    pub other: Unknown,
}

/// A kind of objects that a workload makes.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ChildResourceKind {
    /// Group and version.
    pub api_version: String,
    /// Kind.
    pub kind: String,
    /// Labels that they have.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "any_object")]
    pub selector: Option<Value>,
    /// Fields that this version does not know.
    #[serde(flatten)]
    #[schemars(skip)]
    pub other: Unknown,
}

/// A CustomResourceDefinition.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DefinitionReference {
    /// Its name.
    pub name: String,
    /// Version of its kind.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub version: String,
    /// Fields that this version does not know.
    #[serde(flatten)]
    #[schemars(skip)]
    pub other: Unknown,
}

/// Engine and source of a template.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Schematic {
    /// A template in CUE.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cue: Option<CueTemplate>,
    /// A configuration of Terraform.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "any_object")]
    pub terraform: Option<Value>,
    /// Fields that this version does not know.
    #[serde(flatten)]
    #[schemars(skip)]
    pub other: Unknown,
}

/// A template in CUE.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CueTemplate {
    /// The source.
    #[serde(default)]
    pub template: String,
    /// Fields that this version does not know.
    #[serde(flatten)]
    #[schemars(skip)]
    pub other: Unknown,
}

/// Rules for reporting the status of objects, in CUE over context and parameter.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct StatusTemplates {
    /// Gives the string message.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub custom_status: String,
    /// Gives isHealth, whether the objects are healthy.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub health_policy: String,
    /// Gives values by name.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub details: String,
    /// Fields that this version does not know.
    #[serde(flatten)]
    #[schemars(skip)]
    pub other: Unknown,
}

/// Status of a definition.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DefinitionStatus {
    /// Conditions: whether it can be used.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "conditions")]
    pub conditions: Vec<Condition>,
    /// ConfigMap with the schema of its parameters.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub config_map_ref: String,
    /// Its latest revision.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub latest_revision: Option<RevisionReference>,
    /// Fields that this version does not know.
    #[serde(flatten)]
    #[schemars(skip)]
    pub other: Unknown,
}

open_enum! {
    /// Stage at which the objects of a trait are applied.
    pub enum TraitStage {
        /// With the component.
        DefaultDispatch = "DefaultDispatch",
        /// Before the component.
        PreDispatch = "PreDispatch",
        /// After the component is healthy.
        PostDispatch = "PostDispatch",
    }
}

/// A type of trait.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TraitDefinition {
    /// Group, version and kind.
    #[serde(flatten)]
    #[schemars(skip)]
    pub types: TypeTag<Self>,
    /// Name, labels and so on.
    #[serde(default)]
    #[schemars(skip)]
    pub metadata: ObjectMeta,
    /// Template and parameters it is rendered from.
    #[serde(default)]
    pub spec: TraitDefinitionSpec,
    /// Status of the definition.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<DefinitionStatus>,
    /// Fields that this version does not know.
    #[serde(flatten)]
    #[schemars(skip)]
    pub other: Unknown,
}

kind! {
    TraitDefinition: GROUP, "v1beta1", "traitdefinitions", "traitdefinition", Namespaced;
    spec: TraitDefinitionSpec;
    status: DefinitionStatus;
    also_served: ["v1alpha2"];
    short: ["trait"];
    categories: ["oam"];
    columns: [
        ("APPLIES-TO", "string", ".spec.appliesToWorkloads"),
        ("DESCRIPTION", "string", ".metadata.annotations.definition\\.oam\\.dev/description"),
    ];
}

/// Definition of a type of trait.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "they are fields of the interface"
)]
#[serde(rename_all = "camelCase")]
pub struct TraitDefinitionSpec {
    /// The CustomResourceDefinition that it stands for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub definition_ref: Option<DefinitionReference>,
    /// True if workloads of an ApplicationConfiguration are named after their revision.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub revision_enabled: bool,
    /// Path of the reference to the workload in its objects.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub workload_ref_path: String,
    /// For people: true if a change restarts pods.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub pod_disruptive: bool,
    /// Types of workloads that it supports.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub applies_to_workloads: Vec<String>,
    /// Traits that conflict with it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub conflicts_with: Vec<String>,
    /// True if it applies the workload itself.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub manage_workload: bool,
    /// True if its objects are applied on the hub alone.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub control_plane_only: bool,
    /// Stage at which its objects are applied.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stage: Option<TraitStage>,
    /// Rules for reporting its status.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<StatusTemplates>,
    /// Version of the definition, such as 1.2.0; revisions are named after it.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub version: String,
    /// Engine and source of the template.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub schematic: Option<Schematic>,
    /// Further settings; template in it is where old definitions have their template.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "any_object")]
    pub extension: Option<Value>,
    /// Fields that this version does not know.
    #[serde(flatten)]
    #[schemars(skip)]
    pub other: Unknown,
}

/// A type of policy.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PolicyDefinition {
    /// Group, version and kind.
    #[serde(flatten)]
    #[schemars(skip)]
    pub types: TypeTag<Self>,
    /// Name, labels and so on.
    #[serde(default)]
    #[schemars(skip)]
    pub metadata: ObjectMeta,
    /// Template and parameters it is rendered from.
    #[serde(default)]
    pub spec: PolicyDefinitionSpec,
    /// Status of the definition.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<DefinitionStatus>,
    /// Fields that this version does not know.
    #[serde(flatten)]
    #[schemars(skip)]
    pub other: Unknown,
}

kind! {
    PolicyDefinition: GROUP, "v1beta1", "policydefinitions", "policydefinition", Namespaced;
    spec: PolicyDefinitionSpec;
    status: DefinitionStatus;
    short: ["def-policy"];
    categories: ["oam"];
}

/// Definition of a type of policy.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PolicyDefinitionSpec {
    /// The CustomResourceDefinition that it stands for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub definition_ref: Option<DefinitionReference>,
    /// True if applications with it leave the health of components to it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub manage_health_check: bool,
    /// `Application` if it changes the application itself before that is rendered; it makes objects otherwise.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub scope: String,
    /// True if it applies to every application, without being named there; for the scope Application only.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub global: bool,
    /// Priority among policies that apply to every application: lower ones first.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub priority: i32,
    /// Version of the definition, such as 1.2.0; revisions are named after it.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub version: String,
    /// Engine and source of the template.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub schematic: Option<Schematic>,
    /// Fields that this version does not know.
    #[serde(flatten)]
    #[schemars(skip)]
    pub other: Unknown,
}

/// A type of workflow step.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct WorkflowStepDefinition {
    /// Group, version and kind.
    #[serde(flatten)]
    #[schemars(skip)]
    pub types: TypeTag<Self>,
    /// Name, labels and so on.
    #[serde(default)]
    #[schemars(skip)]
    pub metadata: ObjectMeta,
    /// Template it is carried out by.
    #[serde(default)]
    pub spec: WorkflowStepDefinitionSpec,
    /// Status of the definition.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<DefinitionStatus>,
    /// Fields that this version does not know.
    #[serde(flatten)]
    #[schemars(skip)]
    pub other: Unknown,
}

kind! {
    WorkflowStepDefinition: GROUP, "v1beta1", "workflowstepdefinitions", "workflowstepdefinition", Namespaced;
    spec: WorkflowStepDefinitionSpec;
    status: DefinitionStatus;
    short: ["workflowstep"];
    categories: ["oam"];
}

/// Definition of a type of workflow step.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct WorkflowStepDefinitionSpec {
    /// The CustomResourceDefinition that it stands for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub definition_ref: Option<DefinitionReference>,
    /// Version of the definition, such as 1.2.0; revisions are named after it.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub version: String,
    /// Engine and source of the template.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub schematic: Option<Schematic>,
    /// Fields that this version does not know.
    #[serde(flatten)]
    #[schemars(skip)]
    pub other: Unknown,
}

/// A kind of workload, which old components use as their type.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct WorkloadDefinition {
    /// Group, version and kind.
    #[serde(flatten)]
    #[schemars(skip)]
    pub types: TypeTag<Self>,
    /// Name, labels and so on.
    #[serde(default)]
    #[schemars(skip)]
    pub metadata: ObjectMeta,
    /// Kind of the workload.
    pub spec: WorkloadDefinitionSpec,
    /// Fields that this version does not know.
    #[serde(flatten)]
    #[schemars(skip)]
    pub other: Unknown,
}

kind! {
    WorkloadDefinition: GROUP, "v1beta1", "workloaddefinitions", "workloaddefinition", Namespaced;
    spec: WorkloadDefinitionSpec;
    also_served: ["v1alpha2"];
    short: ["workload"];
    categories: ["oam"];
    columns: [
        ("DEFINITION-NAME", "string", ".spec.definitionRef.name"),
        ("DESCRIPTION", "string", ".metadata.annotations.definition\\.oam\\.dev/description"),
    ];
}

/// A kind of workload.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct WorkloadDefinitionSpec {
    /// The CustomResourceDefinition of the kind.
    pub definition_ref: DefinitionReference,
    /// Kinds of objects that it makes, for people.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub child_resource_kinds: Vec<ChildResourceKind>,
    /// Label of pods with their revision, for people.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub revision_label: String,
    /// For people: path of the pod template.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub pod_spec_path: String,
    /// Rules for reporting its status.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<StatusTemplates>,
    /// Engine and source of the template.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub schematic: Option<Schematic>,
    /// Further settings; template in it is where old definitions have their template.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "any_object")]
    pub extension: Option<Value>,
    /// Fields that this version does not know.
    #[serde(flatten)]
    #[schemars(skip)]
    pub other: Unknown,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes references")]
fn is_zero(number: &i32) -> bool {
    *number == 0
}
