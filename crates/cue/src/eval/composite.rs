//! Lists and structs that builtins return: made of the nodes they were given.

use super::call::contains_opaque;
use super::{CloseInfo, Conjunct, Evaluator, NodeId, Source, Val};
use crate::ir::ArcKind;
use crate::label::Label;
use crate::token::Pos;
use crate::value::{Kind, Value};

impl Evaluator {
    /// A builtin's result, with the handles in it turned back into nodes.
    pub(crate) fn returned(&mut self, value: Value) -> Val {
        if !contains_opaque(&value) {
            return Val::Atom(value);
        }
        let node = self.detached();
        self.fill_opaque(node, value, CloseInfo::default());
        self.settle(node, false);
        Val::Node(node)
    }

    fn fill_opaque(&mut self, node: NodeId, value: Value, info: CloseInfo) {
        let source = match value {
            Value::Opaque(handle) => {
                let target = self.opaque.get(handle.0 as usize).copied();
                Source::Node(target.unwrap_or(node))
            }
            Value::List(items) if items.iter().any(contains_opaque) => {
                // The list itself first, so that the node knows its length.
                let items: Vec<Value> = items.to_vec();
                self.start(node);
                let by = super::scalar::Described::Kind(Kind::LIST);
                self.update_kind(node, Kind::LIST, by, Pos::NONE, info);
                let length = items.len();
                for (index, item) in items.into_iter().enumerate() {
                    if self.exhausted.is_some() {
                        break;
                    }
                    let label = Label::index(index);
                    let arc = self.new_node(node, label);
                    self.node_mut(node).push_arc(label, arc);
                    self.fill_opaque(arc, item, info.keyed(index as u64));
                }
                self.node_mut(node).list = Some(super::node::ListShape {
                    length,
                    closed: true,
                });
                self.node_mut(node).has_non_cyclic = true;
                self.node_mut(node).has_non_cycle = true;
                self.keep_list(node);
                return;
            }
            Value::Struct(fields) if fields.iter().any(|(_, value)| contains_opaque(value)) => {
                self.start(node);
                let slot = self.node_mut(node);
                slot.has_struct = true;
                slot.is_struct = true;
                slot.has_non_cyclic = true;
                slot.has_non_cycle = true;
                for (label, value) in fields.iter() {
                    let label = self.labels.string(label);
                    let arc = self.new_node(node, label);
                    self.node_mut(node).push_arc(label, arc);
                    self.fill_opaque(arc, value.clone(), info);
                }
                self.keep_list(node);
                return;
            }
            plain => self.data(plain),
        };
        self.add_conjunct(
            node,
            Conjunct {
                source,
                env: super::NO_ENV,
                info,
            },
        );
    }

    /// Makes a node built from handles referable: its conjunct is itself, element by element.
    fn keep_list(&mut self, node: NodeId) {
        let elements: Vec<NodeId> = self.node(node).arcs.iter().map(|(_, arc)| *arc).collect();
        let labels: Vec<Label> = self
            .node(node)
            .arcs
            .iter()
            .map(|(label, _)| *label)
            .collect();
        self.composites.push((labels, elements));
        let index = u32::try_from(self.composites.len() - 1).unwrap_or(u32::MAX);
        let conjunct = Conjunct {
            source: Source::Composite(index),
            env: super::NO_ENV,
            info: CloseInfo::default(),
        };
        self.node_mut(node).conjuncts.push(conjunct);
    }

    /// Adds the elements or fields of a composite to another node.
    pub(crate) fn insert_composite(&mut self, node: NodeId, index: u32, info: CloseInfo) {
        let Some((labels, elements)) = self.composites.get(index as usize).cloned() else {
            return;
        };
        self.update_cyclic_status(node, info);
        let list = labels.first().is_none_or(|label| label.is_index());
        let kind = if list { Kind::LIST } else { Kind::STRUCT };
        let by = super::scalar::Described::Kind(kind);
        self.update_kind(node, kind, by, Pos::NONE, info);
        if !list {
            let slot = self.node_mut(node);
            slot.has_struct = true;
            slot.is_struct = true;
        }
        let length = labels.len();
        for (position, (label, element)) in labels.into_iter().zip(elements).enumerate() {
            if self.exhausted.is_some() {
                break;
            }
            let info = CloseInfo {
                from_embed: false,
                ..info
            }
            .keyed(position as u64);
            let conjunct = Conjunct {
                source: Source::Node(element),
                env: super::NO_ENV,
                info,
            };
            self.insert_arc(node, label, ArcKind::Member, conjunct, crate::ir::MetaId(0));
        }
        if list && let Some(error) = self.set_length(node, length, true) {
            self.add_error(node, error);
        }
    }
}
