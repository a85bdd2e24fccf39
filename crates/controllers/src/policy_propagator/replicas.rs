//! The replicas of all policies, as last seen or written.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use bellwether_api::meta::ObjectMeta;
use bellwether_api::policy::Policy;
use bellwether_api::policy::names::root_of;
use bellwether_policy::propagation::Replica;
use bellwether_runtime::{CacheEntry, ObjectKey};
use parking_lot::Mutex;

/// What a cache keeps of a replica.
pub(super) struct ReplicaEntry {
    key: ObjectKey,
    /// Its root policy; nothing if its name names none.
    pub(super) root: Option<ObjectKey>,
    pub(super) replica: Arc<Replica>,
}

impl CacheEntry for ReplicaEntry {
    fn read(text: &str) -> Result<Self, serde_json::Error> {
        let policy: Policy = serde_json::from_str(text)?;
        let key = ObjectKey::of(&policy);
        let root = root_of(&key.name).map(|(namespace, name)| ObjectKey::new(namespace, name));
        Ok(Self {
            key,
            root,
            replica: Arc::new(Replica::of(&policy)),
        })
    }

    fn key(&self) -> ObjectKey {
        self.key.clone()
    }

    fn is_same(&self, other: &Self) -> bool {
        let (one, other) = (&self.replica, &other.replica);
        one.uid == other.uid
            && one.resource_version.is_some()
            && one.resource_version == other.resource_version
    }
}

/// Replicas of one root policy by cluster.
pub(super) type ByCluster = BTreeMap<Arc<str>, Arc<Replica>>;

/// Replicas by root policy and cluster. What the server answers to writes is taken in at once, so that no
/// decision is made by what a watch has not told yet.
#[derive(Clone, Default)]
pub(super) struct Replicas(Arc<Mutex<HashMap<ObjectKey, Arc<ByCluster>>>>);

impl Replicas {
    /// Returns the replicas of a root policy.
    pub(super) fn of(&self, root: &ObjectKey) -> Arc<ByCluster> {
        self.0.lock().get(root).cloned().unwrap_or_default()
    }

    /// Returns the replica of one cluster.
    pub(super) fn one(&self, root: &ObjectKey, cluster: &str) -> Option<Arc<Replica>> {
        self.0.lock().get(root)?.get(cluster).cloned()
    }

    /// Takes in a replica unless a later state of it is known.
    pub(super) fn put(&self, root: &ObjectKey, replica: &Arc<Replica>) {
        let mut all = self.0.lock();
        let known = Arc::make_mut(all.entry(root.clone()).or_default());
        let is_old = known.get(&replica.cluster).is_some_and(|known| {
            known.uid == replica.uid
                && is_later(
                    known.resource_version.as_deref(),
                    replica.resource_version.as_deref(),
                )
        });
        if !is_old {
            known.insert(Arc::clone(&replica.cluster), Arc::clone(replica));
        }
    }

    /// Takes note that a replica is gone.
    pub(super) fn remove(&self, root: &ObjectKey, gone: &Replica) {
        let mut all = self.0.lock();
        let Some(known) = all.get_mut(root) else {
            return;
        };
        let known = Arc::make_mut(known);
        if known
            .get(&gone.cluster)
            .is_some_and(|it| it.uid == gone.uid)
        {
            known.remove(&gone.cluster);
        }
        if known.is_empty() {
            all.remove(root);
        }
    }
}

/// True if the first is a later state of the same object than the second.
pub(crate) fn is_newer(one: &ObjectMeta, other: &ObjectMeta) -> bool {
    one.uid == other.uid
        && is_later(
            one.resource_version.as_deref(),
            other.resource_version.as_deref(),
        )
}

/// Versions that are not numbers cannot be compared: the second counts then.
fn is_later(one: Option<&str>, other: Option<&str>) -> bool {
    let number = |version: Option<&str>| version.and_then(|it| it.parse::<u64>().ok());
    match (number(one), number(other)) {
        (Some(one), Some(other)) => one > other,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn replica(uid: &str, version: &str) -> Arc<Replica> {
        let policy = json!({
            "metadata": {"name": "a.b", "namespace": "c1", "uid": uid, "resourceVersion": version},
            "spec": {"disabled": false, "policy-templates": []},
        });
        Arc::new(Replica::of(&serde_json::from_value(policy).unwrap()))
    }

    #[test]
    fn late_news_of_a_watch_do_not_undo_what_was_written() {
        let replicas = Replicas::default();
        let root = ObjectKey::new("a", "b");
        let version = |replicas: &Replicas| {
            let known = replicas.of(&root);
            let known = known.get("c1").map(|it| it.resource_version.clone());
            known.flatten()
        };
        replicas.put(&root, &replica("one", "9"));
        replicas.put(&root, &replica("one", "10"));
        replicas.put(&root, &replica("one", "9"));
        assert_eq!(version(&replicas).as_deref(), Some("10"));
        replicas.put(&root, &replica("two", "12"));
        replicas.remove(&root, &replica("one", "11"));
        assert_eq!(version(&replicas).as_deref(), Some("12"));
        replicas.remove(&root, &replica("two", "13"));
        assert_eq!(version(&replicas), None);
    }
}
