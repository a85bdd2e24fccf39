//! Fetches what an application refers to, when it is written.
//!
//! Rules can ask for objects by name, not for lists: what would take a list is left to the controller, which reports it in
//! conditions.

use std::collections::{BTreeSet, HashMap};
use std::sync::{Arc, Mutex, PoisonError};

use bellwether_api::admission::{Attributes, Facts, ObjectId};
use bellwether_api::oam::names::{DEPLOY_STEP, component_type, policy as policy_type};
use bellwether_api::oam::{
    Application, ApplicationComponent, DefinitionRevision, GROUP, Policy, WorkloadDefinition,
};
use bellwether_api::workflow::names::SYSTEM_NAMESPACE;
use bellwether_api::workflow::{Workflow, WorkflowStep};
use serde_json::Value;

use super::Violation;
use crate::catalog::{Catalog, revised};
use crate::chart;
use crate::context::namespace;
use crate::default_steps::policy_names;
use crate::definition::{Definition, DefinitionKind};
use crate::overrides::OverridePolicy;
use crate::referred::{self, Place, Reference};
use crate::world::{ClusterVersion, ServedKind, World};

/// How many compiled definitions are kept.
const CAPACITY: usize = 1024;

/// Definitions that were compiled before, by the version of their object.
#[derive(Debug, Default)]
pub(super) struct Lookup {
    compiled: Mutex<HashMap<(DefinitionKind, String, String), Arc<Definition>>>,
}

/// An application with what it refers to.
pub(super) struct Found {
    /// Objects that a component copies, and that the sender of the request may not read.
    pub(super) forbidden: Vec<Violation>,
    /// The application, without components whose objects cannot be asked for by name.
    pub(super) application: Application,
    pub(super) catalog: Catalog,
    pub(super) world: World,
}

impl Lookup {
    /// Fetches what an application refers to.
    pub(super) fn of(&self, application: &Application, facts: &dyn Facts) -> Found {
        let namespace = namespace(application);
        let mut objects = Vec::new();
        let mut steps: Vec<WorkflowStep> = Vec::new();
        if let Some(workflow) = &application.spec.workflow {
            steps.clone_from(&workflow.steps);
            let found = get::<Workflow>(facts, &namespace, &workflow.workflow_ref);
            if let Some(found) = found {
                let read = serde_json::from_value::<Workflow>(found.clone());
                steps.extend(read.map(|read| read.steps).unwrap_or_default());
                objects.push(found);
            }
        }
        objects.extend(shared_policies(application, &steps, &namespace, facts));
        let mut checked = application.clone();
        let mut copies = Copies::default();
        checked
            .spec
            .components
            .retain(|component| match component.component_type.as_str() {
                component_type::REF_OBJECTS => copies.fetch(component, &namespace, facts),
                component_type::HELM_CHART => {
                    copies.check_values(component, &namespace, facts);
                    true
                }
                _ => true,
            });
        objects.extend(copies.objects);
        let mut world = World::new(ClusterVersion::default(), objects);
        world.kinds.extend(copies.kinds);
        let mut catalog = Catalog::default();
        for (kind, type_name) in types(application, &steps) {
            self.fetch(&mut catalog, kind, &type_name, &namespace, facts);
        }
        Found {
            forbidden: copies.forbidden,
            application: checked,
            catalog,
            world,
        }
    }

    /// Fetches a definition, of the namespace and of the system.
    fn fetch(
        &self,
        catalog: &mut Catalog,
        kind: DefinitionKind,
        type_name: &str,
        own: &str,
        facts: &dyn Facts,
    ) {
        for namespace in [own, SYSTEM_NAMESPACE] {
            if let Some((name, version)) = type_name.split_once('@') {
                let revision = format!("{name}-{version}");
                let object = get::<DefinitionRevision>(facts, namespace, &revision);
                let found = object.as_ref().and_then(revised);
                if let (Some(object), Some((kind, definition))) = (&object, found) {
                    let definition = self.compiled(kind, &revision, object, definition);
                    catalog.insert_revision(namespace.to_owned(), definition);
                    continue;
                }
            }
            // A definition of the hub takes the place of the built-in one, whose first version it is not.
            let type_name = type_name
                .split_once('@')
                .map_or(type_name, |(name, _)| name);
            let id = ObjectId {
                group: GROUP,
                version: "v1beta1",
                resource: kind.plural(),
                namespace,
                name: type_name,
            };
            if let Some(object) = facts.get(&id) {
                let definition = self.compiled(kind, type_name, &object, &object);
                catalog.insert_definition(namespace.to_owned(), definition);
            } else if kind == DefinitionKind::Component
                && let Some(workload) = get::<WorkloadDefinition>(facts, namespace, type_name)
            {
                catalog.insert(workload);
            }
        }
    }

    /// A definition, which is compiled once for each version of its object.
    fn compiled(
        &self,
        kind: DefinitionKind,
        type_name: &str,
        object: &Value,
        definition: &Value,
    ) -> Arc<Definition> {
        let version = format!(
            "{} {}",
            object["metadata"]["uid"], object["metadata"]["resourceVersion"]
        );
        let mut compiled = self.compiled.lock().unwrap_or_else(PoisonError::into_inner);
        if compiled.len() >= CAPACITY {
            compiled.clear();
        }
        let known = compiled
            .entry((kind, type_name.to_owned(), version))
            .or_insert_with(|| {
                let mut definition = definition.clone();
                definition["kind"] = kind.object_kind().into();
                Definition::new(kind, type_name, definition)
            });
        Arc::clone(known)
    }
}

/// An object of a kind of ours, with its kind; none if the name is empty.
fn get<K: bellwether_api::Kind>(facts: &dyn Facts, namespace: &str, name: &str) -> Option<Value> {
    if name.is_empty() {
        return None;
    }
    let id = ObjectId {
        group: K::NAMES.group,
        version: K::NAMES.version,
        resource: K::NAMES.plural,
        namespace,
        name,
    };
    let mut object = facts.get(&id)?;
    object["apiVersion"] = K::NAMES.api_version().into();
    object["kind"] = K::NAMES.kind.into();
    Some(object)
}

/// Policies that deploy steps name and the application does not have.
fn shared_policies(
    application: &Application,
    steps: &[WorkflowStep],
    namespace: &str,
    facts: &dyn Facts,
) -> Vec<Value> {
    let own: BTreeSet<&str> = application
        .spec
        .policies
        .iter()
        .map(|policy| policy.name.as_str())
        .collect();
    let steps = steps
        .iter()
        .flat_map(|step| std::iter::once(&step.base).chain(&step.sub_steps));
    let names: BTreeSet<String> = steps
        .filter(|step| step.step_type == DEPLOY_STEP)
        .flat_map(|step| policy_names(step).unwrap_or_default())
        .filter(|name| !own.contains(name.as_str()))
        .collect();
    names
        .iter()
        .filter_map(|name| get::<Policy>(facts, namespace, name))
        .collect()
}

/// Objects that components copy.
#[derive(Default)]
struct Copies {
    objects: Vec<Value>,
    /// Kinds of the objects that are not built in, and others.
    kinds: Vec<ServedKind>,
    forbidden: Vec<Violation>,
}

impl Copies {
    /// Fetches the objects that a component copies; false if it takes more than names to find them. The hub copies them with its
    /// own rights, so the sender has to have the right to read them.
    fn fetch(&mut self, component: &ApplicationComponent, own: &str, facts: &dyn Facts) -> bool {
        let Ok(references) = referred::references(&component.name, component.properties.as_ref())
        else {
            return true;
        };
        // What is at an address is fetched by the controller.
        let mut by_name = references.urls.is_empty();
        for reference in &references.objects {
            // What is wrong with a reference is said when the application is parsed.
            let Ok(built_in) = referred::built_in(reference) else {
                return true;
            };
            let known = built_in.or_else(|| defined(reference, facts));
            by_name &= reference.label_selector.is_empty() && known.is_some();
            let known = known.unwrap_or_else(|| named(reference));
            if let Some(object) = self.fetch_one(component, reference, &known, own, facts) {
                self.objects.push(object);
            }
            self.kinds.push(known);
        }
        by_name
    }

    /// Fetches the object that a reference names.
    fn fetch_one(
        &mut self,
        component: &ApplicationComponent,
        reference: &Reference,
        known: &ServedKind,
        own: &str,
        facts: &dyn Facts,
    ) -> Option<Value> {
        let Place { namespace, name } = reference.place(known, &component.name, own);
        let wanted = Attributes {
            verb: if name.is_empty() { "list" } else { "get" },
            group: &known.group,
            resource: &known.plural,
            name,
            namespace,
            ..Attributes::default()
        };
        let what = format!("copy {} {namespace}/{name}", known.kind);
        self.check_right(component, &wanted, &what, facts);
        if name.is_empty() || known.version.is_empty() {
            return None;
        }
        let id = ObjectId {
            group: &known.group,
            version: &known.version,
            resource: &known.plural,
            namespace,
            name,
        };
        let mut object = facts.get(&id)?;
        object["apiVersion"] = known.api_version().into();
        object["kind"] = known.kind.as_str().into();
        Some(object)
    }

    /// The hub reads values of charts with its own rights, so the sender has to have the right to read them.
    fn check_values(&mut self, component: &ApplicationComponent, own: &str, facts: &dyn Facts) {
        for from in chart::values_references(component.properties.as_ref()) {
            let resource = match from.kind.as_str() {
                "ConfigMap" => "configmaps",
                "Secret" => "secrets",
                // The definition refuses other kinds.
                _ => continue,
            };
            let wanted = Attributes {
                verb: "get",
                resource,
                name: &from.name,
                namespace: own,
                ..Attributes::default()
            };
            let what = format!("take values of {} {own}/{}", from.kind, from.name);
            self.check_right(component, &wanted, &what, facts);
        }
        if let Some(name) = chart::secret_of(component.properties.as_ref()) {
            let wanted = Attributes {
                verb: "get",
                resource: "secrets",
                name,
                namespace: own,
                ..Attributes::default()
            };
            let what = format!("use the credentials in Secret {own}/{name}");
            self.check_right(component, &wanted, &what, facts);
        }
    }

    fn check_right(
        &mut self,
        component: &ApplicationComponent,
        wanted: &Attributes<'_>,
        what: &str,
        facts: &dyn Facts,
    ) {
        if !facts.allows(wanted) {
            self.forbidden.push(Violation {
                field: format!("spec.components[{}].properties", component.name),
                detail: format!("to {what} you need the right to {} it", wanted.verb),
                is_missing: false,
            });
        }
    }
}

/// The kind that a CustomResourceDefinition defines, if a reference names it by its plural.
fn defined(reference: &Reference, facts: &dyn Facts) -> Option<ServedKind> {
    let name = format!("{}.{}", reference.resource.to_lowercase(), reference.group);
    let mut definition = facts.get(&ObjectId {
        group: "apiextensions.k8s.io",
        version: "v1",
        resource: "customresourcedefinitions",
        namespace: "",
        name: &name,
    })?;
    definition["apiVersion"] = "apiextensions.k8s.io/v1".into();
    definition["kind"] = "CustomResourceDefinition".into();
    ServedKind::of_definition(&definition)
}

/// A kind of which only a name is known: enough to ask for rights, which are granted by plural.
fn named(reference: &Reference) -> ServedKind {
    let name = reference.resource.to_lowercase();
    ServedKind {
        group: reference.group.clone(),
        kind: name.clone(),
        plural: name,
        namespaced: true,
        ..ServedKind::default()
    }
}

/// All types that an application names.
fn types(application: &Application, steps: &[WorkflowStep]) -> BTreeSet<(DefinitionKind, String)> {
    let mut types = BTreeSet::new();
    let mut add = |kind, name: &str| {
        if !name.is_empty() {
            types.insert((kind, name.to_owned()));
        }
    };
    for component in &application.spec.components {
        add(DefinitionKind::Component, &component.component_type);
        for applied in &component.traits {
            add(DefinitionKind::Trait, &applied.trait_type);
        }
    }
    for policy in &application.spec.policies {
        if !policy_type::BUILT_IN.contains(&policy.policy_type.as_str()) {
            add(DefinitionKind::Policy, &policy.policy_type);
        }
        if policy.policy_type != policy_type::OVERRIDE {
            continue;
        }
        let properties = policy.properties.clone().unwrap_or_default();
        let read = serde_json::from_value::<OverridePolicy>(properties).unwrap_or_default();
        for patch in &read.components {
            add(DefinitionKind::Component, &patch.component_type);
            for applied in &patch.traits {
                add(DefinitionKind::Trait, &applied.trait_type);
            }
        }
    }
    for step in steps {
        add(DefinitionKind::WorkflowStep, &step.base.step_type);
        for sub_step in &step.sub_steps {
            add(DefinitionKind::WorkflowStep, &sub_step.step_type);
        }
    }
    types
}
