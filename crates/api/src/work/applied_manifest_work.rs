//! What a work applied on a cluster.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::GROUP;
use crate::TypeTag;
use crate::kind::kind;
use crate::meta::{self, ObjectMeta, Time, Unknown};

/// Objects applied by a work on this cluster. It owns the objects, and removing it removes them.
///
/// Its name is the hash of the hub and the name of the work, with a dash between.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct AppliedManifestWork {
    /// Group, version and kind.
    #[serde(flatten)]
    #[schemars(skip)]
    pub types: TypeTag<Self>,
    /// Name, labels and so on.
    #[serde(default)]
    #[schemars(skip)]
    pub metadata: ObjectMeta,
    /// The work and its hub.
    #[serde(default)]
    pub spec: AppliedManifestWorkSpec,
    /// Applied objects.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<AppliedManifestWorkStatus>,
    /// Fields that this version does not know.
    #[serde(flatten)]
    #[schemars(skip)]
    pub other: Unknown,
}

kind! {
    AppliedManifestWork: GROUP, "v1", "appliedmanifestworks", "appliedmanifestwork", Cluster;
    spec: AppliedManifestWorkSpec;
    status: AppliedManifestWorkStatus;
}

/// The work and its hub.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AppliedManifestWorkSpec {
    /// The SHA-256 of the hub's address, in hexadecimal.
    pub hub_hash: String,
    /// The agent that applied the work; others leave it alone.
    #[serde(default, rename = "agentID")]
    pub agent_id: String,
    /// The name of the work on the hub.
    pub manifest_work_name: String,
    /// Fields that this version does not know.
    #[serde(flatten)]
    #[schemars(skip)]
    pub other: Unknown,
}

/// Objects applied by a work.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AppliedManifestWorkStatus {
    /// The objects, sorted by group, version, resource, namespace and name.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub applied_resources: Vec<AppliedResource>,
    /// Time since which the work is missing on the hub, or the hub is another one. After a while its
    /// objects are removed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "meta::time")]
    pub eviction_start_time: Option<Time>,
    /// Fields that this version does not know.
    #[serde(flatten)]
    #[schemars(skip)]
    pub other: Unknown,
}

/// An object that was applied.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct AppliedResource {
    /// Its API group; empty for the core group.
    #[serde(default)]
    pub group: String,
    /// Its API version.
    pub version: String,
    /// Its resource, in plural.
    pub resource: String,
    /// Its name.
    pub name: String,
    /// Its namespace; empty if it has none.
    #[serde(default)]
    pub namespace: String,
    /// Its UID, so that another object of the same name is left alone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub uid: Option<String>,
    /// Fields that this version does not know.
    #[serde(flatten)]
    #[schemars(skip)]
    pub other: Unknown,
}
