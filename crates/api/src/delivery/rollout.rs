//! Replicas and requests, moved from one revision of an application to the next.

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::ROLLOUT_GROUP;
use crate::TypeTag;
use crate::kind::kind;
use crate::meta::{self, Condition, IntOrString, ObjectMeta, Unknown, any_object, conditions};
use crate::open_enum::open_enum;

/// Replicas and requests are moved from the revision that is in use (blue) to a new one (green).
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Rollout {
    /// Group, version and kind.
    #[serde(flatten)]
    #[schemars(skip)]
    pub types: TypeTag<Self>,
    /// Name, labels and so on.
    #[serde(default)]
    #[schemars(skip)]
    pub metadata: ObjectMeta,
    /// How far it should go.
    #[serde(default)]
    pub spec: RolloutSpec,
    /// How far it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<RolloutStatus>,
    /// Fields that this version does not know.
    #[serde(flatten)]
    #[schemars(skip)]
    pub other: Unknown,
}

kind! {
    Rollout: ROLLOUT_GROUP, "v1alpha1", "rollouts", "rollout", Namespaced;
    spec: RolloutSpec;
    status: RolloutStatus;
    categories: ["oam"];
    columns: [
        ("PHASE", "string", ".status.phase"),
        ("PAUSE", "boolean", ".status.pause"),
        ("BLUE", "string", ".status.blue.revision"),
        ("GREEN", "string", ".status.green.revision"),
        ("AGE", "date", ".metadata.creationTimestamp"),
    ];
}

/// How far a rollout should go.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RolloutSpec {
    /// The new revision of the application, such as shop-v2.
    #[serde(default)]
    pub app_revision: String,
    /// The revision that is in use, where the rollout has not seen one yet.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub previous_revision: String,
    /// Names of components; all of them if there are none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub components: Vec<String>,
    /// How many replicas are of the new revision, as a number or a percentage.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "share")]
    pub partition: Option<IntOrString>,
    /// How many requests go to the new revision.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub traffic: Option<RolloutTraffic>,
    /// Whether the new revision takes over.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub promotion: Option<RolloutPromotion>,
    /// The execution of the workflow that this is for: another one begins again.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub run: String,
    /// Fields that this version does not know.
    #[serde(flatten)]
    #[schemars(skip)]
    pub other: Unknown,
}

/// How many requests go to the new revision.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RolloutTraffic {
    /// The share, as a percentage or a number of hundredths.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "share")]
    pub partition: Option<IntOrString>,
    /// A route that is made for components that have none: `parentRefs`, `hostnames` and `rules` of an HTTPRoute.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "any_object")]
    pub gateway: Option<Value>,
    /// Fields that this version does not know.
    #[serde(flatten)]
    #[schemars(skip)]
    pub other: Unknown,
}

/// Whether the new revision takes over.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RolloutPromotion {
    /// Whether somebody has to approve it.
    #[serde(default)]
    pub manual_approval: bool,
    /// Whether the old revision comes back if the workflow ends without approval.
    #[serde(default)]
    pub rollback_if_not_approved: bool,
    /// Whether somebody approved it by resuming the workflow.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub approved: bool,
    /// Fields that this version does not know.
    #[serde(flatten)]
    #[schemars(skip)]
    pub other: Unknown,
}

open_enum! {
    /// How far a rollout is.
    pub enum RolloutPhase {
        /// Replicas or requests are on their way.
        Progressing = "Progressing",
        /// What was asked for so far is reached.
        Waiting = "Waiting",
        /// Somebody has to approve the new revision: set `pause` to false.
        Paused = "Paused",
        /// The new revision takes over.
        Promoting = "Promoting",
        /// Everything is of the new revision.
        Promoted = "Promoted",
        /// The old revision comes back.
        RollingBack = "RollingBack",
        /// Everything is of the old revision again.
        RolledBack = "RolledBack",
        /// What is asked for is impossible.
        Invalid = "Invalid",
    }
}

/// How far a rollout is.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RolloutStatus {
    /// The generation that this is about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// The execution of the workflow that this is about.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub run: String,
    /// How far it is.
    #[serde(default)]
    pub phase: RolloutPhase,
    /// Whether it waits for approval. Set it to false to approve.
    #[serde(default)]
    pub pause: bool,
    /// What it waits for.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub message: String,
    /// The revision that is in use: the last one that took over.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub stable_revision: String,
    /// The revision that is in use, over all components.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub blue: Option<RolloutSide>,
    /// The new revision, over all components.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub green: Option<RolloutSide>,
    /// How far each component is.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub components: Vec<RolloutComponent>,
    /// Objects that belong to the rollout, recorded before they are written.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub resources: Vec<RolloutResource>,
    /// What can be said about it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "conditions")]
    pub conditions: Vec<Condition>,
    /// Fields that this version does not know.
    #[serde(flatten)]
    #[schemars(skip)]
    pub other: Unknown,
}

/// One of two revisions.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RolloutSide {
    /// The revision of the application.
    #[serde(default)]
    pub revision: String,
    /// How many replicas are wanted.
    #[serde(default)]
    pub replicas: i64,
    /// How many of them are ready.
    #[serde(default)]
    pub ready: i64,
    /// How many of a hundred requests go there, where routes say so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub weight: Option<i64>,
    /// Fields that this version does not know.
    #[serde(flatten)]
    #[schemars(skip)]
    pub other: Unknown,
}

/// How far a component is.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RolloutComponent {
    /// Its name.
    #[serde(default)]
    pub name: String,
    /// The kind of its workload.
    #[serde(default)]
    pub kind: String,
    /// The workload that is in use.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub blue: Option<RolloutWorkload>,
    /// The workload of the new revision, if it differs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub green: Option<RolloutWorkload>,
    /// Fields that this version does not know.
    #[serde(flatten)]
    #[schemars(skip)]
    pub other: Unknown,
}

/// A workload of one revision.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RolloutWorkload {
    /// Its name.
    #[serde(default)]
    pub name: String,
    /// How many replicas are wanted.
    #[serde(default)]
    pub replicas: i64,
    /// How many of them are ready.
    #[serde(default)]
    pub ready: i64,
    /// Fields that this version does not know.
    #[serde(flatten)]
    #[schemars(skip)]
    pub other: Unknown,
}

/// An object that belongs to a rollout.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RolloutResource {
    /// Its API group.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub group: String,
    /// The version that it was written in.
    #[serde(default)]
    pub version: String,
    /// The plural of its kind.
    #[serde(default)]
    pub resource: String,
    /// Its namespace.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub namespace: String,
    /// Its name.
    #[serde(default)]
    pub name: String,
    /// Its UID; absent if it is about to be written.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub uid: Option<String>,
    /// Fields that this version does not know.
    #[serde(flatten)]
    #[schemars(skip)]
    pub other: Unknown,
}

/// The schema of a number or a percentage.
pub(super) fn share(_: &mut SchemaGenerator) -> Schema {
    meta::int_or_string(r"^\d+%?$")
}
