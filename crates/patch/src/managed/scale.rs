//! Ownership through the `scale` subresource.
//!
//! A Scale is a view of another object, so its entries are a view too: [`scale_entries`] shows who
//! owns the replica count, and [`adopt_scale_entries`] brings what a write to the Scale changed back
//! into the object.

use serde_json::Value;

use super::entries::{Entries, Entry, ManagedFieldsError, ManagerId};
use super::put_managed_fields;
use crate::fieldset::FieldSet;
use crate::path::PathElement;

/// The version of Scale objects.
const SCALE_VERSION: &str = "autoscaling/v1";

/// `metadata.managedFields` of the Scale of an object whose replica count is at `replicas`.
pub fn scale_entries(
    object: &Value,
    replicas: &[PathElement],
) -> Result<Value, ManagedFieldsError> {
    let mut entries = Entries::of(object)?;
    entries.0.retain(|entry| entry.set.contains(replicas));
    for entry in &mut entries.0 {
        entry.set = replicas_of_scale();
        SCALE_VERSION.clone_into(&mut entry.api_version);
    }
    Ok(Value::Array(entries.into_json()))
}

/// Takes over into an object what the entries of its Scale say after a write.
///
/// Who lost the replica count there loses it here; who got it gets an entry in `api_version`.
pub fn adopt_scale_entries(
    object: &mut Value,
    scale: &Value,
    api_version: &str,
    replicas: &[PathElement],
) -> Result<(), ManagedFieldsError> {
    let mut entries = Entries::of(object)?;
    let mut owners = Entries::of(scale)?;
    owners.0.retain(|owner| owner.set.contains(&scale_path()));
    let mut own = FieldSet::new();
    own.insert(replicas);
    entries.0.retain_mut(|entry| {
        if !entry.set.contains(replicas) {
            return true;
        }
        match owners
            .0
            .iter()
            .position(|owner| same_writer(&owner.id, &entry.id))
        {
            Some(position) => drop(owners.0.remove(position)),
            None => drop(entry.set.subtract(&own)),
        }
        !entry.set.is_empty()
    });
    for owner in owners.0 {
        let version = match owner.id.api_version.as_str() {
            "" => "",
            _ => api_version,
        };
        let id = ManagerId {
            api_version: version.to_owned(),
            ..owner.id
        };
        // Without a time, as Kubernetes has it: the object itself was not written by this manager.
        let entry = Entry {
            id,
            api_version: api_version.to_owned(),
            time: None,
            set: own.clone(),
        };
        match entries.get_mut(&entry.id) {
            Some(earlier) => earlier.set = std::mem::take(&mut earlier.set).union(entry.set),
            None => entries.0.push(entry),
        }
    }
    super::take_managed_fields(object);
    put_managed_fields(object, entries);
    Ok(())
}

/// Whether two entries are of one manager, whatever the version.
fn same_writer(left: &ManagerId, right: &ManagerId) -> bool {
    left.manager == right.manager
        && left.operation == right.operation
        && left.subresource == right.subresource
}

fn scale_path() -> [PathElement; 2] {
    [PathElement::field("spec"), PathElement::field("replicas")]
}

fn replicas_of_scale() -> FieldSet {
    let mut set = FieldSet::new();
    set.insert(&scale_path());
    set
}
