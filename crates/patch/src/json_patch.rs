//! JSON Patch (RFC 6902) as an API server applies it.
//!
//! [`JsonPatch::parse`] separates a malformed patch (the client's mistake in any case) from one that
//! does not fit the document ([`JsonPatch::apply`]); the two become different HTTP statuses.
//!
//! Kubernetes uses `github.com/evanphx/json-patch` v4, which is more lenient than the RFC, and
//! clients rely on that: `replace` of an absent object member adds it, `copy` from an absent member
//! copies `null`, negative array indexes count from the end. We follow it there.

mod document;

use serde_json::{Map, Value};
use thiserror::Error;

use self::document::Node;
use crate::MAX_DEPTH;

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

/// Where an operation does something.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    /// Names of members and numbers of items, from the root.
    pub segments: Vec<String>,
    /// True if the operation adds or removes an item where the last segment is one of a list.
    pub adds_or_removes: bool,
}

impl Place {
    fn path(&self) -> String {
        let segments = self.segments.iter();
        segments.fold(String::new(), |path, it| child_path(&path, it))
    }
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

    /// The place of each operation, in order; nothing if one names two places, or none.
    pub fn places(&self) -> Option<Vec<Place>> {
        let operations = self.operations.iter();
        let place = |operation: &Operation| {
            let adds_or_removes = match operation.kind.as_str() {
                "test" | "replace" => false,
                "add" | "remove" => true,
                _ => return None,
            };
            let path = operation.path.as_deref()?.strip_prefix('/')?;
            Some(Place {
                segments: path.split('/').map(unescape).collect(),
                adds_or_removes,
            })
        };
        operations.map(place).collect()
    }

    /// The same operations at other places: as many as there are operations.
    #[must_use]
    pub fn at_places(&self, places: &[Place]) -> Self {
        let operations = self.operations.iter().zip(places);
        let moved = operations.map(|(operation, place)| Operation {
            path: Some(place.path()),
            ..operation.clone()
        });
        Self {
            operations: moved.collect(),
            warnings: self.warnings.clone(),
        }
    }

    /// Applies every operation in order, or none.
    pub fn apply(&self, document: Value) -> Result<Value, JsonPatchError> {
        let mut document = Document::new(document);
        for operation in &self.operations {
            operation
                .apply(&mut document)
                .map_err(JsonPatchError::NotApplicable)?;
        }
        document.finish().map_err(JsonPatchError::NotApplicable)
    }
}

/// A document that is being patched, and what bounds that.
struct Document {
    root: Node,
    /// Bytes that `copy` has added so far.
    copied: usize,
    /// The document is nested no deeper than this.
    depth: usize,
    /// How often the depth may be measured again.
    measurements: usize,
}

impl Document {
    /// How often the depth is measured at most: once for hundreds of operations that nest.
    const MEASUREMENTS: usize = 64;

    fn new(document: Value) -> Self {
        let root = Node::from(document);
        Self {
            depth: root.depth(),
            root,
            copied: 0,
            measurements: Self::MEASUREMENTS,
        }
    }

    /// The document, unless it is nested too deep.
    fn finish(self) -> Result<Value, String> {
        if self.depth > MAX_DEPTH && self.root.depth() > MAX_DEPTH {
            return Err(too_deep());
        }
        Ok(self.root.into_value())
    }

    /// What was at a path is nested no deeper than this.
    fn depth_below(&self, path: &str) -> usize {
        self.depth.saturating_sub(path.matches('/').count())
    }

    /// Takes note that something of this depth was put at a path.
    fn nest(&mut self, path: &str, depth: usize) -> Result<(), String> {
        let place = path.matches('/').count();
        self.depth = self.depth.max(place + depth);
        if self.depth <= 2 * MAX_DEPTH {
            return Ok(());
        }
        if self.measurements == 0 || self.root.depth() > MAX_DEPTH {
            return Err(too_deep());
        }
        self.measurements -= 1;
        self.depth = self.root.depth();
        Ok(())
    }

    /// The container that holds the last segment of `path`, opened, and that segment unescaped.
    fn find(&mut self, path: &str) -> Option<(&mut Node, String)> {
        let (parents, key) = path
            .strip_prefix('/')?
            .rsplit_once('/')
            .unwrap_or(("", path.get(1..).unwrap_or_default()));
        let mut container = &mut self.root;
        container.open();
        if path.matches('/').count() > 1 {
            for segment in parents.split('/') {
                let segment = unescape(segment);
                container = match container {
                    Node::Object(members) => members.get_mut(&segment)?,
                    Node::List(items) => {
                        let index = existing_index(items.len(), &segment).ok()?;
                        items.get_mut(index)?
                    }
                    Node::Closed(_) => return None,
                };
                container.open();
            }
        }
        (!matches!(container, Node::Closed(_))).then(|| (container, unescape(key)))
    }
}

fn too_deep() -> String {
    format!("nested deeper than {MAX_DEPTH} levels")
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

    fn apply(&self, document: &mut Document) -> Result<(), String> {
        match self.kind.as_str() {
            "add" => self.add(document),
            "remove" => self.remove(document),
            "replace" => self.replace(document),
            "move" => self.relocate(document),
            "test" => self.test(document),
            "copy" => self.copy(document),
            other => Err(format!("Unexpected kind: {other}")),
        }
    }

    fn add(&self, document: &mut Document) -> Result<(), String> {
        let path = self.path()?;
        let (parent, key) = document.find(path).ok_or_else(|| {
            format!("add operation does not apply: doc is missing path: \"{path}\": missing value")
        })?;
        let value = Node::from(self.value.clone().unwrap_or(Value::Null));
        let depth = value.depth();
        insert(parent, &key, value).map_err(|error| in_path("add", path, &error))?;
        document.nest(path, depth)
    }

    fn remove(&self, document: &mut Document) -> Result<(), String> {
        let path = self.path()?;
        let (parent, key) = document.find(path).ok_or_else(|| {
            format!(
                "remove operation does not apply: doc is missing path: \"{path}\": missing value"
            )
        })?;
        take(parent, &key)
            .map(drop)
            .map_err(|error| in_path("remove", path, &error))
    }

    fn replace(&self, document: &mut Document) -> Result<(), String> {
        let path = self.path()?;
        if path.is_empty() {
            return match &self.value {
                Some(value @ (Value::Object(_) | Value::Array(_))) => {
                    document.root = value.clone().into();
                    document.nest(path, document.root.depth())
                }
                _ => Err("replace operation value must be object or array".to_owned()),
            };
        }
        let (parent, key) = document.find(path).ok_or_else(|| {
            format!("replace operation does not apply: doc is missing path: {path}: missing value")
        })?;
        let value = Node::from(self.value.clone().unwrap_or(Value::Null));
        let depth = value.depth();
        match parent {
            Node::Object(members) => {
                members.insert(key, value);
            }
            Node::List(items) => {
                let index = existing_index(items.len(), &key).ok();
                let Some(item) = index.and_then(|index| items.get_mut(index)) else {
                    return Err(format!(
                        "replace operation does not apply: doc is missing key: {path}: missing value"
                    ));
                };
                *item = value;
            }
            Node::Closed(_) => return Err(NOT_A_CONTAINER.to_owned()),
        }
        document.nest(path, depth)
    }

    fn relocate(&self, document: &mut Document) -> Result<(), String> {
        let from = self.from("move")?;
        let (parent, key) = document.find(from).ok_or_else(|| {
            format!(
                "move operation does not apply: doc is missing from path: {from}: missing value"
            )
        })?;
        let value = take(parent, &key).map_err(|error| in_path("move", &key, &error))?;
        let path = self.path()?;
        let (parent, key) = document.find(path).ok_or_else(|| {
            format!(
                "move operation does not apply: doc is missing destination path: {path}: missing value"
            )
        })?;
        insert(parent, &key, value).map_err(|error| in_path("move", path, &error))?;
        document.nest(path, document.depth_below(from))
    }

    fn copy(&self, document: &mut Document) -> Result<(), String> {
        let from = self.from("copy")?;
        let (parent, key) = document.find(from).ok_or_else(|| {
            format!(
                "copy operation does not apply: doc is missing from path: {from}: missing value"
            )
        })?;
        let value = get(parent, &key)
            .map_err(|error| format!("error in copy for from: '{from}': {error}"))?
            .map_or(Value::Null, |node| node.clone().into_value());
        let copied = document.copied.saturating_add(encoded_length(&value));
        if copied > MAX_COPIED_BYTES {
            return Err(format!(
                "Unable to complete the copy, the accumulated size increase of copy is {copied}, \
                 exceeding the limit {MAX_COPIED_BYTES}"
            ));
        }
        document.copied = copied;
        let path = self.path()?;
        let (parent, key) = document.find(path).ok_or_else(|| {
            format!(
                "copy operation does not apply: doc is missing destination path: {path}: missing value"
            )
        })?;
        let value = Node::from(value);
        let depth = value.depth();
        insert(parent, &key, value)
            .map_err(|error| format!("error while adding value during copy: {error}"))?;
        document.nest(path, depth)
    }

    fn test(&self, document: &mut Document) -> Result<(), String> {
        let path = self.path()?;
        let expected = self.value.as_ref().unwrap_or(&Value::Null);
        let actual = if path.is_empty() {
            Some(&document.root)
        } else {
            let (parent, key) = document.find(path).ok_or_else(|| {
                format!("test operation does not apply: is missing path: {path}: missing value")
            })?;
            // An absent member and null are the same thing here.
            get(parent, &key).map_err(|error| in_path("test", path, &error))?
        };
        if actual.map_or(expected.is_null(), |actual| actual.is(expected)) {
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

fn unescape(segment: &str) -> String {
    if segment.contains('~') {
        segment.replace("~1", "/").replace("~0", "~")
    } else {
        segment.to_owned()
    }
}

/// A member or an item; nothing for a member that is not there, which counts as null.
fn get<'a>(parent: &'a Node, key: &str) -> Result<Option<&'a Node>, String> {
    match parent {
        Node::Object(members) => Ok(members.get(key)),
        Node::List(items) => existing_index(items.len(), key).map(|index| items.get(index)),
        Node::Closed(_) => Err(NOT_A_CONTAINER.to_owned()),
    }
}

fn take(parent: &mut Node, key: &str) -> Result<Node, String> {
    let removed = match parent {
        Node::Object(members) => members.remove(key),
        Node::List(items) => {
            let index = existing_index(items.len(), key)?;
            items.remove(index)
        }
        Node::Closed(_) => return Err(NOT_A_CONTAINER.to_owned()),
    };
    removed.ok_or_else(|| format!("Unable to remove nonexistent key: {key}: missing value"))
}

fn insert(parent: &mut Node, key: &str, value: Node) -> Result<(), String> {
    match parent {
        Node::Object(members) => {
            members.insert(key.to_owned(), value);
        }
        Node::List(items) if key == "-" => items.insert(items.len(), value),
        // One place more than there are items: the end.
        Node::List(items) => {
            let index = index_within(items.len() + 1, key).map_err(|error| match error {
                IndexError::NotANumber(cause) => {
                    format!("value was not a proper array index: '{key}': {cause}")
                }
                IndexError::OutOfRange(text) => text,
            })?;
            items.insert(index, value);
        }
        Node::Closed(_) => return Err(NOT_A_CONTAINER.to_owned()),
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
