//! Small objects that controllers own whole, written by what they should be.

use bellwether_apply::{ObjectId, ResourceType};
use kube::api::DynamicObject;
use kube::core::GroupVersionKind;
use kube::discovery::ApiResource;
use kube::{Api, Client};
use serde_json::Value;

use crate::{ClusterHandle, FIELD_MANAGER, Objects};

/// Objects of the kind and namespace of this one.
pub fn api_of(client: &Client, object: &Value) -> Api<DynamicObject> {
    let resource = kind_of(object);
    match object["metadata"]["namespace"].as_str() {
        Some(namespace) => Api::namespaced_with(client.clone(), namespace, &resource),
        None => Api::all_with(client.clone(), &resource),
    }
}

/// Creates an object, or changes the fields that are given and differ. Returns true if it was written.
pub async fn ensure(client: &Client, object: &Value) -> Result<bool, kube::Error> {
    let objects = objects_of(client);
    let (resource, id) = place_of(object);
    let Some(live) = objects.get(&resource, &id).await? else {
        let created = objects.create(&resource, &id.namespace, object).await;
        return match created {
            Ok(_) => Ok(true),
            Err(error) if error.is_already_there() => Ok(false),
            Err(error) => Err(error.into()),
        };
    };
    if covers(&live, object) {
        return Ok(false);
    }
    objects.merge(&resource, &id, object).await?;
    Ok(true)
}

/// Deletes an object. Succeeds if it does not exist.
pub async fn delete_if_present(client: &Client, object: &Value) -> Result<(), kube::Error> {
    let (resource, id) = place_of(object);
    let objects = objects_of(client);
    Ok(objects.delete_if_exists(&resource, &id).await?)
}

fn objects_of(client: &Client) -> Objects {
    Objects::new(ClusterHandle::from(client), FIELD_MANAGER)
}

/// The kind of an object. Kinds that are written here have regular plurals.
fn kind_of(object: &Value) -> ApiResource {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let api_version = text(&object["apiVersion"]);
    let (group, version) = api_version.split_once('/').unwrap_or(("", &api_version));
    let kind = GroupVersionKind::gvk(group, version, &text(&object["kind"]));
    ApiResource::from_gvk(&kind)
}

/// The kind of an object, and which one it is.
fn place_of(object: &Value) -> (ResourceType, ObjectId) {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let found = kind_of(object);
    let metadata = &object["metadata"];
    let id = ObjectId {
        group: found.group.clone(),
        resource: found.plural.clone(),
        namespace: text(&metadata["namespace"]),
        name: text(&metadata["name"]),
    };
    let resource = ResourceType {
        namespaced: !id.namespace.is_empty(),
        group: found.group,
        version: found.version,
        kind: found.kind,
        plural: found.plural,
    };
    (resource, id)
}

/// True if everything that is wanted is there; lists have to be the same. What is wanted is ours, and not
/// deep.
pub fn covers(live: &Value, wanted: &Value) -> bool {
    match (live, wanted) {
        (Value::Object(live), Value::Object(wanted)) => wanted.iter().all(|(field, wanted)| {
            let live = live.get(field).unwrap_or(&Value::Null);
            covers(live, wanted)
        }),
        (live, wanted) => live == wanted,
    }
}
