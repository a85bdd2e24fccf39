//! What the server does to objects on their way in, in the order in which it does it.
//!
//! | request | steps |
//! |---|---|
//! | create | [`default`], [`to_storage`], [`prepare_for_create`], [`validate`] |
//! | update | [`default`], [`to_storage`], [`prepare_for_update`], [`validate`] |
//! | update of a part, such as `/status` | [`default`], [`to_storage`], [`prepare_for_part_update`], [`validate_part`] |
//! | every answer | [`from_storage`] |
//!
//! Decoding against [`Resource::schema`] comes before. From [`to_storage`] on, objects are in the
//! version in which they are stored; for all but a few resources that changes nothing.

use bellwether_schema::{FieldError, FieldErrors, FieldPath};
use jiff::Timestamp;
use serde_json::{Map, Value};

use crate::meta::MetaRules;
use crate::normalize::{normalize, zero};
use crate::value::{Fill, at, object, remove, restore, same};
use crate::{Creation, Generation, NameRule, Resource, meta};

/// An object of the kind that nobody has set anything in, as Kubernetes would write it: what is there
/// belongs to no field manager.
pub fn blank(resource: &Resource) -> Value {
    let mut object = Value::Object(Map::new());
    normalize(&resource.schema(), &mut object);
    if let Value::Object(fields) = &mut object {
        fields.remove("apiVersion");
        fields.remove("kind");
    }
    object
}

/// Fills in what the user left out, and writes the rest as Kubernetes would.
pub fn default(resource: &Resource, object: &mut Value) {
    let schema = resource.schema();
    normalize(&schema, object);
    (resource.default)(object);
}

/// Converts an object of the resource to the version in which it is stored.
pub fn to_storage(resource: &Resource, object: &mut Value) {
    (resource.to_storage)(object);
}

/// Converts a stored object to the version of the resource.
pub fn from_storage(resource: &Resource, object: &mut Value) {
    (resource.from_storage)(object);
}

/// Resets what a user may not set at creation, and sets what follows from the rest. The name has
/// been generated before, if it had to be.
pub fn prepare_for_create(resource: &Resource, object: &mut Value, creation: &Creation<'_>) {
    for field in [
        "deletionTimestamp",
        "deletionGracePeriodSeconds",
        "selfLink",
    ] {
        remove(object, &["metadata"], field);
    }
    if resource.generation != Generation::None {
        set_generation(object, 1);
    }
    if resource.has_status() && !resource.keeps_status {
        reset_status(resource, object);
    }
    (resource.prepare_create)(object, creation);
}

/// Restores what a user may not change, and counts the generation.
pub fn prepare_for_update(resource: &Resource, new: &mut Value, old: &Value) {
    if resource.has_status() {
        restore(new, old, "status");
    }
    prepare_metadata(new, old);
    (resource.prepare_update)(new, old);
    count_generation(resource, new, old);
}

/// Restores everything but the part that is written through a subresource (`status`, `approval`,
/// `finalize`, `ephemeralcontainers`, `resize`) and what may be changed of `metadata` beside it.
pub fn prepare_for_part_update(
    resource: &Resource,
    part: &str,
    new: &mut Value,
    old: &Value,
    now: Timestamp,
) {
    if part == "status" {
        restore_all_but_status(new, old);
    }
    prepare_metadata(new, old);
    (resource.prepare_part)(part, new, old, now);
    if part != "status" {
        count_generation(resource, new, old);
    }
}

fn restore_all_but_status(new: &mut Value, old: &Value) {
    let names: Vec<String> = [&*new, old]
        .into_iter()
        .filter_map(Value::as_object)
        .flat_map(|fields| fields.keys().cloned())
        .collect();
    for name in names {
        if name != "metadata" && name != "status" {
            restore(new, old, &name);
        }
    }
}

/// What is wrong with an object that is to be created, or to replace `old`.
pub fn validate(resource: &Resource, new: &Value, old: Option<&Value>) -> Vec<FieldError> {
    let mut errors = FieldErrors::new();
    // What is only answered needs no name.
    if !resource.is_virtual() {
        validate_metadata(resource, new, old, &mut errors);
    }
    (resource.validate)(new, old, &mut errors);
    errors.into_vec()
}

/// What is wrong with an object of which a part is to be replaced.
pub fn validate_part(resource: &Resource, part: &str, new: &Value, old: &Value) -> Vec<FieldError> {
    let mut errors = FieldErrors::new();
    validate_metadata(resource, new, Some(old), &mut errors);
    (resource.validate_part)(part, new, old, &mut errors);
    errors.into_vec()
}

fn reset_status(resource: &Resource, object: &mut Value) {
    let schema = resource.schema();
    let (Some(fields), Some(status)) = (object.as_object_mut(), schema.properties.get("status"))
    else {
        return;
    };
    fields.insert("status".to_owned(), zero(status));
}

fn prepare_metadata(new: &mut Value, old: &Value) {
    let before = at(old, &["metadata"]);
    let Some(metadata) = object(new, &["metadata"]) else {
        return;
    };
    match before.get("generation") {
        Some(generation) => metadata.insert("generation".to_owned(), generation.clone()),
        None => metadata.remove("generation"),
    };
    for field in ["creationTimestamp", "deletionTimestamp"] {
        if let Some(value) = before.get(field) {
            metadata.insert(field.to_owned(), value.clone());
        }
    }
    for field in ["uid", "deletionGracePeriodSeconds"] {
        if let Some(value) = before.get(field) {
            metadata.fill_zero(field, value.clone());
        }
    }
}

fn set_generation(object: &mut Value, generation: i64) {
    if let Some(metadata) = self::object(object, &["metadata"]) {
        metadata.insert("generation".to_owned(), generation.into());
    }
}

fn count_generation(resource: &Resource, new: &mut Value, old: &Value) {
    let metadata_differs =
        |field: &str| !same(at(new, &["metadata", field]), at(old, &["metadata", field]));
    let changed = match resource.generation {
        Generation::None | Generation::Constant => false,
        Generation::Spec => !same_content(new, old),
        Generation::SpecAndAnnotations => {
            !same_content(new, old) || metadata_differs("annotations")
        }
        Generation::SpecAndLabels => !same_content(new, old) || metadata_differs("labels"),
    };
    if changed {
        let before = at(old, &["metadata", "generation"])
            .as_i64()
            .unwrap_or_default();
        set_generation(new, before.saturating_add(1));
    }
}

/// Whether two objects are the same outside `metadata` and `status`.
fn same_content(new: &Value, old: &Value) -> bool {
    let (Some(new), Some(old)) = (new.as_object(), old.as_object()) else {
        return true;
    };
    let is_content = |name: &str| !matches!(name, "metadata" | "status" | "kind" | "apiVersion");
    let mut names = new.keys().chain(old.keys()).filter(|name| is_content(name));
    names.all(|name| {
        let absent = Value::Null;
        same(
            new.get(name).unwrap_or(&absent),
            old.get(name).unwrap_or(&absent),
        )
    })
}

/// Checks `metadata` as often as Kubernetes does: once at creation, and at an update first for all
/// kinds alike and then by the kind's own rules, so that clients see the same list of causes.
fn validate_metadata(
    resource: &Resource,
    new: &Value,
    old: Option<&Value>,
    errors: &mut FieldErrors,
) {
    const PATH: FieldPath<'static> = FieldPath::new("metadata");
    let rules = MetaRules {
        namespaced: resource.namespaced,
        names: resource.names,
        // Definitions and API services come from servers of their own, which do not ask for it.
        known_finalizers: !matches!(
            resource.group,
            "apiextensions.k8s.io" | "apiregistration.k8s.io"
        ),
    };
    let metadata = at(new, &["metadata"]);
    let Some(old) = old else {
        meta::validate(metadata, rules, &PATH, errors);
        return;
    };
    let common = MetaRules {
        names: NameRule::PathSegment,
        known_finalizers: false,
        ..rules
    };
    let before = at(old, &["metadata"]);
    meta::validate(metadata, common, &PATH, errors);
    meta::validate_update(metadata, before, &PATH, errors);
    if !errors.is_empty() {
        meta::validate_update(metadata, before, &PATH, errors);
    }
    if rules.known_finalizers {
        meta::validate_known_finalizers(metadata, &PATH, errors);
    }
    if resource.revalidates && !errors.is_empty() {
        meta::validate(metadata, rules, &PATH, errors);
    }
}
