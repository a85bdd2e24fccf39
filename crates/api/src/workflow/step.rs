//! A step of a workflow as its author writes it.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::phase::WorkflowMode;
use crate::meta::{Unknown, any_object};
use crate::open_enum::open_enum;

/// Order of steps, and of steps within groups.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct WorkflowExecuteMode {
    /// Order of the steps.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub steps: Option<WorkflowMode>,
    /// Order of the steps of a group.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sub_steps: Option<WorkflowMode>,
    /// Fields that this version does not know.
    #[serde(flatten)]
    #[schemars(skip)]
    pub other: Unknown,
}

impl WorkflowExecuteMode {
    /// Reads both orders as the status of an Application has them, such as `StepByStep-DAG`.
    pub fn parse(text: &str) -> Self {
        let order = |text: &str| serde_json::from_value(text.into()).ok();
        let (steps, sub_steps) = text.split_once('-').unwrap_or((text, ""));
        let is_given = |text: &&str| !text.is_empty();
        Self {
            steps: Some(steps).filter(is_given).and_then(order),
            sub_steps: Some(sub_steps).filter(is_given).and_then(order),
            ..Self::default()
        }
    }
}

/// A step, or a group of steps.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct WorkflowStep {
    /// Fields shared with the steps of a group.
    #[serde(flatten)]
    pub base: WorkflowStepBase,
    /// Order of the steps of this group.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mode: Option<WorkflowMode>,
    /// The steps of this group.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub sub_steps: Vec<WorkflowStepBase>,
}

open_enum! {
    /// Stage at which a step of an Application runs.
    pub enum StepStage {
        /// After components were rendered.
        PostRender = "post-render",
        /// Before components are rendered.
        PreRender = "pre-render",
    }
}

/// Fields of every step, within a group or not.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct WorkflowStepBase {
    /// Name of the step, unique among steps and steps of groups. Without one it is called step-0,
    /// step-1 and so on, within a group step-0-0, step-0-1 and so on.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub name: String,
    /// Name of the WorkflowStepDefinition, or one of the built-in types.
    #[serde(rename = "type")]
    pub step_type: String,
    /// Display name of the step.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub meta: Option<StepMeta>,
    /// Condition for running the step: always, or an expression in CUE. Without it, if no step before it
    /// failed.
    #[serde(default, rename = "if", skip_serializing_if = "String::is_empty")]
    pub condition: String,
    /// Time limit of the step, such as 30s, 5m, 1h or 1d.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub timeout: String,
    /// Names of the steps that have to be finished first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub depends_on: Vec<String>,
    /// Values that come from other steps.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub inputs: Vec<StepInput>,
    /// Values that other steps can use.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub outputs: Vec<StepOutput>,
    /// Parameters of the definition.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "any_object")]
    pub properties: Option<Map<String, Value>>,
    /// Number of retries and their interval when the step fails; the settings of the hub if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry: Option<StepRetry>,
    /// Stage at which a step of an Application runs; post-render if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stage: Option<StepStage>,
    /// Actions if the workflow ends early after this step was started, in the reverse order of the steps.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub on_terminate: Option<StepCompensation>,
    /// Actions if a later step rolls back to an earlier revision of the Application after this step was done, in the reverse
    /// order of the steps.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub on_rollback: Option<StepCompensation>,
    /// Fields that this version does not know.
    #[serde(flatten)]
    #[schemars(skip)]
    pub other: Unknown,
}

/// Actions that undo a step.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct StepCompensation {
    /// Name of the WorkflowStepDefinition, or one of the built-in types.
    #[serde(rename = "type")]
    pub step_type: String,
    /// Parameters of the definition.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "any_object")]
    pub properties: Option<Map<String, Value>>,
    /// Fields that this version does not know.
    #[serde(flatten)]
    #[schemars(skip)]
    pub other: Unknown,
}

/// Display name of a step.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct StepMeta {
    /// The name that is shown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub alias: Option<String>,
    /// Fields that this version does not know.
    #[serde(flatten)]
    #[schemars(skip)]
    pub other: Unknown,
}

/// A value that a step gets.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct StepInput {
    /// Name of an output, with a path into it, or a path of the step's own context.
    pub from: String,
    /// Parameter that gets the value, such as `image` or `ports[0].port`. Without it the value is there
    /// for the condition only.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub parameter_key: String,
    /// Fields that this version does not know.
    #[serde(flatten)]
    #[schemars(skip)]
    pub other: Unknown,
}

/// A value that a step gives.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct StepOutput {
    /// Name by which other steps use it.
    pub name: String,
    /// A path or expression in CUE over the evaluated template of the step.
    pub value_from: String,
    /// Fields that this version does not know.
    #[serde(flatten)]
    #[schemars(skip)]
    pub other: Unknown,
}

/// Retries of a failed step.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct StepRetry {
    /// Number of retries.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub times: Option<u32>,
    /// Interval between attempts, such as 10s.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub interval: Option<String>,
    /// Fields that this version does not know.
    #[serde(flatten)]
    #[schemars(skip)]
    pub other: Unknown,
}
