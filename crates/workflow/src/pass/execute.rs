//! Carrying out a step: its template, and the actions in it.

use std::collections::BTreeMap;
use std::sync::Arc;

use bellwether_api::workflow::names::{context, step_type};
use bellwether_api::workflow::{StepReason, WorkflowStep, WorkflowStepBase};
use serde_json::{Map, Value, json};

use super::finish::Outcome;
use super::{Done, Pass, Request};
use crate::action::{self, Effect, SUSPEND};
use crate::backoff::add;
use crate::builtin;
use crate::definition::{Definition, StepData};
use crate::duration;
use crate::event::{Actor, Event};
use crate::path::{self, PathError};
use crate::session::{Call, Found, Session};
use crate::state::action_key;
use crate::unify::unify;

/// What comes of an action.
enum Handled {
    /// A result.
    Result(Value),
    /// It has to be carried out outside.
    Request {
        /// Whether it may have been carried out before.
        is_ambiguous: bool,
    },
    /// The template ends here.
    Stop(Outcome),
    /// It cannot be carried out.
    Error(String),
}

impl Pass<'_> {
    /// Begins to carry out a step.
    pub(super) fn execute(&mut self, step: &WorkflowStepBase, group: Option<&WorkflowStep>) {
        self.order_of(&step.name);
        let mut data = self.basic_data(step, group);
        if let Err(problem) = self.fill_inputs(step, &mut data) {
            let outcome = Outcome::failed(StepReason::Input, problem.to_string());
            self.finish(step, None, outcome);
            return;
        }
        let definition = self.definition(&step.step_type);
        let session = match definition {
            Some(definition) => Session::new(definition, data),
            None => Err(format!("definition of {} not found", step.step_type)),
        };
        match session {
            Ok(session) => self.drive(step, session),
            Err(problem) => self.finish(step, None, Outcome::Error(problem)),
        }
    }

    /// Puts the inputs of a step where its parameters have them.
    pub(super) fn fill_inputs(
        &self,
        step: &WorkflowStepBase,
        data: &mut StepData,
    ) -> Result<(), PathError> {
        let keyed = step.inputs.iter();
        for input in keyed.filter(|input| !input.parameter_key.is_empty()) {
            if let Some(value) = self.input(&input.from, data) {
                path::set(&mut data.parameter, &input.parameter_key, value)?;
            }
        }
        Ok(())
    }

    pub(super) fn definition(&self, name: &str) -> Option<Arc<Definition>> {
        match name {
            step_type::SUSPEND => Some(builtin::suspend()),
            step_type::APPLY_COMPONENT | step_type::BUILTIN_APPLY_COMPONENT => {
                Some(builtin::apply_component())
            }
            other => self.spec.definitions.get(other).cloned(),
        }
    }

    /// Carries out actions until one has to be carried out outside, or the step is done for now.
    fn drive(&mut self, step: &WorkflowStepBase, mut session: Session) {
        loop {
            match session.run() {
                Found::Done => {
                    if let Some(object) = session.object() {
                        return self.begin_object(step, session, object);
                    }
                    if let Some(missing) = missing_output(step, &mut session) {
                        return self.finish(step, Some(session), Outcome::Waiting(missing));
                    }
                    let outcome = match session.soft_wait.clone() {
                        Some(message) => Outcome::Waiting(message),
                        None => Outcome::Succeeded,
                    };
                    return self.finish(step, Some(session), outcome);
                }
                Found::Failed(problem) => {
                    return self.finish(step, Some(session), Outcome::Error(problem));
                }
                Found::Wait { message } => {
                    return self.finish(step, Some(session), Outcome::Waiting(message));
                }
                Found::Call(call) => match self.handle(step, &call, &mut session) {
                    Handled::Result(result) => {
                        if let Err(problem) = session.complete(&call, &result) {
                            return self.finish(step, Some(session), Outcome::Error(problem));
                        }
                    }
                    Handled::Stop(outcome) => return self.finish(step, Some(session), outcome),
                    Handled::Error(problem) => {
                        let problem = format!("function call error for {}: {problem}", call.path);
                        return self.finish(step, Some(session), Outcome::Error(problem));
                    }
                    Handled::Request { is_ambiguous } => {
                        let id = self.id_of(&step.name);
                        self.requests.push(Request {
                            memory: self.memory_of(&id),
                            step: step.name.clone(),
                            id,
                            call: self.with_exports(&call),
                            is_ambiguous,
                        });
                        self.sessions
                            .insert(step.name.clone(), (session, Some(*call)));
                        return;
                    }
                },
            }
        }
    }

    /// Hands in what came of an action.
    pub fn complete(
        &mut self,
        request: &Request,
        result: Result<Done, String>,
        now: jiff::Timestamp,
    ) {
        self.now = self.now.max(now);
        if let Ok(done) = &result {
            self.secrets.collect_result(&request.call.name, &done.value);
        }
        let result = result.map_err(|problem| self.secrets.redact(problem));
        let Some((mut session, Some(call))) = self.sessions.remove(&request.step) else {
            return;
        };
        let spec = self.spec;
        let Some((step, _)) = spec.step(&request.step) else {
            return;
        };
        if action::effect(&call.name, &call.params) == Effect::Once {
            self.push(Event::ActionDone {
                id: request.id.clone(),
                path: call.path.clone(),
                result: result.as_ref().ok().map(|done| done.value.clone()),
                error: result.as_ref().err().cloned(),
            });
            self.is_durable = true;
        }
        match result {
            Ok(done) if call.name == action::OBJECT => {
                self.complete_object(step, session, &done.value["value"]);
            }
            Ok(done) => {
                self.record_rollback(&call, &done.value);
                for (key, value) in done.memory {
                    let key = format!("{}.{key}", request.id);
                    if self.state.context.get(&key) != Some(&value) {
                        self.push(Event::ContextSet { key, value });
                    }
                }
                if session.soft_wait.is_none() {
                    session.soft_wait = done.wait;
                }
                match session.complete(&call, &done.value) {
                    Ok(()) => self.drive(step, session),
                    Err(problem) => self.finish(step, Some(session), Outcome::Error(problem)),
                }
            }
            Err(problem) => {
                let problem = format!("function call error for {}: {problem}", call.path);
                self.finish(step, Some(session), Outcome::Error(problem));
            }
        }
    }

    /// Records that an action brought back what was delivered before.
    fn record_rollback(&mut self, call: &Call, result: &Value) {
        let to = result["restored"].as_str().unwrap_or_default();
        if call.name == action::ROLLBACK && self.state.rolled_back_to != to {
            self.push(Event::RolledBack { to: to.to_owned() });
        }
    }

    fn handle(&mut self, step: &WorkflowStepBase, call: &Call, session: &mut Session) -> Handled {
        let text = |name: &str| call.params[name].as_str().unwrap_or_default().to_owned();
        match call.name.as_str() {
            "builtin.wait" => {
                if call.params["continue"] == true {
                    Handled::Result(json!({}))
                } else {
                    Handled::Stop(Outcome::Waiting(text("message")))
                }
            }
            "builtin.message" => {
                let message = text("message");
                if !message.is_empty() {
                    session.message = message;
                }
                Handled::Result(json!({}))
            }
            "builtin.fail" => Handled::Stop(Outcome::failed(StepReason::Action, text("message"))),
            "builtin.break" => Handled::Stop(Outcome::Broken(text("message"))),
            SUSPEND => self.suspend(step, call),
            "builtin.var" => self.var(step, call),
            "builtin.export" => self.export(call),
            action::LOG => self.log(step, call),
            "util.patch-k8s-object" => Handled::Result(patch_object(call)),
            name => match action::pure(name, &call.params) {
                Some(Ok(result)) => Handled::Result(result),
                Some(Err(problem)) => Handled::Error(problem),
                None => self.outside(step, call),
            },
        }
    }

    /// What actions of a step remembered.
    pub(super) fn memory_of(&self, id: &str) -> BTreeMap<String, String> {
        let prefix = format!("{id}.");
        let known = self.state.context.iter();
        let own = known.filter_map(|(key, value)| Some((key.strip_prefix(&prefix)?, value)));
        own.map(|(key, value)| (key.to_owned(), value.clone()))
            .collect()
    }

    /// An action that is carried out outside.
    fn outside(&mut self, step: &WorkflowStepBase, call: &Call) -> Handled {
        if action::effect(&call.name, &call.params) != Effect::Once {
            return Handled::Request {
                is_ambiguous: false,
            };
        }
        let id = self.id_of(&step.name);
        let known = self.state.actions.get(&action_key(&id, &call.path));
        let is_ambiguous = match known {
            Some(known) if known.result.is_some() => {
                return Handled::Result(known.result.clone().unwrap_or_default());
            }
            Some(known) => known.error.is_none(),
            None => false,
        };
        if is_ambiguous {
            self.push(Event::ActionAmbiguous {
                id: id.clone(),
                path: call.path.clone(),
            });
        }
        self.push(Event::ActionIntent {
            id,
            path: call.path.clone(),
            action: call.name.clone(),
            params_hash: action::hash(&call.params),
        });
        self.is_durable = true;
        Handled::Request { is_ambiguous }
    }

    /// Suspends until somebody resumes the step, or its time has come.
    fn suspend(&mut self, step: &WorkflowStepBase, call: &Call) -> Handled {
        let text = |name: &str| call.params[name].as_str().filter(|text| !text.is_empty());
        let span = match text("duration").map(|text| (text, duration::parse(text))) {
            None => None,
            Some((_, Ok(span))) => Some(span),
            Some((text, Err(problem))) => {
                return Handled::Error(format!("failed to parse duration {text}: {problem}"));
            }
        };
        let id = self.id_of(&step.name);
        let key = action_key(&id, &call.path);
        let since = match self.state.actions.get(&key) {
            Some(known) if known.result.is_some() => {
                return Handled::Result(known.result.clone().unwrap_or_default());
            }
            Some(known) => known.since,
            None => self.begin_suspension(&id, call, span),
        };
        if span.is_some_and(|span| add(since, span) <= self.now) {
            self.push(Event::ActionDone {
                id,
                path: call.path.clone(),
                result: Some(json!({})),
                error: None,
            });
            return Handled::Result(json!({}));
        }
        let field = call.path.rsplit('.').next().unwrap_or(&call.path);
        let default = || format!("Suspended by field {field}");
        let message = text("message").map_or_else(default, str::to_owned);
        Handled::Stop(Outcome::Suspended(message))
    }

    fn begin_suspension(
        &mut self,
        id: &str,
        call: &Call,
        span: Option<jiff::SignedDuration>,
    ) -> jiff::Timestamp {
        let text = bellwether_json::time::format_time;
        self.push(Event::ActionIntent {
            id: id.to_owned(),
            path: call.path.clone(),
            action: SUSPEND.to_owned(),
            params_hash: String::new(),
        });
        self.push(Event::ContextSet {
            key: context::suspend_time(id, &call.path),
            value: text(self.now),
        });
        if let Some(span) = span {
            // Not cut to seconds, lest the step goes on early.
            self.push(Event::ContextSet {
                key: context::resume_time(id),
                value: add(self.now, span).to_string(),
            });
        }
        self.now
    }

    /// Reads or sets a value that steps hand on.
    fn var(&mut self, step: &WorkflowStepBase, call: &Call) -> Handled {
        let path = call.params["path"].as_str().unwrap_or_default();
        if call.params["method"] == "Put" {
            let Ok(segments) = path::parse(path) else {
                return Handled::Error(format!("invalid path {path:?}"));
            };
            let Some(path::Segment::Field(name)) = segments.first() else {
                return Handled::Error(format!("invalid path {path:?}"));
            };
            let mut vars = Value::Object(self.state.vars.clone());
            let value = call.params["value"].clone();
            let known = path::get(&vars, &segments).cloned().unwrap_or_default();
            let Some(value) = unify(&known, &value) else {
                return Handled::Error(format!("var {path} has another value already: {known}"));
            };
            if let Err(problem) = path::set(&mut vars, path, value) {
                return Handled::Error(problem.to_string());
            }
            let value = vars[name].clone();
            if self.state.vars.get(name) != Some(&value) {
                self.push(Event::VarSet {
                    name: name.clone(),
                    value,
                });
            }
            return Handled::Result(json!({}));
        }
        let data = self.basic_data(step, None);
        match self.input(path, &data) {
            Some(value) => Handled::Result(json!({"value": value})),
            None => Handled::Error(format!("var {path} not found")),
        }
    }

    /// Exports fields of the action, or its value, as values that steps hand on.
    fn export(&mut self, call: &Call) -> Handled {
        let Value::Object(params) = &call.params else {
            return Handled::Result(json!({}));
        };
        if params.get("type").is_some_and(|kind| kind == "patch") {
            let component = params
                .get("component")
                .and_then(Value::as_str)
                .unwrap_or_default();
            let name = format!("{component}.patch");
            let value = params.get("value").cloned().unwrap_or_default();
            self.set_var(&name, value);
            return Handled::Result(json!({}));
        }
        let values: Map<String, Value> = match params.get("value") {
            Some(Value::Object(values)) => values.clone(),
            Some(_) => return Handled::Error("value of an export has to be a struct".to_owned()),
            None => {
                let is_own = |name: &str| matches!(name, "type" | "component" | "value");
                let others = params.iter().filter(|(name, _)| !is_own(name));
                others
                    .map(|(name, value)| (name.clone(), value.clone()))
                    .collect()
            }
        };
        for (name, value) in values {
            self.set_var(&name, value);
        }
        Handled::Result(json!({}))
    }

    fn set_var(&mut self, name: &str, value: Value) {
        if self.state.vars.get(name) != Some(&value) {
            self.push(Event::VarSet {
                name: name.to_owned(),
                value,
            });
        }
    }

    /// An action with what other steps exported for its component; what is logged, without what Secrets hold.
    fn with_exports(&self, call: &Call) -> Call {
        let mut call = call.clone();
        if call.name == "oam.component-apply" {
            let component = call.params["value"]["name"].as_str().unwrap_or_default();
            if let Some(patch) = self.state.vars.get(&format!("{component}.patch")) {
                call.params["exportedPatch"] = patch.clone();
            }
        }
        if call.name == action::LOG {
            let data = &call.params["data"];
            let text = data
                .as_str()
                .map_or_else(|| data.to_string(), str::to_owned);
            call.params["data"] = json!(self.secrets.redact(text));
        }
        call
    }

    /// Remembers where the log of a step is, and has written what is to be logged. A step may log several times.
    fn log(&mut self, step: &WorkflowStepBase, call: &Call) -> Handled {
        let known = self.state.context.get(context::LOG_CONFIG);
        let known = known.and_then(|text| serde_json::from_str(text).ok());
        let mut all: Map<String, Value> = known.unwrap_or_default();
        let config = all.entry(step.name.clone()).or_insert_with(|| json!({}));
        let has_data = call.params.get("data").is_some();
        if has_data {
            config["data"] = json!(true);
        }
        if let Some(source) = call.params.get("source") {
            config["source"] = source.clone();
        }
        let value = Value::Object(all).to_string();
        if self.state.context.get(context::LOG_CONFIG) != Some(&value) {
            self.push(Event::ContextSet {
                key: context::LOG_CONFIG.to_owned(),
                value,
            });
        }
        if has_data {
            Handled::Request {
                is_ambiguous: false,
            }
        } else {
            Handled::Result(json!({}))
        }
    }

    /// Records that a workflow ends early.
    pub(super) fn terminate(&mut self, message: &str) {
        if !self.state.terminated {
            self.push(Event::Terminated {
                by: Actor::Engine,
                message: message.to_owned(),
            });
        }
    }
}

/// A value that a component is yet to report: a step that applies a component waits for it, others say that there is none.
fn missing_output(step: &WorkflowStepBase, session: &mut Session) -> Option<String> {
    let is_component = [
        step_type::APPLY_COMPONENT,
        step_type::BUILTIN_APPLY_COMPONENT,
    ]
    .contains(&step.step_type.as_str());
    if !is_component || session.soft_wait.is_some() {
        return None;
    }
    let mut outputs = step.outputs.iter();
    let missing = outputs.find(|output| {
        let is_reported = output.value_from.contains("output.status.");
        is_reported && session.output(&output.value_from).is_err()
    })?;
    Some(format!("waiting for output {}", missing.name))
}

/// Merges a patch into an object; what is wrong is part of the result.
fn patch_object(call: &Call) -> Value {
    let patch = call
        .patch
        .clone()
        .unwrap_or_else(|| call.params["patch"].to_string());
    match crate::merge::apply(&call.params["value"], &patch) {
        Ok(result) => json!({"result": result}),
        Err(problem) => json!({"err": problem}),
    }
}
