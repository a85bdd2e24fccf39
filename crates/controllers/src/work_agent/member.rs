//! What is known of a member, and what was written there.

use std::collections::HashMap;
use std::sync::Arc;

use bellwether_api::multicluster::AppliedWork;
use bellwether_api::work::AppliedManifestWork;
use bellwether_api::{Kind as _, KindNames};
use bellwether_runtime::Queue;
use bellwether_work::apply::Baseline;
use bellwether_work::manifest::{ObjectId, ResourceType};
use bellwether_work::record;
use bellwether_work::work_api::Pace;
use jiff::Timestamp;
use kube::Client;
use parking_lot::Mutex;
use tokio::sync::OnceCell;

use super::discovery::Discovery;
use super::metrics::Metrics;
use super::objects::{Objects, RequestError};
use super::records::Records;
use super::watches::Watches;
use super::{AgentError, WorkKey};

/// What is remembered of one object of one work.
#[derive(Debug, Default)]
pub(super) struct Memory {
    /// What was written last.
    pub(super) baseline: Option<Baseline>,
    /// How often it was put right lately, and when last.
    pub(super) repairs: u32,
    pub(super) repaired: Option<Timestamp>,
    /// When its values were looked at.
    pub(super) pace: Option<Pace>,
    /// Until when the executor is known not to be allowed.
    pub(super) denied: Option<(Timestamp, String)>,
}

/// What is remembered of the objects of one work.
pub(super) type Memories = HashMap<ObjectId, Memory>;

/// A member.
pub(super) struct Member {
    pub(super) cluster: Arc<str>,
    pub(super) objects: Objects,
    pub(super) discovery: Discovery,
    pub(super) watches: Watches,
    queue: Queue<WorkKey>,
    records: OnceCell<Records>,
    memories: Mutex<HashMap<WorkKey, Memories>>,
}

impl Member {
    pub(super) fn new(
        cluster: Arc<str>,
        client: Client,
        queue: Queue<WorkKey>,
        metrics: Arc<Metrics>,
    ) -> Self {
        let objects = Objects::new(client);
        Self {
            cluster,
            watches: Watches::new(objects.clone(), queue.clone(), metrics),
            objects,
            discovery: Discovery::default(),
            queue,
            records: OnceCell::new(),
            memories: Mutex::default(),
        }
    }

    /// The records, if anybody has had a need for them.
    pub(super) fn known_records(&self) -> Option<&Records> {
        self.records.get()
    }

    /// Whether there are records of works, asked without watching them.
    pub(super) async fn has_records(&self) -> Result<bool, AgentError> {
        for names in [AppliedManifestWork::NAMES, AppliedWork::NAMES] {
            let path = format!(
                "/apis/{}/{}/{}?limit=1",
                names.group, names.version, names.plural
            );
            match self.objects.read(&path).await {
                Ok(list) => {
                    if list["items"]
                        .as_array()
                        .is_some_and(|items| !items.is_empty())
                    {
                        return Ok(true);
                    }
                }
                Err(error) if error.is_not_found() => {}
                Err(error) => return Err(AgentError::at("looking for records")(error)),
            }
        }
        Ok(false)
    }

    /// The records, which are watched from the first time on that somebody needs them.
    pub(super) async fn records(&self) -> Result<&Records, AgentError> {
        self.records.get_or_try_init(|| self.begin()).await
    }

    async fn begin(&self) -> Result<Records, AgentError> {
        self.define(
            AppliedManifestWork::NAMES,
            bellwether_api::definition::<AppliedManifestWork>,
        )
        .await?;
        self.define(
            AppliedWork::NAMES,
            bellwether_api::definition::<AppliedWork>,
        )
        .await?;
        let (cluster, queue) = (Arc::clone(&self.cluster), self.queue.clone());
        let records = Records::start(self.objects.client().clone(), move |front, name| {
            queue.add(WorkKey {
                cluster: Arc::clone(&cluster),
                front,
                record: name.into(),
            });
        });
        records.ready().await;
        // What was applied before is of interest before the first watch begins: it is then read with
        // one list a kind, not with one request an object.
        for record in records.list() {
            let key = WorkKey {
                cluster: Arc::clone(&self.cluster),
                front: record.front,
                record: record.name().into(),
            };
            for entry in record.everything() {
                self.watches.concern(&record::id_of(&entry), &key);
            }
            self.queue.add(key);
        }
        Ok(records)
    }

    /// Makes sure that the cluster knows a kind of records.
    async fn define(
        &self,
        names: KindNames,
        definition: fn() -> serde_json::Value,
    ) -> Result<(), AgentError> {
        let found = self
            .discovery
            .find(&self.objects, names.group, names.version, names.kind)
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
        let answer = self.objects.create(&definitions, "", &definition()).await;
        self.discovery.forget(names.group, names.version);
        match answer {
            Err(error) if !error.is_already_there() => Err(AgentError::at::<RequestError>(
                "defining the kind of records",
            )(error)),
            _ => Ok(()),
        }
    }

    /// Takes what is remembered of a work, to be given back with [`remember`](Self::remember).
    pub(super) fn recall(&self, key: &WorkKey) -> Memories {
        self.memories.lock().remove(key).unwrap_or_default()
    }

    pub(super) fn remember(&self, key: &WorkKey, memories: Memories) {
        if !memories.is_empty() {
            self.memories.lock().insert(key.clone(), memories);
        }
    }
}
