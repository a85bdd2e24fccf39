//! The records of works on a member: AppliedManifestWork, and AppliedWork of the work API.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::OnceLock;

use bellwether_api::Kind as _;
use bellwether_api::meta::{ObjectMeta, Time};
use bellwether_api::multicluster::{self, AppliedResourceMeta, AppliedWork};
use bellwether_api::work::names::{annotation, finalizer};
use bellwether_api::work::{AppliedManifestWork, AppliedResource};
use bellwether_apply::record::{Entry, Record as Entries};
use bellwether_apply::{ObjectId, Owner, ResourceType};
use bellwether_runtime::{
    Cache, ClusterHandle, Deleted, ObjectKey, Objects, RequestError, Selection,
};
use bellwether_work::record;
use jiff::Timestamp;
use serde_json::{Value, json};

use super::WorkApi;
use super::cached_json::Object;
use super::write_through_cache::WriteThroughCache;

/// A record in either interface.
#[derive(Debug, Clone)]
pub(super) struct Record {
    pub(super) work_api: WorkApi,
    pub(super) metadata: ObjectMeta,
    /// The agent that keeps it; empty where the interface does not say.
    pub(super) agent_id: String,
    /// What is on the cluster.
    pub(super) applied: Vec<AppliedResource>,
    /// What was about to be created.
    pub(super) intent: Vec<Entry>,
    /// Since when its work is missing.
    pub(super) eviction_start: Option<Timestamp>,
}

impl Record {
    pub(super) fn name(&self) -> &str {
        self.metadata.name.as_deref().unwrap_or_default()
    }

    pub(super) fn uid(&self) -> &str {
        self.metadata.uid.as_deref().unwrap_or_default()
    }

    pub(super) fn is_deleting(&self) -> bool {
        self.metadata.deletion_timestamp.is_some()
    }

    /// The record as the owner of what it names.
    pub(super) fn owner(&self) -> Owner {
        let kind = kind_of(self.work_api);
        Owner {
            api_version: format!("{}/{}", kind.group, kind.version),
            kind: kind.kind,
            name: self.name().to_owned(),
            uid: self.uid().to_owned(),
        }
    }

    /// The objects that are complete of the work with this UID.
    pub(super) fn completed(&self, work_uid: &str) -> BTreeSet<ObjectId> {
        let annotations = self.metadata.annotations.as_ref();
        let text = annotations.and_then(|map| map.get(annotation::COMPLETED));
        record::read_completed(text.map(String::as_str), work_uid)
    }

    /// What it names, for decisions.
    pub(super) fn entries(&self) -> Entries {
        Entries {
            applied: self.applied.iter().map(record::entry).collect(),
            intended: self.intent.clone(),
        }
    }

    fn id(&self) -> ObjectId {
        record_id(self.work_api, self.name())
    }

    fn of_manifest_work(object: &AppliedManifestWork) -> Self {
        let status = object.status.clone().unwrap_or_default();
        Self {
            work_api: WorkApi::ManifestWork,
            agent_id: object.spec.agent_id.clone(),
            intent: intent_of(&object.metadata),
            metadata: object.metadata.clone(),
            applied: status.applied_resources,
            eviction_start: status.eviction_start_time.map(|time| time.0),
        }
    }

    fn of_work(object: &AppliedWork) -> Self {
        let status = object.status.clone().unwrap_or_default();
        let annotations = object.metadata.annotations.as_ref();
        let started = annotations.and_then(|map| map.get(annotation::EVICTION_START));
        Self {
            work_api: WorkApi::Work,
            agent_id: String::new(),
            intent: intent_of(&object.metadata),
            metadata: object.metadata.clone(),
            applied: status
                .applied_resources
                .into_iter()
                .map(small_entry)
                .collect(),
            eviction_start: started.and_then(|text| text.parse().ok()),
        }
    }
}

fn intent_of(metadata: &ObjectMeta) -> Vec<Entry> {
    let annotations = metadata.annotations.as_ref();
    let text = annotations.and_then(|map| map.get(annotation::INTENT));
    record::read_intent(text.map(String::as_str))
}

fn small_entry(entry: AppliedResourceMeta) -> AppliedResource {
    AppliedResource {
        group: entry.group.unwrap_or_default(),
        version: entry.version.unwrap_or_default(),
        resource: entry.resource.unwrap_or_default(),
        name: entry.name.unwrap_or_default(),
        namespace: entry.namespace.unwrap_or_default(),
        uid: entry.uid,
        ..AppliedResource::default()
    }
}

fn kind_of(work_api: WorkApi) -> ResourceType {
    let names = match work_api {
        WorkApi::ManifestWork => AppliedManifestWork::NAMES,
        WorkApi::Work => AppliedWork::NAMES,
    };
    ResourceType {
        group: names.group.to_owned(),
        version: names.version.to_owned(),
        kind: names.kind.to_owned(),
        plural: names.plural.to_owned(),
        namespaced: false,
    }
}

fn record_id(work_api: WorkApi, name: &str) -> ObjectId {
    let kind = kind_of(work_api);
    ObjectId {
        group: kind.group,
        resource: kind.plural,
        namespace: String::new(),
        name: name.to_owned(),
    }
}

fn finalizer_of(work_api: WorkApi) -> &'static str {
    match work_api {
        WorkApi::ManifestWork => finalizer::APPLIED_MANIFEST_WORK,
        WorkApi::Work => multicluster::names::finalizer::APPLIED_WORK,
    }
}

/// A record to be made.
pub(super) struct NewRecord<'a> {
    pub(super) work_api: WorkApi,
    pub(super) name: &'a str,
    pub(super) work: &'a str,
    pub(super) namespace: &'a str,
    pub(super) hub_hash: &'a str,
    pub(super) agent_id: &'a str,
    pub(super) labels: Option<&'a BTreeMap<String, String>>,
    pub(super) intent: &'a [Entry],
}

/// The records of a member, in those interfaces that somebody had a need for.
pub(super) struct Records {
    objects: Objects,
    manifest_works: OnceLock<WriteThroughCache<AppliedManifestWork>>,
    works: OnceLock<WriteThroughCache<AppliedWork>>,
}

impl Records {
    pub(super) fn new(objects: Objects) -> Self {
        Self {
            objects,
            manifest_works: OnceLock::new(),
            works: OnceLock::new(),
        }
    }

    /// Begins to watch the records of an interface, and waits until they are known, or cannot be
    /// listed; true if they are known. Records that others change are named.
    pub(super) async fn watch(
        &self,
        work_api: WorkApi,
        on_news: impl Fn(&str) + Send + 'static,
    ) -> bool {
        let cluster = self.objects.cluster();
        match work_api {
            WorkApi::ManifestWork => follow(&self.manifest_works, cluster, on_news).await,
            WorkApi::Work => follow(&self.works, cluster, on_news).await,
        }
    }

    /// Waits until the records of an interface are known that is being watched.
    pub(super) async fn ready(&self, work_api: WorkApi) {
        match work_api {
            WorkApi::ManifestWork => ready(&self.manifest_works).await,
            WorkApi::Work => ready(&self.works).await,
        }
    }

    pub(super) fn get(&self, work_api: WorkApi, name: &str) -> Option<Record> {
        let key = ObjectKey::cluster_scoped(name);
        match work_api {
            WorkApi::ManifestWork => {
                let found = self.manifest_works.get()?.get(&key);
                found.map(|it| Record::of_manifest_work(&it))
            }
            WorkApi::Work => {
                let found = self.works.get()?.get(&key);
                found.map(|it| Record::of_work(&it))
            }
        }
    }

    /// Reads a record from the cluster, whatever is known of it.
    pub(super) async fn read(
        &self,
        work_api: WorkApi,
        name: &str,
    ) -> Result<Option<Record>, RequestError> {
        let id = record_id(work_api, name);
        match self.objects.get(&kind_of(work_api), &id).await? {
            Some(object) => self.record_write(work_api, object).map(Some),
            None => Ok(None),
        }
    }

    /// All records of an interface.
    pub(super) fn list(&self, work_api: WorkApi) -> Vec<Record> {
        match work_api {
            WorkApi::ManifestWork => {
                let all = self
                    .manifest_works
                    .get()
                    .map(WriteThroughCache::list)
                    .unwrap_or_default();
                all.iter().map(Record::of_manifest_work).collect()
            }
            WorkApi::Work => {
                let all = self
                    .works
                    .get()
                    .map(WriteThroughCache::list)
                    .unwrap_or_default();
                all.iter().map(Record::of_work).collect()
            }
        }
    }

    /// Makes a record, or takes the one that is there.
    pub(super) async fn create(&self, new: &NewRecord<'_>) -> Result<Record, RequestError> {
        let kind = kind_of(new.work_api);
        let spec = match new.work_api {
            WorkApi::ManifestWork => json!({
                "hubHash": new.hub_hash,
                "agentID": new.agent_id,
                "manifestWorkName": new.work,
            }),
            WorkApi::Work => json!({"workName": new.work, "workNamespace": new.namespace}),
        };
        let mut metadata = json!({
            "name": new.name,
            "finalizers": [finalizer_of(new.work_api)],
            "annotations": {(annotation::INTENT): record::write_intent(new.intent)},
        });
        if let Some(labels) = new.labels {
            metadata["labels"] = json!(labels);
        }
        let object = json!({
            "apiVersion": format!("{}/{}", kind.group, kind.version),
            "kind": kind.kind,
            "metadata": metadata,
            "spec": spec,
        });
        let answer = match self.objects.create(&kind, "", &object).await {
            Err(error) if error.is_already_there() => {
                return self.read(new.work_api, new.name).await?.ok_or(error);
            }
            other => other?,
        };
        self.record_write(new.work_api, answer)
    }

    /// Changes the metadata of a record that is still as it was seen.
    pub(super) async fn patch_metadata(
        &self,
        record: &Record,
        mut metadata: Value,
    ) -> Result<Record, RequestError> {
        metadata["uid"] = json!(record.metadata.uid);
        metadata["resourceVersion"] = json!(record.metadata.resource_version);
        let patch = json!({ "metadata": metadata });
        let answer = self
            .objects
            .merge(&kind_of(record.work_api), &record.id(), &patch)
            .await;
        self.settle(record, answer)
    }

    /// Makes a record this agent's: it was made by one with another ID.
    pub(super) async fn take_over(
        &self,
        record: &Record,
        agent_id: &str,
    ) -> Result<Record, RequestError> {
        let patch = json!({
            "metadata": {
                "uid": record.metadata.uid,
                "resourceVersion": record.metadata.resource_version,
            },
            "spec": {"agentID": agent_id},
        });
        let answer = self
            .objects
            .merge(&kind_of(record.work_api), &record.id(), &patch)
            .await;
        self.settle(record, answer)
    }

    /// Writes what is on the cluster, and since when the work is missing.
    pub(super) async fn set_status(
        &self,
        record: &Record,
        applied: &[AppliedResource],
        eviction_start: Option<Timestamp>,
    ) -> Result<Record, RequestError> {
        let status = match record.work_api {
            WorkApi::ManifestWork => json!({
                "appliedResources": applied,
                "evictionStartTime": eviction_start.map(Time),
            }),
            WorkApi::Work => json!({"appliedResources": applied}),
        };
        let patch = json!({
            "metadata": {
                "uid": record.metadata.uid,
                "resourceVersion": record.metadata.resource_version,
            },
            "status": status,
        });
        // The status is a resource of its own, under the name of the object.
        let id = ObjectId {
            name: format!("{}/status", record.name()),
            ..record.id()
        };
        let answer = self
            .objects
            .merge(&kind_of(record.work_api), &id, &patch)
            .await;
        self.settle(record, answer)
    }

    /// Notes since when the work of a record is missing, or that it is not.
    pub(super) async fn set_eviction(
        &self,
        record: &Record,
        start: Option<Timestamp>,
    ) -> Result<Record, RequestError> {
        match record.work_api {
            WorkApi::ManifestWork => self.set_status(record, &record.applied, start).await,
            WorkApi::Work => {
                let text = start.map(|time| time.to_string());
                let annotations = json!({(annotation::EVICTION_START): text});
                self.patch_metadata(record, json!({ "annotations": annotations }))
                    .await
            }
        }
    }

    /// Marks a record as going. What it names is removed before it is.
    pub(super) async fn delete(&self, record: &Record) -> Result<Option<Record>, RequestError> {
        let answer = self
            .objects
            .delete(&kind_of(record.work_api), &record.id(), record.uid())
            .await;
        match answer? {
            Deleted::Gone => Ok(None),
            Deleted::Waits(object) => self.record_write(record.work_api, object).map(Some),
        }
    }

    /// Lets a record go whose objects are gone.
    pub(super) async fn release(&self, record: &Record) -> Result<(), RequestError> {
        let ours = finalizer_of(record.work_api);
        let mut left = record.metadata.finalizers.clone().unwrap_or_default();
        left.retain(|name| name != ours);
        let patch = json!({"metadata": {
            "uid": record.metadata.uid,
            "resourceVersion": record.metadata.resource_version,
            "finalizers": left,
        }});
        let key = ObjectKey::cluster_scoped(record.name());
        self.invalidate(record.work_api, &key);
        match self
            .objects
            .merge(&kind_of(record.work_api), &record.id(), &patch)
            .await
        {
            Err(error) if !error.is_not_found() => Err(error),
            _ => Ok(()),
        }
    }

    fn settle(
        &self,
        record: &Record,
        answer: Result<Value, RequestError>,
    ) -> Result<Record, RequestError> {
        match answer {
            Ok(object) => self.record_write(record.work_api, object),
            Err(error) => {
                self.invalidate(record.work_api, &ObjectKey::cluster_scoped(record.name()));
                Err(error)
            }
        }
    }

    fn invalidate(&self, work_api: WorkApi, key: &ObjectKey) {
        match work_api {
            WorkApi::ManifestWork => self.manifest_works.get().map(|all| all.invalidate(key)),
            WorkApi::Work => self.works.get().map(|all| all.invalidate(key)),
        };
    }

    fn record_write(&self, work_api: WorkApi, object: Value) -> Result<Record, RequestError> {
        let unreadable = |error: serde_json::Error| RequestError::Unreached(error.to_string());
        Ok(match work_api {
            WorkApi::ManifestWork => {
                let object = serde_json::from_value(object).map_err(unreadable)?;
                note(&self.manifest_works, &object);
                Record::of_manifest_work(&object)
            }
            WorkApi::Work => {
                let object = serde_json::from_value(object).map_err(unreadable)?;
                note(&self.works, &object);
                Record::of_work(&object)
            }
        })
    }
}

/// Follows the records of one kind, told by name.
async fn follow<K: Object>(
    records: &OnceLock<WriteThroughCache<K>>,
    cluster: &ClusterHandle,
    on_news: impl Fn(&str) + Send + 'static,
) -> bool {
    let records = records.get_or_init(|| {
        let path = K::url_path(&(), None);
        let cache = Cache::follow(cluster.clone(), path, Selection::default(), |_| {});
        let latest = WriteThroughCache::new(cache);
        latest.listen(move |record| on_news(&record.name));
        latest
    });
    records.answered().await;
    records.is_ready()
}

async fn ready<K: Object>(records: &OnceLock<WriteThroughCache<K>>) {
    if let Some(records) = records.get() {
        records.ready().await;
    }
}

/// Notes the answer to a write, if anybody follows.
fn note<K: Object>(records: &OnceLock<WriteThroughCache<K>>, object: &K) {
    if let Some(records) = records.get() {
        records.record_write(object);
    }
}

/// Finalizers and labels that a record has to have, where it does not have them.
pub(super) fn missing_metadata(
    record: &Record,
    labels: Option<&BTreeMap<String, String>>,
) -> Option<Value> {
    let ours = finalizer_of(record.work_api);
    let finalizers = record.metadata.finalizers.clone().unwrap_or_default();
    let has_finalizer = finalizers.iter().any(|name| name == ours);
    let known = record.metadata.labels.clone().unwrap_or_default();
    let wanted = labels.cloned().unwrap_or_default();
    if has_finalizer && known == wanted {
        return None;
    }
    let mut metadata = json!({});
    if !has_finalizer {
        let mut all = finalizers;
        all.push(ours.to_owned());
        metadata["finalizers"] = json!(all);
    }
    if known != wanted {
        let mut changes: BTreeMap<&str, Value> = known
            .keys()
            .map(|key| (key.as_str(), Value::Null))
            .collect();
        changes.extend(
            wanted
                .iter()
                .map(|(key, value)| (key.as_str(), json!(value))),
        );
        metadata["labels"] = json!(changes);
    }
    Some(metadata)
}

/// The annotation that says what is about to be created; nothing takes it away.
pub(super) fn intent_annotation(intent: &[Entry]) -> Value {
    let text = (!intent.is_empty()).then(|| record::write_intent(intent));
    json!({(annotation::INTENT): text})
}
