//! Short ways to look into and fill JSON objects.
//!
//! Reading never fails: what is absent, `null` or of another type reads as empty, which is what the
//! zero value of a Go field means to Kubernetes. Decoding has checked the types before.

use std::collections::{HashMap, HashSet};

use serde_json::{Map, Value};

static NULL: Value = Value::Null;

/// The value at a path of field names; `null` where there is none.
pub(crate) fn at<'a>(value: &'a Value, path: &[&str]) -> &'a Value {
    path.iter()
        .try_fold(value, |value, segment| value.get(segment))
        .unwrap_or(&NULL)
}

/// Whether something is at the path.
pub(crate) fn has(value: &Value, path: &[&str]) -> bool {
    !at(value, path).is_null()
}

/// The text at a path, or the empty text.
pub(crate) fn text<'a>(value: &'a Value, path: &[&str]) -> &'a str {
    at(value, path).as_str().unwrap_or_default()
}

/// The integer at a path, or 0.
pub(crate) fn int(value: &Value, path: &[&str]) -> i64 {
    at(value, path).as_i64().unwrap_or_default()
}

/// The flag at a path, or false.
pub(crate) fn flag(value: &Value, path: &[&str]) -> bool {
    at(value, path).as_bool().unwrap_or_default()
}

/// The items of the list at a path.
pub(crate) fn list<'a>(value: &'a Value, path: &[&str]) -> &'a [Value] {
    at(value, path).as_array().map_or(&[], Vec::as_slice)
}

/// Named items by their names; of those with the same name the first counts.
pub(crate) fn by_name(items: &[Value]) -> HashMap<&str, &Value> {
    let named = items.iter().rev();
    named.map(|item| (text(item, &["name"]), item)).collect()
}

/// The names of items.
pub(crate) fn names(items: &[Value]) -> HashSet<&str> {
    items.iter().map(|item| text(item, &["name"])).collect()
}

/// The entries of the object at a path.
pub(crate) fn entries<'a>(
    value: &'a Value,
    path: &[&str],
) -> impl Iterator<Item = (&'a String, &'a Value)> {
    at(value, path).as_object().into_iter().flatten()
}

/// The texts of the list at a path.
pub(crate) fn texts<'a>(value: &'a Value, path: &[&str]) -> impl Iterator<Item = &'a str> {
    list(value, path).iter().filter_map(Value::as_str)
}

/// Whether a value is what Go leaves out: nothing, empty, zero or false.
pub(crate) fn is_zero(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Bool(flag) => !flag,
        Value::Number(number) => number.as_f64() == Some(0.0),
        Value::String(text) => text.is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::Object(entries) => entries.is_empty(),
    }
}

/// Whether two values are the same to Kubernetes, where empty and absent are one.
pub(crate) fn same(left: &Value, right: &Value) -> bool {
    match (left, right) {
        (Value::Object(left), Value::Object(right)) => {
            left.iter()
                .all(|(key, value)| same(value, right.get(key).unwrap_or(&NULL)))
                && right
                    .iter()
                    .all(|(key, value)| left.contains_key(key) || is_empty(value))
        }
        (Value::Array(left), Value::Array(right)) => {
            left.len() == right.len()
                && left
                    .iter()
                    .zip(right)
                    .all(|(left, right)| same(left, right))
        }
        _ => left == right || is_empty(left) && is_empty(right),
    }
}

/// Nothing, or a list or map without entries: Go's semantic equality takes them for one.
fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Array(items) => items.is_empty(),
        Value::Object(entries) => entries.is_empty(),
        _ => false,
    }
}

/// The object at a path, made on the way if need be; `None` if something else is in the way.
pub(crate) fn object<'a>(
    value: &'a mut Value,
    path: &[&str],
) -> Option<&'a mut Map<String, Value>> {
    let mut current = value.as_object_mut()?;
    for segment in path {
        let child = current.entry(*segment).or_insert_with(empty);
        if child.is_null() {
            *child = empty();
        }
        current = child.as_object_mut()?;
    }
    Some(current)
}

/// The object at a path, if there is one.
pub(crate) fn existing<'a>(
    value: &'a mut Value,
    path: &[&str],
) -> Option<&'a mut Map<String, Value>> {
    let found = path
        .iter()
        .try_fold(value, |value, segment| value.get_mut(segment))?;
    found.as_object_mut()
}

/// The items of the list at a path, to be changed.
pub(crate) fn items<'a>(value: &'a mut Value, path: &[&str]) -> &'a mut [Value] {
    let found = path
        .iter()
        .try_fold(value, |value, segment| value.get_mut(segment));
    found
        .and_then(Value::as_array_mut)
        .map_or(&mut [], Vec::as_mut_slice)
}

/// An empty object.
pub(crate) fn empty() -> Value {
    Value::Object(Map::new())
}

/// Filling in what the user left out.
pub(crate) trait Fill {
    /// Sets a field that is absent or null.
    fn fill(&mut self, key: &str, value: impl Into<Value>);
    /// Sets a field that is absent, null or empty: for fields that Go does not hold as pointers.
    fn fill_zero(&mut self, key: &str, value: impl Into<Value>);
}

impl Fill for Map<String, Value> {
    fn fill(&mut self, key: &str, value: impl Into<Value>) {
        if self.get(key).is_none_or(Value::is_null) {
            self.insert(key.to_owned(), value.into());
        }
    }

    fn fill_zero(&mut self, key: &str, value: impl Into<Value>) {
        if self.get(key).is_none_or(is_zero) {
            self.insert(key.to_owned(), value.into());
        }
    }
}

/// Removes a field of the object at a path; nothing happens if it is not there.
pub(crate) fn remove(value: &mut Value, path: &[&str], key: &str) -> Option<Value> {
    existing(value, path)?.remove(key)
}

/// Makes `key` of `new` what it is in `old`.
pub(crate) fn restore(new: &mut Value, old: &Value, key: &str) {
    restore_at(new, old, &[], key);
}

/// Makes `key` of the object at `path` what it is in `old`.
pub(crate) fn restore_at(new: &mut Value, old: &Value, path: &[&str], key: &str) {
    let Some(new) = existing(new, path) else {
        return;
    };
    match at(old, path).get(key) {
        Some(value) => {
            new.insert(key.to_owned(), value.clone());
        }
        None => {
            new.remove(key);
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn empty_and_absent_are_the_same() {
        let cases = [
            (json!({"a": []}), json!({}), true),
            (json!({"a": {}}), json!({"a": null}), true),
            (json!({"a": ""}), json!({}), false),
            (json!({"a": 1}), json!({"a": 1}), true),
            (json!([1, 2]), json!([2, 1]), false),
            (json!({"a": {"b": 1}}), json!({}), false),
            (json!({}), json!({"a": {"b": 1}}), false),
        ];
        for (left, right, expected) in cases {
            assert_eq!(same(&left, &right), expected, "{left} {right}");
        }
    }

    #[test]
    fn objects_are_made_on_the_way() {
        let mut value = json!({"a": null});
        object(&mut value, &["a", "b"]).unwrap().fill("c", 1);
        assert_eq!(value, json!({"a": {"b": {"c": 1}}}));
        assert!(object(&mut json!({"a": 1}), &["a", "b"]).is_none());
    }
}
