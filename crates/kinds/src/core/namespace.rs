//! Namespaces.

use jiff::Timestamp;
use k8s_openapi::api::core::v1::Namespace;
use serde_json::Value;

use crate::columns::{AGE, NAME, age, cell, name, words};
use crate::resource::{NO_COLLECTION_VERBS, STATUS, Subresource};
use crate::{FieldSelector, NameRule, Resource};

pub(crate) const RESOURCE: Resource = Resource {
    short_names: &["ns"],
    verbs: NO_COLLECTION_VERBS,
    subresources: &[
        Subresource {
            name: "finalize",
            kind: None,
            verbs: &["update"],
        },
        STATUS,
    ],
    names: NameRule::Label,
    field_selectors: &[
        FieldSelector {
            label: "name",
            paths: &[&["metadata", "name"]],
            absent: "",
        },
        FieldSelector {
            label: "status.phase",
            paths: &[&["status", "phase"]],
            absent: "",
        },
    ],
    columns: &[
        NAME,
        words("Status", "Whether it is in use or going away."),
        AGE,
    ],
    row,
    ..Resource::cluster::<Namespace>("", "v1", "Namespace", "namespaces")
};

fn row(object: &Value, now: Timestamp) -> Vec<Value> {
    vec![
        name(object),
        cell(object, &["status", "phase"]),
        age(object, now),
    ]
}
