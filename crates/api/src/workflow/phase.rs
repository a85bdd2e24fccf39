//! In which phase runs and steps are, and why.

use crate::open_enum::open_enum;

open_enum! {
    /// Order of the steps of a list.
    pub enum WorkflowMode {
        /// One after the other.
        StepByStep = "StepByStep",
        /// Each as soon as what it depends on is finished.
        Dag = "DAG",
    }
}

open_enum! {
    /// Phase of a workflow.
    pub enum WorkflowRunPhase {
        /// It is being prepared.
        Initializing = "initializing",
        /// Steps are being carried out.
        Executing = "executing",
        /// It waits to be resumed, or for a time.
        Suspending = "suspending",
        /// Somebody or a step ended it.
        Terminated = "terminated",
        /// A step failed for good.
        Failed = "failed",
        /// All steps succeeded or were skipped.
        Succeeded = "succeeded",
        /// Nothing was done this time.
        Skipped = "skipped",
    }
}

open_enum! {
    /// Phase of a step.
    pub enum StepPhase {
        /// It waits for other steps or their outputs.
        Pending = "pending",
        /// It waits for something outside.
        Running = "running",
        /// It waits to be resumed, or for a time.
        Suspending = "suspending",
        /// It is done.
        Succeeded = "succeeded",
        /// It failed; the reason says whether it is tried again.
        Failed = "failed",
        /// It was not carried out.
        Skipped = "skipped",
    }
}

open_enum! {
    /// Reason for the phase of a step.
    pub enum StepReason {
        /// Nothing has to be said; not written.
        None = "",
        /// An action waits.
        Wait = "Wait",
        /// Its condition does not hold, or a step before it failed.
        Skip = "Skip",
        /// Its template cannot be rendered; not tried again.
        Rendering = "Rendering",
        /// An action or the evaluation failed; tried again.
        Execute = "Execute",
        /// It is suspended.
        Suspend = "Suspend",
        /// Somebody, or the step itself, ended the workflow.
        Terminate = "Terminate",
        /// Its parameters cannot be used. Nothing sets it.
        ProcessParameter = "ProcessParameter",
        /// An input cannot be used; not tried again.
        Input = "Input",
        /// An output cannot be found.
        Output = "Output",
        /// It failed as often as is allowed.
        FailedAfterRetries = "FailedAfterRetries",
        /// Its time is over.
        Timeout = "Timeout",
        /// An action let it fail.
        Action = "Action",
    }
}

impl StepReason {
    /// Returns true if there is nothing to report.
    pub fn is_none(&self) -> bool {
        *self == Self::None
    }
}

impl WorkflowRunPhase {
    /// Returns true if it has finished.
    pub fn is_final(&self) -> bool {
        matches!(self, Self::Terminated | Self::Failed | Self::Succeeded)
    }
}

impl StepPhase {
    /// Returns true if a step in this phase, for this reason, is finished: a failure that is retried is not.
    pub fn is_finished(&self, reason: &StepReason) -> bool {
        match self {
            Self::Succeeded | Self::Skipped => true,
            Self::Failed => !matches!(reason, StepReason::None | StepReason::Execute),
            _ => false,
        }
    }
}
