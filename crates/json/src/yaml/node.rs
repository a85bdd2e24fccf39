//! YAML as `gopkg.in/yaml.v3` reads it into values of Go: with the types of scalars, and as leniently.

use std::collections::{HashMap, HashSet};

use base64::Engine;
use granit_parser::{Event, Marker, Parser, ScalarStyle, ScanError, Tag};

use super::decode::{
    CORE_NAMESPACE, INVALID_ANCHOR, NODE_BYTES, is_anchor, limits, remove_final_break,
};
use super::lenient::{self, Retry};
use super::resolve::{Resolved, full_timestamp, resolve_v3};
use super::{YamlOptions, open_end};

/// A value of YAML with the type that Go gives it.
#[derive(Debug, Clone, PartialEq, Default)]
pub enum Node {
    /// `nil`.
    #[default]
    Null,
    /// `bool`.
    Bool(bool),
    /// `int`.
    Integer(i64),
    /// `uint64`: an integer that `int` cannot hold.
    Unsigned(u64),
    /// `float64`, which can be infinite or not a number.
    Float(f64),
    /// `time.Time`: date, time and zone in the notation of RFC 3339.
    Timestamp(String),
    /// `string`.
    String(String),
    /// `[]interface {}`.
    List(Vec<Node>),
    /// `map[string]interface {}` if all keys are strings, `map[interface {}]interface {}` otherwise. Keys are
    /// scalars, and each occurs once.
    Map(Vec<(Node, Node)>),
}

/// Why a text cannot be read, in the words of Go's reader.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("yaml: {0}")]
pub struct NodeError(pub String);

/// Reads the first document as Go's `yaml.Unmarshal` does; an empty text is null. What follows the first
/// document is not looked at, apart from the next token.
pub fn first_node(text: &str) -> Result<Node, NodeError> {
    let options = YamlOptions::default();
    lenient::check(text).map_err(NodeError)?;
    let mut retry = Retry::new(text);
    loop {
        let text = retry.text();
        let mut composer = Composer::new(options);
        let error = match composer.run(text) {
            Ok(()) => return composer.finish().and_then(|node| retry.accept(node)),
            Err(Failure::Scan(error)) => error,
            Err(Failure::Node(error)) => return Err(error),
        };
        if composer.root.is_some() && lenient::may_follow(error.kind()) {
            return composer.finish().and_then(|node| retry.accept(node));
        }
        let open = composer.frames.last().map(|frame| frame.line);
        let words = lenient::words(text, &error, open);
        if !retry.repair(&error, words) {
            return Err(retry.into_error());
        }
    }
}

enum Failure {
    Scan(Box<ScanError>),
    Node(NodeError),
}

impl From<NodeError> for Failure {
    fn from(error: NodeError) -> Self {
        Self::Node(error)
    }
}

fn fail<T>(message: impl Into<String>) -> Result<T, NodeError> {
    Err(NodeError(message.into()))
}

/// A container that is not closed yet.
struct Frame {
    container: Container,
    anchor: usize,
    /// Where it begins, counted from 1.
    line: usize,
}

enum Container {
    List(Vec<Node>),
    Map {
        entries: Vec<(Node, Node)>,
        /// The keys as they are written, with their lines: Go compares these.
        written: HashMap<String, usize>,
        key: Option<Key>,
        merged: Option<Node>,
    },
}

enum Key {
    Node(Node),
    Merge,
}

/// A node as it is written.
struct Written {
    node: Node,
    text: String,
    is_merge: bool,
}

impl Written {
    fn plain(node: Node) -> Self {
        Self {
            node,
            text: String::new(),
            is_merge: false,
        }
    }
}

struct Composer {
    options: YamlOptions,
    frames: Vec<Frame>,
    anchors: HashMap<usize, Node>,
    names: HashMap<usize, String>,
    alias_bytes: usize,
    /// Keys that occur twice, in Go's words.
    duplicates: Vec<String>,
    root: Option<Node>,
}

impl Composer {
    fn new(options: YamlOptions) -> Self {
        Self {
            options,
            frames: Vec::new(),
            anchors: HashMap::new(),
            names: HashMap::new(),
            alias_bytes: 0,
            duplicates: Vec::new(),
            root: None,
        }
    }

    /// Reads events up to the end of the first document.
    fn run(&mut self, text: &str) -> Result<(), Failure> {
        let open_end = open_end(text);
        for event in Parser::new_from_str_with_options(text, limits(self.options)) {
            let (mut event, span) = event.map_err(|error| Failure::Scan(Box::new(error)))?;
            if matches!(event, Event::DocumentEnd) {
                break;
            }
            if open_end.is_some_and(|length| span.end.index() >= length) {
                remove_final_break(&mut event);
            }
            self.event(event, span.start)?;
        }
        Ok(())
    }

    fn finish(self) -> Result<Node, NodeError> {
        if self.duplicates.is_empty() {
            return Ok(self.root.unwrap_or_default());
        }
        fail(format!(
            "unmarshal errors:\n  {}",
            self.duplicates.join("\n  ")
        ))
    }

    fn event(&mut self, event: Event<'_>, at: Marker) -> Result<(), NodeError> {
        match event {
            Event::Scalar(text, style, anchor, tag) => {
                self.put(scalar(&text, style, tag.as_deref())?, anchor, at)
            }
            Event::Alias(anchor) => {
                let node = self.expand(anchor)?;
                self.put(Written::plain(node), 0, at)
            }
            Event::SequenceStart(_, anchor, _) => {
                self.open(Container::List(Vec::new()), anchor, at)
            }
            Event::MappingStart(_, anchor, _) => {
                let container = Container::Map {
                    entries: Vec::new(),
                    written: HashMap::new(),
                    key: None,
                    merged: None,
                };
                self.open(container, anchor, at)
            }
            Event::SequenceEnd | Event::MappingEnd => {
                let Some(frame) = self.frames.pop() else {
                    return Ok(());
                };
                let node = match frame.container {
                    Container::List(items) => Node::List(items),
                    Container::Map {
                        entries, merged, ..
                    } => Node::Map(merge(entries, merged)?),
                };
                self.put(Written::plain(node), frame.anchor, at)
            }
            Event::Anchor(anchor, name) => {
                if !is_anchor(&name) {
                    return fail(INVALID_ANCHOR);
                }
                self.names.insert(anchor, name.into_owned());
                Ok(())
            }
            _ => Ok(()),
        }
    }

    fn open(&mut self, container: Container, anchor: usize, at: Marker) -> Result<(), NodeError> {
        if self.frames.len() >= self.options.max_depth {
            return fail("exceeded max depth");
        }
        self.frames.push(Frame {
            container,
            anchor,
            line: at.line(),
        });
        Ok(())
    }

    /// A copy of what an alias stands for.
    fn expand(&mut self, anchor: usize) -> Result<Node, NodeError> {
        let Some(node) = self.anchors.get(&anchor) else {
            let name = self.names.get(&anchor).map_or("", String::as_str);
            return fail(format!("anchor '{name}' value contains itself"));
        };
        let (height, bytes) = measure(node);
        self.alias_bytes = self.alias_bytes.saturating_add(bytes);
        if self.alias_bytes > self.options.max_alias_bytes {
            return fail("document contains excessive aliasing");
        }
        if self.frames.len() + height > self.options.max_depth {
            return fail("exceeded max depth");
        }
        Ok(node.clone())
    }

    fn put(&mut self, written: Written, anchor: usize, at: Marker) -> Result<(), NodeError> {
        let Written {
            node,
            text,
            is_merge,
        } = written;
        if anchor != 0 {
            self.anchors.insert(anchor, node.clone());
        }
        let Some(frame) = self.frames.last_mut() else {
            self.root = Some(node);
            return Ok(());
        };
        match &mut frame.container {
            Container::List(items) => items.push(node),
            Container::Map {
                entries,
                written,
                key,
                merged,
            } => match key.take() {
                Some(Key::Node(key)) => entries.push((key, node)),
                Some(Key::Merge) => *merged = Some(node),
                None => {
                    if let Some(line) = written.get(&text) {
                        let (shown, now) = (bellwether_go::quote::quote(&text), at.line());
                        self.duplicates.push(format!(
                            "line {now}: mapping key {shown} already defined at line {line}"
                        ));
                    } else {
                        written.insert(text, at.line());
                    }
                    *key = Some(if is_merge {
                        Key::Merge
                    } else {
                        Key::Node(checked_key(node)?)
                    });
                }
            },
        }
        Ok(())
    }
}

/// Keys are scalars.
fn checked_key(key: Node) -> Result<Node, NodeError> {
    match key {
        Node::List(_) => fail("invalid map key: it is a list"),
        Node::Map(_) => fail("invalid map key: it is a map"),
        scalar => Ok(scalar),
    }
}

/// Adds the entries that `<<` refers to, where there are none of that key.
fn merge(
    mut entries: Vec<(Node, Node)>,
    merged: Option<Node>,
) -> Result<Vec<(Node, Node)>, NodeError> {
    let sources = match merged {
        None => return Ok(entries),
        Some(Node::List(sources)) => sources,
        Some(source) => vec![source],
    };
    let identity = |key: &Node| format!("{key:?}");
    let mut known: HashSet<String> = entries.iter().map(|(key, _)| identity(key)).collect();
    for source in sources {
        let Node::Map(source) = source else {
            return fail("map merge requires map or sequence of maps as the value");
        };
        entries.extend(
            source
                .into_iter()
                .filter(|(key, _)| known.insert(identity(key))),
        );
    }
    Ok(entries)
}

/// Levels of containers in a node, and its weight. Recursion ends at the depth limit, which every anchored
/// node has passed.
fn measure(node: &Node) -> (usize, usize) {
    let add = |(height, bytes): (usize, usize), (inner, more): (usize, usize)| {
        (height.max(inner + 1), bytes.saturating_add(more))
    };
    match node {
        Node::String(text) => (0, NODE_BYTES + text.len()),
        Node::List(items) => items.iter().map(measure).fold((1, NODE_BYTES), add),
        Node::Map(entries) => {
            let parts = entries.iter().flat_map(|(key, node)| [key, node]);
            parts.map(measure).fold((1, NODE_BYTES), add)
        }
        _ => (0, NODE_BYTES),
    }
}

fn scalar(text: &str, style: ScalarStyle, tag: Option<&Tag>) -> Result<Written, NodeError> {
    let is_plain = style == ScalarStyle::Plain;
    let tag = tag.map(|tag| tag.suffix_in_namespace(CORE_NAMESPACE));
    let tag = tag.as_ref().map(|tag| tag.as_deref());
    let node = match tag {
        None if is_plain => typed(resolve_v3(text), text),
        Some(Some("binary")) => binary(text)?,
        Some(Some(name @ ("bool" | "int" | "float" | "null" | "timestamp"))) => tagged(name, text)?,
        // Quoted, `!!str`, and tags of others: Go leaves the text as it is.
        _ => Node::String(text.to_owned()),
    };
    let is_merge = text == "<<" && (tag.is_none() && is_plain || tag == Some(Some("merge")));
    Ok(Written {
        node,
        text: text.to_owned(),
        is_merge,
    })
}

fn typed(resolved: Resolved, text: &str) -> Node {
    match resolved {
        Resolved::Null => Node::Null,
        Resolved::Bool(flag) => Node::Bool(flag),
        Resolved::Integer(integer) => Node::Integer(integer),
        Resolved::Unsigned(integer) => Node::Unsigned(integer),
        Resolved::Float(float) => Node::Float(float),
        Resolved::Timestamp => Node::Timestamp(full_timestamp(text)),
        Resolved::String => Node::String(text.to_owned()),
    }
}

fn tagged(tag: &str, text: &str) -> Result<Node, NodeError> {
    let resolved = resolve_v3(text);
    match (tag, resolved) {
        #[expect(clippy::cast_precision_loss, reason = "as Go converts")]
        ("float", Resolved::Integer(integer)) => Ok(Node::Float(integer as f64)),
        _ if resolved.tag().trim_start_matches('!') == tag => Ok(typed(resolved, text)),
        _ => fail(format!(
            "cannot decode {} `{text}` as a !!{tag}",
            resolved.tag()
        )),
    }
}

fn binary(text: &str) -> Result<Node, NodeError> {
    let compact: String = text.chars().filter(|c| !matches!(c, '\n' | '\r')).collect();
    match base64::engine::general_purpose::STANDARD.decode(compact) {
        Ok(bytes) => Ok(Node::String(String::from_utf8_lossy(&bytes).into_owned())),
        Err(_) => fail("!!binary value contains invalid base64 data"),
    }
}

#[cfg(test)]
mod tests;
