//! Works as the hub has them, in both interfaces, and what is written about them.

use std::collections::HashMap;
use std::fmt::Debug;
use std::sync::Arc;
use std::time::Duration;

use bellwether_api::Kind as _;
use bellwether_api::meta::ObjectMeta;
use bellwether_api::multicluster::{self, Work, WorkManifestConfig, WorkStatus};
use bellwether_api::work::names::FIELD_MANAGER;
use bellwether_api::work::{ManifestWork, ManifestWorkStatus};
use bellwether_runtime::{
    Cache, ClientLease, Clock, ClusterHandle, ObjectKey, Objects, Outage, RequestError, Selection,
    in_time,
};
use bellwether_work::work_api;
use kube::api::{DeleteParams, Patch, PatchParams, Preconditions};
use kube::{Api, Client, Resource};
use parking_lot::RwLock;
use serde_json::{Value, json};

use super::WorkApi;
use super::cached_json::Object;
use super::metrics::Metrics;
use super::write_through_cache::WriteThroughCache;

/// How long to wait before an absent hub is asked again.
const RETRY: Duration = Duration::from_secs(1);

/// A work in either interface.
#[derive(Clone)]
pub(super) struct HubWork {
    /// The work as the engine sees it.
    pub(super) work: Arc<ManifestWork>,
    /// The work of the work API that it was made of.
    pub(super) as_work: Option<Arc<Work>>,
}

impl HubWork {
    pub(super) fn work_api(&self) -> WorkApi {
        if self.as_work.is_some() {
            WorkApi::Work
        } else {
            WorkApi::ManifestWork
        }
    }

    pub(super) fn metadata(&self) -> &ObjectMeta {
        &self.work.metadata
    }

    pub(super) fn name(&self) -> &str {
        self.metadata().name.as_deref().unwrap_or_default()
    }

    pub(super) fn namespace(&self) -> &str {
        self.metadata().namespace.as_deref().unwrap_or_default()
    }

    pub(super) fn generation(&self) -> i64 {
        self.metadata().generation.unwrap_or_default()
    }

    pub(super) fn is_deleting(&self) -> bool {
        self.metadata().deletion_timestamp.is_some()
    }

    /// The finalizer that keeps the work until what it applied is gone.
    pub(super) fn finalizer(&self) -> &'static str {
        match self.work_api() {
            WorkApi::ManifestWork => bellwether_api::work::names::finalizer::MANIFEST_WORK,
            WorkApi::Work => multicluster::names::finalizer::WORK,
        }
    }

    pub(super) fn finalizers(&self) -> &[String] {
        self.metadata().finalizers.as_deref().unwrap_or_default()
    }

    pub(super) fn has_finalizer(&self) -> bool {
        self.finalizers()
            .iter()
            .any(|name| name == self.finalizer())
    }
}

/// Who writes to a hub: each member with its own certificate, as far as that is known here, so that
/// the rights of members hold even where many of them share one watch.
pub(super) struct HubClients {
    shared: Client,
    own: RwLock<HashMap<Box<str>, ClusterHandle>>,
}

impl HubClients {
    pub(super) fn new(shared: Client) -> Self {
        Self {
            shared,
            own: RwLock::default(),
        }
    }

    /// From now on a member speaks for itself.
    pub(super) fn insert(&self, cluster: &str, hub: ClusterHandle) {
        self.own.write().insert(cluster.into(), hub);
    }

    /// A member is gone.
    pub(super) fn remove(&self, cluster: &str) {
        self.own.write().remove(cluster);
    }

    /// Who writes what belongs to a member, which is in the namespace of its name.
    pub(super) fn of(&self, cluster: &str) -> Client {
        let own = self.own.read();
        own.get(cluster)
            .map_or_else(|| self.shared.clone(), ClusterHandle::client)
    }

    /// Keeps the client of a member at hand for several requests.
    pub(super) fn hold(&self, cluster: &str) -> Option<ClientLease> {
        self.own.read().get(cluster).map(ClusterHandle::hold)
    }
}

/// What an agent sees of a hub.
pub(super) struct HubSide {
    hub_clients: Arc<HubClients>,
    metrics: Arc<Metrics>,
    works: WriteThroughCache<ManifestWork>,
    as_work: Option<WorkApiCaches>,
}

/// The interface of the work API, on hubs that have it.
struct WorkApiCaches {
    works: WriteThroughCache<Work>,
    configs: Cache<WorkManifestConfig>,
}

/// The status of a work in the words of its interface.
pub(super) enum Status {
    ManifestWork(ManifestWorkStatus),
    Work(WorkStatus),
}

impl HubSide {
    /// Begins to watch, and waits until everything is known.
    pub(super) async fn start(
        hub_clients: Arc<HubClients>,
        cluster: Option<&str>,
        metrics: Arc<Metrics>,
        clock: &Clock,
    ) -> Self {
        let client = hub_clients.shared.clone();
        let works: WriteThroughCache<ManifestWork> = watch(&client, cluster);
        let as_work = serves_work_api(&client, clock)
            .await
            .then(|| WorkApiCaches {
                works: watch(&client, cluster),
                configs: Cache::start(Api::all(client.clone()), Selection::default(), |_| {}),
            });
        works.answered().await;
        if !works.is_ready() {
            warn_of_refusal::<ManifestWork>(&client, cluster).await;
            works.ready().await;
        }
        if let Some(as_work) = &as_work {
            as_work.works.answered().await;
            as_work.configs.answered().await;
            // An agent with the rights that Open Cluster Management gives does without this
            // interface.
            if !as_work.works.is_ready() {
                warn_of_refusal::<Work>(&client, cluster).await;
            }
            if !as_work.configs.is_ready() {
                warn_of_refusal::<WorkManifestConfig>(&client, None).await;
            }
        }
        Self {
            hub_clients,
            metrics,
            works,
            as_work,
        }
    }

    /// Whether all works of an interface are known. Of a work that is not known then, nobody can say
    /// that it is gone.
    pub(super) fn is_known(&self, work_api: WorkApi) -> bool {
        match (work_api, &self.as_work) {
            (WorkApi::Work, Some(as_work)) => as_work.works.is_ready(),
            _ => true,
        }
    }

    /// Waits until the works of all interfaces are known.
    pub(super) fn when_all_known(&self) -> impl Future<Output = ()> + use<> {
        let works = self.as_work.as_ref().map(|as_work| as_work.works.clone());
        async move {
            if let Some(works) = works {
                works.ready().await;
            }
        }
    }

    /// Calls back for each work that somebody else changed, with its cluster, interface and name.
    pub(super) fn listen(
        &self,
        on_change: impl Fn(&str, WorkApi, &str) + Clone + Send + Sync + 'static,
    ) {
        let notify = on_change.clone();
        self.works.listen(move |work| {
            notify(&work.namespace, WorkApi::ManifestWork, &work.name);
        });
        let Some(as_work) = &self.as_work else {
            return;
        };
        let notify = on_change.clone();
        as_work.works.listen(move |work| {
            notify(&work.namespace, WorkApi::Work, &work.name);
        });
        let works = as_work.works.clone();
        as_work.configs.subscribe(move |_| {
            for work in works.keys() {
                on_change(&work.namespace, WorkApi::Work, &work.name);
            }
        });
    }

    /// The works of a cluster.
    pub(super) fn works_of(&self, cluster: &str) -> Vec<(WorkApi, Arc<str>)> {
        let works = self.works.keys_in(cluster).into_iter();
        let mut found: Vec<_> = works
            .map(|work| (WorkApi::ManifestWork, work.name))
            .collect();
        if let Some(as_work) = &self.as_work {
            let works = as_work.works.keys_in(cluster).into_iter();
            found.extend(works.map(|work| (WorkApi::Work, work.name)));
        }
        found
    }

    /// The work of that name.
    pub(super) fn get(&self, work_api: WorkApi, cluster: &str, name: &str) -> Option<HubWork> {
        let key = ObjectKey::new(cluster, name);
        match work_api {
            WorkApi::ManifestWork => self.works.get(&key).map(from_manifest_work),
            WorkApi::Work => self.as_work.as_ref()?.works.get(&key).map(from_work),
        }
    }

    /// The configurations of status to be synced.
    pub(super) fn configs(&self) -> Vec<Arc<WorkManifestConfig>> {
        self.as_work
            .as_ref()
            .map(|as_work| as_work.configs.list())
            .unwrap_or_default()
    }

    /// Sets the finalizers of a work that is still as it was seen.
    pub(super) async fn set_finalizers(
        &self,
        work: &HubWork,
        finalizers: &[String],
    ) -> Result<HubWork, RequestError> {
        let mut patch = locked(work);
        patch["metadata"]["finalizers"] = json!(finalizers);
        self.patch(work, &patch, false).await
    }

    /// Writes the status of a work that is still as it was seen.
    pub(super) async fn set_status(
        &self,
        work: &HubWork,
        status: &Status,
    ) -> Result<HubWork, RequestError> {
        let mut patch = locked(work);
        let written = match status {
            Status::ManifestWork(status) => serde_json::to_value(status),
            Status::Work(status) => serde_json::to_value(status),
        };
        patch["status"] = written.map_err(|error| RequestError::Unreached(error.to_string()))?;
        self.patch(work, &patch, true).await
    }

    async fn patch(
        &self,
        work: &HubWork,
        patch: &Value,
        of_status: bool,
    ) -> Result<HubWork, RequestError> {
        self.metrics.hub_requests.inc();
        let client = self.hub_clients.of(work.namespace());
        match (work.work_api(), &self.as_work) {
            (WorkApi::Work, Some(as_work)) => {
                write(&client, &as_work.works, work, patch, of_status)
                    .await
                    .map(from_work)
            }
            _ => write(&client, &self.works, work, patch, of_status)
                .await
                .map(from_manifest_work),
        }
    }

    /// Removes a work that is done.
    pub(super) async fn delete(&self, work: &HubWork) -> Result<(), RequestError> {
        let params = DeleteParams {
            preconditions: Some(Preconditions {
                uid: work.metadata().uid.clone(),
                ..Preconditions::default()
            }),
            ..DeleteParams::default()
        };
        let (name, namespace) = (work.name(), work.namespace());
        self.metrics.hub_requests.inc();
        let client = self.hub_clients.of(namespace);
        let answer = match work.work_api() {
            WorkApi::ManifestWork => {
                let api: Api<ManifestWork> = Api::namespaced(client, namespace);
                in_time(api.delete(name, &params)).await.map(drop)
            }
            WorkApi::Work => {
                let api: Api<Work> = Api::namespaced(client, namespace);
                in_time(api.delete(name, &params)).await.map(drop)
            }
        };
        match answer {
            Err(error) if !error.is_not_found() => Err(error),
            _ => Ok(()),
        }
    }
}

fn from_manifest_work(work: ManifestWork) -> HubWork {
    HubWork {
        work: Arc::new(work),
        as_work: None,
    }
}

fn from_work(work: Work) -> HubWork {
    HubWork {
        work: Arc::new(work_api::as_manifest_work(&work)),
        as_work: Some(Arc::new(work)),
    }
}

/// A patch that only fits the state that was seen.
fn locked(work: &HubWork) -> Value {
    let metadata = work.metadata();
    json!({"metadata": {"uid": metadata.uid, "resourceVersion": metadata.resource_version}})
}

async fn write<K>(
    client: &Client,
    works: &WriteThroughCache<K>,
    work: &HubWork,
    patch: &Value,
    of_status: bool,
) -> Result<K, RequestError>
where
    K: Object + Debug + Resource<Scope = k8s_openapi::NamespaceResourceScope>,
{
    let api: Api<K> = Api::namespaced(client.clone(), work.namespace());
    let params = PatchParams {
        field_manager: Some(FIELD_MANAGER.to_owned()),
        ..PatchParams::default()
    };
    let patch = Patch::Merge(patch);
    let answer = if of_status {
        in_time(api.patch_status(work.name(), &params, &patch)).await
    } else {
        in_time(api.patch(work.name(), &params, &patch)).await
    };
    match answer {
        Ok(object) => {
            works.record_write(&object);
            Ok(object)
        }
        Err(error) => {
            works.invalidate(&ObjectKey::new(work.namespace(), work.name()));
            Err(error)
        }
    }
}

fn watch<K: Object>(client: &Client, cluster: Option<&str>) -> WriteThroughCache<K> {
    let path = K::url_path(&(), cluster);
    WriteThroughCache::new(Cache::follow(client, path, Selection::default(), |_| {}))
}

/// Logs why a kind cannot be listed, if the hub refuses it. The agent goes on as soon as it may.
async fn warn_of_refusal<K: Resource<DynamicType = ()>>(client: &Client, cluster: Option<&str>) {
    let path = format!("{}?limit=1", K::url_path(&(), cluster));
    let objects = Objects::new(client.into(), FIELD_MANAGER);
    if let Err(error) = objects.read(&path).await {
        let kind = K::kind(&());
        tracing::warn!(%kind, %error, "the hub does not let this agent list a kind: its objects are ignored until it does");
    }
}

/// Whether a hub has the interface of the work API, asked until it answers.
async fn serves_work_api(client: &Client, clock: &Clock) -> bool {
    let path = format!("/apis/{}/{}", multicluster::GROUP, Work::NAMES.version);
    let objects = Objects::new(client.into(), FIELD_MANAGER);
    let mut outage = Outage::default();
    loop {
        match objects.read(&path).await {
            Ok(list) => {
                let resources = list["resources"].as_array();
                return resources
                    .into_iter()
                    .flatten()
                    .any(|entry| entry["name"] == Work::NAMES.plural);
            }
            Err(error) if error.is_not_found() || error.is_forbidden() => return false,
            Err(error) => {
                if outage.begins() {
                    tracing::warn!(%error, "the hub does not answer; will retry until it does");
                }
                clock.sleep(RETRY).await;
            }
        }
    }
}
