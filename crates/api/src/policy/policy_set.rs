//! Policies that belong together.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::GROUP;
use super::word::ComplianceState;
use crate::TypeTag;
use crate::kind::kind;
use crate::meta::{ObjectMeta, Unknown};

/// Policies of a namespace that are bound and reported together.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PolicySet {
    /// Group, version and kind.
    #[serde(flatten)]
    #[schemars(skip)]
    pub types: TypeTag<Self>,
    /// Name, labels and so on.
    #[serde(default)]
    #[schemars(skip)]
    pub metadata: ObjectMeta,
    /// Names of the policies.
    pub spec: PolicySetSpec,
    /// Compliance reported by their clusters.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<PolicySetStatus>,
    /// Fields that this version does not know.
    #[serde(flatten)]
    #[schemars(skip)]
    pub other: Unknown,
}

kind! {
    PolicySet: GROUP, "v1beta1", "policysets", "policyset", Namespaced;
    spec: PolicySetSpec;
    status: PolicySetStatus;
    short: ["plcset"];
    columns: [
        ("Compliance state", "string", ".status.compliant"),
        ("Age", "date", ".metadata.creationTimestamp"),
    ];
}

/// Names of the policies.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PolicySetSpec {
    /// Purpose of the set.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// Names of policies in the same namespace.
    #[schemars(inner(length(min = 1)))]
    pub policies: Vec<String>,
    /// Clusters that do not get some of the policies through this set.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub exclusions: Vec<PolicyExclusion>,
    /// Fields that this version does not know.
    #[serde(flatten)]
    #[schemars(skip)]
    pub other: Unknown,
}

/// Clusters that do not get a policy through a set.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PolicyExclusion {
    /// Name of the policy, which is in the set.
    #[schemars(length(min = 1))]
    pub policy_name: String,
    /// Why, for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Names of the clusters.
    #[schemars(length(min = 1))]
    pub cluster_names: Vec<String>,
    /// Fields that this version does not know.
    #[serde(flatten)]
    #[schemars(skip)]
    pub other: Unknown,
}

/// Compliance reported by the clusters of a set.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PolicySetStatus {
    /// Bindings and placements that select its clusters.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub placement: Vec<PolicySetPlacement>,
    /// Compliance of all its policies together. Absent if not all have reported.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub compliant: Option<ComplianceState>,
    /// Policies that do not report, with the reason.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status_message: Option<String>,
    /// Clusters that do not get some of the policies.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub exclusions: Vec<ExcludedClusters>,
    /// Fields that this version does not know.
    #[serde(flatten)]
    #[schemars(skip)]
    pub other: Unknown,
}

/// A binding that selects clusters for a set.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PolicySetPlacement {
    /// Name of the PlacementBinding.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub placement_binding: Option<String>,
    /// Name of the Placement, if it exists.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub placement: Option<String>,
    /// Name of the PlacementRule, if it exists.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub placement_rule: Option<String>,
    /// Fields that this version does not know.
    #[serde(flatten)]
    #[schemars(skip)]
    pub other: Unknown,
}

/// Clusters that do not get a policy.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ExcludedClusters {
    /// Name of the policy.
    #[serde(default)]
    pub policy_name: String,
    /// Names of the clusters.
    #[serde(default)]
    pub clusters: Vec<String>,
    /// Fields that this version does not know.
    #[serde(flatten)]
    #[schemars(skip)]
    pub other: Unknown,
}
