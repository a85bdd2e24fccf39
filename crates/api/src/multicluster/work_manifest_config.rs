//! Which values of objects of a kind come back to the hub.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::GROUP;
use crate::TypeTag;
use crate::kind::kind;
use crate::meta::{self, Condition, ObjectMeta, Unknown};
use crate::open_enum::open_enum;
use crate::structural::filled_with;

/// Values to report in the status of works, for objects of one kind.
///
/// It is best named after the kind: group, version and kind in lower case, with dashes between, such
/// as apps-v1-deployment. Of kinds that have none, no values are reported.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct WorkManifestConfig {
    /// Group, version and kind.
    #[serde(flatten)]
    #[schemars(skip)]
    pub types: TypeTag<Self>,
    /// Name, labels and so on.
    #[serde(default)]
    #[schemars(skip)]
    pub metadata: ObjectMeta,
    /// A kind, and the values to report of its objects.
    pub spec: WorkManifestConfigSpec,
    /// Status reported by agents.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<WorkManifestConfigStatus>,
    /// Fields that this version does not know.
    #[serde(flatten)]
    #[schemars(skip)]
    pub other: Unknown,
}

kind! {
    WorkManifestConfig: GROUP, "v1alpha1", "workmanifestconfigs", "workmanifestconfig", Cluster;
    spec: WorkManifestConfigSpec;
    status: WorkManifestConfigStatus;
}

/// A kind, and the values to report of its objects.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct WorkManifestConfigSpec {
    /// The kind.
    #[serde(rename = "manifestGVK")]
    pub manifest_gvk: ManifestGvk,
    /// Values to report, and when they are read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resource_status_sync: Option<ResourceStatusSync>,
    /// Fields that this version does not know.
    #[serde(flatten)]
    #[schemars(skip)]
    pub other: Unknown,
}

/// Status of a configuration, reported by agents.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct WorkManifestConfigStatus {
    /// Conditions: whether the configuration is in use; of several for one kind only one is.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "meta::conditions")]
    pub conditions: Vec<Condition>,
    /// Fields that this version does not know.
    #[serde(flatten)]
    #[schemars(skip)]
    pub other: Unknown,
}

/// A kind of objects.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ManifestGvk {
    /// The API group; empty for the core group.
    pub group: String,
    /// The API version.
    pub version: String,
    /// The kind.
    pub kind: String,
    /// Fields that this version does not know.
    #[serde(flatten)]
    #[schemars(skip)]
    pub other: Unknown,
}

/// Values to report, and when they are read.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ResourceStatusSync {
    /// Values to report.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub rules: Vec<StatusSyncRule>,
    /// After how many seconds values are read again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = i32::MAX), transform = filled_with(60))]
    pub frequency_seconds: Option<i32>,
    /// After how many reads without a change no more are made, until the work changes; 0 never ends.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = i32::MAX), transform = filled_with(0))]
    pub stop_threshold: Option<i32>,
    /// Fields that this version does not know.
    #[serde(flatten)]
    #[schemars(skip)]
    pub other: Unknown,
}

/// Values that are wanted.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct StatusSyncRule {
    /// JSONPaths: values that jsonPaths point to. Scripts: values that scripts compute.
    #[serde(rename = "type")]
    pub kind: SyncType,
    /// Paths to values.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub json_paths: Vec<JsonPath>,
    /// Scripts that compute values.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub scripts: Vec<Script>,
    /// Fields that this version does not know.
    #[serde(flatten)]
    #[schemars(skip)]
    pub other: Unknown,
}

open_enum! {
    /// Method of finding values.
    pub enum SyncType {
        /// By paths.
        JsonPaths = "JSONPaths",
        /// By scripts.
        Scripts = "Scripts",
    }
}

/// A path to a value.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct JsonPath {
    /// Name of the value in the status of the work.
    pub name: String,
    /// Required version of the object; any if empty.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// JSONPath of the value in the object, as in kubectl. Lists and maps are reported as JSON
    /// in a byte array; what is not there does not come back.
    pub path: String,
    /// Fields that this version does not know.
    #[serde(flatten)]
    #[schemars(skip)]
    pub other: Unknown,
}

/// A script that computes a value.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Script {
    /// Name of the value in the status of the work.
    pub name: String,
    /// The language of the script: CEL.
    pub language: String,
    /// The script. It sees object, status, and the fields of the status by their names.
    pub content: String,
    /// Fields that this version does not know.
    #[serde(flatten)]
    #[schemars(skip)]
    pub other: Unknown,
}
