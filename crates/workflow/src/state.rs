//! What is true of a workflow after everything in its log happened.

use std::collections::BTreeMap;

use bellwether_api::workflow::names::message;
use bellwether_api::workflow::{
    StepPhase, StepReason, StepResource, WorkflowExecuteMode, WorkflowMode, WorkflowRunPhase,
};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::event::{Entry, Event, StepChange};
use crate::spec::is_compensation;

/// What is true of a workflow: the projection of its log.
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is a field of the status, which others may set"
)]
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct State {
    /// The number of the last entry.
    pub seq: u64,
    /// How often it was begun.
    pub round: u64,
    /// When it began.
    pub started: Option<Timestamp>,
    /// When it was done.
    pub ended: Option<Timestamp>,
    /// How it ended.
    pub finished: Option<WorkflowRunPhase>,
    /// How steps are ordered.
    pub mode: WorkflowExecuteMode,
    /// What is carried out: the revision of an Application.
    pub revision: String,
    /// The version of the object whose status asked for the last restart.
    pub restarted_at: String,
    /// Whether it is suspended.
    pub suspend: bool,
    /// Whether it is suspended by somebody, not by a step.
    pub suspended_by_user: bool,
    /// Whether it shall end.
    pub terminated: bool,
    /// Whether somebody ended it.
    pub ended_by_user: bool,
    /// Whether a step ended it.
    pub broken: bool,
    /// The revision that a step went back to; empty if none did.
    pub rolled_back_to: String,
    /// Whether somebody goes back to an earlier version.
    pub rolling_back: bool,
    /// What a person should know.
    pub message: String,
    /// Steps in the order in which they were met first.
    pub steps: Vec<StepState>,
    /// Values that steps hand on.
    pub vars: Map<String, Value>,
    /// Further keys of the context.
    pub context: BTreeMap<String, String>,
    /// Outputs of steps that conditions speak of.
    pub outputs: BTreeMap<String, Value>,
    /// Effects of steps that are not finished, by identity of the step and path.
    pub actions: BTreeMap<String, ActionState>,
}

/// What is true of a step.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct StepState {
    /// Its name.
    pub name: String,
    /// Its identity.
    pub id: String,
    /// Its type.
    pub step_type: String,
    /// The group that it belongs to.
    pub group: Option<String>,
    /// In which phase it is.
    pub phase: StepPhase,
    /// Why.
    pub reason: StepReason,
    /// What a person should know.
    pub message: String,
    /// Its place among the steps.
    pub order: u64,
    /// How often it failed.
    pub failures: u32,
    /// When it was carried out first.
    pub first_execute: Option<Timestamp>,
    /// When it was carried out last, as far as that changed anything.
    pub last_execute: Option<Timestamp>,
    /// Since when it is in this phase with this message.
    pub since: Option<Timestamp>,
    /// The object that it consists of.
    pub resource: Option<StepResource>,
}

impl StepState {
    /// Whether nothing will happen to it any more.
    pub fn is_finished(&self) -> bool {
        self.phase.is_finished(&self.reason)
    }

    /// Whether an action suspended it.
    pub fn is_suspended(&self) -> bool {
        self.phase == StepPhase::Suspending && self.reason == StepReason::Suspend
    }
}

/// What is known of an effect.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ActionState {
    /// Which action.
    pub action: String,
    /// When it was intended.
    pub since: Timestamp,
    /// What came of it.
    pub result: Option<Value>,
    /// Why it failed last.
    pub error: Option<String>,
}

/// The key of an effect in [`State::actions`].
pub fn action_key(id: &str, path: &str) -> String {
    format!("{id}/{path}")
}

impl State {
    /// What is true after these entries.
    pub fn of<'a>(entries: impl IntoIterator<Item = &'a Entry>) -> Self {
        let mut state = Self::default();
        for entry in entries {
            state.apply(entry);
        }
        state
    }

    /// A step by name.
    pub fn step(&self, name: &str) -> Option<&StepState> {
        self.steps.iter().find(|step| step.name == name)
    }

    fn step_mut(&mut self, name: &str) -> Option<&mut StepState> {
        self.steps.iter_mut().find(|step| step.name == name)
    }

    /// How steps are ordered.
    pub fn step_mode(&self) -> WorkflowMode {
        self.mode.steps.clone().unwrap_or(WorkflowMode::StepByStep)
    }

    /// Takes in what happened next.
    pub fn apply(&mut self, entry: &Entry) {
        self.seq = entry.seq;
        match &entry.event {
            Event::RunStarted { mode, revision } => {
                self.started = Some(entry.time);
                self.mode = mode.clone();
                self.revision.clone_from(revision);
            }
            Event::StepChanged(change) => self.change_step(change, entry.time),
            Event::ActionIntent {
                id, path, action, ..
            } => {
                let state = ActionState {
                    action: action.clone(),
                    since: entry.time,
                    result: None,
                    error: None,
                };
                self.actions.insert(action_key(id, path), state);
            }
            Event::ActionDone {
                id,
                path,
                result,
                error,
            } => {
                let action = self.actions.entry(action_key(id, path));
                let action = action.or_insert_with(|| ActionState {
                    action: String::new(),
                    since: entry.time,
                    result: None,
                    error: None,
                });
                action.result.clone_from(result);
                action.error.clone_from(error);
            }
            Event::ActionAmbiguous { .. } => {}
            Event::VarSet { name, value } => {
                self.vars.insert(name.clone(), value.clone());
            }
            Event::ContextSet { key, value } => {
                self.context.insert(key.clone(), value.clone());
            }
            Event::OutputRecorded { step, value } => {
                self.outputs.insert(step.clone(), value.clone());
            }
            Event::ResourceRecorded { step, resource } => {
                if let Some(step) = self.step_mut(step) {
                    step.resource = Some(resource.clone());
                }
            }
            Event::MessageSet { message } => self.message.clone_from(message),
            Event::RolledBack { to } => self.rolled_back_to.clone_from(to),
            Event::RollbackRequested { .. } => {
                self.rolling_back = true;
                // What makes good for its steps is carried out now.
                self.finished = None;
                self.ended = None;
            }
            Event::RunFinished { phase } => {
                self.finished = Some(phase.clone());
                self.ended = Some(entry.time);
                self.suspend = false;
            }
            Event::Snapshot { state } => {
                *self = (**state).clone();
                self.seq = entry.seq;
            }
            control => self.control(control, entry.time),
        }
    }

    fn control(&mut self, event: &Event, time: Timestamp) {
        match event {
            Event::Suspended { by, message } => {
                self.suspend = true;
                if !message.is_empty() {
                    self.message.clone_from(message);
                }
                self.suspended_by_user = *by != crate::event::Actor::Engine;
            }
            Event::Resumed { step, .. } => self.resume(step.as_deref(), time),
            Event::Terminated { by, message } => {
                self.terminated = true;
                self.ended_by_user |= *by != crate::event::Actor::Engine;
                self.suspend = false;
                self.suspended_by_user = false;
                if !message.is_empty() {
                    self.message.clone_from(message);
                }
            }
            Event::Broken { message } => {
                self.terminated = true;
                self.broken = true;
                self.message.clone_from(message);
            }
            Event::Restarted { steps, version, .. } if steps.is_empty() => {
                let known = std::mem::take(&mut self.restarted_at);
                *self = Self {
                    seq: self.seq,
                    round: self.round.saturating_add(1),
                    restarted_at: if version.is_empty() {
                        known
                    } else {
                        version.clone()
                    },
                    ..Self::default()
                };
            }
            Event::Restarted { steps, vars, .. } => self.restart(steps, vars),
            _ => {}
        }
    }

    fn change_step(&mut self, change: &StepChange, time: Timestamp) {
        if self.step(&change.step).is_none() {
            self.steps.push(StepState {
                name: change.step.clone(),
                group: change.group.clone(),
                order: change.order,
                ..StepState::default()
            });
            self.steps.sort_by_key(|step| step.order);
        }
        let Some(step) = self.step_mut(&change.step) else {
            return;
        };
        let is_same = step.phase == change.phase
            && step.reason == change.reason
            && step.message == change.message
            && step.id == change.id;
        if !is_same || step.since.is_none() {
            step.since = Some(time);
        }
        step.id.clone_from(&change.id);
        step.step_type.clone_from(&change.step_type);
        step.phase = change.phase.clone();
        step.reason = change.reason.clone();
        step.message.clone_from(&change.message);
        step.failures = change.failures;
        if change.executed {
            step.first_execute.get_or_insert(time);
            step.last_execute = Some(time);
        }
        if step.is_finished() {
            // Nobody asks for its effects any more.
            let prefix = action_key(&step.id.clone(), "");
            self.actions.retain(|key, _| !key.starts_with(&prefix));
        }
    }

    /// Lets suspended steps go on: what suspended them counts as done.
    fn resume(&mut self, only: Option<&str>, time: Timestamp) {
        let is_after_failure = self.message == message::SUSPENDED_BY_FAILURE;
        self.suspend = false;
        self.suspended_by_user = false;
        self.message.clear();
        for step in &mut self.steps {
            if is_after_failure && step.reason == StepReason::FailedAfterRetries {
                step.reason = StepReason::Execute;
                step.failures = 0;
            }
        }
        let is_meant = |step: &StepState| {
            only.is_none_or(|only| step.name == only || step.group.as_deref() == Some(only))
        };
        for step in &mut self.steps {
            if step.phase != StepPhase::Suspending || !is_meant(step) {
                continue;
            }
            let prefix = action_key(&step.id, "");
            for (key, action) in &mut self.actions {
                if key.starts_with(&prefix) && action.action == crate::action::SUSPEND {
                    action
                        .result
                        .get_or_insert_with(|| Value::Object(Map::new()));
                }
            }
            // A step that was suspended with its group before its turn came is yet to be decided about.
            step.phase = match step.first_execute {
                Some(_) => StepPhase::Running,
                None => StepPhase::Pending,
            };
            step.since = Some(time);
        }
    }

    fn restart(&mut self, steps: &[String], vars: &[String]) {
        self.round = self.round.saturating_add(1);
        self.terminated = false;
        self.ended_by_user = false;
        self.broken = false;
        self.suspend = false;
        self.suspended_by_user = false;
        self.finished = None;
        self.ended = None;
        self.message.clear();
        self.rolled_back_to.clear();
        self.rolling_back = false;
        for name in vars {
            self.vars.remove(name);
        }
        self.steps
            .retain(|step| !steps.contains(&step.name) && !is_compensation(&step.name));
        for name in steps {
            self.outputs.remove(name);
        }
    }
}
