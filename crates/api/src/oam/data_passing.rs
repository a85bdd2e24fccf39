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
    /// Where the object has it.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub field_path: String,
    /// What has to hold before it is passed on.
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
    /// Where it comes from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub value_from: Option<DataInputSource>,
    /// Fields of the object that get it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub to_field_paths: Vec<String>,
    /// Fields by which items of lists are merged. Not supported.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub strategy_merge_keys: Vec<String>,
    /// What has to hold before the object is applied.
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

/// Where a value comes from.
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
    /// How values are compared.
    pub enum DataOperator {
        /// They are equal.
        Equal = "eq",
        /// They differ.
        NotEqual = "notEq",
        /// There is a value.
        NotEmpty = "notEmpty",
    }
}

/// What has to hold before a value is passed on.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DataCondition {
    /// How values are compared.
    #[serde(rename = "op")]
    pub operator: DataOperator,
    /// What is compared with.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub value: String,
    /// Where the ApplicationConfiguration has what is compared with, instead.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub value_from: Option<DataValueSource>,
    /// Where the object has what is compared; the value itself if it is missing.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub field_path: String,
    /// Fields that this version does not know.
    #[serde(flatten)]
    #[schemars(skip)]
    pub other: Unknown,
}

/// Where an ApplicationConfiguration has a value.
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

/// What waits for values of others.
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
    /// Why it is not there.
    #[serde(default)]
    pub reason: String,
    /// Where it comes from.
    #[serde(default)]
    pub from: DependencyStart,
    /// What waits for it.
    #[serde(default)]
    pub to: DependencyEnd,
    /// Fields that this version does not know.
    #[serde(flatten)]
    #[schemars(skip)]
    pub other: Unknown,
}

/// Where a value comes from.
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
    /// Where the object has it.
    #[serde(default)]
    pub field_path: String,
    /// Fields that this version does not know.
    #[serde(flatten)]
    #[schemars(skip)]
    pub other: Unknown,
}

/// What waits for a value.
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
