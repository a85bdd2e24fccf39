//! One pass over a workflow: everything that can happen now.
//!
//! [`Pass::decide`] says what has to be recorded and which actions are to be carried out; [`Pass::complete`]
//! hands in what came of one. When nothing is left to do the plan says when to look again. A pass does no
//! I/O and reads no clock.
//!
//! Three promises hold:
//!
//! * An action that must not be repeated is in the log before it is carried out, and its result
//!   after. What has a result is never carried out again.
//! * An action that is in the log without a result may have been carried out. It is named in the log
//!   and in the message of its step, and carried out again with the same key, by which the other side can
//!   tell a repetition.
//! * What is in the log determines the state: a pass that ends anywhere is continued by the next one.

mod advance;
mod compensate;
mod execute;
mod finish;
mod object;

use std::collections::{BTreeMap, BTreeSet};

use bellwether_api::workflow::names::{context, message};
use bellwether_api::workflow::{StepPhase, StepReason, WorkflowRunPhase, WorkflowStepBase};
use jiff::{SignedDuration, Timestamp};
use serde_json::Value;

use crate::backoff::{self, add};
use crate::duration;
use crate::event::{Actor, Entry, Event};
use crate::secret::Secrets;
use crate::session::{Call, Session};
use crate::spec::{Spec, is_compensation};
use crate::state::{State, StepState};

/// What a hub sets for all workflows.
#[derive(Debug, Clone)]
pub struct Settings {
    /// The longest wait before a waiting step is looked at again.
    pub max_wait_backoff: SignedDuration,
    /// The longest wait before a failed step is tried again.
    pub max_failed_backoff: SignedDuration,
    /// How often a failed step is tried again.
    pub max_retries: u32,
    /// Whether a workflow suspends when a step has failed for good, instead of ending.
    pub suspend_on_failure: bool,
    /// How many actions of one workflow are carried out at once.
    pub concurrency: usize,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            max_wait_backoff: SignedDuration::from_secs(60),
            max_failed_backoff: SignedDuration::from_secs(300),
            max_retries: 10,
            suspend_on_failure: false,
            concurrency: 16,
        }
    }
}

/// Why a pass is made.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Woken {
    /// Something about the workflow changed: every step is looked at.
    #[default]
    All,
    /// Time passed.
    Timer,
    /// Objects changed that these steps wait for.
    Steps(BTreeSet<String>),
}

/// An action to be carried out.
#[derive(Debug, Clone, PartialEq)]
pub struct Request {
    /// The step.
    pub step: String,
    /// Its identity. With the path it identifies the action.
    pub id: String,
    /// What is to be done.
    pub call: Call,
    /// Whether it may have been carried out before.
    pub is_ambiguous: bool,
    /// What actions of the step remembered before, by key.
    pub memory: BTreeMap<String, String>,
}

/// What came of an action.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Done {
    /// Its result.
    pub value: Value,
    /// Why the step has to wait, although its other actions can be carried out.
    pub wait: Option<String>,
    /// What is to be remembered until the step is carried out again, by key.
    pub memory: BTreeMap<String, String>,
}

/// What is to be done next.
#[derive(Debug, Default, PartialEq)]
pub struct Plan {
    /// What happened; the log has to have it before any of the actions is carried out.
    pub append: Vec<Entry>,
    /// Actions; they are independent of each other.
    pub actions: Vec<Request>,
    /// Whether what is to be appended has to be durable before actions are carried out.
    pub is_durable: bool,
    /// That nothing is left to do now, and when to look again.
    pub settled: Option<Settled>,
}

/// Nothing is left to do now.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Settled {
    /// When to look again if nothing happens before.
    pub wake_at: Option<Timestamp>,
}

/// One pass over a workflow.
#[derive(Debug)]
pub struct Pass<'a> {
    spec: &'a Spec,
    settings: &'a Settings,
    state: State,
    now: Timestamp,
    woken: Woken,
    appended: Vec<Entry>,
    sessions: BTreeMap<String, (Session, Option<Call>)>,
    /// When the pass before this one was, if this process made one.
    looked_at: Option<Timestamp>,
    /// Places of steps that are met in this pass.
    orders: BTreeMap<String, u64>,
    /// Steps that were looked at in this pass.
    attempted: BTreeSet<String>,
    requests: Vec<Request>,
    is_durable: bool,
    /// Evaluated templates, if somebody debugs the workflow.
    debug: Option<BTreeMap<String, String>>,
    /// What Secrets hold that actions of this pass read.
    secrets: Secrets,
}

impl<'a> Pass<'a> {
    /// Begins a pass.
    pub fn new(spec: &'a Spec, settings: &'a Settings, state: State, woken: Woken) -> Self {
        Self {
            spec,
            settings,
            state,
            now: Timestamp::UNIX_EPOCH,
            woken,
            appended: Vec::new(),
            sessions: BTreeMap::new(),
            looked_at: None,
            orders: BTreeMap::new(),
            attempted: BTreeSet::new(),
            requests: Vec::new(),
            is_durable: false,
            debug: None,
            secrets: Secrets::default(),
        }
    }

    /// Says when the pass before this one was: waiting steps are looked at when their time came since.
    #[must_use]
    pub fn after(mut self, last_pass: Option<Timestamp>) -> Self {
        self.looked_at = last_pass;
        self
    }

    /// Keeps evaluated templates.
    #[must_use]
    pub fn debug(mut self) -> Self {
        self.debug = Some(BTreeMap::new());
        self
    }

    /// Evaluated templates of the steps that were carried out in this pass, by identity.
    pub fn debugged(&mut self) -> BTreeMap<String, String> {
        self.debug.take().unwrap_or_default()
    }

    /// What is true now.
    pub fn state(&self) -> &State {
        &self.state
    }

    /// Records an event from outside, such as that somebody suspended the workflow.
    pub fn record(&mut self, event: Event, now: Timestamp) {
        self.now = self.now.max(now);
        self.push(event);
    }

    /// What was recorded since the last plan. Used instead of a plan when nothing more is to be carried out.
    pub fn recorded(&mut self) -> Vec<Entry> {
        std::mem::take(&mut self.appended)
    }

    fn push(&mut self, event: Event) {
        let entry = Entry {
            seq: self.state.seq + 1,
            time: self.now,
            event,
        };
        self.state.apply(&entry);
        self.appended.push(entry);
    }

    /// Says what is to be done next.
    pub fn decide(&mut self, now: Timestamp) -> Plan {
        self.now = self.now.max(now);
        let mut settled = None;
        if self.state.started.is_some() && self.state.revision != self.spec.revision {
            self.push(Event::Restarted {
                by: Actor::Owner,
                steps: Vec::new(),
                vars: Vec::new(),
                version: String::new(),
            });
        }
        if self.state.finished.is_some() {
            settled = Some(Settled::default());
        } else {
            if self.state.started.is_none() {
                let mode = self.spec.mode.clone();
                let revision = self.spec.revision.clone();
                self.push(Event::RunStarted { mode, revision });
            }
            if !self.is_on_hold() {
                self.advance_all();
                self.compensate();
            }
            if self.requests.is_empty() && self.sessions.is_empty() {
                settled = Some(self.settle());
            }
        }
        Plan {
            append: std::mem::take(&mut self.appended),
            actions: std::mem::take(&mut self.requests),
            is_durable: std::mem::take(&mut self.is_durable),
            settled,
        }
    }

    /// Whether somebody suspended the workflow, so that nothing is carried out.
    fn is_on_hold(&self) -> bool {
        self.state.suspended_by_user && !self.state.steps.iter().any(StepState::is_suspended)
    }

    fn is_finished(&self, name: &str) -> bool {
        let step = self.state.step(name);
        step.is_some_and(|step| {
            if self.settings.suspend_on_failure && !self.state.ended_by_user {
                matches!(step.phase, StepPhase::Succeeded | StepPhase::Skipped)
            } else {
                step.is_finished()
            }
        })
    }

    /// Concludes a pass in which nothing is left to do.
    fn settle(&mut self) -> Settled {
        let all: Vec<String> = self
            .spec
            .steps
            .iter()
            .map(|step| step.base.name.clone())
            .collect();
        if all.iter().all(|name| self.is_finished(name)) && self.is_compensated() {
            let phase = self.final_phase();
            self.push(Event::RunFinished { phase });
            return Settled::default();
        }
        if self.skip_what_cannot_come() {
            return Settled {
                wake_at: Some(self.now),
            };
        }
        self.settle_suspension();
        Settled {
            wake_at: self.wake_at(),
        }
    }

    fn final_phase(&self) -> WorkflowRunPhase {
        if !self.state.terminated {
            return WorkflowRunPhase::Succeeded;
        }
        if self.state.broken {
            return WorkflowRunPhase::Terminated;
        }
        let is_top = |step: &&StepState| step.group.is_none() && !is_compensation(&step.name);
        let failed = self.state.steps.iter().filter(is_top);
        let mut failed = failed
            .filter(|step| step.phase == StepPhase::Failed)
            .peekable();
        let has_failed = failed.peek().is_some();
        let is_ended = failed.all(|step| step.reason == StepReason::Terminate);
        if (has_failed && is_ended) || (!has_failed && self.state.ended_by_user) {
            WorkflowRunPhase::Terminated
        } else {
            WorkflowRunPhase::Failed
        }
    }

    /// In a workflow that ends, steps whose turn cannot come any more are skipped. Tells whether there were any.
    fn skip_what_cannot_come(&mut self) -> bool {
        let is_open = |step: &&StepState| !step.is_finished() && step.phase != StepPhase::Pending;
        let is_leaf = |step: &&StepState| {
            let group = self
                .spec
                .steps
                .iter()
                .find(|top| top.base.name == step.name);
            group.is_none_or(|group| group.sub_steps.is_empty())
        };
        let mut open = self.state.steps.iter().filter(is_open);
        if !self.state.terminated || open.any(|step| is_leaf(&step)) {
            return false;
        }
        let pending: Vec<WorkflowStepBase> = self
            .spec
            .all()
            .map(|(step, _)| step)
            .filter(|step| {
                let known = self.state.step(&step.name);
                known.is_some_and(|known| known.phase == StepPhase::Pending)
            })
            .cloned()
            .collect();
        for step in &pending {
            self.skip(step, String::new());
        }
        !pending.is_empty()
    }

    fn settle_suspension(&mut self) {
        let is_suspended = self.state.steps.iter().any(StepState::is_suspended);
        if is_suspended && !self.state.suspend {
            self.push(Event::Suspended {
                by: Actor::Engine,
                message: String::new(),
            });
        } else if self.state.suspend && !is_suspended && !self.state.suspended_by_user {
            // Nobody is suspended any more; an empty name resumes no step.
            self.push(Event::Resumed {
                by: Actor::Engine,
                step: Some(String::new()),
            });
        }
        let may_suspend = self.settings.suspend_on_failure && !self.state.ended_by_user;
        if may_suspend && !self.state.suspend && self.is_stuck() {
            self.push(Event::Suspended {
                by: Actor::Status,
                message: message::SUSPENDED_BY_FAILURE.to_owned(),
            });
        }
    }

    /// Whether a step failed for good and nothing else goes on.
    fn is_stuck(&self) -> bool {
        let mut steps = self.state.steps.iter();
        let has_failed = steps.any(|step| step.phase == StepPhase::Failed && step.is_finished());
        let goes_on = |step: &StepState| {
            step.phase == StepPhase::Running && step.step_type != "step-group" || is_retried(step)
        };
        has_failed && !self.state.steps.iter().any(goes_on)
    }

    /// When to look again if nothing happens before.
    fn wake_at(&self) -> Option<Timestamp> {
        if self.is_on_hold() {
            return None;
        }
        let open = self.state.steps.iter().filter(|step| !step.is_finished());
        let times = open.flat_map(|step| [self.due_at(step), self.timeout_at(step)]);
        times.flatten().min()
    }

    /// When a step is looked at again if nothing happens before.
    fn due_at(&self, step: &StepState) -> Option<Timestamp> {
        let spec = self.spec.step(&step.name);
        if spec.is_some_and(|(_, group)| group.is_none()) && step.step_type == "step-group" {
            return None;
        }
        match step.phase {
            StepPhase::Failed if !step.is_finished() => {
                let last = step.last_execute.unwrap_or(self.now);
                let interval = spec.and_then(|(spec, _)| spec.retry.as_ref()?.interval.as_deref());
                let interval = interval.and_then(|text| duration::parse(text).ok());
                let delay =
                    || backoff::delay(step.failures.max(1), self.settings.max_failed_backoff);
                Some(add(last, interval.unwrap_or_else(delay)))
            }
            StepPhase::Running => {
                let since = step.since.unwrap_or(self.now);
                Some(backoff::next_after(
                    since,
                    self.now,
                    self.settings.max_wait_backoff,
                ))
            }
            StepPhase::Suspending => {
                let time = self.state.context.get(&context::resume_time(&step.id))?;
                time.parse().ok()
            }
            _ => None,
        }
    }

    /// When the time of a step is over.
    fn timeout_at(&self, step: &StepState) -> Option<Timestamp> {
        let (spec, _) = self.spec.step(&step.name)?;
        let timeout = duration::parse(&spec.timeout).ok()?;
        Some(add(step.first_execute?, timeout))
    }
}

/// True if a step failed and is tried again.
fn is_retried(step: &StepState) -> bool {
    step.phase == StepPhase::Failed && !step.is_finished()
}
