//! What an agent reports about the objects of a work.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::meta::{self, Condition, Unknown};
use crate::open_enum::open_enum;
use crate::structural::keyed_by;

/// Status of a work, reported by the agent.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ManifestWorkStatus {
    /// Conditions of all objects together.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "meta::conditions")]
    pub conditions: Vec<Condition>,
    /// Conditions of each object.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resource_status: Option<ManifestResourceStatus>,
    /// Fields that this version does not know.
    #[serde(flatten)]
    #[schemars(skip)]
    pub other: Unknown,
}

/// Conditions of each object.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ManifestResourceStatus {
    /// One entry for each object, in the order of the work.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub manifests: Vec<ManifestCondition>,
    /// Fields that this version does not know.
    #[serde(flatten)]
    #[schemars(skip)]
    pub other: Unknown,
}

/// Conditions of one object.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ManifestCondition {
    /// Reference to the object.
    pub resource_meta: ManifestResourceMeta,
    /// The values that were asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status_feedback: Option<StatusFeedback>,
    /// Conditions: whether it is applied and available, and the results of rules.
    #[schemars(schema_with = "meta::conditions")]
    pub conditions: Vec<Condition>,
    /// Fields that this version does not know.
    #[serde(flatten)]
    #[schemars(skip)]
    pub other: Unknown,
}

/// An object of a work.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ManifestResourceMeta {
    /// Its place in the work, from 0.
    pub ordinal: i32,
    /// Its API group; empty for the core group.
    #[serde(default)]
    pub group: String,
    /// Its API version.
    #[serde(default)]
    pub version: String,
    /// Its kind.
    #[serde(default)]
    pub kind: String,
    /// Its resource; empty if the cluster does not know the kind.
    #[serde(default)]
    pub resource: String,
    /// Its name.
    #[serde(default)]
    pub name: String,
    /// Its namespace; empty if it has none.
    #[serde(default)]
    pub namespace: String,
    /// Fields that this version does not know.
    #[serde(flatten)]
    #[schemars(skip)]
    pub other: Unknown,
}

/// Values of an object.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct StatusFeedback {
    /// The values, by name.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(transform = keyed_by("name"))]
    pub values: Vec<FeedbackValue>,
    /// Fields that this version does not know.
    #[serde(flatten)]
    #[schemars(skip)]
    pub other: Unknown,
}

/// A value with the name that its rule gives it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct FeedbackValue {
    /// The name.
    pub name: String,
    /// The value.
    pub field_value: FieldValue,
    /// Fields that this version does not know.
    #[serde(flatten)]
    #[schemars(skip)]
    pub other: Unknown,
}

/// A value of one of some types.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct FieldValue {
    /// The type, which says where the value is.
    #[serde(rename = "type")]
    pub kind: ValueType,
    /// The value of an Integer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub integer: Option<i64>,
    /// The value of a String.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub string: Option<String>,
    /// The value of a Boolean.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub boolean: Option<bool>,
    /// The value of a JsonRaw: JSON as text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 1024))]
    pub json_raw: Option<String>,
    /// Fields that this version does not know.
    #[serde(flatten)]
    #[schemars(skip)]
    pub other: Unknown,
}

open_enum! {
    /// Types of values.
    pub enum ValueType {
        /// A whole number.
        Integer = "Integer",
        /// A text.
        String = "String",
        /// True or false.
        Boolean = "Boolean",
        /// Any JSON.
        JsonRaw = "JsonRaw",
    }
}
