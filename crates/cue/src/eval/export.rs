//! From evaluated nodes to plain values.

use std::sync::Arc;

use super::validate::MAX_NESTING;
use super::{Base, ErrId, Evaluator, NodeId, Val};
use crate::diagnostic::Code;
use crate::ir::ArcKind;
use crate::token::Pos;
use crate::value::Value;

impl Evaluator {
    /// The finished value of a node with defaults taken; the first problem otherwise.
    pub(crate) fn plain(&mut self, node: NodeId) -> Result<Value, ErrId> {
        self.finalize(node);
        let value = self.plain_at(node, 0);
        // A value that is cut short by a limit is no value.
        self.exhausted.map_or(value, Err)
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

    fn plain_at(&mut self, node: NodeId, depth: u32) -> Result<Value, ErrId> {
        if depth > MAX_NESTING {
            return Err(self.too_deep(node));
        }
        let original = node;
        let saved = std::mem::replace(&mut self.current, node);
        let found = self.default_node(node, Pos::NONE);
        let result = match found {
            Ok(node) => self.plain_resolved(node, original, depth),
            Err(_) => Err(self.incomplete_value(original)),
        };
        self.current = saved;
        result
    }

    fn plain_resolved(
        &mut self,
        node: NodeId,
        original: NodeId,
        depth: u32,
    ) -> Result<Value, ErrId> {
        let slot = self.node(node);
        if let Some(error) = slot.error {
            return Err(error);
        }
        if let Some(atom) = &slot.scalar.atom {
            return Ok(atom.clone());
        }
        if let Some(lazy) = &slot.lazy {
            return Ok(lazy.value.clone());
        }
        match slot.base {
            Base::List => {
                let mut items = Vec::new();
                for (label, arc) in self.ordered_arcs(node) {
                    if label.is_index() {
                        items.push(self.with_stack(super::STACK_FOR_READING, |this| {
                            this.plain_at(arc, depth + 1)
                        })?);
                    }
                }
                Ok(Value::List(items.into()))
            }
            Base::Struct => {
                let mut fields: Vec<(Arc<str>, Value)> = Vec::new();
                for (label, arc) in self.ordered_arcs(node) {
                    if !label.is_regular() {
                        continue;
                    }
                    match self.node(arc).arc {
                        ArcKind::Optional => continue,
                        ArcKind::Required => return Err(self.required(arc)),
                        ArcKind::Member => {}
                    }
                    let value = self.with_stack(super::STACK_FOR_READING, |this| {
                        this.plain_at(arc, depth + 1)
                    })?;
                    fields.push((self.labels.text(label), value));
                }
                Ok(Value::Struct(fields.into()))
            }
            _ => Err(self.incomplete_value(original)),
        }
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
