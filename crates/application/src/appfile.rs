//! An application with everything that it refers to: definitions, policies, objects, and the steps that deliver it.

use std::collections::BTreeMap;
use std::sync::Arc;

use bellwether_api::oam::names::{
    DEPLOY_STEP, DEPLOY_TO_ENV_STEP, annotation, component_type, policy as policy_type,
};
use bellwether_api::oam::{
    Application, ApplicationComponent, ApplicationPolicy, AppliedApplicationPolicy, Policy,
};
use bellwether_api::workflow::names::step_type;
use bellwether_api::workflow::{StepStage, Workflow, WorkflowMode, WorkflowStep, WorkflowStepBase};
use serde_json::{Value, json};

use crate::catalog::Catalog;
use crate::chart;
use crate::context::{AppContext, namespace};
use crate::default_steps::{default_steps, policy_name, policy_names};
use crate::definition::{Definition, DefinitionKind};
use crate::error::{Class, RenderError, Stage};
use crate::overrides::OverridePolicy;
use crate::referred;
use crate::render::{Component, Trait};
use crate::revision::revision_hash;
use crate::scoped;
use crate::world::World;

/// Steps that the engine carries out without a definition.
pub(crate) const ENGINE_STEPS: [&str; 4] = [
    step_type::SUSPEND,
    step_type::STEP_GROUP,
    step_type::APPLY_COMPONENT,
    step_type::BUILTIN_APPLY_COMPONENT,
];

/// An application with everything that it refers to.
#[derive(Debug, Clone)]
pub struct Appfile<'a> {
    /// What templates see of it.
    pub context: AppContext,
    /// Its components; those that copy objects have the objects as their properties.
    pub components: Vec<ApplicationComponent>,
    /// Its policies by name, also those that it shares with others. Of two with one name the later one counts.
    pub policies: BTreeMap<String, ApplicationPolicy>,
    /// Its policies as they are written, or as other policies changed them.
    pub policies_written: Vec<ApplicationPolicy>,
    /// Custom policies, in order.
    pub custom_policies: Vec<Component>,
    /// The steps that deliver it.
    pub steps: Vec<WorkflowStep>,
    /// How steps, and steps within groups, are ordered.
    pub mode: (WorkflowMode, WorkflowMode),
    /// Definitions that it uses, by kind and type.
    pub definitions: BTreeMap<(DefinitionKind, String), Arc<Definition>>,
    /// Objects that it refers to: policies, a workflow, copied objects.
    pub referred: Vec<Value>,
    /// What policies changed of it before it was parsed.
    pub applied_policies: Vec<AppliedApplicationPolicy>,
    catalog: &'a Catalog,
    world: &'a World,
    auto_update: bool,
}

/// Finds everything that an application refers to. `revision_number` is that of its revision.
pub fn parse<'a>(
    application: &Application,
    catalog: &'a Catalog,
    world: &'a World,
    revision_number: i64,
) -> Result<Appfile<'a>, RenderError> {
    let changed = scoped::apply(application, catalog)?;
    let written = application;
    let application = changed
        .as_ref()
        .map_or(application, |changed| &changed.application);
    let annotations = application.metadata.annotations.as_ref();
    let auto_update = annotations
        .and_then(|all| all.get(annotation::AUTO_UPDATE))
        .is_some_and(|value| value == "true");
    let mut context = AppContext::new(application, revision_number, "");
    context.outside.clone_from(&world.outside);
    let changing = changed.as_ref().map_or(&[][..], |it| &it.definitions);
    if let Some(changed) = &changed {
        context.custom.clone_from(&changed.custom);
    }
    let mut appfile = Appfile {
        context,
        components: application.spec.components.clone(),
        policies: BTreeMap::new(),
        custom_policies: Vec::new(),
        steps: Vec::new(),
        mode: (WorkflowMode::Dag, WorkflowMode::Dag),
        definitions: changing
            .iter()
            .map(|it| ((it.kind, it.type_name.clone()), Arc::clone(it)))
            .collect(),
        policies_written: application.spec.policies.clone(),
        referred: Vec::new(),
        applied_policies: changed
            .as_ref()
            .map(|changed| changed.applied.clone())
            .unwrap_or_default(),
        catalog,
        world,
        auto_update,
    };
    for component in &application.spec.components {
        let found = appfile
            .component(component)
            .map_err(|error| error.at(Stage::Parse))?;
        appfile.remember(&found);
    }
    appfile.load_workflow(application)?;
    appfile.load_policies(application)?;
    appfile.load_objects(&namespace(application))?;
    if appfile.steps.is_empty() {
        appfile.steps = appfile.default_steps(application)?;
    }
    appfile.put_templates_first(application)?;
    let definitions = appfile.definitions.values().map(|definition| &**definition);
    appfile.context.revision_hash = revision_hash(written, definitions, &appfile.referred);
    Ok(appfile)
}

fn invalid(message: String) -> RenderError {
    RenderError::new(Stage::Parse, Class::InvalidInput, message)
}

fn not_found(message: String) -> RenderError {
    RenderError::new(Stage::Parse, Class::NotFound, message)
}

impl<'a> Appfile<'a> {
    /// Whether something from outside is needed to render it: a chart, or the answer of a server.
    pub fn asks_outside(&self) -> bool {
        self.definitions.values().any(|definition| {
            let source = definition.source().unwrap_or_default();
            definition.object_name() == component_type::HELM_CHART
                || (definition.kind == DefinitionKind::Trait && source.contains("processing"))
        })
    }

    /// The same application as another revision.
    #[must_use]
    pub fn as_revision(mut self, number: i64) -> Self {
        self.context.set_revision(number);
        self
    }

    /// What is known of the hub.
    pub fn world(&self) -> &'a World {
        self.world
    }

    /// A component with its definitions.
    pub fn component(&self, spec: &ApplicationComponent) -> Result<Component, RenderError> {
        let name = &spec.name;
        check_properties(&format!("component {name}"), spec.properties.as_ref())?;
        let definition = self
            .find(DefinitionKind::Component, &spec.component_type)
            .ok_or_else(|| {
                let wanted = &spec.component_type;
                self.unknown(DefinitionKind::Component, wanted, &format!(
                    "failed to parseComponents: fetch component/policy type of {name}: load template from component definition [{wanted}] : WorkloadDefinition.core.oam.dev {wanted:?} not found"
                ))
            })?;
        let mut traits = Vec::with_capacity(spec.traits.len());
        for applied in &spec.traits {
            let what = format!("trait {} of component {name}", applied.trait_type);
            check_properties(&what, applied.properties.as_ref())?;
            let definition = self
                .find(DefinitionKind::Trait, &applied.trait_type)
                .ok_or_else(|| {
                    let wanted = &applied.trait_type;
                    self.unknown(DefinitionKind::Trait, wanted, &format!(
                        "failed to parseComponents: component({name}) parse trait({wanted}): trait definition of {wanted} not found"
                    ))
                })?;
            traits.push(Trait {
                properties: applied
                    .properties
                    .clone()
                    .filter(|properties| !properties.is_null()),
                definition,
            });
        }
        Ok(Component {
            spec: spec.clone(),
            definition,
            traits,
        })
    }

    /// What is said of a type that does not exist, with the type that may be meant.
    fn unknown(&self, kind: DefinitionKind, type_name: &str, message: &str) -> RenderError {
        let namespace = &self.context.namespace;
        not_found(match self.catalog.closest(kind, namespace, type_name) {
            Some(meant) => format!("{message}; did you mean {meant}?"),
            None => message.to_owned(),
        })
    }

    fn find(&self, kind: DefinitionKind, type_name: &str) -> Option<Arc<Definition>> {
        self.catalog
            .find(kind, &self.context.namespace, type_name, self.auto_update)
    }

    fn remember(&mut self, component: &Component) {
        let definitions = std::iter::once(&component.definition)
            .chain(component.traits.iter().map(|applied| &applied.definition));
        for definition in definitions {
            let key = (definition.kind, definition.type_name.clone());
            self.definitions.insert(key, definition.clone());
        }
    }

    fn load_workflow(&mut self, application: &Application) -> Result<(), RenderError> {
        let Some(workflow) = &application.spec.workflow else {
            return Ok(());
        };
        let mut mode = workflow.mode.clone();
        self.steps.clone_from(&workflow.steps);
        if !workflow.workflow_ref.is_empty() {
            let name = &workflow.workflow_ref;
            let group = bellwether_api::oam::GROUP;
            let found = self
                .world
                .object(group, "Workflow", &self.context.namespace, name)
                .ok_or_else(|| {
                    not_found(format!(
                        "failed to parseWorkflowSteps: Workflow.core.oam.dev {name:?} not found"
                    ))
                })?;
            if !workflow.steps.is_empty() {
                return Err(invalid(
                    "workflow: steps and ref exclude each other".to_owned(),
                ));
            }
            let read: Workflow = serde_json::from_value(found.clone())
                .map_err(|error| invalid(format!("Workflow {name}: {error}")))?;
            self.steps = read.steps;
            mode = mode.or(read.mode);
            self.referred.push(found.clone());
        }
        let mode = mode.unwrap_or_default();
        self.mode = (
            mode.steps.unwrap_or(WorkflowMode::StepByStep),
            mode.sub_steps.unwrap_or(WorkflowMode::Dag),
        );
        name_steps(&mut self.steps);
        for step in self.steps.clone() {
            for base in std::iter::once(&step.base).chain(&step.sub_steps) {
                self.check_step(base)?;
            }
        }
        Ok(())
    }

    /// Steps before rendering come first, and all others wait for them. If there are no others, components are delivered as
    /// without a workflow.
    fn put_templates_first(&mut self, application: &Application) -> Result<(), RenderError> {
        let is_first = |step: &WorkflowStep| step.base.stage == Some(StepStage::PreRender);
        let (first, mut others): (Vec<_>, Vec<_>) = std::mem::take(&mut self.steps)
            .into_iter()
            .partition(is_first);
        if !first.is_empty() && others.is_empty() {
            others = self.default_steps(application)?;
        }
        if self.mode.0 == WorkflowMode::Dag {
            for step in &mut others {
                let names = first.iter().map(|step| step.base.name.clone());
                step.base.depends_on.extend(names);
            }
        }
        self.steps = first;
        self.steps.append(&mut others);
        Ok(())
    }

    /// The steps of an application whose workflow has none.
    fn default_steps(
        &mut self,
        application: &Application,
    ) -> Result<Vec<WorkflowStep>, RenderError> {
        let steps = default_steps(&application.spec.policies, &self.components)?;
        let to_env = |step: &&WorkflowStep| step.base.step_type == DEPLOY_TO_ENV_STEP;
        if let Some(step) = steps.iter().find(to_env) {
            self.check_step(&step.base)?;
        }
        Ok(steps)
    }

    fn check_step(&mut self, step: &WorkflowStepBase) -> Result<(), RenderError> {
        let step_type = step.step_type.as_str();
        let found = self.find(DefinitionKind::WorkflowStep, step_type);
        match found {
            Some(definition) => {
                self.definitions
                    .insert((definition.kind, definition.type_name.clone()), definition);
                Ok(())
            }
            None if ENGINE_STEPS.contains(&step_type) || step_type == DEPLOY_STEP => Ok(()),
            None => Err(self.unknown(DefinitionKind::WorkflowStep, step_type, &format!(
                "failed to parseWorkflowSteps: failed to get workflow step definition {step_type}: WorkflowStepDefinition.core.oam.dev {step_type:?} not found"
            ))),
        }
    }

    fn load_policies(&mut self, application: &Application) -> Result<(), RenderError> {
        for (index, policy) in application.spec.policies.iter().enumerate() {
            let mut policy = policy.clone();
            policy.name = policy_name(&policy, index);
            let what = format!("policy {}", policy.name);
            if policy.policy_type != policy_type::DEBUG
                && policy.properties.as_ref().is_none_or(Value::is_null)
            {
                return Err(invalid(format!(
                    "{what} of type {} must not have empty properties",
                    policy.policy_type
                )));
            }
            check_properties(&what, policy.properties.as_ref())?;
            if !policy_type::BUILT_IN.contains(&policy.policy_type.as_str()) {
                let custom = self.custom_policy(&policy)?;
                self.remember(&custom);
                if !scoped::is_scoped(&custom.definition) {
                    self.custom_policies.push(custom);
                }
            }
            self.policies.insert(policy.name.clone(), policy);
        }
        self.load_shared_policies()?;
        let overrides: Vec<ApplicationPolicy> = self
            .policies
            .values()
            .filter(|policy| policy.policy_type == policy_type::OVERRIDE)
            .cloned()
            .collect();
        for policy in overrides {
            self.check_override(&policy)?;
        }
        Ok(())
    }

    fn custom_policy(&self, policy: &ApplicationPolicy) -> Result<Component, RenderError> {
        let definition = self
            .find(DefinitionKind::Policy, &policy.policy_type)
            .ok_or_else(|| {
                let (name, wanted) = (&policy.name, &policy.policy_type);
                self.unknown(DefinitionKind::Policy, wanted, &format!(
                    "failed to parsePolicies: fetch component/policy type of {name}: load template from policy definition [{wanted}] : PolicyDefinition.core.oam.dev {wanted:?} not found"
                ))
            })?;
        Ok(Component {
            spec: ApplicationComponent {
                name: policy.name.clone(),
                component_type: policy.policy_type.clone(),
                properties: policy.properties.clone(),
                ..ApplicationComponent::default()
            },
            definition,
            traits: Vec::new(),
        })
    }

    /// Policies that deploy steps name and the application does not have are objects of the namespace.
    fn load_shared_policies(&mut self) -> Result<(), RenderError> {
        let steps = self
            .steps
            .iter()
            .flat_map(|step| std::iter::once(&step.base).chain(&step.sub_steps));
        let mut names: Vec<String> = Vec::new();
        for step in steps.filter(|step| step.step_type == DEPLOY_STEP) {
            names.extend(policy_names(step)?);
        }
        for name in names {
            if self.policies.contains_key(&name) {
                continue;
            }
            let group = bellwether_api::oam::GROUP;
            let found = self
                .world
                .object(group, "Policy", &self.context.namespace, &name)
                .ok_or_else(|| {
                    not_found(format!(
                        "failed to parsePolicies: external policy {name} not found"
                    ))
                })?;
            let read: Policy = serde_json::from_value(found.clone())
                .map_err(|error| invalid(format!("Policy {name}: {error}")))?;
            self.referred.push(found.clone());
            let policy = ApplicationPolicy {
                name: name.clone(),
                policy_type: read.policy_type,
                properties: read.properties,
                ..ApplicationPolicy::default()
            };
            self.policies.insert(name, policy);
        }
        Ok(())
    }

    /// Types that an override brings have to exist; its fields are checked when it is used.
    fn check_override(&mut self, policy: &ApplicationPolicy) -> Result<(), RenderError> {
        let properties = policy.properties.clone().unwrap_or_default();
        let Ok(read) = serde_json::from_value::<OverridePolicy>(properties) else {
            return Ok(());
        };
        let components = read
            .components
            .iter()
            .map(|patch| (DefinitionKind::Component, &patch.component_type));
        let traits = read.components.iter().flat_map(|patch| &patch.traits);
        let traits = traits.map(|patch| (DefinitionKind::Trait, &patch.trait_type));
        for (kind, type_name) in components
            .chain(traits)
            .filter(|(_, name)| !name.is_empty())
        {
            let definition = self.find(kind, type_name).ok_or_else(|| {
                let (name, object) = (&policy.name, kind.object_kind());
                let what = if kind == DefinitionKind::Trait {
                    "trait"
                } else {
                    "component"
                };
                self.unknown(kind, type_name, &format!(
                    "failed to parsePolicies: failed to get {what} definition {type_name} for override policy {name}: {object}.core.oam.dev {type_name:?} not found"
                ))
            })?;
            self.definitions
                .insert((kind, definition.type_name.clone()), definition);
        }
        Ok(())
    }

    /// Components that copy objects get the objects.
    fn load_objects(&mut self, namespace: &str) -> Result<(), RenderError> {
        for component in &mut self.components {
            if component.component_type == component_type::REF_OBJECTS {
                let objects = referred::load(
                    &component.name,
                    namespace,
                    component.properties.as_ref(),
                    self.world,
                )?;
                self.referred.extend(objects.iter().cloned());
                component.properties = Some(json!({"objects": objects}));
            }
            if let (component_type::HELM_CHART, Some(outside)) =
                (component.component_type.as_str(), &self.world.outside)
            {
                let (name, properties) = (&component.name, component.properties.as_ref());
                let record = chart::record(name, namespace, properties, outside);
                self.referred
                    .push(record.map_err(|error| error.at(Stage::Parse))?);
            }
        }
        Ok(())
    }
}

/// Gives steps without a name one.
pub fn name_steps(steps: &mut [WorkflowStep]) {
    for (index, step) in steps.iter_mut().enumerate() {
        if step.base.name.is_empty() {
            step.base.name = format!("step-{index}");
        }
        for (inner, sub_step) in step.sub_steps.iter_mut().enumerate() {
            if sub_step.name.is_empty() {
                sub_step.name = format!("step-{index}-{inner}");
            }
        }
    }
}

fn check_properties(what: &str, properties: Option<&Value>) -> Result<(), RenderError> {
    match properties {
        None | Some(Value::Null | Value::Object(_)) => Ok(()),
        Some(other) => Err(invalid(format!(
            "{what}: properties have to be an object, not {}",
            bellwether_json::path::type_name(other)
        ))),
    }
}
