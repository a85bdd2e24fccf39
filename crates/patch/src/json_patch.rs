//! JSON Patch (RFC 6902) as an API server applies it.
//!
//! [`JsonPatch::parse`] separates a malformed patch (the client's mistake in any case) from one that
//! does not fit the document ([`JsonPatch::apply`]); the two become different HTTP statuses.
//!
//! Kubernetes uses `github.com/evanphx/json-patch` v4, which is more lenient than the RFC, and
//! clients rely on that: `replace` of an absent object member adds it, `copy` from an absent member
//! copies `null`, negative array indexes count from the end. We follow it there.

use serde_json::{Map, Value};
use thiserror::Error;

/// Operations allowed in one patch (kubernetes: apiserver `maxJSONPatchOperations`).
pub const MAX_OPERATIONS: usize = 10_000;

/// Bytes that all `copy` operations of one patch may add together (kubernetes: apiserver
/// `JSONPatchMaxCopyBytes`); without it a short patch could double a document over and over.
pub const MAX_COPIED_BYTES: usize = 3 * 1024 * 1024;

/// Why a JSON patch was refused.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum JsonPatchError {
    /// The patch is not a list of operations: a bad request (400).
    #[error("{0}")]
    Malformed(String),
    /// The patch has more operations than allowed: too large (413).
    #[error("The allowed maximum operations in a JSON patch is {MAX_OPERATIONS}, got {0}")]
    TooManyOperations(usize),
    /// A `test` failed or a path is not there: unprocessable (422).
    #[error("{0}")]
    NotApplicable(String),
}

/// A parsed patch, ready to be applied to any number of documents.
#[derive(Debug, Clone, PartialEq)]
pub struct JsonPatch {
    operations: Vec<Operation>,
    warnings: Vec<String>,
}

#[derive(Debug, Clone, PartialEq)]
struct Operation {
    kind: String,
    path: Option<String>,
    from: Option<String>,
    value: Option<Value>,
}

impl JsonPatch {
    /// Reads a patch from its JSON form.
    pub fn parse(patch: &Value) -> Result<Self, JsonPatchError> {
        let items = match patch {
            Value::Array(items) => items.as_slice(),
            // Go decodes null into an empty list.
            Value::Null => &[],
            other => {
                let expected = "Go value of type []handlers.jsonPatchOp";
                return Err(cannot_unmarshal(other, expected));
            }
        };
        if items.len() > MAX_OPERATIONS {
            return Err(JsonPatchError::TooManyOperations(items.len()));
        }
        let mut warnings = Vec::new();
        let operations = items
            .iter()
            .enumerate()
            .map(|(index, item)| Operation::parse(index, item, &mut warnings))
            .collect::<Result<_, _>>()?;
        Ok(Self {
            operations,
            warnings,
        })
    }

    /// What strict field validation has to say about this patch: members no operation has.
    pub fn warnings(&self) -> &[String] {
        &self.warnings
    }

    /// Applies every operation in order, or none.
    pub fn apply(&self, mut document: Value) -> Result<Value, JsonPatchError> {
        let mut copied = 0;
        for operation in &self.operations {
            operation
                .apply(&mut document, &mut copied)
                .map_err(JsonPatchError::NotApplicable)?;
        }
        Ok(document)
    }
}

/// The operations that turn `original` into `modified`, as a JSON patch.
///
/// Lists are compared by position, so an insertion at the front rewrites the list.
pub fn diff(original: &Value, modified: &Value) -> Value {
    let mut operations = Vec::new();
    diff_into(original, modified, "", 0, &mut operations);
    Value::Array(operations)
}

fn diff_into(original: &Value, modified: &Value, path: &str, depth: usize, out: &mut Vec<Value>) {
    match (original, modified) {
        _ if original == modified => {}
        (Value::Object(old), Value::Object(new)) if depth < crate::MAX_DEPTH => {
            for key in old.keys().filter(|key| !new.contains_key(*key)) {
                out.push(operation("remove", &child_path(path, key), None));
            }
            for (key, value) in new {
                let child = child_path(path, key);
                match old.get(key) {
                    Some(before) => diff_into(before, value, &child, depth + 1, out),
                    None => out.push(operation("add", &child, Some(value))),
                }
            }
        }
        (Value::Array(old), Value::Array(new)) if depth < crate::MAX_DEPTH => {
            for (index, (before, after)) in old.iter().zip(new).enumerate() {
                diff_into(before, after, &format!("{path}/{index}"), depth + 1, out);
            }
            // From the end, so that the indexes of what remains do not move.
            for index in (new.len()..old.len()).rev() {
                out.push(operation("remove", &format!("{path}/{index}"), None));
            }
            for value in new.iter().skip(old.len()) {
                out.push(operation("add", &format!("{path}/-"), Some(value)));
            }
        }
        (_, value) => out.push(operation("replace", path, Some(value))),
    }
}

fn operation(kind: &str, path: &str, value: Option<&Value>) -> Value {
    let mut members = Map::new();
    members.insert("op".into(), kind.into());
    members.insert("path".into(), path.into());
    if let Some(value) = value {
        members.insert("value".into(), value.clone());
    }
    Value::Object(members)
}

fn child_path(path: &str, key: &str) -> String {
    format!("{path}/{}", key.replace('~', "~0").replace('/', "~1"))
}

impl Operation {
    fn parse(
        index: usize,
        item: &Value,
        warnings: &mut Vec<String>,
    ) -> Result<Self, JsonPatchError> {
        let Value::Object(members) = item else {
            return Err(cannot_unmarshal(
                item,
                "Go value of type handlers.jsonPatchOp",
            ));
        };
        for name in members.keys() {
            if !matches!(name.as_str(), "op" | "path" | "from" | "value") {
                warnings.push(format!("json patch unknown field \"[{index}].{name}\""));
            }
        }
        let text = |name: &str| match members.get(name) {
            None | Some(Value::Null) => Ok(None),
            Some(Value::String(text)) => Ok(Some(text.clone())),
            Some(other) => Err(cannot_unmarshal(
                other,
                &format!("Go struct field jsonPatchOp.{name} of type string"),
            )),
        };
        Ok(Self {
            kind: text("op")?.unwrap_or_else(|| "unknown".to_owned()),
            path: text("path")?,
            from: text("from")?,
            value: members.get("value").cloned(),
        })
    }

    fn apply(&self, document: &mut Value, copied: &mut usize) -> Result<(), String> {
        match self.kind.as_str() {
            "add" => self.add(document),
            "remove" => self.remove(document),
            "replace" => self.replace(document),
            "move" => self.relocate(document),
            "test" => self.test(document),
            "copy" => self.copy(document, copied),
            other => Err(format!("Unexpected kind: {other}")),
        }
    }

    fn add(&self, document: &mut Value) -> Result<(), String> {
        let path = self.path()?;
        let (parent, key) = find(document, path).ok_or_else(|| {
            format!("add operation does not apply: doc is missing path: \"{path}\": missing value")
        })?;
        let value = self.value.clone().unwrap_or(Value::Null);
        insert(parent, &key, value).map_err(|error| in_path("add", path, &error))
    }

    fn remove(&self, document: &mut Value) -> Result<(), String> {
        let path = self.path()?;
        let (parent, key) = find(document, path).ok_or_else(|| {
            format!(
                "remove operation does not apply: doc is missing path: \"{path}\": missing value"
            )
        })?;
        take(parent, &key)
            .map(drop)
            .map_err(|error| in_path("remove", path, &error))
    }

    fn replace(&self, document: &mut Value) -> Result<(), String> {
        let path = self.path()?;
        if path.is_empty() {
            return match &self.value {
                Some(value @ (Value::Object(_) | Value::Array(_))) => {
                    *document = value.clone();
                    Ok(())
                }
                _ => Err("replace operation value must be object or array".to_owned()),
            };
        }
        let (parent, key) = find(document, path).ok_or_else(|| {
            format!("replace operation does not apply: doc is missing path: {path}: missing value")
        })?;
        let value = self.value.clone().unwrap_or(Value::Null);
        match parent {
            Value::Object(members) => {
                members.insert(key, value);
            }
            Value::Array(items) => {
                let index = existing_index(items.len(), &key).map_err(|_| {
                    format!(
                        "replace operation does not apply: doc is missing key: {path}: missing value"
                    )
                })?;
                items[index] = value;
            }
            _ => return Err(NOT_A_CONTAINER.to_owned()),
        }
        Ok(())
    }

    fn relocate(&self, document: &mut Value) -> Result<(), String> {
        let from = self.from("move")?;
        let (parent, key) = find(document, from).ok_or_else(|| {
            format!(
                "move operation does not apply: doc is missing from path: {from}: missing value"
            )
        })?;
        let value = take(parent, &key).map_err(|error| in_path("move", &key, &error))?;
        let path = self.path()?;
        let (parent, key) = find(document, path).ok_or_else(|| {
            format!(
                "move operation does not apply: doc is missing destination path: {path}: missing value"
            )
        })?;
        insert(parent, &key, value).map_err(|error| in_path("move", path, &error))
    }

    fn copy(&self, document: &mut Value, copied: &mut usize) -> Result<(), String> {
        let from = self.from("copy")?;
        let (parent, key) = find(document, from).ok_or_else(|| {
            format!(
                "copy operation does not apply: doc is missing from path: {from}: missing value"
            )
        })?;
        let value = get(parent, &key)
            .map_err(|error| format!("error in copy for from: '{from}': {error}"))?
            .clone();
        *copied = copied.saturating_add(encoded_length(&value));
        if *copied > MAX_COPIED_BYTES {
            return Err(format!(
                "Unable to complete the copy, the accumulated size increase of copy is {copied}, \
                 exceeding the limit {MAX_COPIED_BYTES}"
            ));
        }
        let path = self.path()?;
        let (parent, key) = find(document, path).ok_or_else(|| {
            format!(
                "copy operation does not apply: doc is missing destination path: {path}: missing value"
            )
        })?;
        insert(parent, &key, value)
            .map_err(|error| format!("error while adding value during copy: {error}"))
    }

    fn test(&self, document: &mut Value) -> Result<(), String> {
        let path = self.path()?;
        let expected = self.value.as_ref().unwrap_or(&Value::Null);
        let actual = if path.is_empty() {
            &*document
        } else {
            let (parent, key) = find(document, path).ok_or_else(|| {
                format!("test operation does not apply: is missing path: {path}: missing value")
            })?;
            // An absent member and null are the same thing here.
            get(parent, &key).map_err(|error| in_path("test", path, &error))?
        };
        if actual == expected {
            Ok(())
        } else {
            Err(format!("testing value {path} failed: test failed"))
        }
    }

    fn path(&self) -> Result<&str, String> {
        self.path.as_deref().ok_or_else(|| {
            format!(
                "{} operation failed to decode path: missing value",
                self.kind
            )
        })
    }

    fn from(&self, kind: &str) -> Result<&str, String> {
        self.from.as_deref().ok_or_else(|| {
            format!(
                "{kind} operation failed to decode from: operation, missing from field: missing value"
            )
        })
    }
}

const NOT_A_CONTAINER: &str = "unknown object type";

fn in_path(kind: &str, path: &str, error: &str) -> String {
    format!("error in {kind} for path: '{path}': {error}")
}

/// The container that holds the last segment of `path`, and that segment unescaped.
fn find<'a>(document: &'a mut Value, path: &str) -> Option<(&'a mut Value, String)> {
    let (parents, key) = path
        .strip_prefix('/')?
        .rsplit_once('/')
        .unwrap_or(("", path.get(1..).unwrap_or_default()));
    let mut container = document;
    if path.matches('/').count() > 1 {
        for segment in parents.split('/') {
            let segment = unescape(segment);
            container = match container {
                Value::Object(members) => members.get_mut(&segment)?,
                Value::Array(items) => {
                    let index = existing_index(items.len(), &segment).ok()?;
                    items.get_mut(index)?
                }
                _ => return None,
            };
        }
    }
    matches!(container, Value::Object(_) | Value::Array(_)).then(|| (container, unescape(key)))
}

fn unescape(segment: &str) -> String {
    if segment.contains('~') {
        segment.replace("~1", "/").replace("~0", "~")
    } else {
        segment.to_owned()
    }
}

fn get<'a>(parent: &'a Value, key: &str) -> Result<&'a Value, String> {
    match parent {
        Value::Object(members) => Ok(members.get(key).unwrap_or(&Value::Null)),
        Value::Array(items) => existing_index(items.len(), key).map(|index| &items[index]),
        _ => Err(NOT_A_CONTAINER.to_owned()),
    }
}

fn take(parent: &mut Value, key: &str) -> Result<Value, String> {
    match parent {
        Value::Object(members) => members
            .remove(key)
            .ok_or_else(|| format!("Unable to remove nonexistent key: {key}: missing value")),
        Value::Array(items) => existing_index(items.len(), key).map(|index| items.remove(index)),
        _ => Err(NOT_A_CONTAINER.to_owned()),
    }
}

fn insert(parent: &mut Value, key: &str, value: Value) -> Result<(), String> {
    match parent {
        Value::Object(members) => {
            members.insert(key.to_owned(), value);
        }
        Value::Array(items) if key == "-" => items.push(value),
        // One place more than there are items: the end.
        Value::Array(items) => {
            let index = index_within(items.len() + 1, key).map_err(|error| match error {
                IndexError::NotANumber(cause) => {
                    format!("value was not a proper array index: '{key}': {cause}")
                }
                IndexError::OutOfRange(text) => text,
            })?;
            items.insert(index, value);
        }
        _ => return Err(NOT_A_CONTAINER.to_owned()),
    }
    Ok(())
}

fn existing_index(length: usize, key: &str) -> Result<usize, String> {
    index_within(length, key).map_err(|error| match error {
        IndexError::NotANumber(text) | IndexError::OutOfRange(text) => text,
    })
}

enum IndexError {
    NotANumber(String),
    OutOfRange(String),
}

fn index_within(length: usize, key: &str) -> Result<usize, IndexError> {
    let number: i64 = key.parse().map_err(|_| {
        IndexError::NotANumber(format!("strconv.Atoi: parsing {key:?}: invalid syntax"))
    })?;
    let size = i64::try_from(length).unwrap_or(i64::MAX);
    let index = if number < 0 {
        number.saturating_add(size)
    } else {
        number
    };
    usize::try_from(index)
        .ok()
        .filter(|index| *index < length)
        .ok_or_else(|| {
            IndexError::OutOfRange(format!(
                "Unable to access invalid index: {number}: invalid index referenced"
            ))
        })
}

fn encoded_length(value: &Value) -> usize {
    struct Counter(usize);
    impl std::io::Write for Counter {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0 += bytes.len();
            Ok(bytes.len())
        }
        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }
    let mut counter = Counter(0);
    // Writing a JSON value to a counter cannot fail.
    let _ = serde_json::to_writer(&mut counter, value);
    counter.0
}

fn cannot_unmarshal(value: &Value, into: &str) -> JsonPatchError {
    JsonPatchError::Malformed(format!(
        "error decoding patch: json: cannot unmarshal {} into {into}",
        crate::value::go_json_type(value)
    ))
}

#[cfg(test)]
mod tests;
