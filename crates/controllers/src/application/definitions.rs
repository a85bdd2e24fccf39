//! The definitions of the hub, compiled once for each change of one.

use std::collections::HashMap;
use std::fmt::Debug;
use std::sync::Arc;

use bellwether_api::oam::{
    Application, ApplicationRevision, ComponentDefinition, DefinitionRevision, PolicyDefinition,
    TraitDefinition, WorkflowStepDefinition,
};
use bellwether_api::{Kind, SharedObject};
use bellwether_application::catalog::Catalog;
use bellwether_application::definition::{Definition, DefinitionKind};
use bellwether_application::revision::recorded;
use bellwether_runtime::{Cache, ObjectKey, Queue, Subscription};
use futures::future::BoxFuture;
use futures::{FutureExt as _, future};
use kube::Resource;
use parking_lot::{Mutex, RwLock};
use serde::Serialize;

use super::revision::follows_definitions;
use crate::hub::Hub;

/// How many definitions of old revisions are kept compiled.
const CAPACITY: usize = 512;

/// The definitions of the hub.
pub(super) struct Definitions {
    catalog: Arc<RwLock<Catalog>>,
    /// The watches, each with what tells that it has seen everything.
    watches: Vec<(Ready, Subscription)>,
    /// Definitions that revisions recorded, and that are different on the hub now.
    past: Mutex<HashMap<(DefinitionKind, String), Vec<Past>>>,
}

/// A definition that is no longer on the hub.
type Past = (SharedObject, Arc<Definition>);

/// Tells when a watch has seen everything that there was at the beginning.
type Ready = Box<dyn Fn() -> BoxFuture<'static, ()> + Send + Sync>;

impl Definitions {
    /// Begins to listen. A definition that changes concerns applications that follow definitions, and those that cannot be
    /// rendered: it may be what one waits for.
    pub(super) fn start(hub: &Hub, queue: &Queue<ObjectKey>) -> Self {
        let catalog: Arc<RwLock<Catalog>> = Arc::default();
        let watches = vec![
            watch::<ComponentDefinition>(hub, &catalog, queue),
            watch::<TraitDefinition>(hub, &catalog, queue),
            watch::<PolicyDefinition>(hub, &catalog, queue),
            watch::<WorkflowStepDefinition>(hub, &catalog, queue),
            watch::<DefinitionRevision>(hub, &catalog, queue),
        ];
        Self {
            catalog,
            watches,
            past: Mutex::default(),
        }
    }

    /// The definitions as they are now.
    pub(super) fn catalog(&self) -> Catalog {
        self.catalog.read().clone()
    }

    /// The definitions as they were for a revision.
    pub(super) fn catalog_of(&self, revision: &ApplicationRevision) -> Catalog {
        let catalog = self.catalog();
        let namespace = revision.metadata.namespace.as_deref().unwrap_or_default();
        let pinned = recorded(&revision.spec).map(|(kind, name, object)| {
            let now = catalog.find(kind, namespace, name, false);
            let same = now.filter(|now| now.object["spec"] == object["spec"]);
            let definition = same.unwrap_or_else(|| self.past(kind, name, object));
            ((kind, name.clone()), definition)
        });
        catalog.pinned_to(pinned.collect())
    }

    /// A definition that is no longer on the hub, compiled once.
    fn past(&self, kind: DefinitionKind, name: &str, object: &SharedObject) -> Arc<Definition> {
        let mut past = self.past.lock();
        if past.values().map(Vec::len).sum::<usize>() >= CAPACITY {
            past.clear();
        }
        let known = past.entry((kind, name.to_owned())).or_default();
        if let Some((_, definition)) = known.iter().find(|(it, _)| it.is_shared_with(object)) {
            return Arc::clone(definition);
        }
        let definition = Definition::new(kind, name, (**object).clone());
        known.push((object.clone(), Arc::clone(&definition)));
        definition
    }

    /// Waits until everything that there was at the beginning has been seen.
    pub(super) async fn ready(&self) {
        future::join_all(self.watches.iter().map(|(ready, _)| ready())).await;
    }
}

fn watch<K>(
    hub: &Hub,
    catalog: &Arc<RwLock<Catalog>>,
    queue: &Queue<ObjectKey>,
) -> (Ready, Subscription)
where
    K: Kind + Resource<DynamicType = ()> + Clone + Serialize + Debug + Send + Sync + 'static,
{
    let (catalog, queue) = (Arc::clone(catalog), queue.clone());
    let applications: Cache<Application> = hub.cache();
    let cache: Cache<K> = hub.cache();
    let subscription = cache.subscribe_until_dropped(move |change| {
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
            (None, None) => {
                catalog
                    .write()
                    .remove_revision(&change.key.namespace, &change.key.name);
            }
        }
        for application in applications.list() {
            if follows_definitions(&application) {
                queue.add(ObjectKey::of(&*application));
            }
        }
    });
    let ready: Ready = Box::new(move || {
        let cache = cache.clone();
        async move { cache.ready().await }.boxed()
    });
    (ready, subscription)
}
