//! The older way to select clusters, as far as it is read.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::APPS_GROUP;
use crate::TypeTag;
use crate::kind::kind;
use crate::meta::{ObjectMeta, Unknown};
use crate::structural;

/// Selects clusters. Bellwether reads its decisions and does not make them: use a Placement.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PlacementRule {
    /// Group, version and kind.
    #[serde(flatten)]
    #[schemars(skip)]
    pub types: TypeTag<Self>,
    /// Name, labels and so on.
    #[serde(default)]
    #[schemars(skip)]
    pub metadata: ObjectMeta,
    /// Settings for a controller outside this hub.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(transform = structural::open)]
    pub spec: Option<PlacementRuleSpec>,
    /// The clusters that it decided for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(transform = structural::open)]
    pub status: Option<PlacementRuleStatus>,
    /// Fields that this version does not know.
    #[serde(flatten)]
    #[schemars(skip)]
    pub other: Unknown,
}

kind! {
    PlacementRule: APPS_GROUP, "v1", "placementrules", "placementrule", Namespaced;
    status: PlacementRuleStatus;
}

/// Settings for a controller outside this hub.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PlacementRuleSpec {
    /// All fields.
    #[serde(flatten)]
    #[schemars(skip)]
    pub other: Unknown,
}

/// The clusters that a PlacementRule selects.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PlacementRuleStatus {
    /// The clusters.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub decisions: Vec<PlacementRuleDecision>,
    /// Fields that this version does not know.
    #[serde(flatten)]
    #[schemars(skip)]
    pub other: Unknown,
}

/// A cluster that was selected.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PlacementRuleDecision {
    /// Name of the ManagedCluster.
    #[serde(default)]
    pub cluster_name: String,
    /// Namespace of the cluster on the hub.
    #[serde(default)]
    pub cluster_namespace: String,
    /// Fields that this version does not know.
    #[serde(flatten)]
    #[schemars(skip)]
    pub other: Unknown,
}
