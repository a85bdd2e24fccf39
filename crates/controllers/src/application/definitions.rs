//! The definitions of the hub, compiled once for each change of one.

use std::fmt::Debug;
use std::sync::Arc;

use bellwether_api::Kind;
use bellwether_api::oam::{
    Application, ComponentDefinition, DefinitionRevision, PolicyDefinition, TraitDefinition,
    WorkflowStepDefinition,
};
use bellwether_application::catalog::Catalog;
use bellwether_application::definition::DefinitionKind;
use bellwether_runtime::{Cache, ObjectKey, Queue};
use futures::future::BoxFuture;
use futures::{FutureExt as _, future};
use kube::Resource;
use parking_lot::RwLock;
use serde::Serialize;

use crate::hub::Hub;

/// The definitions of the hub.
pub(super) struct Definitions {
    catalog: Arc<RwLock<Catalog>>,
    /// The watches, each with what tells that it has seen everything.
    watches: Vec<Ready>,
}

/// Tells when a watch has seen everything that there was at the beginning.
type Ready = Box<dyn Fn() -> BoxFuture<'static, ()> + Send + Sync>;

impl Definitions {
    /// Begins to listen. A definition that changes concerns all applications: it may be what one waits for.
    pub(super) fn start(hub: &Hub, queue: &Queue<ObjectKey>) -> Self {
        let catalog: Arc<RwLock<Catalog>> = Arc::default();
        let watches = vec![
            watch::<ComponentDefinition>(hub, &catalog, queue),
            watch::<TraitDefinition>(hub, &catalog, queue),
            watch::<PolicyDefinition>(hub, &catalog, queue),
            watch::<WorkflowStepDefinition>(hub, &catalog, queue),
            watch::<DefinitionRevision>(hub, &catalog, queue),
        ];
        Self { catalog, watches }
    }

    /// The definitions as they are now.
    pub(super) fn catalog(&self) -> Catalog {
        self.catalog.read().clone()
    }

    /// Waits until everything that there was at the beginning has been seen.
    pub(super) async fn ready(&self) {
        future::join_all(self.watches.iter().map(|ready| ready())).await;
    }
}

fn watch<K>(hub: &Hub, catalog: &Arc<RwLock<Catalog>>, queue: &Queue<ObjectKey>) -> Ready
where
    K: Kind + Resource<DynamicType = ()> + Clone + Serialize + Debug + Send + Sync + 'static,
{
    let (catalog, queue) = (Arc::clone(catalog), queue.clone());
    let applications: Cache<Application> = hub.cache();
    let cache: Cache<K> = hub.cache();
    cache.subscribe(move |change| {
        match (change.new, DefinitionKind::from_object_kind(K::NAMES.kind)) {
            (Some(new), _) => {
                let object = serde_json::to_value(new).unwrap_or_default();
                catalog.write().insert(object);
            }
            (None, Some(kind)) => {
                catalog
                    .write()
                    .remove(kind, &change.key.namespace, &change.key.name);
            }
            (None, None) => {}
        }
        for application in applications.list() {
            queue.add(ObjectKey::of(&*application));
        }
    });
    Box::new(move || {
        let cache = cache.clone();
        async move { cache.ready().await }.boxed()
    })
}
