//! The agents of members: what a work on the hub says is made so on the member, kept so, and
//! reported.
//!
//! [`WorkAgents`] serves any number of members of one hub. Watches on the hub are shared; a member
//! costs nothing until there is a work for it. What is decided is in `bellwether_work`; what is here
//! reads, writes, and remembers what it has written:
//!
//! | module | for |
//! |---|---|
//! | `hub` | works as the hub has them, in both interfaces |
//! | `member`, `records` | what is known of a member |
//! | `arrivals`, `rights` | what works depend on there besides their objects |
//! | `pass` | one reconcile of one work: deliver, record, report |
//! | `removal` | works and records that go |
//! | `turns`, `budget` | how often the hub is written to, and what programs may take |
//!
//! What is about to be created is on record before it is created, and a record is the owner of
//! what was created: an agent that is killed at any moment leaves nothing behind that is neither
//! recorded nor owned.

mod arrivals;
mod budget;
mod cached_json;
mod events;
mod hub;
mod member;
mod metrics;
mod pass;
mod records;
mod removal;
mod report;
mod rights;
mod turns;
mod write_through_cache;

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Weak};
use std::time::Duration;

use bellwether_runtime::{
    Clock, ClusterHandle, Controller, ControllerMetrics, Next, Queue, Reconcile, ReconcileError,
    RequestError, Retry, SharedKinds, spawn_vital,
};
use bellwether_work::{Programs, feedback, record};
use futures::FutureExt as _;
use futures::future::BoxFuture;
use jiff::{SignedDuration, Timestamp};
use kube::Client;
use parking_lot::{Mutex, RwLock};

pub use metrics::Metrics;

use events::Events;
use hub::{HubClients, HubSide};
use member::Member;
use turns::Turns;

/// In which interface a work is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum WorkApi {
    /// ManifestWork, with AppliedManifestWork as its record.
    ManifestWork,
    /// Work of the work API, with AppliedWork as its record.
    Work,
}

/// A work of a member, by the name of its record.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct WorkKey {
    /// The member.
    pub cluster: Arc<str>,
    /// The interface.
    pub work_api: WorkApi,
    /// The name of the record on the member.
    pub record: Arc<str>,
}

impl fmt::Display for WorkKey {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (&self.work_api, &*self.record) {
            (work_api, "") => write!(formatter, "{}/all records of {work_api:?}", self.cluster),
            (_, record) => write!(formatter, "{}/{record}", self.cluster),
        }
    }
}

/// How agents behave.
#[derive(Debug, Clone)]
pub struct AgentOptions {
    /// Who the agent is to records; the hash of the hub's address if nothing is said.
    pub agent_id: Option<String>,
    /// How often objects are read that cannot be watched.
    pub status_sync_interval: Duration,
    /// How long the record of a work that is missing on the hub is kept.
    pub eviction_grace: SignedDuration,
    /// Whether lists and maps come back as JSON.
    pub raw_feedback: bool,
    /// The longest such JSON.
    pub max_json_raw: usize,
    /// How many works are reconciled at once.
    pub workers: usize,
    /// Where what is done is counted; agents that follow each other may count in one place.
    pub metrics: Arc<Metrics>,
    /// Where reconciles are counted.
    pub controller_metrics: ControllerMetrics,
}

impl Default for AgentOptions {
    fn default() -> Self {
        Self {
            agent_id: None,
            status_sync_interval: Duration::from_secs(10),
            eviction_grace: SignedDuration::from_hours(1),
            raw_feedback: false,
            max_json_raw: feedback::MAX_JSON_RAW,
            workers: 32,
            metrics: Arc::default(),
            controller_metrics: ControllerMetrics::default(),
        }
    }
}

/// Why a look at a work came to nothing. It is taken again after a while.
#[derive(Debug, thiserror::Error)]
pub enum AgentError {
    /// A request failed that everything else depends on.
    #[error("{action}: {source}")]
    Request {
        /// What was tried.
        action: &'static str,
        /// Why it failed.
        source: RequestError,
    },
    /// Some manifests could not be applied; the status says which.
    #[error("{count} manifests could not be applied or removed")]
    Manifests {
        /// How many.
        count: usize,
        /// When the one that is to be tried again first is.
        retry: Retry,
    },
    /// An object of a work that is being removed could not be removed.
    #[error("removing an object: {message}")]
    Removal {
        /// What the server says.
        message: String,
        /// When it is worth being tried again.
        retry: Retry,
    },
}

impl ReconcileError for AgentError {
    fn retry(&self) -> Retry {
        match self {
            Self::Request { source, .. } => source.retry(),
            Self::Manifests { retry, .. } | Self::Removal { retry, .. } => *retry,
        }
    }

    fn label(&self) -> &'static str {
        match self {
            Self::Request { source, .. } => source.label(),
            Self::Manifests { .. } => "manifests",
            Self::Removal { .. } => "removal",
        }
    }
}

impl AgentError {
    /// Returns true if a server does not let the agent do something.
    fn is_forbidden(&self) -> bool {
        match self {
            Self::Request { source, .. } => source.is_forbidden(),
            Self::Manifests { .. } | Self::Removal { .. } => false,
        }
    }

    fn at<E: Into<RequestError>>(action: &'static str) -> impl FnOnce(E) -> Self {
        move |source| Self::Request {
            action,
            source: source.into(),
        }
    }
}

/// All agents of a process that belong to one hub. Cheap to clone.
#[derive(Clone)]
pub struct WorkAgents {
    shared: Arc<Shared>,
}

struct Shared {
    hub_clients: Arc<HubClients>,
    hub: HubSide,
    hub_hash: String,
    members: RwLock<HashMap<Arc<str>, Arc<Member>>>,
    queue: Queue<WorkKey>,
    clock: Clock,
    options: AgentOptions,
    programs: Programs,
    metrics: Arc<Metrics>,
    events: Events,
    /// Kinds that members have in common.
    kinds: Arc<SharedKinds>,
    /// When works changed on the hub that have not been dealt with since.
    first_seen: Mutex<HashMap<WorkKey, Timestamp>>,
    /// How often statuses were written lately.
    turns: Mutex<Turns>,
}

impl WorkAgents {
    /// Begins to watch the works of a hub, of one cluster or of all, and waits until they are known.
    /// The address is what tells this hub from others, on members that have several.
    pub async fn start(
        hub: Client,
        address: &str,
        cluster: Option<&str>,
        clock: Clock,
        options: AgentOptions,
    ) -> Self {
        let queue = Queue::new(clock.clone());
        let hub_hash = record::hub_hash(address);
        let metrics = Arc::clone(&options.metrics);
        let hub_clients = Arc::new(HubClients::new(hub));
        let hub_side = HubSide::start(
            Arc::clone(&hub_clients),
            cluster,
            Arc::clone(&metrics),
            &clock,
        )
        .await;
        let shared = Arc::new(Shared {
            events: Events::new(Arc::clone(&hub_clients), &clock),
            hub_clients,
            hub: hub_side,
            hub_hash,
            members: RwLock::default(),
            queue,
            clock,
            programs: Programs::default(),
            metrics,
            options,
            kinds: Arc::default(),
            first_seen: Mutex::default(),
            turns: Mutex::default(),
        });
        let weak = Arc::downgrade(&shared);
        // Records whose works could not be listed are reconciled when they can be.
        let late = shared.hub.when_all_known();
        drop(spawn_vital("late records of works", {
            let weak = Weak::clone(&weak);
            async move {
                late.await;
                if let Some(shared) = weak.upgrade() {
                    shared.enqueue_records(WorkApi::Work);
                }
            }
        }));
        shared.hub.listen(move |cluster, work_api, work| {
            if let Some(shared) = weak.upgrade() {
                shared.track(cluster, work_api, work);
            }
        });
        Self { shared }
    }

    /// Has everything that is written to the hub for a member written by clients from there from now
    /// on: those that the member's certificate vouches for.
    pub fn use_hub_client(&self, cluster: &str, hub: impl Into<ClusterHandle>) {
        self.shared.hub_clients.insert(cluster, hub.into());
    }

    /// Takes care of a member from now on. A member of that name is replaced.
    pub fn add_member(&self, cluster: &str, member: impl Into<ClusterHandle>) {
        let shared = &self.shared;
        let name: Arc<str> = cluster.into();
        let member = Member::new(
            Arc::clone(&name),
            member.into(),
            shared.queue.clone(),
            &shared.metrics,
            Arc::clone(&shared.kinds),
            shared.clock.clone(),
        );
        shared
            .members
            .write()
            .insert(Arc::clone(&name), Arc::new(member));
        for (work_api, work) in shared.hub.works_of(cluster) {
            shared.track(cluster, work_api, &work);
        }
        // Records of works that went while nobody was there have to be found, too.
        for work_api in [WorkApi::ManifestWork, WorkApi::Work] {
            shared.queue.add(WorkKey {
                cluster: Arc::clone(&name),
                work_api,
                record: "".into(),
            });
        }
    }

    /// Takes no more care of a member.
    pub fn remove_member(&self, cluster: &str) {
        self.shared.members.write().remove(cluster);
        self.shared.hub_clients.remove(cluster);
        let mut first_seen = self.shared.first_seen.lock();
        first_seen.retain(|key, _| *key.cluster != *cluster);
    }

    /// Does all there is to do, forever. Boxed, so that it is compiled with this crate, and not with each
    /// program that runs it.
    pub fn run(self) -> BoxFuture<'static, ()> {
        let (queue, workers) = (self.shared.queue.clone(), self.shared.options.workers);
        let metrics = &self.shared.options.controller_metrics;
        Controller::with_queue("work-agent", queue, metrics)
            .workers(workers)
            .run(Arc::new(Worker(Arc::clone(&self.shared))))
            .boxed()
    }

    /// What the agents did, in numbers.
    pub fn metrics(&self) -> &Arc<Metrics> {
        &self.shared.metrics
    }

    /// Whether there is nothing to do now.
    pub fn is_idle(&self) -> bool {
        self.shared.queue.is_idle()
    }
}

impl fmt::Debug for WorkAgents {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("WorkAgents")
            .field("members", &self.shared.members.read().len())
            .field("queue", &self.shared.queue)
            .finish_non_exhaustive()
    }
}

impl Shared {
    /// Enqueues all records of an interface.
    fn enqueue_records(&self, work_api: WorkApi) {
        for cluster in self.members.read().keys() {
            self.queue.add(WorkKey {
                cluster: Arc::clone(cluster),
                work_api,
                record: "".into(),
            });
        }
    }

    /// Enqueues a work, if its cluster is one of our members.
    fn track(&self, cluster: &str, work_api: WorkApi, work: &str) {
        let members = self.members.read();
        let Some((cluster, _)) = members.get_key_value(cluster) else {
            return;
        };
        let key = WorkKey {
            cluster: Arc::clone(cluster),
            work_api,
            record: record::record_name(&self.hub_hash, work).into(),
        };
        let now = self.clock.now();
        self.first_seen.lock().entry(key.clone()).or_insert(now);
        self.queue.add(key);
    }

    fn agent_id(&self) -> &str {
        self.options.agent_id.as_deref().unwrap_or(&self.hub_hash)
    }

    fn member(&self, cluster: &str) -> Option<Arc<Member>> {
        self.members.read().get(cluster).cloned()
    }
}

struct Worker(Arc<Shared>);

impl Reconcile for Worker {
    type Key = WorkKey;
    type Error = AgentError;

    async fn reconcile(&self, key: &WorkKey) -> Result<Next, AgentError> {
        let Some(member) = self.0.member(&key.cluster) else {
            return Ok(None);
        };
        let _clients = (
            member.delivery.objects.hold(),
            self.0.hub_clients.hold(&key.cluster),
        );
        let result = pass::reconcile_work(&self.0, &member, key).await;
        if result.is_ok() {
            self.0.first_seen.lock().remove(key);
        }
        result
    }

    fn cluster_of(key: &WorkKey) -> Option<&str> {
        Some(&key.cluster)
    }
}
