//! A group of clusters.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::GROUP;
use crate::TypeTag;
use crate::kind::kind;
use crate::meta::{self, Condition, LabelSelector, ObjectMeta, Unknown};
use crate::open_enum::open_enum;
use crate::structural::{filled_with, keyed_by};

/// A group of clusters that namespaces of the hub can be bound to.
///
/// A cluster is a member by its labels alone. To put one in or take one out takes the right to
/// create managedclustersets/join.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ManagedClusterSet {
    /// Group, version and kind.
    #[serde(flatten)]
    #[schemars(skip)]
    pub types: TypeTag<Self>,
    /// Name, labels and so on.
    #[serde(default)]
    #[schemars(skip)]
    pub metadata: ObjectMeta,
    /// Selection of members.
    #[serde(default)]
    #[schemars(transform = filled_with(json!({"clusterSelector": {"selectorType": "ExclusiveClusterSetLabel"}})))]
    pub spec: ManagedClusterSetSpec,
    /// Status as observed by the hub.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<ManagedClusterSetStatus>,
    /// Fields that this version does not know.
    #[serde(flatten)]
    #[schemars(skip)]
    pub other: Unknown,
}

kind! {
    ManagedClusterSet: GROUP, "v1beta2", "managedclustersets", "managedclusterset", Cluster;
    spec: ManagedClusterSetSpec;
    status: ManagedClusterSetStatus;
    short: ["mclset", "mclsets"];
    columns: [
        ("Empty", "string", r#".status.conditions[?(@.type=="ClusterSetEmpty")].status"#),
        ("Age", "date", ".metadata.creationTimestamp"),
    ];
}

/// Selection of the members of a set.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ManagedClusterSetSpec {
    /// Selection of members.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(transform = filled_with(json!({"selectorType": "ExclusiveClusterSetLabel"})))]
    pub cluster_selector: Option<ManagedClusterSelector>,
    /// Namespaces that the set manages on all its members.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(transform = keyed_by("name"))]
    pub managed_namespaces: Vec<ManagedNamespace>,
    /// Fields that this version does not know.
    #[serde(flatten)]
    #[schemars(skip)]
    pub other: Unknown,
}

/// Selection of the members of a set.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ManagedClusterSelector {
    /// ExclusiveClusterSetLabel: members have the label
    /// cluster.open-cluster-management.io/clusterset with the name of the set, so that a cluster is
    /// in one such set. LabelSelector: members match labelSelector.
    #[serde(default)]
    #[schemars(transform = filled_with("ExclusiveClusterSetLabel"))]
    pub selector_type: SelectorType,
    /// Labels of members, for LabelSelector. Without it there are no members; an empty one
    /// makes all clusters members.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "meta::label_selector")]
    pub label_selector: Option<LabelSelector>,
    /// Fields that this version does not know.
    #[serde(flatten)]
    #[schemars(skip)]
    pub other: Unknown,
}

open_enum! {
    /// Selection of the members of a set.
    pub enum SelectorType {
        /// By the label that names the set.
        ExclusiveClusterSetLabel = "ExclusiveClusterSetLabel",
        /// By a selector.
        LabelSelector = "LabelSelector",
    }
}

/// A namespace that a set manages on all its members.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ManagedNamespace {
    /// Name of the namespace.
    #[schemars(length(max = 63), regex(pattern = "^[a-z0-9]([-a-z0-9]*[a-z0-9])?$"))]
    pub name: String,
    /// Fields that this version does not know.
    #[serde(flatten)]
    #[schemars(skip)]
    pub other: Unknown,
}

/// Status of a set.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ManagedClusterSetStatus {
    /// Conditions: whether the set is empty.
    #[serde(default)]
    #[schemars(schema_with = "meta::conditions")]
    pub conditions: Vec<Condition>,
    /// Fields that this version does not know.
    #[serde(flatten)]
    #[schemars(skip)]
    pub other: Unknown,
}
