//! How far the delivery of an application has come: which steps can be taken, and what its status says.
//!
//! A step that applies components is done when they are healthy; steps that need it come after. Only steps that apply
//! components are understood here.

use bellwether_api::oam::ComponentService;
use bellwether_api::oam::names::DEPLOY_STEP;
use bellwether_api::workflow::names::step_type;
use bellwether_api::workflow::{
    StepPhase, StepReason, StepStatus, WorkflowMode, WorkflowStepBase, WorkflowStepStatus,
};

use crate::appfile::{Appfile, policy_names};
use crate::deliver::{Placed, place, placed_component};
use crate::error::{Class, RenderError, Stage};

/// A step of a delivery.
#[derive(Debug, Clone)]
pub struct Step {
    /// Its name.
    pub name: String,
    /// Its type.
    pub step_type: String,
    /// Names of the steps that have to be done first.
    pub needs: Vec<String>,
    /// What it applies.
    pub components: Vec<Placed>,
}

/// The steps of an application, with what they apply.
pub fn steps(appfile: &Appfile<'_>) -> Result<Vec<Step>, RenderError> {
    let mut steps = Vec::new();
    let mut previous: Vec<String> = Vec::new();
    for step in &appfile.steps {
        let is_sequence = appfile.mode.0 == WorkflowMode::StepByStep;
        let before = if is_sequence {
            previous.clone()
        } else {
            Vec::new()
        };
        let is_group = !step.sub_steps.is_empty();
        let inner: Vec<&WorkflowStepBase> = if is_group {
            step.sub_steps.iter().collect()
        } else {
            vec![&step.base]
        };
        let of_group: &[String] = if is_group { &step.base.depends_on } else { &[] };
        previous = inner.iter().map(|step| step.name.clone()).collect();
        for base in inner {
            let needs = before
                .iter()
                .chain(of_group)
                .chain(&base.depends_on)
                .cloned()
                .collect();
            steps.push(Step {
                name: base.name.clone(),
                step_type: base.step_type.clone(),
                needs,
                components: components(appfile, base)?,
            });
        }
    }
    check_needs(&steps)?;
    Ok(steps)
}

fn components(appfile: &Appfile<'_>, step: &WorkflowStepBase) -> Result<Vec<Placed>, RenderError> {
    match step.step_type.as_str() {
        DEPLOY_STEP => place(appfile, &policy_names(step.properties.as_ref())),
        step_type::APPLY_COMPONENT | step_type::BUILTIN_APPLY_COMPONENT => {
            Ok(vec![placed_component(appfile, step)?])
        }
        other => {
            let message = format!(
                "step {}: steps of type {other:?} are not supported in applications yet",
                step.name
            );
            Err(RenderError::new(
                Stage::Deploy,
                Class::InvalidInput,
                message,
            ))
        }
    }
}

fn check_needs(steps: &[Step]) -> Result<(), RenderError> {
    for step in steps {
        let missing = step
            .needs
            .iter()
            .find(|need| steps.iter().all(|other| other.name != **need));
        if let Some(missing) = missing {
            let message = format!(
                "step {} depends on {missing:?}, which does not exist",
                step.name
            );
            return Err(RenderError::new(Stage::Deploy, Class::NotFound, message));
        }
    }
    Ok(())
}

/// Whether everything that a step needs is done.
pub fn is_ready(step: &Step, done: &[String]) -> bool {
    step.needs.iter().all(|need| done.contains(need))
}

/// What is said of a step.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// It waits for other steps.
    Pending,
    /// Its components are applied, and not all are healthy.
    Waiting(String),
    /// It is done.
    Done,
    /// It cannot be done.
    Failed(String),
}

/// The outcome of a step whose components stand so.
pub fn outcome(services: &[ComponentService]) -> Outcome {
    match services.iter().find(|service| !service.healthy) {
        None => Outcome::Done,
        Some(service) => {
            let cluster = if service.cluster.is_empty() {
                String::new()
            } else {
                format!(" on {}", service.cluster)
            };
            let detail = if service.message.is_empty() {
                String::new()
            } else {
                format!(": {}", service.message)
            };
            Outcome::Waiting(format!(
                "component {}{cluster} is not healthy yet{detail}",
                service.name
            ))
        }
    }
}

/// The status of a step.
pub fn step_status(step: &Step, outcome: &Outcome) -> WorkflowStepStatus {
    let (phase, reason, message) = match outcome {
        Outcome::Pending => {
            let message = format!("Pending on DependsOn: {}", step.needs.join(","));
            (StepPhase::Pending, StepReason::None, message)
        }
        Outcome::Waiting(message) => (StepPhase::Running, StepReason::Wait, message.clone()),
        Outcome::Done => (StepPhase::Succeeded, StepReason::None, String::new()),
        Outcome::Failed(message) => (StepPhase::Failed, StepReason::Execute, message.clone()),
    };
    WorkflowStepStatus {
        status: StepStatus {
            id: step.name.clone(),
            name: step.name.clone(),
            step_type: step.step_type.clone(),
            phase: Some(phase),
            reason,
            message,
            ..StepStatus::default()
        },
        ..WorkflowStepStatus::default()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::appfile;
    use crate::catalog::Catalog;
    use crate::world::World;

    /// Name of a step, the components it deploys, and how many it does at once.
    type Step<'a> = (&'a str, &'a [&'a str], usize);

    #[track_caller]
    #[expect(clippy::needless_pass_by_value, reason = "tables are written in place")]
    fn check(spec: Value, expected: Result<&[Step<'_>], &str>) {
        let application =
            serde_json::from_value(json!({"metadata": {"name": "shop"}, "spec": spec})).unwrap();
        let (catalog, world) = (Catalog::default(), World::default());
        let found =
            appfile::parse(&application, &catalog, &world, 1).and_then(|appfile| steps(&appfile));
        match (found, expected) {
            (Ok(steps), Ok(expected)) => {
                let steps: Vec<_> = steps
                    .iter()
                    .map(|step| (step.name.clone(), step.needs.clone(), step.components.len()))
                    .collect();
                let expected: Vec<_> = expected
                    .iter()
                    .map(|(name, needs, count)| {
                        (
                            (*name).to_owned(),
                            needs.iter().map(|need| (*need).to_owned()).collect(),
                            *count,
                        )
                    })
                    .collect();
                assert_eq!(steps, expected);
            }
            (Err(error), Err(expected)) => assert!(error.message.contains(expected), "{error}"),
            (found, expected) => panic!("got {found:?}, want {expected:?}"),
        }
    }

    fn components() -> Value {
        json!([
            {"name": "a", "type": "worker", "properties": {"image": "a"}},
            {"name": "b", "type": "worker", "properties": {"image": "b"}, "dependsOn": ["a"]},
        ])
    }

    #[test]
    fn components_wait_for_those_that_they_depend_on() {
        check(
            json!({"components": components()}),
            Ok(&[("a", &[], 1), ("b", &["a"], 1)]),
        );
    }

    #[test]
    fn deploy_steps_follow_each_other() {
        let topology = |name: &str, space: &str| json!({"name": name, "type": "topology", "properties": {"namespace": space}});
        let step = |name: &str| json!({"name": name, "type": "deploy", "properties": {"policies": [name]}});
        let spec = json!({
            "components": components(),
            "policies": [topology("x", "nx"), topology("y", "ny")],
            "workflow": {"steps": [step("x"), step("y")]},
        });
        check(spec, Ok(&[("x", &[], 2), ("y", &["x"], 2)]));
    }

    #[test]
    fn other_steps_and_unknown_dependencies_are_refused() {
        let spec = json!({"components": components(), "workflow": {"steps": [{"name": "s", "type": "suspend"}]}});
        check(spec, Err("suspend"));
        let spec = json!({"components": [{"name": "a", "type": "worker", "dependsOn": ["ghost"]}]});
        check(spec, Err("ghost"));
    }
}
