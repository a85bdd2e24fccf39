//! Values that objects of an ApplicationConfiguration pass to each other, and what waits for them.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::meta::{Unknown, any_object};
use crate::open_enum::open_enum;

/// A value of an object that others can use.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DataOutput {
    /// Its name.
    #[serde(default)]
    pub name: String,
    /// Path of the value in the object.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub field_path: String,
    /// Conditions for passing the value on.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub conditions: Vec<DataCondition>,
    /// An object that it is kept in. Not supported.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "any_object")]
    pub output_store: Option<Value>,
    /// Fields that this version does not know.
    #[serde(flatten)]
    #[schemars(skip)]
    pub other: Unknown,
}

/// A value of another object that an object waits for.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DataInput {
    /// Source of the value.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub value_from: Option<DataInputSource>,
    /// Fields of the object that get it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub to_field_paths: Vec<String>,
    /// Fields by which items of lists are merged. Not supported.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub strategy_merge_keys: Vec<String>,
    /// Conditions for applying the object.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub conditions: Vec<DataCondition>,
    /// An object that it is read from. Not supported.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "any_object")]
    pub input_store: Option<Value>,
    /// Fields that this version does not know.
    #[serde(flatten)]
    #[schemars(skip)]
    pub other: Unknown,
}

/// Source of a value.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DataInputSource {
    /// Name of an output.
    #[serde(default)]
    pub data_output_name: String,
    /// Fields that this version does not know.
    #[serde(flatten)]
    #[schemars(skip)]
    pub other: Unknown,
}

open_enum! {
    /// Comparison operator.
    pub enum DataOperator {
        /// They are equal.
        Equal = "eq",
        /// They differ.
        NotEqual = "notEq",
        /// There is a value.
        NotEmpty = "notEmpty",
    }
}

/// Conditions for passing a value on.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DataCondition {
    /// Comparison operator.
    #[serde(rename = "op")]
    pub operator: DataOperator,
    /// Value to compare with.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub value: String,
    /// Path in the ApplicationConfiguration of the value to compare with, instead.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub value_from: Option<DataValueSource>,
    /// Path of the field to compare; the value itself if it is missing.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub field_path: String,
    /// Fields that this version does not know.
    #[serde(flatten)]
    #[schemars(skip)]
    pub other: Unknown,
}

/// Path of a value in an ApplicationConfiguration.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DataValueSource {
    /// The path of the field.
    #[serde(default)]
    pub field_path: String,
    /// Fields that this version does not know.
    #[serde(flatten)]
    #[schemars(skip)]
    pub other: Unknown,
}

/// Objects that wait for values of others.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DependencyStatus {
    /// Values that are not there yet.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unsatisfied: Vec<UnsatisfiedDependency>,
    /// Fields that this version does not know.
    #[serde(flatten)]
    #[schemars(skip)]
    pub other: Unknown,
}

/// A value that is not there yet.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct UnsatisfiedDependency {
    /// Reason if it does not exist.
    #[serde(default)]
    pub reason: String,
    /// Source of the value.
    #[serde(default)]
    pub from: DependencyStart,
    /// Objects that wait for it.
    #[serde(default)]
    pub to: DependencyEnd,
    /// Fields that this version does not know.
    #[serde(flatten)]
    #[schemars(skip)]
    pub other: Unknown,
}

/// Source of a value.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DependencyStart {
    /// Group and version of the object.
    #[serde(default)]
    pub api_version: String,
    /// Kind of the object.
    #[serde(default)]
    pub kind: String,
    /// Name of the object.
    #[serde(default)]
    pub name: String,
    /// Path of the value in the object.
    #[serde(default)]
    pub field_path: String,
    /// Fields that this version does not know.
    #[serde(flatten)]
    #[schemars(skip)]
    pub other: Unknown,
}

/// An object that waits for a value.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DependencyEnd {
    /// Group and version of the object.
    #[serde(default)]
    pub api_version: String,
    /// Kind of the object.
    #[serde(default)]
    pub kind: String,
    /// Name of the object.
    #[serde(default)]
    pub name: String,
    /// Fields of the object that get it.
    #[serde(default)]
    pub field_paths: Vec<String>,
    /// Fields that this version does not know.
    #[serde(flatten)]
    #[schemars(skip)]
    pub other: Unknown,
}
