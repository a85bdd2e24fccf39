//! ApplicationConfigurations: the workloads of their Components and the traits of these, applied once or always.
//!
//! What an ApplicationConfiguration becomes, and which of its objects are applied again, is decided by
//! `bellwether_application::configuration`; objects are delivered by [`Delivery`]. Its status is the record of what it applied. Entry
//! point: [`run`].
//!
//! | module | does |
//! |---|---|
//! | `observe` | reads Components, definitions of traits, and the objects as they are |
//! | `deliver` | applies objects, and deletes those that are left over |
//! | `report` | writes the status, and records events |

mod deliver;
mod observe;
mod report;

use std::collections::HashMap;
use std::sync::Arc;

use bellwether_api::oam::names::finalizer;
use bellwether_api::oam::{ApplicationConfiguration, Component, GROUP, TraitDefinition};
use bellwether_application::configuration::apply_once::ApplyOnce;
use bellwether_application::configuration::component_revision::component_of;
use bellwether_apply::ObjectId;
use bellwether_apply::pass::Memory;
use bellwether_runtime::{
    Cache, Change, Controller, Delivery, FIELD_MANAGER, Next, ObjectKey, Objects, Reconcile,
    Recorder, SharedKinds, patch_seen,
};
use futures::FutureExt as _;
use kube::Api;
use parking_lot::Mutex;
use serde_json::json;

use crate::hub::Hub;
use crate::registry::{EVENTS, Entry, Rule, Watched};
use crate::reported::Error;
use report::Report;

/// How many ApplicationConfigurations are reconciled at once.
const WORKERS: usize = 4;

/// The controller of ApplicationConfigurations.
pub const ENTRY: Entry = Entry {
    name: "application-configuration",
    about: "applies the components and traits of ApplicationConfigurations",
    watches: &[
        Watched::kind::<ApplicationConfiguration>(),
        Watched::kind::<Component>(),
        Watched::kind::<TraitDefinition>(),
    ],
    // Workloads and traits may be of any kind: what they are made of has to be granted besides.
    rights: &[
        EVENTS,
        Rule {
            group: GROUP,
            resources: &[
                "applicationconfigurations",
                "applicationconfigurations/status",
            ],
            verbs: &["patch"],
        },
        Rule {
            group: "apps",
            resources: &["controllerrevisions"],
            verbs: &["get"],
        },
    ],
    run: |hub, options| run(hub, options.apply_once).boxed(),
};

/// Keeps all ApplicationConfigurations applied, until it is dropped.
pub async fn run(hub: Hub, mode: ApplyOnce) {
    let controller = Controller::new(ENTRY.name, &hub.clock, &hub.metrics);
    let objects = Objects::new((&hub.client).into(), FIELD_MANAGER);
    let kinds: Arc<SharedKinds> = Arc::default();
    let gauge = prometheus_client::metrics::gauge::Gauge::default();
    let delivery = Delivery::new(objects, kinds, controller.queue(), gauge, hub.clock.clone());
    let reconciler = Reconciler {
        mode,
        configurations: hub.cache(),
        components: hub.cache(),
        definitions: hub.cache(),
        delivery,
        kept: Mutex::default(),
        events: hub.recorder(ENTRY.name),
        hub,
    };
    let (of_components, of_definitions) = (
        reconciler.configurations.clone(),
        reconciler.configurations.clone(),
    );
    controller
        .on(&reconciler.configurations, |change| {
            (!is_own_write(change)).then(|| change.key.clone())
        })
        .on(&reconciler.components, move |change| {
            users(&of_components, change.key)
        })
        .on(&reconciler.definitions, move |_| of_definitions.keys())
        .workers(WORKERS)
        .run(Arc::new(reconciler))
        .await;
}

/// True if only the status has changed, which is what this controller writes itself.
fn is_own_write(change: &Change<'_, ApplicationConfiguration>) -> bool {
    let (Some(old), Some(new)) = (change.old, change.new) else {
        return false;
    };
    let (old, new) = (&old.metadata, &new.metadata);
    old.uid == new.uid
        && old.generation.is_some()
        && old.generation == new.generation
        && old.labels == new.labels
        && old.annotations == new.annotations
        && old.finalizers == new.finalizers
        && old.deletion_timestamp == new.deletion_timestamp
}

/// The ApplicationConfigurations that use a Component, or a revision of it.
fn users(
    configurations: &Cache<ApplicationConfiguration>,
    component: &ObjectKey,
) -> Vec<ObjectKey> {
    let all = configurations.in_namespace(&component.namespace);
    let users = all.iter().filter(|configuration| {
        configuration.spec.components.iter().any(|it| {
            it.component_name == *component.name
                || component_of(&it.revision_name) == Some(&*component.name)
        })
    });
    users.map(|it| ObjectKey::of(&**it)).collect()
}

/// What is kept of an ApplicationConfiguration between reconciles.
#[derive(Default)]
struct ReconcileState {
    /// It as it was last written: the cache may be behind.
    written: Option<Arc<ApplicationConfiguration>>,
    /// What is remembered of its objects, which are tracked.
    memories: HashMap<ObjectId, Memory>,
}

struct Reconciler {
    hub: Hub,
    mode: ApplyOnce,
    configurations: Cache<ApplicationConfiguration>,
    components: Cache<Component>,
    definitions: Cache<TraitDefinition>,
    delivery: Delivery<ObjectKey>,
    kept: Mutex<HashMap<ObjectKey, ReconcileState>>,
    events: Recorder,
}

impl Reconcile for Reconciler {
    type Key = ObjectKey;
    type Error = Error;

    async fn reconcile(&self, key: &ObjectKey) -> Result<Next, Error> {
        let Some(configuration) = self.latest(key) else {
            self.forget(key);
            return Ok(None);
        };
        if configuration.metadata.deletion_timestamp.is_some() {
            return self.remove(key, &configuration).await;
        }
        let report = Report::new(configuration, self.hub.clock.now());
        self.apply(key, report).await
    }
}

impl Reconciler {
    fn api(&self, key: &ObjectKey) -> Api<ApplicationConfiguration> {
        Api::namespaced(self.hub.client.clone(), &key.namespace)
    }

    /// Returns an ApplicationConfiguration in its latest state that is known.
    fn latest(&self, key: &ObjectKey) -> Option<Arc<ApplicationConfiguration>> {
        let cached = self.configurations.get(key)?;
        let mut kept = self.kept.lock();
        let kept = kept.entry(key.clone()).or_default();
        let is_later = kept.written.as_ref().is_some_and(|written| {
            let (written, cached) = (&written.metadata, &cached.metadata);
            let version = |text: &Option<String>| text.as_deref().and_then(|it| it.parse().ok());
            let version = |text| -> u64 { version(text).unwrap_or_default() };
            written.uid == cached.uid
                && version(&written.resource_version) > version(&cached.resource_version)
        });
        if !is_later {
            kept.written = None;
        }
        Some(kept.written.clone().unwrap_or(cached))
    }

    /// Keeps a state that was written.
    fn note_written(&self, key: &ObjectKey, written: &Arc<ApplicationConfiguration>) {
        let mut kept = self.kept.lock();
        kept.entry(key.clone()).or_default().written = Some(Arc::clone(written));
    }

    /// Ends the watches of objects of an ApplicationConfiguration that is gone: the server deletes what it owned.
    fn forget(&self, key: &ObjectKey) {
        let Some(kept) = self.kept.lock().remove(key) else {
            return;
        };
        for id in kept.memories.keys() {
            self.delivery.watches.untrack(id, key);
        }
    }

    /// Deletes what the server does not delete along with an ApplicationConfiguration, and lets it go then.
    async fn remove(
        &self,
        key: &ObjectKey,
        configuration: &Arc<ApplicationConfiguration>,
    ) -> Result<Next, Error> {
        let finalizers = configuration
            .metadata
            .finalizers
            .clone()
            .unwrap_or_default();
        if !finalizers.iter().any(|it| it == finalizer::FOREIGN_OBJECTS) {
            self.forget(key);
            return Ok(None);
        }
        let mut report = Report::new(Arc::clone(configuration), self.hub.clock.now());
        if !self.remove_all(key, &mut report).await? {
            // The watches of what is being deleted report when it is gone.
            self.publish(key, report).await?;
            return Ok(None);
        }
        let others: Vec<String> = finalizers
            .into_iter()
            .filter(|it| it != finalizer::FOREIGN_OBJECTS)
            .collect();
        let patch = json!({"metadata": {"finalizers": others}});
        patch_seen(&self.api(key), &*report.configuration, patch).await?;
        self.forget(key);
        Ok(None)
    }

    /// Sees to it that objects which cannot have an owner are deleted along with the ApplicationConfiguration.
    async fn add_finalizer(&self, key: &ObjectKey, report: &mut Report) -> Result<(), Error> {
        let known = report.configuration.metadata.finalizers.clone();
        let mut finalizers = known.unwrap_or_default();
        if finalizers.iter().any(|it| it == finalizer::FOREIGN_OBJECTS) {
            return Ok(());
        }
        finalizers.push(finalizer::FOREIGN_OBJECTS.to_owned());
        let patch = json!({"metadata": {"finalizers": finalizers}});
        let written = patch_seen(&self.api(key), &*report.configuration, patch).await?;
        if let Some(written) = written {
            self.take_written(key, report, written);
        }
        Ok(())
    }

    /// Goes on with a state that was written.
    fn take_written(
        &self,
        key: &ObjectKey,
        report: &mut Report,
        written: ApplicationConfiguration,
    ) {
        let written = Arc::new(written);
        self.note_written(key, &written);
        report.configuration = written;
    }
}
