//! Which policies go to the clusters of a placement.

use schemars::{JsonSchema, Schema};
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::word::RemediationAction;
use super::{APPS_GROUP, GROUP};
use crate::TypeTag;
use crate::cluster;
use crate::kind::kind;
use crate::meta::{ObjectMeta, Unknown};
use crate::open_enum::open_enum;

/// Binds policies to the clusters of a placement. All that it names is in its own namespace.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PlacementBinding {
    /// Group, version and kind.
    #[serde(flatten)]
    #[schemars(skip)]
    pub types: TypeTag<Self>,
    /// Name, labels and so on.
    #[serde(default)]
    #[schemars(skip)]
    pub metadata: ObjectMeta,
    /// Overrides for the clusters of this binding.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub binding_overrides: Option<BindingOverrides>,
    /// With restricted the binding selects only clusters that another binding selects already.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sub_filter: Option<SubFilter>,
    /// Reference to the placement that selects the clusters.
    pub placement_ref: PlacementSubject,
    /// The policies, and sets of policies.
    #[schemars(length(min = 1))]
    pub subjects: Vec<PolicySubject>,
    /// Not used.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<PlacementBindingStatus>,
    /// Fields that this version does not know.
    #[serde(flatten)]
    #[schemars(skip)]
    pub other: Unknown,
}

kind! {
    PlacementBinding: GROUP, "v1", "placementbindings", "placementbinding", Namespaced;
    status: PlacementBindingStatus;
    short: ["pb"];
}

open_enum! {
    /// Restriction of a binding to some clusters of its placement.
    pub enum SubFilter {
        /// Those that another binding selects as well.
        Restricted = "restricted",
    }
}

/// Overrides for the clusters of a binding.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct BindingOverrides {
    /// Enforces policies that only inform elsewhere. Ignored for policies with a rollout strategy other
    /// than All.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(transform = enforce_only)]
    pub remediation_action: Option<RemediationAction>,
    /// Fields that this version does not know.
    #[serde(flatten)]
    #[schemars(skip)]
    pub other: Unknown,
}

fn enforce_only(schema: &mut Schema) {
    schema.insert("enum".to_owned(), json!(["Enforce", "enforce"]));
}

/// Reference to the placement that selects the clusters.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(transform = known_pairs)]
pub struct PlacementSubject {
    /// Group of the object.
    #[schemars(length(min = 1))]
    pub api_group: String,
    /// Placement or PlacementRule.
    #[schemars(length(min = 1))]
    pub kind: String,
    /// Name of the object.
    #[schemars(length(min = 1))]
    pub name: String,
    /// Fields that this version does not know.
    #[serde(flatten)]
    #[schemars(skip)]
    pub other: Unknown,
}

fn known_pairs(schema: &mut Schema) {
    let pair = |group: &str, kind: &str| json!({"properties": {"apiGroup": {"enum": [group]}, "kind": {"enum": [kind]}}});
    schema.insert(
        "oneOf".to_owned(),
        json!([
            pair(cluster::GROUP, "Placement"),
            pair(APPS_GROUP, "PlacementRule")
        ]),
    );
}

/// A policy, or a set of policies.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PolicySubject {
    /// Group of the object.
    #[schemars(length(min = 1), transform = own_group)]
    pub api_group: String,
    /// Policy or PolicySet.
    #[schemars(length(min = 1), transform = policies)]
    pub kind: String,
    /// Name of the object.
    #[schemars(length(min = 1))]
    pub name: String,
    /// Fields that this version does not know.
    #[serde(flatten)]
    #[schemars(skip)]
    pub other: Unknown,
}

fn own_group(schema: &mut Schema) {
    schema.insert("enum".to_owned(), json!([GROUP]));
}

fn policies(schema: &mut Schema) {
    schema.insert("enum".to_owned(), json!(["Policy", "PolicySet"]));
}

/// Not used.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PlacementBindingStatus {
    /// Fields that this version does not know.
    #[serde(flatten)]
    #[schemars(skip)]
    pub other: Unknown,
}
