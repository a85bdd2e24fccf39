//! A workflow as it is carried out: steps with names, and what is wrong with them.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use bellwether_api::workflow::names::step_type;
use bellwether_api::workflow::{WorkflowExecuteMode, WorkflowMode, WorkflowStep, WorkflowStepBase};
use serde_json::{Map, Value};

use crate::definition::Definition;
use crate::duration;
use crate::token::{Claim, ResumeKey};

/// A workflow that is carried out.
#[derive(Debug, Clone, Default)]
pub struct Spec {
    /// Name of the object that it belongs to.
    pub name: String,
    /// Its namespace.
    pub namespace: String,
    /// Its identity.
    pub uid: String,
    /// Which revision of an Application it is; empty for a run, which has none.
    pub revision: String,
    /// How steps are ordered.
    pub mode: WorkflowExecuteMode,
    /// The steps; all have names.
    pub steps: Vec<WorkflowStep>,
    /// What makes good for steps if the workflow ends early or goes back: see [`Spec::with_compensations`].
    pub compensations: Vec<WorkflowStepBase>,
    /// What templates see as context, besides what belongs to a step.
    pub context: Map<String, Value>,
    /// Templates of the types of steps.
    pub definitions: BTreeMap<String, Arc<Definition>>,
    /// How suspended steps are resumed over HTTP, if the hub serves that.
    pub approval: Option<Approval>,
}

/// How suspended steps are resumed over HTTP.
#[derive(Debug, Clone)]
pub struct Approval {
    /// The key of the hub.
    pub key: ResumeKey,
    /// The address to which tokens are added, such as `https://hub.example/resume/`.
    pub address: String,
    /// What the workflow belongs to: `run` or `app`.
    pub kind: &'static str,
}

impl Spec {
    /// All steps with their groups, in order, and what makes good for them.
    pub fn all(&self) -> impl Iterator<Item = (&WorkflowStepBase, Option<&WorkflowStep>)> {
        let steps = self.steps.iter().flat_map(|step| {
            let subs = step.sub_steps.iter().map(move |sub| (sub, Some(step)));
            std::iter::once((&step.base, None)).chain(subs)
        });
        steps.chain(self.compensations.iter().map(|step| (step, None)))
    }

    /// Adds the steps that make good for others.
    #[must_use]
    pub fn with_compensations(mut self) -> Self {
        let made = self.all().flat_map(|(step, _)| {
            let of_step = [
                (Occasion::Terminate, step.on_terminate.as_ref()),
                (Occasion::Rollback, step.on_rollback.as_ref()),
            ];
            of_step.into_iter().filter_map(|(occasion, compensation)| {
                let compensation = compensation?;
                Some(WorkflowStepBase {
                    name: compensation_name(&step.name, occasion),
                    step_type: compensation.step_type.clone(),
                    properties: compensation.properties.clone(),
                    ..WorkflowStepBase::default()
                })
            })
        });
        self.compensations = made.collect();
        self
    }

    /// The token that resumes an execution of a step.
    pub fn resume_token(&self, step_id: &str) -> Option<String> {
        let approval = self.approval.as_ref()?;
        Some(approval.key.token(&Claim {
            kind: approval.kind.to_owned(),
            namespace: self.namespace.clone(),
            name: self.name.clone(),
            step_id: step_id.to_owned(),
        }))
    }

    /// A step by name.
    pub fn step(&self, name: &str) -> Option<(&WorkflowStepBase, Option<&WorkflowStep>)> {
        self.all().find(|(step, _)| step.name == name)
    }

    /// How the steps of a group are ordered.
    pub fn sub_mode(&self, group: &WorkflowStep) -> WorkflowMode {
        let mode = group.mode.clone().or_else(|| self.mode.sub_steps.clone());
        mode.unwrap_or(WorkflowMode::Dag)
    }

    /// The steps that another name of a step stands for: components can be named instead of steps.
    pub fn resolve<'a>(&'a self, name: &'a str) -> Option<&'a str> {
        let mut steps = self.all().map(|(step, _)| step);
        if let Some(step) = steps.find(|step| step.name == name) {
            return Some(&step.name);
        }
        let mut steps = self.all().map(|(step, _)| step);
        steps
            .find(|step| alias(step) == Some(name))
            .map(|step| step.name.as_str())
    }
}

/// When something is done to make good for a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Occasion {
    /// The workflow ends early.
    Terminate,
    /// A step goes back to an earlier revision.
    Rollback,
}

impl Occasion {
    /// What the names of steps end with that make good for others.
    const fn suffix(self) -> &'static str {
        match self {
            Self::Terminate => "-on-terminate",
            Self::Rollback => "-on-rollback",
        }
    }
}

/// The name of the step that makes good for another one.
pub fn compensation_name(step: &str, occasion: Occasion) -> String {
    format!("{step}{}", occasion.suffix())
}

/// Whether a step makes good for another one, by its name.
pub fn is_compensation(name: &str) -> bool {
    [Occasion::Terminate, Occasion::Rollback]
        .iter()
        .any(|occasion| name.ends_with(occasion.suffix()))
}

/// The other name of a step: the component or object that it is about.
pub fn alias(step: &WorkflowStepBase) -> Option<&str> {
    let properties = step.properties.as_ref()?;
    let text = |key: &str| properties.get(key).and_then(Value::as_str);
    text("name").or_else(|| text("component"))
}

/// Gives names to steps that have none.
pub fn name_steps(steps: &mut [WorkflowStep]) {
    for (index, step) in steps.iter_mut().enumerate() {
        if step.base.name.is_empty() {
            step.base.name = format!("step-{index}");
        }
        for (sub_index, sub) in step.sub_steps.iter_mut().enumerate() {
            if sub.name.is_empty() {
                sub.name = format!("step-{index}-{sub_index}");
            }
        }
    }
}

/// What is wrong with a workflow.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SpecError {
    /// Two steps have the same name.
    #[error("duplicated step name {0:?}")]
    DuplicateName(String),
    /// A timeout is no duration.
    #[error("step {0:?}: invalid timeout, please use the format of timeout like 1s, 1m, 1h or 1d")]
    Timeout(String),
    /// A step depends on one that does not exist.
    #[error("step {step:?} depends on {on:?}, which does not exist")]
    UnknownDependency {
        /// The step.
        step: String,
        /// What it depends on.
        on: String,
    },
    /// A step depends on one that is carried out later.
    #[error(
        "step {step:?} depends on {on:?}, which is carried out later: steps are carried out one after the other"
    )]
    ForwardDependency {
        /// The step.
        step: String,
        /// What it depends on.
        on: String,
    },
    /// Steps depend on each other.
    #[error("steps depend on each other: {0}")]
    Cycle(String),
    /// Steps have no order.
    #[error("step {0:?} has subSteps, but is no step-group")]
    NoGroup(String),
}

/// Checks a workflow before it is carried out; steps have names already.
pub fn check(steps: &[WorkflowStep], mode: &WorkflowExecuteMode) -> Result<(), SpecError> {
    let spec = Spec {
        steps: steps.to_vec(),
        mode: mode.clone(),
        ..Spec::default()
    }
    .with_compensations();
    let mut names = BTreeSet::new();
    for (step, _) in spec.all() {
        if !names.insert(step.name.as_str()) {
            return Err(SpecError::DuplicateName(step.name.clone()));
        }
        if !step.timeout.is_empty() && duration::parse(&step.timeout).is_err() {
            return Err(SpecError::Timeout(step.name.clone()));
        }
    }
    if let Some(step) = steps
        .iter()
        .find(|step| !step.sub_steps.is_empty() && step.base.step_type != step_type::STEP_GROUP)
    {
        return Err(SpecError::NoGroup(step.base.name.clone()));
    }
    check_dependencies(&spec)
}

fn check_dependencies(spec: &Spec) -> Result<(), SpecError> {
    let order: Vec<&WorkflowStepBase> = spec.all().map(|(step, _)| step).collect();
    let position = |name: &str| {
        let name = spec.resolve(name)?;
        order.iter().position(|step| step.name == name)
    };
    let is_sequence = spec.mode.steps.clone().unwrap_or_default() == WorkflowMode::StepByStep;
    let mut edges = vec![Vec::new(); order.len()];
    for (index, step) in order.iter().enumerate() {
        for on in &step.depends_on {
            let Some(target) = position(on) else {
                return Err(SpecError::UnknownDependency {
                    step: step.name.clone(),
                    on: on.clone(),
                });
            };
            let is_top_level = spec.steps.iter().any(|top| top.base.name == step.name);
            if is_sequence && is_top_level && target > index {
                return Err(SpecError::ForwardDependency {
                    step: step.name.clone(),
                    on: on.clone(),
                });
            }
            edges[index].push(target);
        }
    }
    match cycle(&edges) {
        None => Ok(()),
        Some(members) => {
            let names: Vec<&str> = members
                .iter()
                .map(|index| order[*index].name.as_str())
                .collect();
            Err(SpecError::Cycle(names.join(", ")))
        }
    }
}

/// Those that are left when everything that depends on nothing is taken away, again and again.
fn cycle(edges: &[Vec<usize>]) -> Option<Vec<usize>> {
    let mut waits_for: Vec<usize> = edges.iter().map(Vec::len).collect();
    let mut dependents = vec![Vec::new(); edges.len()];
    for (index, targets) in edges.iter().enumerate() {
        for target in targets {
            dependents[*target].push(index);
        }
    }
    let mut ready: Vec<usize> = (0..edges.len())
        .filter(|index| waits_for[*index] == 0)
        .collect();
    let mut done = 0;
    while let Some(index) = ready.pop() {
        done += 1;
        for dependent in &dependents[index] {
            waits_for[*dependent] -= 1;
            if waits_for[*dependent] == 0 {
                ready.push(*dependent);
            }
        }
    }
    let left = || {
        (0..edges.len())
            .filter(|index| waits_for[*index] > 0)
            .collect()
    };
    (done < edges.len()).then(left)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[track_caller]
    fn check_steps(mode: &str, steps: Value, error: Option<&str>) {
        let mut steps: Vec<WorkflowStep> = serde_json::from_value(steps).unwrap();
        name_steps(&mut steps);
        let mode = serde_json::from_value(json!({"steps": mode})).unwrap();
        let found = check(&steps, &mode).err().map(|error| error.to_string());
        assert_eq!(found.as_deref(), error);
    }

    #[test]
    fn workflows_that_cannot_end_are_refused() {
        let a = |on: &[&str]| json!({"name": "a", "type": "t", "dependsOn": on});
        let b = |on: &[&str]| json!({"name": "b", "type": "t", "dependsOn": on});
        check_steps("StepByStep", json!([a(&[]), b(&["a"])]), None);
        check_steps("DAG", json!([a(&["b"]), b(&[])]), None);
        check_steps(
            "DAG",
            json!([a(&["b"]), b(&["a"])]),
            Some("steps depend on each other: a, b"),
        );
        check_steps(
            "StepByStep",
            json!([a(&["b"]), b(&[])]),
            Some(
                "step \"a\" depends on \"b\", which is carried out later: steps are carried out one after the other",
            ),
        );
        check_steps(
            "DAG",
            json!([a(&["z"])]),
            Some("step \"a\" depends on \"z\", which does not exist"),
        );
        check_steps(
            "DAG",
            json!([a(&[]), a(&[])]),
            Some("duplicated step name \"a\""),
        );
    }

    #[test]
    fn names_and_timeouts_are_checked_in_groups_too() {
        let group = |timeout: &str| json!([{"type": "step-group", "subSteps": [{"type": "t", "timeout": timeout}, {"type": "t"}]}]);
        check_steps("StepByStep", group("1d"), None);
        check_steps(
            "StepByStep",
            group("soon"),
            Some(
                "step \"step-0-0\": invalid timeout, please use the format of timeout like 1s, 1m, 1h or 1d",
            ),
        );
    }
}
