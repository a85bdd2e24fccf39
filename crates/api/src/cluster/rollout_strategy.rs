//! In which order and how fast a change reaches the clusters of a placement.

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::{Deserialize, Serialize};

use crate::meta::{self, IntOrString, Unknown};
use crate::open_enum::open_enum;
use crate::structural::filled_with;

/// A number, or a percentage up to 100.
const COUNT_OR_SHARE: &str = "^((100|[0-9]{1,2})%|[0-9]+)$";
/// Admits more than it seems to, such as `1h30m`: it is the peer's, and so are the objects that were
/// made with it.
const DEADLINE: &str = "^(([0-9])+[h|m|s])|None$";

fn count_or_share(_: &mut SchemaGenerator) -> Schema {
    meta::int_or_string(COUNT_OR_SHARE)
}

/// Rollout strategy: order and pace of a change on the clusters of a placement.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RolloutStrategy {
    /// All: every cluster at once. Progressive: cluster by cluster, in the order of names.
    /// ProgressivePerGroup: decision group by decision group. Only the settings of this type count.
    #[serde(default, rename = "type")]
    #[schemars(transform = filled_with("All"))]
    pub kind: RolloutStrategyType,
    /// Settings for All.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub all: Option<RolloutAll>,
    /// Settings for Progressive.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub progressive: Option<RolloutProgressive>,
    /// Settings for ProgressivePerGroup.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub progressive_per_group: Option<RolloutProgressivePerGroup>,
    /// Fields that this version does not know.
    #[serde(flatten)]
    #[schemars(skip)]
    pub other: Unknown,
}

open_enum! {
    /// The ways a change can reach clusters.
    pub enum RolloutStrategyType {
        /// Every cluster at once.
        All = "All",
        /// Cluster by cluster.
        Progressive = "Progressive",
        /// Decision group by decision group.
        ProgressivePerGroup = "ProgressivePerGroup",
    }
}

/// Every cluster at once.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RolloutAll {
    /// Time for which a cluster must stay healthy before it counts as done, such as 5m. It changes nothing
    /// where no cluster waits for another.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(transform = filled_with("0"))]
    pub min_success_time: Option<String>,
    /// Time limit for one cluster, such as 10m; None for no limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(regex(pattern = DEADLINE), transform = filled_with("None"))]
    pub progress_deadline: Option<String>,
    /// Limit of clusters that may fail, as a number or a percentage. It stops nothing where all clusters
    /// begin at once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "count_or_share", transform = filled_with(0))]
    pub max_failures: Option<IntOrString>,
    /// Fields that this version does not know.
    #[serde(flatten)]
    #[schemars(skip)]
    pub other: Unknown,
}

/// Cluster by cluster, in the order of names.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RolloutProgressive {
    /// Time for which a cluster must stay healthy before the next one starts, such as 5m.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(transform = filled_with("0"))]
    pub min_success_time: Option<String>,
    /// Time limit for one cluster, such as 10m; None for no limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(regex(pattern = DEADLINE), transform = filled_with("None"))]
    pub progress_deadline: Option<String>,
    /// Number or percentage of all clusters that may fail before no other starts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "count_or_share", transform = filled_with(0))]
    pub max_failures: Option<IntOrString>,
    /// Decision groups that have to succeed before all others, without a failure.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub mandatory_decision_groups: Vec<MandatoryDecisionGroup>,
    /// Limit of clusters that change at once, as a number or a percentage.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "count_or_share")]
    pub max_concurrency: Option<IntOrString>,
    /// Fields that this version does not know.
    #[serde(flatten)]
    #[schemars(skip)]
    pub other: Unknown,
}

/// Decision group by decision group.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RolloutProgressivePerGroup {
    /// Time for which the clusters of a group must stay healthy before the next group starts, such as 5m.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(transform = filled_with("0"))]
    pub min_success_time: Option<String>,
    /// Time limit for one cluster, such as 10m; None for no limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(regex(pattern = DEADLINE), transform = filled_with("None"))]
    pub progress_deadline: Option<String>,
    /// Limit of clusters of a group that may fail before no other group starts, as a number or a
    /// percentage.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "count_or_share", transform = filled_with(0))]
    pub max_failures: Option<IntOrString>,
    /// Decision groups that have to succeed before all others, without a failure.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub mandatory_decision_groups: Vec<MandatoryDecisionGroup>,
    /// Fields that this version does not know.
    #[serde(flatten)]
    #[schemars(skip)]
    pub other: Unknown,
}

/// A decision group, by its name or else by its number.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct MandatoryDecisionGroup {
    /// Name of the group; it may be the name of several.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub group_name: Option<String>,
    /// Number of the group, from 0, where there is no name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub group_index: Option<i32>,
    /// Fields that this version does not know.
    #[serde(flatten)]
    #[schemars(skip)]
    pub other: Unknown,
}
