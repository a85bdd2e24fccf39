//! From the state of a workflow to what people and other programs see of it.

use bellwether_api::meta::Time;
use bellwether_api::workflow::{
    StepPhase, StepStatus, WorkflowRunPhase, WorkflowRunStatus, WorkflowStatus, WorkflowStepStatus,
};
use jiff::Timestamp;
use serde_json::Value;

use crate::spec::Spec;
use crate::state::{State, StepState};
use crate::token;

/// In which phase a workflow is.
pub fn phase(state: &State) -> WorkflowRunPhase {
    if let Some(phase) = &state.finished {
        return phase.clone();
    }
    if state.suspend {
        return WorkflowRunPhase::Suspending;
    }
    if state.started.is_none() {
        return WorkflowRunPhase::Initializing;
    }
    WorkflowRunPhase::Executing
}

/// Writes what is true of a run into its status; conditions and the context are left alone.
pub fn write_run_status(state: &State, spec: &Spec, status: &mut WorkflowRunStatus) {
    status.mode = state.mode.clone();
    status.phase = Some(phase(state));
    status.message.clone_from(&state.message);
    status.suspend = state.suspend;
    status.terminated = state.terminated;
    status.finished = state.finished.is_some();
    status.steps = steps(state, spec);
    status.start_time = state.started.map(time);
    status.end_time = state.ended.map(time);
    status.history_seq = Some(state.seq);
}

/// Writes what is true of the workflow of an Application into its status.
pub fn write_status(state: &State, spec: &Spec, status: &mut WorkflowStatus) {
    let text = |mode: &Option<bellwether_api::workflow::WorkflowMode>, default: &str| {
        mode.as_ref()
            .map_or_else(|| default.to_owned(), ToString::to_string)
    };
    status.mode = format!(
        "{}-{}",
        text(&state.mode.steps, "StepByStep"),
        text(&state.mode.sub_steps, "DAG")
    );
    status.phase = Some(phase(state));
    status.message.clone_from(&state.message);
    status.suspend = state.suspend;
    status.terminated = state.terminated;
    status.finished = state.finished.is_some();
    status.rolling_back = state.rolling_back;
    status.steps = steps(state, spec);
    status.start_time = state.started.map(time);
    status.end_time = state.ended.map(time);
    status.step_index = u64::try_from(step_index(state, spec)).ok();
    status.history_seq = Some(state.seq);
}

/// How many steps from the first are finished without a gap.
fn step_index(state: &State, spec: &Spec) -> usize {
    let is_finished = |name: &str| state.step(name).is_some_and(StepState::is_finished);
    spec.steps
        .iter()
        .take_while(|step| is_finished(&step.base.name))
        .count()
}

/// The steps in the order in which they were met. What is no longer part of the workflow is left out
/// unless it was done.
pub fn steps(state: &State, spec: &Spec) -> Vec<WorkflowStepStatus> {
    let is_shown = |step: &&StepState| step.is_finished() || spec.step(&step.name).is_some();
    let top = state.steps.iter().filter(|step| step.group.is_none());
    top.filter(is_shown)
        .map(|step| {
            let subs = state.steps.iter();
            let subs = subs.filter(|sub| sub.group.as_deref() == Some(&*step.name));
            WorkflowStepStatus {
                status: status_of(step, spec),
                sub_steps: subs
                    .filter(is_shown)
                    .map(|sub| status_of(sub, spec))
                    .collect(),
            }
        })
        .collect()
}

fn status_of(step: &StepState, spec: &Spec) -> StepStatus {
    let token = step.is_suspended().then(|| spec.resume_token(&step.id));
    StepStatus {
        resource_ref: step.resource.clone(),
        resume_token_hash: token.flatten().map(|token| token::hash(&token)),
        id: step.id.clone(),
        name: step.name.clone(),
        step_type: step.step_type.clone(),
        phase: Some(step.phase.clone()),
        message: step.message.clone(),
        reason: step.reason.clone(),
        first_execute_time: step.first_execute.map(time),
        last_execute_time: step.last_execute.map(time),
        ..StepStatus::default()
    }
}

/// A moment as the API has it: whole seconds.
fn time(time: Timestamp) -> Time {
    Time(Timestamp::from_second(time.as_second()).unwrap_or(time))
}

/// The values that steps hand on as the text of the context has them: CUE, one field a line.
pub fn vars(state: &State) -> String {
    let mut text = String::new();
    for (name, value) in &state.vars {
        text.push_str(&Value::String(name.clone()).to_string());
        text.push_str(": ");
        text.push_str(&value.to_string());
        text.push('\n');
    }
    text
}

/// Steps that wait, with what they wait for and since when.
pub fn waiting(state: &State) -> impl Iterator<Item = &StepState> {
    let is_open = |step: &&StepState| {
        matches!(
            step.phase,
            StepPhase::Running | StepPhase::Suspending | StepPhase::Pending
        ) || step.phase == StepPhase::Failed && !step.is_finished()
    };
    state.steps.iter().filter(is_open)
}
