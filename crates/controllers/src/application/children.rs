//! Objects of applications on the hub: which resource they are of, what they are now, and who is told when they change.

use std::collections::HashMap;

use bellwether_api::oam::Application;
use bellwether_api::oam::names::{component_type, label};
use bellwether_application::referred::{group_and_kind, references};
use bellwether_application::world::ClusterVersion;
use bellwether_runtime::{Cache, ObjectKey, Queue, Selection};
use kube::api::{DynamicObject, ListParams};
use kube::core::GroupVersionKind;
use kube::discovery::{ApiResource, Scope, pinned_kind};
use kube::{Api, Client};
use parking_lot::Mutex;
use serde_json::Value;

use super::{owner_of, to_json};

/// A kind of the hub: its resource, and whether objects live in namespaces.
#[derive(Clone)]
pub(super) struct ServedKind {
    pub(super) resource: ApiResource,
    pub(super) is_namespaced: bool,
}

/// Objects on the hub.
pub(super) struct Children {
    client: Client,
    queue: Queue<ObjectKey>,
    kinds: Mutex<HashMap<GroupVersionKind, ServedKind>>,
    caches: Mutex<HashMap<GroupVersionKind, Cache<DynamicObject>>>,
    version: Mutex<Option<ClusterVersion>>,
}

fn kind_of(object: &Value) -> GroupVersionKind {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let api_version = text(&object["apiVersion"]);
    let (group, version) = api_version.split_once('/').unwrap_or(("", &api_version));
    GroupVersionKind::gvk(group, version, &text(&object["kind"]))
}

impl Children {
    pub(super) fn new(client: &Client, queue: Queue<ObjectKey>) -> Self {
        Self {
            client: client.clone(),
            queue,
            kinds: Mutex::default(),
            caches: Mutex::default(),
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

    /// The kind of an object; an error if the hub does not serve it.
    pub(super) async fn kind(&self, object: &Value) -> Result<ServedKind, kube::Error> {
        let kind = kind_of(object);
        if let Some(known) = self.kinds.lock().get(&kind) {
            return Ok(known.clone());
        }
        let (resource, capabilities) = pinned_kind(&self.client, &kind).await?;
        let served = ServedKind {
            resource,
            is_namespaced: capabilities.scope == Scope::Namespaced,
        };
        self.kinds.lock().insert(kind, served.clone());
        Ok(served)
    }

    /// Where the objects are that live beside this one.
    pub(super) fn api(&self, served: &ServedKind, object: &Value) -> Api<DynamicObject> {
        match object["metadata"]["namespace"].as_str() {
            Some(namespace) if served.is_namespaced => {
                Api::namespaced_with(self.client.clone(), namespace, &served.resource)
            }
            _ => Api::all_with(self.client.clone(), &served.resource),
        }
    }

    /// Begins to watch objects of a kind, once.
    pub(super) fn watch(&self, served: &ServedKind) {
        let kind = GroupVersionKind::gvk(
            &served.resource.group,
            &served.resource.version,
            &served.resource.kind,
        );
        self.caches.lock().entry(kind).or_insert_with(|| {
            let queue = self.queue.clone();
            let api = Api::all_with(self.client.clone(), &served.resource);
            Cache::start(api, Selection::labels(label::APP_NAME), move |change| {
                for object in [change.old, change.new].into_iter().flatten() {
                    if let Some(key) = owner_of(object.metadata.labels.as_ref()) {
                        queue.add(key);
                    }
                }
            })
        });
    }

    /// An object as it is now.
    pub(super) async fn get(&self, object: &Value) -> Result<Option<Value>, kube::Error> {
        let served = self.kind(object).await?;
        let name = object["metadata"]["name"].as_str().unwrap_or_default();
        let live = self.api(&served, object).get_opt(name).await?;
        Ok(live.map(|mut live| {
            live.metadata.managed_fields = None;
            to_json(&live)
        }))
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
        formatter
            .debug_struct("Children")
            .field("kinds", &self.kinds.lock().len())
            .finish_non_exhaustive()
    }
}
