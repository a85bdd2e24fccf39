//! Components of type `ref-objects`: copies of objects that exist on the hub.

use std::collections::BTreeMap;

use bellwether_api::oam::names::{LOCAL_CLUSTER, annotation};
use bellwether_json::path::{remove, str_at};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::error::{Class, RenderError, Stage};
use crate::world::{ServedKind, World, is_kind};

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

/// What is said of a reference that names no resource.
const NO_RESOURCE: &str = "ref-objects: resource is not set; name the resource, such as configmap, instead of apiVersion and kind";

/// The built-in kind that a reference means; none if it is a custom one, which needs its group.
pub fn built_in(reference: &Reference) -> Result<Option<ServedKind>, RenderError> {
    if reference.resource.is_empty() {
        return Err(invalid(NO_RESOURCE.to_owned()));
    }
    let cluster = reference.cluster.as_str();
    if !cluster.is_empty() && cluster != LOCAL_CLUSTER {
        return Err(invalid(format!(
            "ref-objects: objects of cluster {cluster:?} cannot be copied; copy objects of the hub"
        )));
    }
    let wanted = reference.resource.to_lowercase();
    let mut known = bellwether_kinds::resources().iter();
    let found = known.find(|known| {
        let is_called_so = known.plural == wanted
            || known.singular() == wanted
            || known.short_names.contains(&wanted.as_str());
        is_called_so && (reference.group.is_empty() || known.group == reference.group)
    });
    if found.is_none() && reference.group.is_empty() {
        return Err(invalid(format!(
            "ref-objects: there is no built-in resource {:?}; of a custom resource, name the group too",
            reference.resource
        )));
    }
    Ok(found.map(|known| ServedKind {
        group: known.group.to_owned(),
        version: known.version.to_owned(),
        kind: known.kind.to_owned(),
        plural: known.plural.to_owned(),
        singular: known.singular(),
        short_names: known.short_names.iter().map(ToString::to_string).collect(),
        namespaced: known.namespaced,
    }))
}

/// The kind that a reference means.
fn kind_of(reference: &Reference, world: &World) -> Result<ServedKind, RenderError> {
    if let Some(known) = built_in(reference)? {
        return Ok(known);
    }
    let wanted = reference.resource.to_lowercase();
    let mut custom = world.kinds.iter();
    let found = custom.find(|known| known.group == reference.group && known.is_called(&wanted));
    found.cloned().ok_or_else(|| {
        invalid(format!(
            "ref-objects: there is no resource {:?} in group {:?}",
            reference.resource, reference.group
        ))
    })
}

/// Which objects a reference names, once its kind is known.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place<'a> {
    /// The namespace; empty for kinds without one.
    pub namespace: &'a str,
    /// The name; empty if they are selected by labels.
    pub name: &'a str,
}

impl Reference {
    /// Where the objects are, for a component of an application in a namespace.
    pub fn place<'a>(&'a self, kind: &ServedKind, component: &'a str, own: &'a str) -> Place<'a> {
        let non_empty = |text: &'a str, other: &'a str| if text.is_empty() { other } else { text };
        let namespace = non_empty(&self.namespace, own);
        Place {
            namespace: if kind.namespaced { namespace } else { "" },
            name: if self.label_selector.is_empty() {
                non_empty(&self.name, component)
            } else {
                ""
            },
        }
    }
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
                "component {component}: the manifests at {url} have to be fetched, and nothing is fetched offline"
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
        let kind = kind_of(reference, world)
            .map_err(|error| error.about(&format!("component {component}")))?;
        if !reference.name.is_empty() && !reference.label_selector.is_empty() {
            return Err(invalid(format!(
                "component {component}: name and labelSelector exclude each other"
            )));
        }
        objects.extend(copies(component, namespace, reference, &kind, world)?);
    }
    Ok(objects)
}

/// Copies of the objects that a reference names.
fn copies(
    component: &str,
    own: &str,
    reference: &Reference,
    kind: &ServedKind,
    world: &World,
) -> Result<Vec<Value>, RenderError> {
    let Place { namespace, name } = reference.place(kind, component, own);
    if !name.is_empty() {
        let found = world.object(&kind.group, &kind.kind, namespace, name);
        let found = found.ok_or_else(|| {
            let place = if namespace.is_empty() {
                name.to_owned()
            } else {
                format!("{namespace}/{name}")
            };
            let message = format!(
                "component {component}: {} {place} does not exist",
                kind.kind
            );
            RenderError::new(Stage::Parse, Class::NotFound, message)
        })?;
        return Ok(vec![stripped(found)]);
    }
    let selected = world.objects.iter().filter(|object| {
        is_kind(object, &kind.group, &kind.kind)
            && str_at(object, &["metadata", "namespace"]).unwrap_or_default() == namespace
            && reference
                .label_selector
                .iter()
                .all(|(key, value)| str_at(object, &["metadata", "labels", key]) == Some(value))
    });
    Ok(selected.map(stripped).collect())
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

#[cfg(test)]
mod tests {
    use super::*;

    fn world() -> World {
        let definition = json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
            "metadata": {"name": "widgets.example.org"},
            "spec": {"group": "example.org", "scope": "Namespaced",
                "names": {"kind": "Widget", "plural": "widgets", "singular": "widget", "shortNames": ["wg"]},
                "versions": [{"name": "v1", "served": true, "storage": false}, {"name": "v2", "served": true, "storage": true}]}});
        let object = |kind: &str, namespace: Value, name: &str| {
            json!({"apiVersion": if kind == "Widget" { "example.org/v2" } else { "v1" }, "kind": kind,
                "metadata": {"name": name, "namespace": namespace, "uid": "1", "labels": {"of": "us"}},
                "spec": {"size": 1}, "status": {"seen": true}})
        };
        let mut unscoped = object("Namespace", Value::Null, "zone");
        remove(&mut unscoped, &["metadata", "namespace"]);
        let objects = vec![
            definition,
            object("Widget", "n".into(), "one"),
            object("Widget", "other".into(), "two"),
            unscoped,
        ];
        World::new(crate::world::ClusterVersion::default(), objects)
    }

    #[track_caller]
    fn check(reference: &Value, expected: Result<&[&str], &str>) {
        let properties = json!({"objects": [reference]});
        let loaded = load("one", "n", Some(&properties), &world());
        match (loaded, expected) {
            (Ok(objects), Ok(names)) => {
                let found: Vec<&str> = objects
                    .iter()
                    .filter_map(|object| str_at(object, &["metadata", "name"]))
                    .collect();
                assert_eq!(found, names);
                for object in &objects {
                    assert!(object["metadata"]["uid"].is_null() && object["status"].is_null());
                }
            }
            (Err(error), Err(text)) => assert!(error.message.contains(text), "{error}"),
            (loaded, expected) => panic!("{loaded:?} instead of {expected:?}"),
        }
    }

    #[test]
    fn custom_kinds_are_found_by_any_of_their_names() {
        for name in ["widgets", "widget", "wg", "Widget"] {
            check(
                &json!({"resource": name, "group": "example.org"}),
                Ok(&["one"]),
            );
        }
        let elsewhere = json!({"resource": "widgets", "group": "example.org", "namespace": "other", "name": "two"});
        check(&elsewhere, Ok(&["two"]));
        let selected =
            json!({"resource": "widgets", "group": "example.org", "labelSelector": {"of": "us"}});
        check(&selected, Ok(&["one"]));
    }

    #[test]
    fn kinds_without_a_namespace_are_found() {
        check(
            &json!({"resource": "namespace", "name": "zone"}),
            Ok(&["zone"]),
        );
    }

    #[test]
    fn what_cannot_be_found_is_named() {
        check(&json!({"resource": "widgets"}), Err("name the group too"));
        check(
            &json!({"resource": "gadgets", "group": "example.org"}),
            Err(
                r#"component one: ref-objects: there is no resource "gadgets" in group "example.org""#,
            ),
        );
        check(
            &json!({"resource": "wg", "group": "example.org", "name": "no"}),
            Err("Widget n/no does not exist"),
        );
        check(
            &json!({"resource": "configmap", "cluster": "far"}),
            Err(r#"objects of cluster "far" cannot be copied"#),
        );
        check(
            &json!({"kind": "ConfigMap", "apiVersion": "v1"}),
            Err("resource is not set"),
        );
    }
}
