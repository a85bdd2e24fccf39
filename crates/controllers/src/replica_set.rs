//! Works for every cluster that the placements of a ManifestWorkReplicaSet choose.
//!
//! What is to be done is decided by `bellwether_work::replica_set`. Entry point: [`run`].

mod pending;
pub(crate) mod rest;
mod written;

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use bellwether_api::cluster::names::label as cluster_label;
use bellwether_api::cluster::{ManagedCluster, Placement, PlacementDecision};
use bellwether_api::work::names::{annotation, event, label};
use bellwether_api::work::{GROUP, ManifestWork, ManifestWorkReplicaSet};
use bellwether_runtime::{
    Cache, Change, Clock, Controller, EventDraft, EventType, Next, ObjectKey, Queue, Reconcile,
    Recorder, Selection, compute, created_by, delete_if_exists, patch_seen, unless_exists,
    write_status,
};
use bellwether_work::Programs;
use bellwether_work::replica_set::report::Report;
use bellwether_work::replica_set::transition::{RolloutSnapshot, Transition};
use bellwether_work::replica_set::{
    ChangedWorks, Chosen, Counted, Memo, Observed, Plan, count_changes, plan_and_report,
};
use futures::{FutureExt as _, StreamExt as _, stream};
use jiff::SignedDuration;
use kube::Api;
use kube::api::DeleteParams;
use parking_lot::Mutex;
use serde_json::json;

use crate::hub::Hub;
use crate::registry::{EVENTS, Entry, Rule, Watched};
use pending::{Changes, Pending, is_report};
use rest::{Rests, rest_after, rests_until};
use written::Written;

/// How many replica sets are reconciled at once.
const WORKERS: usize = 4;
/// How many works of one replica set are written at once: enough that their writes share commits.
const WRITES_AT_ONCE: usize = 32;

/// The controller of replica sets.
pub const ENTRY: Entry = Entry {
    name: "replica-set",
    about: "creates works for the clusters that placements choose, and rolls changes out",
    watches: &[
        Watched::kind::<ManagedCluster>(),
        Watched::kind::<ManifestWorkReplicaSet>(),
        Watched::kind::<Placement>(),
        Watched::kind::<PlacementDecision>(),
    ],
    rights: &[
        EVENTS,
        Rule {
            group: GROUP,
            resources: &["manifestworks"],
            verbs: &[
                "get",
                "list",
                "watch",
                "create",
                "update",
                "delete",
                "execute-as",
            ],
        },
        Rule {
            group: GROUP,
            resources: &["manifestworkreplicasets", "manifestworkreplicasets/status"],
            verbs: &["patch"],
        },
        Rule {
            group: GROUP,
            resources: &["manifestworkreplicasets/finalizers"],
            verbs: &["update"],
        },
    ],
    run: |hub, _| run(hub).boxed(),
};

/// Works by the label that names their replica set.
type ByOwner = Arc<Mutex<BTreeMap<String, BTreeMap<ObjectKey, Arc<ManifestWork>>>>>;

/// Keeps the works of all replica sets as they should be, until it is dropped.
pub async fn run(hub: Hub) {
    let controller = Controller::new(ENTRY.name, &hub.clock, &hub.metrics);
    let (by_owner, rests, pending) = (ByOwner::default(), Rests::default(), Pending::default());
    let listener = WorkListener {
        by_owner: Arc::clone(&by_owner),
        queue: controller.queue(),
        rests: Arc::clone(&rests),
        pending: pending.clone(),
        clock: hub.clock.clone(),
    };
    let works = watch_works(&hub, listener);
    let sets: Cache<ManifestWorkReplicaSet> = hub.cache();
    let [with_values, of_placement, of_decision] = [(); 3].map(|()| sets.clone());
    let reconciler = ReplicaSets {
        events: hub.recorder(ENTRY.name),
        sets: sets.clone(),
        clusters: hub.cache(),
        placements: hub.cache(),
        decisions: hub.cache(),
        by_owner,
        programs: Programs::default(),
        snapshots: Mutex::default(),
        memos: Mutex::default(),
        rests,
        pending: pending.clone(),
        written: Written::default(),
        hub: hub.clone(),
    };
    // Whatever is not a change of a work is planned.
    let [of_sets, of_clusters, of_placements, of_decisions] = [(); 4].map(|()| pending.clone());
    controller
        .on(&sets, move |change| of_sets.plan(set_changed(change)))
        .on(&hub.cache(), move |change| {
            of_clusters.plan(cluster_changed(&with_values, change))
        })
        .on(&hub.cache(), move |change: &Change<'_, Placement>| {
            let (namespace, name) = (&change.key.namespace, &change.key.name);
            of_placements.plan(sets_of(&of_placement, namespace, name))
        })
        .on(&hub.cache(), move |change| {
            of_decisions.plan(decision_changed(&of_decision, change))
        })
        .after(&works)
        .workers(WORKERS)
        .run(Arc::new(reconciler))
        .await;
}

/// The replica set that a label of a work names.
fn owner_key(owner: &str) -> Option<ObjectKey> {
    // Namespaces have no dots, names may.
    let (namespace, name) = owner.split_once('.')?;
    Some(ObjectKey::new(namespace, name))
}

fn owner_of(work: &ManifestWork) -> Option<&String> {
    work.metadata.labels.as_ref()?.get(label::REPLICA_SET)
}

/// Takes in changes of works.
struct WorkListener {
    by_owner: ByOwner,
    queue: Queue<ObjectKey>,
    rests: Rests,
    pending: Pending,
    clock: Clock,
}

/// Watches only works that replica sets made.
fn watch_works(hub: &Hub, listener: WorkListener) -> Cache<ManifestWork> {
    let selection = Selection::labels(label::REPLICA_SET);
    Cache::start(Api::all(hub.client.clone()), selection, move |change| {
        listener.see(&change);
    })
}

impl WorkListener {
    fn see(&self, change: &Change<'_, ManifestWork>) {
        let is_report = match (change.old, change.new) {
            (Some(old), Some(new)) => is_report(old, new),
            _ => false,
        };
        let owner_now = change.new.and_then(|work| owner_of(work));
        let owner_before = change.old.and_then(|work| owner_of(work));
        // A work is never missing in between: another thread may plan at any moment.
        let owner_before = owner_before.filter(|owner| Some(*owner) != owner_now);
        for (owner, work) in [(owner_before, None), (owner_now, change.new)] {
            let Some(owner) = owner else {
                continue;
            };
            self.keep(owner, change.key, work);
            if let Some(key) = owner_key(owner) {
                let cluster = &change.key.namespace;
                self.pending.add_work(&key, cluster, is_report);
                match rests_until(&self.rests, &key, self.clock.now()) {
                    Some(until) => self.queue.add_at(key, until),
                    None => self.queue.add(key),
                }
            }
        }
    }

    fn keep(&self, owner: &str, key: &ObjectKey, work: Option<&Arc<ManifestWork>>) {
        let mut all = self.by_owner.lock();
        let works = all.entry(owner.to_owned()).or_default();
        match work {
            Some(work) => works.insert(key.clone(), Arc::clone(work)),
            None => works.remove(key),
        };
        if works.is_empty() {
            all.remove(owner);
        }
    }
}

fn set_changed(change: &Change<'_, ManifestWorkReplicaSet>) -> Option<ObjectKey> {
    let is_own_write = match (change.old, change.new) {
        (Some(old), Some(new)) => is_same_but_for_status(old, new),
        _ => false,
    };
    (!is_own_write).then(|| change.key.clone())
}

/// True if only the status has changed, which is what this controller writes itself.
fn is_same_but_for_status(old: &ManifestWorkReplicaSet, new: &ManifestWorkReplicaSet) -> bool {
    let (old, new) = (&old.metadata, &new.metadata);
    old.uid == new.uid
        && old.generation.is_some()
        && old.generation == new.generation
        && old.labels == new.labels
        && old.annotations == new.annotations
        && old.finalizers == new.finalizers
        && old.deletion_timestamp == new.deletion_timestamp
}

/// The replica sets of a namespace that name a placement.
fn sets_of(
    sets: &Cache<ManifestWorkReplicaSet>,
    namespace: &str,
    placement: &str,
) -> Vec<ObjectKey> {
    let sets = sets.in_namespace(namespace);
    let concerned = sets.iter().filter(|set| {
        let mut references = set.spec.placement_refs.iter();
        references.any(|reference| reference.name == placement)
    });
    concerned.map(|set| ObjectKey::of(&**set)).collect()
}

fn decision_changed(
    sets: &Cache<ManifestWorkReplicaSet>,
    change: &Change<'_, PlacementDecision>,
) -> Vec<ObjectKey> {
    let decisions = [change.old, change.new].into_iter().flatten();
    let placements = decisions.filter_map(|decision| placement_of(decision));
    placements
        .flat_map(|placement| sets_of(sets, &change.key.namespace, placement))
        .collect()
}

/// The replica sets whose templates take values from clusters, if a cluster has other values now.
fn cluster_changed(
    sets: &Cache<ManifestWorkReplicaSet>,
    change: &Change<'_, ManagedCluster>,
) -> Vec<ObjectKey> {
    if let (Some(old), Some(new)) = (change.old, change.new)
        && has_same_values(old, new)
    {
        return Vec::new();
    }
    let sets = sets.list();
    let concerned = sets.iter().filter(|set| has_values(set));
    concerned.map(|set| ObjectKey::of(&**set)).collect()
}

/// True if the template takes values from clusters.
fn has_values(set: &ManifestWorkReplicaSet) -> bool {
    let annotations = set.metadata.annotations.as_ref();
    annotations.is_some_and(|map| map.contains_key(annotation::TEMPLATE_VALUES))
}

/// Keeps the first of several errors.
async fn first_error(
    known: Result<(), kube::Error>,
    next: Result<(), kube::Error>,
) -> Result<(), kube::Error> {
    known.and(next)
}

/// Whether a cluster has the values that it had, as far as templates see them.
fn has_same_values(old: &ManagedCluster, new: &ManagedCluster) -> bool {
    let claims = |cluster: &ManagedCluster| {
        let status = cluster.status.as_ref();
        status.map(|status| status.cluster_claims.clone())
    };
    old.metadata.labels == new.metadata.labels
        && old.metadata.annotations == new.metadata.annotations
        && claims(old) == claims(new)
}

fn placement_of(decision: &PlacementDecision) -> Option<&str> {
    let labels = decision.metadata.labels.as_ref()?;
    labels.get(cluster_label::PLACEMENT).map(String::as_str)
}

struct ReplicaSets {
    events: Recorder,
    hub: Hub,
    sets: Cache<ManifestWorkReplicaSet>,
    clusters: Cache<ManagedCluster>,
    placements: Cache<Placement>,
    decisions: Cache<PlacementDecision>,
    by_owner: ByOwner,
    programs: Programs,
    /// How rollouts stood when events were last recorded. Forgotten with the process: what a new one
    /// sees first counts as recorded.
    snapshots: Mutex<HashMap<ObjectKey, RolloutSnapshot>>,
    /// What is remembered of the works of each replica set, so that a plan costs what has changed.
    memos: Mutex<HashMap<ObjectKey, Arc<Memo>>>,
    rests: Rests,
    pending: Pending,
    written: Written,
}

impl Reconcile for ReplicaSets {
    type Key = ObjectKey;
    type Error = kube::Error;

    async fn reconcile(&self, key: &ObjectKey) -> Result<Next, kube::Error> {
        let Some(set) = self
            .sets
            .get(key)
            .map(|seen| self.written.latest(key, seen))
        else {
            self.written.forget(key);
            self.pending.take(key);
            self.snapshots.lock().remove(key);
            self.memos.lock().remove(key);
            self.rests.lock().remove(key);
            return Ok(None);
        };
        if let Changes::Works(clusters) = self.pending.take(key)
            && let Some(counted) = self.count(key, &set, &clusters)
        {
            let done = self.execute(&set, &counted.plan).await;
            if done.is_err() {
                // What was counted cannot be counted again: a plan follows.
                self.pending.add(key);
            }
            done?;
            self.rest(key, Some(rest::AFTER_COUNT));
            return Ok(counted.plan.wake_at);
        }
        // Values of clusters are programs of users, which may take long.
        let (plan, report) = if has_values(&set) {
            compute(|| self.decide(key, &set)).await
        } else {
            self.decide(key, &set)
        };
        if let Some(report) = report {
            self.record_transitions(key, &set, &report);
        }
        let done = self.execute(&set, &plan).await;
        self.rest(key, rest_after(self.works(&set)));
        done?;
        Ok(plan.wake_at)
    }
}

impl ReplicaSets {
    /// How many works a replica set has.
    fn works(&self, set: &ManifestWorkReplicaSet) -> usize {
        let owner = bellwether_work::replica_set::owner_label(set);
        self.by_owner.lock().get(&owner).map_or(0, BTreeMap::len)
    }

    /// Lets a replica set rest: what its works report meanwhile is reconciled together.
    fn rest(&self, key: &ObjectKey, rest: Option<SignedDuration>) {
        if let Some(rest) = rest
            && let Ok(until) = self.hub.clock.now().checked_add(rest)
        {
            self.rests.lock().insert(key.clone(), until);
        }
    }

    /// Counts changes of works, if no plan is needed for them; that costs the same for any number of works.
    fn count(
        &self,
        key: &ObjectKey,
        set: &ManifestWorkReplicaSet,
        clusters: &BTreeMap<Arc<str>, bool>,
    ) -> Option<Counted> {
        let owner = bellwether_work::replica_set::owner_label(set);
        let memo = self.memos.lock().get(key).cloned()?;
        let works_of = |cluster: &str| -> Vec<Arc<ManifestWork>> {
            let all = self.by_owner.lock();
            let Some(works) = all.get(&owner) else {
                return Vec::new();
            };
            let works = works.range(ObjectKey::new(cluster, "")..);
            let works = works.take_while(|(key, _)| &*key.namespace == cluster);
            works.map(|(_, work)| Arc::clone(work)).collect()
        };
        let changes = ChangedWorks {
            set,
            clusters,
            works_of: &works_of,
            now: self.hub.clock.now(),
        };
        let counted = count_changes(&changes, &self.programs, &memo)?;
        let mut snapshots = self.snapshots.lock();
        for transition in snapshots.get_mut(key)?.count(&counted) {
            self.record(set, transition);
        }
        Some(counted)
    }

    fn decide(&self, key: &ObjectKey, set: &ManifestWorkReplicaSet) -> (Plan, Option<Report>) {
        let owner = bellwether_work::replica_set::owner_label(set);
        let works: Vec<Arc<ManifestWork>> = self
            .by_owner
            .lock()
            .get(&owner)
            .map(|works| works.values().cloned().collect())
            .unwrap_or_default();
        let namespace = set.metadata.namespace.as_deref().unwrap_or_default();
        let references = set.spec.placement_refs.iter();
        let placements: BTreeMap<String, Chosen> = references
            .filter_map(|reference| {
                let chosen = self.chosen(namespace, &reference.name)?;
                Some((reference.name.clone(), chosen))
            })
            .collect();
        let cluster = |name: &str| -> Option<Arc<ManagedCluster>> {
            self.clusters.get(&ObjectKey::cluster_scoped(name))
        };
        let observed = Observed {
            set,
            placements: &placements,
            works: &works,
            cluster: &cluster,
            now: self.hub.clock.now(),
        };
        let memo = Arc::clone(self.memos.lock().entry(key.clone()).or_default());
        plan_and_report(&observed, &self.programs, &memo)
    }

    /// Records as events what has happened to a rollout since it was last looked at.
    fn record_transitions(&self, key: &ObjectKey, set: &ManifestWorkReplicaSet, report: &Report) {
        let now = RolloutSnapshot::of(report);
        let known = self.snapshots.lock().insert(key.clone(), now);
        let before = known.unwrap_or_else(|| RolloutSnapshot::before(set, report));
        for transition in before.transitions(report) {
            self.record(set, transition);
        }
    }

    fn record(&self, set: &ManifestWorkReplicaSet, transition: Transition) {
        let event_type = if transition.is_warning {
            EventType::Warning
        } else {
            EventType::Normal
        };
        let happening = EventDraft::new(event_type, transition.reason, transition.message);
        self.events.record(set, happening);
    }

    /// What a placement has chosen; nothing if there is no such placement.
    fn chosen(&self, namespace: &str, name: &str) -> Option<Chosen> {
        let placement = self.placements.get(&ObjectKey::new(namespace, name))?;
        let decisions = self.decisions.in_namespace(namespace);
        let own = decisions.iter().map(AsRef::as_ref);
        let own = own.filter(|it| placement_of(it) == Some(name));
        Some(Chosen::of(&placement, own))
    }

    async fn execute(&self, set: &ManifestWorkReplicaSet, plan: &Plan) -> Result<(), kube::Error> {
        // One work that is refused keeps neither the others nor the status from being written.
        let deleted = stream::iter(plan.delete.clone())
            .map(|(namespace, name)| async move { self.delete(&namespace, &name).await })
            .buffer_unordered(WRITES_AT_ONCE)
            .fold(Ok(()), first_error)
            .await;
        let written = stream::iter(plan.write.clone())
            .map(|work| async move {
                let written = self.write(&work).await;
                written.inspect_err(|error| self.record_refusal(set, &work, error))
            })
            .buffer_unordered(WRITES_AT_ONCE)
            .fold(Ok(()), first_error)
            .await;
        let namespace = set.metadata.namespace.as_deref().unwrap_or_default();
        let api: Api<ManifestWorkReplicaSet> = Api::namespaced(self.hub.client.clone(), namespace);
        if let Some(status) = &plan.status {
            let written = write_status(&api, set, status).await?;
            self.written.add(written);
        }
        if let Some(finalizers) = &plan.finalizers
            && deleted.is_ok()
        {
            let patch = json!({"metadata": {"finalizers": finalizers}});
            patch_seen(&api, set, patch).await?;
        }
        deleted.and(written)
    }

    /// Records that a work was refused. One that changed meanwhile was not: it is planned again.
    fn record_refusal(
        &self,
        set: &ManifestWorkReplicaSet,
        work: &ManifestWork,
        error: &kube::Error,
    ) {
        let why = match error {
            kube::Error::Api(status) if status.is_conflict() => return,
            kube::Error::Api(status) => status.message.clone(),
            other => other.to_string(),
        };
        let cluster = work.metadata.namespace.as_deref().unwrap_or_default();
        let message = format!("the work for {cluster} cannot be written: {why}");
        let happening = EventDraft::warning(event::WORK_REFUSED, message);
        self.events.record(set, happening);
    }

    async fn delete(&self, namespace: &str, name: &str) -> Result<(), kube::Error> {
        let api: Api<ManifestWork> = Api::namespaced(self.hub.client.clone(), namespace);
        delete_if_exists(&api, name, &DeleteParams::default()).await
    }

    /// Creates a work, or changes it if it is still as it was seen.
    async fn write(&self, work: &ManifestWork) -> Result<(), kube::Error> {
        let namespace = work.metadata.namespace.as_deref().unwrap_or_default();
        let name = work.metadata.name.as_deref().unwrap_or_default();
        let api: Api<ManifestWork> = Api::namespaced(self.hub.client.clone(), namespace);
        if work.metadata.resource_version.is_none() {
            // One that exists already is about to be seen.
            return unless_exists(api.create(&created_by(), work).await).map(drop);
        }
        // The whole of it: a merge would keep fields and labels that it should no longer have.
        api.replace(name, &created_by(), work).await.map(drop)
    }
}
