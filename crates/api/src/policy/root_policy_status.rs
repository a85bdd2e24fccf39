//! What is reported about a policy: of all clusters on a root policy, of all templates on a replica.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::word::{ComplianceState, RolloutStatus};
use crate::meta::{self, MicroTime, Time, Unknown};
use crate::structural;

/// Results of clusters, and progress of the rollout.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PolicyStatus {
    /// Bindings and placements that select clusters for a root policy.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub placement: Vec<PolicyPlacement>,
    /// Results of the clusters of a root policy, by name.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub status: Vec<ClusterCompliance>,
    /// Compliance of all clusters, or of all templates of a replica. Absent if not all have reported.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub compliant: Option<ComplianceState>,
    /// Progress of the present version on all clusters: Progressing, Succeeded or Failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rollout_status: Option<RolloutStatus>,
    /// Time when rolloutStatus changed last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "meta::time")]
    pub rollout_status_last_transition_time: Option<MicroTime>,
    /// Start time of the rollout that rolloutStatus of a root policy describes. Clusters that succeeded before
    /// take no part in it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "meta::time")]
    pub rollout_start_time: Option<MicroTime>,
    /// The generation of the replica that its cluster has evaluated last. An agent that fills it in says
    /// which version it reports about; without it, the hub goes by the times of what is reported.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "generation")]
    pub observed_generation: Option<i64>,
    /// Results of the templates of a replica, in their order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub details: Vec<TemplateDetails>,
    /// Fields that this version does not know.
    #[serde(flatten)]
    #[schemars(skip)]
    pub other: Unknown,
}

fn generation(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
    schemars::json_schema!({"type": "integer", "format": "int64", "minimum": 0})
}

/// A binding that selects clusters for a root policy.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PolicyPlacement {
    /// Name of the PlacementBinding.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub placement_binding: Option<String>,
    /// Name of the PlacementRule, if it exists.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub placement_rule: Option<String>,
    /// Name of the Placement, if it exists.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub placement: Option<String>,
    /// Kept for readers of older versions. The hub does not fill it in.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "decisions")]
    pub decisions: Vec<Value>,
    /// Name of the PolicySet through which the policy is bound, if it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub policy_set: Option<String>,
    /// Clusters that the PolicySet excludes from this policy.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub exclusions: Vec<ExcludedCluster>,
    /// Fields that this version does not know.
    #[serde(flatten)]
    #[schemars(skip)]
    pub other: Unknown,
}

fn decisions(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
    let mut item = meta::any_object(generator);
    item.insert("description".into(), "A cluster that was selected.".into());
    schemars::json_schema!({"type": "array", "items": item})
}

/// A cluster that a PolicySet excludes from a policy.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ExcludedCluster {
    /// Name of the ManagedCluster.
    pub cluster_name: String,
    /// Fields that this version does not know.
    #[serde(flatten)]
    #[schemars(skip)]
    pub other: Unknown,
}

/// Result of one cluster for a root policy.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ClusterCompliance {
    /// Result of the evaluation. Absent until the cluster reports.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub compliant: Option<ComplianceState>,
    /// Progress of the cluster with the present version.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rollout_status: Option<RolloutStatus>,
    /// Time when rolloutStatus changed last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "meta::time")]
    pub rollout_status_last_transition_time: Option<MicroTime>,
    /// Name of the ManagedCluster.
    #[serde(default, rename = "clustername")]
    pub cluster_name: String,
    /// Namespace of the cluster on the hub.
    #[serde(default, rename = "clusternamespace")]
    pub cluster_namespace: String,
    /// Bindings that still select the cluster although others exclude it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub remaining_bindings: Vec<RemainingBinding>,
    /// Fields that this version does not know.
    #[serde(flatten)]
    #[schemars(skip)]
    pub other: Unknown,
}

/// A binding that still selects a cluster.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RemainingBinding {
    /// Name of the PlacementBinding.
    #[serde(default)]
    pub placement_binding: String,
    /// Fields that this version does not know.
    #[serde(flatten)]
    #[schemars(skip)]
    pub other: Unknown,
}

/// Result of one template of a replica.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TemplateDetails {
    /// Reference to the template.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(transform = structural::open)]
    pub template_meta: Option<TemplateMeta>,
    /// Result of its last evaluation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub compliant: Option<ComplianceState>,
    /// Results of its last evaluations, newest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub history: Vec<ComplianceHistory>,
    /// Fields that this version does not know.
    #[serde(flatten)]
    #[schemars(skip)]
    pub other: Unknown,
}

/// Reference to the template.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TemplateMeta {
    /// Name of the template.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Fields that this version does not know.
    #[serde(flatten)]
    #[schemars(skip)]
    pub other: Unknown,
}

/// Result of one evaluation.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ComplianceHistory {
    /// Time when it was reported.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "meta::time")]
    pub last_timestamp: Option<Time>,
    /// The state, and what was found.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// Name of the Event that reported it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub event_name: Option<String>,
    /// Fields that this version does not know.
    #[serde(flatten)]
    #[schemars(skip)]
    pub other: Unknown,
}
