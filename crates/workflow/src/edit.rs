//! What somebody changed in the status of a workflow: from the difference to what the engine wrote to events.
//!
//! The status that is found says up to which entry of the log it speaks (`historySeq`). What differs from what
//! the engine wrote then was changed by somebody, and is done to the state that is true by now.

use bellwether_api::workflow::{
    StepPhase, StepReason, StepStatus, WorkflowExecuteMode, WorkflowRunPhase, WorkflowStatus,
    WorkflowStepStatus,
};

use crate::event::{Actor, Entry, Event, StepChange};
use crate::project;
use crate::spec::Spec;
use crate::state::{State, StepState};

/// The parts of a status by which a workflow is controlled.
#[derive(Debug, Clone, Default, PartialEq)]
#[expect(clippy::struct_excessive_bools, reason = "they are fields of a status")]
pub struct Seen {
    /// Up to which entry of the log it speaks.
    pub seq: Option<u64>,
    /// Whether it was written at all.
    pub is_written: bool,
    /// Whether somebody cleared it.
    pub is_cleared: bool,
    /// Whether it is suspended.
    pub suspend: bool,
    /// Whether it is ended.
    pub terminated: bool,
    /// Whether somebody goes back to an earlier version.
    pub rolling_back: bool,
    /// The steps.
    pub steps: Vec<WorkflowStepStatus>,
    /// The version of the object that it was read from.
    pub version: String,
    /// What identifies a restart that somebody asked for; it is made once.
    pub restart: String,
    /// What was carried out successfully to the end, if the status says so: somebody who goes back to an earlier revision
    /// restores what its status was.
    pub delivered: Option<Box<State>>,
}

/// The events by which the changes of others become true.
pub fn events(seen: &Seen, entries: &[Entry], spec: &Spec) -> Vec<Event> {
    let now = State::of(entries);
    if now.started.is_none() {
        return carried_out_by_others(seen, entries, spec);
    }
    if let Some(delivered) = &seen.delivered
        && delivered.revision == spec.revision
        && now.revision != spec.revision
    {
        let state = State {
            round: now.round.saturating_add(1),
            ..(**delivered).clone()
        };
        return vec![Event::Snapshot {
            state: Box::new(state),
        }];
    }
    if seen.is_cleared {
        // After a crash the same version is found again.
        let is_done = !seen.version.is_empty() && seen.version == now.restarted_at;
        if is_done {
            return Vec::new();
        }
        return vec![Event::Restarted {
            by: Actor::Status,
            steps: Vec::new(),
            vars: Vec::new(),
            version: seen.version.clone(),
        }];
    }
    if !seen.restart.is_empty() && seen.restart != now.restarted_at {
        return vec![Event::Restarted {
            by: Actor::Owner,
            steps: Vec::new(),
            vars: Vec::new(),
            version: seen.restart.clone(),
        }];
    }
    if !seen.is_written {
        return Vec::new();
    }
    let seq = seen.seq.unwrap_or(now.seq);
    let before = State::of(
        entries
            .iter()
            .filter(|entry| entry.seq <= seq || is_snapshot(&entry.event)),
    );
    if seen.rolling_back && !before.rolling_back && !now.rolling_back {
        let is_open = now.finished.is_none() && !now.terminated;
        let mut events = if is_open { terminate(&now) } else { Vec::new() };
        events.push(Event::RollbackRequested { by: Actor::Status });
        return events;
    }
    let written = flat(&project::steps(&before, spec));
    let found = flat(&seen.steps);
    let mut events = Vec::new();
    let removed: Vec<String> = written
        .iter()
        .filter(|step| !found.iter().any(|found| found.name == step.name))
        .map(|step| step.name.clone())
        .collect();
    if !removed.is_empty() {
        events.push(Event::Restarted {
            by: Actor::Status,
            vars: handed_on(spec, &removed),
            steps: removed.clone(),
            version: String::new(),
        });
    }
    if seen.terminated && !before.terminated && !now.terminated {
        events.extend(terminate(&now));
        return events;
    }
    for step in &found {
        let written = written.iter().find(|written| written.name == step.name);
        if let Some(written) = written
            && written.phase != step.phase
        {
            events.extend(step_edit(written, step, &now));
        }
    }
    suspension(seen, &before, &now, &mut events);
    events
}

/// What another controller carried out to the end, before we had a log of it, is not carried out again. It does not say up to which entry
/// of a log its status speaks.
fn carried_out_by_others(seen: &Seen, entries: &[Entry], spec: &Spec) -> Vec<Event> {
    let is_foreign = entries.is_empty() && seen.seq.is_none();
    let is_asked_for = seen.is_cleared || !seen.restart.is_empty() || seen.rolling_back;
    let delivered = seen.delivered.as_ref();
    let delivered = delivered.filter(|it| it.revision == spec.revision && it.started.is_some());
    match delivered {
        Some(state) if is_foreign && !is_asked_for => vec![Event::Snapshot {
            state: state.clone(),
        }],
        _ => Vec::new(),
    }
}

/// The names of the values that steps hand on.
fn handed_on(spec: &Spec, steps: &[String]) -> Vec<String> {
    let steps = spec.all().filter(|(step, _)| steps.contains(&step.name));
    let outputs = steps.flat_map(|(step, _)| &step.outputs);
    outputs.map(|output| output.name.clone()).collect()
}

fn is_snapshot(event: &Event) -> bool {
    matches!(event, Event::Snapshot { .. })
}

fn suspension(seen: &Seen, before: &State, now: &State, events: &mut Vec<Event>) {
    if seen.suspend && !before.suspend && !now.suspend {
        events.push(Event::Suspended {
            by: Actor::Status,
            message: String::new(),
        });
    }
    let is_resumed = events
        .iter()
        .any(|event| matches!(event, Event::Resumed { .. }));
    if !seen.suspend && before.suspend && now.suspend && !is_resumed && events.is_empty() {
        events.push(Event::Resumed {
            by: Actor::Status,
            step: None,
        });
    }
}

/// Steps and steps of groups in one list.
fn flat(steps: &[WorkflowStepStatus]) -> Vec<StepStatus> {
    let steps = steps.iter();
    let all = steps.flat_map(|step| std::iter::once(&step.status).chain(&step.sub_steps));
    all.cloned().collect()
}

/// What a change of the phase of a step means.
fn step_edit(written: &StepStatus, found: &StepStatus, now: &State) -> Option<Event> {
    let known = now.step(&found.name)?;
    if known.is_finished() && known.phase != written.phase() {
        // It finished meanwhile.
        return None;
    }
    if written.phase() == StepPhase::Suspending && found.phase() == StepPhase::Running {
        return Some(Event::Resumed {
            by: Actor::Status,
            step: Some(found.name.clone()),
        });
    }
    Some(Event::StepChanged(Box::new(StepChange {
        step: found.name.clone(),
        id: known.id.clone(),
        step_type: known.step_type.clone(),
        group: known.group.clone(),
        phase: found.phase(),
        reason: found.reason.clone(),
        message: found.message.clone(),
        order: known.order,
        failures: known.failures,
        executed: false,
    })))
}

/// Ends a workflow: what is open fails.
pub fn terminate(now: &State) -> Vec<Event> {
    let mut events = vec![Event::Terminated {
        by: Actor::Status,
        message: String::new(),
    }];
    for step in &now.steps {
        let is_open = matches!(step.phase, StepPhase::Running | StepPhase::Suspending)
            || step.phase == StepPhase::Failed
                && !matches!(
                    step.reason,
                    StepReason::FailedAfterRetries | StepReason::Timeout
                );
        if !is_open {
            continue;
        }
        events.push(Event::StepChanged(Box::new(StepChange {
            step: step.name.clone(),
            id: step.id.clone(),
            step_type: step.step_type.clone(),
            group: step.group.clone(),
            phase: StepPhase::Failed,
            reason: StepReason::Terminate,
            message: step.message.clone(),
            order: step.order,
            failures: step.failures,
            executed: false,
        })));
    }
    events
}

/// The state of a workflow whose status says that it was carried out successfully; none of another one.
pub fn delivered(status: &WorkflowStatus) -> Option<State> {
    let is_done = status.finished && status.phase == Some(WorkflowRunPhase::Succeeded);
    if !is_done {
        return None;
    }
    let mut steps = Vec::new();
    for step in &status.steps {
        steps.push(restored(&step.status, None));
        let group = step.status.name.clone();
        steps.extend(
            step.sub_steps
                .iter()
                .map(|sub| restored(sub, Some(group.clone()))),
        );
    }
    for (order, step) in (1..).zip(&mut steps) {
        step.order = order;
    }
    Some(State {
        revision: status.app_revision.clone(),
        started: status.start_time.as_ref().map(|time| time.0),
        ended: status.end_time.as_ref().map(|time| time.0),
        finished: Some(WorkflowRunPhase::Succeeded),
        mode: WorkflowExecuteMode::parse(&status.mode),
        message: status.message.clone(),
        steps,
        ..State::default()
    })
}

fn restored(step: &StepStatus, group: Option<String>) -> StepState {
    StepState {
        name: step.name.clone(),
        id: step.id.clone(),
        step_type: step.step_type.clone(),
        group,
        phase: step.phase(),
        reason: step.reason.clone(),
        message: step.message.clone(),
        first_execute: step.first_execute_time.as_ref().map(|time| time.0),
        last_execute: step.last_execute_time.as_ref().map(|time| time.0),
        ..StepState::default()
    }
}
