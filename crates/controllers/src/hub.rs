//! What the controllers of a hub share: the client, the clock, and one watch of each kind.

use std::any::{Any, TypeId};
use std::collections::HashMap;
use std::fmt::Debug;
use std::sync::Arc;

use bellwether_runtime::{Cache, Clock, ControllerMetrics, Recorder, Selection};
use futures::FutureExt as _;
use futures::future::{BoxFuture, join_all};
use kube::{Api, Client, Resource};
use parking_lot::Mutex;
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
    caches: Arc<Mutex<HashMap<TypeId, Shared>>>,
}

/// A cache that controllers share.
struct Shared {
    /// A `Cache<K>` for the type of the key.
    cache: Box<dyn Any + Send + Sync>,
    ready: Box<dyn Fn() -> BoxFuture<'static, ()> + Send + Sync>,
}

impl Hub {
    /// Creates a hub. Nothing is watched before a controller asks for it.
    pub fn new(client: Client, clock: Clock) -> Self {
        Self {
            client,
            clock,
            metrics: ControllerMetrics::default(),
            caches: Arc::default(),
        }
    }

    /// Returns the cache of all objects of a kind. The first call starts its watch; later ones share it.
    /// Must be called within a tokio runtime.
    pub fn cache<K>(&self) -> Cache<K>
    where
        K: Resource<DynamicType = ()> + Clone + DeserializeOwned + Debug + Send + Sync + 'static,
    {
        let mut caches = self.caches.lock();
        let known = caches.get(&TypeId::of::<K>());
        if let Some(cache) = known.and_then(|known| known.cache.downcast_ref::<Cache<K>>()) {
            return cache.clone();
        }
        let api: Api<K> = Api::all(self.client.clone());
        let cache = Cache::start(api, Selection::default(), |_| {});
        let waiting = cache.clone();
        let shared = Shared {
            cache: Box::new(cache.clone()),
            ready: Box::new(move || {
                let cache = waiting.clone();
                async move { cache.ready().await }.boxed()
            }),
        };
        caches.insert(TypeId::of::<K>(), shared);
        cache
    }

    /// Waits until the shared caches that were asked for so far have seen everything that there was when
    /// they were started.
    pub async fn ready(&self) {
        let ready: Vec<_> = {
            let caches = self.caches.lock();
            caches.values().map(|shared| (shared.ready)()).collect()
        };
        join_all(ready).await;
    }

    /// Returns a recorder of events for a component.
    pub fn recorder(&self, component: &'static str) -> Recorder {
        Recorder::new(&self.client, &self.clock, component)
    }
}

impl Debug for Hub {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("Hub")
            .field("caches", &self.caches.lock().len())
            .finish_non_exhaustive()
    }
}
