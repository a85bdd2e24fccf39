//! Replicas of policies for the clusters that their bindings choose, and rollouts of new versions.
//!
//! What is to be done is decided by `bellwether_policy::rollout`. Entry point: [`run`].
//!
//! What a policy comes to for its clusters (`Prepared`) is kept until something changes that it is made of.
//! Reports of clusters change none of that. Where clusters do not wait for each other they are counted (`reports`),
//! at the same cost for any number of clusters and policies; during a rollout step by step each costs a plan. They are
//! gathered while they come in fast.

mod execute;
mod lookups;
mod prepare;
mod replicas;
mod reports;
mod roots;
mod set_status;
mod watches;

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;

use bellwether_api::cluster::{ManagedCluster, Placement, PlacementDecision};
use bellwether_api::policy::names::{PROPAGATOR, label};
use bellwether_api::policy::{
    GROUP, PlacementBinding, PlacementRule, Policy, PolicySet, RolloutStatus,
};
use bellwether_policy::rollout::{Observed, Plan, Tally, plan};
use bellwether_runtime::{
    Cache, Controller, Next, ObjectKey, Queue, Reconcile, Recorder, Selection, delete_if_exists,
};
use futures::FutureExt as _;
use jiff::SignedDuration;
use kube::api::DeleteParams;
use kube::{Api, Resource as _};
use parking_lot::Mutex;

use crate::hub::Hub;
use crate::registry::{EVENTS, Entry, Rule, Watched};
use crate::replica_set::rest::Rests;
use lookups::Lookups;
use prepare::Prepared;
use replicas::Replicas;
pub(crate) use replicas::is_newer;
use reports::{PendingChange, Reports};
use roots::{RootHead, Roots};
use set_status::Sets;
use watches::Awaited;

/// How many policies are reconciled at once.
const WORKERS: usize = 4;
/// Policies with fewer replicas do not rest.
const SMALL: usize = 8;
/// How long a policy rests after a plan for each of its replicas, in microseconds. The status of the policy has
/// an entry for each of them, so that writing it costs most.
const REST_PER_REPLICA: i64 = 200;
/// How long it rests at most.
const LONGEST_REST: SignedDuration = SignedDuration::from_secs(1);

/// The controller of policies.
pub const ENTRY: Entry = Entry {
    name: "policy-propagator",
    about: "copies policies to the clusters that placements choose, and rolls changes out",
    watches: &[
        Watched::kind::<ManagedCluster>(),
        Watched::kind::<Placement>(),
        Watched::kind::<PlacementBinding>(),
        Watched::kind::<PlacementDecision>(),
        Watched::kind::<PlacementRule>(),
        Watched::kind::<PolicySet>(),
    ],
    rights: &[
        EVENTS,
        Rule {
            group: GROUP,
            resources: &["policies"],
            verbs: &["get", "list", "watch", "create", "update", "delete"],
        },
        Rule {
            group: GROUP,
            resources: &["policies/status", "policysets/status"],
            verbs: &["patch"],
        },
        // The keys of clusters.
        Rule {
            group: "",
            resources: &["secrets"],
            verbs: &["get", "create", "update"],
        },
        // What hub templates look up.
        Rule {
            group: "*",
            resources: &["*"],
            verbs: &["get", "list", "watch"],
        },
        Rule {
            group: "authorization.k8s.io",
            resources: &["subjectaccessreviews"],
            verbs: &["create"],
        },
    ],
    run: |hub, _| run(hub).boxed(),
};

/// What a policy depends on, as last seen.
#[derive(Clone)]
struct Sources {
    roots: Cache<RootHead>,
    bindings: Cache<PlacementBinding>,
    sets: Cache<PolicySet>,
    rules: Cache<PlacementRule>,
    clusters: Cache<ManagedCluster>,
    placements: Cache<Placement>,
    decisions: Cache<PlacementDecision>,
}

/// Keys of root policies to reconcile, and those that have to be prepared again before.
#[derive(Clone)]
struct Triggers {
    queue: Queue<ObjectKey>,
    outdated: Arc<Mutex<HashSet<ObjectKey>>>,
    reports: Reports,
}

impl Triggers {
    /// Reconciles a policy after something changed that its replicas are made of.
    fn renew(&self, key: ObjectKey) {
        self.outdated.lock().insert(key.clone());
        self.reports.add_change(&key);
        self.queue.add(key);
    }
}

/// Keeps the replicas of all policies, and the statuses of policies and sets, as they should be until it is
/// dropped.
pub async fn run(hub: Hub) {
    let triggers = Triggers {
        queue: Queue::new(hub.clock.clone()),
        outdated: Arc::default(),
        reports: Reports::default(),
    };
    let sources = Sources {
        roots: Cache::follow(
            hub.client.clone(),
            Policy::url_path(&(), None),
            Selection::labels(&format!("!{}", label::ROOT_POLICY)).metadata_only(),
            |_| {},
        ),
        bindings: hub.cache(),
        sets: hub.cache(),
        rules: hub.cache(),
        clusters: hub.cache(),
        placements: hub.cache(),
        decisions: hub.cache(),
    };
    let replicas = Replicas::default();
    let rests = Rests::default();
    let sets = Sets::new(&hub.clock, &replicas);
    let copies = watches::replicas(&hub, &replicas, &triggers, &rests, &sets);
    let awaited = Awaited::default();
    watches::sources(&sources, &triggers, &awaited);
    let lookups = Lookups::new(&hub, &sources, &triggers);
    watches::clusters(&sources, &lookups);
    let statuses = set_status::run(hub.clone(), sources.clone(), sets.clone(), &copies);
    let metrics = hub.metrics.clone();
    let queue = triggers.queue.clone();
    let propagator = Propagator {
        events: hub.recorder(PROPAGATOR),
        hub,
        sources: sources.clone(),
        replicas,
        triggers,
        rests,
        lookups,
        sets,
        awaited,
        roots: Roots::default(),
        prepared: Mutex::default(),
        refused: Mutex::default(),
        marked: Mutex::default(),
        problems: Mutex::default(),
        tallies: Mutex::default(),
    };
    let policies = Controller::with_queue(ENTRY.name, queue, &metrics)
        .after(&sources.roots)
        .after(&sources.bindings)
        .after(&sources.sets)
        .after(&sources.rules)
        .after(&sources.clusters)
        .after(&sources.placements)
        .after(&sources.decisions)
        .after(&copies)
        .workers(WORKERS)
        .run(Arc::new(propagator));
    futures::join!(policies, statuses);
}

struct Propagator {
    hub: Hub,
    sources: Sources,
    replicas: Replicas,
    triggers: Triggers,
    rests: Rests,
    lookups: Lookups,
    events: Recorder,
    sets: Sets,
    awaited: Awaited,
    roots: Roots,
    prepared: Mutex<HashMap<ObjectKey, Arc<Prepared>>>,
    /// Replicas that the server refuses, by root policy and cluster, and why.
    refused: Mutex<HashMap<ObjectKey, BTreeMap<Arc<str>, String>>>,
    /// What was last written about the rollout on replicas. An agent that removes it is not contradicted.
    marked: Mutex<HashMap<ObjectKey, HashMap<Arc<str>, Marked>>>,
    /// What was last recorded to be wrong with strategies.
    problems: Mutex<HashMap<ObjectKey, String>>,
    /// The counts of policies whose clusters do not wait for each other.
    tallies: Mutex<HashMap<ObjectKey, Tally>>,
}

/// What was written about the rollout on a replica of this uid and generation.
type Marked = (Option<String>, i64, RolloutStatus);

impl Reconcile for Propagator {
    type Key = ObjectKey;
    type Error = kube::Error;

    async fn reconcile(&self, key: &ObjectKey) -> Result<Next, kube::Error> {
        let counts = self.tallies.lock().remove(key);
        if let (PendingChange::Reports(clusters), Some(counts)) =
            (self.triggers.reports.take(key), counts)
            && self.count(key, counts, &clusters).await?
        {
            return Ok(None);
        }
        let Some(root) = self.root(key).await? else {
            self.forget(key);
            return self.delete_orphans(key).await.map(|()| None);
        };
        self.sets.note(key, &root);
        // A policy in the namespace of a cluster would be taken for one of its replicas.
        if self.is_cluster(&key.namespace) {
            return Ok(None);
        }
        let prepared = self.prepare(key, &root).await?;
        let replicas = self.replicas.of(key);
        let refused = self.refused.lock().get(key).cloned().unwrap_or_default();
        let plan = plan(&Observed {
            root: &root,
            blueprint: &prepared.blueprint,
            bound: &prepared.bound,
            version: &|cluster| prepared.version(cluster),
            replicas: &replicas,
            refused: &refused,
            is_cluster: &|namespace| self.is_cluster(namespace),
            now: self.hub.clock.now(),
        });
        let may_count = leaves_replicas(&plan);
        let (root, next) = self.execute(key, root, &prepared, plan).await?;
        self.begin_rest(key, replicas.len());
        let counts = (may_count && next.is_none()).then(|| Tally::new(&root, &replicas));
        if let Some(counts) = counts.flatten() {
            self.tallies.lock().insert(key.clone(), counts);
            // Nobody asks for all of it before a plan does.
            self.roots.forget(key);
        }
        Ok(next)
    }
}

/// True if a plan writes nothing but the status of the root policy.
fn leaves_replicas(plan: &Plan) -> bool {
    plan.status_first.is_none()
        && plan.write.is_empty()
        && plan.delete.is_empty()
        && plan.mark.is_empty()
        && plan.problem.is_none()
        && plan.wake_at.is_none()
}

impl Propagator {
    /// The root policy as last seen or written.
    async fn root(&self, key: &ObjectKey) -> Result<Option<Arc<Policy>>, kube::Error> {
        match self.sources.roots.get(key) {
            Some(seen) => self.roots.read(&self.hub.client, key, &seen).await,
            None => Ok(None),
        }
    }

    fn is_cluster(&self, namespace: &str) -> bool {
        let key = ObjectKey::cluster_scoped(namespace);
        self.sources.clusters.get(&key).is_some()
    }

    /// Lets a policy with many replicas rest: what they report meanwhile is looked at together.
    fn begin_rest(&self, key: &ObjectKey, replicas: usize) {
        if replicas < SMALL {
            return;
        }
        let replicas = i64::try_from(replicas).unwrap_or(i64::MAX);
        let rest = SignedDuration::from_micros(replicas.saturating_mul(REST_PER_REPLICA));
        if let Ok(until) = self.hub.clock.now().checked_add(rest.min(LONGEST_REST)) {
            self.rests.lock().insert(key.clone(), until);
        }
    }

    fn forget(&self, key: &ObjectKey) {
        self.roots.forget(key);
        self.sets.forget(key);
        self.awaited.set(key, Vec::new());
        self.prepared.lock().remove(key);
        self.refused.lock().remove(key);
        self.marked.lock().remove(key);
        self.problems.lock().remove(key);
        self.rests.lock().remove(key);
        self.tallies.lock().remove(key);
        self.lookups.forget(key);
    }

    /// Deletes the replicas of a policy that is gone. Those that are not in the namespace of a cluster were made
    /// by somebody else.
    async fn delete_orphans(&self, key: &ObjectKey) -> Result<(), kube::Error> {
        for replica in self.replicas.of(key).values() {
            if self.is_cluster(&replica.cluster) && !replica.is_deleting {
                self.delete(key, replica).await?;
            }
        }
        Ok(())
    }

    /// Succeeds if the replica is gone.
    async fn delete(
        &self,
        key: &ObjectKey,
        replica: &bellwether_policy::propagation::Replica,
    ) -> Result<(), kube::Error> {
        let name = bellwether_api::policy::names::replica_name(&key.namespace, &key.name);
        let api: Api<Policy> = Api::namespaced(self.hub.client.clone(), &replica.cluster);
        delete_if_exists(&api, &name, &DeleteParams::default()).await
    }
}
