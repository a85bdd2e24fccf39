//! Objects for one cluster.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::GROUP;
use super::manifest_config::{ManifestConfig, ResourceIdentifier};
use super::manifest_work_status::ManifestWorkStatus;
use crate::TypeTag;
use crate::kind::kind;
use crate::meta::{self, ObjectMeta, Unknown};
use crate::open_enum::open_enum;
use crate::structural::filled_with;

/// A name or namespace of a Kubernetes object.
const SUBDOMAIN: &str = r"^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*)$";

/// Objects that a cluster shall have.
///
/// It is in the namespace that has the name of the cluster. The agent of the cluster applies the
/// objects, keeps them as they are written here, reports on them, and removes them with the work.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ManifestWork {
    /// Group, version and kind.
    #[serde(flatten)]
    #[schemars(skip)]
    pub types: TypeTag<Self>,
    /// Name, labels and so on.
    #[serde(default)]
    #[schemars(skip)]
    pub metadata: ObjectMeta,
    /// The objects, and how they are treated.
    #[serde(default)]
    pub spec: ManifestWorkSpec,
    /// Status reported by the agent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<ManifestWorkStatus>,
    /// Fields that this version does not know.
    #[serde(flatten)]
    #[schemars(skip)]
    pub other: Unknown,
}

kind! {
    ManifestWork: GROUP, "v1", "manifestworks", "manifestwork", Namespaced;
    spec: ManifestWorkSpec;
    status: ManifestWorkStatus;
}

/// Objects that a cluster shall have, and how they are treated.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ManifestWorkSpec {
    /// The objects.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workload: Option<Workload>,
    /// Treatment of the objects when the work is removed; default: they are removed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delete_option: Option<DeleteOption>,
    /// Options for applying and watching single objects.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub manifest_configs: Vec<ManifestConfig>,
    /// Identity by which the objects are applied; default: that of the agent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub executor: Option<Executor>,
    /// Fields that this version does not know.
    #[serde(flatten)]
    #[schemars(skip)]
    pub other: Unknown,
}

/// Objects to be applied.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Workload {
    /// The objects, whole.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "meta::manifests")]
    pub manifests: Vec<Value>,
    /// Fields that this version does not know.
    #[serde(flatten)]
    #[schemars(skip)]
    pub other: Unknown,
}

/// Treatment of objects when their work is removed, and the time of removal.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DeleteOption {
    /// Foreground: the objects are removed, and the work is removed after them. Orphan: all of
    /// them stay. SelectivelyOrphan: those that selectivelyOrphans names stay.
    #[serde(default)]
    #[schemars(transform = filled_with("Foreground"))]
    pub propagation_policy: DeletePropagationPolicy,
    /// Objects that stay, for SelectivelyOrphan.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub selectively_orphans: Option<SelectivelyOrphan>,
    /// After how many seconds a work is removed that is Complete. Without it, never; 0 is at once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ttl_seconds_after_finished: Option<i64>,
    /// Fields that this version does not know.
    #[serde(flatten)]
    #[schemars(skip)]
    pub other: Unknown,
}

open_enum! {
    /// Treatment of objects when their work is removed.
    pub enum DeletePropagationPolicy {
        /// They are removed first.
        Foreground = "Foreground",
        /// They stay.
        Orphan = "Orphan",
        /// Some of them stay.
        SelectivelyOrphan = "SelectivelyOrphan",
    }
}

/// Objects that stay when their work is removed.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SelectivelyOrphan {
    /// The objects; names are compared as they are, without wildcards.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub orphaning_rules: Vec<ResourceIdentifier>,
    /// Fields that this version does not know.
    #[serde(flatten)]
    #[schemars(skip)]
    pub other: Unknown,
}

/// In whose name objects are applied.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Executor {
    /// The subject that applies the objects.
    pub subject: ExecutorSubject,
    /// Fields that this version does not know.
    #[serde(flatten)]
    #[schemars(skip)]
    pub other: Unknown,
}

/// Somebody on the cluster, whose rights decide what may be applied.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ExecutorSubject {
    /// Type of the subject: a ServiceAccount.
    #[serde(rename = "type")]
    pub kind: ExecutorSubjectType,
    /// Reference to the service account.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub service_account: Option<ExecutorServiceAccount>,
    /// Fields that this version does not know.
    #[serde(flatten)]
    #[schemars(skip)]
    pub other: Unknown,
}

open_enum! {
    /// Type of an executor.
    pub enum ExecutorSubjectType {
        /// A service account of the cluster.
        ServiceAccount = "ServiceAccount",
    }
}

/// A service account of the cluster.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ExecutorServiceAccount {
    /// Its namespace.
    #[schemars(length(min = 1, max = 253), regex(pattern = SUBDOMAIN))]
    pub namespace: String,
    /// Its name.
    #[schemars(length(min = 1, max = 253), regex(pattern = SUBDOMAIN))]
    pub name: String,
    /// Fields that this version does not know.
    #[serde(flatten)]
    #[schemars(skip)]
    pub other: Unknown,
}
