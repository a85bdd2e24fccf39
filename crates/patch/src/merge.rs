//! JSON merge patch (RFC 7396).
//!
//! [`apply`] is what `application/merge-patch+json` does, [`diff`] makes such a patch.

use serde_json::{Map, Value};

use crate::{MAX_DEPTH, TooDeep};

/// Merges `patch` into `document`: objects merge member by member, `null` removes, anything else
/// replaces.
pub fn apply(document: &mut Value, patch: Value) -> Result<(), TooDeep> {
    merge(document, patch, 0)
}

fn merge(document: &mut Value, patch: Value, depth: usize) -> Result<(), TooDeep> {
    if depth > MAX_DEPTH {
        return Err(TooDeep);
    }
    let patch = match patch {
        Value::Object(patch) => patch,
        mut other => {
            // Kubernetes also drops the nulls of objects inside a list, which the RFC leaves alone
            // (evanphx/json-patch: merge.go, pruneNulls).
            drop_nulls(&mut other, depth)?;
            *document = other;
            return Ok(());
        }
    };
    if !document.is_object() {
        *document = Value::Object(Map::new());
    }
    let Value::Object(members) = document else {
        return Ok(());
    };
    for (name, change) in patch {
        if change.is_null() {
            members.remove(&name);
        } else {
            let member = members.entry(name).or_insert(Value::Null);
            merge(member, change, depth + 1)?;
        }
    }
    Ok(())
}

fn drop_nulls(value: &mut Value, depth: usize) -> Result<(), TooDeep> {
    if depth > MAX_DEPTH {
        return Err(TooDeep);
    }
    match value {
        Value::Object(members) => {
            members.retain(|_, member| !member.is_null());
            members
                .values_mut()
                .try_for_each(|member| drop_nulls(member, depth + 1))
        }
        Value::Array(items) => items
            .iter_mut()
            .try_for_each(|item| drop_nulls(item, depth + 1)),
        _ => Ok(()),
    }
}

/// The merge patch that turns `original` into `modified`.
///
/// A merge patch cannot express a `null` inside `modified`; such members are removed by it.
pub fn diff(original: &Value, modified: &Value) -> Result<Value, TooDeep> {
    diff_at(original, modified, 0)
}

fn diff_at(original: &Value, modified: &Value, depth: usize) -> Result<Value, TooDeep> {
    if depth > MAX_DEPTH {
        return Err(TooDeep);
    }
    let (Value::Object(original), Value::Object(modified)) = (original, modified) else {
        return Ok(modified.clone());
    };
    let mut patch = Map::new();
    for name in original.keys() {
        if !modified.contains_key(name) {
            patch.insert(name.clone(), Value::Null);
        }
    }
    for (name, value) in modified {
        match original.get(name) {
            Some(before) if before == value => {}
            Some(before) => {
                patch.insert(name.clone(), diff_at(before, value, depth + 1)?);
            }
            None => {
                patch.insert(name.clone(), value.clone());
            }
        }
    }
    Ok(Value::Object(patch))
}

#[cfg(test)]
mod tests;
