//! What users do to a workflow: operations on its status, in the way in which other tools for this API do
//! them.
//!
//! The engine takes them in as changes of its status, see [`edit`](crate::edit).

use bellwether_api::workflow::{
    StepPhase, StepReason, StepStatus, WorkflowExecuteMode, WorkflowMode, WorkflowStep,
    WorkflowStepStatus,
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

/// Moves steps from one phase to another, groups with all of their steps that are not finished. Returns whether there
/// were any.
fn turn(
    steps: &mut [WorkflowStepStatus],
    only: Option<&str>,
    from: &StepPhase,
    to: &StepPhase,
) -> bool {
    let mut found = false;
    for step in steps {
        let is_meant = |status: &StepStatus| {
            status.phase.as_ref() == Some(from) && only.is_none_or(|only| status.name == only)
        };
        let is_whole = is_meant(&step.status);
        if is_whole {
            step.status.phase = Some(to.clone());
            found = true;
        }
        for sub in &mut step.sub_steps {
            if is_meant(sub) || is_whole && !sub.is_finished() {
                sub.phase = Some(to.clone());
                found = true;
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
    mode: &WorkflowExecuteMode,
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

/// A step and everything that is carried out because of it. The group of a step stays, but what depends on the group
/// does not.
pub fn dependents(steps: &[WorkflowStep], mode: &WorkflowExecuteMode, from: &str) -> Vec<String> {
    let group = steps
        .iter()
        .find(|step| step.sub_steps.iter().any(|sub| sub.name == from));
    let mut found = vec![from.to_owned()];
    found.extend(later(steps, mode, group, from));
    loop {
        let before = found.len();
        let is_reached = |name: &str| {
            found.iter().any(|known| known == name)
                || group.is_some_and(|group| group.base.name == name)
        };
        let all = || {
            steps
                .iter()
                .flat_map(|step| std::iter::once(&step.base).chain(&step.sub_steps))
        };
        let given: Vec<&str> = all()
            .filter(|step| is_reached(&step.name))
            .flat_map(|step| step.outputs.iter().map(|output| output.name.as_str()))
            .collect();
        let uses = |from: &str| {
            let name = from.split(['.', '[']).next().unwrap_or(from);
            given
                .iter()
                .any(|output| *output == name || *output == from)
        };
        let depending = all().filter(|step| {
            step.depends_on.iter().any(|on| is_reached(on))
                || step.inputs.iter().any(|input| uses(&input.from))
        });
        let whole_groups = steps.iter().filter(|step| found.contains(&step.base.name));
        let subs = whole_groups.flat_map(|group| &group.sub_steps);
        let mut next: Vec<String> = depending
            .chain(subs)
            .map(|step| step.name.clone())
            .collect();
        next.retain(|name| !is_reached(name));
        for name in next {
            if !found.contains(&name) {
                found.push(name);
            }
        }
        if found.len() == before {
            return found;
        }
    }
}

/// The steps that come after a step because of their order alone.
fn later(
    steps: &[WorkflowStep],
    mode: &WorkflowExecuteMode,
    group: Option<&WorkflowStep>,
    from: &str,
) -> Vec<String> {
    let mut later = Vec::new();
    let sub_mode = group.and_then(|group| group.mode.as_ref());
    if let Some(group) = group
        && sub_mode.or(mode.sub_steps.as_ref()) == Some(&WorkflowMode::StepByStep)
    {
        let subs = group.sub_steps.iter().map(|sub| &sub.name);
        later.extend(subs.skip_while(|name| *name != from).skip(1).cloned());
    }
    if mode.steps != Some(WorkflowMode::Dag) {
        let top = group.map_or(from, |group| &group.base.name);
        let tops = steps.iter().map(|step| &step.base.name);
        later.extend(tops.skip_while(|name| *name != top).skip(1).cloned());
    }
    later
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
        let graph = mode("DAG", "DAG");
        assert_eq!(dependents(&steps, &graph, "a"), ["a", "b", "c"]);
        assert_eq!(dependents(&steps, &graph, "d"), ["d"]);
        let in_order = mode("StepByStep", "DAG");
        assert_eq!(dependents(&steps, &in_order, "c"), ["c", "d"]);
    }

    #[test]
    fn a_step_of_a_group_takes_along_what_follows_it_and_what_depends_on_the_group() {
        let steps: Vec<WorkflowStep> = serde_json::from_value(json!([
            {"name": "g", "type": "step-group", "subSteps": [
                {"name": "s1", "type": "t"}, {"name": "s2", "type": "t"}, {"name": "s3", "type": "t"}]},
            {"name": "y", "type": "t"},
            {"name": "z", "type": "t", "dependsOn": ["g"]},
        ]))
        .unwrap();
        for (order, of_groups, from, expected) in [
            ("DAG", "DAG", "s2", vec!["s2", "z"]),
            ("DAG", "StepByStep", "s2", vec!["s2", "s3", "z"]),
            ("StepByStep", "DAG", "s2", vec!["s2", "y", "z"]),
            (
                "StepByStep",
                "StepByStep",
                "s1",
                vec!["s1", "s2", "s3", "y", "z"],
            ),
            ("DAG", "DAG", "g", vec!["g", "z", "s1", "s2", "s3"]),
        ] {
            let found = dependents(&steps, &mode(order, of_groups), from);
            assert_eq!(found, expected, "{order} {of_groups} {from}");
        }
    }

    #[test]
    fn a_group_is_suspended_and_resumed_with_its_unfinished_steps() {
        let mut steps = statuses(json!([
            {"id": "1", "name": "g", "phase": "running", "subSteps": [
                {"id": "2", "name": "a", "phase": "succeeded"},
                {"id": "3", "name": "b", "phase": "running"},
                {"id": "4", "name": "c", "phase": "pending"},
                {"id": "5", "name": "d", "phase": "failed", "reason": "Execute"}]},
            {"id": "6", "name": "other", "phase": "running"},
        ]));
        let phases = |steps: &[WorkflowStepStatus]| {
            let subs = steps[0].sub_steps.iter();
            let mut all: Vec<String> = subs.map(|sub| sub.phase().to_string()).collect();
            all.push(steps[0].status.phase().to_string());
            all.push(steps[1].status.phase().to_string());
            all.join(" ")
        };
        let (mut suspended, mut terminated, mut finished) = (false, false, false);
        let mut controls = Controls {
            suspend: &mut suspended,
            terminated: &mut terminated,
            finished: &mut finished,
            steps: &mut steps,
        };
        suspend(&mut controls, Some("g")).unwrap();
        assert_eq!(
            phases(controls.steps),
            "succeeded suspending suspending suspending suspending running"
        );
        resume(&mut controls, Some("g")).unwrap();
        assert_eq!(
            phases(controls.steps),
            "succeeded running running running running running"
        );
        let unknown = OperationError::NoStep("a".to_owned());
        assert_eq!(suspend(&mut controls, Some("a")), Err(unknown));
    }

    fn mode(steps: &str, of_groups: &str) -> WorkflowExecuteMode {
        WorkflowExecuteMode::parse(&format!("{steps}-{of_groups}"))
    }
}
