//! One execution of a workflow that belongs to no Application.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::GROUP;
use super::status::WorkflowRunStatus;
use super::step::{WorkflowExecuteMode, WorkflowStep};
use crate::TypeTag;
use crate::kind::kind;
use crate::meta::{ObjectMeta, Unknown, any_object};

/// One execution of a workflow. It begins when it is created.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct WorkflowRun {
    /// Group, version and kind.
    #[serde(flatten)]
    #[schemars(skip)]
    pub types: TypeTag<Self>,
    /// Name, labels and so on.
    #[serde(default)]
    #[schemars(skip)]
    pub metadata: ObjectMeta,
    /// Steps and their order.
    #[serde(default)]
    pub spec: WorkflowRunSpec,
    /// Status of the run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<WorkflowRunStatus>,
    /// Fields that this version does not know.
    #[serde(flatten)]
    #[schemars(skip)]
    pub other: Unknown,
}

kind! {
    WorkflowRun: GROUP, "v1alpha1", "workflowruns", "workflowrun", Namespaced;
    spec: WorkflowRunSpec;
    status: WorkflowRunStatus;
    short: ["wr"];
    categories: ["oam"];
    columns: [
        ("PHASE", "string", ".status.status"),
        ("AGE", "date", ".metadata.creationTimestamp"),
    ];
}

/// Steps and their order.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct WorkflowRunSpec {
    /// Additional fields of context for templates.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "any_object")]
    pub context: Option<Map<String, Value>>,
    /// Order of steps; takes precedence over that of the Workflow.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mode: Option<WorkflowExecuteMode>,
    /// The steps.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workflow_spec: Option<WorkflowSpec>,
    /// Name of a Workflow in the same namespace, whose steps are used if there are none here.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub workflow_ref: String,
    /// Fields that this version does not know.
    #[serde(flatten)]
    #[schemars(skip)]
    pub other: Unknown,
}

/// The steps of a run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct WorkflowSpec {
    /// The steps.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub steps: Vec<WorkflowStep>,
    /// Fields that this version does not know.
    #[serde(flatten)]
    #[schemars(skip)]
    pub other: Unknown,
}
