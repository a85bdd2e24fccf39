//! What is known of a member, and what was written there.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use bellwether_api::multicluster::AppliedWork;
use bellwether_api::work::AppliedManifestWork;
use bellwether_api::work::names::FIELD_MANAGER;
use bellwether_api::{Kind as _, KindNames};
use bellwether_apply::{ObjectId, ResourceType, pass};
use bellwether_runtime::{
    Clock, ClusterHandle, Delivery, Objects, Queue, RequestError, SharedKinds,
};
use bellwether_work::work_api::Pace;
use jiff::Timestamp;
use parking_lot::Mutex;
use tokio::sync::OnceCell;

use super::arrivals::Arrivals;
use super::budget::Exhausted;
use super::metrics::Metrics;
use super::records::Records;
use super::rights::Rights;
use super::{AgentError, WorkApi, WorkKey};

/// What an executor was last found to be allowed to do with one object.
#[derive(Debug)]
pub(super) struct Grant {
    /// The generation of the work that was asked about; another may have another executor.
    pub(super) generation: i64,
    /// How often rights had changed when it was asked.
    pub(super) rights: u64,
    /// When to ask again, and what is said until then, if it is not allowed.
    pub(super) denied: Option<(Timestamp, String)>,
}

/// What is remembered of one object of one work.
#[derive(Debug, Default)]
pub(super) struct Memory {
    /// What was written last, and how often.
    pub(super) delivery: pass::Memory,
    /// When its values were looked at.
    pub(super) pace: Option<Box<Pace>>,
    /// What the executor was found to be allowed.
    pub(super) permission: Option<Box<Grant>>,
    /// What is reported instead of running programs again that exceeded their budget.
    pub(super) exhausted: Option<Box<Exhausted>>,
}

/// What is remembered of the objects of one work.
pub(super) type Memories = HashMap<ObjectId, Memory>;

/// The same between two passes. A list, because the smallest table has room for four objects, and most works have one.
type StoredMemories = Box<[(ObjectId, Memory)]>;

/// A member.
pub(super) struct Member {
    pub(super) cluster: Arc<str>,
    /// Its objects, and what is known of them.
    pub(super) delivery: Delivery<WorkKey>,
    /// What works depend on besides their objects.
    pub(super) arrivals: Arrivals,
    /// Changes of rights, for works with an executor.
    pub(super) rights: Rights,
    queue: Queue<WorkKey>,
    records: Records,
    /// Interfaces whose records are known.
    begun: [OnceCell<()>; 2],
    memories: Mutex<HashMap<WorkKey, StoredMemories>>,
    /// Works that the hub does not let their agent delete, which has been reported.
    undeletable: Mutex<HashSet<WorkKey>>,
}

impl Member {
    pub(super) fn new(
        cluster: Arc<str>,
        reach: ClusterHandle,
        queue: Queue<WorkKey>,
        metrics: &Metrics,
        kinds: Arc<SharedKinds>,
        clock: Clock,
    ) -> Self {
        let objects =
            Objects::new(reach.clone(), FIELD_MANAGER).counted_by(metrics.member_requests.clone());
        let delivery = Delivery::new(
            objects.clone(),
            kinds,
            queue.clone(),
            metrics.watches.clone(),
            clock,
        );
        let discovery = Arc::clone(&delivery.discovery);
        Self {
            cluster,
            records: Records::new(objects),
            arrivals: Arrivals::new(reach.clone(), queue.clone(), discovery),
            rights: Rights::new(reach, queue.clone()),
            delivery,
            queue,
            begun: Default::default(),
            memories: Mutex::default(),
            undeletable: Mutex::default(),
        }
    }

    /// The records of an interface, if anybody has had a need for them.
    pub(super) fn known_records(&self, work_api: WorkApi) -> Option<&Records> {
        self.begun(work_api).get().map(|()| &self.records)
    }

    fn begun(&self, work_api: WorkApi) -> &OnceCell<()> {
        match work_api {
            WorkApi::ManifestWork => &self.begun[0],
            WorkApi::Work => &self.begun[1],
        }
    }

    /// Whether there are records of an interface, asked without watching them.
    pub(super) async fn has_records(&self, work_api: WorkApi) -> Result<bool, AgentError> {
        let names = names_of(work_api);
        let path = format!(
            "/apis/{}/{}/{}?limit=1",
            names.group, names.version, names.plural
        );
        match self.delivery.objects.read(&path).await {
            Ok(list) => {
                let items = list["items"].as_array();
                Ok(items.is_some_and(|items| !items.is_empty()))
            }
            Err(error) if error.is_not_found() => Ok(false),
            Err(error) => Err(AgentError::at("looking for records")(error)),
        }
    }

    /// The records of an interface, which are watched from the first time on that somebody needs
    /// them.
    pub(super) async fn records(&self, work_api: WorkApi) -> Result<&Records, AgentError> {
        let begun = self.begun(work_api);
        begun.get_or_try_init(|| self.begin(work_api)).await?;
        Ok(&self.records)
    }

    async fn begin(&self, work_api: WorkApi) -> Result<(), AgentError> {
        let definition = match work_api {
            WorkApi::ManifestWork => bellwether_api::records::applied_manifest_work,
            WorkApi::Work => bellwether_api::records::applied_work,
        };
        self.define(names_of(work_api), definition).await?;
        let (cluster, queue) = (Arc::clone(&self.cluster), self.queue.clone());
        let on_change = move |name: &str| {
            queue.add(WorkKey {
                cluster: Arc::clone(&cluster),
                work_api,
                record: name.into(),
            });
        };
        if !self.records.watch(work_api, on_change).await {
            // The list was interrupted: the reason is whatever a request for it is answered.
            self.has_records(work_api).await?;
            self.records.ready(work_api).await;
        }
        // What was applied before is of interest before the first watch begins: it is then read with
        // one list a kind, not with one request an object.
        for record in self.records.list(work_api) {
            let key = WorkKey {
                cluster: Arc::clone(&self.cluster),
                work_api,
                record: record.name().into(),
            };
            for entry in record.entries().everything() {
                self.delivery.watches.track(&entry.id, &key);
            }
            self.queue.add(key);
        }
        Ok(())
    }

    /// Makes sure that the cluster knows a kind of records.
    async fn define(
        &self,
        names: KindNames,
        definition: fn() -> serde_json::Value,
    ) -> Result<(), AgentError> {
        let delivery = &self.delivery;
        let found = delivery
            .discovery
            .find(&delivery.objects, names.group, names.version, names.kind)
            .await
            .map_err(AgentError::at("asking a member for its kinds"))?;
        if found.is_some() {
            return Ok(());
        }
        let definitions = ResourceType {
            group: "apiextensions.k8s.io".to_owned(),
            version: "v1".to_owned(),
            kind: "CustomResourceDefinition".to_owned(),
            plural: "customresourcedefinitions".to_owned(),
            namespaced: false,
        };
        let answer = self
            .delivery
            .objects
            .create(&definitions, "", &definition())
            .await;
        self.delivery.discovery.forget(names.group, names.version);
        match answer {
            Err(error) if !error.is_already_there() => Err(AgentError::at::<RequestError>(
                "defining the kind of records",
            )(error)),
            _ => Ok(()),
        }
    }

    /// Has all records of an interface looked at, if they are known.
    pub(super) fn requeue(&self, work_api: WorkApi) {
        if self.known_records(work_api).is_none() {
            return;
        }
        for record in self.records.list(work_api) {
            self.queue.add(WorkKey {
                cluster: Arc::clone(&self.cluster),
                work_api,
                record: record.name().into(),
            });
        }
    }

    /// The records as far as they are known, whether they are watched or not.
    pub(super) fn unwatched_records(&self) -> &Records {
        &self.records
    }

    /// Notes that the hub does not let the agent delete a work; true if that is new.
    pub(super) fn note_undeletable(&self, key: &WorkKey) -> bool {
        self.undeletable.lock().insert(key.clone())
    }

    /// Forgets all about a work that is gone.
    pub(super) fn forget(&self, key: &WorkKey) {
        self.recall(key);
        self.arrivals.forget(key);
        self.rights.forget(key);
        self.undeletable.lock().remove(key);
    }

    /// Takes what is remembered of a work, to be given back with [`remember`](Self::remember).
    pub(super) fn recall(&self, key: &WorkKey) -> Memories {
        let memories = self.memories.lock().remove(key).unwrap_or_default();
        memories.into_iter().collect()
    }

    pub(super) fn remember(&self, key: &WorkKey, memories: Memories) {
        if !memories.is_empty() {
            let memories = memories.into_iter().collect();
            self.memories.lock().insert(key.clone(), memories);
        }
    }
}

/// The kind of records of an interface.
fn names_of(work_api: WorkApi) -> KindNames {
    match work_api {
        WorkApi::ManifestWork => AppliedManifestWork::NAMES,
        WorkApi::Work => AppliedWork::NAMES,
    }
}
