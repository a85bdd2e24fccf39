//! Which clusters a placement selected.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::GROUP;
use crate::TypeTag;
use crate::kind::kind;
use crate::meta::{ObjectMeta, Unknown};

/// Some of the clusters that a placement selected.
///
/// The label cluster.open-cluster-management.io/placement names the placement. A decision holds at
/// most 100 clusters of one decision group, so that a placement may have many of them.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PlacementDecision {
    /// Group, version and kind.
    #[serde(flatten)]
    #[schemars(skip)]
    pub types: TypeTag<Self>,
    /// Name, labels and so on.
    #[serde(default)]
    #[schemars(skip)]
    pub metadata: ObjectMeta,
    /// The clusters.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<PlacementDecisionStatus>,
    /// Fields that this version does not know.
    #[serde(flatten)]
    #[schemars(skip)]
    pub other: Unknown,
}

kind! {
    PlacementDecision: GROUP, "v1beta1", "placementdecisions", "placementdecision", Namespaced;
    status: PlacementDecisionStatus;
}

/// The clusters of a decision. Anyone who writes it writes it whole, so that fields which this version
/// does not know need not be kept; a fleet has many of these, and they are read often.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PlacementDecisionStatus {
    /// The clusters that were selected.
    pub decisions: Vec<ClusterDecision>,
}

/// A cluster that was selected.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ClusterDecision {
    /// Name of the ManagedCluster.
    pub cluster_name: String,
    /// Reason for the selection; may be empty.
    pub reason: String,
    /// Score, if scores are recorded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub score: Option<i64>,
}
