//! A deleted definition takes its objects along, then goes itself.

use std::sync::Arc;

use bellwether_store::Range;
use serde_json::Value;

use crate::cluster::Cluster;
use crate::context::RequestContext;
use crate::custom::{self, CLEANUP, establish, mark_removing, storage_resource};
use crate::handler::delete::delete_object;
use crate::housekeeping::rewrite::{remove_finalizer, rewrite};
use crate::metadata;
use crate::object::StoredObject;
use crate::params::DeleteOptions;

const CONTROLLER: &str = "customresourcedefinition-controller";

/// The key of the definition that an object belonged to, if that is being deleted.
pub(super) fn definition_of_key(cluster: &Cluster, key: &str) -> Option<Arc<str>> {
    let mut parts = key.split('/');
    let (group, plural) = (parts.next()?, parts.next()?);
    let entry = cluster.keyspace().get(&custom::key(group, plural))?;
    entry.value.is_deleting().then_some(entry.key)
}

/// Whether a definition is not served yet, and has to be looked at.
pub(super) fn is_waiting(key: &str, definition: &StoredObject) -> bool {
    key.starts_with(custom::PREFIX) && !definition.mentions("InitialNamesAccepted")
}

/// The definitions that may have waited for the names of one that is gone.
pub(super) fn rivals(cluster: &Cluster, key: &str) -> Vec<Arc<str>> {
    let name = key.strip_prefix(custom::PREFIX).unwrap_or_default();
    match name.split_once('.') {
        Some((_, group)) => custom::of_group(cluster, group),
        None => Vec::new(),
    }
}

/// Establishes a definition whose names are free; removes the objects of a deleted one, and the
/// definition once there are none.
pub(super) async fn finish(cluster: &Arc<Cluster>, key: &str) {
    let Some(entry) = cluster.keyspace().get(key) else {
        return;
    };
    if !entry.value.is_deleting() {
        if let Err(error) = establish(cluster, key).await
            && error.reason != "NotFound"
        {
            tracing::warn!(cluster = cluster.name(), name = key, %error, "cannot establish a definition");
        }
        return;
    }
    let definition = entry.value.to_untyped_value();
    if !metadata::finalizers(&definition).contains(&CLEANUP) {
        return;
    }
    let left = remove_objects(cluster, &entry.value).await;
    let resources = cluster.resources();
    let found = resources.find("apiextensions.k8s.io", "v1", "customresourcedefinitions");
    let Some(resource) = found else { return };
    let cx = RequestContext::internal(cluster, resource, &entry.key, CONTROLLER);
    let result = if left > 0 {
        rewrite(&cx, |definition| mark_removing(definition, cx.now)).await
    } else {
        remove_finalizer(&cx, CLEANUP).await
    };
    if let Err(error) = result
        && error.reason != "NotFound"
    {
        tracing::warn!(cluster = cluster.name(), name = key, %error, "cannot finish a definition");
    }
}

/// Deletes all objects of a definition; returns how many wait for their finalizers.
async fn remove_objects(cluster: &Arc<Cluster>, stored: &Arc<StoredObject>) -> usize {
    let definition = stored.to_untyped_value();
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let (group, plural) = (
        text(&definition["spec"]["group"]),
        text(&definition["spec"]["names"]["plural"]),
    );
    let resources = cluster.resources();
    let served = resources
        .custom()
        .iter()
        .find(|resource| *resource.group == *group && *resource.plural == *plural);
    // Objects of versions that are not served any more go, too.
    let Some(resource) = served.cloned().or_else(|| storage_resource(stored)) else {
        return 0;
    };
    let resource = &resource;
    let range = Range::prefix(&resource.prefix);
    let Ok(page) = cluster.keyspace().range(range) else {
        return 0;
    };
    let mut left = 0;
    for entry in page.entries {
        let cx = RequestContext::internal(cluster, resource, &entry.key, CONTROLLER);
        if let Ok(crate::handler::delete::Outcome::Marked(_)) =
            delete_object(&cx, &DeleteOptions::default()).await
        {
            left += 1;
        }
    }
    left
}
