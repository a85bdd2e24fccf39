//! Reads the objects that components of applications copy, and what the hub calls their kinds.

use std::collections::BTreeMap;
use std::fmt;

use bellwether_api::oam::Application;
use bellwether_api::oam::names::component_type;
use bellwether_application::referred::{self, Place, Reference, references};
use bellwether_application::world::{ServedKind, World};
use kube::api::{DynamicObject, ListParams};
use kube::core::GroupVersionKind;
use kube::discovery::ApiResource;
use kube::{Api, Client};
use parking_lot::Mutex;
use serde_json::Value;

use super::to_json;

/// Why an object that a component copies could not be read.
#[derive(Debug, thiserror::Error)]
#[error("component {component}: {what}: {source}")]
pub struct CopyError {
    component: String,
    what: String,
    /// What the hub answered.
    pub source: kube::Error,
}

/// Reads the objects that components copy.
pub struct Copies {
    client: Client,
    /// Kinds that are not built in, by group and by the name that a reference gives them.
    kinds: Mutex<BTreeMap<(String, String), ServedKind>>,
}

impl fmt::Debug for Copies {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Copies").finish_non_exhaustive()
    }
}

/// The references of an application, with the components that have them. What is wrong with references is said when they are
/// rendered.
fn all(application: &Application) -> Vec<(&str, Reference)> {
    let components = application.spec.components.iter();
    let copies = components.filter(|it| it.component_type == component_type::REF_OBJECTS);
    copies
        .flat_map(|component| {
            let found = references(&component.name, component.properties.as_ref());
            let found = found.map(|found| found.objects).unwrap_or_default();
            found.into_iter().map(|it| (component.name.as_str(), it))
        })
        .collect()
}

impl Copies {
    /// Reads from this hub.
    pub fn new(client: &Client) -> Self {
        Self {
            client: client.clone(),
            kinds: Mutex::default(),
        }
    }

    /// Adds what components of an application copy to what is known of the hub.
    pub async fn add(
        &self,
        application: &Application,
        own: &str,
        world: &mut World,
    ) -> Result<(), CopyError> {
        for (component, reference) in all(application) {
            let Some(kind) = self.kind(component, &reference).await? else {
                continue;
            };
            let objects = self.objects(component, &reference, &kind, own).await?;
            world.objects.extend(objects);
            world.kinds.push(kind);
        }
        Ok(())
    }

    /// Adds the kinds of what components of an application copy: the objects are known.
    pub async fn add_kinds(
        &self,
        application: &Application,
        world: &mut World,
    ) -> Result<(), CopyError> {
        for (component, reference) in all(application) {
            let kind = self.kind(component, &reference).await?;
            world.kinds.extend(kind);
        }
        Ok(())
    }

    /// The kind that a reference means; none if the hub does not serve it.
    async fn kind(
        &self,
        component: &str,
        reference: &Reference,
    ) -> Result<Option<ServedKind>, CopyError> {
        match referred::built_in(reference) {
            Err(_) => return Ok(None),
            Ok(Some(known)) => return Ok(Some(known)),
            Ok(None) => {}
        }
        let name = (reference.group.clone(), reference.resource.to_lowercase());
        if let Some(known) = self.kinds.lock().get(&name) {
            return Ok(Some(known.clone()));
        }
        let error = |source: kube::Error| CopyError {
            component: component.to_owned(),
            what: format!("resource {} of {}", reference.resource, reference.group),
            source,
        };
        let found = self.discover(&name.0, &name.1).await.map_err(error)?;
        if let Some(found) = &found {
            self.kinds.lock().insert(name, found.clone());
        }
        Ok(found)
    }

    async fn discover(&self, group: &str, name: &str) -> Result<Option<ServedKind>, kube::Error> {
        let groups = self.client.list_api_groups().await?.groups;
        let Some(found) = groups.into_iter().find(|known| known.name == group) else {
            return Ok(None);
        };
        let preferred = found.preferred_version.map(|it| it.version);
        let versions = found.versions.into_iter().map(|it| it.version);
        for version in preferred.into_iter().chain(versions) {
            let api_version = format!("{group}/{version}");
            let resources = self.client.list_api_group_resources(&api_version).await?;
            let kinds = resources.resources.into_iter().map(|it| ServedKind {
                group: group.to_owned(),
                version: version.clone(),
                kind: it.kind,
                plural: it.name,
                singular: it.singular_name,
                short_names: it.short_names.unwrap_or_default(),
                namespaced: it.namespaced,
            });
            // Subresources are listed, too.
            let mut kinds = kinds.filter(|kind| !kind.plural.contains('/'));
            if let Some(kind) = kinds.find(|kind| kind.is_called(name)) {
                return Ok(Some(kind));
            }
        }
        Ok(None)
    }

    /// The objects that a reference names.
    async fn objects(
        &self,
        component: &str,
        reference: &Reference,
        kind: &ServedKind,
        own: &str,
    ) -> Result<Vec<Value>, CopyError> {
        let Place { namespace, name } = reference.place(kind, component, own);
        let gvk = GroupVersionKind::gvk(&kind.group, &kind.version, &kind.kind);
        let resource = ApiResource::from_gvk_with_plural(&gvk, &kind.plural);
        let client = self.client.clone();
        let api: Api<DynamicObject> = match namespace {
            "" => Api::all_with(client, &resource),
            namespace => Api::namespaced_with(client, namespace, &resource),
        };
        let found = if name.is_empty() {
            let pairs = reference.label_selector.iter();
            let pairs: Vec<String> = pairs.map(|(key, value)| format!("{key}={value}")).collect();
            let selected = ListParams::default().labels(&pairs.join(","));
            api.list(&selected).await.map(|list| list.items)
        } else {
            let found = api.get_opt(name).await;
            found.map(|found| found.into_iter().collect())
        };
        let found = found.map_err(|source| CopyError {
            component: component.to_owned(),
            what: format!("{} {namespace}/{name}", kind.kind),
            source,
        })?;
        let objects = found.into_iter().map(|mut found| {
            found.metadata.managed_fields = None;
            let mut object = to_json(&found);
            object["apiVersion"] = kind.api_version().into();
            object["kind"] = kind.kind.as_str().into();
            object
        });
        Ok(objects.collect())
    }
}
