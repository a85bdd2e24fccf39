//! Custom resources: what a CustomResourceDefinition makes of the server.

mod accept;
mod approval;
mod cache;
mod validate;
mod version;

pub(crate) use accept::{CLEANUP, accept, establish, mark_removing, mark_terminating, of_group};
pub(crate) use cache::{DefinitionCache, storage_resource};
pub(crate) use validate::validate;
pub(crate) use version::{CustomVersion, PrinterColumn};

use std::sync::Arc;

use bellwether_store::{Keyspace, Range};
use serde_json::Value;

use crate::object::StoredObject;
use crate::resource::Resource;

/// Where definitions are kept.
pub(crate) const PREFIX: &str = "apiextensions.k8s.io/customresourcedefinitions/";

/// The key of the definition of a resource.
pub(crate) fn key(group: &str, plural: &str) -> String {
    format!("{PREFIX}{plural}.{group}")
}

/// The definitions of a cluster.
pub(crate) fn definitions(keyspace: &Keyspace<StoredObject>) -> Vec<Arc<StoredObject>> {
    let range = Range::prefix(PREFIX);
    match keyspace.range(range) {
        Ok(page) => page.entries.into_iter().map(|entry| entry.value).collect(),
        Err(_) => Vec::new(),
    }
}

/// The resources that established definitions add to a cluster.
pub(crate) fn served_resources(
    keyspace: &Keyspace<StoredObject>,
    cache: &DefinitionCache,
) -> Vec<Arc<Resource>> {
    definitions(keyspace)
        .iter()
        .flat_map(|stored| cache.resources(stored))
        .collect()
}

/// Whether a condition of an object is true.
pub(crate) fn has_condition(object: &Value, kind: &str) -> bool {
    let conditions = object["status"]["conditions"].as_array();
    conditions
        .into_iter()
        .flatten()
        .any(|found| found["type"] == *kind && found["status"] == "True")
}
