//! Which WorkManifestConfigs count: of several for one kind, those that do not say so.
//!
//! What is said is decided by `bellwether_work::work_api`. Entry point: [`run`].

use std::sync::Arc;

use bellwether_api::multicluster::{GROUP, WorkManifestConfig};
use bellwether_runtime::{Cache, Change, Controller, Next, ObjectKey, Reconcile, write_status};
use bellwether_work::work_api;
use futures::FutureExt as _;
use kube::Api;
use serde_json::json;

use crate::hub::Hub;
use crate::registry::{Entry, Rule, Watched};

/// The controller of configurations.
pub const ENTRY: Entry = Entry {
    name: "work-config",
    about: "reports which of several configurations for a kind is used",
    watches: &[Watched::kind::<WorkManifestConfig>()],
    rights: &[Rule {
        group: GROUP,
        resources: &["workmanifestconfigs/status"],
        verbs: &["patch"],
    }],
    run: |hub, _| run(hub).boxed(),
};

/// Keeps the status of all configurations up to date, until it is dropped.
pub async fn run(hub: Hub) {
    let configs: Cache<WorkManifestConfig> = hub.cache();
    let (all, reconciler) = (configs.clone(), Configs::new(&hub));
    Controller::new(ENTRY.name, &hub.clock, &hub.metrics)
        .on(&configs, move |change| of_the_same_kind(&all, change))
        .run(Arc::new(reconciler))
        .await;
}

/// The configurations for the kind of one that changed: it may be what decides about them.
fn of_the_same_kind(
    all: &Cache<WorkManifestConfig>,
    change: &Change<'_, WorkManifestConfig>,
) -> Vec<ObjectKey> {
    let changed = [change.old, change.new].into_iter().flatten();
    let kinds: Vec<_> = changed.map(|config| &config.spec.manifest_gvk).collect();
    let all = all.list();
    let concerned = all
        .iter()
        .filter(|it| kinds.contains(&&it.spec.manifest_gvk));
    concerned.map(|config| ObjectKey::of(&**config)).collect()
}

struct Configs {
    hub: Hub,
    configs: Cache<WorkManifestConfig>,
}

impl Configs {
    fn new(hub: &Hub) -> Self {
        Self {
            hub: hub.clone(),
            configs: hub.cache(),
        }
    }
}

impl Reconcile for Configs {
    type Key = ObjectKey;
    type Error = kube::Error;

    async fn reconcile(&self, key: &ObjectKey) -> Result<Next, kube::Error> {
        let Some(config) = self.configs.get(key) else {
            return Ok(None);
        };
        let all = self.configs.list();
        let all = all.iter().map(AsRef::as_ref);
        let conditions = work_api::standing(&config, all, self.hub.clock.now());
        let known = config.status.as_ref().map(|status| &status.conditions);
        if known == Some(&conditions) {
            return Ok(None);
        }
        let api: Api<WorkManifestConfig> = Api::all(self.hub.client.clone());
        write_status(&api, &config, &json!({ "conditions": conditions })).await?;
        Ok(None)
    }
}
