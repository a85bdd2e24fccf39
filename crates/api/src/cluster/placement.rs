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
    /// Which clusters are wanted.
    #[serde(default)]
    pub spec: PlacementSpec,
    /// What the scheduler found.
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

/// Which clusters a placement wants.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PlacementSpec {
    /// Sets to select from, of those that the namespace is bound to; all of these if empty.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub cluster_sets: Vec<String>,
    /// How many clusters are wanted; without it, all that match.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub number_of_clusters: Option<i32>,
    /// What clusters have to match: one of these. All clusters match an empty list.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub predicates: Vec<ClusterPredicate>,
    /// Which clusters come first where not all are wanted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prioritizer_policy: Option<PrioritizerPolicy>,
    /// How clusters are to be spread over regions and the like.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub spread_policy: Option<SpreadPolicy>,
    /// Taints of clusters that are tolerated.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tolerations: Vec<Toleration>,
    /// How the clusters are divided into groups, for rollouts that go group by group.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub decision_strategy: Option<DecisionStrategy>,
    /// How decisions are sorted: by ClusterName, or by Score with the best first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(transform = filled_with("ClusterName"))]
    pub sort_by: Option<DecisionSortOrder>,
    /// How often scores are brought up to date at most while the choice stays, such as 1m.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(regex(pattern = "^[0-9]+[hms]$"), transform = filled_with("1m"))]
    pub score_rate_limit: Option<String>,
    /// Fields that this version does not know.
    #[serde(flatten)]
    #[schemars(skip)]
    pub other: Unknown,
}

open_enum! {
    /// How decisions are sorted.
    pub enum DecisionSortOrder {
        /// By name.
        ClusterName = "ClusterName",
        /// By score, the highest first.
        Score = "Score",
    }
}

/// What a cluster has to match.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ClusterPredicate {
    /// Which clusters match. A cluster that no longer does is no longer selected.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub required_cluster_selector: Option<ClusterSelector>,
    /// Fields that this version does not know.
    #[serde(flatten)]
    #[schemars(skip)]
    pub other: Unknown,
}

/// Which clusters come first.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PrioritizerPolicy {
    /// Additive: Balance and Steady count with weight 1 unless they are configured otherwise. Exact:
    /// only what is configured counts.
    #[serde(default)]
    #[schemars(with = "String", transform = filled_with("Additive"))]
    pub mode: PrioritizerPolicyMode,
    /// What counts, and how much.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub configurations: Vec<PrioritizerConfig>,
    /// Fields that this version does not know.
    #[serde(flatten)]
    #[schemars(skip)]
    pub other: Unknown,
}

open_enum! {
    /// Whether prioritizers that are not configured count.
    pub enum PrioritizerPolicyMode {
        /// As they do by default.
        Additive = "Additive",
        /// Not at all.
        Exact = "Exact",
    }
}

/// How much a score counts.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PrioritizerConfig {
    /// Which score it is.
    pub score_coordinate: ScoreCoordinate,
    /// What the score is multiplied with, from -10 to 10. 0 ignores it; negative weights prefer low
    /// scores.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = -10, max = 10), transform = filled_with(1))]
    pub weight: Option<i32>,
    /// Fields that this version does not know.
    #[serde(flatten)]
    #[schemars(skip)]
    pub other: Unknown,
}

/// Which score of a cluster counts.
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
    /// Where a score comes from.
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

/// How clusters are to be spread.
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
    /// Whether topologyKey is a Label or a Claim.
    pub topology_key_type: TopologyKeyType,
    /// By how many clusters two places may differ.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1), transform = filled_with(1))]
    pub max_skew: Option<i32>,
    /// What happens where that cannot be: DoNotSchedule or ScheduleAnyway.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(transform = filled_with("ScheduleAnyway"))]
    pub when_unsatisfiable: Option<UnsatisfiableSpread>,
    /// Fields that this version does not know.
    #[serde(flatten)]
    #[schemars(skip)]
    pub other: Unknown,
}

open_enum! {
    /// By what clusters are distinguished.
    pub enum TopologyKeyType {
        /// A label.
        Label = "Label",
        /// A claim.
        Claim = "Claim",
    }
}

open_enum! {
    /// What happens where clusters cannot be spread as wished.
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
    /// For how long the taint is tolerated, counted from when it was set; without it, forever.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub toleration_seconds: Option<i64>,
    /// Fields that this version does not know.
    #[serde(flatten)]
    #[schemars(skip)]
    pub other: Unknown,
}

open_enum! {
    /// How the value of a taint is compared.
    pub enum TolerationOperator {
        /// It has to be the same.
        Equal = "Equal",
        /// It does not matter.
        Exists = "Exists",
    }
}

/// How clusters are divided into groups.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DecisionStrategy {
    /// How clusters are divided into groups.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub group_strategy: Option<GroupStrategy>,
    /// Fields that this version does not know.
    #[serde(flatten)]
    #[schemars(skip)]
    pub other: Unknown,
}

/// How clusters are divided into groups.
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
    /// How many clusters a group has at most, as a number or as a percentage of all that are
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
    /// Which of the selected clusters are in the group.
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
    /// Which labels clusters of the group have, in whichever spelling it was given.
    pub fn label_selector(&self) -> Option<&LabelSelector> {
        let selector = self.group_cluster_selector.as_ref();
        selector
            .and_then(|selector| selector.label_selector.as_ref())
            .or(self.cluster_selector.as_ref())
    }
}

/// What the scheduler found.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PlacementStatus {
    /// How many clusters are selected.
    #[serde(default)]
    pub number_of_selected_clusters: i32,
    /// The groups, with the decisions that hold their clusters.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub decision_groups: Vec<DecisionGroupStatus>,
    /// Whether enough clusters are selected, and whether the placement could be understood.
    #[serde(default)]
    #[schemars(schema_with = "meta::conditions")]
    pub conditions: Vec<Condition>,
    /// When scores were recorded last.
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
    /// How many clusters are in the group.
    #[serde(default, rename = "clusterCount")]
    pub clusters_count: i32,
    /// Fields that this version does not know.
    #[serde(flatten)]
    #[schemars(skip)]
    pub other: Unknown,
}
