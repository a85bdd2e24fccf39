//! One work for every cluster that placements select.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::GROUP;
use super::manifest_work::ManifestWorkSpec;
use crate::TypeTag;
use crate::cluster::RolloutStrategy;
use crate::kind::kind;
use crate::meta::{self, Condition, ObjectMeta, Unknown};
use crate::open_enum::open_enum;
use crate::structural::filled_with;

/// Creates a work for every cluster that placements select, and rolls out changes by a rollout
/// strategy.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ManifestWorkReplicaSet {
    /// Group, version and kind.
    #[serde(flatten)]
    #[schemars(skip)]
    pub types: TypeTag<Self>,
    /// Name, labels and so on.
    #[serde(default)]
    #[schemars(skip)]
    pub metadata: ObjectMeta,
    /// The works to be made, and for whom.
    #[serde(default)]
    pub spec: ManifestWorkReplicaSetSpec,
    /// Status of the works.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<ManifestWorkReplicaSetStatus>,
    /// Fields that this version does not know.
    #[serde(flatten)]
    #[schemars(skip)]
    pub other: Unknown,
}

kind! {
    ManifestWorkReplicaSet: GROUP, "v1alpha1", "manifestworkreplicasets", "manifestworkreplicaset", Namespaced;
    spec: ManifestWorkReplicaSetSpec;
    status: ManifestWorkReplicaSetStatus;
    short: ["mwrs"];
    columns: [
        ("Placement", "string", r#".status.conditions[?(@.type=="PlacementVerified")].reason"#),
        ("Found", "string", r#".status.conditions[?(@.type=="PlacementVerified")].status"#),
        ("ManifestWorks", "string", r#".status.conditions[?(@.type=="ManifestworkApplied")].reason"#),
        ("Applied", "string", r#".status.conditions[?(@.type=="ManifestworkApplied")].status"#),
    ];
}

/// The works to be made, and for whom.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ManifestWorkReplicaSetSpec {
    /// Template of the works.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub manifest_work_template: Option<ManifestWorkSpec>,
    /// Placements in the same namespace, which select the clusters.
    #[schemars(length(min = 1))]
    pub placement_refs: Vec<PlacementReference>,
    /// Background: the replica set is removed at once, and its works follow. Foreground: it is
    /// removed after its works.
    #[serde(default)]
    #[schemars(transform = filled_with("Background"))]
    pub cascade_deletion_policy: CascadeDeletionPolicy,
    /// Fields that this version does not know.
    #[serde(flatten)]
    #[schemars(skip)]
    pub other: Unknown,
}

open_enum! {
    /// Objects removed first.
    pub enum CascadeDeletionPolicy {
        /// The replica set.
        Background = "Background",
        /// Its works.
        Foreground = "Foreground",
    }
}

/// A placement, and how changes reach its clusters.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PlacementReference {
    /// Name of the Placement.
    #[schemars(length(min = 1))]
    pub name: String,
    /// Rollout strategy: order and pace of changes on the clusters.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(transform = filled_with(json!({"type": "All", "all": {"progressDeadline": "None"}})))]
    pub rollout_strategy: Option<RolloutStrategy>,
    /// Fields that this version does not know.
    #[serde(flatten)]
    #[schemars(skip)]
    pub other: Unknown,
}

/// Status of the works of a replica set.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ManifestWorkReplicaSetStatus {
    /// Conditions: whether placements were found, works are applied, and the rollout is done.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "meta::conditions")]
    pub conditions: Vec<Condition>,
    /// Number of works by state.
    #[serde(default)]
    pub summary: WorkSummary,
    /// The same for each placement.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub placement_summary: Vec<PlacementSummary>,
    /// Fields that this version does not know.
    #[serde(flatten)]
    #[schemars(skip)]
    pub other: Unknown,
}

/// Number of works by state.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct WorkSummary {
    /// Number of clusters that have a current work.
    #[serde(default)]
    #[schemars(schema_with = "count")]
    pub total: i64,
    /// Number of works that are being applied.
    #[serde(default)]
    #[schemars(schema_with = "count")]
    pub progressing: i64,
    /// Number of available works.
    #[serde(default)]
    #[schemars(schema_with = "count")]
    pub available: i64,
    /// Number of degraded works.
    #[serde(default)]
    #[schemars(schema_with = "count")]
    pub degraded: i64,
    /// Number of applied works.
    #[serde(default)]
    #[schemars(schema_with = "count")]
    pub applied: i64,
    /// Number of clusters that should have the work: those that the placements select.
    #[serde(default)]
    #[schemars(schema_with = "count")]
    pub desired_total: i64,
    /// Number of clusters that have the present template.
    #[serde(default)]
    #[schemars(schema_with = "count")]
    pub updated: i64,
    /// Fields that this version does not know.
    #[serde(flatten)]
    #[schemars(skip)]
    pub other: Unknown,
}

/// A whole number without a format, as the peer has it.
fn count(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
    schemars::json_schema!({"type": "integer"})
}

/// Number of works of a placement, by state.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PlacementSummary {
    /// Name of the Placement.
    #[serde(default)]
    pub name: String,
    /// Number of decision groups, and of their clusters that have a work.
    #[serde(default)]
    pub available_decision_groups: String,
    /// Number of works by state.
    #[serde(default)]
    pub summary: WorkSummary,
    /// Fields that this version does not know.
    #[serde(flatten)]
    #[schemars(skip)]
    pub other: Unknown,
}
