//! Fields that are left to the cluster: where they are in a manifest.

use bellwether_api::work::IgnoreField;
use bellwether_jsonpath::JsonPath;
use serde_json::Value;

use super::jq;

/// How deep objects are looked into.
pub(super) const MAX_DEPTH: usize = 128;

/// A step on the way to a field.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Place {
    /// A member of an object.
    Field(String),
    /// An item of a list.
    Index(usize),
}

/// The way to a field.
pub type Location = Vec<Place>;

/// Why fields cannot be found.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum IgnoreError {
    /// A JSONPath is wrong.
    #[error("JSONPath error in '{path}': {problem}")]
    Path {
        /// The path.
        path: String,
        /// What is wrong with it.
        problem: String,
    },
    /// A JSON pointer is wrong.
    #[error("JSON Pointer error in '{pointer}': {problem}")]
    Pointer {
        /// The pointer.
        pointer: String,
        /// What is wrong with it.
        problem: String,
    },
    /// A jq path is wrong.
    #[error("JQ expression error in '{expression}': {problem}")]
    Jq {
        /// The expression.
        expression: String,
        /// What is wrong with it.
        problem: String,
    },
}

/// Where the fields are that an entry names; those that the object does not have are left out.
pub fn locations(object: &Value, field: &IgnoreField) -> Result<Vec<Location>, IgnoreError> {
    let mut found = Vec::new();
    for path in &field.json_paths {
        found.extend(by_path(object, path)?);
    }
    for pointer in &field.json_pointers {
        found.extend(by_pointer(object, pointer)?);
    }
    for expression in &field.jq_path_expressions {
        let error = |problem| IgnoreError::Jq {
            expression: expression.clone(),
            problem,
        };
        found.extend(jq::paths(expression, object).map_err(error)?);
    }
    Ok(found)
}

/// Fields at the end of the path; items of lists are left alone.
fn by_path(object: &Value, path: &str) -> Result<Vec<Location>, IgnoreError> {
    let error = |problem: String| IgnoreError::Path {
        path: path.to_owned(),
        problem,
    };
    let bare = path.strip_prefix('{').and_then(|it| it.strip_suffix('}'));
    let bare = bare.unwrap_or(path);
    if bare.trim().is_empty() {
        return Err(error("no field is named".to_owned()));
    }
    let parsed = JsonPath::parse(&format!("{{{bare}}}"))
        .map_err(|problem| error(problem.to_string()))?
        .allow_missing_keys(true);
    let found = parsed
        .find(object)
        .map_err(|problem| error(problem.to_string()))?;
    let locations = found.into_iter().flatten();
    let locations = locations.filter_map(|value| location_of(object, value, 0));
    Ok(locations
        .filter(|location| matches!(location.last(), Some(Place::Field(_))))
        .collect())
}

/// The way to a value within another, by identity.
fn location_of(root: &Value, wanted: &Value, depth: usize) -> Option<Location> {
    if std::ptr::eq(root, wanted) {
        return Some(Vec::new());
    }
    if depth > MAX_DEPTH {
        return None;
    }
    let below = |place: Place, value: &Value| {
        let mut location = location_of(value, wanted, depth + 1)?;
        location.insert(0, place);
        Some(location)
    };
    match root {
        Value::Object(map) => map
            .iter()
            .find_map(|(key, value)| below(Place::Field(key.clone()), value)),
        Value::Array(items) => items
            .iter()
            .enumerate()
            .find_map(|(index, value)| below(Place::Index(index), value)),
        _ => None,
    }
}

fn by_pointer(object: &Value, pointer: &str) -> Result<Option<Location>, IgnoreError> {
    let Some(rest) = pointer.strip_prefix('/') else {
        return Err(IgnoreError::Pointer {
            pointer: pointer.to_owned(),
            problem: "a JSON pointer begins with a slash".to_owned(),
        });
    };
    let mut location = Vec::new();
    let mut value = object;
    for token in rest.split('/') {
        let name = token.replace("~1", "/").replace("~0", "~");
        let (place, next) = match value {
            Value::Array(items) => match name.parse::<usize>() {
                Ok(index) => (Place::Index(index), items.get(index)),
                Err(_) => return Ok(None),
            },
            other => (Place::Field(name.clone()), other.get(&name)),
        };
        let Some(next) = next else { return Ok(None) };
        location.push(place);
        value = next;
    }
    Ok(Some(location))
}

/// Takes away what is at a location.
pub(super) fn remove(object: &mut Value, location: &Location) {
    let Some((last, way)) = location.split_last() else {
        return;
    };
    let mut value = object;
    for place in way {
        let next = match place {
            Place::Field(name) => value.get_mut(name),
            Place::Index(index) => value.get_mut(index),
        };
        let Some(next) = next else { return };
        value = next;
    }
    match (value, last) {
        (Value::Object(map), Place::Field(name)) => {
            map.remove(name);
        }
        (Value::Array(items), Place::Index(index)) if *index < items.len() => {
            items.remove(*index);
        }
        _ => {}
    }
}

/// What a live object has where a configuration has a location: items of lists are found by what
/// they are called, where they have a name.
pub(super) fn value_at<'a>(
    live: &'a Value,
    configuration: &Value,
    location: &Location,
) -> Option<&'a Value> {
    let (mut live, mut wanted) = (live, configuration);
    for place in location {
        match place {
            Place::Field(name) => {
                live = live.get(name)?;
                wanted = &wanted[name.as_str()];
            }
            Place::Index(index) => {
                live = item_in(live, wanted, *index)?;
                wanted = &wanted[*index];
            }
        }
    }
    Some(live)
}

/// The item of a live list that an item of a configuration means.
pub(super) fn item_in<'a>(live: &'a Value, wanted: &Value, index: usize) -> Option<&'a Value> {
    let items = live.as_array()?;
    for key in [
        "name",
        "key",
        "containerPort",
        "port",
        "mountPath",
        "ip",
        "type",
    ] {
        if let Some(value) = wanted[index].get(key) {
            return items.iter().find(|item| item.get(key) == Some(value));
        }
    }
    items.get(index)
}

/// Puts a value where the whole configuration has a location. Items of lists are not put back:
/// their places may have moved.
pub(super) fn put(reduced: &mut Value, location: &Location, value: Value) {
    let Some((Place::Field(last), way)) = location.split_last() else {
        return;
    };
    let mut target = reduced;
    for place in way {
        let next = match place {
            Place::Field(name) => target.get_mut(name),
            Place::Index(index) => target.get_mut(index),
        };
        let Some(next) = next else { return };
        target = next;
    }
    if let Some(map) = target.as_object_mut() {
        map.insert(last.clone(), value);
    }
}
