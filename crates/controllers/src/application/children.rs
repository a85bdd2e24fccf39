//! What rendering has to know of the hub: its version, and the objects that components copy.

use bellwether_api::oam::Application;
use bellwether_api::oam::names::component_type;
use bellwether_application::referred::{group_and_kind, references};
use bellwether_application::world::ClusterVersion;
use kube::api::{DynamicObject, ListParams};
use kube::core::GroupVersionKind;
use kube::discovery::ApiResource;
use kube::{Api, Client};
use parking_lot::Mutex;
use serde_json::Value;

use super::to_json;

/// What rendering has to know of the hub.
pub(super) struct Children {
    client: Client,
    version: Mutex<Option<ClusterVersion>>,
}

impl Children {
    pub(super) fn new(client: &Client) -> Self {
        Self {
            client: client.clone(),
            version: Mutex::default(),
        }
    }

    /// The version of the hub.
    pub(super) async fn version(&self) -> Result<ClusterVersion, kube::Error> {
        if let Some(known) = self.version.lock().clone() {
            return Ok(known);
        }
        let info = self.client.apiserver_version().await?;
        let version = ClusterVersion {
            major: info.major,
            minor: info.minor,
            git_version: info.git_version,
            platform: info.platform,
        };
        *self.version.lock() = Some(version.clone());
        Ok(version)
    }

    /// Objects that components of an application copy.
    pub(super) async fn referred(
        &self,
        application: &Application,
    ) -> Result<Vec<Value>, kube::Error> {
        let mut objects = Vec::new();
        let own = application
            .metadata
            .namespace
            .as_deref()
            .unwrap_or_default();
        let copies = application
            .spec
            .components
            .iter()
            .filter(|component| component.component_type == component_type::REF_OBJECTS);
        for component in copies {
            // What is wrong with references is said when they are rendered.
            let Ok(references) = references(&component.name, component.properties.as_ref()) else {
                continue;
            };
            for reference in &references.objects {
                let Ok((group, kind)) = group_and_kind(reference) else {
                    continue;
                };
                let version = bellwether_kinds::resources()
                    .iter()
                    .find(|known| known.group == group && known.kind == kind)
                    .map_or("v1", |known| known.version);
                let gvk = GroupVersionKind::gvk(group, version, kind);
                let resource = ApiResource::from_gvk(&gvk);
                let namespace = if reference.namespace.is_empty() {
                    own
                } else {
                    &reference.namespace
                };
                let api: Api<DynamicObject> =
                    Api::namespaced_with(self.client.clone(), namespace, &resource);
                for mut found in api.list(&ListParams::default()).await?.items {
                    found.metadata.managed_fields = None;
                    let mut object = to_json(&found);
                    object["apiVersion"] = resource.api_version.as_str().into();
                    object["kind"] = kind.into();
                    objects.push(object);
                }
            }
        }
        Ok(objects)
    }
}

impl std::fmt::Debug for Children {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Children").finish_non_exhaustive()
    }
}
