//! YAML events to values, without recursion: open containers are on a stack of frames.

use std::collections::{BTreeSet, HashMap};

use base64::Engine;
use granit_parser::{Event, Marker, Parser, ScalarStyle, Tag};
use serde_json::{Map, Number, Value};

use super::resolve::{Resolved, full_timestamp, resolve, resolve_v3};
use super::{Dialect, Document, DuplicateKey, DuplicateKeys, YamlError, YamlOptions, open_end};
use crate::strict::MAX_REPORTED_DUPLICATES;
use crate::{number, path};

pub(super) const CORE_NAMESPACE: &str = "tag:yaml.org,2002:";

/// Weight of a node against [`YamlOptions::max_alias_bytes`], beside the length of its text.
pub(super) const NODE_BYTES: usize = 32;

pub(super) fn documents(text: &str, options: YamlOptions) -> Result<Vec<Document>, YamlError> {
    let mut decoder = Decoder::new(options);
    let open_end = open_end(text).filter(|_| !options.adds_final_break);
    for event in Parser::new_from_str_with_options(text, limits(options)) {
        let (mut event, span) = event.map_err(|error| error_at(*error.marker(), error.info()))?;
        if open_end.is_some_and(|length| span.end.index() >= length) {
            remove_final_break(&mut event);
        }
        decoder.event(event, span.start)?;
    }
    Ok(decoder.documents)
}

pub(super) fn first_document(text: &str, options: YamlOptions) -> Result<Document, YamlError> {
    let mut decoder = Decoder::new(options);
    for event in Parser::new_from_str_with_options(text, limits(options)) {
        let (event, span) = event.map_err(|error| error_at(*error.marker(), error.info()))?;
        let is_end = matches!(event, Event::DocumentEnd);
        decoder.event(event, span.start)?;
        if is_end {
            break;
        }
    }
    Ok(decoder.documents.pop().unwrap_or_default())
}

/// Takes the line break from a block scalar that ends with a text whose last line has none.
pub(super) fn remove_final_break(event: &mut Event<'_>) {
    let Event::Scalar(text, ScalarStyle::Literal | ScalarStyle::Folded, ..) = event else {
        return;
    };
    if let Some(rest) = text.strip_suffix('\n') {
        *text = rest.to_owned().into();
    }
}

pub(super) fn limits(options: YamlOptions) -> granit_parser::Options {
    granit_parser::options! {
        emit_comments: false,
        emit_anchor_events: true,
        flow_nesting_limit: options.max_depth,
        block_nesting_limit: options.max_depth,
    }
}

fn error_at(marker: Marker, message: impl Into<String>) -> YamlError {
    YamlError {
        message: message.into(),
        line: marker.line(),
        column: marker.col() + 1,
    }
}

/// Names of anchors are as short as Go's reader takes them: `&lt;` is not one, as YAML 1.2 has it.
fn check_anchor(name: &str, at: Marker) -> Result<(), YamlError> {
    if is_anchor(name) {
        return Ok(());
    }
    Err(error_at(at, INVALID_ANCHOR))
}

/// What is wrong with an anchor that [`is_anchor`] refuses.
pub(super) const INVALID_ANCHOR: &str = "did not find expected alphabetic or numeric character";

pub(super) fn is_anchor(name: &str) -> bool {
    let is_taken = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-');
    name.bytes().all(is_taken)
}

/// A container that is not closed yet.
struct Frame {
    container: Container,
    /// Number of the anchor to define when it closes; 0 for none.
    anchor: usize,
}

enum Container {
    Sequence(Vec<Value>),
    Mapping {
        map: Map<String, Value>,
        /// The key whose value comes next.
        key: Option<Key>,
        /// Keys that so far come from `<<` only, which an explicit key may override.
        merged: BTreeSet<String>,
    },
}

enum Key {
    Text(String, Marker),
    Merge,
}

/// A node with what the position of a mapping key needs to know about it.
struct Node {
    value: Value,
    /// Set if this is `<<`, which is an instruction when it stands as a key.
    is_merge: bool,
}

struct Decoder {
    options: YamlOptions,
    frames: Vec<Frame>,
    anchors: HashMap<usize, Value>,
    alias_bytes: usize,
    duplicates: Vec<DuplicateKey>,
    documents: Vec<Document>,
}

impl Decoder {
    fn new(options: YamlOptions) -> Self {
        Self {
            options,
            frames: Vec::new(),
            anchors: HashMap::new(),
            alias_bytes: 0,
            duplicates: Vec::new(),
            documents: Vec::new(),
        }
    }

    fn event(&mut self, event: Event<'_>, at: Marker) -> Result<(), YamlError> {
        match event {
            Event::DocumentStart(..) => self.anchors.clear(),
            Event::Scalar(text, style, anchor, tag) => {
                let node = scalar(&text, style, tag.as_deref(), self.options.dialect, at)?;
                self.node(node, anchor, at)?;
            }
            Event::Alias(anchor) => {
                let value = self.expand(anchor, at)?;
                self.node(
                    Node {
                        value,
                        is_merge: false,
                    },
                    0,
                    at,
                )?;
            }
            Event::SequenceStart(_, anchor, _) => {
                self.open(Container::Sequence(Vec::new()), anchor, at)?;
            }
            Event::MappingStart(_, anchor, _) => {
                let container = Container::Mapping {
                    map: Map::new(),
                    key: None,
                    merged: BTreeSet::new(),
                };
                self.open(container, anchor, at)?;
            }
            Event::SequenceEnd | Event::MappingEnd => {
                if let Some(frame) = self.frames.pop() {
                    let value = match frame.container {
                        Container::Sequence(items) => Value::Array(items),
                        Container::Mapping { map, .. } => Value::Object(map),
                    };
                    self.node(
                        Node {
                            value,
                            is_merge: false,
                        },
                        frame.anchor,
                        at,
                    )?;
                }
            }
            Event::Anchor(_, name) => check_anchor(&name, at)?,
            // The stream's ends, document ends and comments say nothing about values.
            _ => {}
        }
        Ok(())
    }

    fn open(&mut self, container: Container, anchor: usize, at: Marker) -> Result<(), YamlError> {
        self.check_depth(1, at)?;
        self.frames.push(Frame { container, anchor });
        Ok(())
    }

    fn check_depth(&self, height: usize, at: Marker) -> Result<(), YamlError> {
        if self.frames.len() + height > self.options.max_depth {
            return Err(error_at(at, "exceeded max depth"));
        }
        Ok(())
    }

    /// A copy of what an alias stands for.
    fn expand(&mut self, anchor: usize, at: Marker) -> Result<Value, YamlError> {
        let Some(value) = self.anchors.get(&anchor) else {
            return Err(error_at(at, "anchor value contains itself"));
        };
        let (height, bytes) = measure(value);
        self.alias_bytes = self.alias_bytes.saturating_add(bytes);
        if self.alias_bytes > self.options.max_alias_bytes {
            return Err(error_at(at, "document contains excessive aliasing"));
        }
        self.check_depth(height, at)?;
        Ok(value.clone())
    }

    /// Puts a complete node where it belongs: into the open container, or as a document.
    fn node(&mut self, node: Node, anchor: usize, at: Marker) -> Result<(), YamlError> {
        if anchor != 0 {
            self.anchors.insert(anchor, node.value.clone());
        }
        let Some(frame) = self.frames.last_mut() else {
            let duplicates = std::mem::take(&mut self.duplicates);
            if !node.value.is_null() {
                self.documents.push(Document {
                    value: node.value,
                    duplicates,
                });
            }
            return Ok(());
        };
        match &mut frame.container {
            Container::Sequence(items) => items.push(node.value),
            Container::Mapping { map, key, merged } => match key.take() {
                None if node.is_merge => *key = Some(Key::Merge),
                None => {
                    let text = key_text(node.value, self.options.dialect, at)?;
                    *key = Some(Key::Text(text, at));
                }
                Some(Key::Merge) => merge(map, merged, node.value, self.options.dialect, at)?,
                Some(Key::Text(text, key_at)) => {
                    let is_merged = !merged.is_empty() && merged.remove(&text);
                    let is_known = map.contains_key(&text) && !is_merged;
                    if is_known {
                        self.duplicate(&text, key_at)?;
                    }
                    self.insert(text, node.value);
                }
            },
        }
        Ok(())
    }

    fn insert(&mut self, key: String, value: Value) {
        if let Some(Frame {
            container: Container::Mapping { map, .. },
            ..
        }) = self.frames.last_mut()
        {
            map.insert(key, value);
        }
    }

    fn duplicate(&mut self, key: &str, at: Marker) -> Result<(), YamlError> {
        let path = self.path_of(key);
        if self.options.duplicate_keys == DuplicateKeys::Error {
            return Err(error_at(
                at,
                format!("key {key:?} already set in map ({path})"),
            ));
        }
        if self.duplicates.len() < MAX_REPORTED_DUPLICATES {
            let (key, line) = (key.to_owned(), at.line());
            self.duplicates.push(DuplicateKey { key, path, line });
        }
        Ok(())
    }

    fn path_of(&self, key: &str) -> String {
        let mut path = String::new();
        for frame in &self.frames {
            match &frame.container {
                Container::Sequence(items) => path::push_index(&mut path, items.len()),
                Container::Mapping {
                    key: Some(Key::Text(text, _)),
                    ..
                } => {
                    path::push_key(&mut path, text);
                }
                Container::Mapping { .. } => {}
            }
        }
        path::push_key(&mut path, key);
        path
    }
}

/// Levels of containers in a value, and its weight. Recursion ends at the depth limit, which every
/// anchored value has passed.
fn measure(value: &Value) -> (usize, usize) {
    let add = |(height, bytes): (usize, usize), (child_height, child_bytes): (usize, usize)| {
        (
            height.max(child_height + 1),
            bytes.saturating_add(child_bytes),
        )
    };
    match value {
        Value::String(text) => (0, NODE_BYTES + text.len()),
        Value::Array(items) => items.iter().map(measure).fold((1, NODE_BYTES), add),
        Value::Object(map) => map
            .iter()
            .map(|(key, value)| {
                let (height, bytes) = measure(value);
                (height, bytes + key.len())
            })
            .fold((1, NODE_BYTES), add),
        _ => (0, NODE_BYTES),
    }
}

/// Adds the keys of a mapping, or of a list of mappings of which the first wins. In the dialect of
/// Kubernetes keys that are already there are replaced, whatever the specification of `<<` says.
fn merge(
    map: &mut Map<String, Value>,
    merged: &mut BTreeSet<String>,
    source: Value,
    dialect: Dialect,
    at: Marker,
) -> Result<(), YamlError> {
    let sources = match source {
        Value::Array(sources) => sources,
        source => vec![source],
    };
    for source in sources.into_iter().rev() {
        let Value::Object(mut source) = source else {
            let message = "map merge requires map or sequence of maps as the value";
            return Err(error_at(at, message));
        };
        if dialect == Dialect::GoYamlV3 {
            source.retain(|key, _| !map.contains_key(key) || merged.contains(key));
        }
        merged.extend(source.keys().filter(|key| !map.contains_key(*key)).cloned());
        map.extend(source);
    }
    Ok(())
}

/// JSON has string keys only.
fn key_text(key: Value, dialect: Dialect, at: Marker) -> Result<String, YamlError> {
    match key {
        Value::String(text) => Ok(text),
        Value::Bool(_) | Value::Number(_) if dialect == Dialect::GoYamlV3 => {
            let message = format!("the key {key} is not a string: put it in quotes");
            Err(error_at(at, message))
        }
        Value::Bool(flag) => Ok(flag.to_string()),
        Value::Number(number) => match number.as_f64() {
            Some(float) if !number.is_i64() => Ok(number::go_general_float(float)),
            _ => Ok(number.to_string()),
        },
        Value::Null => Err(error_at(at, "unsupported map key of type: null")),
        Value::Array(_) | Value::Object(_) => {
            Err(error_at(at, "invalid map key: must be a scalar"))
        }
    }
}

fn scalar(
    text: &str,
    style: ScalarStyle,
    tag: Option<&Tag>,
    dialect: Dialect,
    at: Marker,
) -> Result<Node, YamlError> {
    let is_plain = style == ScalarStyle::Plain;
    let Some(tag) = tag else {
        let resolved = match dialect {
            _ if !is_plain => Resolved::String,
            Dialect::Kubernetes => resolve(text),
            Dialect::GoYamlV3 => resolve_v3(text),
        };
        let value = match resolved {
            Resolved::Timestamp if dialect == Dialect::GoYamlV3 => {
                Value::String(full_timestamp(text))
            }
            resolved => to_value(resolved, text, at)?,
        };
        return Ok(Node {
            value,
            is_merge: is_plain && text == "<<",
        });
    };
    let tag = tag.suffix_in_namespace(CORE_NAMESPACE);
    let is_merge = text == "<<" && tag.as_deref() == Some("merge");
    let value = match tag.as_deref() {
        Some("binary") => binary(text, at)?,
        Some(name @ ("bool" | "int" | "float" | "null" | "timestamp")) => tagged(name, text, at)?,
        // `!!str`, and tags of others: Go leaves the text as it is.
        _ => Value::String(text.to_owned()),
    };
    Ok(Node { value, is_merge })
}

/// See [`super::plain_scalar`].
pub(super) fn plain_scalar(text: &str) -> Value {
    match resolve_v3(text) {
        Resolved::Timestamp => Value::String(full_timestamp(text)),
        resolved => to_value(resolved, text, Marker::default())
            .unwrap_or_else(|_| Value::String(text.to_owned())),
    }
}

fn tagged(tag: &str, text: &str, at: Marker) -> Result<Value, YamlError> {
    let resolved = resolve(text);
    let is_integer = matches!(resolved, Resolved::Integer(_));
    if resolved.tag().trim_start_matches('!') != tag && !(is_integer && tag == "float") {
        let message = format!("cannot decode {} `{text}` as a !!{tag}", resolved.tag());
        return Err(error_at(at, message));
    }
    to_value(resolved, text, at)
}

fn binary(text: &str, at: Marker) -> Result<Value, YamlError> {
    let compact: String = text.chars().filter(|c| !matches!(c, '\n' | '\r')).collect();
    let bytes = base64::engine::general_purpose::STANDARD
        .decode(compact)
        .map_err(|_| error_at(at, "!!binary value contains invalid base64 data"))?;
    Ok(Value::String(String::from_utf8_lossy(&bytes).into_owned()))
}

fn to_value(resolved: Resolved, text: &str, at: Marker) -> Result<Value, YamlError> {
    let unsupported = |name: &str| error_at(at, format!("unsupported value: {name}"));
    Ok(match resolved {
        Resolved::Null => Value::Null,
        Resolved::Bool(flag) => Value::Bool(flag),
        Resolved::Integer(integer) => Value::from(integer),
        Resolved::Unsigned(integer) => Value::Number(number::normalize(&Number::from(integer))),
        Resolved::Float(float) => {
            Value::Number(number::from_f64(float).ok_or_else(|| unsupported(text))?)
        }
        Resolved::Timestamp | Resolved::String => Value::String(text.to_owned()),
    })
}
