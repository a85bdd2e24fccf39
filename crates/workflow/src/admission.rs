//! Which workflows are refused when they are written, and how their steps get names.

use bellwether_api::Kind as _;
use bellwether_api::admission::{Admission, Denial, Operation, Review, Rule};
use bellwether_api::workflow::{GROUP, Workflow, WorkflowExecuteMode, WorkflowRun, WorkflowStep};
use serde_json::Value;

use crate::spec;

const RUNS: &str = WorkflowRun::NAMES.plural;
const WORKFLOWS: &str = Workflow::NAMES.plural;

/// The rules of workflows: steps have names, and can be carried out in some order.
#[derive(Debug, Clone, Copy)]
pub struct WorkflowAdmission;

impl Admission for WorkflowAdmission {
    fn name(&self) -> &'static str {
        "workflow"
    }

    fn rules(&self) -> &'static [Rule] {
        const RULES: &[Rule] = &[Rule {
            group: GROUP,
            resources: &[RUNS, WORKFLOWS],
            operations: &[Operation::Create, Operation::Update],
            condition: None,
        }];
        RULES
    }

    fn mutate(&self, _review: &Review<'_>, object: &mut Value) -> Result<(), Denial> {
        for path in ["/spec/workflowSpec/steps", "/steps"] {
            if let Some(Value::Array(steps)) = object.pointer_mut(path) {
                name(steps, "step");
            }
        }
        Ok(())
    }

    fn validate(&self, review: &Review<'_>, object: &Value) -> Result<(), Denial> {
        if object["metadata"]["deletionTimestamp"].is_string() {
            return Ok(());
        }
        let (steps, mode, field) = if review.resource == RUNS {
            let steps = &object["spec"]["workflowSpec"]["steps"];
            (steps, &object["spec"]["mode"], "spec.workflowSpec.steps")
        } else {
            (&object["steps"], &object["mode"], "steps")
        };
        let steps: Vec<WorkflowStep> = serde_json::from_value(steps.clone()).unwrap_or_default();
        let mode: WorkflowExecuteMode = serde_json::from_value(mode.clone()).unwrap_or_default();
        spec::check(&steps, &mode).map_err(|problem| {
            Denial::BadRequest(format!(
                "field \"{field}\": Invalid value error encountered, {problem}. "
            ))
        })
    }
}

/// Gives names to steps that have none, in groups too.
fn name(steps: &mut [Value], prefix: &str) {
    for (index, step) in steps.iter_mut().enumerate() {
        let name_of_step = format!("{prefix}-{index}");
        if step["name"].as_str().unwrap_or_default().is_empty() && step.is_object() {
            step["name"] = Value::String(name_of_step.clone());
        }
        if let Some(Value::Array(subs)) = step.get_mut("subSteps") {
            name(subs, &name_of_step);
        }
    }
}
