//! A deleted definition takes its objects along, then goes itself.

use std::sync::Arc;

use bellwether_store::Range;
use serde_json::Value;

use crate::cluster::Cluster;
use crate::context::RequestContext;
use crate::custom::{CLEANUP, PREFIX};
use crate::handler::delete::delete_object;
use crate::housekeeping::rewrite::remove_finalizer;
use crate::metadata;
use crate::params::DeleteOptions;

const CONTROLLER: &str = "customresourcedefinition-controller";

/// The key of the definition that an object belonged to, if that is being deleted.
pub(super) fn definition_of_key(cluster: &Cluster, key: &str) -> Option<Arc<str>> {
    let mut parts = key.split('/');
    let (group, plural) = (parts.next()?, parts.next()?);
    let entry = cluster
        .keyspace()
        .get(&format!("{PREFIX}{plural}.{group}"))?;
    entry.value.is_deleting().then_some(entry.key)
}

/// Removes the objects of a deleted definition, and the definition once there are none.
pub(super) async fn finish(cluster: &Arc<Cluster>, key: &str) {
    let Some(entry) = cluster
        .keyspace()
        .get(key)
        .filter(|entry| entry.value.is_deleting())
    else {
        return;
    };
    let definition = entry.value.to_untyped_value();
    if !metadata::finalizers(&definition).contains(&CLEANUP) {
        return;
    }
    if remove_objects(cluster, &definition).await > 0 {
        return;
    }
    let resources = cluster.resources();
    let found = resources.find("apiextensions.k8s.io", "v1", "customresourcedefinitions");
    let Some(resource) = found else { return };
    let cx = RequestContext::internal(cluster, resource, &entry.key, CONTROLLER);
    let result = remove_finalizer(&cx, CLEANUP).await;
    if let Err(error) = result
        && error.reason != "NotFound"
    {
        tracing::warn!(cluster = cluster.name(), name = key, %error, "cannot finish a definition");
    }
}

/// Deletes all objects of a definition; returns how many wait for their finalizers.
async fn remove_objects(cluster: &Arc<Cluster>, definition: &Value) -> usize {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let (group, plural) = (
        text(&definition["spec"]["group"]),
        text(&definition["spec"]["names"]["plural"]),
    );
    let resources = cluster.resources();
    let Some(resource) = resources
        .custom()
        .iter()
        .find(|resource| *resource.group == *group && *resource.plural == *plural)
    else {
        return 0;
    };
    let range = Range {
        prefix: &resource.prefix,
        start_after: None,
        limit: None,
        at: None,
    };
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
