//! How placements and decision groups say which clusters they mean.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::meta::{self, LabelSelector, LabelSelectorRequirement, Unknown};

/// Selects clusters; all that is given has to match.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ClusterSelector {
    /// Selects by labels of the ManagedCluster.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "meta::label_selector")]
    pub label_selector: Option<LabelSelector>,
    /// Selects by what clusters claim.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub claim_selector: Option<ClaimSelector>,
    /// Selects by expressions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cel_selector: Option<CelSelector>,
    /// Fields that this version does not know.
    #[serde(flatten)]
    #[schemars(skip)]
    pub other: Unknown,
}

/// Selects the clusters of a decision group; all that is given has to match.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct GroupClusterSelector {
    /// Selects by labels of the ManagedCluster.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "meta::label_selector")]
    pub label_selector: Option<LabelSelector>,
    /// Selects by what clusters claim.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub claim_selector: Option<ClaimSelector>,
    /// Fields that this version does not know.
    #[serde(flatten)]
    #[schemars(skip)]
    pub other: Unknown,
}

/// Selects by what clusters claim in status.clusterClaims.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ClaimSelector {
    /// Requirements on claims, all of which have to be met.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "meta::requirements")]
    pub match_expressions: Vec<LabelSelectorRequirement>,
    /// Fields that this version does not know.
    #[serde(flatten)]
    #[schemars(skip)]
    pub other: Unknown,
}

/// Selects by expressions in CEL.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CelSelector {
    /// Expressions over managedCluster, the whole object; all of them have to be true. One that
    /// fails, or is no boolean, does not match.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub cel_expressions: Vec<String>,
    /// Fields that this version does not know.
    #[serde(flatten)]
    #[schemars(skip)]
    pub other: Unknown,
}
