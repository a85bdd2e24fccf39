//! Reading, setting and removing what is deep inside a value.
//!
//! A path is a slice of field names, `&["spec", "replicas"]`; lists are not stepped into. The
//! getters borrow and never allocate, and answer `None` both for what is missing and for what has
//! another type, so that a caller needs one `match`.

use std::fmt::Write;

use serde_json::{Map, Value};

/// The value at a path.
pub fn get<'value>(value: &'value Value, path: &[&str]) -> Option<&'value Value> {
    path.iter()
        .try_fold(value, |value, field| value.as_object()?.get(*field))
}

/// The value at a path, to be changed.
pub fn get_mut<'value>(value: &'value mut Value, path: &[&str]) -> Option<&'value mut Value> {
    path.iter()
        .try_fold(value, |value, field| value.as_object_mut()?.get_mut(*field))
}

/// The string at a path.
pub fn str_at<'value>(value: &'value Value, path: &[&str]) -> Option<&'value str> {
    get(value, path)?.as_str()
}

/// The integer at a path; floats without a fraction count.
pub fn i64_at(value: &Value, path: &[&str]) -> Option<i64> {
    match get(value, path)? {
        Value::Number(number) => crate::number::normalize(number).as_i64(),
        _ => None,
    }
}

/// The items of the list at a path; empty if there is none.
pub fn items_at<'value>(value: &'value Value, path: &[&str]) -> &'value [Value] {
    get(value, path)
        .and_then(Value::as_array)
        .map_or(&[], Vec::as_slice)
}

/// The object at a path.
pub fn object_at<'value>(
    value: &'value Value,
    path: &[&str],
) -> Option<&'value Map<String, Value>> {
    get(value, path)?.as_object()
}

/// Something on the way to a path is neither an object nor absent.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("cannot set {path}: {at} is {found}, not an object")]
pub struct NotAnObject {
    /// The whole path, dotted.
    pub path: String,
    /// The part of the path that is in the way, dotted.
    pub at: String,
    /// What was found there.
    pub found: &'static str,
}

/// Sets the value at a path and creates the objects on the way; null counts as absent.
pub fn set(value: &mut Value, path: &[&str], new: Value) -> Result<(), NotAnObject> {
    *entry(value, path)? = new;
    Ok(())
}

/// The place at a path, created as null together with the objects on the way if it is absent.
pub fn entry<'value>(
    value: &'value mut Value,
    path: &[&str],
) -> Result<&'value mut Value, NotAnObject> {
    let mut place = value;
    for (index, field) in path.iter().enumerate() {
        if place.is_null() {
            *place = Value::Object(Map::new());
        }
        let found = type_name(place);
        let Value::Object(map) = place else {
            return Err(NotAnObject {
                path: path.join("."),
                at: if index == 0 {
                    "the value".to_owned()
                } else {
                    path[..index].join(".")
                },
                found,
            });
        };
        place = map.entry(*field).or_insert(Value::Null);
    }
    Ok(place)
}

/// Removes and returns the value at a path; the objects on the way stay, even if empty.
pub fn remove(value: &mut Value, path: &[&str]) -> Option<Value> {
    let (last, parents) = path.split_last()?;
    get_mut(value, parents)?.as_object_mut()?.remove(*last)
}

/// [`remove`], and then the objects on the way that became empty by it.
pub fn remove_and_prune(value: &mut Value, path: &[&str]) -> Option<Value> {
    let removed = remove(value, path)?;
    for end in (1..path.len()).rev() {
        let parents = &path[..end];
        if !object_at(value, parents).is_some_and(Map::is_empty) {
            break;
        }
        remove(value, parents);
    }
    Some(removed)
}

/// What JSON calls the type of a value.
pub fn type_name(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(number) if number.is_f64() => "number",
        Value::Number(_) => "integer",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

/// Appends a field to a path as Kubernetes shows it: `spec` and `replicas` make `spec.replicas`.
pub fn push_key(path: &mut String, key: &str) {
    if !path.is_empty() {
        path.push('.');
    }
    path.push_str(key);
}

/// Appends a list position to a path as Kubernetes shows it: `containers[0]`.
pub fn push_index(path: &mut String, index: usize) {
    // Writing to a string cannot fail.
    let _ = write!(path, "[{index}]");
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn getters_answer_none_for_what_is_missing_or_of_another_type() {
        let value =
            json!({"spec": {"replicas": 3, "paused": true, "name": "x", "list": [1], "f": 2.0}});
        assert_eq!(i64_at(&value, &["spec", "replicas"]), Some(3));
        assert_eq!(i64_at(&value, &["spec", "f"]), Some(2));
        assert_eq!(i64_at(&value, &["spec", "name"]), None);
        assert_eq!(str_at(&value, &["spec", "name"]), Some("x"));
        assert_eq!(str_at(&value, &["spec", "name", "deeper"]), None);
        assert_eq!(items_at(&value, &["spec", "list"]), [json!(1)]);
        assert!(items_at(&value, &["spec", "name"]).is_empty());
        assert_eq!(get(&value, &[]), Some(&value));
        assert!(object_at(&value, &["status"]).is_none());
    }

    #[test]
    fn setting_creates_what_is_on_the_way() {
        let mut value = json!({"status": null});
        set(&mut value, &["status", "phase"], json!("Ready")).unwrap();
        set(&mut value, &["a", "b", "c"], json!(1)).unwrap();
        assert_eq!(
            value,
            json!({"status": {"phase": "Ready"}, "a": {"b": {"c": 1}}})
        );
    }

    #[test]
    fn setting_below_a_scalar_is_refused() {
        let mut value = json!({"a": "text"});
        let error = set(&mut value, &["a", "b"], json!(1)).unwrap_err();
        assert_eq!(
            error.to_string(),
            "cannot set a.b: a is string, not an object"
        );
        let error = set(&mut json!([]), &["a"], json!(1)).unwrap_err();
        assert_eq!(
            error.to_string(),
            "cannot set a: the value is array, not an object"
        );
    }

    #[test]
    fn removing_prunes_only_on_request() {
        let mut value = json!({"a": {"b": {"c": 1}}, "d": 1});
        assert_eq!(remove(&mut value.clone(), &["a", "x"]), None);
        let mut kept = value.clone();
        assert_eq!(remove(&mut kept, &["a", "b", "c"]), Some(json!(1)));
        assert_eq!(kept, json!({"a": {"b": {}}, "d": 1}));
        assert_eq!(
            remove_and_prune(&mut value, &["a", "b", "c"]),
            Some(json!(1))
        );
        assert_eq!(value, json!({"d": 1}));
    }

    #[test]
    fn paths_are_shown_as_kubernetes_shows_them() {
        let mut path = String::new();
        push_key(&mut path, "spec");
        push_key(&mut path, "containers");
        push_index(&mut path, 0);
        push_key(&mut path, "image");
        assert_eq!(path, "spec.containers[0].image");
    }
}
