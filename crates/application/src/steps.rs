//! The steps of an application as the workflow engine carries them out, and what they mean for components.
//!
//! A step that applies a component gets the component as its parameter, with the inputs and outputs of the component.

use std::collections::BTreeMap;

use bellwether_api::oam::ApplicationComponent;
use bellwether_api::workflow::names::step_type;
use bellwether_api::workflow::{StepInput, WorkflowStep, WorkflowStepBase};
use serde_json::{Map, Value, json};

use crate::appfile::Appfile;
use crate::context::Target;
use crate::deliver::{Delivered, Placed, fill_input, placed_by, render_placed};
use crate::error::{Class, RenderError, Stage};
use crate::path;

/// The parameter that a component becomes.
const VALUE: &str = "value";

/// The steps of an application, with what they apply as their parameters.
pub fn steps(appfile: &Appfile<'_>) -> Result<Vec<WorkflowStep>, RenderError> {
    let mut steps = appfile.steps.clone();
    for step in &mut steps {
        let inner = std::iter::once(&mut step.base).chain(&mut step.sub_steps);
        for base in inner.filter(|base| is_apply(base)) {
            add_component(appfile, base)?;
        }
    }
    Ok(steps)
}

/// Whether a step applies one component.
pub fn is_apply(step: &WorkflowStepBase) -> bool {
    [
        step_type::APPLY_COMPONENT,
        step_type::BUILTIN_APPLY_COMPONENT,
    ]
    .contains(&step.step_type.as_str())
}

fn not_found(message: &str) -> RenderError {
    let message = format!("convert step: convert [apply-component]: {message}");
    RenderError::new(Stage::Deploy, Class::NotFound, message)
}

/// Puts the component of a step into its parameters.
fn add_component(appfile: &Appfile<'_>, step: &mut WorkflowStepBase) -> Result<(), RenderError> {
    let properties = step.properties.clone().unwrap_or_default();
    if properties.contains_key(VALUE) {
        return Ok(());
    }
    let text = |key: &str| properties.get(key).and_then(Value::as_str);
    let name = text("component")
        .or_else(|| text("name"))
        .unwrap_or_default();
    let known = appfile.components.iter().find(|known| known.name == name);
    let Some(component) = known else {
        return Err(not_found(&format!("component {name} not found")));
    };
    let is_known = |name: &&String| appfile.components.iter().any(|it| it.name == **name);
    if let Some(missing) = component.depends_on.iter().find(|name| !is_known(name)) {
        let message = format!("component {missing} not found, which is depended by {name}");
        return Err(not_found(&message));
    }
    let mut component = component.clone();
    for needed in &component.depends_on {
        if !step.depends_on.contains(needed) {
            step.depends_on.push(needed.clone());
        }
    }
    step.inputs.append(&mut component.inputs);
    step.inputs.iter_mut().for_each(below_value);
    step.outputs.append(&mut component.outputs);
    let mut parameters = properties;
    parameters.insert(VALUE.to_owned(), json!(component));
    step.properties = Some(parameters);
    Ok(())
}

/// An input of a component is a field of its properties, unless it says otherwise.
fn below_value(input: &mut StepInput) {
    let key = input.parameter_key.trim();
    let is_own = key.is_empty() || key.starts_with("patch.");
    if is_own {
        return;
    }
    let is_whole = key.starts_with("properties") || key.starts_with("traits[");
    input.parameter_key = if is_whole {
        format!("{VALUE}.{key}")
    } else {
        format!("{VALUE}.properties.{key}")
    };
}

/// Values that components hand on within a deploy step, by name.
pub type Values = BTreeMap<String, Value>;

/// What steps that are done applied, for those who keep it so. `vars` are the values that steps handed on, `within` gives
/// those that components of a deploy step handed on.
pub fn applied(
    appfile: &Appfile<'_>,
    done: &[&WorkflowStepBase],
    vars: &Map<String, Value>,
    within: &dyn Fn(&WorkflowStepBase, &Target) -> Values,
) -> Result<Vec<Delivered>, RenderError> {
    let mut delivered = Vec::new();
    for step in done {
        if let Some(all) = placed_by(appfile, step)? {
            for mut placed in all {
                let values = within(step, &placed.target);
                fill_inputs(&mut placed.component, &values);
                delivered.push(render_placed(appfile, &placed)?);
            }
        } else if is_apply(step) {
            let placed = placed_step(step, vars)?;
            delivered.push(render_placed(appfile, &placed)?);
        }
    }
    Ok(delivered)
}

/// Puts values into the parameters of a component; the names of those that are not there yet.
pub fn fill_inputs(component: &mut ApplicationComponent, values: &Values) -> Vec<String> {
    let mut missing = Vec::new();
    for input in component.inputs.clone() {
        match values.get(&input.from) {
            Some(value) => fill_input(component, &input.parameter_key, value.clone(), true),
            None => missing.push(input.from),
        }
    }
    missing
}

/// What a step that applies one component means, with its inputs.
fn placed_step(step: &WorkflowStepBase, vars: &Map<String, Value>) -> Result<Placed, RenderError> {
    let mut parameters = Value::Object(step.properties.clone().unwrap_or_default());
    for input in &step.inputs {
        let value = vars.get(&input.from);
        if let (Some(value), Ok(steps)) = (value, path::parse(&input.parameter_key)) {
            path::set(&mut parameters, &steps, value.clone());
        }
    }
    placed(&parameters)
}

/// What the parameters of a step or action that applies one component mean.
pub fn placed(parameters: &Value) -> Result<Placed, RenderError> {
    let text = |key: &str| parameters[key].as_str().unwrap_or_default().to_owned();
    let component = serde_json::from_value(parameters[VALUE].clone()).map_err(|error| {
        let message = format!("the component cannot be read: {error}");
        RenderError::new(Stage::Deploy, Class::InvalidInput, message)
    })?;
    Ok(Placed {
        component,
        target: Target {
            cluster: text("cluster"),
            namespace: text("namespace"),
            replica_key: String::new(),
        },
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::appfile;
    use crate::catalog::Catalog;
    use crate::world::World;

    fn components() -> Value {
        json!([
            {"name": "a", "type": "worker", "properties": {"image": "a"},
                "outputs": [{"name": "x", "valueFrom": "output.metadata.name"}]},
            {"name": "b", "type": "worker", "properties": {"image": "b"}, "dependsOn": ["a"],
                "inputs": [{"from": "x", "parameterKey": "cmd[0]"}, {"from": "x", "parameterKey": "traits[0].properties.y"}]},
        ])
    }

    #[track_caller]
    #[expect(clippy::needless_pass_by_value, reason = "tables are written in place")]
    fn check(spec: Value, expected: Result<Value, &str>) {
        let application =
            serde_json::from_value(json!({"metadata": {"name": "shop"}, "spec": spec})).unwrap();
        let (catalog, world) = (Catalog::default(), World::default());
        let found =
            appfile::parse(&application, &catalog, &world, 1).and_then(|appfile| steps(&appfile));
        match (found, expected) {
            (Ok(steps), Ok(expected)) => {
                let steps: Vec<Value> = steps
                    .iter()
                    .map(|step| {
                        let base = &step.base;
                        let keys: Vec<&str> = base
                            .inputs
                            .iter()
                            .map(|input| input.parameter_key.as_str())
                            .collect();
                        let value = base.properties.as_ref().and_then(|all| all.get(VALUE));
                        json!([
                            base.name,
                            base.depends_on,
                            keys,
                            base.outputs.len(),
                            value.is_some()
                        ])
                    })
                    .collect();
                assert_eq!(json!(steps), expected);
            }
            (Err(error), Err(expected)) => assert!(error.message.contains(expected), "{error}"),
            (found, expected) => panic!("got {found:?}, want {expected:?}"),
        }
    }

    #[test]
    fn a_component_is_a_parameter_of_its_step() {
        let keys = ["value.properties.cmd[0]", "value.traits[0].properties.y"];
        let expected = json!([["a", [], [], 1, true], ["b", ["a"], keys, 0, true]]);
        check(json!({"components": components()}), Ok(expected));
    }

    #[test]
    fn a_workflow_without_steps_gets_those_of_an_application_without_a_workflow() {
        let keys = ["value.properties.cmd[0]", "value.traits[0].properties.y"];
        let expected = json!([["a", [], [], 1, true], ["b", ["a"], keys, 0, true]]);
        for workflow in [json!({"mode": {"steps": "DAG"}}), json!({"steps": []})] {
            let spec = json!({"components": components(), "workflow": workflow});
            check(spec, Ok(expected.clone()));
        }
        // Templates come before what they render.
        let template = json!({"name": "t", "type": "helm-template", "stage": "pre-render"});
        let spec = json!({"components": [components()[0]], "workflow": {"steps": [template]}});
        let expected = json!([["t", [], [], 0, false], ["a", [], [], 1, true]]);
        check(spec, Ok(expected));
    }

    #[test]
    fn steps_may_name_their_component_either_way() {
        let step =
            |key: &str| json!({"name": "s", "type": "apply-component", "properties": {key: "a"}});
        for key in ["component", "name"] {
            let spec = json!({"components": components(), "workflow": {"steps": [step(key)]}});
            check(spec, Ok(json!([["s", [], [], 1, true]])));
        }
    }

    #[test]
    fn components_that_do_not_exist_are_named() {
        let spec = json!({"components": [{"name": "a", "type": "worker", "dependsOn": ["ghost"]}]});
        check(
            spec,
            Err("component ghost not found, which is depended by a"),
        );
        let step =
            json!({"name": "s", "type": "apply-component", "properties": {"component": "z"}});
        let spec = json!({"components": components(), "workflow": {"steps": [step]}});
        check(spec, Err("component z not found"));
    }
}
