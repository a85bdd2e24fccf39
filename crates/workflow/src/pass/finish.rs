//! What becomes of a step that was carried out.

use std::fmt::Write as _;

use bellwether_api::workflow::names::message;
use bellwether_api::workflow::{
    StepPhase, StepReason, StepResource, WorkflowStep, WorkflowStepBase,
};
use serde_json::Value;

use super::Pass;
use crate::event::Event;
use crate::secret;
use crate::session::{Found, Session};
use crate::state::action_key;
use crate::unify::unify;

/// Outputs that conditions speak of are kept up to this size, as JSON.
const LARGEST_OUTPUT: usize = 64 * 1024;
/// Messages are cut to this length.
const LONGEST_MESSAGE: usize = 4096;

/// How the execution of a step ended.
#[derive(Debug)]
pub(super) enum Outcome {
    /// It is done.
    Succeeded,
    /// It waits.
    Waiting(String),
    /// It is suspended.
    Suspended(String),
    /// It ended the workflow.
    Broken(String),
    /// It failed, and is not tried again.
    Failed {
        /// Why.
        reason: StepReason,
        /// What a person should know.
        message: String,
    },
    /// It failed, and is tried again.
    Error(String),
}

impl Outcome {
    pub(super) fn failed(reason: StepReason, message: String) -> Self {
        Self::Failed { reason, message }
    }
}

impl Pass<'_> {
    /// Records how the execution of a step ended.
    pub(super) fn finish(
        &mut self,
        step: &WorkflowStepBase,
        mut session: Option<Session>,
        outcome: Outcome,
    ) {
        self.attempted.insert(step.name.clone());
        let said = session.as_ref().map(|session| session.message.clone());
        let said = said.unwrap_or_default();
        let or_said = |message: String| {
            if message.is_empty() {
                said.clone()
            } else {
                message
            }
        };
        if let (Some(debug), Some(session)) = (&mut self.debug, &mut session) {
            let id = self.state.step(&step.name).map(|step| step.id.clone());
            let id = id.unwrap_or_else(|| {
                crate::identity::of(&self.spec.uid, self.state.round, &step.name)
            });
            debug.insert(id, self.secrets.redact(session.source()));
        }
        let resource = session.as_mut().and_then(Session::resource_ref);
        match outcome {
            Outcome::Waiting(message) => {
                self.change(
                    step,
                    StepPhase::Running,
                    StepReason::Wait,
                    or_said(message),
                    true,
                );
            }
            Outcome::Suspended(message) => {
                self.change(
                    step,
                    StepPhase::Suspending,
                    StepReason::Suspend,
                    message,
                    true,
                );
            }
            Outcome::Error(problem) => self.fail(step, session, problem),
            Outcome::Succeeded => {
                self.close(step, session, StepPhase::Succeeded, StepReason::None, said);
            }
            Outcome::Broken(message) => {
                let message = self.secrets.redact(message);
                self.push(Event::Broken {
                    message: message.clone(),
                });
                let message = or_said(message);
                self.close(
                    step,
                    session,
                    StepPhase::Succeeded,
                    StepReason::Terminate,
                    message,
                );
            }
            Outcome::Failed { reason, message } => {
                self.terminate("");
                self.close(step, session, StepPhase::Failed, reason, or_said(message));
            }
        }
        self.record_resource(step, resource);
    }

    /// Records the object that does the work of a step.
    fn record_resource(&mut self, step: &WorkflowStepBase, resource: Option<StepResource>) {
        let known = self.state.step(&step.name);
        let known = known.and_then(|known| known.resource.as_ref());
        if let Some(resource) = resource.filter(|resource| Some(resource) != known) {
            self.push(Event::ResourceRecorded {
                step: step.name.clone(),
                resource,
            });
        }
    }

    /// Records a failure: the step is tried again until it has failed too often.
    fn fail(&mut self, step: &WorkflowStepBase, session: Option<Session>, problem: String) {
        let known = self.state.step(&step.name);
        let failures = known.map_or(0, |known| known.failures).saturating_add(1);
        let own = step.retry.as_ref().and_then(|retry| retry.times);
        let allowed = own.unwrap_or(self.settings.max_retries);
        if failures <= allowed {
            let problem = cut(problem);
            self.record_change(
                step,
                StepPhase::Failed,
                StepReason::Execute,
                problem,
                true,
                failures,
            );
            return;
        }
        if !self.settings.suspend_on_failure {
            self.terminate(message::TERMINATED_BY_FAILURE);
        }
        self.close(
            step,
            session,
            StepPhase::Failed,
            StepReason::FailedAfterRetries,
            problem,
        );
    }

    /// Records that a step is finished, with its outputs.
    fn close(
        &mut self,
        step: &WorkflowStepBase,
        session: Option<Session>,
        phase: StepPhase,
        reason: StepReason,
        message: String,
    ) {
        let mut message = message;
        if let Some(mut session) = session {
            if let Err(problem) = self.set_outputs(step, &mut session, &mut message) {
                self.terminate("");
                self.record_finished(step, StepPhase::Failed, StepReason::Output, problem);
                return;
            }
            self.keep_output(step, &mut session);
        } else {
            for output in &step.outputs {
                let _ = self.set_output(&output.name, Value::Null);
            }
        }
        self.record_finished(step, phase, reason, message);
    }

    fn record_finished(
        &mut self,
        step: &WorkflowStepBase,
        phase: StepPhase,
        reason: StepReason,
        message: String,
    ) {
        let known = self.state.step(&step.name);
        let failures = known.map_or(0, |known| known.failures);
        self.record_change(step, phase, reason, cut(message), true, failures);
    }

    fn set_outputs(
        &mut self,
        step: &WorkflowStepBase,
        session: &mut Session,
        message: &mut String,
    ) -> Result<(), String> {
        for output in &step.outputs {
            let value = session
                .output(&output.value_from)
                .unwrap_or_else(|problem| {
                    let from = &output.value_from;
                    // Writing to a String cannot fail.
                    let _ = writeln!(message, "failed to get output from {from}: {problem}");
                    Value::Null
                });
            self.set_output(&output.name, value)?;
        }
        Ok(())
    }

    /// Hands a value on. Steps that give values to one name have to agree.
    fn set_output(&mut self, name: &str, value: Value) -> Result<(), String> {
        let known = self.state.vars.get(name);
        let value = match known {
            Some(known) => unify(known, &value)
                .ok_or_else(|| format!("output {name:?} has another value already: {known}"))?,
            None => value,
        };
        if known != Some(&value) {
            self.push(Event::VarSet {
                name: name.to_owned(),
                value,
            });
        }
        Ok(())
    }

    /// Keeps the output of a step if a condition of another one speaks of it.
    fn keep_output(&mut self, step: &WorkflowStepBase, session: &mut Session) {
        let name = &step.name;
        let is_asked_for = self.spec.all().any(|(other, _)| {
            other.condition.contains(&format!("{name}.output"))
                || other.condition.contains("steps[")
        });
        if !is_asked_for {
            return;
        }
        let Some(value) = session.outputs().map(secret::without_data) else {
            return;
        };
        if value.to_string().len() <= LARGEST_OUTPUT {
            self.push(Event::OutputRecorded {
                step: name.clone(),
                value,
            });
        }
    }

    /// Records that a step is not carried out.
    pub(super) fn skip(&mut self, step: &WorkflowStepBase, message: String) {
        if self.is_finished(&step.name) {
            return;
        }
        for output in &step.outputs {
            let _ = self.set_output(&output.name, Value::Null);
        }
        self.record_finished(step, StepPhase::Skipped, StepReason::Skip, message);
    }

    /// Records that the time of a step is over. Outputs are those of what was carried out.
    pub(super) fn time_out(&mut self, step: &WorkflowStepBase) {
        let known = self.state.step(&step.name);
        let is_failing = known.is_some_and(|known| known.phase == StepPhase::Failed);
        let message = known
            .filter(|_| is_failing)
            .map(|known| known.message.clone());
        let spec = self.spec;
        let group = spec.step(&step.name).and_then(|(_, group)| group);
        let mut data = self.basic_data(step, group);
        // An input that does not fit is no reason: the step has failed already.
        let _ = self.fill_inputs(step, &mut data);
        let definition = self.definition(&step.step_type);
        let session = definition.and_then(|definition| Session::new(definition, data).ok());
        let session = session.map(|session| self.replayed(step, session));
        self.terminate("");
        let message = message.unwrap_or_default();
        self.close(
            step,
            session,
            StepPhase::Failed,
            StepReason::Timeout,
            message,
        );
        self.attempted.insert(step.name.clone());
    }

    /// Fills in results that are recorded, and carries out nothing.
    fn replayed(&self, step: &WorkflowStepBase, mut session: Session) -> Session {
        let id = self.id_of(&step.name);
        while let Found::Call(call) = session.run() {
            let known = self.state.actions.get(&action_key(&id, &call.path));
            let Some(result) = known.and_then(|known| known.result.clone()) else {
                break;
            };
            if session.complete(&call, &result).is_err() {
                break;
            }
        }
        session
    }

    /// Hands on the outputs of a group; what cannot be found is said in its message.
    pub(super) fn group_outputs(&mut self, group: &WorkflowStep) -> String {
        let mut message = String::new();
        if group.base.outputs.is_empty() || self.is_finished(&group.base.name) {
            return message;
        }
        let data = self.basic_data(&group.base, None);
        let definition = std::sync::Arc::new(crate::definition::Definition::new(""));
        if let Ok(mut session) = Session::new(definition, data)
            && let Err(problem) = self.set_outputs(&group.base, &mut session, &mut message)
        {
            message.push_str(&problem);
        }
        message
    }
}

/// A message that is not too long.
fn cut(message: String) -> String {
    if message.len() <= LONGEST_MESSAGE {
        return message;
    }
    let end = (0..=LONGEST_MESSAGE)
        .rev()
        .find(|end| message.is_char_boundary(*end));
    message[..end.unwrap_or(0)].to_owned()
}
