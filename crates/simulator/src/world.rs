//! What is known of a cluster: the objects that matter to the simulator, as they were last seen.
//!
//! Two ways lead in: the feed of changes, and the answers to our own writes. The second makes sure
//! that a controller never decides without knowing what it has just done; objects carry the revision
//! of their write, so whatever comes late is recognised and ignored.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use bellwether_runtime::ObjectKey;
use jiff::Timestamp;
use k8s_openapi::api::apps::v1::{
    ControllerRevision, DaemonSet, Deployment, ReplicaSet, StatefulSet,
};
use k8s_openapi::api::autoscaling::v2::HorizontalPodAutoscaler;
use k8s_openapi::api::batch::v1::{CronJob, Job};
use k8s_openapi::api::core::v1::{
    ConfigMap, Endpoints, Namespace, Node, PersistentVolume, PersistentVolumeClaim, Pod,
    ReplicationController, Service, ServiceAccount,
};
use k8s_openapi::api::discovery::v1::EndpointSlice;
use k8s_openapi::api::policy::v1::PodDisruptionBudget;
use k8s_openapi::api::storage::v1::StorageClass;

use crate::job::Endings;
use crate::kind::{Kind, Object, controller_of, key_of};

/// The objects of one kind.
#[derive(Debug)]
pub(crate) struct Objects<K> {
    by_key: BTreeMap<ObjectKey, (u64, Arc<K>)>,
    /// Objects by the uid of their controller; those without one by the empty string.
    by_owner: HashMap<String, BTreeSet<ObjectKey>>,
    /// Objects that were removed at a revision that the feed has not reached yet.
    removed: BTreeMap<ObjectKey, u64>,
}

/// What an object is to those who knew the ones before.
#[derive(Debug)]
pub(crate) enum FeedEvent<K> {
    /// It is known, or a later one is.
    Old,
    Created,
    /// It was this before.
    Changed(Arc<K>),
}

impl<K> Default for Objects<K> {
    fn default() -> Self {
        Self {
            by_key: BTreeMap::new(),
            by_owner: HashMap::new(),
            removed: BTreeMap::new(),
        }
    }
}

impl<K: Object> Objects<K> {
    pub(crate) fn get(&self, key: &ObjectKey) -> Option<&Arc<K>> {
        self.by_key.get(key).map(|(_, object)| object)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.by_key.is_empty()
    }

    pub(crate) fn all(&self) -> impl Iterator<Item = &Arc<K>> {
        self.by_key.values().map(|(_, object)| object)
    }

    pub(crate) fn in_namespace<'a>(
        &'a self,
        namespace: &'a str,
    ) -> impl Iterator<Item = &'a Arc<K>> {
        self.by_key
            .range(ObjectKey::new(namespace, "")..)
            .take_while(move |(key, _)| &*key.namespace == namespace)
            .map(|(_, (_, object))| object)
    }

    /// The objects of a controller.
    pub(crate) fn owned_by(&self, uid: &str) -> impl Iterator<Item = &Arc<K>> {
        let keys = self.by_owner.get(uid).into_iter().flatten();
        keys.filter_map(|key| self.get(key))
    }

    /// The objects in a namespace that have no controller.
    pub(crate) fn orphans<'a>(&'a self, namespace: &'a str) -> impl Iterator<Item = &'a Arc<K>> {
        self.owned_by("")
            .filter(move |object| object.metadata().namespace.as_deref() == Some(namespace))
    }

    /// Takes in an object.
    pub(crate) fn put(&mut self, revision: u64, object: K) -> FeedEvent<K> {
        let key = key_of(&object);
        let known = self.by_key.get(&key).map_or(0, |(known, _)| *known);
        let removed = self.removed.get(&key).copied().unwrap_or_default();
        if revision <= known.max(removed) {
            return FeedEvent::Old;
        }
        let owner = owner_uid(&object);
        let old = self
            .by_key
            .insert(key.clone(), (revision, Arc::new(object)))
            .map(|(_, old)| old);
        if let Some(old) = &old {
            self.disown(owner_uid(old.as_ref()).as_str(), &key);
        }
        self.by_owner.entry(owner).or_default().insert(key);
        old.map_or(FeedEvent::Created, FeedEvent::Changed)
    }

    /// Takes in that an object is gone since that revision.
    pub(crate) fn remove(&mut self, key: &ObjectKey, revision: u64) -> Option<Arc<K>> {
        if self.by_key.get(key)?.0 > revision {
            return None;
        }
        let (_, old) = self.by_key.remove(key)?;
        self.removed.insert(key.clone(), revision);
        self.disown(owner_uid(old.as_ref()).as_str(), key);
        Some(old)
    }

    fn disown(&mut self, owner: &str, key: &ObjectKey) {
        if let Some(keys) = self.by_owner.get_mut(owner) {
            keys.remove(key);
            if keys.is_empty() {
                self.by_owner.remove(owner);
            }
        }
    }

    /// The feed has told everything up to that revision.
    fn forget_removed(&mut self, through: u64) {
        self.removed.retain(|_, revision| *revision > through);
    }
}

fn owner_uid<K: Object>(object: &K) -> String {
    controller_of(object.metadata()).map_or_else(String::new, |owner| owner.uid.clone())
}

/// Calls a function on the objects of a kind that is known only at run time.
macro_rules! of_kind {
    ($world:expr, $kind:expr, $objects:ident => $body:expr) => {
        match $kind {
            Kind::Deployment => {
                let $objects = &mut $world.deployments;
                $body
            }
            Kind::ReplicaSet => {
                let $objects = &mut $world.replica_sets;
                $body
            }
            Kind::ReplicationController => {
                let $objects = &mut $world.replication_controllers;
                $body
            }
            Kind::StatefulSet => {
                let $objects = &mut $world.stateful_sets;
                $body
            }
            Kind::DaemonSet => {
                let $objects = &mut $world.daemon_sets;
                $body
            }
            Kind::ControllerRevision => {
                let $objects = &mut $world.revisions;
                $body
            }
            Kind::Job => {
                let $objects = &mut $world.jobs;
                $body
            }
            Kind::CronJob => {
                let $objects = &mut $world.cron_jobs;
                $body
            }
            Kind::Pod => {
                let $objects = &mut $world.pods;
                $body
            }
            Kind::Node => {
                let $objects = &mut $world.nodes;
                $body
            }
            Kind::Service => {
                let $objects = &mut $world.services;
                $body
            }
            Kind::Endpoints => {
                let $objects = &mut $world.endpoints;
                $body
            }
            Kind::EndpointSlice => {
                let $objects = &mut $world.slices;
                $body
            }
            Kind::Claim => {
                let $objects = &mut $world.claims;
                $body
            }
            Kind::Volume => {
                let $objects = &mut $world.volumes;
                $body
            }
            Kind::StorageClass => {
                let $objects = &mut $world.classes;
                $body
            }
            Kind::Autoscaler => {
                let $objects = &mut $world.autoscalers;
                $body
            }
            Kind::Namespace => {
                let $objects = &mut $world.namespaces;
                $body
            }
            Kind::ServiceAccount => {
                let $objects = &mut $world.accounts;
                $body
            }
            Kind::ConfigMap => {
                let $objects = &mut $world.certificates;
                $body
            }
            Kind::DisruptionBudget => {
                let $objects = &mut $world.budgets;
                $body
            }
        }
    };
}

/// Everything that is known of one cluster.
#[derive(Debug, Default)]
pub(crate) struct World {
    pub(crate) deployments: Objects<Deployment>,
    pub(crate) replica_sets: Objects<ReplicaSet>,
    pub(crate) replication_controllers: Objects<ReplicationController>,
    pub(crate) stateful_sets: Objects<StatefulSet>,
    pub(crate) daemon_sets: Objects<DaemonSet>,
    pub(crate) revisions: Objects<ControllerRevision>,
    pub(crate) jobs: Objects<Job>,
    pub(crate) cron_jobs: Objects<CronJob>,
    pub(crate) pods: Objects<Pod>,
    pub(crate) nodes: Objects<Node>,
    pub(crate) services: Objects<Service>,
    pub(crate) endpoints: Objects<Endpoints>,
    pub(crate) slices: Objects<EndpointSlice>,
    pub(crate) claims: Objects<PersistentVolumeClaim>,
    pub(crate) volumes: Objects<PersistentVolume>,
    pub(crate) classes: Objects<StorageClass>,
    pub(crate) autoscalers: Objects<HorizontalPodAutoscaler>,
    pub(crate) budgets: Objects<PodDisruptionBudget>,
    pub(crate) namespaces: Objects<Namespace>,
    pub(crate) accounts: Objects<ServiceAccount>,
    /// With the certificate of the API server.
    pub(crate) certificates: Objects<ConfigMap>,
    /// When a pod's status was last changed by us, more precisely than objects say. By uid.
    pub(crate) moments: HashMap<String, Timestamp>,
    /// When a pod's containers were asked to end. By uid.
    pub(crate) stopping: HashMap<String, Timestamp>,
    /// When pods of a job ended. By the uid of the job.
    pub(crate) endings: HashMap<String, Endings>,
    /// Why the last attempt to create something failed, by the uid of who wanted it.
    pub(crate) troubles: HashMap<String, String>,
    /// The feed has told everything up to this revision.
    seen: u64,
    /// The number of the next pod address to try.
    pub(crate) next_address: u32,
}

/// What became of an object: before and after.
#[derive(Debug)]
pub(crate) struct Difference {
    pub(crate) key: ObjectKey,
    pub(crate) old: Option<LiveObject>,
    pub(crate) new: Option<LiveObject>,
}

/// An object of one of the kinds.
#[derive(Debug, Clone)]
pub(crate) enum LiveObject {
    Pod(Arc<Pod>),
    /// Of any other kind only the metadata says whom a change concerns.
    Other(Arc<k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta>),
}

impl LiveObject {
    pub(crate) fn metadata(&self) -> &k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta {
        match self {
            Self::Pod(pod) => &pod.metadata,
            Self::Other(metadata) => metadata,
        }
    }
}

/// Objects that can say what they are.
trait IntoKnown {
    fn known(self: &Arc<Self>) -> LiveObject;
}

impl<K: Object> IntoKnown for K {
    fn known(self: &Arc<Self>) -> LiveObject {
        let any: &dyn std::any::Any = self;
        match any.downcast_ref::<Arc<Pod>>() {
            Some(pod) => LiveObject::Pod(Arc::clone(pod)),
            None => LiveObject::Other(Arc::new(self.metadata().clone())),
        }
    }
}

impl World {
    /// Whether there is something here that can change without being changed by somebody: all that a
    /// new cluster has stays as it is.
    pub(crate) fn is_alive(&self) -> bool {
        let Self {
            deployments,
            replica_sets,
            replication_controllers,
            stateful_sets,
            daemon_sets,
            revisions: _,
            jobs,
            cron_jobs,
            pods,
            nodes: _,
            services: _,
            endpoints: _,
            slices: _,
            claims,
            volumes,
            classes: _,
            autoscalers,
            budgets,
            namespaces: _,
            accounts: _,
            certificates: _,
            moments: _,
            stopping: _,
            endings: _,
            troubles: _,
            seen: _,
            next_address: _,
        } = self;
        !(deployments.is_empty()
            && replica_sets.is_empty()
            && replication_controllers.is_empty()
            && stateful_sets.is_empty()
            && daemon_sets.is_empty()
            && jobs.is_empty()
            && cron_jobs.is_empty()
            && pods.is_empty()
            && claims.is_empty()
            && volumes.is_empty()
            && autoscalers.is_empty()
            && budgets.is_empty())
    }

    /// Takes in an object; returns what changed, unless it is outdated.
    pub(crate) fn put(
        &mut self,
        kind: Kind,
        revision: u64,
        json: &[u8],
    ) -> Result<Option<Difference>, serde_json::Error> {
        of_kind!(self, kind, objects => put(objects, revision, json))
    }

    /// Takes in that an object is gone.
    pub(crate) fn remove(
        &mut self,
        kind: Kind,
        key: &ObjectKey,
        revision: u64,
    ) -> Option<Difference> {
        let old = of_kind!(self, kind, objects => {
            objects.remove(key, revision).map(|old| old.known())
        })?;
        let uid = old.metadata().uid.as_deref().unwrap_or_default();
        self.moments.remove(uid);
        self.stopping.remove(uid);
        self.troubles.remove(uid);
        self.endings.remove(uid);
        Some(Difference {
            key: key.clone(),
            old: Some(old),
            new: None,
        })
    }

    /// An address for a pod that no other pod has.
    pub(crate) fn take_address(&mut self) -> String {
        if self.next_address == 0 {
            // Some pods may be older than this process.
            let statuses = self.pods.all().filter_map(|pod| pod.status.as_ref());
            let numbers = statuses.filter_map(|status| address_number(status.pod_ip.as_deref()?));
            self.next_address = numbers.max().unwrap_or(0);
        }
        loop {
            self.next_address = self.next_address.wrapping_add(1);
            let [.., third, fourth] = self.next_address.to_be_bytes();
            if !matches!(fourth, 0 | 255) {
                return format!("10.244.{third}.{fourth}");
            }
        }
    }

    /// Forgets all objects, since they are about to be listed again.
    pub(crate) fn clear(&mut self) {
        *self = Self {
            moments: std::mem::take(&mut self.moments),
            stopping: std::mem::take(&mut self.stopping),
            troubles: std::mem::take(&mut self.troubles),
            endings: std::mem::take(&mut self.endings),
            seen: self.seen,
            next_address: self.next_address,
            ..Self::default()
        };
    }

    /// Takes in the answer to a write. What the feed has told already is no news, and may even be
    /// gone by now.
    pub(crate) fn put_written(
        &mut self,
        kind: Kind,
        revision: u64,
        json: &[u8],
    ) -> Result<Option<Difference>, serde_json::Error> {
        if revision <= self.seen {
            return Ok(None);
        }
        self.put(kind, revision, json)
    }

    /// The feed has told everything up to that revision; the last was about an object of this kind.
    pub(crate) fn has_seen(&mut self, kind: Option<Kind>, revision: u64) {
        self.seen = self.seen.max(revision);
        if let Some(kind) = kind {
            of_kind!(self, kind, objects => objects.forget_removed(revision));
        }
    }
}

/// The number of an address among those of pods.
fn address_number(address: &str) -> Option<u32> {
    let mut parts = address.strip_prefix("10.244.")?.split('.');
    let third: u32 = parts.next()?.parse().ok()?;
    let fourth: u32 = parts.next()?.parse().ok()?;
    Some(third * 256 + fourth)
}

fn put<K: Object>(
    objects: &mut Objects<K>,
    revision: u64,
    json: &[u8],
) -> Result<Option<Difference>, serde_json::Error> {
    let mut object: K = serde_json::from_slice(json)?;
    // Nobody here asks who wrote which field, and it is a large part of most objects.
    object.metadata_mut().managed_fields = None;
    let key = key_of(&object);
    let old = match objects.put(revision, object) {
        FeedEvent::Old => return Ok(None),
        FeedEvent::Created => None,
        FeedEvent::Changed(old) => Some(old),
    };
    Ok(objects.get(&key).map(|new| Difference {
        old: old.map(|old| old.known()),
        new: Some(new.known()),
        key: key.clone(),
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pod(name: &str, owner: &str) -> Pod {
        serde_json::from_value(serde_json::json!({"metadata": {
            "name": name, "namespace": "a",
            "ownerReferences": [{"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "r",
                                 "uid": owner, "controller": true}],
        }}))
        .unwrap()
    }

    #[test]
    fn old_news_change_nothing() {
        let mut pods = Objects::default();
        let key = ObjectKey::new("a", "p");
        let is_news = |news: FeedEvent<Pod>| !matches!(news, FeedEvent::Old);
        assert!(is_news(pods.put(5, pod("p", "one"))));
        assert!(!is_news(pods.put(4, pod("p", "two"))));
        assert!(pods.remove(&key, 4).is_none());
        assert!(pods.remove(&key, 7).is_some());
        assert!(!is_news(pods.put(6, pod("p", "one"))), "it is gone since 7");
        pods.forget_removed(7);
        assert!(is_news(pods.put(8, pod("p", "one"))));
    }

    #[test]
    fn the_answer_to_a_write_does_not_bring_back_what_is_gone() {
        let mut world = World::default();
        let key = ObjectKey::new("a", "p");
        let json = serde_json::to_vec(&pod("p", "one")).unwrap();
        assert!(world.put(Kind::Pod, 5, &json).unwrap().is_some());
        assert!(world.put_written(Kind::Pod, 6, &json).unwrap().is_some());
        // The feed tells of our write, and then that somebody deleted the object.
        assert!(world.put(Kind::Pod, 6, &json).unwrap().is_none());
        assert!(world.remove(Kind::Pod, &key, 8).is_some());
        world.has_seen(Some(Kind::Pod), 8);
        // The answer to a write in between comes late.
        assert!(world.put_written(Kind::Pod, 7, &json).unwrap().is_none());
        assert!(world.pods.get(&key).is_none());
    }

    #[test]
    fn objects_are_found_by_their_controller_and_namespace() {
        let mut pods = Objects::default();
        pods.put(1, pod("p", "one"));
        pods.put(2, pod("q", "two"));
        assert_eq!(pods.owned_by("one").count(), 1);
        pods.put(3, pod("p", "two"));
        assert_eq!(pods.owned_by("one").count(), 0);
        assert_eq!(pods.owned_by("two").count(), 2);
        assert_eq!(pods.in_namespace("a").count(), 2);
        assert_eq!(pods.in_namespace("").count(), 0);
        assert_eq!(pods.orphans("a").count(), 0);
    }
}
