//! A write that changes nothing should not change the object.

use serde_json::Value;

/// Puts back the times of entries when they are all that differs between the stored and the new
/// object, so that the write is seen to be without effect. Returns whether it did.
///
/// Call it after defaulting and admission, before comparing with what is stored.
pub fn keep_timestamps_of_unchanged(live: &Value, new: &mut Value) -> bool {
    if !differs_in_times_only(live, new) {
        return false;
    }
    let Some(entries) = live.pointer("/metadata/managedFields").cloned() else {
        return false;
    };
    if let Some(slot) = new.pointer_mut("/metadata/managedFields") {
        *slot = entries;
    }
    true
}

fn differs_in_times_only(live: &Value, new: &Value) -> bool {
    let entries = |object: &Value| -> Option<Vec<Value>> {
        object
            .pointer("/metadata/managedFields")?
            .as_array()
            .cloned()
    };
    let (Some(old), Some(fresh)) = (entries(live), entries(new)) else {
        return false;
    };
    if old.is_empty() || old.len() != fresh.len() || old == fresh {
        return false;
    }
    let same_but_for_time = old
        .iter()
        .zip(&fresh)
        .all(|(old, fresh)| equal_except(old, fresh, "time", |_, _| true));
    same_but_for_time && equal_but_for_entries(live, new)
}

/// Whether two objects differ at most in `metadata.managedFields`.
pub(super) fn equal_but_for_entries(left: &Value, right: &Value) -> bool {
    equal_except(left, right, "metadata", |left, right| {
        equal_except(left, right, "managedFields", |_, _| true)
    })
}

/// Whether two objects are equal, where one member is compared by `compare`.
fn equal_except(
    left: &Value,
    right: &Value,
    name: &str,
    compare: impl Fn(&Value, &Value) -> bool,
) -> bool {
    let (Some(left), Some(right)) = (left.as_object(), right.as_object()) else {
        return left == right;
    };
    let others = |members: &serde_json::Map<String, Value>| {
        members.len() - usize::from(members.contains_key(name))
    };
    others(left) == others(right)
        && left.iter().all(|(key, value)| {
            let other = right.get(key);
            if key == name {
                return other.is_none_or(|other| compare(value, other));
            }
            other == Some(value)
        })
}
