//! The patch of a client-side apply.
//!
//! Three documents: `original` is what was applied last, `modified` what is to be applied, `current`
//! what is stored. The patch sets what `modified` has and `current` has not, and removes what
//! `original` had and `modified` has not; what others added to `current` stays.
//!
//! [`merge_patch`] is for kinds without patch metadata (custom resources), [`strategic_patch`] for
//! built-in kinds. Differences between `original` and `current` do not stop either: what `modified`
//! says wins, as with `kubectl apply`.

use bellwether_schema::Schema;
use serde_json::{Map, Value};

use crate::strategic::{DiffOptions, Mode, Part, StrategicError, diff_maps, merge_maps};
use crate::typed::Type;
use crate::{MAX_DEPTH, TooDeep, merge};

/// A JSON merge patch to be sent for `current`; an empty object if nothing is to be done.
pub fn merge_patch(original: &Value, modified: &Value, current: &Value) -> Result<Value, TooDeep> {
    let changes = filter(merge::diff(current, modified)?, Keep::Changes, 0)?;
    let deletions = filter(merge::diff(original, modified)?, Keep::Deletions, 0)?;
    let mut patch = Value::Object(deletions);
    merge::apply(&mut patch, Value::Object(changes))?;
    Ok(patch)
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Keep {
    Changes,
    Deletions,
}

/// The part of a merge patch that only sets, or only removes.
fn filter(patch: Value, keep: Keep, depth: usize) -> Result<Map<String, Value>, TooDeep> {
    if depth > MAX_DEPTH {
        return Err(TooDeep);
    }
    let Value::Object(members) = patch else {
        return Ok(Map::new());
    };
    let mut kept = Map::new();
    for (name, value) in members {
        match value {
            Value::Object(below) if !below.is_empty() => {
                let below = filter(Value::Object(below), keep, depth + 1)?;
                if !below.is_empty() {
                    kept.insert(name, Value::Object(below));
                }
            }
            value => {
                // An empty object is a value, not an empty patch.
                if value.is_null() == (keep == Keep::Deletions) {
                    kept.insert(name, value);
                }
            }
        }
    }
    Ok(kept)
}

/// A strategic merge patch to be sent for `current`; an empty object if nothing is to be done.
pub fn strategic_patch(
    original: &Value,
    modified: &Value,
    current: &Value,
    schema: &Schema,
) -> Result<Value, StrategicError> {
    let empty = Map::new();
    let members = |document: &'_ Value| match document {
        Value::Object(members) => Ok(members.clone()),
        Value::Null => Ok(empty.clone()),
        _ => Err(StrategicError::BAD_DOCUMENT),
    };
    let (original, modified, current) = (members(original)?, members(modified)?, members(current)?);
    let kind = Type::root(schema);
    let changes = DiffOptions::of(Part::Changes);
    let deletions = DiffOptions::of(Part::Deletions);
    let changes = diff_maps(&current, &modified, kind, changes, 0)?;
    let deletions = diff_maps(&original, &modified, kind, deletions, 0)?;
    merge_maps(deletions, changes, kind, Mode::Combine, 0).map(Value::Object)
}

#[cfg(test)]
mod tests;
