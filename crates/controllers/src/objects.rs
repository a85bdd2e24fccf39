//! Objects of any kind, written by what they should be.

use bellwether_runtime::{created_by, delete_if_exists, unless_exists, written_by};
use kube::api::{DeleteParams, DynamicObject, Patch};
use kube::core::GroupVersionKind;
use kube::discovery::ApiResource;
use kube::{Api, Client};
use serde_json::Value;

/// Where objects of this kind and namespace are.
pub(crate) fn api_of(client: &Client, object: &Value) -> Api<DynamicObject> {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let api_version = text(&object["apiVersion"]);
    let (group, version) = api_version.split_once('/').unwrap_or(("", &api_version));
    let kind = GroupVersionKind::gvk(group, version, &text(&object["kind"]));
    let resource = ApiResource::from_gvk(&kind);
    match object["metadata"]["namespace"].as_str() {
        Some(namespace) => Api::namespaced_with(client.clone(), namespace, &resource),
        None => Api::all_with(client.clone(), &resource),
    }
}

/// Makes sure that an object is there, and as it should be in every field that is given. Tells
/// whether it had to be written.
pub(crate) async fn ensure(client: &Client, object: &Value) -> Result<bool, kube::Error> {
    let api = api_of(client, object);
    let name = object["metadata"]["name"].as_str().unwrap_or_default();
    let Some(live) = api.get_opt(name).await? else {
        let wanted: DynamicObject =
            serde_json::from_value(object.clone()).map_err(kube::Error::SerdeError)?;
        let created = unless_exists(api.create(&created_by(), &wanted).await)?;
        return Ok(created.is_some());
    };
    let live = serde_json::to_value(&live).map_err(kube::Error::SerdeError)?;
    if covers(&live, object) {
        return Ok(false);
    }
    let patch = Patch::Merge(object.clone());
    api.patch(name, &written_by(), &patch).await?;
    Ok(true)
}

/// Whether everything that is wanted is there; lists have to be the same. What is wanted is ours,
/// and not deep.
fn covers(live: &Value, wanted: &Value) -> bool {
    match (live, wanted) {
        (Value::Object(live), Value::Object(wanted)) => wanted.iter().all(|(field, wanted)| {
            let live = live.get(field).unwrap_or(&Value::Null);
            covers(live, wanted)
        }),
        (live, wanted) => live == wanted,
    }
}

/// Makes sure that an object is gone, or on its way.
pub(crate) async fn delete_if_present(client: &Client, object: &Value) -> Result<(), kube::Error> {
    let name = object["metadata"]["name"].as_str().unwrap_or_default();
    let api = api_of(client, object);
    delete_if_exists(&api, name, &DeleteParams::default()).await
}
