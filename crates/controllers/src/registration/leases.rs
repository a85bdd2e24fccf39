//! Watching the leases of all members: what is seen goes into [`Heartbeats`], and those who fall silent
//! into the queue.

use std::collections::HashMap;
use std::sync::Arc;

use bellwether_api::cluster::ManagedCluster;
use bellwether_api::cluster::names::condition::{AVAILABLE, CLOCK_SYNCED};
use bellwether_api::cluster::names::object;
use bellwether_api::meta::is_true;
use bellwether_runtime::{
    Cache, CacheEntry as _, Change, Clock, MetricsRegistry, ObjectKey, Queue, Selection,
    Subscription,
};
use jiff::SignedDuration;
use k8s_openapi::api::coordination::v1::Lease;
use kube::core::Request;
use kube::{Client, Resource as _};
use parking_lot::Mutex;
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use tokio::sync::{Notify, watch};

use super::clusters::Key;
use super::decide;
use super::heartbeats::{Contact, Heartbeats, Loss, LossThreshold};
use super::kept::Heartbeat;
use crate::hub::Hub;

/// Whether clusters renew their leases.
#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ByHeartbeat {
    heartbeat: &'static str,
}

/// Numbers about heartbeats.
#[derive(Debug)]
pub struct Metrics {
    clusters: Family<ByHeartbeat, Gauge>,
    renewing: Gauge,
    late: Gauge,
    lost: Gauge,
}

impl Default for Metrics {
    fn default() -> Self {
        let clusters: Family<ByHeartbeat, Gauge> = Family::default();
        let with = |heartbeat| clusters.get_or_create_owned(&ByHeartbeat { heartbeat });
        Self {
            renewing: with("renewing"),
            late: with("late"),
            lost: Gauge::default(),
            clusters,
        }
    }
}

impl Metrics {
    /// Adds them to the metrics of a process.
    pub fn register(&self, registry: &MetricsRegistry) {
        registry.register(|registry| {
            registry.register(
                "bellwether_registration_clusters",
                "Clusters that are not tainted as unreachable, by whether they renew their leases",
                self.clusters.clone(),
            );
            registry.register(
                "bellwether_registration_heartbeat_loss",
                "1 while so many clusters are silent that none is tainted for it",
                self.lost.clone(),
            );
        });
    }

    fn set(&self, heartbeats: &Heartbeats) {
        let set = |gauge: &Gauge, value: usize| {
            gauge.set(i64::try_from(value).unwrap_or(i64::MAX));
        };
        let (renewing, late) = heartbeats.counts();
        set(&self.renewing, renewing);
        set(&self.late, late);
        set(&self.lost, usize::from(heartbeats.loss().is_some()));
    }
}

/// The leases of all members.
pub(super) struct Leases {
    client: Client,
    cache: Cache<Heartbeat>,
    shared: Arc<Shared>,
    _subscription: Subscription,
}

/// What listeners and the controller share.
struct Shared {
    clock: Clock,
    heartbeats: Mutex<Heartbeats>,
    /// By how much clocks were off at the last renewal that the hub saw.
    skews: Mutex<HashMap<Arc<str>, SignedDuration>>,
    metrics: Arc<Metrics>,
    /// Notified when a timer may be due earlier than before, or a loss begins or ends.
    changed: Notify,
    loss: watch::Sender<Option<Loss>>,
}

impl Leases {
    /// Begins to watch. The grace period of every member begins with it.
    pub(super) fn follow(
        hub: &Hub,
        queue: &Queue<Key>,
        threshold: LossThreshold,
        metrics: &Arc<Metrics>,
    ) -> Self {
        let shared = Arc::new(Shared {
            clock: hub.clock.clone(),
            heartbeats: Mutex::new(Heartbeats::new(threshold)),
            skews: Mutex::default(),
            metrics: Arc::clone(metrics),
            changed: Notify::new(),
            loss: watch::Sender::new(None),
        });
        let state = Arc::clone(&shared);
        let clusters = hub.cache::<ManagedCluster>();
        let subscription =
            clusters.subscribe_until_dropped(move |change| state.see_cluster(&change));
        let (state, queue) = (Arc::clone(&shared), queue.clone());
        let fields = format!("metadata.name={}", object::LEASE);
        let cache = Cache::follow(
            &hub.client,
            Lease::url_path(&(), None),
            Selection::fields(&fields),
            move |change: Change<'_, Heartbeat>| {
                if !state.see_lease(&change, &clusters) {
                    queue.add(Key::Cluster(change.key.namespace.clone()));
                }
            },
        );
        Self {
            client: hub.client.clone(),
            cache,
            shared,
            _subscription: subscription,
        }
    }

    /// The leases as last seen.
    pub(super) fn cache(&self) -> &Cache<Heartbeat> {
        &self.cache
    }

    /// True if a cluster has a lease.
    pub(super) fn has_lease(&self, cluster: &str) -> bool {
        self.cache.get(&key(cluster)).is_some()
    }

    /// What is known of a cluster's heartbeats.
    pub(super) fn contact(&self, cluster: &str) -> Contact {
        self.shared.heartbeats.lock().contact(cluster)
    }

    /// By how much the clock of a cluster was off at its last renewal.
    pub(super) fn skew(&self, cluster: &str) -> Option<SignedDuration> {
        self.shared.skews.lock().get(cluster).copied()
    }

    /// Reads the lease of a cluster that seems silent: the watch may be behind.
    pub(super) async fn confirm_silence(&self, cluster: &Arc<str>) -> Result<(), kube::Error> {
        let path = Lease::url_path(&(), Some(cluster));
        let request = Request::new(path).get(object::LEASE, &kube::api::GetParams::default());
        let request = request.map_err(kube::Error::BuildRequest)?;
        let text = match self.client.request_text(request).await {
            Ok(text) => text,
            Err(kube::Error::Api(status)) if status.is_not_found() => return Ok(()),
            Err(error) => return Err(error),
        };
        let beat = Heartbeat::read(&text).map_err(kube::Error::SerdeError)?;
        let known = self.cache.get(&key(cluster));
        if known.is_none_or(|known| known.renewed != beat.renewed) {
            self.shared.change(|heartbeats, now| {
                heartbeats.renew(cluster, beat.duration, now);
            });
        }
        Ok(())
    }

    /// A cluster is gone: if it comes again, it is a new one.
    pub(super) fn forget(&self, cluster: &Arc<str>) {
        self.shared.forget(cluster);
    }

    /// The present loss of heartbeats, and its changes.
    pub(super) fn loss(&self) -> watch::Receiver<Option<Loss>> {
        self.shared.loss.subscribe()
    }

    /// True while this process does not know yet of all clusters whether they renew their leases.
    pub(super) fn is_learning(&self) -> bool {
        self.shared.heartbeats.lock().is_learning()
    }

    /// The clusters that are missing.
    pub(super) fn late(&self) -> Vec<Arc<str>> {
        self.shared.heartbeats.lock().late()
    }

    /// Adds clusters that fall silent to the queue, until cancelled.
    pub(super) async fn run(self: Arc<Self>, queue: Queue<Key>) {
        let shared = &self.shared;
        loop {
            let is_blind = self.cache.is_interrupted();
            let (silent, next) = shared.change(|heartbeats, now| {
                heartbeats.set_blind(is_blind, now);
                (heartbeats.advance(now), heartbeats.next_change())
            });
            for cluster in silent {
                queue.add(Key::Cluster(cluster));
            }
            tokio::select! {
                () = shared.changed.notified() => {}
                () = self.cache.until_interrupted(!is_blind) => {}
                () = shared.clock.until_monotonic(next.unwrap_or_default()), if next.is_some() => {}
            }
        }
    }
}

impl Shared {
    fn change<T>(&self, change: impl FnOnce(&mut Heartbeats, std::time::Duration) -> T) -> T {
        let mut heartbeats = self.heartbeats.lock();
        let before = (heartbeats.next_change(), heartbeats.loss().is_some());
        let result = change(&mut heartbeats, self.clock.monotonic());
        let after = (heartbeats.next_change(), heartbeats.loss().is_some());
        self.metrics.set(&heartbeats);
        let loss = heartbeats.loss();
        self.loss.send_if_modified(|known| {
            let is_news = *known != loss;
            *known = loss;
            is_news
        });
        drop(heartbeats);
        let is_earlier = after
            .0
            .is_some_and(|new| before.0.is_none_or(|old| new < old));
        if is_earlier || before.1 != after.1 {
            self.changed.notify_one();
        }
        result
    }

    fn forget(&self, cluster: &Arc<str>) {
        self.skews.lock().remove(cluster);
        self.change(|heartbeats, now| heartbeats.forget(cluster, now));
    }

    fn see_cluster(&self, change: &Change<'_, ManagedCluster>) {
        let name = &change.key.name;
        match change.new {
            None => self.forget(name),
            Some(cluster) => self.change(|heartbeats, now| {
                let (duration, counts) =
                    (cluster.lease_duration(), decide::counts_for_loss(cluster));
                heartbeats.set_cluster(name, duration, counts, now);
            }),
        }
    }

    /// Takes a change of a lease in. True if nothing follows from it for its cluster.
    fn see_lease(&self, change: &Change<'_, Heartbeat>, clusters: &Cache<ManagedCluster>) -> bool {
        let cluster = &change.key.namespace;
        let Some(new) = change.new else {
            return false;
        };
        let Some(old) = change.old else {
            self.change(|heartbeats, now| heartbeats.see_lease(cluster, new.duration, now));
            return false;
        };
        let Some(renewed) = new.renewed.filter(|_| new.renewed != old.renewed) else {
            return false;
        };
        self.change(|heartbeats, now| heartbeats.renew(cluster, new.duration, now));
        let skew = self.clock.now().duration_since(renewed);
        self.skews.lock().insert(cluster.clone(), skew);
        needs_no_reconcile(clusters, cluster, skew)
    }
}

fn key(cluster: &str) -> ObjectKey {
    ObjectKey::new(cluster, object::LEASE)
}

/// True if a cluster is known to be available, with a clock that is still right.
fn needs_no_reconcile(
    clusters: &Cache<ManagedCluster>,
    cluster: &str,
    skew: SignedDuration,
) -> bool {
    let Some(cluster) = clusters.get(&ObjectKey::cluster_scoped(cluster)) else {
        return false;
    };
    let Some(status) = &cluster.status else {
        return false;
    };
    skew.abs() < decide::tolerated_skew(&cluster)
        && is_true(&status.conditions, AVAILABLE)
        && is_true(&status.conditions, CLOCK_SYNCED)
}
