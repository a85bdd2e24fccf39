//! What the last evaluation of a ConfigurationPolicy found.

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};

use crate::meta::{self, MicroTime, Time, Unknown};
use crate::open_enum::open_enum;

open_enum! {
    /// Result of an evaluation on a cluster.
    pub enum TemplateCompliance {
        /// Everything is as the policy says.
        Compliant = "Compliant",
        /// Dependencies are not met yet.
        Pending = "Pending",
        /// Something is not as the policy says.
        NonCompliant = "NonCompliant",
        /// The policy is being deleted, and objects of it are not gone yet.
        Terminating = "Terminating",
        /// Nothing is known yet.
        Unknown = "",
    }
}

/// Result of the last evaluation.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ConfigurationPolicyStatus {
    /// Compliance of all objects together.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub compliant: Option<TemplateCompliance>,
    /// Compliance of each object template, in their order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub compliancy_details: Vec<CompliancyDetail>,
    /// Time when it was evaluated last, to the second.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_evaluated: Option<String>,
    /// The generation of the policy that was evaluated last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "generation")]
    pub last_evaluated_generation: Option<i64>,
    /// The evaluated objects.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub related_objects: Vec<RelatedObject>,
    /// Results of the last evaluations, newest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub history: Vec<EvaluationHistory>,
    /// Fields that this version does not know.
    #[serde(flatten)]
    #[schemars(skip)]
    pub other: Unknown,
}

fn generation(_: &mut SchemaGenerator) -> Schema {
    json_schema!({"type": "integer", "format": "int64"})
}

/// Compliance of one object template.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CompliancyDetail {
    /// The state.
    #[serde(rename = "Compliant", default, skip_serializing_if = "Option::is_none")]
    pub compliant: Option<TemplateCompliance>,
    /// Kept for readers of older versions.
    #[serde(rename = "Validity", default)]
    pub validity: Validity,
    /// Reasons for the state.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub conditions: Vec<ComplianceCondition>,
    /// Fields that this version does not know.
    #[serde(flatten)]
    #[schemars(skip)]
    pub other: Unknown,
}

/// Kept for readers of older versions.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Validity {
    /// Fields that this version does not know.
    #[serde(flatten)]
    #[schemars(skip)]
    pub other: Unknown,
}

/// Reason for the state of an object template.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ComplianceCondition {
    /// `violation` or `notification`.
    #[serde(rename = "type")]
    pub type_: String,
    /// Always `True`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<String>,
    /// Time of the last change.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "meta::time")]
    pub last_transition_time: Option<Time>,
    /// Why, in a few words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Why, for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// Fields that this version does not know.
    #[serde(flatten)]
    #[schemars(skip)]
    pub other: Unknown,
}

/// An evaluated object.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RelatedObject {
    /// Reference to the object.
    #[serde(default)]
    pub object: ObjectReference,
    /// Its state.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub compliant: Option<String>,
    /// Reason for the state.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Further properties.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub properties: Option<ObjectProperties>,
    /// Fields that this version does not know.
    #[serde(flatten)]
    #[schemars(skip)]
    pub other: Unknown,
}

/// An object by kind and name.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ObjectReference {
    /// Kind of the object.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,
    /// Group and version of the object.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub api_version: Option<String>,
    /// Name and namespace.
    #[serde(default)]
    pub metadata: ObjectName,
    /// Fields that this version does not know.
    #[serde(flatten)]
    #[schemars(skip)]
    pub other: Unknown,
}

/// Name and namespace of an object.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ObjectName {
    /// The name; `-` where no object matched.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The namespace, if it has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
    /// Fields that this version does not know.
    #[serde(flatten)]
    #[schemars(skip)]
    pub other: Unknown,
}

/// Further properties of an object.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ObjectProperties {
    /// True if the policy created it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub created_by_policy: Option<bool>,
    /// Its UID at the evaluation.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub uid: String,
    /// Differences that would be applied, or have been.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub diff: String,
    /// True if the object differs from what is defined, and an update would not change it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub matches_after_dry_run: bool,
    /// Fields that this version does not know.
    #[serde(flatten)]
    #[schemars(skip)]
    pub other: Unknown,
}

/// Result of one evaluation.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct EvaluationHistory {
    /// Time when it was reported, to the microsecond.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "meta::time")]
    pub last_timestamp: Option<MicroTime>,
    /// The state, and what was found.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// Fields that this version does not know.
    #[serde(flatten)]
    #[schemars(skip)]
    pub other: Unknown,
}
