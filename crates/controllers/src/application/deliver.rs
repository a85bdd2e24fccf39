//! Applies the objects of an application, and deletes those that are left over.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use bellwether_api::oam::names::{LOCAL_CLUSTER, annotation, finalizer};
use bellwether_api::oam::{
    Application, ApplicationComponent, ComponentService, ManagedResource, ResourceTracker,
    ServiceTrait, TraitStage,
};
use bellwether_api::work::ManifestWork;
use bellwether_application::appfile::Appfile;
use bellwether_application::deliver::Delivered;
use bellwether_application::dispatch::{self, describe};
use bellwether_application::garbage::{self, Dependencies};
use bellwether_application::label::Manifest;
use bellwether_application::resource_policy::{Occasion, ResourcePolicies};
use bellwether_application::tracker::{self, CREATOR_WORKFLOW};
use bellwether_application::{Class, RenderError, Stage, health, member};
use bellwether_apply::executor::Account;
use bellwether_runtime::{Next, ObjectKey, RequestError, delete_if_exists, ensure, written_by};
use bellwether_workflow::duration;
use jiff::SignedDuration;
use kube::Api;
use kube::api::{DeleteParams, Patch};
use serde_json::{Value, json};

use super::members::of_work;
use super::objects::{Applied, Removal, Request, said_of, unserved};
use super::status::{PENDING_TRAIT, Report};
use super::tracking::Tracking;
use super::{Error, Failure, Reconciler};

/// How often an application is due if it does not say otherwise, and the shortest time that it may ask for.
const DEFAULT_INTERVAL: SignedDuration = SignedDuration::from_mins(5);
const SHORTEST_INTERVAL: SignedDuration = SignedDuration::from_secs(10);

/// Live objects by what identifies them.
pub(super) type Live = HashMap<tracker::Identity, Value>;

pub(super) fn is_local(cluster: &str) -> bool {
    cluster.is_empty() || cluster == LOCAL_CLUSTER
}

pub(super) fn rejected(message: String) -> Failure {
    Failure::Render(RenderError::new(
        Stage::Deploy,
        Class::InvalidInput,
        message,
    ))
}

/// A refusal of the server is reported; everything else is tried again.
pub(super) fn explained(error: kube::Error, object: &Value) -> Failure {
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

/// Applies objects of one revision on one occasion.
pub(super) struct Pass<'a> {
    pub(super) applications: &'a Reconciler,
    pub(super) appfile: &'a Appfile<'a>,
    pub(super) policies: &'a ResourcePolicies,
    pub(super) tracking: &'a Tracking<'a>,
    pub(super) before: &'a [ResourceTracker],
    pub(super) occasion: Occasion,
    pub(super) live: Live,
    /// Objects that others had changed.
    pub(super) repaired: Vec<String>,
    /// Objects that others deleted and a policy leaves so, in words.
    pub(super) left_deleted: BTreeMap<tracker::Identity, String>,
    /// When to look again, if at a certain time.
    pub(super) next: Next,
}

impl Reconciler {
    /// Deletes objects that older versions had, then their trackers.
    pub(super) async fn clean_up(
        &self,
        application: &Application,
        policies: &ResourcePolicies,
        before: &[ResourceTracker],
        tracking: &Tracking<'_>,
    ) -> Result<(), Failure> {
        let known = tracking.known().await;
        let is_settled = before.iter().all(|tracker| {
            let is_same = |known: &ResourceTracker| known.metadata.name == tracker.metadata.name;
            known.iter().any(is_same)
        });
        let works = self.own_works(application);
        if is_settled && works.is_empty() {
            return Ok(());
        }
        // The cache may not have heard of what this version applied: that must not be deleted.
        let current = &tracking.stored().await?;
        self.clean_works(&works, current).await?;
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
        let keeps = policies.garbage_collect.keep_legacy_resource;
        let older = older.into_iter();
        // What is kept is known by the tracker of its version only.
        let older: Vec<ResourceTracker> = older
            .filter(|it| !keeps || tracker::leftovers(std::slice::from_ref(it), current).is_empty())
            .collect();
        let left = tracker::leftovers(&older, current);
        let waiting = self.remove_objects(application, policies, left).await?;
        if waiting.is_empty() {
            for tracker in &older {
                self.forget(tracker).await?;
            }
        }
        Ok(())
    }

    /// Takes from works on members what the application no longer has there.
    async fn clean_works(
        &self,
        works: &[std::sync::Arc<ManifestWork>],
        current: &[ResourceTracker],
    ) -> Result<(), kube::Error> {
        let kept: BTreeSet<tracker::Identity> = current
            .iter()
            .flat_map(|tracker| &tracker.spec.managed_resources)
            .map(tracker::identity)
            .collect();
        for work in works {
            let cluster = work.metadata.namespace.as_deref().unwrap_or_default();
            let workload = work.spec.workload.as_ref();
            let objects = workload.map_or(&[][..], |workload| &workload.manifests);
            let own: Vec<Manifest> = objects
                .iter()
                .map(|object| of_work(object, cluster))
                .filter(|manifest| kept.contains(&tracker::identity_of(manifest)))
                .collect();
            if own.is_empty() {
                self.delete_work(work).await?;
            } else if own.len() < objects.len() {
                let own: Vec<&Manifest> = own.iter().collect();
                let work = member::with_manifests(work, &own);
                ensure(&self.hub.client, &work).await?;
            }
        }
        Ok(())
    }

    fn own_works(&self, application: &Application) -> Vec<std::sync::Arc<ManifestWork>> {
        self.works.of(&ObjectKey::of(application))
    }

    async fn delete_work(&self, work: &ManifestWork) -> Result<(), kube::Error> {
        let namespace = work.metadata.namespace.as_deref().unwrap_or_default();
        let api: Api<ManifestWork> = Api::namespaced(self.hub.client.clone(), namespace);
        let name = work.metadata.name.as_deref().unwrap_or_default();
        delete_if_exists(&api, name, &DeleteParams::default()).await
    }

    /// Removes objects on the hub that an application no longer has. Returns those that are not gone yet, in words.
    pub(super) async fn remove_objects(
        &self,
        application: &Application,
        policies: &ResourcePolicies,
        entries: Vec<&ManagedResource>,
    ) -> Result<Vec<String>, RequestError> {
        let key = ObjectKey::of(application);
        let collect = &policies.garbage_collect;
        let dependencies = match collect.order.as_deref() {
            Some("dependency") => self.dependencies(application),
            _ => Dependencies::default(),
        };
        let is_on_hub = |entry: &&ManagedResource| is_local(&entry.cluster);
        let mut open: Vec<&ManagedResource> = entries.into_iter().filter(is_on_hub).collect();
        let left = garbage::orphans(collect, &open);
        loop {
            let turn = dependencies.turn(&open);
            let removal = Removal {
                entries: &turn,
                left: &left,
            };
            let pending = self.objects.remove(&key, &removal).await?;
            let waits = |entry: &&ManagedResource| {
                let identity = tracker::identity(entry);
                pending.iter().any(|(known, _)| *known == identity)
            };
            let turn: BTreeSet<tracker::Identity> =
                turn.into_iter().map(tracker::identity).collect();
            let before = open.len();
            open.retain(|entry| !turn.contains(&tracker::identity(entry)) || waits(entry));
            if open.is_empty() || open.len() == before {
                return Ok(pending.into_iter().map(|(_, reason)| reason).collect());
            }
        }
    }

    /// Which components depend on which, in this version of an application and in those before.
    fn dependencies(&self, application: &Application) -> Dependencies {
        let mut components = application.spec.components.clone();
        for revision in self.own_revisions(application) {
            let before = revision.spec.application.value()["spec"]["components"].take();
            let before: Vec<ApplicationComponent> =
                serde_json::from_value(before).unwrap_or_default();
            components.extend(before);
        }
        Dependencies::of(&components)
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
        let entries = tracker::leftovers(&trackers, &[]);
        let mut waiting = if is_orphaned {
            self.release_objects(application, entries).await?;
            Vec::new()
        } else {
            // Policies that cannot be read say nothing.
            let policies = ResourcePolicies::of(application).unwrap_or_default();
            self.remove_objects(application, &policies, entries).await?
        };
        waiting.extend(self.remove_works(application, is_orphaned).await?);
        if !waiting.is_empty() {
            let mut report = Report::new(application, self.hub.clock.now(), false);
            report.deleting(&waiting);
            self.write_report(application, report).await?;
            // What goes is watched, and enqueues the application.
            return Ok(None);
        }
        self.objects.forget(&ObjectKey::of(application));
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

    /// Deletes the works of an application, and returns those that there were, in words.
    async fn remove_works(
        &self,
        application: &Application,
        is_orphaned: bool,
    ) -> Result<Vec<String>, kube::Error> {
        let mut waiting = Vec::new();
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
        Ok(waiting)
    }

    /// Leaves objects to nobody.
    async fn release_objects(
        &self,
        application: &Application,
        entries: Vec<&ManagedResource>,
    ) -> Result<(), RequestError> {
        let is_on_hub = |entry: &&ManagedResource| is_local(&entry.cluster);
        let entries: Vec<&ManagedResource> = entries.into_iter().filter(is_on_hub).collect();
        let left = entries
            .iter()
            .map(|entry| tracker::identity(entry))
            .collect();
        let removal = Removal {
            entries: &entries,
            left: &left,
        };
        let key = ObjectKey::of(application);
        self.objects.remove(&key, &removal).await.map(drop)
    }
}

impl Pass<'_> {
    /// Applies components, and tells where they stand.
    pub(super) async fn take(
        &mut self,
        delivered: &[&Delivered],
    ) -> Result<Vec<ComponentService>, Failure> {
        let manifests: Vec<&Manifest> = delivered
            .iter()
            .flat_map(|component| &component.manifests)
            .collect();
        self.check_kinds(&manifests).await?;
        if self.occasion == Occasion::Update {
            self.tracking.record(&manifests, CREATOR_WORKFLOW).await?;
        }
        self.apply_members(&manifests).await?;
        let mut services = Vec::new();
        for component in delivered {
            services.push(self.take_component(component).await?);
        }
        Ok(services)
    }

    /// Nothing of a component is applied if the hub does not serve one of its kinds.
    pub(super) async fn check_kinds(&self, manifests: &[&Manifest]) -> Result<(), Failure> {
        for manifest in manifests.iter().filter(|it| is_local(&it.cluster)) {
            let object = &manifest.object;
            let text = |field: &str| object[field].as_str().unwrap_or_default();
            let objects = &self.applications.objects;
            let served = objects.resource(text("apiVersion"), text("kind")).await?;
            if served.is_none() {
                return Err(rejected(said_of(manifest, &unserved(object))));
            }
        }
        Ok(())
    }

    /// Applies a component in stages: what comes before it, itself, and once it is healthy what comes after.
    async fn take_component(&mut self, component: &Delivered) -> Result<ComponentService, Failure> {
        for stage in [TraitStage::PreDispatch, TraitStage::DefaultDispatch] {
            self.apply(&on_hub(component, &stage)).await?;
        }
        let (early, late_types) = without_late(component, self.appfile);
        let mut service = self.judge(&early)?;
        if late_types.is_empty() {
            return Ok(service);
        }
        if service.healthy {
            self.apply(&on_hub(component, &TraitStage::PostDispatch))
                .await?;
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
        let live = |manifest: &Manifest| self.live.get(&tracker::identity_of(manifest));
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

    /// The objects as they were applied last.
    fn recorded(&self) -> BTreeMap<tracker::Identity, Value> {
        let mut recorded = BTreeMap::new();
        let entries = self
            .before
            .iter()
            .flat_map(|tracker| &tracker.spec.managed_resources);
        for entry in entries {
            if let Some(raw) = &entry.raw {
                recorded
                    .entry(tracker::identity(entry))
                    .or_insert_with(|| dispatch::compared(raw.value()));
            }
        }
        recorded
    }

    /// Applies objects on the hub.
    pub(super) async fn apply(&mut self, manifests: &[&Manifest]) -> Result<(), Failure> {
        if manifests.is_empty() {
            return Ok(());
        }
        let context = &self.appfile.context;
        let account = context.annotations.get(annotation::SERVICE_ACCOUNT);
        let account = account.map(|name| Account {
            namespace: context.namespace.clone(),
            name: name.clone(),
        });
        let request = Request {
            manifests,
            policies: self.policies,
            occasion: self.occasion,
            recorded: &self.recorded(),
            account: account.as_ref(),
            hand_over: hand_over_delay(&context.annotations),
        };
        let key = ObjectKey::new(&context.namespace, &context.name);
        let applied = self.applications.objects.apply(&key, &request).await?;
        let Applied {
            live,
            problems,
            repaired,
            left_deleted,
            next,
        } = applied;
        let live = live.into_iter();
        self.live
            .extend(live.map(|(identity, object)| (identity, Arc::unwrap_or_clone(object))));
        self.repaired.extend(repaired);
        self.left_deleted.extend(left_deleted);
        self.next = [self.next, next].into_iter().flatten().min();
        if problems.is_empty() {
            return Ok(());
        }
        Err(rejected(problems.join("; ")))
    }
}

/// How long an object keeps its content that came from another application which shared it: until this one is due again.
fn hand_over_delay(annotations: &BTreeMap<String, String>) -> SignedDuration {
    let asked = annotations.get(annotation::RECONCILE_INTERVAL);
    asked
        .and_then(|asked| duration::parse(asked).ok())
        .filter(|asked| *asked >= SHORTEST_INTERVAL)
        .unwrap_or(DEFAULT_INTERVAL)
}

/// The objects of a component that are applied on the hub at a stage.
fn on_hub<'a>(component: &'a Delivered, stage: &TraitStage) -> Vec<&'a Manifest> {
    let manifests = component.manifests.iter();
    manifests
        .filter(|manifest| manifest.stage == *stage && is_local(&manifest.cluster))
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
