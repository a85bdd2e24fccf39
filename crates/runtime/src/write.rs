//! Writing objects that a controller has seen: only if they are still as they were seen.

use std::fmt::Debug;

use kube::api::{DeleteParams, Patch, PatchParams, PostParams};
use kube::{Api, Resource};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

/// The field manager of everything that controllers write.
pub const FIELD_MANAGER: &str = "bellwether";

/// Returns the parameters of patches that controllers send.
pub fn written_by() -> PatchParams {
    PatchParams {
        field_manager: Some(FIELD_MANAGER.to_owned()),
        ..PatchParams::default()
    }
}

/// Returns the parameters of objects that controllers create or replace.
pub fn created_by() -> PostParams {
    PostParams {
        field_manager: Some(FIELD_MANAGER.to_owned()),
        ..PostParams::default()
    }
}

/// Writes the status of an object, unless it has changed since it was seen: that is a conflict, and a
/// later reconcile decides again. Returns `None` if the object is gone.
///
/// The status is merged: fields that it does not have stay as they are, and those that are null are
/// removed.
pub async fn write_status<K, S>(
    api: &Api<K>,
    seen: &K,
    status: &S,
) -> Result<Option<K>, kube::Error>
where
    K: Resource + Clone + DeserializeOwned + Debug,
    S: Serialize + ?Sized,
{
    let patch = locked_patch(seen, json!({ "status": status }));
    let name = seen.meta().name.as_deref().unwrap_or_default();
    let written = api.patch_status(name, &written_by(), &patch).await;
    if written.is_ok() {
        tracing::debug!(name, "status written");
    }
    unless_gone(written)
}

/// Merges a patch into an object, unless it has changed since it was seen. Returns `None` if the object
/// is gone.
pub async fn patch_seen<K>(api: &Api<K>, seen: &K, patch: Value) -> Result<Option<K>, kube::Error>
where
    K: Resource + Clone + DeserializeOwned + Debug,
{
    let name = seen.meta().name.as_deref().unwrap_or_default();
    let patch = locked_patch(seen, patch);
    unless_gone(api.patch(name, &written_by(), &patch).await)
}

/// Deletes an object; one that is gone already is no error.
pub async fn delete_if_exists<K>(
    api: &Api<K>,
    name: &str,
    params: &DeleteParams,
) -> Result<(), kube::Error>
where
    K: Clone + DeserializeOwned + Debug,
{
    unless_gone(api.delete(name, params).await).map(drop)
}

/// Turns "not found" into `None`.
pub fn unless_gone<T>(done: Result<T, kube::Error>) -> Result<Option<T>, kube::Error> {
    match done {
        Ok(done) => Ok(Some(done)),
        Err(kube::Error::Api(status)) if status.is_not_found() => Ok(None),
        Err(error) => Err(error),
    }
}

/// Turns "already exists" into `None`.
pub fn unless_exists<T>(created: Result<T, kube::Error>) -> Result<Option<T>, kube::Error> {
    match created {
        Ok(created) => Ok(Some(created)),
        Err(kube::Error::Api(status)) if status.is_already_exists() => Ok(None),
        Err(error) => Err(error),
    }
}

/// A merge patch that applies to the state that was seen, and to no other.
fn locked_patch<K: Resource>(seen: &K, mut patch: Value) -> Patch<Value> {
    let metadata = seen.meta();
    patch["metadata"]["uid"] = json!(metadata.uid);
    patch["metadata"]["resourceVersion"] = json!(metadata.resource_version);
    Patch::Merge(patch)
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::core::v1::ConfigMap;
    use kube::api::ObjectMeta;

    use super::*;

    #[test]
    fn a_patch_applies_to_the_state_that_was_seen() {
        let seen = ConfigMap {
            metadata: ObjectMeta {
                uid: Some("u".to_owned()),
                resource_version: Some("7".to_owned()),
                ..ObjectMeta::default()
            },
            ..ConfigMap::default()
        };
        let patch = locked_patch(&seen, json!({"metadata": {"finalizers": []}}));
        let expected = json!({
            "metadata": {"finalizers": [], "uid": "u", "resourceVersion": "7"},
        });
        assert!(matches!(patch, Patch::Merge(patch) if patch == expected));
    }
}
