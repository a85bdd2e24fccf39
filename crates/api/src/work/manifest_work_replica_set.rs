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

/// Makes a work for every cluster that placements select, and brings changes to them as a rollout
/// strategy says.
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
    /// Where the works stand.
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
    /// What every work is made of.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub manifest_work_template: Option<ManifestWorkSpec>,
    /// Placements in the same namespace, which select the clusters.
    #[schemars(length(min = 1))]
    pub placement_refs: Vec<PlacementReference>,
    /// Background: the replica set goes at once, and its works follow. Foreground: it goes when its
    /// works are gone.
    #[serde(default)]
    #[schemars(transform = filled_with("Background"))]
    pub cascade_deletion_policy: CascadeDeletionPolicy,
    /// Fields that this version does not know.
    #[serde(flatten)]
    #[schemars(skip)]
    pub other: Unknown,
}

open_enum! {
    /// What is removed first.
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
    /// In which order and how fast changes reach the clusters.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(transform = filled_with(json!({"type": "All", "all": {"progressDeadline": "None"}})))]
    pub rollout_strategy: Option<RolloutStrategy>,
    /// Fields that this version does not know.
    #[serde(flatten)]
    #[schemars(skip)]
    pub other: Unknown,
}

/// Where the works of a replica set stand.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ManifestWorkReplicaSetStatus {
    /// Whether placements were found, works are applied, and the rollout is done.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "meta::conditions")]
    pub conditions: Vec<Condition>,
    /// How many works stand where.
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

/// How many works stand where.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct WorkSummary {
    /// How many clusters have a current work.
    #[serde(default)]
    #[schemars(schema_with = "count")]
    pub total: i64,
    /// How many works are on their way.
    #[serde(default)]
    #[schemars(schema_with = "count")]
    pub progressing: i64,
    /// How many works are available.
    #[serde(default)]
    #[schemars(schema_with = "count")]
    pub available: i64,
    /// How many works are not as they should be.
    #[serde(default)]
    #[schemars(schema_with = "count")]
    pub degraded: i64,
    /// How many works are applied.
    #[serde(default)]
    #[schemars(schema_with = "count")]
    pub applied: i64,
    /// How many clusters should have the work: those that the placements select.
    #[serde(default)]
    #[schemars(schema_with = "count")]
    pub desired_total: i64,
    /// How many clusters have the present template.
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

/// How many works of a placement stand where.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PlacementSummary {
    /// Name of the Placement.
    #[serde(default)]
    pub name: String,
    /// How many decision groups there are, and how many of their clusters have a work.
    #[serde(default)]
    pub available_decision_groups: String,
    /// How many works stand where.
    #[serde(default)]
    pub summary: WorkSummary,
    /// Fields that this version does not know.
    #[serde(flatten)]
    #[schemars(skip)]
    pub other: Unknown,
}
