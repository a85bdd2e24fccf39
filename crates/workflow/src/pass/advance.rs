//! Which steps have their turn.

use bellwether_api::workflow::names::step_type;
use bellwether_api::workflow::{
    StepPhase, StepReason, WorkflowMode, WorkflowStep, WorkflowStepBase,
};
use serde_json::{Map, Value, json};

use super::{Pass, Woken};
use crate::backoff;
use crate::condition::{self, ALWAYS};
use crate::definition::StepData;
use crate::event::{Event, StepChange};
use crate::identity;
use crate::path::{self, Segment};
use crate::state::StepState;

/// The field of the context with the addresses that resume steps.
const RESUME: &str = "resume";

/// What is decided about a step before it is carried out.
enum Turn {
    /// It has to wait for others.
    Pending(String),
    /// It is not carried out.
    Skip(String),
    /// It is carried out.
    Execute,
}

impl Pass<'_> {
    pub(super) fn advance_all(&mut self) {
        let spec = self.spec;
        let steps: Vec<&WorkflowStep> = spec.steps.iter().collect();
        let mode = self.state.step_mode();
        if mode == WorkflowMode::StepByStep {
            for step in steps {
                self.advance_top(step, true);
                if !self.is_finished(&step.base.name) || self.is_suspended_now() {
                    return;
                }
            }
            return;
        }
        let mut round = 0;
        loop {
            let before = self.progress();
            let records_pending = round > 0 && self.has_begun(steps.iter().map(|step| &step.base));
            for step in &steps {
                self.advance_top(step, records_pending);
            }
            round += 1;
            if self.progress() == before && round > 1 {
                return;
            }
        }
    }

    /// Whether any of these steps is carried out in this pass: until then, those that wait for others are not shown.
    fn has_begun<'s>(&self, steps: impl IntoIterator<Item = &'s WorkflowStepBase>) -> bool {
        let mut steps = steps.into_iter();
        steps.any(|step| {
            self.attempted.contains(&step.name)
                || self.sessions.contains_key(&step.name)
                || self.state.step(&step.name).is_some()
        })
    }

    fn is_suspended_now(&self) -> bool {
        self.state.suspend && self.state.suspended_by_user
    }

    /// A number that grows when something happens.
    fn progress(&self) -> (u64, usize) {
        (self.state.seq, self.sessions.len())
    }

    fn advance_top(&mut self, step: &WorkflowStep, records_pending: bool) {
        if step.base.step_type == step_type::STEP_GROUP {
            self.advance_group(step, records_pending);
        } else {
            self.advance_step(&step.base, None, records_pending);
        }
    }

    /// Carries out a step if it is its turn.
    fn advance_step(
        &mut self,
        step: &WorkflowStepBase,
        group: Option<&WorkflowStep>,
        records_pending: bool,
    ) {
        let is_busy = self.sessions.contains_key(&step.name) || self.attempted.contains(&step.name);
        if is_busy || self.is_finished(&step.name) || self.is_full() {
            return;
        }
        if !self.take_turn(step, group, records_pending) {
            return;
        }
        if self.is_over_time(step) {
            self.time_out(step);
        } else if self.is_due(&step.name) {
            self.execute(step, group);
        } else {
            self.attempted.insert(step.name.clone());
        }
    }

    fn is_full(&self) -> bool {
        self.sessions.len() >= self.settings.concurrency
    }

    /// Whether a step can be carried out; otherwise says why not.
    fn take_turn(
        &mut self,
        step: &WorkflowStepBase,
        group: Option<&WorkflowStep>,
        records_pending: bool,
    ) -> bool {
        match self.turn(step, group) {
            Turn::Execute => true,
            Turn::Skip(message) => {
                self.skip(step, message);
                false
            }
            Turn::Pending(message) => {
                // While a step is suspended, only what began is shown.
                let is_suspended = self.state.steps.iter().any(StepState::is_suspended);
                if records_pending && !is_suspended {
                    self.change(step, StepPhase::Pending, StepReason::None, message, false);
                }
                false
            }
        }
    }

    fn turn(&self, step: &WorkflowStepBase, group: Option<&WorkflowStep>) -> Turn {
        let data = self.basic_data(step, group);
        for dependency in &step.depends_on {
            let name = self.spec.resolve(dependency);
            if !name.is_some_and(|name| self.is_finished(name)) {
                return Turn::Pending(format!("Pending on DependsOn: {dependency}"));
            }
        }
        let mut inputs = Map::new();
        for input in &step.inputs {
            match self.input(&input.from, &data) {
                Some(value) => inputs.insert(input.from.clone(), value),
                None => return Turn::Pending(format!("Pending on Input: {}", input.from)),
            };
        }
        let is_known = |step: &StepState| step.phase != StepPhase::Pending;
        if self.state.step(&step.name).is_some_and(is_known) || self.settings.suspend_on_failure {
            // It was decided that it is carried out.
            return Turn::Execute;
        }
        self.check_condition(step, group, &inputs, &data)
    }

    fn check_condition(
        &self,
        step: &WorkflowStepBase,
        group: Option<&WorkflowStep>,
        inputs: &Map<String, Value>,
        data: &StepData,
    ) -> Turn {
        let group_phase = group.and_then(|group| self.state.step(&group.base.name));
        if group_phase.is_some_and(|group| group.phase == StepPhase::Skipped) {
            return Turn::Skip(String::new());
        }
        if step.condition == ALWAYS {
            return Turn::Execute;
        }
        if self.state.broken || (self.state.ended_by_user && step.condition.is_empty()) {
            return Turn::Skip(String::new());
        }
        if step.condition.is_empty() {
            return if self.may_follow(step, group) {
                Turn::Execute
            } else {
                Turn::Skip(String::new())
            };
        }
        match condition::holds(&step.condition, inputs, data, self.spec, &self.state) {
            Ok(true) => Turn::Execute,
            Ok(false) => Turn::Skip(String::new()),
            Err(problem) => Turn::Skip(format!("pre check error: invalid if value: {problem}")),
        }
    }

    /// Whether what comes before a step without a condition went well.
    fn may_follow(&self, step: &WorkflowStepBase, group: Option<&WorkflowStep>) -> bool {
        let mode = match group {
            Some(group) => self.spec.sub_mode(group),
            None => self.state.step_mode(),
        };
        if mode == WorkflowMode::Dag || !step.depends_on.is_empty() {
            return self.dependencies_succeeded(step, 0);
        }
        let siblings: Vec<&str> = match group {
            Some(group) => group
                .sub_steps
                .iter()
                .map(|sub| sub.name.as_str())
                .collect(),
            None => self
                .spec
                .steps
                .iter()
                .map(|top| top.base.name.as_str())
                .collect(),
        };
        siblings
            .into_iter()
            .take_while(|name| *name != step.name)
            .all(|name| {
                let phase = self.state.step(name).map(|step| &step.phase);
                phase.is_none_or(|phase| matches!(phase, StepPhase::Succeeded | StepPhase::Skipped))
            })
    }

    fn dependencies_succeeded(&self, step: &WorkflowStepBase, depth: usize) -> bool {
        step.depends_on.iter().all(|dependency| {
            let Some(name) = self.spec.resolve(dependency) else {
                return false;
            };
            let phase = self.state.step(name).map(|step| &step.phase);
            if phase != Some(&StepPhase::Succeeded) {
                return false;
            }
            let step = self.spec.step(name);
            depth > 100 || step.is_none_or(|(step, _)| self.dependencies_succeeded(step, depth + 1))
        })
    }

    /// Whether a step is carried out in this pass, now that it may.
    pub(super) fn is_due(&self, name: &str) -> bool {
        let Some(step) = self.state.step(name) else {
            return true;
        };
        let is_time = self.due_at(step).is_some_and(|time| time <= self.now);
        let is_woken = match &self.woken {
            Woken::All => true,
            Woken::Timer => false,
            Woken::Steps(steps) => steps.contains(name),
        };
        match step.phase {
            StepPhase::Running if step.reason == StepReason::Wait => is_woken || self.was_due(step),
            StepPhase::Failed | StepPhase::Suspending => is_time,
            _ => true,
        }
    }

    /// Whether a time of the schedule of a waiting step has passed since it was looked at last.
    fn was_due(&self, step: &StepState) -> bool {
        let (Some(since), Some(last)) = (step.since, self.looked_at) else {
            return true;
        };
        backoff::next_after(since, last, self.settings.max_wait_backoff) <= self.now
    }

    fn is_over_time(&self, step: &WorkflowStepBase) -> bool {
        let state = self.state.step(&step.name);
        let time = state.and_then(|state| self.timeout_at(state));
        time.is_some_and(|time| time <= self.now)
    }

    /// The value that an input stands for: a value that steps handed on, or one of the context.
    pub(super) fn input(&self, from: &str, data: &StepData) -> Option<Value> {
        if let Some(value) = self.state.vars.get(from) {
            return Some(value.clone());
        }
        let segments = path::parse(from).ok()?;
        let (Segment::Field(first), rest) = segments.split_first()? else {
            return None;
        };
        let root = match first.as_str() {
            name if self.state.vars.contains_key(name) => self.state.vars.get(name)?,
            "context" => &data.context,
            "parameter" => &data.parameter,
            _ => return None,
        };
        path::get(root, rest).cloned()
    }

    /// What a template sees before its inputs are filled in.
    pub(super) fn basic_data(
        &self,
        step: &WorkflowStepBase,
        group: Option<&WorkflowStep>,
    ) -> StepData {
        let id = self.id_of(&step.name);
        let span = format!("{}-{id}", self.spec.name);
        let mut context = Map::from_iter([
            ("stepName".to_owned(), json!(step.name)),
            ("stepSessionID".to_owned(), json!(id)),
            ("spanID".to_owned(), json!(span)),
        ]);
        if let Some(group) = group {
            context.insert("stepGroupName".to_owned(), json!(group.base.name));
        }
        // What the workflow itself says of the context counts more.
        context.extend(self.spec.context.clone());
        if let Some(resume) = self.resume_addresses(step) {
            context.insert(RESUME.to_owned(), resume);
        }
        let parameter = step.properties.clone().unwrap_or_default();
        StepData {
            context: Value::Object(context),
            parameter: Value::Object(parameter),
        }
    }

    /// The addresses that resume steps, by name, for steps that hand them to somebody.
    fn resume_addresses(&self, step: &WorkflowStepBase) -> Option<Value> {
        let approval = self.spec.approval.as_ref()?;
        let asked = format!("context.{RESUME}");
        let in_template = self.definition(&step.step_type);
        let in_template = in_template.is_some_and(|it| it.source().contains(&asked));
        let in_inputs = step
            .inputs
            .iter()
            .any(|input| input.from.starts_with(&asked));
        if !in_template && !in_inputs {
            return None;
        }
        let addresses = self.spec.all().filter_map(|(other, _)| {
            let token = self.spec.resume_token(&self.id_of(&other.name))?;
            let address = format!("{}{token}", approval.address);
            Some((other.name.clone(), json!({"token": token, "url": address})))
        });
        Some(Value::Object(addresses.collect()))
    }

    /// The place of a step among all: when it was met first.
    pub(super) fn order_of(&mut self, name: &str) -> u64 {
        if let Some(known) = self.state.step(name) {
            return known.order;
        }
        let recorded = self.state.steps.iter().map(|step| step.order);
        let last = recorded.chain(self.orders.values().copied()).max();
        let next = last.map_or(1, |last| last.saturating_add(1));
        *self.orders.entry(name.to_owned()).or_insert(next)
    }

    /// The identity of a step in this round.
    pub(super) fn id_of(&self, name: &str) -> String {
        let known = self.state.step(name).filter(|step| !step.id.is_empty());
        known.map_or_else(
            || identity::of(&self.spec.uid, self.state.round, name),
            |step| step.id.clone(),
        )
    }

    /// Carries out the steps of a group.
    fn advance_group(&mut self, group: &WorkflowStep, records_pending: bool) {
        let step = &group.base;
        if self.is_finished(&step.name) {
            return;
        }
        let is_new =
            |known: &StepState| known.phase == StepPhase::Pending && known.first_execute.is_none();
        let is_new = self.state.step(&step.name).is_none_or(is_new);
        if is_new {
            let is_skipped = |pass: &Self| pass.is_finished(&step.name);
            if !self.take_turn(step, None, records_pending) {
                if is_skipped(self) {
                    for sub in &group.sub_steps {
                        self.skip(sub, String::new());
                    }
                }
                return;
            }
            self.change(
                step,
                StepPhase::Running,
                StepReason::None,
                String::new(),
                true,
            );
        }
        if self.is_over_time(step) {
            for sub in &group.sub_steps {
                if !self.is_finished(&sub.name) {
                    self.time_out(sub);
                }
            }
        } else {
            self.advance_subs(group);
        }
        self.conclude_group(group);
    }

    fn advance_subs(&mut self, group: &WorkflowStep) {
        if self.spec.sub_mode(group) == WorkflowMode::StepByStep {
            for sub in &group.sub_steps {
                self.advance_step(sub, Some(group), true);
                if !self.is_finished(&sub.name) {
                    return;
                }
            }
            return;
        }
        let mut round = 0;
        loop {
            let before = self.progress();
            let records_pending = round > 0 && self.has_begun(&group.sub_steps);
            for sub in &group.sub_steps {
                self.advance_step(sub, Some(group), records_pending);
            }
            round += 1;
            if self.progress() == before && round > 1 {
                return;
            }
        }
    }

    /// Says of a group what its steps say together.
    pub(super) fn conclude_group(&mut self, group: &WorkflowStep) {
        let subs: Vec<StepState> = group
            .sub_steps
            .iter()
            .filter_map(|sub| self.state.step(&sub.name).cloned())
            .collect();
        let has = |phase: StepPhase| subs.iter().any(|sub| sub.phase == phase);
        let (phase, reason) = if has(StepPhase::Suspending) {
            (StepPhase::Suspending, StepReason::None)
        } else if subs.len() < group.sub_steps.len() || has(StepPhase::Running) {
            (StepPhase::Running, StepReason::None)
        } else if has(StepPhase::Pending) {
            (StepPhase::Pending, StepReason::None)
        } else if has(StepPhase::Failed) {
            (StepPhase::Failed, group_reason(&subs))
        } else if !subs.is_empty() && subs.iter().all(|sub| sub.phase == StepPhase::Skipped) {
            (StepPhase::Skipped, StepReason::Skip)
        } else {
            (StepPhase::Succeeded, StepReason::None)
        };
        let is_finished = phase.is_finished(&reason);
        let message = if is_finished {
            self.group_outputs(group)
        } else {
            String::new()
        };
        self.change(&group.base, phase, reason, message, false);
    }

    /// Records the status of a step, if it is another one.
    pub(super) fn change(
        &mut self,
        step: &WorkflowStepBase,
        phase: StepPhase,
        reason: StepReason,
        message: String,
        executed: bool,
    ) {
        let known = self.state.step(&step.name);
        let failures = known.map_or(0, |known| known.failures);
        let is_same = known.is_some_and(|known| {
            known.phase == phase && known.reason == reason && known.message == message
        });
        if is_same {
            return;
        }
        self.record_change(step, phase, reason, message, executed, failures);
    }

    pub(super) fn record_change(
        &mut self,
        step: &WorkflowStepBase,
        phase: StepPhase,
        reason: StepReason,
        message: String,
        executed: bool,
        failures: u32,
    ) {
        let group = self.spec.step(&step.name).and_then(|(_, group)| group);
        let is_component = step.step_type == step_type::APPLY_COMPONENT;
        let shown_type = if is_component && phase == StepPhase::Pending {
            step_type::BUILTIN_APPLY_COMPONENT
        } else {
            &step.step_type
        };
        let change = StepChange {
            step: step.name.clone(),
            id: self.id_of(&step.name),
            step_type: shown_type.to_owned(),
            group: group.map(|group| group.base.name.clone()),
            phase,
            reason,
            message: self.secrets.redact(message),
            failures,
            order: self.order_of(&step.name),
            executed,
        };
        self.push(Event::StepChanged(Box::new(change)));
    }
}

/// Why a group failed: the reason of its steps that weighs most.
fn group_reason(subs: &[StepState]) -> StepReason {
    const BY_WEIGHT: [StepReason; 8] = [
        StepReason::FailedAfterRetries,
        StepReason::Timeout,
        StepReason::Action,
        StepReason::Terminate,
        StepReason::Rendering,
        StepReason::Input,
        StepReason::Output,
        StepReason::None,
    ];
    let failed = || subs.iter().filter(|sub| sub.phase == StepPhase::Failed);
    if failed().any(|sub| !sub.is_finished()) {
        return StepReason::None;
    }
    let found = BY_WEIGHT
        .iter()
        .find(|reason| failed().any(|sub| sub.reason == **reason));
    found.cloned().unwrap_or_default()
}
