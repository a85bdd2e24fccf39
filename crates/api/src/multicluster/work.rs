//! Objects for one cluster, in the smaller interface.

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::GROUP;
use crate::TypeTag;
use crate::kind::kind;
use crate::meta::{self, ByteString, Condition, ObjectMeta, Unknown};
use crate::open_enum::open_enum;
use crate::structural::keyed_by;

/// Objects that a cluster shall have. It is in the namespace of the cluster.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Work {
    /// Group, version and kind.
    #[serde(flatten)]
    #[schemars(skip)]
    pub types: TypeTag<Self>,
    /// Name, labels and so on.
    #[serde(default)]
    #[schemars(skip)]
    pub metadata: ObjectMeta,
    /// The objects.
    #[serde(default)]
    pub spec: WorkSpec,
    /// Status reported by the agent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<WorkStatus>,
    /// Fields that this version does not know.
    #[serde(flatten)]
    #[schemars(skip)]
    pub other: Unknown,
}

kind! {
    Work: GROUP, "v1alpha1", "works", "work", Namespaced;
    spec: WorkSpec;
    status: WorkStatus;
}

/// Objects that a cluster shall have.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct WorkSpec {
    /// The objects.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workload: Option<WorkloadTemplate>,
    /// Fields that this version does not know.
    #[serde(flatten)]
    #[schemars(skip)]
    pub other: Unknown,
}

/// Objects to be applied.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct WorkloadTemplate {
    /// The objects, whole.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "meta::manifests")]
    pub manifests: Vec<Value>,
    /// Fields that this version does not know.
    #[serde(flatten)]
    #[schemars(skip)]
    pub other: Unknown,
}

/// Status of a work, reported by the agent.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct WorkStatus {
    /// Conditions of all objects together.
    #[schemars(schema_with = "meta::conditions")]
    pub conditions: Vec<Condition>,
    /// Conditions of each object.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub manifest_conditions: Vec<ManifestCondition>,
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
    #[serde(default)]
    pub identifier: WorkResourceIdentifier,
    /// Conditions: whether it is applied and available, and its status is synced.
    #[schemars(schema_with = "meta::conditions")]
    pub conditions: Vec<Condition>,
    /// Values of its status, as a WorkManifestConfig asks for them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status_sync: Option<StatusSyncResult>,
    /// Fields that this version does not know.
    #[serde(flatten)]
    #[schemars(skip)]
    pub other: Unknown,
}

/// An object of a work.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct WorkResourceIdentifier {
    /// Its place in the work, from 0.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "whole_number")]
    pub ordinal: Option<i64>,
    /// Its API group; empty for the core group.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub group: Option<String>,
    /// Its API version.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// Its kind.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,
    /// Its resource, in plural.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resource: Option<String>,
    /// Its namespace; empty if it has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
    /// Its name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Fields that this version does not know.
    #[serde(flatten)]
    #[schemars(skip)]
    pub other: Unknown,
}

/// A whole number without a format, as the peer has it.
pub(super) fn whole_number(_: &mut SchemaGenerator) -> Schema {
    json_schema!({"type": "integer"})
}

/// Values of the status of an object.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct StatusSyncResult {
    /// The values, by name.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(transform = keyed_by("name"))]
    pub values: Vec<SyncValue>,
    /// Fields that this version does not know.
    #[serde(flatten)]
    #[schemars(skip)]
    pub other: Unknown,
}

/// A value with the name that its rule gives it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SyncValue {
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
    /// The value of a ByteArray: JSON in base64, for lists and maps.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "meta::bytes")]
    pub byte_array: Option<ByteString>,
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
        /// Anything else, as JSON.
        ByteArray = "ByteArray",
    }
}
