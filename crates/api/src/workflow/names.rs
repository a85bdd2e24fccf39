//! Every string with a meaning in these kinds: labels, annotations, conditions, reasons, messages.

/// Keys of labels.
pub mod label {
    /// On an object that a WorkflowRun applied: name of the run.
    pub const RUN_NAME: &str = "workflowrun.oam.dev/name";
    /// On an object that a WorkflowRun applied: namespace of the run.
    pub const RUN_NAMESPACE: &str = "workflowrun.oam.dev/namespace";
    /// On an object that a workflow of an Application applied: name of the Application.
    pub const APP_NAME: &str = "app.oam.dev/name";
    /// On an object that a workflow of an Application applied: namespace of the Application.
    pub const APP_NAMESPACE: &str = "app.oam.dev/namespace";
    /// On a Secret: that it is a configuration.
    pub const CONFIG_CATALOG: &str = "config.oam.dev/catalog";
    /// The value of [`CONFIG_CATALOG`].
    pub const CONFIG_CATALOG_VALUE: &str = "velacore-config";
    /// On a configuration: the template that it is made from.
    pub const CONFIG_TYPE: &str = "config.oam.dev/type";
}

/// Keys of annotations.
pub mod annotation {
    /// On a run: `true` keeps the evaluated templates of its steps.
    pub const DEBUG: &str = "workflowrun.oam.dev/debug";
    /// On a run: only the controller of this version handles it.
    pub const CONTROLLER_VERSION: &str = "workflowrun.oam.dev/controller-version-require";
    /// On an object that a WorkflowRun applied: what was applied.
    pub const RUN_LAST_APPLIED: &str = "workflow.oam.dev/last-applied-configuration";
    /// On an object that a WorkflowRun applied: when it was applied.
    pub const RUN_LAST_APPLIED_TIME: &str = "workflow.oam.dev/last-applied-time";
    /// On an object that an Application applied: what was applied.
    pub const APP_LAST_APPLIED: &str = "app.oam.dev/last-applied-configuration";
    /// On an object that an Application applied: when it was applied.
    pub const APP_LAST_APPLIED_TIME: &str = "app.oam.dev/last-applied-time";
    /// On the context ConfigMap: when the run began.
    pub const START_TIME: &str = "vela.io/startTime";
    /// On an Application: the version that is published; changes of the spec alone start nothing.
    pub const PUBLISH_VERSION: &str = "app.oam.dev/publishVersion";
    /// On an Application: the name of its workflow.
    pub const WORKFLOW_NAME: &str = "app.oam.dev/workflowName";
    /// On an Application: when its workflow is carried out again.
    pub const RESTART_WORKFLOW: &str = "app.oam.dev/restart-workflow";
    /// On an Application: interval of reconciliation.
    pub const RECONCILE_INTERVAL: &str = "app.oam.dev/reconcile-interval";
    /// On an object that a step consists of: what the step knows, as JSON.
    pub const WORKFLOW_CONTEXT: &str = "app.oam.dev/workflow-context";
    /// On an Application: what templates wrote to it last, by step, as JSON. It stops templates that never settle.
    pub const PRE_RENDER_HASH: &str = "app.oam.dev/pre-render-hash";
    /// On a ConfigMap or Secret of configurations: description for people.
    pub const CONFIG_DESCRIPTION: &str = "config.oam.dev/description";
    /// On a configuration: the name that is shown.
    pub const CONFIG_ALIAS: &str = "config.oam.dev/alias";
    /// On a configuration: whether its content may be read.
    pub const CONFIG_SENSITIVE: &str = "config.oam.dev/sensitive";
}

/// Types and reasons of conditions.
pub mod condition {
    /// The condition of a WorkflowRun.
    pub const WORKFLOW_RUN: &str = "WorkflowRun";
    /// The run is done.
    pub const AVAILABLE: &str = "Available";
    /// The run cannot be carried out.
    pub const RECONCILE_ERROR: &str = "ReconcileError";
    /// On an object that a step consists of: whether the step is done.
    pub const WORKFLOW_PROGRESS: &str = "workflow-progress";
    /// The object is done.
    pub const SUCCEEDED: &str = "Succeeded";
    /// The object failed.
    pub const FAILED: &str = "Failed";
    /// The object is at work, or waits for something.
    pub const RUNNING: &str = "Running";
}

/// Reasons of events.
pub mod event {
    /// Steps were carried out, or could not be.
    pub const EXECUTE: &str = "Execute";
    /// Definitions of steps could not be loaded.
    pub const GENERATE: &str = "Generate";
}

/// Texts that people see, and programs compare.
pub mod message {
    /// The event of a run that succeeded.
    pub const FINISHED: &str = "WorkflowRun finished successfully";
    /// The event of a run that was ended.
    pub const FINISHED_TERMINATED: &str = "WorkflowRun finished with termination";
    /// The event of a run that failed.
    pub const FINISHED_FAILED: &str = "WorkflowRun finished with failure";
    /// Prefix of the event of a run whose definitions cannot be loaded.
    pub const GENERATE_FAILED: &str = "fail to generate workflow runners";
    /// Reason for an automatic suspension.
    pub const SUSPENDED_BY_FAILURE: &str = "The workflow suspends automatically because the failed times of steps have reached the limit";
    /// Reason for an automatic end.
    pub const TERMINATED_BY_FAILURE: &str = "The workflow terminates automatically because the failed times of steps have reached the limit";
}

/// Types of steps that need no definition.
pub mod step_type {
    /// Waits until somebody resumes it.
    pub const SUSPEND: &str = "suspend";
    /// Has steps of its own.
    pub const STEP_GROUP: &str = "step-group";
    /// Applies a component of the Application.
    pub const APPLY_COMPONENT: &str = "apply-component";
    /// Replacement of [`APPLY_COMPONENT`].
    pub const BUILTIN_APPLY_COMPONENT: &str = "builtin-apply-component";
}

/// The namespace of definitions and configurations for all namespaces.
pub const SYSTEM_NAMESPACE: &str = "vela-system";

/// Keys of the context ConfigMap.
pub mod context {
    /// The values that steps hand on.
    pub const VARS: &str = "vars";
    /// Sources of logs of steps.
    pub const LOG_CONFIG: &str = "logConfig";

    /// Name of the ConfigMap of a workflow.
    pub fn config_map(workflow: &str) -> String {
        format!("workflow-{workflow}-context")
    }

    /// What a step remembers its log by, and the end of [`step_log`].
    pub const LOG: &str = "log";

    /// The key for what a step logged.
    pub fn step_log(step_id: &str) -> String {
        format!("{step_id}.{LOG}")
    }

    /// The key for the time at which a step resumes.
    pub fn resume_time(step_id: &str) -> String {
        format!("{step_id}.resumeTimeStamp")
    }

    /// The key for the time since which a field of a step suspends it.
    pub fn suspend_time(step_id: &str, field: &str) -> String {
        format!("{step_id}.{field}.suspendTimeStamp")
    }
}
