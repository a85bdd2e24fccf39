//! The field manager: server-side apply, and who owns which field after any write.
//!
//! [`update`] is for create, replace and all patches but apply: it takes the object as it will be
//! stored and fills in `metadata.managedFields`. [`apply`] merges an applied configuration into the
//! stored object, or says with whom it conflicts.
//!
//! Both work on the object in the API version of the request. Entries of other versions are compared
//! in their own version through [`Versions`]; without one, all versions are taken to have the same
//! schema.

use bellwether_schema::Schema;
use serde_json::{Map, Value};
use thiserror::Error;

use crate::fieldset::FieldSet;
use crate::typed::validate::TypeErrors;
use crate::typed::{Type, select};

mod blank;
mod cap;
mod conflict;
mod entries;
mod last_applied;
mod scale;
mod timestamps;
mod updater;

pub use blank::blank;
pub use conflict::{CONFLICT_REASON, Cause, Conflict, Conflicts, is_conflict_only_with};
pub use entries::{ManagedFieldsError, validate_entries};
pub use last_applied::LAST_APPLIED_ANNOTATION;
pub use scale::{adopt_scale_entries, scale_entries};
pub use timestamps::keep_timestamps_of_unchanged;

use entries::{Entries, ManagerId, Operation};
use updater::Updater;

/// What one request says about the write; the object and its configuration come separately.
#[derive(Debug, Clone, Copy)]
pub struct Write<'a> {
    /// The schema of the kind in this API version; [`Schema::default`] where nothing is known.
    pub schema: &'a Schema,
    /// `v1`, `apps/v1`: the version in which objects are given and recorded.
    pub api_version: &'a str,
    /// The kind, for messages.
    pub kind: &'a str,
    /// `status`, `scale`; empty for the object itself.
    pub subresource: &'a str,
    /// Who writes: the `fieldManager` parameter, else the first word of the user agent.
    pub manager: &'a str,
    /// Fields that this endpoint ignores, such as `status` for the object itself. They are neither
    /// owned nor compared.
    pub reset_fields: Option<&'a FieldSet>,
    /// The time of the request, as it appears in an entry (`2026-11-15T20:12:00Z`).
    pub now: &'a str,
    /// How to see the object in other API versions.
    pub versions: Option<&'a dyn Versions>,
}

/// The other API versions of a kind.
pub trait Versions: std::fmt::Debug + Send + Sync {
    /// The schema of a version, or `None` when it is not served any more; its entries are dropped.
    fn schema(&self, api_version: &str) -> Option<&Schema>;

    /// The object in that version.
    fn convert(&self, object: &Value, api_version: &str) -> Result<Value, String>;
}

/// Why a configuration cannot be applied.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum ApplyError {
    /// Others own what the configuration would change: a conflict (409).
    #[error("{0}")]
    Conflict(Conflicts),
    /// The request makes no sense whatever is stored: a bad request (400).
    #[error("{0}")]
    BadRequest(String),
    /// The configuration or the stored object does not fit the schema (500 in Kubernetes).
    #[error("{0}")]
    Typed(String),
}

/// What applying a configuration gives.
#[derive(Debug, Clone, PartialEq)]
pub struct Applied {
    /// The merged object with its new `managedFields`; defaults are not filled in.
    pub object: Value,
    /// Whether anything but `managedFields` differs from the stored object.
    pub changed: bool,
}

/// Records who owns what after a write that was not an apply.
///
/// `live` is the stored object, or at creation an object without a uid (see [`blank()`]). The result
/// is `new` with its `managedFields` replaced. A client may rewrite entries, but only as a whole and
/// readable: `[]` or `[{}]` clears them, what cannot be read does not count. (Kubernetes decodes the
/// metadata of custom resources first, which turns `[]` into nothing; drop it before, there.)
/// Ownership never makes a write fail: when it cannot be computed, the object is stored without
/// entries.
pub fn update(live: &Value, mut new: Value, write: &Write) -> Value {
    let sent = take_managed_fields(&mut new);
    if let Some(stored) = unchanged_entries(live, &new, sent.as_ref()) {
        put(&mut new, stored);
        return new;
    }
    let entries = match Entries::for_update(live, sent, !write.subresource.is_empty()) {
        // Objects that nobody tracks stay untracked until they are applied to.
        entries if entries.is_empty() && has_uid(live) => entries,
        mut entries => {
            let manager = write.manager_id(Operation::Update);
            match Updater::new(write, live).update(&new, &mut entries, manager) {
                Ok(()) => {
                    cap::merge_old_updates(&mut entries);
                    entries
                }
                Err(_) => Entries::default(),
            }
        }
    };
    put_managed_fields(&mut new, entries);
    new
}

/// Merges an applied configuration into the stored object.
///
/// `live` is the stored object, or at creation an object without a uid (see [`blank()`]). Fields that
/// the manager applied before and now leaves out are removed, unless others own them. With `force`
/// conflicts are resolved in favour of this manager.
pub fn apply(
    live: &Value,
    configuration: &Value,
    write: &Write,
    force: bool,
) -> Result<Applied, ApplyError> {
    check_configuration(configuration, write)?;
    let mut entries = Entries::of(live)
        .map_err(|error| ApplyError::Typed(format!("failed to decode managed fields: {error}")))?;
    if entries.is_empty() {
        record_before_first_apply(live, write, &mut entries)?;
    }
    if write.manager == last_applied::KUBECTL {
        return apply_as_kubectl(live, configuration, write, entries, force);
    }
    apply_with(live, configuration, write, entries, force)
}

/// Applies as the manager that client-side apply upgrades to.
fn apply_as_kubectl(
    live: &Value,
    configuration: &Value,
    write: &Write,
    entries: Entries,
    force: bool,
) -> Result<Applied, ApplyError> {
    let mut applied = match apply_with(live, configuration, write, entries.clone(), force) {
        Err(ApplyError::Conflict(conflicts)) => {
            // What client-side apply set and nobody changed since is no conflict with itself.
            let allowed = last_applied::unchanged_fields(live, write).unwrap_or_default();
            let conflicts = conflicts.except(&allowed);
            if !conflicts.is_empty() {
                return Err(ApplyError::Conflict(conflicts));
            }
            apply_with(live, configuration, write, entries, true)?
        }
        other => other?,
    };
    last_applied::refresh(&mut applied, configuration);
    Ok(applied)
}

/// What a manager applied of an object: the configuration that would change nothing if it were
/// applied again. `None` when the manager applied nothing.
pub fn extract(object: &Value, write: &Write) -> Option<Value> {
    let entries = Entries::of(object).ok()?;
    let entry = entries.get(&write.manager_id(Operation::Apply))?;
    let mut extracted = select::extract(Type::root(write.schema), object, &entry.set)
        .unwrap_or_else(|| Value::Object(Map::new()));
    let Value::Object(members) = &mut extracted else {
        return None;
    };
    members.insert("apiVersion".to_owned(), write.api_version.into());
    members.insert("kind".to_owned(), write.kind.into());
    let metadata = members
        .entry("metadata")
        .or_insert_with(|| Value::Object(Map::new()));
    for name in ["name", "namespace"] {
        if let (Some(value), Value::Object(metadata)) = (
            object.get("metadata").and_then(|from| from.get(name)),
            &mut *metadata,
        ) {
            metadata.insert(name.to_owned(), value.clone());
        }
    }
    Some(extracted)
}

fn apply_with(
    live: &Value,
    configuration: &Value,
    write: &Write,
    mut entries: Entries,
    force: bool,
) -> Result<Applied, ApplyError> {
    let manager = write.manager_id(Operation::Apply);
    let updater = Updater::new(write, live);
    let merged = updater.apply(configuration, &mut entries, &manager, force)?;
    let changed = merged.is_some();
    if changed {
        entries.set_time(&manager, write.now);
    }
    let mut object = merged.unwrap_or_else(|| live.clone());
    take_managed_fields(&mut object);
    put_managed_fields(&mut object, entries);
    Ok(Applied { object, changed })
}

/// Attributes all that is there to `before-first-apply`, so that the first apply does not silently
/// take over what others wrote.
fn record_before_first_apply(
    live: &Value,
    write: &Write,
    entries: &mut Entries,
) -> Result<(), ApplyError> {
    let empty = Value::Object(Map::new());
    let mut current = live.clone();
    take_managed_fields(&mut current);
    let before = Write {
        manager: "before-first-apply",
        ..*write
    };
    let from = if has_uid(live) { &empty } else { live };
    Updater::new(&before, from)
        .update(&current, entries, before.manager_id(Operation::Update))
        .map_err(|error| {
            ApplyError::Typed(format!(
                "failed to create manager for existing fields: {error}"
            ))
        })
}

fn check_configuration(configuration: &Value, write: &Write) -> Result<(), ApplyError> {
    let text = |name: &str| {
        configuration
            .get(name)
            .and_then(Value::as_str)
            .unwrap_or_default()
    };
    if text("apiVersion") != write.api_version || text("kind") != write.kind {
        return Err(ApplyError::BadRequest(format!(
            "invalid object type: {}",
            group_version_kind(text("apiVersion"), text("kind"))
        )));
    }
    let managed_fields = configuration.pointer("/metadata/managedFields");
    if managed_fields.is_some_and(|fields| !fields.is_null()) {
        return Err(ApplyError::BadRequest(
            "metadata.managedFields must be nil".to_owned(),
        ));
    }
    Ok(())
}

/// `apps/v1, Kind=Deployment` as Go prints it; the core group is an empty word.
fn group_version_kind(api_version: &str, kind: &str) -> String {
    let separator = if api_version.contains('/') { "" } else { "/" };
    format!("{separator}{api_version}, Kind={kind}")
}

/// `namespace/name; apps/v1, Kind=Deployment`, which error texts call an object by.
fn describe(object: &Value, write: &Write) -> String {
    let text = |name: &str| {
        let metadata = object
            .get("metadata")
            .and_then(|metadata| metadata.get(name));
        metadata
            .and_then(Value::as_str)
            .unwrap_or_default()
            .to_owned()
    };
    let kind = group_version_kind(write.api_version, write.kind);
    format!("{}/{}; {kind}", text("namespace"), text("name"))
}

fn typed_error(attempt: &str, object: &Value, write: &Write, errors: &TypeErrors) -> ApplyError {
    ApplyError::Typed(format!("{attempt} ({}): {errors}", describe(object, write)))
}

fn has_uid(object: &Value) -> bool {
    let uid = object.pointer("/metadata/uid").and_then(Value::as_str);
    uid.is_some_and(|uid| !uid.is_empty())
}

fn take_managed_fields(object: &mut Value) -> Option<Value> {
    object
        .get_mut("metadata")?
        .as_object_mut()?
        .remove("managedFields")
}

fn put_managed_fields(object: &mut Value, entries: Entries) {
    let entries = entries.into_json();
    if !entries.is_empty() {
        put(object, Value::Array(entries));
    }
}

fn put(object: &mut Value, entries: Value) {
    if let Value::Object(members) = object {
        let metadata = members
            .entry("metadata")
            .or_insert_with(|| Value::Object(Map::new()));
        if let Value::Object(metadata) = metadata {
            metadata.insert("managedFields".to_owned(), entries);
        }
    }
}

/// The stored entries, if the object is written back as it is: then nobody's ownership changes, and
/// the entries need not even be read.
fn unchanged_entries(live: &Value, new: &Value, sent: Option<&Value>) -> Option<Value> {
    let stored = live.pointer("/metadata/managedFields")?;
    stored.as_array().filter(|entries| !entries.is_empty())?;
    let same_entries = sent.is_none_or(|sent| sent == stored);
    (same_entries && timestamps::equal_but_for_entries(live, new)).then(|| stored.clone())
}

impl Write<'_> {
    fn manager_id(&self, operation: Operation) -> ManagerId {
        ManagerId::new(self.manager, operation, self.api_version, self.subresource)
    }
}

#[cfg(test)]
mod tests;
