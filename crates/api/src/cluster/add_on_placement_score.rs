//! Scores that others than the scheduler give to a cluster.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::GROUP;
use crate::TypeTag;
use crate::kind::kind;
use crate::meta::{self, Condition, ObjectMeta, Time, Unknown};
use crate::structural::keyed_by;

/// Scores of one cluster, in whose namespace it is, for placements to select by.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct AddOnPlacementScore {
    /// Group, version and kind.
    #[serde(flatten)]
    #[schemars(skip)]
    pub types: TypeTag<Self>,
    /// Name, labels and so on.
    #[serde(default)]
    #[schemars(skip)]
    pub metadata: ObjectMeta,
    /// The scores.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<AddOnPlacementScoreStatus>,
    /// Fields that this version does not know.
    #[serde(flatten)]
    #[schemars(skip)]
    pub other: Unknown,
}

kind! {
    AddOnPlacementScore: GROUP, "v1alpha1", "addonplacementscores", "addonplacementscore", Namespaced;
    status: AddOnPlacementScoreStatus;
}

/// Scores of a cluster.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AddOnPlacementScoreStatus {
    /// Conditions: whether the scores are valid.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "meta::conditions")]
    pub conditions: Vec<Condition>,
    /// The scores.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(transform = keyed_by("name"))]
    pub scores: Vec<AddOnPlacementScoreItem>,
    /// Expiry time of the scores; without it they do not expire.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "meta::time")]
    pub valid_until: Option<Time>,
    /// Fields that this version does not know.
    #[serde(flatten)]
    #[schemars(skip)]
    pub other: Unknown,
}

/// One score.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct AddOnPlacementScoreItem {
    /// Name of the score.
    pub name: String,
    /// The score, from -100 to 100.
    #[schemars(range(min = -100, max = 100))]
    pub value: i32,
    /// Fields that this version does not know.
    #[serde(flatten)]
    #[schemars(skip)]
    pub other: Unknown,
}
