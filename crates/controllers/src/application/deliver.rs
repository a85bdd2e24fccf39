//! Applies the objects of an application, and deletes those that are left over.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use bellwether_api::oam::names::{LOCAL_CLUSTER, annotation, finalizer, label};
use bellwether_api::oam::{
    Application, ComponentService, ManagedResource, ResourceTracker, ServiceTrait, TraitStage,
};
use bellwether_api::work::ManifestWork;
use bellwether_application::appfile::Appfile;
use bellwether_application::deliver::{Delivered, Delivery, Placed, deliver};
use bellwether_application::dispatch::{self, Action, Request, describe};
use bellwether_application::label::Manifest;
use bellwether_application::progress::{self, Outcome, Step};
use bellwether_application::resource_policy::{Occasion, ResourcePolicies};
use bellwether_application::tracker::{self, CREATOR_POLICY, CREATOR_WORKFLOW};
use bellwether_application::{Class, RenderError, Stage, health, member};
use bellwether_runtime::{Next, ObjectKey, created_by, delete_if_exists, unless_gone, written_by};
use kube::Api;
use kube::api::{DeleteParams, DynamicObject, Patch};
use serde_json::{Value, json};

use super::status::{PENDING_TRAIT, Report};
use super::{Error, Failure, Reconciler};
use crate::objects;

/// Live objects by what identifies them.
type Live = HashMap<tracker::Identity, Value>;

fn is_local(cluster: &str) -> bool {
    cluster.is_empty() || cluster == LOCAL_CLUSTER
}

fn rejected(message: String) -> Failure {
    Failure::Render(RenderError::new(
        Stage::Deploy,
        Class::InvalidInput,
        message,
    ))
}

/// A refusal of the server is reported; everything else is tried again.
fn explained(error: kube::Error, object: &Value) -> Failure {
    match error {
        kube::Error::Api(status)
            if (400..500).contains(&status.code) && status.code != 409 && status.code != 429 =>
        {
            rejected(format!(
                "{} is refused: {}",
                describe(object),
                status.message
            ))
        }
        kube::Error::Discovery(error) => rejected(format!("{}: {error}", describe(object))),
        other => Failure::Request(other),
    }
}

struct Pass<'a> {
    applications: &'a Reconciler,
    appfile: &'a Appfile<'a>,
    policies: &'a ResourcePolicies,
    before: &'a [ResourceTracker],
    occasion: Occasion,
    live: Live,
}

impl Reconciler {
    /// Applies what can be applied now; what waits is told when something changes.
    pub(super) async fn deliver(
        &self,
        application: &Application,
        appfile: &Appfile<'_>,
        policies: &ResourcePolicies,
        report: &mut Report,
    ) -> Result<Next, Failure> {
        let steps = progress::steps(appfile)?;
        let delivery = deliver(appfile)?;
        report.rendered();
        let before = self.own_trackers(application);
        let entries = entries(&delivery, policies);
        let current = tracker::trackers(application, &appfile.context.revision, entries);
        let is_known = current.iter().all(|tracker| {
            let stored = before
                .iter()
                .find(|known| known.metadata.name == tracker.metadata.name);
            stored.is_some_and(|stored| stored.spec == tracker.spec)
        });
        for tracker in &current {
            self.record(tracker, &before).await?;
        }
        self.store_resources(application, appfile, &delivery)
            .await?;
        let occasion = if is_known && report.was_delivered() {
            Occasion::StateKeep
        } else {
            Occasion::Update
        };
        let mut pass = Pass {
            applications: self,
            appfile,
            policies,
            before: &before,
            occasion,
            live: Live::new(),
        };
        for manifest in &delivery.policies {
            pass.apply(manifest).await?;
        }
        let is_done = pass.take_steps(&steps, &delivery, report).await?;
        if is_done {
            self.clean_up(application, policies, &before, &current, &delivery)
                .await?;
            report.delivered();
        }
        Ok(None)
    }

    /// Deletes objects that older versions had, then their trackers.
    async fn clean_up(
        &self,
        application: &Application,
        policies: &ResourcePolicies,
        before: &[ResourceTracker],
        current: &[ResourceTracker],
        delivery: &Delivery,
    ) -> Result<(), kube::Error> {
        self.clean_works(application, delivery).await?;
        if policies.garbage_collect.keep_legacy_resource {
            return Ok(());
        }
        let is_current = |tracker: &&ResourceTracker| {
            current
                .iter()
                .any(|known| known.metadata.name == tracker.metadata.name)
        };
        let is_root = |tracker: &&ResourceTracker| tracker.spec.application_generation == 0;
        let older: Vec<ResourceTracker> = before
            .iter()
            .filter(|tracker| !is_current(tracker) && !is_root(tracker))
            .cloned()
            .collect();
        let mut all_gone = true;
        // Objects that left the tracker of this very version are left over too.
        let mut versions = older.clone();
        versions.extend(
            before
                .iter()
                .filter(is_current)
                .filter(|tracker| !is_root(tracker))
                .cloned(),
        );
        for entry in tracker::leftovers(&versions, current) {
            if is_local(&entry.cluster) {
                all_gone &= self.delete_object(application, entry).await?;
            }
        }
        if all_gone {
            for tracker in &older {
                self.forget(tracker).await?;
            }
        }
        Ok(())
    }

    /// Deletes works on members that the application no longer goes to.
    async fn clean_works(
        &self,
        application: &Application,
        delivery: &Delivery,
    ) -> Result<(), kube::Error> {
        let used: BTreeSet<&str> = delivery
            .components
            .iter()
            .flat_map(|component| &component.manifests)
            .map(|manifest| manifest.cluster.as_str())
            .collect();
        for work in self.own_works(application) {
            let cluster = work.metadata.namespace.as_deref().unwrap_or_default();
            if !used.contains(cluster) {
                self.delete_work(&work).await?;
            }
        }
        Ok(())
    }

    fn own_works(&self, application: &Application) -> Vec<std::sync::Arc<ManifestWork>> {
        let key = ObjectKey::of(application);
        let mut works = self.works.list();
        works.retain(|work| super::owner_of(work.metadata.labels.as_ref()).as_ref() == Some(&key));
        works
    }

    async fn delete_work(&self, work: &ManifestWork) -> Result<(), kube::Error> {
        let namespace = work.metadata.namespace.as_deref().unwrap_or_default();
        let api: Api<ManifestWork> = Api::namespaced(self.hub.client.clone(), namespace);
        let name = work.metadata.name.as_deref().unwrap_or_default();
        delete_if_exists(&api, name, &DeleteParams::default()).await
    }

    /// Deletes an object on the hub, if it still belongs to the application; true once it is gone.
    async fn delete_object(
        &self,
        application: &Application,
        entry: &ManagedResource,
    ) -> Result<bool, kube::Error> {
        let object = tracker::object(entry);
        let live = match self.children.get(&object).await {
            Ok(Some(live)) => live,
            Ok(None) | Err(kube::Error::Discovery(_)) => return Ok(true),
            Err(kube::Error::Api(status)) if status.is_not_found() => return Ok(true),
            Err(error) => return Err(error),
        };
        if !belongs_to(&live, application) {
            return Ok(true);
        }
        let served = self.children.kind(&object).await?;
        let api = self.children.api(&served, &object);
        if let Some(heir) = next_sharer(&live, application) {
            api.patch(&entry.name, &written_by(), &Patch::Merge(heir))
                .await?;
            return Ok(true);
        }
        let answer = unless_gone(api.delete(&entry.name, &DeleteParams::background()).await)?;
        // An object without finalizers is gone with the answer.
        Ok(answer.is_none_or(|answer| answer.right().is_some()))
    }

    /// Deletes everything that an application applied, then lets it go.
    pub(super) async fn remove(&self, application: &Application) -> Result<Next, Error> {
        let finalizers = application.metadata.finalizers.clone().unwrap_or_default();
        if !finalizers
            .iter()
            .any(|known| known == finalizer::RESOURCE_TRACKER)
        {
            return Ok(None);
        }
        let is_orphaned = finalizers
            .iter()
            .any(|known| known == finalizer::ORPHAN_RESOURCE);
        let trackers = self.own_trackers(application);
        let mut waiting = Vec::new();
        let entries = tracker::leftovers(&trackers, &[]);
        for entry in entries.into_iter().filter(|entry| is_local(&entry.cluster)) {
            if is_orphaned {
                self.release(application, entry).await?;
            } else if !self.delete_object(application, entry).await? {
                waiting.push(describe(&tracker::object(entry)));
            }
        }
        for work in self.own_works(application) {
            if is_orphaned {
                let api: Api<ManifestWork> = Api::namespaced(
                    self.hub.client.clone(),
                    work.metadata.namespace.as_deref().unwrap_or_default(),
                );
                let patch = Patch::Merge(
                    json!({"spec": {"deleteOption": {"propagationPolicy": "Orphan"}}}),
                );
                api.patch(
                    work.metadata.name.as_deref().unwrap_or_default(),
                    &written_by(),
                    &patch,
                )
                .await?;
            }
            self.delete_work(&work).await?;
            waiting.push(format!(
                "work on cluster {}",
                work.metadata.namespace.as_deref().unwrap_or_default()
            ));
        }
        if !waiting.is_empty() {
            let mut report = Report::new(application, self.hub.clock.now());
            report.deleting(&waiting);
            self.write_report(application, report).await?;
            // What goes is watched; a second is for objects that nobody watches.
            let again = self
                .hub
                .clock
                .now()
                .checked_add(jiff::SignedDuration::from_secs(1))
                .ok();
            return Ok(again);
        }
        for tracker in &trackers {
            self.forget(tracker).await?;
        }
        let rest: Vec<&String> = finalizers
            .iter()
            .filter(|known| {
                *known != finalizer::RESOURCE_TRACKER && *known != finalizer::ORPHAN_RESOURCE
            })
            .collect();
        self.patch_metadata(application, json!({"finalizers": rest}))
            .await?;
        Ok(None)
    }

    /// Takes the labels off an object, so that it belongs to nobody.
    async fn release(
        &self,
        application: &Application,
        entry: &ManagedResource,
    ) -> Result<(), kube::Error> {
        let object = tracker::object(entry);
        let Some(live) = self.children.get(&object).await? else {
            return Ok(());
        };
        if !belongs_to(&live, application) {
            return Ok(());
        }
        let served = self.children.kind(&object).await?;
        let labels = json!({label::APP_NAME: null, label::APP_NAMESPACE: null});
        let patch = Patch::Merge(json!({"metadata": {"labels": labels}}));
        self.children
            .api(&served, &object)
            .patch(&entry.name, &written_by(), &patch)
            .await
            .map(drop)
    }
}

fn belongs_to(live: &Value, application: &Application) -> bool {
    let labels = &live["metadata"]["labels"];
    labels[label::APP_NAME].as_str() == application.metadata.name.as_deref()
        && labels[label::APP_NAMESPACE].as_str() == application.metadata.namespace.as_deref()
}

/// The patch that gives a shared object to the next application.
fn next_sharer(live: &Value, application: &Application) -> Option<Value> {
    let own = format!(
        "{}/{}",
        application
            .metadata
            .namespace
            .as_deref()
            .unwrap_or_default(),
        application.metadata.name.as_deref().unwrap_or_default()
    );
    let list = live["metadata"]["annotations"][annotation::SHARED_BY].as_str()?;
    let rest: Vec<&str> = list
        .split(',')
        .filter(|entry| *entry != own && !entry.is_empty())
        .collect();
    let (namespace, name) = rest.first()?.split_once('/')?;
    Some(json!({"metadata": {
        "labels": {label::APP_NAME: name, label::APP_NAMESPACE: namespace},
        "annotations": {annotation::SHARED_BY: rest.join(",")},
    }}))
}

/// What trackers record, with how long it stays.
fn entries(
    delivery: &Delivery,
    policies: &ResourcePolicies,
) -> Vec<(
    ManagedResource,
    bellwether_application::resource_policy::GarbageCollectStrategy,
)> {
    let of_policies = delivery
        .policies
        .iter()
        .map(|manifest| (manifest, CREATOR_POLICY));
    let of_components = delivery
        .components
        .iter()
        .flat_map(|component| &component.manifests);
    let of_components = of_components.map(|manifest| (manifest, CREATOR_WORKFLOW));
    let mut seen = BTreeSet::new();
    of_policies
        .chain(of_components)
        .map(|(manifest, creator)| {
            (
                tracker::managed(manifest, creator, policies),
                policies.garbage_collect.strategy(&manifest.object),
            )
        })
        .filter(|(entry, _)| seen.insert(tracker::identity(entry)))
        .collect()
}

impl Pass<'_> {
    /// Takes steps as far as they can be taken; true if all are done.
    async fn take_steps(
        &mut self,
        steps: &[Step],
        delivery: &Delivery,
        report: &mut Report,
    ) -> Result<bool, Failure> {
        let mut outcomes: BTreeMap<&str, Outcome> = BTreeMap::new();
        let mut done: Vec<String> = Vec::new();
        let mut services: Vec<ComponentService> = Vec::new();
        loop {
            let next = steps.iter().find(|step| {
                !outcomes.contains_key(step.name.as_str()) && progress::is_ready(step, &done)
            });
            let Some(step) = next else { break };
            let delivered: Vec<&Delivered> = step
                .components
                .iter()
                .filter_map(|placed| find(delivery, placed))
                .collect();
            let others: Vec<&str> = steps
                .iter()
                .filter(|other| other.name != step.name)
                .flat_map(|other| &other.components)
                .map(|placed| placed.component.name.as_str())
                .collect();
            let told = self.take(&delivered, &others).await;
            let told = match told {
                Ok(told) => told,
                Err(Failure::Render(error)) => {
                    outcomes.insert(&step.name, Outcome::Failed(error.message.clone()));
                    report.steps(steps, &outcomes);
                    report.services(services);
                    return Err(Failure::Render(error));
                }
                Err(other) => return Err(other),
            };
            let outcome = progress::outcome(&told);
            if outcome == Outcome::Done {
                done.push(step.name.clone());
            }
            services.extend(told);
            outcomes.insert(&step.name, outcome);
        }
        report.steps(steps, &outcomes);
        report.services(services);
        Ok(done.len() == steps.len())
    }

    /// Applies components, and tells where they stand.
    async fn take(
        &mut self,
        delivered: &[&Delivered],
        others: &[&str],
    ) -> Result<Vec<ComponentService>, Failure> {
        self.apply_members(delivered, others).await?;
        let mut services = Vec::new();
        for component in delivered {
            services.push(self.take_component(component).await?);
        }
        Ok(services)
    }

    /// Applies a component in stages: what comes before it, itself, and once it is healthy what comes after.
    async fn take_component(&mut self, component: &Delivered) -> Result<ComponentService, Failure> {
        for stage in [TraitStage::PreDispatch, TraitStage::DefaultDispatch] {
            for manifest in component
                .manifests
                .iter()
                .filter(|manifest| manifest.stage == stage)
            {
                if is_local(&manifest.cluster) {
                    self.apply(manifest).await?;
                }
            }
        }
        let (early, late_types) = without_late(component, self.appfile);
        let mut service = self.judge(&early)?;
        if late_types.is_empty() {
            return Ok(service);
        }
        if service.healthy {
            for manifest in component
                .manifests
                .iter()
                .filter(|manifest| manifest.stage == TraitStage::PostDispatch)
            {
                if is_local(&manifest.cluster) {
                    self.apply(manifest).await?;
                }
            }
            return self.judge(component);
        }
        service
            .traits
            .extend(late_types.into_iter().map(|trait_type| ServiceTrait {
                trait_type,
                pending: true,
                message: PENDING_TRAIT.to_owned(),
                ..ServiceTrait::default()
            }));
        Ok(service)
    }

    fn judge(&self, component: &Delivered) -> Result<ComponentService, Failure> {
        let live = |manifest: &Manifest| {
            let entry = tracker::managed(manifest, CREATOR_WORKFLOW, self.policies);
            self.live.get(&tracker::identity(&entry))
        };
        match health::service(self.appfile, component, &live) {
            Ok(service) => Ok(service),
            Err(health::ServiceError::Render(error)) => Err(error.into()),
            Err(health::ServiceError::Missing(missing)) => {
                let target = &component.placed.target;
                Ok(ComponentService {
                    name: component.placed.component.name.clone(),
                    namespace: if target.namespace.is_empty() {
                        self.appfile.context.namespace.clone()
                    } else {
                        target.namespace.clone()
                    },
                    cluster: target.cluster.clone(),
                    message: missing.to_string(),
                    ..ComponentService::default()
                })
            }
        }
    }

    /// The object as it was applied last.
    fn last_applied(&self, entry: &ManagedResource) -> Option<&Value> {
        let identity = tracker::identity(entry);
        let mut entries = self
            .before
            .iter()
            .flat_map(|tracker| &tracker.spec.managed_resources);
        entries
            .find(|known| tracker::identity(known) == identity)?
            .raw
            .as_ref()
    }

    /// Applies an object on the hub.
    async fn apply(&mut self, manifest: &Manifest) -> Result<(), Failure> {
        let children = &self.applications.children;
        let served = children
            .kind(&manifest.object)
            .await
            .map_err(|error| explained(error, &manifest.object))?;
        let mut object = manifest.object.clone();
        if !served.is_namespaced {
            bellwether_json::path::remove(&mut object, &["metadata", "namespace"]);
        }
        children.watch(&served);
        let live = children
            .get(&object)
            .await
            .map_err(|error| explained(error, &object))?;
        let entry = tracker::managed(manifest, CREATOR_WORKFLOW, self.policies);
        let request = Request {
            manifest: &object,
            last_applied: self.last_applied(&entry),
            live: live.as_ref(),
            policies: self.policies,
            occasion: self.occasion,
        };
        let action = dispatch::decide(request).map_err(|error| rejected(error.to_string()))?;
        let api = children.api(&served, &object);
        let written = execute(&api, &object, action)
            .await
            .map_err(|error| explained(error, &object))?;
        if let Some(found) = written.or(live) {
            self.live.insert(tracker::identity(&entry), found);
        }
        Ok(())
    }

    /// Brings objects to members, and takes in what is known of them there.
    async fn apply_members(
        &mut self,
        delivered: &[&Delivered],
        others: &[&str],
    ) -> Result<(), Failure> {
        let mut by_cluster: BTreeMap<&str, Vec<&Manifest>> = BTreeMap::new();
        for manifest in delivered.iter().flat_map(|component| &component.manifests) {
            if !is_local(&manifest.cluster) {
                by_cluster
                    .entry(&manifest.cluster)
                    .or_default()
                    .push(manifest);
            }
        }
        for (cluster, manifests) in by_cluster {
            let key = ObjectKey::new(cluster, &member::work_name(&self.appfile.context));
            let known = self.applications.works.get(&key);
            let kept = kept_manifests(known.as_deref(), &manifests, others);
            let all: Vec<&Manifest> = manifests.iter().copied().chain(&kept).collect();
            let work = member::work(&self.appfile.context, cluster, &all);
            objects::ensure(&self.applications.hub.client, &work)
                .await
                .map_err(|error| explained(error, &work))?;
            let Some(known) = known else { continue };
            if let Some(problem) = member::problem(&known) {
                return Err(rejected(problem));
            }
            let is_observed = known.spec.workload.as_ref().is_some_and(|workload| {
                manifests
                    .iter()
                    .all(|manifest| workload.manifests.contains(&manifest.object))
            });
            for manifest in manifests.into_iter().filter(|_| is_observed) {
                if let Some(live) = member::live(&known, &manifest.object) {
                    let entry = tracker::managed(manifest, CREATOR_WORKFLOW, self.policies);
                    self.live.insert(tracker::identity(&entry), live);
                }
            }
        }
        Ok(())
    }
}

/// Objects that a work has already, of components that are applied by other steps.
fn kept_manifests(
    known: Option<&ManifestWork>,
    manifests: &[&Manifest],
    kept: &[&str],
) -> Vec<Manifest> {
    let own: BTreeSet<&str> = manifests
        .iter()
        .map(|manifest| manifest.component.as_str())
        .collect();
    let workload = known.and_then(|known| known.spec.workload.as_ref());
    let objects = workload
        .into_iter()
        .flat_map(|workload| &workload.manifests);
    objects
        .filter_map(|object| {
            let component = object["metadata"]["labels"][label::COMPONENT]
                .as_str()
                .unwrap_or_default();
            (!own.contains(component) && kept.contains(&component)).then(|| Manifest {
                object: object.clone(),
                component: component.to_owned(),
                trait_type: String::new(),
                resource: String::new(),
                stage: TraitStage::DefaultDispatch,
                cluster: String::new(),
            })
        })
        .collect()
}

/// A component without what is applied when it is healthy, and the types of those traits.
fn without_late(component: &Delivered, appfile: &Appfile<'_>) -> (Delivered, Vec<String>) {
    let mut early = component.clone();
    early
        .manifests
        .retain(|manifest| manifest.stage != TraitStage::PostDispatch);
    let mut late = Vec::new();
    if let Ok(resolved) = appfile.component(&component.placed.component) {
        let stages: Vec<bool> = resolved
            .traits
            .iter()
            .map(|applied| applied.definition.stage() == TraitStage::PostDispatch)
            .collect();
        let mut is_late = stages.into_iter();
        early.placed.component.traits.retain(|applied| {
            let is_late = is_late.next().unwrap_or_default();
            if is_late {
                late.push(applied.trait_type.clone());
            }
            !is_late
        });
    }
    (early, late)
}

fn find<'a>(delivery: &'a Delivery, placed: &Placed) -> Option<&'a Delivered> {
    delivery.components.iter().find(|known| {
        known.placed.component.name == placed.component.name && known.placed.target == placed.target
    })
}

/// Writes an object as decided; the answer of the server if there was one.
async fn execute(
    api: &Api<DynamicObject>,
    object: &Value,
    action: Action,
) -> Result<Option<Value>, kube::Error> {
    let name = object["metadata"]["name"].as_str().unwrap_or_default();
    let read = |object: Value| {
        serde_json::from_value::<DynamicObject>(object).map_err(kube::Error::SerdeError)
    };
    let written = match action {
        Action::Leave => return Ok(None),
        Action::Create(object) => api.create(&created_by(), &read(object)?).await?,
        Action::Merge(patch) => api.patch(name, &written_by(), &Patch::Merge(patch)).await?,
        Action::Strategic(patch) => {
            api.patch(name, &written_by(), &Patch::Strategic(patch))
                .await?
        }
        Action::Replace(object) => api.replace(name, &created_by(), &read(object)?).await?,
        Action::Recreate => {
            api.delete(name, &DeleteParams::background()).await?;
            return Ok(None);
        }
    };
    Ok(Some(super::to_json(&written)))
}
