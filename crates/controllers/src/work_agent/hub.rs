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
use bellwether_runtime::{Cache, Hold, ObjectKey, Reach, Selection};
use bellwether_work::work_api;
use kube::api::{DeleteParams, Patch, PatchParams, Preconditions};
use kube::{Api, Client, Resource};
use parking_lot::RwLock;
use serde_json::{Value, json};

use super::Front;
use super::latest::Latest;
use super::metrics::Metrics;
use super::objects::{Objects, RequestError, within};
use super::packed::Object;

/// How long to wait before an absent hub is asked again.
const RETRY: Duration = Duration::from_secs(1);

/// A work in either interface.
#[derive(Clone)]
pub(super) struct HubWork {
    /// The work as the engine sees it.
    pub(super) work: Arc<ManifestWork>,
    /// The work of the work API that it was made of.
    pub(super) small: Option<Arc<Work>>,
}

impl HubWork {
    pub(super) fn front(&self) -> Front {
        if self.small.is_some() {
            Front::Work
        } else {
            Front::ManifestWork
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
        match self.front() {
            Front::ManifestWork => bellwether_api::work::names::finalizer::MANIFEST_WORK,
            Front::Work => multicluster::names::finalizer::WORK,
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
pub(super) struct Speakers {
    shared: Client,
    own: RwLock<HashMap<Box<str>, Reach>>,
}

impl Speakers {
    pub(super) fn new(shared: Client) -> Self {
        Self {
            shared,
            own: RwLock::default(),
        }
    }

    /// From now on a member speaks for itself.
    pub(super) fn insert(&self, cluster: &str, hub: Reach) {
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
            .map_or_else(|| self.shared.clone(), Reach::client)
    }

    /// Keeps the client of a member at hand for several requests.
    pub(super) fn hold(&self, cluster: &str) -> Option<Hold> {
        self.own.read().get(cluster).map(Reach::hold)
    }
}

/// What an agent sees of a hub.
pub(super) struct HubSide {
    speakers: Arc<Speakers>,
    metrics: Arc<Metrics>,
    works: Latest<ManifestWork>,
    small: Option<Small>,
}

/// The interface of the work API, on hubs that have it.
struct Small {
    works: Latest<Work>,
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
        speakers: Arc<Speakers>,
        cluster: Option<&str>,
        metrics: Arc<Metrics>,
    ) -> Self {
        let client = speakers.shared.clone();
        let works: Latest<ManifestWork> = watch(&client, cluster);
        let small = has_small(&client).await.then(|| Small {
            works: watch(&client, cluster),
            configs: Cache::start(Api::all(client.clone()), Selection::default(), |_| {}),
        });
        works.answered().await;
        if !works.is_ready() {
            warn_of_refusal::<ManifestWork>(&client, cluster).await;
            works.ready().await;
        }
        if let Some(small) = &small {
            small.works.answered().await;
            small.configs.answered().await;
            // An agent with the rights that Open Cluster Management gives does without this
            // interface.
            if !small.works.is_ready() {
                warn_of_refusal::<Work>(&client, cluster).await;
            }
            if !small.configs.is_ready() {
                warn_of_refusal::<WorkManifestConfig>(&client, None).await;
            }
        }
        Self {
            speakers,
            metrics,
            works,
            small,
        }
    }

    /// Whether all works of an interface are known. Of a work that is not known then, nobody can say
    /// that it is gone.
    pub(super) fn is_known(&self, front: Front) -> bool {
        match (front, &self.small) {
            (Front::Work, Some(small)) => small.works.is_ready(),
            _ => true,
        }
    }

    /// Waits until the works of all interfaces are known.
    pub(super) fn when_all_known(&self) -> impl Future<Output = ()> + use<> {
        let works = self.small.as_ref().map(|small| small.works.clone());
        async move {
            if let Some(works) = works {
                works.ready().await;
            }
        }
    }

    /// Has the works told that somebody else changed: cluster, interface and name.
    pub(super) fn listen(
        &self,
        on_news: impl Fn(&str, Front, &str) + Clone + Send + Sync + 'static,
    ) {
        let tell = on_news.clone();
        self.works.listen(move |work| {
            tell(&work.namespace, Front::ManifestWork, &work.name);
        });
        let Some(small) = &self.small else {
            return;
        };
        let tell = on_news.clone();
        small.works.listen(move |work| {
            tell(&work.namespace, Front::Work, &work.name);
        });
        let works = small.works.clone();
        small.configs.subscribe(move |_| {
            for work in works.keys() {
                on_news(&work.namespace, Front::Work, &work.name);
            }
        });
    }

    /// The works of a cluster.
    pub(super) fn works_of(&self, cluster: &str) -> Vec<(Front, Arc<str>)> {
        let works = self.works.keys_in(cluster).into_iter();
        let mut found: Vec<_> = works.map(|work| (Front::ManifestWork, work.name)).collect();
        if let Some(small) = &self.small {
            let works = small.works.keys_in(cluster).into_iter();
            found.extend(works.map(|work| (Front::Work, work.name)));
        }
        found
    }

    /// The work of that name.
    pub(super) fn get(&self, front: Front, cluster: &str, name: &str) -> Option<HubWork> {
        let key = ObjectKey::new(cluster, name);
        match front {
            Front::ManifestWork => self.works.get(&key).map(large),
            Front::Work => self.small.as_ref()?.works.get(&key).map(small),
        }
    }

    /// The configurations of status to be synced.
    pub(super) fn configs(&self) -> Vec<Arc<WorkManifestConfig>> {
        self.small
            .as_ref()
            .map(|small| small.configs.list())
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
        let client = self.speakers.of(work.namespace());
        match (work.front(), &self.small) {
            (Front::Work, Some(small)) => write(&client, &small.works, work, patch, of_status)
                .await
                .map(self::small),
            _ => write(&client, &self.works, work, patch, of_status)
                .await
                .map(large),
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
        let client = self.speakers.of(namespace);
        let answer = match work.front() {
            Front::ManifestWork => {
                let api: Api<ManifestWork> = Api::namespaced(client, namespace);
                within(api.delete(name, &params)).await.map(drop)
            }
            Front::Work => {
                let api: Api<Work> = Api::namespaced(client, namespace);
                within(api.delete(name, &params)).await.map(drop)
            }
        };
        match answer {
            Err(error) if !error.is_not_found() => Err(error),
            _ => Ok(()),
        }
    }
}

fn large(work: ManifestWork) -> HubWork {
    HubWork {
        work: Arc::new(work),
        small: None,
    }
}

fn small(work: Work) -> HubWork {
    HubWork {
        work: Arc::new(work_api::as_manifest_work(&work)),
        small: Some(Arc::new(work)),
    }
}

/// A patch that only fits the state that was seen.
fn locked(work: &HubWork) -> Value {
    let metadata = work.metadata();
    json!({"metadata": {"uid": metadata.uid, "resourceVersion": metadata.resource_version}})
}

async fn write<K>(
    client: &Client,
    works: &Latest<K>,
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
        within(api.patch_status(work.name(), &params, &patch)).await
    } else {
        within(api.patch(work.name(), &params, &patch)).await
    };
    match answer {
        Ok(object) => {
            works.wrote(&object);
            Ok(object)
        }
        Err(error) => {
            works.doubt(&ObjectKey::new(work.namespace(), work.name()));
            Err(error)
        }
    }
}

fn watch<K: Object>(client: &Client, cluster: Option<&str>) -> Latest<K> {
    let path = K::url_path(&(), cluster);
    Latest::new(Cache::follow(client, path, Selection::default(), |_| {}))
}

/// Logs why a kind cannot be listed, if the hub refuses it. The agent goes on as soon as it may.
async fn warn_of_refusal<K: Resource<DynamicType = ()>>(client: &Client, cluster: Option<&str>) {
    let path = format!("{}?limit=1", K::url_path(&(), cluster));
    let objects = Objects::new(client.into(), Arc::default());
    if let Err(error) = objects.read(&path).await {
        let kind = K::kind(&());
        tracing::warn!(%kind, %error, "the hub does not let this agent list a kind: its objects are ignored until it does");
    }
}

/// Whether a hub has the interface of the work API, asked until it answers.
async fn has_small(client: &Client) -> bool {
    let path = format!("/apis/{}/{}", multicluster::GROUP, Work::NAMES.version);
    let objects = Objects::new(client.into(), Arc::default());
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
                tracing::warn!(%error, "the hub does not answer; trying again");
                tokio::time::sleep(RETRY).await;
            }
        }
    }
}
