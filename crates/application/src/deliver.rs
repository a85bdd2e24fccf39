//! What the steps of an application deliver, as if nothing had to be waited for.
//!
//! [`place`] and [`placed_component`] say what a step that applies components means; [`deliver`] goes through all steps.
//! Values that components hand on come from what is rendered.

use std::collections::BTreeMap;

use bellwether_api::oam::names::{DEPLOY_STEP, DEPLOY_TO_ENV_STEP, policy as policy_type};
use bellwether_api::oam::{ApplicationComponent, ApplicationPolicy};
use bellwether_api::workflow::names::step_type;
use bellwether_api::workflow::{WorkflowMode, WorkflowStepBase};
use bellwether_cue::host::{Budget, Template};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::appfile::Appfile;
use crate::context::Target;
use crate::decode::decode;
use crate::default_steps::policy_names;
use crate::environment::environment_of;
use crate::error::{Class, RenderError, Stage};
use crate::label::{Manifest, complete, complete_policy};
use crate::overrides::{self, OverridePolicy};
use crate::path;
use crate::placement::{ReplicationPolicy, TopologyPolicy, targets};
use crate::render::{Mode, Rendered, render};

/// A component and where it goes.
#[derive(Debug, Clone)]
pub struct Placed {
    /// The component, after overrides.
    pub component: ApplicationComponent,
    /// Where it goes.
    pub target: Target,
}

/// A component that is rendered.
#[derive(Debug, Clone)]
pub struct Delivered {
    /// The component and where it goes.
    pub placed: Placed,
    /// The type of the component as its labels have it.
    pub component_type: String,
    /// Whether a trait applies the workload itself.
    pub skip_workload: bool,
    /// Its objects.
    pub manifests: Vec<Manifest>,
}

/// What the steps of an application deliver.
#[derive(Debug, Default)]
pub struct Delivery {
    /// Objects of custom policies.
    pub policies: Vec<Manifest>,
    /// Components, in the order in which steps apply them.
    pub components: Vec<Delivered>,
    /// Steps that apply no components, or wait for something that never comes.
    pub not_executed: Vec<String>,
}

/// Renders custom policies.
pub fn render_policies(appfile: &Appfile<'_>) -> Result<Vec<Manifest>, RenderError> {
    let mut manifests = Vec::new();
    for policy in &appfile.custom_policies {
        let version = &appfile.world().hub_version;
        let rendered = render(
            policy,
            &appfile.context,
            &Target::default(),
            version,
            Mode::Objects,
        )
        .map_err(|mut error| {
            error.message = error.message.replacen("component", "policy", 1);
            error.at(Stage::Policy)
        })?;
        manifests.extend(complete_policy(
            rendered,
            &policy.spec.name,
            &appfile.context,
        ));
    }
    Ok(manifests)
}

/// Renders a component where it goes.
pub fn render_placed(appfile: &Appfile<'_>, placed: &Placed) -> Result<Delivered, RenderError> {
    render_both(appfile, placed).map(|(delivered, _)| delivered)
}

fn render_both(
    appfile: &Appfile<'_>,
    placed: &Placed,
) -> Result<(Delivered, Rendered), RenderError> {
    let component = appfile
        .component(&placed.component)
        .map_err(|error| error.at(Stage::Render))?;
    let version = appfile.world().version(placed.target.cluster_name());
    let rendered = render(
        &component,
        &appfile.context,
        &placed.target,
        version,
        Mode::Objects,
    )?;
    let delivered = Delivered {
        placed: placed.clone(),
        component_type: component.definition.type_name.clone(),
        skip_workload: rendered.skip_workload,
        manifests: complete(
            rendered.clone(),
            &component,
            &appfile.context,
            &placed.target,
        ),
    };
    Ok((delivered, rendered))
}

/// What a step that applies one component means.
pub fn placed_component(
    appfile: &Appfile<'_>,
    step: &WorkflowStepBase,
) -> Result<Placed, RenderError> {
    let property = |name: &str| {
        let value = step
            .properties
            .as_ref()
            .and_then(|properties| properties.get(name));
        value.and_then(Value::as_str).unwrap_or_default().to_owned()
    };
    let name = property("component");
    let component = appfile
        .components
        .iter()
        .find(|component| component.name == name)
        .ok_or_else(|| {
            let message = format!("step {}: there is no component {name:?}", step.name);
            RenderError::new(Stage::Render, Class::NotFound, message)
        })?;
    Ok(Placed {
        component: component.clone(),
        target: Target {
            cluster: property("cluster"),
            namespace: property("namespace"),
            replica_key: String::new(),
        },
    })
}

/// What a step that deploys components by policies means; `None` if it is another step.
pub fn placed_by(
    appfile: &Appfile<'_>,
    step: &WorkflowStepBase,
) -> Result<Option<Vec<Placed>>, RenderError> {
    match step.step_type.as_str() {
        DEPLOY_STEP => place(appfile, &policy_names(step)?).map(Some),
        DEPLOY_TO_ENV_STEP => {
            let environment = environment_of(step, &appfile.policies)?;
            place_with(appfile, &[], &environment.policies()).map(Some)
        }
        _ => Ok(None),
    }
}

/// What a deploy step with these policies means: which components go where.
pub fn place(appfile: &Appfile<'_>, policies: &[String]) -> Result<Vec<Placed>, RenderError> {
    place_with(appfile, policies, &[])
}

/// What a deploy step means with policies of the application, and after them policies of its own.
pub fn place_with(
    appfile: &Appfile<'_>,
    policies: &[String],
    own: &[ApplicationPolicy],
) -> Result<Vec<Placed>, RenderError> {
    let mut components = appfile.components.clone();
    let mut topologies: Vec<TopologyPolicy> = Vec::new();
    let mut replications: Vec<ReplicationPolicy> = Vec::new();
    let mut chosen: Vec<&ApplicationPolicy> = Vec::new();
    for name in policies {
        let Some(policy) = appfile.policies.get(name) else {
            let message = format!("deploy: there is no policy {name:?}");
            return Err(RenderError::new(Stage::Deploy, Class::NotFound, message));
        };
        chosen.push(policy);
    }
    for policy in chosen.into_iter().chain(own) {
        match policy.policy_type.as_str() {
            policy_type::TOPOLOGY => topologies.push(properties(policy)?),
            policy_type::OVERRIDE => {
                components = overrides::apply(&components, &properties::<OverridePolicy>(policy)?);
            }
            policy_type::REPLICATION => replications.push(properties(policy)?),
            _ => {}
        }
    }
    let targets = targets(&topologies, appfile.world())?;
    let copies = replicate(components, &replications)?;
    let mut placed = Vec::new();
    for (component, replica_key) in copies {
        for target in &targets {
            placed.push(Placed {
                component: component.clone(),
                target: Target {
                    replica_key: replica_key.clone(),
                    ..target.clone()
                },
            });
        }
    }
    Ok(placed)
}

/// The properties of a built-in policy; fields that it does not have are an error.
fn properties<T: DeserializeOwned>(policy: &ApplicationPolicy) -> Result<T, RenderError> {
    let properties = policy.properties.clone().unwrap_or_else(|| json!({}));
    decode(&properties).map_err(|problem| {
        let message = format!(
            "policy {} of type {}: {problem}",
            policy.name, policy.policy_type
        );
        RenderError::new(Stage::Deploy, Class::InvalidInput, message)
    })
}

/// Components with the keys of their copies; those with copies come last.
fn replicate(
    components: Vec<ApplicationComponent>,
    replications: &[ReplicationPolicy],
) -> Result<Vec<(ApplicationComponent, String)>, RenderError> {
    let mut all: Vec<(ApplicationComponent, String)> = components
        .into_iter()
        .map(|component| (component, String::new()))
        .collect();
    for replication in replications {
        let is_selected = |component: &ApplicationComponent| {
            replication.selector.is_empty()
                || replication
                    .selector
                    .iter()
                    .any(|pattern| overrides::matches(pattern, &component.name))
        };
        let (selected, rest): (Vec<_>, Vec<_>) = all
            .into_iter()
            .partition(|(component, _)| is_selected(component));
        if selected.is_empty() {
            let message = "replication: no component has one of the names in selector".to_owned();
            return Err(RenderError::new(
                Stage::Deploy,
                Class::InvalidInput,
                message,
            ));
        }
        all = rest;
        for (component, _) in selected {
            all.extend(
                replication
                    .keys
                    .iter()
                    .map(|key| (component.clone(), key.clone())),
            );
        }
    }
    Ok(all)
}

/// Values that components hand on, by name.
type Values = BTreeMap<String, Value>;

struct Walk<'a, 'b> {
    appfile: &'a Appfile<'b>,
    values: Values,
    delivery: Delivery,
}

/// Goes through all steps.
pub fn deliver(appfile: &Appfile<'_>) -> Result<Delivery, RenderError> {
    let mut walk = Walk {
        appfile,
        values: Values::new(),
        delivery: Delivery {
            policies: render_policies(appfile)?,
            ..Delivery::default()
        },
    };
    let mut waiting: Vec<(&WorkflowStepBase, Vec<String>)> = Vec::new();
    let mut previous: Option<&str> = None;
    for step in &appfile.steps {
        let mut needs = step.base.depends_on.clone();
        if appfile.mode.0 == WorkflowMode::StepByStep {
            needs.extend(previous.map(str::to_owned));
        }
        previous = Some(&step.base.name);
        for sub_step in &step.sub_steps {
            let needs = needs.iter().chain(&sub_step.depends_on).cloned().collect();
            waiting.push((sub_step, needs));
        }
        if step.sub_steps.is_empty() {
            waiting.push((&step.base, needs));
        }
    }
    walk.check_dependencies(&waiting)?;
    walk.run(waiting)?;
    Ok(walk.delivery)
}

/// Everything that an application is rendered to: what its steps apply, and components that steps hand to somebody else, as they would be
/// applied. A component that cannot be rendered yet, because it waits for values, is left out.
pub fn everything(appfile: &Appfile<'_>) -> Delivery {
    let mut delivery = deliver(appfile).unwrap_or_default();
    for component in &appfile.components {
        let mut known = delivery.components.iter();
        if known.any(|known| known.placed.component.name == component.name) {
            continue;
        }
        let placed = Placed {
            component: component.clone(),
            target: Target::default(),
        };
        if let Ok(delivered) = render_placed(appfile, &placed) {
            delivery.components.push(delivered);
        }
    }
    delivery
}

impl Walk<'_, '_> {
    /// A component that others depend on has to exist.
    fn check_dependencies(
        &self,
        steps: &[(&WorkflowStepBase, Vec<String>)],
    ) -> Result<(), RenderError> {
        for (step, _) in steps.iter().filter(|(step, _)| is_apply(step)) {
            for needed in &step.depends_on {
                let is_step = steps.iter().any(|(other, _)| other.name == *needed);
                let is_component = self
                    .appfile
                    .components
                    .iter()
                    .any(|component| component.name == *needed);
                if !is_step && !is_component {
                    let message = format!(
                        "component {} depends on component {needed:?}, which does not exist",
                        step.name
                    );
                    return Err(RenderError::new(Stage::Render, Class::NotFound, message));
                }
            }
        }
        Ok(())
    }

    /// Runs steps as soon as what they need is done, until nothing more can run.
    fn run(
        &mut self,
        mut waiting: Vec<(&WorkflowStepBase, Vec<String>)>,
    ) -> Result<(), RenderError> {
        let mut done: Vec<&str> = Vec::new();
        let groups: Vec<&str> = self
            .appfile
            .steps
            .iter()
            .filter(|step| !step.sub_steps.is_empty())
            .map(|step| step.base.name.as_str())
            .collect();
        loop {
            let mut progress = false;
            let mut rest = Vec::new();
            for (step, needs) in waiting {
                let is_ready = needs
                    .iter()
                    .all(|need| done.contains(&need.as_str()) || groups.contains(&need.as_str()));
                if is_ready && self.run_step(step)? {
                    done.push(&step.name);
                    progress = true;
                } else {
                    rest.push((step, needs));
                }
            }
            waiting = rest;
            if !progress || waiting.is_empty() {
                break;
            }
        }
        for (step, _) in waiting {
            let entry = format!(
                "{} {}: inputs or dependsOn not satisfied",
                step.step_type, step.name
            );
            self.delivery.not_executed.push(entry);
        }
        Ok(())
    }

    /// Carries a step out; false if a value that it needs is not there yet.
    fn run_step(&mut self, step: &WorkflowStepBase) -> Result<bool, RenderError> {
        if let Some(placed) = placed_by(self.appfile, step)? {
            self.deploy(placed)?;
        } else if is_apply(step) {
            let mut placed = placed_component(self.appfile, step)?;
            if !self.fill_inputs(&mut placed.component, false) {
                return Ok(false);
            }
            let rendered = self.apply(&placed)?;
            self.collect_values(&step.outputs, &rendered);
        } else {
            self.delivery
                .not_executed
                .push(format!("{} {}", step.step_type, step.name));
        }
        Ok(true)
    }

    fn deploy(&mut self, mut waiting: Vec<Placed>) -> Result<(), RenderError> {
        loop {
            let mut rest = Vec::new();
            let before = waiting.len();
            for mut placed in waiting {
                if self.fill_inputs(&mut placed.component, true) {
                    self.apply(&placed)
                        .map_err(|error| error.at(Stage::Deploy))?;
                } else {
                    rest.push(placed);
                }
            }
            waiting = rest;
            if waiting.is_empty() || waiting.len() == before {
                break;
            }
        }
        for placed in waiting {
            let entry = format!("component {}: inputs not satisfied", placed.component.name);
            self.delivery.not_executed.push(entry);
        }
        Ok(())
    }

    fn apply(&mut self, placed: &Placed) -> Result<Rendered, RenderError> {
        let (delivered, rendered) = render_both(self.appfile, placed)?;
        self.delivery.components.push(delivered);
        self.collect_values(&placed.component.outputs, &rendered);
        Ok(rendered)
    }

    /// Puts values of other components into the parameters; false if one is not there yet.
    fn fill_inputs(&self, component: &mut ApplicationComponent, in_deploy: bool) -> bool {
        let inputs = component.inputs.clone();
        for input in inputs {
            let Some(value) = self.values.get(&input.from) else {
                return false;
            };
            fill_input(component, &input.parameter_key, value.clone(), in_deploy);
        }
        true
    }

    fn collect_values(
        &mut self,
        outputs: &[bellwether_api::workflow::StepOutput],
        rendered: &Rendered,
    ) {
        for output in outputs {
            if let Some(value) = rendered_value(&output.value_from, rendered) {
                self.values.insert(output.name.clone(), value);
            }
        }
    }
}

fn is_apply(step: &WorkflowStepBase) -> bool {
    [
        step_type::APPLY_COMPONENT,
        step_type::BUILTIN_APPLY_COMPONENT,
    ]
    .contains(&step.step_type.as_str())
}

/// Puts a value where an input says: into the properties, or into the traits. In a deploy step the place is
/// always below the properties.
pub fn fill_input(component: &mut ApplicationComponent, key: &str, value: Value, in_deploy: bool) {
    if key.is_empty() {
        return;
    }
    let is_whole = !in_deploy && (key.starts_with("properties.") || key.starts_with("traits["));
    let place = if is_whole {
        key.to_owned()
    } else {
        format!("properties.{key}")
    };
    let Ok(steps) = path::parse(&place) else {
        return;
    };
    let mut whole = json!({
        "properties": component.properties.clone().unwrap_or_else(|| json!({})),
        "traits": component.traits,
    });
    path::set(&mut whole, &steps, value);
    component.properties = Some(whole["properties"].take());
    if let Ok(traits) = serde_json::from_value(whole["traits"].take()) {
        component.traits = traits;
    }
}

/// The value of an expression over what a component was rendered to.
fn rendered_value(expression: &str, rendered: &Rendered) -> Option<Value> {
    let outputs = rendered
        .outputs
        .iter()
        .map(|output| (output.resource.clone(), output.object.clone()));
    let outputs = Value::Object(outputs.collect());
    let none = json!({});
    let workload = rendered.workload.as_ref().unwrap_or(&none);
    output_value(expression, workload, &outputs)
}

/// The value of an expression over the workload and the further objects of a component.
pub fn output_value(expression: &str, workload: &Value, outputs: &Value) -> Option<Value> {
    let source = format!("value: {expression}\noutput: _\noutputs: _\n");
    let template = Template::compile(&source).ok()?;
    let mut evaluation = template.evaluate(Budget::default());
    evaluation.fill_json(&["output"], workload);
    evaluation.fill_json(&["outputs"], outputs);
    let root = evaluation.root();
    let value = evaluation.lookup(root, "value")?;
    evaluation.export_json(value).ok()
}
