//! Where an application stands.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::meta::{Condition, Time, Unknown, conditions, time};
use crate::workflow::WorkflowStatus;

/// Status of an application.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ApplicationStatus {
    /// Conditions of the application.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "conditions")]
    #[serde(deserialize_with = "crate::compact::exact")]
    pub conditions: Vec<Condition>,
    /// The generation that this is about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// Phase, such as running.
    #[serde(rename = "status", default, skip_serializing_if = "String::is_empty")]
    pub phase: String,
    /// Status of each component on each cluster.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[serde(deserialize_with = "crate::compact::exact")]
    pub services: Vec<ComponentService>,
    /// Status of the workflow.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workflow: Option<WorkflowStatus>,
    /// The revision that is delivered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub latest_revision: Option<RevisionReference>,
    /// The objects that are applied.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[serde(deserialize_with = "crate::compact::exact")]
    pub applied_resources: Vec<AppliedResource>,
    /// The policies that change the application before it is rendered, in the order in which they did.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub applied_application_policies: Vec<AppliedApplicationPolicy>,
    /// Condition for restarting the workflow.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "time")]
    pub workflow_restart_scheduled_at: Option<Time>,
    /// Fields that this version does not know.
    #[serde(flatten)]
    #[schemars(skip)]
    pub other: Unknown,
}

/// Changes of an application by a policy, before it was rendered.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AppliedApplicationPolicy {
    /// Name of the policy.
    pub name: String,
    /// Type of the policy.
    #[serde(rename = "type", default, skip_serializing_if = "String::is_empty")]
    pub policy_type: String,
    /// Namespace of its definition.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub namespace: String,
    /// True if it was applied; false if its template says that it is off.
    #[serde(default)]
    pub applied: bool,
    /// Origin of the policy: global if its definition applies to every application, explicit if the application names it.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub source: String,
    /// Reason if it was not applied.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub message: String,
    /// True if it changed components, workflow or policies.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub spec_modified: bool,
    /// Number of labels it set.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub labels_count: i64,
    /// Number of annotations it set.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub annotations_count: i64,
    /// True if it provides values for other templates.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub has_context: bool,
    /// Fields that this version does not know.
    #[serde(flatten)]
    #[schemars(skip)]
    pub other: Unknown,
}

#[expect(
    clippy::trivially_copy_pass_by_ref,
    reason = "serde passes a reference"
)]
fn is_zero(count: &i64) -> bool {
    *count == 0
}

/// Status of a component on a cluster.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ComponentService {
    /// Name of the component.
    pub name: String,
    /// Namespace that it is in.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub namespace: String,
    /// Cluster that it is on; empty or local for the hub.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub cluster: String,
    /// Environment, where an old application has one.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub env: String,
    /// Type according to its definition.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workload_definition: Option<WorkloadKind>,
    /// True if it and its traits are healthy.
    #[serde(default)]
    pub healthy: bool,
    /// True if it is healthy without its traits.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub workload_healthy: bool,
    /// Details of its definition.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub details: BTreeMap<String, String>,
    /// Message for people.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub message: String,
    /// Status of its traits.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[serde(deserialize_with = "crate::compact::exact")]
    pub traits: Vec<ServiceTrait>,
    /// Fields that this version does not know.
    #[serde(flatten)]
    #[schemars(skip)]
    pub other: Unknown,
}

/// Status of a trait.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ServiceTrait {
    /// Type of the trait.
    #[serde(rename = "type")]
    pub trait_type: String,
    /// True if it is healthy.
    #[serde(default)]
    pub healthy: bool,
    /// True if it waits for the component to be healthy.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub pending: bool,
    /// Details of its definition.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub details: BTreeMap<String, String>,
    /// Message for people.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub message: String,
    /// Fields that this version does not know.
    #[serde(flatten)]
    #[schemars(skip)]
    pub other: Unknown,
}

/// Type of a component.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct WorkloadKind {
    /// Group and version.
    #[serde(default)]
    pub api_version: String,
    /// Kind.
    #[serde(default)]
    pub kind: String,
    /// Fields that this version does not know.
    #[serde(flatten)]
    #[schemars(skip)]
    pub other: Unknown,
}

/// A revision.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RevisionReference {
    /// Its name.
    pub name: String,
    /// Its number.
    pub revision: i64,
    /// Hash of its content.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub revision_hash: String,
    /// Fields that this version does not know.
    #[serde(flatten)]
    #[schemars(skip)]
    pub other: Unknown,
}

/// An object that is applied.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AppliedResource {
    /// Cluster that it is on; empty for the hub.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub cluster: String,
    /// Cause of the application: workflow or policy.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub creator: String,
    /// Group and version.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub api_version: String,
    /// Kind.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub kind: String,
    /// Namespace.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub namespace: String,
    /// Name.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub name: String,
    /// Identifier of the object.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub uid: String,
    /// Fields that this version does not know.
    #[serde(flatten)]
    #[schemars(skip)]
    pub other: Unknown,
}
