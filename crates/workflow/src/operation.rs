//! What users do to a workflow: operations on its status, in the way in which other tools for this API do
//! them.
//!
//! The engine takes them in as changes of its status, see [`edit`](crate::edit).

use bellwether_api::workflow::{
    StepPhase, StepReason, StepStatus, WorkflowMode, WorkflowStep, WorkflowStepStatus,
};

/// Why an operation is refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum OperationError {
    /// A workflow that ended cannot be suspended.
    #[error("can not suspend a terminated workflow")]
    SuspendTerminated,
    /// A workflow that ended cannot be resumed.
    #[error("can not resume a terminated workflow")]
    ResumeTerminated,
    /// There is no such step, or it is not in the phase for the operation.
    #[error("can not find step {0}")]
    NoStep(String),
    /// There is no such step to restart from.
    #[error("failed step {0} not found")]
    NoFailedStep(String),
    /// Only steps that failed can be restarted from.
    #[error("can not restart from a non-failed step")]
    NotFailed,
    /// A run has no earlier version.
    #[error("can not rollback a WorkflowRun")]
    RollbackRun,
}

/// The parts of a status that operations change.
#[derive(Debug)]
pub struct Controls<'a> {
    /// Whether it is suspended.
    pub suspend: &'a mut bool,
    /// Whether it is ended.
    pub terminated: &'a mut bool,
    /// Whether it is done.
    pub finished: &'a mut bool,
    /// The steps.
    pub steps: &'a mut Vec<WorkflowStepStatus>,
}

/// Suspends a workflow, or one of its steps.
pub fn suspend(controls: &mut Controls<'_>, only: Option<&str>) -> Result<(), OperationError> {
    if *controls.terminated {
        return Err(OperationError::SuspendTerminated);
    }
    let found = turn(
        controls.steps,
        only,
        &StepPhase::Running,
        &StepPhase::Suspending,
    );
    match only {
        Some(step) if !found => Err(OperationError::NoStep(step.to_owned())),
        _ => {
            *controls.suspend = true;
            Ok(())
        }
    }
}

/// Resumes a workflow, or one of its steps.
pub fn resume(controls: &mut Controls<'_>, only: Option<&str>) -> Result<(), OperationError> {
    if *controls.terminated {
        return Err(OperationError::ResumeTerminated);
    }
    let found = turn(
        controls.steps,
        only,
        &StepPhase::Suspending,
        &StepPhase::Running,
    );
    match only {
        Some(step) if !found => Err(OperationError::NoStep(step.to_owned())),
        _ => {
            *controls.suspend = false;
            Ok(())
        }
    }
}

/// Moves steps from one phase to another; tells whether there were any.
fn turn(
    steps: &mut [WorkflowStepStatus],
    only: Option<&str>,
    from: &StepPhase,
    to: &StepPhase,
) -> bool {
    let mut found = false;
    let mut change = |step: &mut StepStatus| {
        if step.phase.as_ref() == Some(from) {
            step.phase = Some(to.clone());
            found = true;
        }
    };
    for step in steps {
        let is_meant = only.is_none_or(|only| step.status.name == only);
        if is_meant {
            change(&mut step.status);
        }
        for sub in &mut step.sub_steps {
            if is_meant || only == Some(&*sub.name) {
                change(sub);
            }
        }
    }
    found
}

/// Ends a workflow.
pub fn terminate(controls: Controls<'_>) {
    *controls.terminated = true;
    *controls.suspend = false;
    for step in controls.steps {
        end(&mut step.status);
        step.sub_steps.iter_mut().for_each(end);
    }
}

fn end(step: &mut StepStatus) {
    match step.phase {
        Some(StepPhase::Running | StepPhase::Suspending) => {
            step.phase = Some(StepPhase::Failed);
            step.reason = StepReason::Terminate;
        }
        Some(StepPhase::Failed)
            if !matches!(
                step.reason,
                StepReason::FailedAfterRetries | StepReason::Timeout
            ) =>
        {
            step.reason = StepReason::Terminate;
        }
        _ => {}
    }
}

/// Lets a workflow begin again at a step that failed: what depends on it is forgotten.
pub fn restart_from(
    controls: Controls<'_>,
    steps: &[WorkflowStep],
    mode: &WorkflowMode,
    from: &str,
) -> Result<(), OperationError> {
    let known = controls
        .steps
        .iter()
        .flat_map(|step| std::iter::once(&step.status).chain(&step.sub_steps));
    let Some(status) = known.clone().find(|step| step.name == from) else {
        return Err(OperationError::NoFailedStep(from.to_owned()));
    };
    if status.phase != Some(StepPhase::Failed) {
        return Err(OperationError::NotFailed);
    }
    let forgotten = dependents(steps, mode, from);
    *controls.terminated = false;
    *controls.suspend = false;
    *controls.finished = false;
    controls
        .steps
        .retain(|step| !forgotten.contains(&step.status.name));
    for step in controls.steps {
        let before = step.sub_steps.len();
        step.sub_steps.retain(|sub| !forgotten.contains(&sub.name));
        if step.sub_steps.len() < before {
            step.status.phase = Some(StepPhase::Running);
            step.status.reason = StepReason::None;
            step.status.message.clear();
        }
    }
    Ok(())
}

/// A step and everything that is carried out because of it.
pub fn dependents(steps: &[WorkflowStep], mode: &WorkflowMode, from: &str) -> Vec<String> {
    let mut found = vec![from.to_owned()];
    let group = steps
        .iter()
        .position(|step| step.sub_steps.iter().any(|sub| sub.name == from));
    let top = steps.iter().position(|step| step.base.name == from);
    if *mode == WorkflowMode::StepByStep
        && let Some(position) = top.or(group)
    {
        let first = if top.is_some() {
            position
        } else {
            position + 1
        };
        for step in steps.iter().skip(first) {
            found.push(step.base.name.clone());
            found.extend(step.sub_steps.iter().map(|sub| sub.name.clone()));
        }
    }
    let all = || {
        steps
            .iter()
            .flat_map(|step| std::iter::once(&step.base).chain(&step.sub_steps))
    };
    loop {
        let before = found.len();
        let given: Vec<String> = all()
            .filter(|step| found.contains(&step.name))
            .flat_map(|step| step.outputs.iter().map(|output| output.name.clone()))
            .collect();
        for step in all() {
            let uses = |from: &str| {
                let name = from.split(['.', '[']).next().unwrap_or(from);
                given.iter().any(|output| output == name || output == from)
            };
            let depends = step.depends_on.iter().any(|on| found.contains(on))
                || step.inputs.iter().any(|input| uses(&input.from));
            if depends && !found.contains(&step.name) {
                found.push(step.name.clone());
            }
        }
        for step in steps {
            if found.contains(&step.base.name) {
                for sub in &step.sub_steps {
                    if !found.contains(&sub.name) {
                        found.push(sub.name.clone());
                    }
                }
            }
        }
        if found.len() == before {
            return found;
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn statuses(steps: Value) -> Vec<WorkflowStepStatus> {
        serde_json::from_value(steps).unwrap()
    }

    #[test]
    fn terminating_fails_what_is_open_and_keeps_what_failed_for_good() {
        let mut steps = statuses(json!([
            {"id": "1", "name": "a", "phase": "running"},
            {"id": "2", "name": "b", "phase": "pending"},
            {"id": "3", "name": "c", "phase": "failed", "reason": "FailedAfterRetries"},
            {"id": "4", "name": "d", "phase": "suspending", "subSteps": [{"id": "5", "name": "e", "phase": "suspending"}]},
        ]));
        let (mut suspended, mut terminated, mut finished) = (true, false, false);
        terminate(Controls {
            suspend: &mut suspended,
            terminated: &mut terminated,
            finished: &mut finished,
            steps: &mut steps,
        });
        let seen: Vec<(StepPhase, String)> = steps
            .iter()
            .map(|step| (step.status.phase(), step.status.reason.to_string()))
            .collect();
        assert_eq!(
            seen,
            [
                (StepPhase::Failed, "Terminate".to_owned()),
                (StepPhase::Pending, String::new()),
                (StepPhase::Failed, "FailedAfterRetries".to_owned()),
                (StepPhase::Failed, "Terminate".to_owned()),
            ]
        );
        assert!(terminated && !suspended);
        assert_eq!(steps[3].sub_steps[0].reason, StepReason::Terminate);
    }

    #[test]
    fn what_depends_on_a_step_is_carried_out_again_with_it() {
        let steps: Vec<WorkflowStep> = serde_json::from_value(json!([
            {"name": "a", "type": "t", "outputs": [{"name": "x", "valueFrom": "y"}]},
            {"name": "b", "type": "t", "inputs": [{"from": "x.z"}]},
            {"name": "c", "type": "t", "dependsOn": ["b"]},
            {"name": "d", "type": "t"},
        ]))
        .unwrap();
        assert_eq!(dependents(&steps, &WorkflowMode::Dag, "a"), ["a", "b", "c"]);
        assert_eq!(dependents(&steps, &WorkflowMode::Dag, "d"), ["d"]);
        assert_eq!(
            dependents(&steps, &WorkflowMode::StepByStep, "c"),
            ["c", "c", "d"]
        );
    }
}
