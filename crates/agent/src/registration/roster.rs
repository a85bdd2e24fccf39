//! Clusters as their hub has them, for the agents of these clusters.
//!
//! An agent over a network watches its own cluster, and may see no other. Agents in the hub's own
//! process share the watch that the hub has anyway: each is notified about its own cluster only, and
//! whatever it asks for or writes passes with its own certificate all the same.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use bellwether_api::cluster::ManagedCluster;
use bellwether_runtime::{Cache, ObjectKey};
use parking_lot::Mutex;
use tokio::sync::Notify;

/// What a hub says about its clusters, or about one of them. Cheap to clone.
#[derive(Clone)]
pub struct Roster {
    clusters: Cache<ManagedCluster>,
    listeners: Arc<Mutex<HashMap<Arc<str>, Arc<Notify>>>>,
}

impl Roster {
    /// What a watch of clusters says.
    pub fn new(clusters: Cache<ManagedCluster>) -> Self {
        let listeners: Arc<Mutex<HashMap<Arc<str>, Arc<Notify>>>> = Arc::default();
        let entries = Arc::clone(&listeners);
        clusters.subscribe(move |change| {
            if let Some(changed) = entries.lock().get(&change.key.name) {
                changed.notify_one();
            }
        });
        Self {
            clusters,
            listeners,
        }
    }

    /// True if the hub's clusters are known, and this one is not among them.
    pub(super) fn lacks(&self, cluster: &str) -> bool {
        let key = ObjectKey::cluster_scoped(cluster);
        self.clusters.is_ready() && self.clusters.get(&key).is_none()
    }

    /// What it says about one cluster; `changed` is notified when it changes.
    pub(super) fn entry(&self, cluster: &str, changed: &Arc<Notify>) -> Entry {
        let key = ObjectKey::cluster_scoped(cluster);
        let mut listeners = self.listeners.lock();
        listeners.insert(Arc::clone(&key.name), Arc::clone(changed));
        drop(listeners);
        Entry {
            roster: self.clone(),
            key,
            changed: Arc::clone(changed),
        }
    }
}

impl fmt::Debug for Roster {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Roster")
            .field("clusters", &self.clusters)
            .finish_non_exhaustive()
    }
}

/// One cluster as its hub has it.
pub(super) struct Entry {
    roster: Roster,
    key: ObjectKey,
    changed: Arc<Notify>,
}

impl Entry {
    /// The cluster, if there is one.
    pub(super) fn get(&self) -> Option<Arc<ManagedCluster>> {
        self.roster.clusters.get(&self.key)
    }

    /// Waits until everything that there was at the beginning has been seen.
    pub(super) async fn ready(&self) {
        self.roster.clusters.ready().await;
    }
}

impl Drop for Entry {
    fn drop(&mut self) {
        let mut listeners = self.roster.listeners.lock();
        // Another agent may have come for the same cluster.
        let known = listeners.get(&self.key.name);
        if known.is_some_and(|known| Arc::ptr_eq(known, &self.changed)) {
            listeners.remove(&self.key.name);
        }
    }
}
