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
    /// Target of the rollout.
    #[serde(default)]
    pub spec: RolloutSpec,
    /// Progress of the rollout.
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

/// Target of a rollout.
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
    /// Replicas of the new revision, as a number or a percentage.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "share")]
    pub partition: Option<IntOrString>,
    /// Share of requests for the new revision.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub traffic: Option<RolloutTraffic>,
    /// Switch to the new revision.
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

/// Share of requests for the new revision.
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

/// Switch to the new revision.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RolloutPromotion {
    /// True if approval is required.
    #[serde(default)]
    pub manual_approval: bool,
    /// True to roll back to the old revision if the workflow ends without approval.
    #[serde(default)]
    pub rollback_if_not_approved: bool,
    /// True if it was approved by resuming the workflow.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub approved: bool,
    /// Fields that this version does not know.
    #[serde(flatten)]
    #[schemars(skip)]
    pub other: Unknown,
}

open_enum! {
    /// Phase of a rollout.
    pub enum RolloutPhase {
        /// Replicas or requests are on their way.
        Progressing = "Progressing",
        /// The requested state is reached.
        Waiting = "Waiting",
        /// Somebody has to approve the new revision: set `pause` to false.
        Paused = "Paused",
        /// The new revision takes over.
        Promoting = "Promoting",
        /// Everything is of the new revision.
        Promoted = "Promoted",
        /// The old revision is being restored.
        RollingBack = "RollingBack",
        /// Everything is of the old revision again.
        RolledBack = "RolledBack",
        /// The request cannot be fulfilled.
        Invalid = "Invalid",
    }
}

/// Progress of a rollout.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RolloutStatus {
    /// The generation that this is about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// The execution of the workflow that this is about.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub run: String,
    /// Phase of the rollout.
    #[serde(default)]
    pub phase: RolloutPhase,
    /// True if it waits for approval. Set it to false to approve.
    #[serde(default)]
    pub pause: bool,
    /// Reason for waiting.
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
    /// Progress of each component.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub components: Vec<RolloutComponent>,
    /// Objects that belong to the rollout, recorded before they are written.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub resources: Vec<RolloutResource>,
    /// Conditions.
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
    /// Desired number of replicas.
    #[serde(default)]
    pub replicas: i64,
    /// Number of ready replicas.
    #[serde(default)]
    pub ready: i64,
    /// Percentage of requests that go there, if routes define it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub weight: Option<i64>,
    /// Fields that this version does not know.
    #[serde(flatten)]
    #[schemars(skip)]
    pub other: Unknown,
}

/// Progress of a component.
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
    /// Desired number of replicas.
    #[serde(default)]
    pub replicas: i64,
    /// Number of ready replicas.
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
