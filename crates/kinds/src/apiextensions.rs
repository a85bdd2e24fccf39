//! The `apiextensions.k8s.io` group: CustomResourceDefinitions.
//!
//! Only what is like other kinds is here: whether a definition is sound, and what it makes of the
//! API, is the business of the schema crate and of the server.

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;

use crate::columns::{NAME_AND_CREATION, name_and_creation};
use crate::resource::{API_EXTENSIONS, STATUS};
use crate::{Generation, Resource};

pub(crate) const CUSTOM_RESOURCE_DEFINITION: Resource = Resource {
    short_names: &["crd", "crds"],
    categories: API_EXTENSIONS,
    subresources: &[STATUS],
    generation: Generation::Spec,
    unconditional_update: false,
    columns: NAME_AND_CREATION,
    row: name_and_creation,
    ..Resource::cluster::<CustomResourceDefinition>(
        "apiextensions.k8s.io",
        "v1",
        "CustomResourceDefinition",
        "customresourcedefinitions",
    )
};
