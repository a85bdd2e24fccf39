//! Custom resources: what a CustomResourceDefinition makes of the server.

mod accept;
mod approval;
mod cache;
mod lazy_schema;
mod served;
mod validate;
mod version;

pub(crate) use accept::{CLEANUP, accept, establish, mark_removing, mark_terminating, of_group};
pub(crate) use cache::{DefinitionCache, storage_resource};
pub(crate) use served::Served;
pub(crate) use validate::validate;
pub(crate) use version::{CustomVersion, PrinterColumn};

use serde_json::Value;

/// Where definitions are kept.
pub(crate) const PREFIX: &str = "apiextensions.k8s.io/customresourcedefinitions/";

/// Returns true for the resource of definitions.
pub(crate) fn is_definition(kind: &bellwether_kinds::Resource) -> bool {
    kind.group == "apiextensions.k8s.io" && kind.plural == "customresourcedefinitions"
}

/// The key of the definition of a resource.
pub(crate) fn key(group: &str, plural: &str) -> String {
    format!("{PREFIX}{plural}.{group}")
}

/// Whether a condition of an object is true.
pub(crate) fn has_condition(object: &Value, kind: &str) -> bool {
    let conditions = object["status"]["conditions"].as_array();
    conditions
        .into_iter()
        .flatten()
        .any(|found| found["type"] == *kind && found["status"] == "True")
}
