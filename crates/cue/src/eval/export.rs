//! From evaluated nodes to plain values.

use std::sync::Arc;

use super::validate::MAX_NESTING;
use super::{Base, ErrId, Evaluator, NodeId, Val};
use crate::builtins::{write_json_string, write_json_value};
use crate::diagnostic::Code;
use crate::ir::ArcKind;
use crate::label::{Interner, Label};
use crate::token::Pos;
use crate::value::Value;

/// A value with members.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Composite {
    List,
    Struct,
}

/// What takes in a finished value, part after part.
trait Sink {
    /// A value without nodes below it: a scalar, or data.
    fn value(&mut self, value: &Value);
    fn begin(&mut self, composite: Composite);
    /// What follows is the next element.
    fn element(&mut self);
    /// What follows is the value of a field.
    fn field(&mut self, labels: &Interner, label: Label);
    fn end(&mut self, composite: Composite);
}

/// Makes a plain value.
#[derive(Default)]
struct Tree {
    /// The lists and structs around what comes next.
    open: Vec<Members>,
    finished: Option<Value>,
}

enum Members {
    List(Vec<Value>),
    /// The label comes before its value.
    Struct(Vec<(Arc<str>, Value)>),
}

impl Tree {
    fn put(&mut self, value: Value) {
        match self.open.last_mut() {
            Some(Members::List(items)) => items.push(value),
            Some(Members::Struct(fields)) => {
                if let Some((_, field)) = fields.last_mut() {
                    *field = value;
                }
            }
            None => self.finished = Some(value),
        }
    }
}

impl Sink for Tree {
    fn value(&mut self, value: &Value) {
        self.put(value.clone());
    }

    fn begin(&mut self, composite: Composite) {
        self.open.push(match composite {
            Composite::List => Members::List(Vec::new()),
            Composite::Struct => Members::Struct(Vec::new()),
        });
    }

    fn element(&mut self) {}

    fn field(&mut self, labels: &Interner, label: Label) {
        if let Some(Members::Struct(fields)) = self.open.last_mut() {
            fields.push((labels.text(label), Value::Null));
        }
    }

    fn end(&mut self, _: Composite) {
        match self.open.pop() {
            Some(Members::List(items)) => self.put(Value::List(items.into())),
            Some(Members::Struct(fields)) => self.put(Value::Struct(fields.into())),
            None => {}
        }
    }
}

/// Makes a value of `serde_json`, without a value of ours in between.
#[derive(Default)]
struct JsonTree {
    /// The lists and objects around what comes next.
    open: Vec<JsonMembers>,
    finished: serde_json::Value,
}

enum JsonMembers {
    Array(Vec<serde_json::Value>),
    /// The members so far, and the name of what comes next.
    Object(serde_json::Map<String, serde_json::Value>, String),
}

impl JsonTree {
    fn put(&mut self, value: serde_json::Value) {
        match self.open.last_mut() {
            Some(JsonMembers::Array(items)) => items.push(value),
            Some(JsonMembers::Object(members, name)) => {
                members.insert(std::mem::take(name), value);
            }
            None => self.finished = value,
        }
    }
}

impl Sink for JsonTree {
    fn value(&mut self, value: &Value) {
        self.put(crate::bridge::to_json(value));
    }

    fn begin(&mut self, composite: Composite) {
        self.open.push(match composite {
            Composite::List => JsonMembers::Array(Vec::new()),
            Composite::Struct => JsonMembers::Object(serde_json::Map::new(), String::new()),
        });
    }

    fn element(&mut self) {}

    fn field(&mut self, labels: &Interner, label: Label) {
        if let Some(JsonMembers::Object(_, name)) = self.open.last_mut() {
            labels.spelling(label).clone_into(name);
        }
    }

    fn end(&mut self, _: Composite) {
        match self.open.pop() {
            Some(JsonMembers::Array(items)) => self.put(items.into()),
            Some(JsonMembers::Object(members, _)) => self.put(members.into()),
            None => {}
        }
    }
}

/// Writes JSON.
#[derive(Default)]
struct JsonText {
    output: String,
}

impl JsonText {
    /// Puts a comma before all members but the first.
    fn separate(&mut self) {
        if !self.output.ends_with(['[', '{']) {
            self.output.push(',');
        }
    }
}

impl Sink for JsonText {
    fn value(&mut self, value: &Value) {
        write_json_value(&mut self.output, value);
    }

    fn begin(&mut self, composite: Composite) {
        self.output.push(match composite {
            Composite::List => '[',
            Composite::Struct => '{',
        });
    }

    fn element(&mut self) {
        self.separate();
    }

    fn field(&mut self, labels: &Interner, label: Label) {
        self.separate();
        write_json_string(&mut self.output, labels.spelling(label));
        self.output.push(':');
    }

    fn end(&mut self, composite: Composite) {
        self.output.push(match composite {
            Composite::List => ']',
            Composite::Struct => '}',
        });
    }
}

impl Evaluator {
    /// The finished value of a node with defaults taken; the first problem otherwise.
    pub(crate) fn plain(&mut self, node: NodeId) -> Result<Value, ErrId> {
        self.finalize(node);
        let mut tree = Tree::default();
        let written = self.write_at(node, 0, &mut tree);
        // A value that is cut short by a limit is no value.
        self.exhausted
            .map_or(written, Err)
            .map(|()| tree.finished.unwrap_or(Value::Null))
    }

    pub(crate) fn plain_value(&mut self, value: &Val) -> Result<Value, ErrId> {
        match value {
            Val::Atom(value) => self.without_handles(value),
            Val::Node(node) => self.plain(*node),
            Val::Function(_) => Err(self.error_at(Code::Eval, Pos::NONE, "function used as value")),
        }
    }

    fn without_handles(&mut self, value: &Value) -> Result<Value, ErrId> {
        match value {
            Value::Opaque(handle) => {
                let node = self
                    .opaque
                    .get(handle.0 as usize)
                    .copied()
                    .unwrap_or(self.root);
                self.plain(node)
            }
            Value::List(items) => {
                let items: Result<Vec<Value>, ErrId> = items
                    .iter()
                    .map(|item| self.without_handles(item))
                    .collect();
                Ok(Value::List(items?.into()))
            }
            other => Ok(other.clone()),
        }
    }

    /// The finished value of a node as JSON text on one line, without a value in between.
    pub(crate) fn json(&mut self, node: NodeId) -> Result<String, ErrId> {
        self.finalize(node);
        let mut text = JsonText::default();
        let written = self.write_at(node, 0, &mut text);
        self.exhausted.map_or(written, Err).map(|()| text.output)
    }

    /// The finished value of a node as `serde_json` has it.
    pub(crate) fn json_value(&mut self, node: NodeId) -> Result<serde_json::Value, ErrId> {
        self.finalize(node);
        let mut tree = JsonTree::default();
        let written = self.write_at(node, 0, &mut tree);
        self.exhausted.map_or(written, Err).map(|()| tree.finished)
    }

    /// Writes what a node and everything below it is.
    fn write_at(&mut self, node: NodeId, depth: u32, sink: &mut impl Sink) -> Result<(), ErrId> {
        if depth > MAX_NESTING {
            return Err(self.too_deep(node));
        }
        let original = node;
        let saved = std::mem::replace(&mut self.current, node);
        let found = self.default_node(node, Pos::NONE);
        let result = match found {
            Ok(node) => self.write_resolved(node, original, depth, sink),
            Err(_) => Err(self.incomplete_value(original)),
        };
        self.current = saved;
        result
    }

    fn write_resolved(
        &mut self,
        node: NodeId,
        original: NodeId,
        depth: u32,
        sink: &mut impl Sink,
    ) -> Result<(), ErrId> {
        let slot = self.node(node);
        if let Some(error) = slot.error {
            return Err(error);
        }
        if let Some(atom) = &slot.scalar.atom {
            sink.value(atom);
            return Ok(());
        }
        if let Some(lazy) = &slot.lazy {
            sink.value(&lazy.value);
            return Ok(());
        }
        let composite = match slot.base {
            Base::List => Composite::List,
            Base::Struct => Composite::Struct,
            _ => return Err(self.incomplete_value(original)),
        };
        sink.begin(composite);
        let sorted = (!self.is_in_order(node)).then(|| self.ordered_arcs(node));
        for index in 0..self.node(node).arcs.len() {
            let (label, arc) = match &sorted {
                Some(sorted) => sorted[index],
                None => self.node(node).arcs[index],
            };
            if composite == Composite::List && label.is_index() {
                sink.element();
            } else if composite == Composite::Struct && label.is_regular() {
                match self.node(arc).arc {
                    ArcKind::Optional => continue,
                    ArcKind::Required => return Err(self.required(arc)),
                    ArcKind::Member => {}
                }
                sink.field(&self.labels, label);
            } else {
                continue;
            }
            self.with_stack(super::limit::STACK_FOR_READING, |this| {
                this.write_at(arc, depth + 1, sink)
            })?;
        }
        sink.end(composite);
        Ok(())
    }

    pub(crate) fn required(&mut self, arc: NodeId) -> ErrId {
        let saved = std::mem::replace(&mut self.current, arc);
        let pos = self.node_pos(arc);
        let error = self.error_at(Code::Incomplete, pos, "field is required but not present");
        self.current = saved;
        error
    }

    pub(crate) fn incomplete_value(&mut self, node: NodeId) -> ErrId {
        let saved = std::mem::replace(&mut self.current, node);
        let text = self.show_node(node);
        let pos = self.node_pos(node);
        let error = self.error_at(Code::Incomplete, pos, format!("incomplete value {text}"));
        self.current = saved;
        error
    }
}
