//! Components of type `ref-objects`: copies of objects that exist on the hub.

use std::collections::BTreeMap;

use bellwether_api::oam::names::annotation;
use bellwether_json::path::{remove, str_at};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::error::{Class, RenderError, Stage};
use crate::world::{World, is_kind};

/// Which objects a component copies.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct References {
    /// The objects.
    #[serde(default)]
    pub objects: Vec<Reference>,
    /// Addresses of manifests.
    #[serde(default)]
    pub urls: Vec<String>,
}

/// One or several objects of a kind.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Reference {
    /// Resource, in the singular or plural.
    #[serde(default)]
    pub resource: String,
    /// Group of the resource.
    #[serde(default)]
    pub group: String,
    /// Group and version, in old applications.
    #[serde(default)]
    pub api_version: String,
    /// Kind, in old applications.
    #[serde(default)]
    pub kind: String,
    /// Name of the object.
    #[serde(default)]
    pub name: String,
    /// Namespace; that of the application if empty.
    #[serde(default)]
    pub namespace: String,
    /// Cluster that the object is on.
    #[serde(default)]
    pub cluster: String,
    /// Labels of several objects.
    #[serde(default)]
    pub label_selector: BTreeMap<String, String>,
    /// Labels, in old applications.
    #[serde(default)]
    pub selector: BTreeMap<String, String>,
}

fn invalid(message: String) -> RenderError {
    RenderError::new(Stage::Parse, Class::InvalidInput, message)
}

/// The references in the properties of a component.
pub fn references(component: &str, properties: Option<&Value>) -> Result<References, RenderError> {
    let properties = properties.cloned().unwrap_or_else(|| json!({}));
    serde_json::from_value(properties).map_err(|error| {
        invalid(format!(
            "component {component}: properties of ref-objects: {error}"
        ))
    })
}

/// The group and kind that a reference means.
pub fn group_and_kind(reference: &Reference) -> Result<(&'static str, &'static str), RenderError> {
    if reference.resource.is_empty() {
        let message = "ref-objects: resource is not set; name the resource, such as configmap, instead of apiVersion and kind";
        return Err(invalid(message.to_owned()));
    }
    let wanted = reference.resource.to_lowercase();
    let found = bellwether_kinds::resources().iter().find(|known| {
        let is_called_so = known.plural == wanted
            || known.singular() == wanted
            || known.short_names.contains(&wanted.as_str());
        is_called_so && (reference.group.is_empty() || known.group == reference.group)
    });
    found.map(|known| (known.group, known.kind)).ok_or_else(|| {
        invalid(format!(
            "ref-objects: there is no resource {:?} in group {:?}",
            reference.resource, reference.group
        ))
    })
}

/// The objects that a component copies, without what the server filled in.
pub fn load(
    component: &str,
    namespace: &str,
    properties: Option<&Value>,
    world: &World,
) -> Result<Vec<Value>, RenderError> {
    let references = references(component, properties)?;
    let mut objects = Vec::new();
    for url in &references.urls {
        let Some(outside) = &world.outside else {
            return Err(invalid(format!(
                "component {component}: the manifests at {url} are fetched by the hub, and there is none"
            )));
        };
        let found = outside.manifests(url).map_err(|error| {
            error
                .about(&format!("component {component}"))
                .at(Stage::Parse)
        })?;
        objects.extend(found.iter().map(|object| from_address(object, url)));
    }
    for reference in &references.objects {
        let (group, kind) = group_and_kind(reference)?;
        if !reference.name.is_empty() && !reference.label_selector.is_empty() {
            return Err(invalid(format!(
                "component {component}: name and labelSelector exclude each other"
            )));
        }
        let namespace = if reference.namespace.is_empty() {
            namespace
        } else {
            &reference.namespace
        };
        if reference.label_selector.is_empty() {
            let name = if reference.name.is_empty() {
                component
            } else {
                &reference.name
            };
            let found = world.object(group, kind, namespace, name).ok_or_else(|| {
                let message =
                    format!("component {component}: {kind} {namespace}/{name} does not exist");
                RenderError::new(Stage::Parse, Class::NotFound, message)
            })?;
            objects.push(stripped(found));
        } else {
            let selected = world.objects.iter().filter(|object| {
                is_kind(object, group, kind)
                    && str_at(object, &["metadata", "namespace"]).unwrap_or_default() == namespace
                    && reference.label_selector.iter().all(|(key, value)| {
                        str_at(object, &["metadata", "labels", key]) == Some(value)
                    })
            });
            objects.extend(selected.map(stripped));
        }
    }
    Ok(objects)
}

/// An object of manifests at an address.
fn from_address(object: &Value, url: &str) -> Value {
    let mut copy = stripped(object);
    let metadata = &mut copy["metadata"];
    if !metadata.is_object() {
        *metadata = json!({});
    }
    if !metadata["annotations"].is_object() {
        metadata["annotations"] = json!({});
    }
    metadata["annotations"][annotation::RESOURCE_URL] = url.into();
    copy
}

/// The address that an object was fetched from.
pub(crate) fn address_of(object: &Value) -> Option<&str> {
    str_at(
        object,
        &["metadata", "annotations", annotation::RESOURCE_URL],
    )
}

/// An object without what belongs to the one on the hub.
fn stripped(object: &Value) -> Value {
    let mut copy = object.clone();
    for field in [
        "uid",
        "resourceVersion",
        "generation",
        "creationTimestamp",
        "deletionTimestamp",
        "managedFields",
        "ownerReferences",
        "finalizers",
        "selfLink",
    ] {
        remove(&mut copy, &["metadata", field]);
    }
    remove(&mut copy, &["status"]);
    if is_kind(&copy, "", "Service") {
        remove(&mut copy, &["spec", "clusterIP"]);
        remove(&mut copy, &["spec", "clusterIPs"]);
    }
    copy
}
