//! What a cluster says about itself.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::GROUP;
use crate::TypeTag;
use crate::kind::kind;
use crate::meta::{ObjectMeta, Unknown};

/// Something that a cluster says about itself. It lives on the cluster, and the agent reports it in
/// the status of the ManagedCluster, where placements can select by it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ClusterClaim {
    /// Group, version and kind.
    #[serde(flatten)]
    #[schemars(skip)]
    pub types: TypeTag<Self>,
    /// Name, labels and so on.
    #[serde(default)]
    #[schemars(skip)]
    pub metadata: ObjectMeta,
    /// Value of the claim.
    #[serde(default)]
    pub spec: ClusterClaimSpec,
    /// Fields that this version does not know.
    #[serde(flatten)]
    #[schemars(skip)]
    pub other: Unknown,
}

kind! {
    ClusterClaim: GROUP, "v1alpha1", "clusterclaims", "clusterclaim", Cluster;
    spec: ClusterClaimSpec;
}

/// Value of a claim.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ClusterClaimSpec {
    /// The value, which means what the name of the claim says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 1024))]
    pub value: Option<String>,
    /// Fields that this version does not know.
    #[serde(flatten)]
    #[schemars(skip)]
    pub other: Unknown,
}
