//! Workflows: steps that are carried out one after the other or as a graph: `core.oam.dev/v1alpha1`.
//!
//! [`WorkflowStep`], [`WorkflowExecuteMode`], [`StepStatus`] and the enumerations are shared with
//! Applications, whose `spec.workflow` and `status.workflow` are made from them.

mod application_template;
mod history;
pub mod names;
mod phase;
mod run;
mod status;
mod step;
mod template;

pub use application_template::{
    ApplicationTemplateStatus, HelmTemplate, HelmTemplateSpec, KustomizePatch, KustomizePatchSpec,
    TemplateSecret, TemplateSource,
};
pub use history::{HistoryEntry, WorkflowHistory};
pub use phase::{StepPhase, StepReason, WorkflowMode, WorkflowRunPhase};
pub use run::{WorkflowRun, WorkflowRunSpec, WorkflowSpec};
pub use status::{
    ContextBackend, StepResource, StepStatus, WorkflowRunStatus, WorkflowStatus, WorkflowStepStatus,
};
pub use step::{
    StepInput, StepMeta, StepOutput, StepRetry, StepStage, WorkflowExecuteMode, WorkflowStep,
    WorkflowStepBase,
};
pub use template::Workflow;

/// The API group of these kinds.
pub const GROUP: &str = "core.oam.dev";
/// The API group of what is our own: the history of runs, and objects that steps consist of.
pub const HISTORY_GROUP: &str = "workflow.bellwether.dev";
