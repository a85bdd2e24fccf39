//! What is known of a workflow and its steps.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::phase::{StepPhase, StepReason, WorkflowRunPhase};
use super::step::WorkflowExecuteMode;
use crate::meta::{Condition, Time, Unknown, conditions, time};
use crate::structural::{nullable, open};

/// Status of a step.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct StepStatus {
    /// Identifies this execution of the step: a restarted step has another.
    pub id: String,
    /// Name of the step.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub name: String,
    /// Type of the step.
    #[serde(default, rename = "type", skip_serializing_if = "String::is_empty")]
    pub step_type: String,
    /// Phase of the step.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub phase: Option<StepPhase>,
    /// Message for people.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub message: String,
    /// Reason for the phase.
    #[serde(default, skip_serializing_if = "StepReason::is_none")]
    #[schemars(transform = any_reason)]
    pub reason: StepReason,
    /// Time of the first execution.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "time", transform = nullable)]
    pub first_execute_time: Option<Time>,
    /// Time of the last execution.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "time", transform = nullable)]
    pub last_execute_time: Option<Time>,
    /// The object that the step consists of, if it is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resource_ref: Option<StepResource>,
    /// A hash of the token that resumes the step.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resume_token_hash: Option<String>,
    /// Latest time of the next attempt or check.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "time", transform = nullable)]
    pub next_execute_time: Option<Time>,
    /// Fields that this version does not know.
    #[serde(flatten)]
    #[schemars(skip)]
    pub other: Unknown,
}

/// Reasons are not enumerated in the schema: people may write what they like there.
fn any_reason(schema: &mut schemars::Schema) {
    schema.remove("enum");
}

impl StepStatus {
    /// The phase; pending if it is not said.
    pub fn phase(&self) -> StepPhase {
        self.phase.clone().unwrap_or_default()
    }

    /// Returns true if the step has finished.
    pub fn is_finished(&self) -> bool {
        self.phase().is_finished(&self.reason)
    }
}

/// Status of a step or a group of steps.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct WorkflowStepStatus {
    /// Status of the step.
    #[serde(flatten)]
    pub status: StepStatus,
    /// Status of the steps of the group.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[serde(deserialize_with = "crate::compact::exact")]
    pub sub_steps: Vec<StepStatus>,
}

/// The object that a step consists of.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct StepResource {
    /// Its group and version.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub api_version: String,
    /// Its kind.
    pub kind: String,
    /// Its name.
    pub name: String,
    /// Its namespace.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub namespace: String,
    /// Fields that this version does not know.
    #[serde(flatten)]
    #[schemars(skip)]
    pub other: Unknown,
}

/// The ConfigMap with the values that steps hand on.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(transform = open)]
pub struct ContextBackend {
    /// Its group and version.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub api_version: String,
    /// Its kind.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub kind: String,
    /// Its name.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub name: String,
    /// Its namespace.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub namespace: String,
    /// Its identity.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub uid: String,
    /// Fields that this version does not know.
    #[serde(flatten)]
    #[schemars(skip)]
    pub other: Unknown,
}

/// Status of a WorkflowRun.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct WorkflowRunStatus {
    /// Conditions: whether it is done, or why not.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "conditions")]
    #[serde(deserialize_with = "crate::compact::exact")]
    pub conditions: Vec<Condition>,
    /// Order of steps.
    pub mode: WorkflowExecuteMode,
    /// Phase of the run.
    #[serde(
        rename = "status",
        deserialize_with = "phase_or_empty",
        serialize_with = "empty_or_phase"
    )]
    #[schemars(with = "String")]
    pub phase: Option<WorkflowRunPhase>,
    /// Message for people.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub message: String,
    /// True if it is suspended. Set it to suspend the run, clear it to resume it.
    pub suspend: bool,
    /// Suspension state in the format of other tools.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub suspend_state: String,
    /// True if it is ended. Set it to end the run.
    pub terminated: bool,
    /// True if it has finished.
    pub finished: bool,
    /// Reference to the object that stores values of steps.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub context_backend: Option<ContextBackend>,
    /// Status of the steps.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[serde(deserialize_with = "crate::compact::exact")]
    pub steps: Vec<WorkflowStepStatus>,
    /// Start time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "time", transform = nullable)]
    pub start_time: Option<Time>,
    /// Completion time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "time", transform = nullable)]
    pub end_time: Option<Time>,
    /// Up to which entry of its history the status speaks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub history_seq: Option<u64>,
    /// Fields that this version does not know.
    #[serde(flatten)]
    #[schemars(skip)]
    pub other: Unknown,
}

/// Status of the workflow of an Application.
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is a field of the status, which others may set"
)]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct WorkflowStatus {
    /// The revision of the Application that it delivers.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub app_revision: String,
    /// Order of steps, and of steps within groups, such as StepByStep-DAG.
    #[serde(default)]
    pub mode: String,
    /// Phase of the workflow.
    #[serde(
        default,
        rename = "status",
        deserialize_with = "phase_or_empty",
        serialize_with = "empty_or_phase",
        skip_serializing_if = "Option::is_none"
    )]
    #[schemars(with = "String")]
    pub phase: Option<WorkflowRunPhase>,
    /// Message for people.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub message: String,
    /// True if it is suspended. Set it to suspend the workflow, clear it to resume it.
    #[serde(default)]
    pub suspend: bool,
    /// Suspension state in the format of other tools.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub suspend_state: String,
    /// True if it is ended. Set it to end the workflow.
    #[serde(default)]
    pub terminated: bool,
    /// True if it has finished.
    #[serde(default)]
    pub finished: bool,
    /// True if the workflow is rolled back to an earlier version by the rollback actions of its steps. Set it to request a rollback.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub rolling_back: bool,
    /// Reference to the object that stores values of steps.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub context_backend: Option<ContextBackend>,
    /// Status of the steps.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[serde(deserialize_with = "crate::compact::exact")]
    pub steps: Vec<WorkflowStepStatus>,
    /// Number of steps from the first that are finished without a gap.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub step_index: Option<u64>,
    /// Start time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "time", transform = nullable)]
    pub start_time: Option<Time>,
    /// Completion time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "time", transform = nullable)]
    pub end_time: Option<Time>,
    /// Up to which entry of its history the status speaks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub history_seq: Option<u64>,
    /// Fields that this version does not know.
    #[serde(flatten)]
    #[schemars(skip)]
    pub other: Unknown,
}

/// Reads a phase; a cleared status has an empty one.
fn phase_or_empty<'de, D>(deserializer: D) -> Result<Option<WorkflowRunPhase>, D::Error>
where
    D: serde::Deserializer<'de>,
{
    let text = Option::<String>::deserialize(deserializer)?;
    let text = text.filter(|text| !text.is_empty());
    Ok(text.map(WorkflowRunPhase::from))
}

/// Writes a phase, empty if there is none: the field is required.
#[expect(
    clippy::ref_option,
    reason = "serde hands over a reference to the field"
)]
fn empty_or_phase<S>(phase: &Option<WorkflowRunPhase>, serializer: S) -> Result<S::Ok, S::Error>
where
    S: serde::Serializer,
{
    serializer.serialize_str(phase.as_ref().map_or("", WorkflowRunPhase::as_str))
}
