//! Which WorkManifestConfigs count: of several for one kind, those that do not say so.
//!
//! What is said is decided by `bellwether_work::work_api`. Entry point: [`run`].

use std::sync::Arc;

use bellwether_api::multicluster::WorkManifestConfig;
use bellwether_runtime::{Cache, Change, Controller, Next, ObjectKey, Reconcile};
use bellwether_work::work_api;
use kube::Api;
use kube::api::Patch;
use serde_json::json;

use crate::hub::{Hub, follow, written_by};

/// Keeps the status of all configurations true, forever.
pub async fn run(hub: Hub) {
    let configs: Cache<WorkManifestConfig> = follow(&hub.client);
    let all = configs.clone();
    Controller::new("work-config", &hub.clock, &hub.metrics)
        .on(&configs, move |change| of_the_same_kind(&all, change))
        .run(Arc::new(Configs {
            hub,
            configs: configs.clone(),
        }))
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
        let patch = json!({
            "metadata": {
                "uid": config.metadata.uid,
                "resourceVersion": config.metadata.resource_version,
            },
            "status": {"conditions": conditions},
        });
        match api
            .patch_status(&key.name, &written_by(), &Patch::Merge(patch))
            .await
        {
            Err(kube::Error::Api(status)) if status.code == 404 => Ok(None),
            other => other.map(|_| None),
        }
    }
}
