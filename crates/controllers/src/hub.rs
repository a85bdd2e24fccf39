//! What the controllers of a hub share: one watch a kind, however many look at it.

use std::fmt::Debug;

use bellwether_api::cluster::{
    ManagedCluster, ManagedClusterSet, ManagedClusterSetBinding, Placement, PlacementDecision,
};
use bellwether_runtime::{Cache, Clock, ControllerMetrics, Selection};
use kube::api::{PatchParams, PostParams};
use kube::{Api, Client, Resource};
use serde::de::DeserializeOwned;

/// A hub as its controllers see it. Cheap to clone; its watches end with the last clone.
#[derive(Clone)]
pub struct Hub {
    /// The hub's API, with the rights of its controllers.
    pub client: Client,
    /// The time.
    pub clock: Clock,
    /// Numbers about the controllers.
    pub metrics: ControllerMetrics,
    /// All clusters.
    pub clusters: Cache<ManagedCluster>,
    /// All sets of clusters.
    pub cluster_sets: Cache<ManagedClusterSet>,
    /// What lets namespaces choose from sets.
    pub bindings: Cache<ManagedClusterSetBinding>,
    /// All placements.
    pub placements: Cache<Placement>,
    /// All decisions.
    pub decisions: Cache<PlacementDecision>,
}

impl Hub {
    /// Begins to watch. Must be called within a tokio runtime.
    pub fn start(client: Client, clock: Clock) -> Self {
        Self {
            clusters: follow(&client),
            cluster_sets: follow(&client),
            bindings: follow(&client),
            placements: follow(&client),
            decisions: follow(&client),
            client,
            clock,
            metrics: ControllerMetrics::default(),
        }
    }

    /// Waits until everything that there was at the beginning has been seen.
    pub async fn ready(&self) {
        self.clusters.ready().await;
        self.cluster_sets.ready().await;
        self.bindings.ready().await;
        self.placements.ready().await;
        self.decisions.ready().await;
    }
}

impl Debug for Hub {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("Hub")
            .field("clusters", &self.clusters)
            .field("placements", &self.placements)
            .finish_non_exhaustive()
    }
}

/// Whom `managedFields` name for what controllers write.
const MANAGER: &str = "bellwether";

/// How controllers change objects.
pub(crate) fn written_by() -> PatchParams {
    PatchParams {
        field_manager: Some(MANAGER.to_owned()),
        ..PatchParams::default()
    }
}

/// How controllers create objects.
pub(crate) fn created_by() -> PostParams {
    PostParams {
        field_manager: Some(MANAGER.to_owned()),
        ..PostParams::default()
    }
}

/// A cache of all objects of a kind, with nobody listening yet.
pub(crate) fn follow<K>(client: &Client) -> Cache<K>
where
    K: Resource<DynamicType = ()> + Clone + DeserializeOwned + Debug + Send + Sync + 'static,
{
    Cache::start(Api::all(client.clone()), Selection::default(), |_| {})
}
