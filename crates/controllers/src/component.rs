//! Components: each change of the spec is stored as a revision, which ApplicationConfigurations use.
//!
//! Which revision is the latest one, and which go, is decided by `bellwether_application::configuration`. Entry point: [`run`].

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use bellwether_api::oam::names::{event, label};
use bellwether_api::oam::{ApplicationConfiguration, Component, GROUP};
use bellwether_application::configuration::component_revision::{
    REVISION_LIMIT, StoredRevision, data, plan, surplus,
};
use bellwether_runtime::{
    Cache, Controller, EventDraft, Next, ObjectKey, Reconcile, Recorder, created_by,
    delete_if_exists, unless_exists, write_status,
};
use futures::FutureExt as _;
use k8s_openapi::api::apps::v1::ControllerRevision;
use k8s_openapi::apimachinery::pkg::runtime::RawExtension;
use kube::api::{DeleteParams, ListParams, ObjectMeta};
use kube::{Api, Resource as _};
use serde_json::json;

use crate::hub::Hub;
use crate::registry::{EVENTS, Entry, Rule, Watched};

/// The controller of Components.
pub const ENTRY: Entry = Entry {
    name: "component",
    about: "stores revisions of Components",
    watches: &[
        Watched::kind::<Component>(),
        Watched::kind::<ApplicationConfiguration>(),
    ],
    rights: &[
        EVENTS,
        Rule {
            group: GROUP,
            resources: &["components/status"],
            verbs: &["patch"],
        },
        Rule {
            group: "apps",
            resources: &["controllerrevisions"],
            verbs: &["list", "create", "delete"],
        },
    ],
    run: |hub, _| run(hub).boxed(),
};

/// Keeps revisions of all Components, until it is dropped.
pub async fn run(hub: Hub) {
    let reconciler = Reconciler {
        components: hub.cache(),
        configurations: hub.cache(),
        events: hub.recorder(ENTRY.name),
        hub: hub.clone(),
    };
    Controller::new(ENTRY.name, &hub.clock, &hub.metrics)
        .on(&reconciler.components, |change| {
            change.new.is_some().then(|| change.key.clone())
        })
        .after(&reconciler.configurations)
        .run(Arc::new(reconciler))
        .await;
}

struct Reconciler {
    hub: Hub,
    components: Cache<Component>,
    configurations: Cache<ApplicationConfiguration>,
    events: Recorder,
}

impl Reconcile for Reconciler {
    type Key = ObjectKey;
    type Error = kube::Error;

    async fn reconcile(&self, key: &ObjectKey) -> Result<Next, kube::Error> {
        let Some(component) = self.components.get(key) else {
            return Ok(None);
        };
        let metadata = &component.metadata;
        let status = component.status.as_ref();
        let is_observed = status.is_some_and(|status| {
            status.observed_generation == metadata.generation && status.latest_revision.is_some()
        });
        if is_observed || metadata.deletion_timestamp.is_some() {
            return Ok(None);
        }
        let mut stored = self.stored(key, &component).await?;
        let plan = plan(&component, &stored);
        if plan.is_new {
            let (name, number) = (&plan.latest.name, plan.latest.revision);
            self.store(key, &component, name, number).await?;
            stored.push(StoredRevision {
                name: name.clone(),
                number,
                data: data(&component),
            });
            let text = format!("Stored revision {name}");
            self.events.record(
                &*component,
                EventDraft::normal(event::COMPONENT_REVISION, text),
            );
        }
        let api: Api<Component> = Api::namespaced(self.hub.client.clone(), &key.namespace);
        let latest = &plan.latest;
        let status = json!({"observedGeneration": metadata.generation, "latestRevision": latest});
        write_status(&api, &component, &status).await?;
        self.delete_surplus(key, &stored).await?;
        Ok(None)
    }
}

impl Reconciler {
    fn api(&self, key: &ObjectKey) -> Api<ControllerRevision> {
        Api::namespaced(self.hub.client.clone(), &key.namespace)
    }

    /// The revisions of this very Component; those of an earlier one of the same name do not count.
    async fn stored(
        &self,
        key: &ObjectKey,
        component: &Component,
    ) -> Result<Vec<StoredRevision>, kube::Error> {
        let selector = format!("{}={}", label::CONTROLLER_COMPONENT, key.name);
        let found = self
            .api(key)
            .list(&ListParams::default().labels(&selector))
            .await?;
        let is_own = |revision: &ControllerRevision| {
            let owners = revision.metadata.owner_references.iter().flatten();
            let mut owners = owners.map(|owner| Some(&owner.uid));
            owners.any(|uid| uid == component.metadata.uid.as_ref())
        };
        let revisions = found.items.into_iter().filter(is_own);
        let stored = revisions.map(|revision| StoredRevision {
            name: revision.metadata.name.unwrap_or_default(),
            number: revision.revision,
            data: revision.data.map(|data| data.0).unwrap_or_default(),
        });
        Ok(stored.collect())
    }

    async fn store(
        &self,
        key: &ObjectKey,
        component: &Component,
        name: &str,
        number: i64,
    ) -> Result<(), kube::Error> {
        let labels = [(label::CONTROLLER_COMPONENT.to_owned(), key.name.to_string())];
        let revision = ControllerRevision {
            metadata: ObjectMeta {
                name: Some(name.to_owned()),
                namespace: Some(key.namespace.to_string()),
                labels: Some(BTreeMap::from(labels)),
                owner_references: component.controller_owner_ref(&()).map(|owner| vec![owner]),
                ..ObjectMeta::default()
            },
            data: Some(RawExtension(data(component))),
            revision: number,
        };
        let api = self.api(key);
        let created = unless_exists(api.create(&created_by(), &revision).await)?;
        if created.is_none() {
            // It is that of a Component of the same name that was deleted, whose revisions are about to go.
            delete_if_exists(&api, name, &DeleteParams::default()).await?;
            api.create(&created_by(), &revision).await?;
        }
        Ok(())
    }

    async fn delete_surplus(
        &self,
        key: &ObjectKey,
        stored: &[StoredRevision],
    ) -> Result<(), kube::Error> {
        if stored.len() <= REVISION_LIMIT {
            return Ok(());
        }
        let configurations = self.configurations.in_namespace(&key.namespace);
        let in_use: BTreeSet<String> = configurations
            .iter()
            .flat_map(|configuration| {
                let named = configuration.spec.components.iter();
                let named = named.map(|component| component.revision_name.clone());
                let status = configuration.status.iter();
                let applied = status.flat_map(|status| &status.workloads);
                let applied = applied.map(|workload| workload.component_revision_name.clone());
                named.chain(applied).collect::<Vec<_>>()
            })
            .collect();
        for name in surplus(stored, &in_use, REVISION_LIMIT) {
            delete_if_exists(&self.api(key), name, &DeleteParams::default()).await?;
        }
        Ok(())
    }
}
