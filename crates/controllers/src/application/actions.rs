//! Actions of steps on the components of an application.

use std::collections::BTreeMap;

use bellwether_api::oam::names::label;
use bellwether_api::oam::{
    Application, ApplicationComponent, ApplicationPolicy, ComponentService, ResourceTracker,
};
use bellwether_api::workflow::StepOutput;
use bellwether_application::appfile::Appfile;
use bellwether_application::context::Target;
use bellwether_application::deliver::{Delivered, Placed, output_value, place_with, render_placed};
use bellwether_application::files;
use bellwether_application::label::{Manifest, stamp};
use bellwether_application::placement::{TopologyPolicy, targets};
use bellwether_application::resource_policy::{Occasion, ResourcePolicies};
use bellwether_application::steps::{self, Values, fill_inputs};
use bellwether_application::tracker;
use bellwether_runtime::compute;
use bellwether_workflow::{Done, Request, action, merge};
use futures::FutureExt as _;
use futures::future::BoxFuture;
use parking_lot::Mutex;
use serde_json::{Map, Value, json};

use super::deliver::{Live, Pass, is_local};
use super::tracking::Tracking;
use super::{Failure, Reconciler, to_json};
use crate::workflow::OwnActions;

/// What a step says that waits for its component.
pub(super) const WAIT_HEALTHY: &str = "wait healthy";
/// What a deploy step remembers: the values that components handed on, by target and name.
pub(super) const DEPLOY_VALUES: &str = "values";

/// What carries out the actions of one application.
pub(super) struct ComponentActions<'a> {
    pub(super) application: &'a Application,
    pub(super) applications: &'a Reconciler,
    pub(super) appfile: &'a Appfile<'a>,
    pub(super) policies: &'a ResourcePolicies,
    pub(super) tracking: &'a Tracking<'a>,
    pub(super) before: &'a [ResourceTracker],
    /// Where components stand that were applied in this pass.
    pub(super) services: Mutex<Vec<ComponentService>>,
}

impl OwnActions for ComponentActions<'_> {
    fn carry_out<'a>(
        &'a self,
        request: &'a Request,
    ) -> Option<BoxFuture<'a, Result<Done, String>>> {
        let params = &request.call.params;
        let action = match request.call.name.as_str() {
            "oam.component-apply" => self.apply_component(request).boxed(),
            "oam.component-render" => self.render_component(request).boxed(),
            "oam.load" => async move { Ok(done(self.load(params).await)) }.boxed(),
            "oam.load-comps-in-order" => {
                let components: Vec<Value> = self.appfile.components.iter().map(bare).collect();
                async move { Ok(done(json!({"value": components}))) }.boxed()
            }
            "oam.load-policies" => {
                let policies = json!({"value": self.appfile.policies});
                async move { Ok(done(policies)) }.boxed()
            }
            "oam.load-rendered" => self.load_rendered().boxed(),
            action::ROLLBACK => self.roll_back(request).boxed(),
            "multicluster.deploy" => self.deploy(request).boxed(),
            "multicluster.get-placements-from-topology-policies" => {
                async move { self.placements(params).map(done) }.boxed()
            }
            "kube.apply" | action::OBJECT => self.apply_object(request).boxed(),
            "kube.apply-in-parallel" => self.apply_objects(request).boxed(),
            "config.create" => self.create_config(params).boxed(),
            "kube.read" if !is_local(params["cluster"].as_str().unwrap_or_default()) => {
                let read = self.read_member(params);
                async move { Ok(done(read)) }.boxed()
            }
            name if name.starts_with("query.") && self.is_own(&params["app"]) => {
                self.query(request).boxed()
            }
            _ => return None,
        };
        Some(action)
    }
}

pub(super) fn done(value: Value) -> Done {
    Done {
        value,
        ..Done::default()
    }
}

/// What went wrong, for the message of a step.
pub(super) fn message(failure: Failure) -> String {
    match failure {
        Failure::Render(error) => error.message,
        Failure::Request(error) => error.to_string(),
        Failure::Pass(error) => error.to_string(),
        Failure::Object(error) => error.to_string(),
    }
}

/// A component without what only steps care about.
fn bare(component: &ApplicationComponent) -> Value {
    let mut component = component.clone();
    component.inputs.clear();
    component.outputs.clear();
    json!(component)
}

/// How a target is called in messages.
fn target_text(target: &Target, namespace: &str) -> String {
    let namespace = if target.namespace.is_empty() {
        namespace
    } else {
        &target.namespace
    };
    let parts = [target.cluster_name(), namespace, &target.replica_key];
    let parts: Vec<&str> = parts.into_iter().filter(|part| !part.is_empty()).collect();
    parts.join("/")
}

impl ComponentActions<'_> {
    pub(super) fn pass(&self) -> Pass<'_> {
        Pass {
            applications: self.applications,
            appfile: self.appfile,
            policies: self.policies,
            tracking: self.tracking,
            before: self.before,
            occasion: Occasion::Update,
            live: Live::new(),
            repaired: Vec::new(),
            left_deleted: BTreeMap::new(),
            next: None,
        }
    }

    /// Applies components, and notes where they stand.
    async fn take(
        &self,
        pass: &mut Pass<'_>,
        delivered: &[&Delivered],
    ) -> Result<Vec<ComponentService>, String> {
        pass.occasion = self.occasion(delivered).await?;
        let services = pass.take(delivered).await.map_err(message)?;
        let mut known = self.services.lock();
        for service in &services {
            known.retain(|known| !is_same_service(known, service));
            known.push(service.clone());
        }
        Ok(services)
    }

    /// Why components are applied. What is applied once stays as others made it, unless it is rendered to something else.
    async fn occasion(&self, delivered: &[&Delivered]) -> Result<Occasion, String> {
        if !self.policies.apply_once.keeps_everything() {
            return Ok(Occasion::Update);
        }
        for manifest in delivered.iter().flat_map(|component| &component.manifests) {
            let live = self.applications.objects.get(&manifest.object).await;
            let live = live.map_err(|error| error.to_string())?.unwrap_or_default();
            let hash = |object: &Value| object["metadata"]["labels"][label::RENDER_HASH].clone();
            if !is_local(&manifest.cluster) || hash(&live) != hash(&manifest.object) {
                return Ok(Occasion::Update);
            }
        }
        Ok(Occasion::StateKeep)
    }

    async fn rendered(&self, request: &Request) -> Result<Delivered, String> {
        let params = &request.call.params;
        let placed = steps::placed(params).map_err(|error| error.message)?;
        let delivered = compute(|| render_placed(self.appfile, &placed)).await;
        let mut delivered = delivered.map_err(|error| error.message)?;
        let workload = delivered
            .manifests
            .iter_mut()
            .find(|manifest| is_workload(manifest));
        if let Some(workload) = workload {
            if let Some(patch) = &request.call.patch {
                workload.object = merge::apply(&workload.object, patch)?;
            }
            let exported = &params["exportedPatch"];
            if exported.is_object() {
                workload.object = merge::apply(&workload.object, &exported.to_string())?;
            }
            let field = &params["fieldPatch"];
            if field.is_object() {
                self.patch_field(&mut workload.object, field).await?;
            }
        }
        for manifest in &mut delivered.manifests {
            stamp(&mut manifest.object);
        }
        Ok(delivered)
    }

    async fn apply_component(&self, request: &Request) -> Result<Done, String> {
        let delivered = self.rendered(request).await?;
        let mut pass = self.pass();
        let services = self.take(&mut pass, &[&delivered]).await?;
        let is_healthy = services.iter().all(|service| service.healthy);
        let waits = request.call.params["waitHealthy"] != false && !is_healthy;
        Ok(Done {
            value: outputs(&delivered, &pass.live),
            wait: waits.then(|| WAIT_HEALTHY.to_owned()),
            ..Done::default()
        })
    }

    async fn render_component(&self, request: &Request) -> Result<Done, String> {
        let delivered = self.rendered(request).await?;
        Ok(done(outputs(&delivered, &Live::new())))
    }

    /// Sets a field of a workload to a value, or to that of a field of another object.
    async fn patch_field(&self, workload: &mut Value, patch: &Value) -> Result<(), String> {
        let to = patch["to"]["field"].as_str().unwrap_or_default();
        let from = &patch["valueFrom"];
        let mut value = from["field"].clone();
        let is_reference = from["kind"].is_string() && from["name"].is_string();
        if let (true, Some(path)) = (is_reference, value.as_str()) {
            let mut object = json!({"apiVersion": from["apiVersion"], "kind": from["kind"],
                "metadata": {"name": from["name"], "namespace": from["namespace"]}});
            if from["namespace"].is_null() {
                object["metadata"]["namespace"] = json!(self.appfile.context.namespace);
            }
            let found = self.applications.objects.get(&object).await;
            let found = found.map_err(|error| error.to_string())?;
            let place = bellwether_application::path::parse(path);
            if let (Some(found), Ok(place)) = (found, place)
                && let Some(found) = bellwether_application::path::find(&found, &place)
            {
                value = found.clone();
            }
        }
        if value.is_null() {
            return Err(format!(
                "patch of field {to:?}: valueFrom.field has no value"
            ));
        }
        let has_template = workload["spec"]["template"].is_object();
        let to = match to.strip_prefix("spec.") {
            Some(rest) if has_template && rest.starts_with("containers") => {
                format!("spec.template.spec.{rest}")
            }
            _ => to.to_owned(),
        };
        let place = bellwether_application::path::parse(&to)
            .map_err(|problem| format!("patch of field {to:?}: {problem}"))?;
        bellwether_application::path::set(workload, &place, value);
        Ok(())
    }

    /// The components, as they are written and rendered.
    async fn load(&self, params: &Value) -> Value {
        let only = params["component"].as_str().filter(|name| !name.is_empty());
        let mut loaded = Map::new();
        for component in &self.appfile.components {
            if only.is_some_and(|only| only != component.name) {
                continue;
            }
            let mut value = bare(component);
            let placed = Placed {
                component: component.clone(),
                target: Target::default(),
            };
            // One that needs inputs cannot be rendered yet.
            if let Ok(rendered) = compute(|| render_placed(self.appfile, &placed)).await {
                let outputs = outputs(&rendered, &Live::new());
                value["workload"] = outputs["output"].clone();
                value["rendered"] = outputs["outputs"].clone();
            }
            loaded.insert(component.name.clone(), value);
        }
        let mut result = json!({"value": loaded});
        if let Some(one) = only.and_then(|only| loaded_one(&result, only)) {
            result["workload"] = one["workload"].clone();
            result["traits"] = one["rendered"].clone();
        }
        result
    }

    /// Everything that the application is rendered to, by name.
    async fn load_rendered(&self) -> Result<Done, String> {
        let rendered = compute(|| files::rendered(self.appfile)).await;
        let rendered = rendered.map_err(|error| error.message)?;
        let files = files::files(&rendered, &self.appfile.context.namespace);
        let mut objects = Map::new();
        for manifest in rendered.iter().flat_map(|it| &it.manifests) {
            let name = if manifest.resource.is_empty() {
                manifest.component.clone()
            } else {
                format!("{}-{}", manifest.component, manifest.resource)
            };
            objects.insert(name, manifest.object.clone());
        }
        Ok(done(json!({"value": objects, "files": files})))
    }

    /// Applies components where policies say, each when those that it depends on are healthy.
    async fn deploy(&self, request: &Request) -> Result<Done, String> {
        let params = &request.call.params;
        if params["parallelism"]
            .as_i64()
            .is_some_and(|count| count < 1)
        {
            return Err("parallelism cannot be smaller than 1".to_owned());
        }
        let own: Vec<ApplicationPolicy> = match &params["inlinePolicies"] {
            Value::Null => Vec::new(),
            given => serde_json::from_value(given.clone())
                .map_err(|error| format!("inlinePolicies: {error}"))?,
        };
        let policies = names(&params["policies"]);
        let mut waiting =
            place_with(self.appfile, &policies, &own).map_err(|error| error.message)?;
        let known = request.memory.get(DEPLOY_VALUES);
        let mut values: BTreeMap<String, Values> = known
            .and_then(|text| serde_json::from_str(text).ok())
            .unwrap_or_default();
        let namespace = &self.appfile.context.namespace;
        let mut unhealthy: Vec<String> = Vec::new();
        while !waiting.is_empty() {
            let open: Vec<(String, String)> = waiting
                .iter()
                .map(|placed| {
                    (
                        target_text(&placed.target, namespace),
                        placed.component.name.clone(),
                    )
                })
                .collect();
            let is_ready = |placed: &Placed| {
                let target = target_text(&placed.target, namespace);
                let mut needs = placed.component.depends_on.iter();
                needs.all(|need| {
                    let is_open = open.iter().any(|(at, name)| *at == target && name == need);
                    let at_target = format!("{target}/{need}");
                    !is_open && !unhealthy.contains(&at_target)
                })
            };
            let (ready, rest): (Vec<Placed>, Vec<Placed>) = waiting.into_iter().partition(is_ready);
            let (ready, lacking) = with_inputs(ready, namespace, &values);
            waiting = rest;
            let is_stuck = ready.is_empty();
            waiting.extend(lacking);
            if is_stuck {
                break;
            }
            let bad = self.deploy_ready(&ready, namespace, &mut values).await?;
            unhealthy.extend(bad);
        }
        Ok(deployed(&unhealthy, &waiting, namespace, &values))
    }

    /// Applies components that need not wait; tells which are not healthy.
    async fn deploy_ready(
        &self,
        ready: &[Placed],
        namespace: &str,
        values: &mut BTreeMap<String, Values>,
    ) -> Result<Vec<String>, String> {
        let render = || -> Result<Vec<Delivered>, _> {
            let placed = ready.iter();
            placed
                .map(|placed| render_placed(self.appfile, placed))
                .collect()
        };
        let mut delivered = compute(render).await.map_err(|error| error.message)?;
        let manifests = delivered.iter_mut().flat_map(|it| &mut it.manifests);
        for manifest in manifests {
            stamp(&mut manifest.object);
        }
        let mut pass = self.pass();
        let all: Vec<&Delivered> = delivered.iter().collect();
        let services = self.take(&mut pass, &all).await?;
        let mut unhealthy = Vec::new();
        for (component, service) in delivered.iter().zip(&services) {
            let target = target_text(&component.placed.target, namespace);
            if !service.healthy {
                unhealthy.push(format!("{target}/{}", component.placed.component.name));
                continue;
            }
            let given = outputs(component, &pass.live);
            let own = values.entry(target).or_default();
            collect(&component.placed.component.outputs, &given, own);
        }
        Ok(unhealthy)
    }

    /// Whether a query is about this application.
    fn is_own(&self, app: &Value) -> bool {
        let context = &self.appfile.context;
        app["name"] == context.name && app["namespace"] == context.namespace
    }

    /// Answers a query about this application, from what is recorded of it.
    async fn query(&self, request: &Request) -> Result<Done, String> {
        let trackers = self.tracking.known().await;
        let entries = trackers
            .iter()
            .flat_map(|tracker| &tracker.spec.managed_resources);
        let objects: Vec<Value> = entries.map(to_json).collect();
        let answer = self.applications.engine.query(request, &objects).await?;
        Ok(done(answer))
    }

    /// The clusters and namespaces that topology policies choose.
    fn placements(&self, params: &Value) -> Result<Value, String> {
        let mut topologies: Vec<TopologyPolicy> = Vec::new();
        for name in names(&params["policies"]) {
            let policy = self.appfile.policies.get(&name);
            let policy = policy.ok_or_else(|| format!("policy {name} not found"))?;
            let properties = policy.properties.clone().unwrap_or_default();
            let read = serde_json::from_value(properties);
            topologies.push(read.map_err(|error| format!("policy {name}: {error}"))?);
        }
        let targets = targets(&topologies, self.appfile.world()).map_err(|error| error.message)?;
        let placements: Vec<Value> = targets
            .iter()
            .map(|target| json!({"cluster": target.cluster, "namespace": target.namespace}))
            .collect();
        Ok(json!({"placements": placements}))
    }
}

fn loaded_one<'a>(result: &'a Value, name: &str) -> Option<Value> {
    let found: Option<&'a Value> = result["value"].get(name);
    found.cloned()
}

/// Texts of a list.
fn names(list: &Value) -> Vec<String> {
    let list = list.as_array().into_iter().flatten();
    list.filter_map(Value::as_str).map(str::to_owned).collect()
}

/// Whether two states are of the same component on the same target.
pub(super) fn is_same_service(one: &ComponentService, other: &ComponentService) -> bool {
    one.name == other.name && one.namespace == other.namespace && one.cluster == other.cluster
}

fn is_workload(manifest: &Manifest) -> bool {
    manifest.trait_type.is_empty() && manifest.resource.is_empty()
}

/// What a step sees of a component: its workload, and its further objects by name. Those that are not there yet are as they are
/// rendered.
fn outputs(delivered: &Delivered, live: &Live) -> Value {
    let mut result = json!({"output": {}, "outputs": {}});
    for manifest in &delivered.manifests {
        let found = live.get(&tracker::identity_of(manifest));
        let found = found.unwrap_or(&manifest.object).clone();
        if is_workload(manifest) {
            result["output"] = found;
        } else {
            result["outputs"][&manifest.resource] = found;
        }
    }
    result
}

/// Fills in inputs; those whose inputs are not there yet come second.
fn with_inputs(
    ready: Vec<Placed>,
    namespace: &str,
    values: &BTreeMap<String, Values>,
) -> (Vec<Placed>, Vec<Placed>) {
    let none = Values::new();
    let (mut filled, mut lacking) = (Vec::new(), Vec::new());
    for placed in ready {
        let known = values.get(&target_text(&placed.target, namespace));
        let mut with = placed.clone();
        if fill_inputs(&mut with.component, known.unwrap_or(&none)).is_empty() {
            filled.push(with);
        } else {
            lacking.push(placed);
        }
    }
    (filled, lacking)
}

/// Takes in the values that a component hands on.
fn collect(handed_on: &[StepOutput], given: &Value, values: &mut Values) {
    for output in handed_on {
        let value = output_value(&output.value_from, &given["output"], &given["outputs"]);
        if let Some(value) = value {
            values.insert(output.name.clone(), value);
        }
    }
}

/// What came of a deploy step.
fn deployed(
    unhealthy: &[String],
    waiting: &[Placed],
    namespace: &str,
    values: &BTreeMap<String, Values>,
) -> Done {
    let mut reasons: Vec<String> = unhealthy
        .iter()
        .map(|component| format!("{component} is not healthy"))
        .collect();
    reasons.extend(waiting.iter().map(|placed| {
        let target = target_text(&placed.target, namespace);
        format!("{target}/{} is waiting dependents", placed.component.name)
    }));
    let values: BTreeMap<&String, &Values> = values
        .iter()
        .filter(|(_, values)| !values.is_empty())
        .collect();
    let mut memory = BTreeMap::new();
    if !values.is_empty() {
        memory.insert(DEPLOY_VALUES.to_owned(), to_json(&values).to_string());
    }
    Done {
        value: json!({}),
        wait: (!reasons.is_empty()).then(|| reasons.join("; ")),
        memory,
    }
}

/// The values that components of a deploy step handed on, from what the step remembers.
pub(super) fn deploy_values(text: Option<&String>, target: &Target, namespace: &str) -> Values {
    let known: Option<BTreeMap<String, Values>> =
        text.and_then(|text| serde_json::from_str(text).ok());
    let mut known = known.unwrap_or_default();
    known
        .remove(&target_text(target, namespace))
        .unwrap_or_default()
}
