//! Reads what both revisions were rendered to, and what is there.

use std::sync::Arc;

use bellwether_api::delivery::Rollout;
use bellwether_application::blue_green::{
    self, Observed, Plan, Seen, WorkflowState, stable_revision,
};
use bellwether_application::resources::{self, RenderedObject};
use bellwether_apply::{LiveState, ObjectId, ResourceType};
use bellwether_runtime::ObjectKey;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::Api;
use serde_json::Value;

use super::{Error, Reconciler};

/// What both revisions were rendered to.
pub(super) enum Rendered {
    Found {
        blue: Vec<RenderedObject>,
        green: Vec<RenderedObject>,
    },
    /// It is not there, and why.
    Missing(String),
}

impl Reconciler {
    /// Reads what both revisions were rendered to.
    pub(super) async fn rendered(
        &self,
        key: &ObjectKey,
        rollout: &Rollout,
    ) -> Result<Rendered, Error> {
        let green = match self
            .of_revision(key, rollout, &rollout.spec.app_revision)
            .await?
        {
            Ok(green) => green,
            Err(message) => return Ok(Rendered::Missing(message)),
        };
        let stable = stable_revision(rollout);
        if stable.is_empty() {
            return Ok(Rendered::Found {
                blue: Vec::new(),
                green,
            });
        }
        let blue = match self.of_revision(key, rollout, stable).await? {
            Ok(blue) => blue,
            Err(message) => return Ok(Rendered::Missing(message)),
        };
        Ok(Rendered::Found { blue, green })
    }

    async fn of_revision(
        &self,
        key: &ObjectKey,
        rollout: &Rollout,
        revision: &str,
    ) -> Result<Result<Vec<RenderedObject>, String>, Error> {
        let api: Api<ConfigMap> = Api::namespaced(self.hub.client.clone(), &key.namespace);
        let found = if revision.is_empty() {
            None
        } else {
            api.get_opt(revision).await?
        };
        let Some(found) = found else {
            return Ok(Err(format!(
                "waits for ConfigMap {revision}, which has what the revision was rendered to"
            )));
        };
        let data = found.data.unwrap_or_default();
        let is_stable = revision != rollout.spec.app_revision;
        let objects = resources::read(&data).and_then(|objects| {
            // The revision in use may have other components.
            if is_stable {
                let names = &rollout.spec.components;
                let is_meant =
                    |it: &RenderedObject| names.is_empty() || names.contains(&it.component);
                return Ok(objects.into_iter().filter(is_meant).collect());
            }
            resources::of_components(objects, &rollout.spec.components)
        });
        Ok(objects.map_err(|problem| format!("ConfigMap {revision}: {problem}")))
    }

    /// Decides with everything that the decision asks for.
    pub(super) async fn decide(
        &self,
        key: &ObjectKey,
        rollout: &Rollout,
        workflow: WorkflowState,
        (blue, green): (&[RenderedObject], &[RenderedObject]),
    ) -> Result<Plan, Error> {
        let now = self.hub.clock.now();
        let mut seen = Seen::default();
        loop {
            let plan = blue_green::decide(
                &Observed {
                    rollout,
                    workflow,
                    blue,
                    green,
                    seen: &seen,
                },
                now,
            );
            let missing = seen.take_missing();
            if missing.is_empty() {
                return Ok(plan);
            }
            for object in missing {
                let live = self
                    .locate(key, &object)
                    .await?
                    .and_then(|located| located.live);
                seen.insert(&object, live);
            }
        }
    }

    /// Finds where an object belongs, and what is there; `None` if its kind is not served.
    pub(super) async fn locate(
        &self,
        key: &ObjectKey,
        object: &Value,
    ) -> Result<Option<Located>, Error> {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let api_version = text(&object["apiVersion"]);
        let (group, version) = api_version.split_once('/').unwrap_or(("", &api_version));
        let (discovery, objects) = (&self.delivery.discovery, &self.delivery.objects);
        let resource = discovery
            .find(objects, group, version, &text(&object["kind"]))
            .await?;
        let Some(resource) = resource else {
            return Ok(None);
        };
        let namespace = match object["metadata"]["namespace"].as_str() {
            _ if !resource.namespaced => String::new(),
            Some(namespace) => namespace.to_owned(),
            None => key.namespace.to_string(),
        };
        let id = ObjectId {
            group: resource.group.clone(),
            resource: resource.plural.clone(),
            namespace,
            name: text(&object["metadata"]["name"]),
        };
        let live = match self.delivery.watches.known(&id) {
            LiveState::Absent => None,
            LiveState::Present(live) if live["apiVersion"] == *api_version => {
                Some(Arc::unwrap_or_clone(live))
            }
            _ => objects.get(&resource, &id).await?,
        };
        Ok(Some(Located { resource, id, live }))
    }
}

/// Where an object belongs, and what is there.
pub(super) struct Located {
    pub(super) resource: Arc<ResourceType>,
    pub(super) id: ObjectId,
    pub(super) live: Option<Value>,
}
