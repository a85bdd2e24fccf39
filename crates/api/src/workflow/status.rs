//! What is known of a workflow and its steps.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::phase::{StepPhase, StepReason, WorkflowRunPhase};
use super::step::WorkflowExecuteMode;
use crate::meta::{Condition, Time, Unknown, conditions, time};
use crate::structural::{nullable, open};

/// Where a step stands.
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
    /// In which phase it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub phase: Option<StepPhase>,
    /// What a person should know.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub message: String,
    /// Why it is in its phase.
    #[serde(default, skip_serializing_if = "StepReason::is_none")]
    #[schemars(transform = any_reason)]
    pub reason: StepReason,
    /// When it was carried out first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "time", transform = nullable)]
    pub first_execute_time: Option<Time>,
    /// When it was carried out last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "time", transform = nullable)]
    pub last_execute_time: Option<Time>,
    /// The object that the step consists of, if it is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resource_ref: Option<StepResource>,
    /// A hash of the token that resumes the step.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resume_token_hash: Option<String>,
    /// When it is tried again, or looked at again, at the latest.
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

    /// Whether nothing will happen to the step any more.
    pub fn is_finished(&self) -> bool {
        self.phase().is_finished(&self.reason)
    }
}

/// Where a step or a group of steps stands.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct WorkflowStepStatus {
    /// Where the step stands.
    #[serde(flatten)]
    pub status: StepStatus,
    /// Where the steps of the group stand.
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

/// Where a WorkflowRun stands.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct WorkflowRunStatus {
    /// Whether it is done, and why not.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "conditions")]
    #[serde(deserialize_with = "crate::compact::exact")]
    pub conditions: Vec<Condition>,
    /// How steps are ordered.
    pub mode: WorkflowExecuteMode,
    /// In which phase it is.
    #[serde(
        rename = "status",
        deserialize_with = "phase_or_empty",
        serialize_with = "empty_or_phase"
    )]
    #[schemars(with = "String")]
    pub phase: Option<WorkflowRunPhase>,
    /// What a person should know.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub message: String,
    /// Whether it is suspended. Set it to suspend the run, clear it to resume it.
    pub suspend: bool,
    /// What suspended it, in words of other programs.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub suspend_state: String,
    /// Whether it is ended. Set it to end the run.
    pub terminated: bool,
    /// Whether nothing will happen any more.
    pub finished: bool,
    /// Where values of steps are kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub context_backend: Option<ContextBackend>,
    /// Where the steps stand.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[serde(deserialize_with = "crate::compact::exact")]
    pub steps: Vec<WorkflowStepStatus>,
    /// When it began.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "time", transform = nullable)]
    pub start_time: Option<Time>,
    /// When it was done.
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

/// Where the workflow of an Application stands.
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
    /// How steps, and steps within groups, are ordered, such as StepByStep-DAG.
    #[serde(default)]
    pub mode: String,
    /// In which phase it is.
    #[serde(
        default,
        rename = "status",
        deserialize_with = "phase_or_empty",
        serialize_with = "empty_or_phase",
        skip_serializing_if = "Option::is_none"
    )]
    #[schemars(with = "String")]
    pub phase: Option<WorkflowRunPhase>,
    /// What a person should know.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub message: String,
    /// Whether it is suspended. Set it to suspend the workflow, clear it to resume it.
    #[serde(default)]
    pub suspend: bool,
    /// What suspended it, in words of other programs.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub suspend_state: String,
    /// Whether it is ended. Set it to end the workflow.
    #[serde(default)]
    pub terminated: bool,
    /// Whether nothing will happen any more.
    #[serde(default)]
    pub finished: bool,
    /// Whether somebody goes back to an earlier version: what steps declare for that is carried out. Set it to ask for that.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub rolling_back: bool,
    /// Where values of steps are kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub context_backend: Option<ContextBackend>,
    /// Where the steps stand.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[serde(deserialize_with = "crate::compact::exact")]
    pub steps: Vec<WorkflowStepStatus>,
    /// How many steps from the first are finished without a gap.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub step_index: Option<u64>,
    /// When it began.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "time", transform = nullable)]
    pub start_time: Option<Time>,
    /// When it was done.
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
