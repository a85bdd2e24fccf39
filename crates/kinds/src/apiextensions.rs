//! The `apiextensions.k8s.io` group: CustomResourceDefinitions.
//!
//! Only what is like other kinds is here: whether a definition is sound, and what it makes of the
//! API, is the business of the schema crate and of the server.

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;

use serde_json::{Value, json};

use crate::columns::{NAME_AND_CREATION, name_and_creation};
use crate::resource::{API_EXTENSIONS, STATUS};
use crate::value::{Fill, existing, flag, list, text};
use crate::{Creation, Generation, Resource};

pub(crate) const CUSTOM_RESOURCE_DEFINITION: Resource = Resource {
    short_names: &["crd", "crds"],
    categories: API_EXTENSIONS,
    subresources: &[STATUS],
    generation: Generation::Spec,
    unconditional_update: false,
    default,
    prepare_create,
    columns: NAME_AND_CREATION,
    row: name_and_creation,
    ..Resource::cluster::<CustomResourceDefinition>(
        "apiextensions.k8s.io",
        "v1",
        "CustomResourceDefinition",
        "customresourcedefinitions",
    )
};

fn default(object: &mut Value) {
    let kind = text(object, &["spec", "names", "kind"]).to_owned();
    if let Some(names) = existing(object, &["spec", "names"]) {
        names.fill_zero("singular", kind.to_lowercase());
        if !kind.is_empty() {
            names.fill_zero("listKind", format!("{kind}List"));
        }
    }
    if let Some(spec) = existing(object, &["spec"]) {
        spec.fill("conversion", json!({"strategy": "None"}));
    }
    let service = ["spec", "conversion", "webhook", "clientConfig", "service"];
    if let Some(service) = existing(object, &service) {
        service.fill("port", 443);
    }
    let stored = stored_versions(object);
    if let Some(status) = existing(object, &["status"]) {
        status.fill_zero("storedVersions", stored);
    }
}

fn prepare_create(object: &mut Value, _creation: &Creation<'_>) {
    let stored = stored_versions(object);
    if let Some(status) = existing(object, &["status"]) {
        status.insert("storedVersions".to_owned(), stored);
    }
}

/// The version in which objects are stored is the first that counts as stored.
fn stored_versions(object: &Value) -> Value {
    let versions = list(object, &["spec", "versions"]).iter();
    let mut stored = versions.filter(|version| flag(version, &["storage"]));
    match stored.next() {
        Some(version) => json!([text(version, &["name"])]),
        None => Value::Null,
    }
}
