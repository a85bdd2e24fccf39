//! Namespaces.

use bellwether_schema::{FieldError, FieldPath};
use jiff::Timestamp;
use k8s_openapi::api::core::v1::Namespace;
use serde_json::Value;

use crate::check::{self, Errors};
use crate::columns::{AGE, NAME, age, cell, name, words};
use crate::resource::{NO_COLLECTION_VERBS, STATUS, Subresource};
use crate::value::{Fill, existing, object, restore, restore_at, text, texts};
use crate::{Creation, FieldSelector, NameRule, Resource};

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
    default,
    prepare_create,
    prepare_update,
    prepare_part,
    validate,
    validate_part,
    columns: &[
        NAME,
        words("Status", "Whether it is in use or going away."),
        AGE,
    ],
    row,
    ..Resource::cluster::<Namespace>("", "v1", "Namespace", "namespaces")
};

/// The label by which selectors find a namespace by its name.
const NAME_LABEL: &str = "kubernetes.io/metadata.name";
/// The finalizer that keeps a namespace until everything in it is gone.
const FINALIZER: &str = "kubernetes";

fn default(object: &mut Value) {
    let name = text(object, &["metadata", "name"]).to_owned();
    if !name.is_empty()
        && let Some(labels) = self::object(object, &["metadata", "labels"])
    {
        labels.insert(NAME_LABEL.to_owned(), name.into());
    }
    if let Some(status) = existing(object, &["status"]) {
        status.fill_zero("phase", "Active");
    }
}

fn prepare_create(object: &mut Value, _creation: &Creation<'_>) {
    if let Some(status) = existing(object, &["status"]) {
        status.insert("phase".to_owned(), "Active".into());
    }
    let Some(spec) = self::object(object, &["spec"]) else {
        return;
    };
    spec.fill_zero("finalizers", Value::Array(Vec::new()));
    if let Some(Value::Array(finalizers)) = spec.get_mut("finalizers")
        && !finalizers.iter().any(|finalizer| finalizer == FINALIZER)
    {
        finalizers.push(FINALIZER.into());
    }
}

/// Finalizers are changed through their own subresource.
fn prepare_update(new: &mut Value, old: &Value) {
    restore_at(new, old, &["spec"], "finalizers");
}

fn prepare_part(part: &str, new: &mut Value, old: &Value, _now: Timestamp) {
    if part == "finalize" {
        restore(new, old, "status");
    }
}

fn validate(new: &Value, old: Option<&Value>, errors: &mut Errors) {
    if old.is_none() {
        let path = FieldPath::new("spec");
        for finalizer in texts(new, &["spec", "finalizers"]) {
            validate_finalizer(finalizer, &path.child("finalizers"), errors);
        }
    }
}

fn validate_part(part: &str, new: &Value, _old: &Value, errors: &mut Errors) {
    if part != "finalize" {
        return;
    }
    let path = FieldPath::new("spec");
    let path = path.child("finalizers");
    for (index, finalizer) in texts(new, &["spec", "finalizers"]).enumerate() {
        validate_finalizer(finalizer, &path.index(index), errors);
    }
}

fn validate_finalizer(finalizer: &str, path: &FieldPath<'_>, errors: &mut Errors) {
    check::qualified_name(errors, path, finalizer);
    let standard = [FINALIZER, "orphan", "foregroundDeletion"].contains(&finalizer);
    if !finalizer.contains('/') && !standard {
        let detail = "name is neither a standard finalizer name nor is it fully qualified";
        errors.push(FieldError::invalid(path, finalizer, detail));
    }
}

fn row(object: &Value, now: Timestamp) -> Vec<Value> {
    vec![
        name(object),
        cell(object, &["status", "phase"]),
        age(object, now),
    ]
}
