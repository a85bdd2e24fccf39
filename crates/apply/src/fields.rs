//! Fields of an object, named by JSONPaths, JSON pointers or paths of jq, and where they are.

use std::collections::HashSet;

use bellwether_jsonpath::JsonPath;
use serde_json::Value;

use crate::jq;

/// How deep objects are looked into.
pub(crate) const MAX_DEPTH: usize = 128;

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
pub enum FieldError {
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
    /// A jq path takes too much.
    #[error(
        "JQ expression error in '{expression}': jq expression exceeds its budget of {budget} steps"
    )]
    Budget {
        /// The expression.
        expression: String,
        /// What it may take.
        budget: usize,
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

/// The fields that several texts name.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct FieldSelector<'a> {
    /// JSONPaths of kubectl.
    pub json_paths: &'a [String],
    /// JSON pointers.
    pub json_pointers: &'a [String],
    /// Path expressions of jq.
    pub jq_paths: &'a [String],
}

impl FieldSelector<'_> {
    /// Returns where the fields are; those that the object does not have are left out.
    pub fn locations(&self, object: &Value) -> Result<Vec<Location>, FieldError> {
        let mut found = Vec::new();
        for path in self.json_paths {
            found.extend(by_path(object, path)?);
        }
        for pointer in self.json_pointers {
            found.extend(by_pointer(object, pointer)?);
        }
        for expression in self.jq_paths {
            found.extend(jq::paths(expression, object)?);
        }
        Ok(found)
    }

    /// Returns true if finding the fields runs programs of users, which may take long.
    pub fn has_programs(&self) -> bool {
        !self.jq_paths.is_empty() || !self.json_paths.is_empty()
    }
}

/// Returns a path that begins with a dot or a bracket; `spec.replicas` is written by many.
pub(crate) fn relaxed(path: &str) -> String {
    let is_bare = path.starts_with(|first: char| first.is_alphanumeric() || first == '_');
    format!("{}{path}", if is_bare { "." } else { "" })
}

/// Returns something of each value that a JSONPath gives; nothing where the object has none.
pub(crate) fn find<T>(
    object: &Value,
    path: &str,
    take: impl Fn(&Value) -> T,
) -> Result<Vec<T>, FieldError> {
    let parsed = parse_path(path)?;
    let found = parsed
        .find(object)
        .map_err(|problem| path_error(path, &problem))?;
    Ok(found.into_iter().flatten().map(take).collect())
}

fn path_error(path: &str, problem: &dyn std::fmt::Display) -> FieldError {
    FieldError::Path {
        path: path.to_owned(),
        problem: problem.to_string(),
    }
}

/// Reads a JSONPath, with or without braces.
fn parse_path(path: &str) -> Result<JsonPath, FieldError> {
    let bare = path.strip_prefix('{').and_then(|it| it.strip_suffix('}'));
    let bare = bare.unwrap_or(path);
    if bare.trim().is_empty() {
        return Err(path_error(path, &"no field is named"));
    }
    let parsed = JsonPath::parse(&format!("{{{bare}}}"));
    let parsed = parsed.map_err(|problem| path_error(path, &problem))?;
    Ok(parsed.allow_missing_keys(true))
}

/// Returns where the fields at the end of the path are; items of lists are left alone.
pub(crate) fn by_path(object: &Value, path: &str) -> Result<Vec<Location>, FieldError> {
    let mut search = Search {
        wanted: find(object, path, address)?.into_iter().collect(),
        way: Vec::new(),
        found: Vec::new(),
    };
    search.visit(object);
    Ok(search.found)
}

/// Where a value is in memory, which tells it from all others.
fn address(value: &Value) -> usize {
    std::ptr::from_ref(value).addr()
}

/// A search for the ways to values within an object, by identity: one visit to each value.
struct Search {
    wanted: HashSet<usize>,
    way: Location,
    found: Vec<Location>,
}

impl Search {
    fn visit(&mut self, value: &Value) {
        let is_field = matches!(self.way.last(), Some(Place::Field(_)));
        if is_field && self.wanted.contains(&address(value)) {
            self.found.push(self.way.clone());
        }
        if self.way.len() > MAX_DEPTH {
            return;
        }
        match value {
            Value::Object(map) => map
                .iter()
                .for_each(|(key, value)| self.enter(Place::Field(key.clone()), value)),
            Value::Array(items) => items
                .iter()
                .enumerate()
                .for_each(|(index, value)| self.enter(Place::Index(index), value)),
            _ => {}
        }
    }

    fn enter(&mut self, place: Place, value: &Value) {
        self.way.push(place);
        self.visit(value);
        self.way.pop();
    }
}

fn by_pointer(object: &Value, pointer: &str) -> Result<Option<Location>, FieldError> {
    let Some(rest) = pointer.strip_prefix('/') else {
        return Err(FieldError::Pointer {
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
pub(crate) fn remove(object: &mut Value, location: &Location) {
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
pub(crate) fn value_at<'a>(
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
pub(crate) fn item_in<'a>(live: &'a Value, wanted: &Value, index: usize) -> Option<&'a Value> {
    let items = live.as_array()?;
    items.get(position_of(items, wanted, index)?)
}

/// The position in a list of the item that another list has at an index: by what it is called, where
/// it has a name.
pub(crate) fn position_of(items: &[Value], wanted: &Value, index: usize) -> Option<usize> {
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
            return items.iter().position(|item| item.get(key) == Some(value));
        }
    }
    (index < items.len()).then_some(index)
}

/// Puts a value where the whole configuration has a location. Items of lists are not put back:
/// their places may have moved.
pub(crate) fn put(reduced: &mut Value, location: &Location, value: Value) {
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
