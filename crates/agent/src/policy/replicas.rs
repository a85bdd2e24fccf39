//! Policies as the hub has them: the namespace of a cluster holds the replicas that are for it.
//!
//! The watch keeps names only. A reconcile reads the replica: fleets have many, and each is of interest
//! only for a moment.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bellwether_api::Kind as _;
use bellwether_api::policy::names::{encryption, label};
use bellwether_api::policy::{Policy, PolicyStatus};
use bellwether_runtime::{
    ClientLease, ClusterHandle, FeedEvent, RequestError, Selection, follow, in_time, spawn_vital,
};
use k8s_openapi::api::core::v1::Secret;
use kube::api::{Patch, PatchParams};
use kube::{Api, Client};
use parking_lot::{Mutex, RwLock};
use serde::Deserialize;
use serde_json::{Value, json};

use super::{MANAGER, PolicyKey};

/// Replicas on a hub.
pub(super) struct Replicas {
    shared: Client,
    /// Clients that speak for one member.
    own: RwLock<HashMap<Box<str>, ClusterHandle>>,
    names: Arc<Mutex<HashMap<String, BTreeSet<String>>>>,
    /// Versions that this process has written: their events are not news.
    written: Arc<Mutex<HashMap<(String, String), u64>>>,
    watch: Mutex<Option<tokio::task::AbortHandle>>,
}

impl Drop for Replicas {
    fn drop(&mut self) {
        if let Some(watch) = self.watch.lock().take() {
            watch.abort();
        }
    }
}

/// What is read of a watched policy.
#[derive(Deserialize)]
struct Head {
    metadata: HeadMetadata,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct HeadMetadata {
    #[serde(default)]
    namespace: String,
    #[serde(default)]
    name: String,
    #[serde(default)]
    resource_version: String,
}

impl Replicas {
    pub(super) fn new(hub: Client) -> Self {
        Self {
            shared: hub,
            own: RwLock::default(),
            names: Arc::default(),
            written: Arc::default(),
            watch: Mutex::default(),
        }
    }

    pub(super) fn use_client(&self, cluster: &str, hub: ClusterHandle) {
        self.own.write().insert(cluster.into(), hub);
    }

    pub(super) fn remove_client(&self, cluster: &str) {
        self.own.write().remove(cluster);
    }

    pub(super) fn hold_client(&self, cluster: &str) -> Option<ClientLease> {
        self.own.read().get(cluster).map(ClusterHandle::hold)
    }

    fn client(&self, cluster: &str) -> Client {
        let own = self.own.read();
        own.get(cluster)
            .map_or_else(|| self.shared.clone(), ClusterHandle::client)
    }

    fn api(&self, cluster: &str) -> Api<Policy> {
        Api::namespaced(self.client(cluster), cluster)
    }

    /// The names of the replicas of a cluster.
    pub(super) fn names(&self, cluster: &str) -> Vec<String> {
        let names = self.names.lock();
        let names = names.get(cluster).into_iter().flatten();
        names.cloned().collect()
    }

    /// Watches replicas, and calls back with cluster and name of each that changes.
    pub(super) fn watch(
        &self,
        cluster: Option<&str>,
        on_change: impl Fn(&str, &str) + Send + 'static,
    ) {
        let names = Policy::NAMES;
        let root = format!("/apis/{}/{}", names.group, names.version);
        let path = match cluster {
            Some(cluster) => format!("{root}/namespaces/{cluster}/{}", names.plural),
            None => format!("{root}/{}", names.plural),
        };
        let mut follower = Follower {
            names: Arc::clone(&self.names),
            written: Arc::clone(&self.written),
            listed: HashMap::new(),
            on_change,
        };
        let hub = ClusterHandle::from(&self.shared);
        let task = spawn_vital("watch of policies on the hub", async move {
            let replicas = Selection::labels(label::ROOT_POLICY);
            follow(hub, &path, &replicas, &mut |event| follower.handle(&event)).await;
        });
        *self.watch.lock() = Some(task.abort_handle());
    }

    /// Reads a replica; nothing if there is none.
    pub(super) async fn get(&self, key: &PolicyKey) -> Result<Option<Policy>, RequestError> {
        let api = self.api(&key.cluster);
        let found = in_time(api.get_opt(&key.policy)).await?;
        Ok(found.filter(is_replica))
    }

    /// Writes what the agent reports. The version of the replica has to be the one that was read: the
    /// hub writes to the status as well.
    pub(super) async fn report(
        &self,
        key: &PolicyKey,
        replica: &Policy,
        status: &PolicyStatus,
    ) -> Result<(), RequestError> {
        let text = serde_json::to_value(status).unwrap_or(Value::Null);
        let mut patch = json!({});
        for field in [
            "compliant",
            "details",
            "observedGeneration",
            "rolloutStatus",
            "rolloutStatusLastTransitionTime",
        ] {
            patch[field] = text.get(field).cloned().unwrap_or(Value::Null);
        }
        let patch = json!({
            "metadata": {"resourceVersion": replica.metadata.resource_version},
            "status": patch,
        });
        let params = PatchParams {
            field_manager: Some(MANAGER.to_owned()),
            ..PatchParams::default()
        };
        let api = self.api(&key.cluster);
        let written =
            in_time(api.patch_status(&key.policy, &params, &Patch::Merge(&patch))).await?;
        let version = written.metadata.resource_version.as_deref();
        let version = version.and_then(|version| version.parse().ok());
        let place = (key.cluster.to_string(), key.policy.to_string());
        if let Some(version) = version {
            self.written.lock().insert(place, version);
        }
        Ok(())
    }

    /// Reads the keys that texts for a cluster are encrypted with: the present one, and the one before.
    pub(super) async fn encryption_keys(
        &self,
        cluster: &str,
    ) -> Result<Option<(Vec<u8>, Option<Vec<u8>>)>, RequestError> {
        let api: Api<Secret> = Api::namespaced(self.client(cluster), cluster);
        let secret = in_time(api.get_opt(encryption::SECRET)).await?;
        let Some(data) = secret.and_then(|secret| secret.data) else {
            return Ok(None);
        };
        let read = |name: &str| data.get(name).map(|bytes| bytes.0.clone());
        Ok(read(encryption::KEY).map(|key| (key, read(encryption::PREVIOUS_KEY))))
    }
}

/// The initialisation vector in an annotation.
pub(super) fn vector(text: Option<&String>) -> Option<Vec<u8>> {
    STANDARD.decode(text?).ok()
}

fn is_replica(policy: &Policy) -> bool {
    let labels = policy.metadata.labels.as_ref();
    labels.is_some_and(|labels| labels.contains_key(label::ROOT_POLICY))
}

struct Follower<F> {
    names: Arc<Mutex<HashMap<String, BTreeSet<String>>>>,
    written: Arc<Mutex<HashMap<(String, String), u64>>>,
    listed: HashMap<String, BTreeSet<String>>,
    on_change: F,
}

impl<F: Fn(&str, &str)> Follower<F> {
    fn handle(&mut self, event: &FeedEvent<'_>) {
        match event {
            FeedEvent::ListStarted => self.listed.clear(),
            FeedEvent::Listed(text) => {
                if let Some(head) = head(text) {
                    let names = self.listed.entry(head.namespace).or_default();
                    names.insert(head.name);
                }
            }
            FeedEvent::ListDone(_) => self.take_list(),
            FeedEvent::Applied(text) => {
                let Some(head) = head(text) else { return };
                if self.is_own(&head) {
                    return;
                }
                let mut names = self.names.lock();
                let of_cluster = names.entry(head.namespace.clone()).or_default();
                of_cluster.insert(head.name.clone());
                drop(names);
                (self.on_change)(&head.namespace, &head.name);
            }
            FeedEvent::Deleted(text) => {
                let Some(head) = head(text) else { return };
                if let Some(names) = self.names.lock().get_mut(&head.namespace) {
                    names.remove(&head.name);
                }
                let place = (head.namespace.clone(), head.name.clone());
                self.written.lock().remove(&place);
                (self.on_change)(&head.namespace, &head.name);
            }
            FeedEvent::Disconnected(_) => {}
        }
    }

    /// Returns true if this process wrote that version, or a later one.
    fn is_own(&self, head: &HeadMetadata) -> bool {
        let place = (head.namespace.clone(), head.name.clone());
        let written = self.written.lock();
        let version = head.resource_version.parse::<u64>();
        match (written.get(&place), version) {
            (Some(written), Ok(version)) => version <= *written,
            _ => false,
        }
    }

    /// Enqueues what is listed, and what is not there any more.
    fn take_list(&mut self) {
        let listed = std::mem::take(&mut self.listed);
        let before = std::mem::replace(&mut *self.names.lock(), listed.clone());
        let mut all = listed;
        for (cluster, names) in before {
            all.entry(cluster).or_default().extend(names);
        }
        for (cluster, names) in all {
            for name in names {
                (self.on_change)(&cluster, &name);
            }
        }
    }
}

fn head(text: &str) -> Option<HeadMetadata> {
    let head: Head = serde_json::from_str(text).ok()?;
    Some(head.metadata)
}
