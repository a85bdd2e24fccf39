//! What a work applied on a cluster, in the smaller interface.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::GROUP;
use super::work::whole_number;
use crate::TypeTag;
use crate::kind::kind;
use crate::meta::{ObjectMeta, Unknown};

/// Objects applied by a work on this cluster. Removing it removes the objects.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct AppliedWork {
    /// Group, version and kind.
    #[serde(flatten)]
    #[schemars(skip)]
    pub types: TypeTag<Self>,
    /// Name, labels and so on.
    #[serde(default)]
    #[schemars(skip)]
    pub metadata: ObjectMeta,
    /// The work.
    pub spec: AppliedWorkSpec,
    /// Applied objects.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<AppliedWorkStatus>,
    /// Fields that this version does not know.
    #[serde(flatten)]
    #[schemars(skip)]
    pub other: Unknown,
}

kind! {
    AppliedWork: GROUP, "v1alpha1", "appliedworks", "appliedwork", Cluster;
    spec: AppliedWorkSpec;
    status: AppliedWorkStatus;
    categories: ["fleet"];
}

/// The work.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AppliedWorkSpec {
    /// The name of the work on the hub.
    pub work_name: String,
    /// The namespace of the work on the hub.
    pub work_namespace: String,
    /// Fields that this version does not know.
    #[serde(flatten)]
    #[schemars(skip)]
    pub other: Unknown,
}

/// Objects applied by a work.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AppliedWorkStatus {
    /// The objects.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub applied_resources: Vec<AppliedResourceMeta>,
    /// Fields that this version does not know.
    #[serde(flatten)]
    #[schemars(skip)]
    pub other: Unknown,
}

/// An object that was applied.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct AppliedResourceMeta {
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
    /// Its UID, so that another object of the same name is left alone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub uid: Option<String>,
    /// Fields that this version does not know.
    #[serde(flatten)]
    #[schemars(skip)]
    pub other: Unknown,
}
