//! The steps at the end of a build, on the objects of all directories.

use serde_json::Value;

use super::Accumulated;
use crate::error::Result;
use crate::order::{self, Order, SortOptions};
use crate::origin::{self, ORIGIN, TRANSFORMATIONS};
use crate::resource::Resource;
use crate::{hash, name_reference, variable};

/// Objects with this annotation are for kustomize only.
const LOCAL_CONFIG: &str = "config.kubernetes.io/local-config";

const MANAGED_BY: &str = "app.kubernetes.io/managed-by";

/// The release whose results these are.
const MANAGER: &str = "kustomize-v5.8.2";

/// Annotations that tools leave for one another, and that no result has.
const BUILD_ANNOTATIONS: [&str; 4] = [
    "config.kubernetes.io/path",
    "config.kubernetes.io/index",
    "config.k8s.io/id",
    "internal.config.kubernetes.io/",
];

/// Adds hashes, follows references, replaces variables, sorts, and removes what is internal.
pub(super) fn finish(
    mut accumulated: Accumulated,
    sort_options: Option<&SortOptions>,
    order: Order,
    metadata: &[String],
) -> Result<Vec<Value>> {
    let list = &mut accumulated.list;
    hash::add_hashes(list)?;
    name_reference::follow(list, &accumulated.config)?;
    variable::resolve(&accumulated.variables, list, &accumulated.config)?;
    list.resources.retain(|resource| {
        let local = resource.annotation(LOCAL_CONFIG);
        local.is_none_or(|local| local == "false")
    });
    order::sort(list, sort_options, order)?;
    let wants = |option: &str| metadata.iter().any(|wanted| wanted == option);
    let managed_by = wants("managedByLabel");
    let (origins, transformations) = (wants("originAnnotations"), wants("transformerAnnotations"));
    for resource in &mut list.resources {
        if managed_by {
            let labels = resource.metadata("labels").into_iter();
            let label = (MANAGED_BY.to_owned(), MANAGER.to_owned());
            resource.set_metadata("labels", labels.chain([label]))?;
        }
        annotate(resource, origins, transformations)?;
    }
    let resources = std::mem::take(&mut list.resources);
    Ok(resources
        .into_iter()
        .map(|resource| resource.value)
        .collect())
}

/// Writes what was recorded, and makes texts of all annotations, as kustomize does on the way.
fn annotate(resource: &mut Resource, origins: bool, transformations: bool) -> Result<()> {
    let mut annotations = resource.metadata("annotations");
    let had_none = resource.value.pointer("/metadata/annotations").is_none();
    annotations.retain(|(key, _)| {
        let is_internal =
            |known: &&str| key == known || (known.ends_with('/') && key.starts_with(known));
        !BUILD_ANNOTATIONS.iter().any(is_internal)
            && (origins || key != ORIGIN)
            && (transformations || key != TRANSFORMATIONS)
    });
    if let (true, Some(origin)) = (origins, &resource.origin) {
        annotations.push((ORIGIN.to_owned(), origin.to_text()));
    }
    if transformations && !resource.transformations.is_empty() {
        let text = origin::list(&resource.transformations);
        annotations.push((TRANSFORMATIONS.to_owned(), text));
    }
    if had_none && annotations.is_empty() {
        return Ok(());
    }
    resource.set_metadata("annotations", annotations)
}
