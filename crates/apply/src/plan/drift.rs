//! What happens to changes of others while the manifest stays the same.

use serde_json::Value;

use super::{ApplyError, Step};
use crate::fields::{self, Place};
use crate::manifest::Manifest;
use crate::target::{Drift, EVERYTHING, Live, Target};

/// Returns the step if an object that was applied is left as others changed it.
pub(super) fn keep(target: &Target<'_>, live: Live<'_>) -> Option<Step> {
    let is_kept = match target.drift {
        Drift::Keep | Drift::KeepDeleted => target.applied_before || target.is_remembered(),
        Drift::KeepFields(paths) => match live {
            // An object that was applied and is gone was deleted by others, with all its fields.
            Live::Unknown | Live::Absent => target.applied_before,
            Live::Present(_) => paths.iter().any(|path| path == EVERYTHING),
        },
        Drift::Undo => false,
    };
    match live {
        _ if !is_kept => None,
        Live::Unknown => Some(Step::Read),
        Live::Absent => (target.drift != Drift::Keep).then_some(Step::Leave),
        Live::Present(live) => Some(target.ownership.patch(live).map_or(Step::Leave, Step::Own)),
    }
}

/// Returns the manifest with the values that an object has in some fields. Of a manifest that was applied
/// before, a field that the object does not have was removed by others, and stays so.
pub(super) fn with_fields(
    manifest: &Manifest,
    live: &Value,
    paths: &[String],
    applied_before: bool,
) -> Result<Manifest, ApplyError> {
    let mut kept = manifest.clone();
    for path in paths {
        let path = fields::relaxed(path);
        let found = fields::by_path(live, &path)?;
        if found.is_empty() && applied_before {
            for location in fields::by_path(&kept.object, &path)? {
                fields::remove(&mut kept.object, &location);
            }
        }
        for location in found {
            if let Some(value) = fields::value_at(live, live, &location) {
                set(&mut kept.object, live, &location, value);
            }
        }
    }
    Ok(kept)
}

/// Sets a field where another object has it; what is missing on the way is added.
fn set(object: &mut Value, live: &Value, location: &[Place], value: &Value) {
    let (mut target, mut pattern) = (object, live);
    for place in location {
        match place {
            Place::Field(name) => {
                if !target.is_object() {
                    *target = Value::Object(serde_json::Map::new());
                }
                target = &mut target[name.as_str()];
                pattern = &pattern[name.as_str()];
            }
            Place::Index(index) => {
                let position = match target.as_array() {
                    Some(items) => fields::position_of(items, pattern, *index),
                    None => None,
                };
                // An item that the manifest does not have is for the cluster to keep.
                let Some(next) = position.and_then(|position| target.get_mut(position)) else {
                    return;
                };
                target = next;
                pattern = &pattern[*index];
            }
        }
    }
    *target = value.clone();
}
