//! Paths into values: `a.b`, `a[0].b`, `a["x.y"]`.

use serde_json::{Map, Value};

/// A list is padded to at most this length.
const LONGEST_LIST: usize = 10_000;

/// A part of a path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Segment {
    /// A field.
    Field(String),
    /// An element of a list.
    Index(usize),
}

/// Why a path or value cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PathError {
    /// The path cannot be read.
    #[error("invalid path {0:?}")]
    Invalid(String),
    /// What the path leads through is no struct or list.
    #[error("cannot set {0:?}: it leads through a value that is neither a struct nor a list")]
    Scalar(String),
    /// The list would be too long.
    #[error("cannot set {0:?}: the list would be too long")]
    TooLong(String),
}

/// Reads a path.
pub fn parse(text: &str) -> Result<Vec<Segment>, PathError> {
    let invalid = || PathError::Invalid(text.to_owned());
    let mut segments = Vec::new();
    let mut rest = text;
    loop {
        if let Some(after) = rest.strip_prefix('[') {
            let (segment, after) = bracket(after).ok_or_else(invalid)?;
            segments.push(segment);
            rest = after;
        } else {
            let (name, after) = field(rest).ok_or_else(invalid)?;
            segments.push(Segment::Field(name));
            rest = after;
        }
        match rest.chars().next() {
            None => return Ok(segments),
            Some('.') => rest = &rest[1..],
            Some('[') => {}
            Some(_) => return Err(invalid()),
        }
    }
}

/// A name, quoted or not, and what follows.
fn field(text: &str) -> Option<(String, &str)> {
    if text.starts_with('"') {
        return quoted(text);
    }
    let end = text.find(['.', '[']).unwrap_or(text.len());
    let name = &text[..end];
    let is_name =
        !name.is_empty() && !name.contains([']', '"', ' ', '\t', '\n', '(', ')', '+', '\\']);
    is_name.then(|| (name.to_owned(), &text[end..]))
}

/// What is between brackets, and what follows.
fn bracket(text: &str) -> Option<(Segment, &str)> {
    if text.starts_with('"') {
        let (name, after) = quoted(text)?;
        return Some((Segment::Field(name), after.strip_prefix(']')?));
    }
    let (index, after) = text.split_once(']')?;
    Some((Segment::Index(index.trim().parse().ok()?), after))
}

/// A string in quotes, and what follows.
fn quoted(text: &str) -> Option<(String, &str)> {
    let mut is_escaped = false;
    for (position, character) in text.char_indices().skip(1) {
        match character {
            '\\' if !is_escaped => is_escaped = true,
            '"' if !is_escaped => {
                let (literal, after) = text.split_at(position + 1);
                return Some((serde_json::from_str(literal).ok()?, after));
            }
            _ => is_escaped = false,
        }
    }
    None
}

/// What is at a path.
pub fn get<'a>(value: &'a Value, path: &[Segment]) -> Option<&'a Value> {
    path.iter().try_fold(value, |value, segment| match segment {
        Segment::Field(name) => value.as_object()?.get(name),
        Segment::Index(index) => value.as_array()?.get(*index),
    })
}

/// Sets what is at a path; structs and elements of lists that are missing are created.
pub fn set(root: &mut Value, text: &str, new: Value) -> Result<(), PathError> {
    let mut target = root;
    for segment in parse(text)? {
        target = match segment {
            Segment::Field(name) => {
                if target.is_null() {
                    *target = Value::Object(Map::new());
                }
                let Value::Object(fields) = target else {
                    return Err(PathError::Scalar(text.to_owned()));
                };
                fields.entry(name).or_insert(Value::Null)
            }
            Segment::Index(index) => {
                if index >= LONGEST_LIST {
                    return Err(PathError::TooLong(text.to_owned()));
                }
                let is_empty_struct = target.as_object().is_some_and(Map::is_empty);
                if target.is_null() || is_empty_struct {
                    *target = Value::Array(Vec::new());
                }
                let Value::Array(items) = target else {
                    return Err(PathError::Scalar(text.to_owned()));
                };
                while items.len() <= index {
                    items.push(Value::Object(Map::new()));
                }
                &mut items[index]
            }
        };
    }
    *target = new;
    Ok(())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[track_caller]
    #[expect(clippy::needless_pass_by_value, reason = "tables are written in place")]
    fn check(mut before: Value, path: &str, after: Value) {
        set(&mut before, path, json!("v")).unwrap();
        assert_eq!(before, after, "{path}");
    }

    #[test]
    fn setting_creates_what_is_missing() {
        check(json!({}), "a", json!({"a": "v"}));
        check(
            json!({"a": {"b": 1}}),
            "a.c.d",
            json!({"a": {"b": 1, "c": {"d": "v"}}}),
        );
        check(
            json!({"a": [{"p": 1}]}),
            "a[0].p",
            json!({"a": [{"p": "v"}]}),
        );
        check(
            json!({"a": [{"p": 1}]}),
            "a[2].p",
            json!({"a": [{"p": 1}, {}, {"p": "v"}]}),
        );
        check(json!({"a": ["x"]}), "a[0]", json!({"a": ["v"]}));
        check(json!({}), "a[\"x.y/z\"]", json!({"a": {"x.y/z": "v"}}));
        check(json!({}), "a[1]", json!({"a": [{}, "v"]}));
    }

    #[test]
    fn what_cannot_be_set_is_an_error() {
        assert!(set(&mut json!({"a": 1}), "a.b", json!(1)).is_err());
        assert!(set(&mut json!({}), "a[99999999]", json!(1)).is_err());
        for path in ["", "a.", "a[", "a[x]", "a]b", "a b"] {
            assert!(parse(path).is_err(), "{path:?}");
        }
    }
}
