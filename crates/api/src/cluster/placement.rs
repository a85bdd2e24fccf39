//! Which clusters something goes to.

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::{Deserialize, Serialize};

use super::GROUP;
use super::managed_cluster::TaintEffect;
use super::selector::{ClusterSelector, GroupClusterSelector};
use crate::TypeTag;
use crate::kind::kind;
use crate::meta::{self, Condition, IntOrString, LabelSelector, ObjectMeta, Time, Unknown};
use crate::open_enum::open_enum;
use crate::structural::{filled_with, rule};

/// Selects clusters from the sets that its namespace is bound to.
///
/// The answer is in PlacementDecisions with the label cluster.open-cluster-management.io/placement.
/// Without a ManagedClusterSetBinding in the namespace nothing is selected.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Placement {
    /// Group, version and kind.
    #[serde(flatten)]
    #[schemars(skip)]
    pub types: TypeTag<Self>,
    /// Name, labels and so on.
    #[serde(default)]
    #[schemars(skip)]
    pub metadata: ObjectMeta,
    /// Selection of clusters.
    #[serde(default)]
    pub spec: PlacementSpec,
    /// Result of scheduling.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<PlacementStatus>,
    /// Fields that this version does not know.
    #[serde(flatten)]
    #[schemars(skip)]
    pub other: Unknown,
}

kind! {
    Placement: GROUP, "v1beta1", "placements", "placement", Namespaced;
    spec: PlacementSpec;
    status: PlacementStatus;
    columns: [
        ("Succeeded", "string", r#".status.conditions[?(@.type=="PlacementSatisfied")].status"#),
        ("Reason", "string", r#".status.conditions[?(@.type=="PlacementSatisfied")].reason"#),
        ("SelectedClusters", "integer", ".status.numberOfSelectedClusters"),
    ];
}

/// Selection of clusters by a placement.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PlacementSpec {
    /// Sets to select from, of those that the namespace is bound to; all of these if empty.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub cluster_sets: Vec<String>,
    /// Desired number of clusters; without it, all that match.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub number_of_clusters: Option<i32>,
    /// Predicates, of which a cluster has to match one. All clusters match an empty list.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub predicates: Vec<ClusterPredicate>,
    /// Ranking of clusters, if only some are selected.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prioritizer_policy: Option<PrioritizerPolicy>,
    /// Constraints for spreading clusters over regions and the like.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub spread_policy: Option<SpreadPolicy>,
    /// Taints of clusters that are tolerated.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tolerations: Vec<Toleration>,
    /// Division of the clusters into groups, for rollouts by group.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub decision_strategy: Option<DecisionStrategy>,
    /// Order of decisions: by ClusterName, or by Score with the best first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(transform = filled_with("ClusterName"))]
    pub sort_by: Option<DecisionSortOrder>,
    /// Minimum interval between updates of scores while the selection does not change, such as 1m.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(regex(pattern = "^[0-9]+[hms]$"), transform = filled_with("1m"))]
    pub score_rate_limit: Option<String>,
    /// Fields that this version does not know.
    #[serde(flatten)]
    #[schemars(skip)]
    pub other: Unknown,
}

open_enum! {
    /// Order of decisions.
    pub enum DecisionSortOrder {
        /// By name.
        ClusterName = "ClusterName",
        /// By score, the highest first.
        Score = "Score",
    }
}

/// A predicate that clusters have to match.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ClusterPredicate {
    /// Selector that clusters have to match. A cluster that no longer matches is no longer selected.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub required_cluster_selector: Option<ClusterSelector>,
    /// Fields that this version does not know.
    #[serde(flatten)]
    #[schemars(skip)]
    pub other: Unknown,
}

/// Ranking of clusters.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PrioritizerPolicy {
    /// Additive: Balance and Steady count with weight 1 unless they are configured otherwise. Exact:
    /// only what is configured counts.
    #[serde(default)]
    #[schemars(with = "String", transform = filled_with("Additive"))]
    pub mode: PrioritizerPolicyMode,
    /// Scores and their weights.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub configurations: Vec<PrioritizerConfig>,
    /// Fields that this version does not know.
    #[serde(flatten)]
    #[schemars(skip)]
    pub other: Unknown,
}

open_enum! {
    /// Treatment of prioritizers that are not configured.
    pub enum PrioritizerPolicyMode {
        /// As they do by default.
        Additive = "Additive",
        /// Not at all.
        Exact = "Exact",
    }
}

/// Weight of a score.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PrioritizerConfig {
    /// Reference to the score.
    pub score_coordinate: ScoreCoordinate,
    /// Factor for the score, from -10 to 10. 0 ignores the score; negative weights prefer low
    /// scores.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = -10, max = 10), transform = filled_with(1))]
    pub weight: Option<i32>,
    /// Fields that this version does not know.
    #[serde(flatten)]
    #[schemars(skip)]
    pub other: Unknown,
}

/// Reference to a score of clusters.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ScoreCoordinate {
    /// BuiltIn: the score that builtIn names. AddOn: the score that addOn names.
    #[serde(default, rename = "type")]
    #[schemars(transform = filled_with("BuiltIn"))]
    pub kind: ScoreCoordinateType,
    /// Balance (few other decisions), Steady (already selected), ResourceAllocatableCPU or
    /// ResourceAllocatableMemory.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub built_in: Option<String>,
    /// A score of an AddOnPlacementScore.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub add_on: Option<AddOnScore>,
    /// Fields that this version does not know.
    #[serde(flatten)]
    #[schemars(skip)]
    pub other: Unknown,
}

open_enum! {
    /// Source of a score.
    pub enum ScoreCoordinateType {
        /// The scheduler.
        BuiltIn = "BuiltIn",
        /// An AddOnPlacementScore.
        AddOn = "AddOn",
    }
}

/// A score of an AddOnPlacementScore.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AddOnScore {
    /// Name of the AddOnPlacementScore in the namespace of each cluster.
    pub resource_name: String,
    /// Name of the score in it.
    pub score_name: String,
    /// Fields that this version does not know.
    #[serde(flatten)]
    #[schemars(skip)]
    pub other: Unknown,
}

/// Constraints for spreading clusters.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SpreadPolicy {
    /// Wishes, the most important first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 8))]
    pub spread_constraints: Vec<SpreadConstraint>,
    /// Fields that this version does not know.
    #[serde(flatten)]
    #[schemars(skip)]
    pub other: Unknown,
}

/// A wish for spreading.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SpreadConstraint {
    /// The label or claim by which clusters are distinguished.
    #[schemars(length(max = 316), regex(pattern = meta::QUALIFIED_NAME))]
    pub topology_key: String,
    /// Type of topologyKey: Label or Claim.
    pub topology_key_type: TopologyKeyType,
    /// By how many clusters two places may differ.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1), transform = filled_with(1))]
    pub max_skew: Option<i32>,
    /// Behaviour if the constraint cannot be satisfied: DoNotSchedule or ScheduleAnyway.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(transform = filled_with("ScheduleAnyway"))]
    pub when_unsatisfiable: Option<UnsatisfiableSpread>,
    /// Fields that this version does not know.
    #[serde(flatten)]
    #[schemars(skip)]
    pub other: Unknown,
}

open_enum! {
    /// Type of a topology key.
    pub enum TopologyKeyType {
        /// A label.
        Label = "Label",
        /// A claim.
        Claim = "Claim",
    }
}

open_enum! {
    /// Behaviour if a spread constraint cannot be satisfied.
    pub enum UnsatisfiableSpread {
        /// They are spread otherwise.
        ScheduleAnyway = "ScheduleAnyway",
        /// They are not selected.
        DoNotSchedule = "DoNotSchedule",
    }
}

/// Taints that a placement tolerates.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Toleration {
    /// Name of the taint; every taint if empty, for which operator has to be Exists.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 316), regex(pattern = meta::QUALIFIED_NAME))]
    pub key: Option<String>,
    /// Equal: the value has to be the same. Exists: it does not matter.
    #[serde(default)]
    #[schemars(with = "String", transform = filled_with("Equal"))]
    pub operator: TolerationOperator,
    /// Value of the taint; empty for Exists.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 1024))]
    pub value: Option<String>,
    /// Effect of the taint; every effect if empty.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub effect: Option<TaintEffect>,
    /// Seconds for which the taint is tolerated, counted from when it was set; without it, forever.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub toleration_seconds: Option<i64>,
    /// Fields that this version does not know.
    #[serde(flatten)]
    #[schemars(skip)]
    pub other: Unknown,
}

open_enum! {
    /// Comparison with the value of a taint.
    pub enum TolerationOperator {
        /// It has to be the same.
        Equal = "Equal",
        /// It does not matter.
        Exists = "Exists",
    }
}

/// Division of clusters into groups.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DecisionStrategy {
    /// Division of clusters into groups.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub group_strategy: Option<GroupStrategy>,
    /// Fields that this version does not know.
    #[serde(flatten)]
    #[schemars(skip)]
    pub other: Unknown,
}

/// Division of clusters into groups.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(transform = rule(
    "!(has(self.decisionGroups) && has(self.DecisionGroups))",
    "decisionGroups and DecisionGroups are two spellings of one field: use decisionGroups"
))]
pub struct GroupStrategy {
    /// Groups with a name, in the order of rollouts. A cluster is in the first group that selects
    /// it; clusters that none selects come last, in groups without a name.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub decision_groups: Vec<DecisionGroup>,
    /// Another spelling of decisionGroups.
    #[serde(
        default,
        rename = "DecisionGroups",
        skip_serializing_if = "Vec::is_empty"
    )]
    pub capitalized_decision_groups: Vec<DecisionGroup>,
    /// Maximum size of a group, as a number or as a percentage of all that are
    /// selected. A group with more is divided into several of the same name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "clusters_per_group", transform = filled_with("100%"))]
    pub clusters_per_decision_group: Option<IntOrString>,
    /// Fields that this version does not know.
    #[serde(flatten)]
    #[schemars(skip)]
    pub other: Unknown,
}

impl GroupStrategy {
    /// The groups with a name, in whichever spelling they were given.
    pub fn groups(&self) -> impl Iterator<Item = &DecisionGroup> {
        self.decision_groups
            .iter()
            .chain(&self.capitalized_decision_groups)
    }
}

fn clusters_per_group(_: &mut SchemaGenerator) -> Schema {
    meta::int_or_string("^((100|[1-9][0-9]{0,1})%|[1-9][0-9]*)$")
}

/// A group with a name.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(transform = rule(
    "has(self.groupClusterSelector) != has(self.clusterSelector)",
    "groupClusterSelector is required; clusterSelector may take its place, but not stand beside it"
))]
pub struct DecisionGroup {
    /// Name of the group; decisions have it as a label.
    #[schemars(regex(pattern = "^[a-zA-Z0-9][-A-Za-z0-9_.]{0,61}[a-zA-Z0-9]$"))]
    pub group_name: String,
    /// Selector of the clusters in the group.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub group_cluster_selector: Option<GroupClusterSelector>,
    /// A shorter form of groupClusterSelector.labelSelector.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "meta::label_selector")]
    pub cluster_selector: Option<LabelSelector>,
    /// Fields that this version does not know.
    #[serde(flatten)]
    #[schemars(skip)]
    pub other: Unknown,
}

impl DecisionGroup {
    /// Label selector of the group, in either spelling.
    pub fn label_selector(&self) -> Option<&LabelSelector> {
        let selector = self.group_cluster_selector.as_ref();
        selector
            .and_then(|selector| selector.label_selector.as_ref())
            .or(self.cluster_selector.as_ref())
    }
}

/// Result of scheduling.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PlacementStatus {
    /// Number of selected clusters.
    #[serde(default)]
    pub number_of_selected_clusters: i32,
    /// The groups, with the decisions that hold their clusters.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub decision_groups: Vec<DecisionGroupStatus>,
    /// Conditions: whether enough clusters are selected, and whether the placement is valid.
    #[serde(default)]
    #[schemars(schema_with = "meta::conditions")]
    pub conditions: Vec<Condition>,
    /// Time when scores were recorded last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "meta::time")]
    pub last_score_update_time: Option<Time>,
    /// Fields that this version does not know.
    #[serde(flatten)]
    #[schemars(skip)]
    pub other: Unknown,
}

/// A group, with the decisions that hold its clusters.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DecisionGroupStatus {
    /// Number of the group, from 0.
    #[serde(default)]
    pub decision_group_index: i32,
    /// Name of the group; empty if it has none.
    #[serde(default)]
    pub decision_group_name: String,
    /// Names of the PlacementDecisions of the group.
    #[serde(default)]
    pub decisions: Vec<String>,
    /// Number of clusters in the group.
    #[serde(default, rename = "clusterCount")]
    pub clusters_count: i32,
    /// Fields that this version does not know.
    #[serde(flatten)]
    #[schemars(skip)]
    pub other: Unknown,
}
