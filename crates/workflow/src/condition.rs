//! The `if` of a step.

use bellwether_api::workflow::{StepPhase, StepReason};
use bellwether_cue::host::{Budget, Template};
use serde_json::{Map, Value, json};

use crate::definition::{StepData, describe};
use crate::spec::{Spec, alias};
use crate::state::{State, StepState};

/// The `if` that always holds.
pub const ALWAYS: &str = "always";

/// Names that conditions know besides those of steps.
const SCOPE: &str = "inputs: _\nstatus: _\nsteps: _\ncontext: _\nparameter: _\n";
const RESERVED: &[&str] = &[
    "inputs",
    "status",
    "steps",
    "context",
    "parameter",
    "result",
];

/// Whether the condition of a step holds. Values of inputs are by the text of their `from`.
pub fn holds(
    condition: &str,
    inputs: &Map<String, Value>,
    data: &StepData,
    spec: &Spec,
    state: &State,
) -> Result<bool, String> {
    let named: Vec<(&String, &Value)> = state
        .outputs
        .iter()
        .filter(|(name, _)| is_identifier(name) && !RESERVED.contains(&name.as_str()))
        .collect();
    let expression = format!("result: {condition}\n");
    let mut scope = SCOPE.to_owned();
    for (name, _) in &named {
        scope.push_str(name);
        scope.push_str(": _\n");
    }
    let files = [("if", expression.as_str()), ("scope", scope.as_str())];
    let template = Template::compile_files(&files, &[]).map_err(|problems| describe(&problems))?;
    let mut evaluation = template.evaluate(Budget::default());
    evaluation.fill_json(&["inputs"], &Value::Object(inputs.clone()));
    evaluation.fill_json(&["status"], &statuses(spec, state));
    evaluation.fill_json(&["context"], &data.context);
    evaluation.fill_json(&["parameter"], &data.parameter);
    evaluation.fill_json(&["steps"], &json!(state.outputs));
    for (name, value) in named {
        evaluation.fill_json(&[name], value);
    }
    let root = evaluation.root();
    let Some(result) = evaluation.lookup(root, "result") else {
        return Err("field not found: if".to_owned());
    };
    match evaluation.export_json(result) {
        Ok(Value::Bool(holds)) => Ok(holds),
        Ok(other) => Err(format!("{other} is not a bool")),
        Err(problem) => Err(problem.to_string()),
    }
}

/// Whether a text can be a field without quotes.
fn is_identifier(text: &str) -> bool {
    let is_letter = |character: char| character.is_ascii_alphabetic() || character == '_';
    text.starts_with(is_letter)
        && text
            .chars()
            .all(|character| is_letter(character) || character.is_ascii_digit())
}

/// What conditions see of all steps, by name and by what the steps are about.
fn statuses(spec: &Spec, state: &State) -> Value {
    let mut statuses = Map::new();
    for step in &state.steps {
        statuses.insert(step.name.clone(), status(step));
    }
    for (step, _) in spec.all() {
        if let (Some(alias), Some(known)) = (alias(step), state.step(&step.name)) {
            statuses.entry(alias).or_insert_with(|| status(known));
        }
    }
    Value::Object(statuses)
}

fn status(step: &StepState) -> Value {
    let failed = step.phase == StepPhase::Failed;
    json!({
        "id": step.id,
        "name": step.name,
        "type": step.step_type,
        "phase": step.phase.as_str(),
        "message": step.message,
        "reason": step.reason.as_str(),
        "firstExecuteTime": step.first_execute.map(bellwether_json::time::format_time),
        "lastExecuteTime": step.last_execute.map(bellwether_json::time::format_time),
        "failed": failed,
        "succeeded": step.phase == StepPhase::Succeeded,
        "skipped": step.phase == StepPhase::Skipped,
        "timeout": failed && step.reason == StepReason::Timeout,
        "failedAfterRetries": failed && step.reason == StepReason::FailedAfterRetries,
        "terminate": failed && step.reason == StepReason::Terminate,
    })
}
