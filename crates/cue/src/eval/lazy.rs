//! Plain data that nothing else constrains stays plain.
//!
//! A context of a hundred fields of which a template reads three becomes three nodes. A node keeps
//! its data aside until something asks for all fields, or adds one of its own; a field asked for by
//! name is made alone.

use super::node::Lazy;
use super::{CloseInfo, Conjunct, Evaluator, NodeId, Status};
use crate::ir::{ArcKind, MetaId};
use crate::label::Label;
use crate::value::Value;

/// With more fields than this, all are made at once: finding one among them is a scan.
const SCAN_AT_MOST: usize = 64;

impl Evaluator {
    /// Keeps a list or struct aside as the data of a node; false if the node has other structure.
    pub(super) fn set_aside(&mut self, node: NodeId, value: &Value, info: CloseInfo) -> bool {
        let slot = self.node_mut(node);
        let alone = !slot.eager
            && slot.lazy.is_none()
            && slot.arcs.is_empty()
            && slot.patterns.is_empty()
            && slot.list.is_none();
        if alone {
            let value = value.clone();
            slot.lazy = Some(Box::new(Lazy { value, info }));
        }
        alone
    }

    /// Makes all fields or elements of a node that were kept aside.
    pub(crate) fn expand(&mut self, node: NodeId) {
        let Some(lazy) = self.node_mut(node).lazy.take() else {
            return;
        };
        let made = std::mem::take(&mut self.node_mut(node).arcs);
        self.node_mut(node).clear_arcs();
        match &lazy.value {
            Value::List(items) => {
                for (index, item) in items.iter().enumerate() {
                    if self.exhausted.is_some() {
                        break;
                    }
                    self.make(node, &made, Label::index(index), index, item, lazy.info);
                }
            }
            Value::Struct(fields) => {
                for (index, (name, field)) in fields.iter().enumerate() {
                    if self.exhausted.is_some() {
                        break;
                    }
                    let label = self.labels.string(name);
                    self.make(node, &made, label, index, field, lazy.info);
                }
            }
            _ => {}
        }
        if self.node(node).status == Status::Final {
            for index in 0..self.node(node).arcs.len() {
                let (_, arc) = self.node(node).arcs[index];
                self.finalize(arc);
            }
        }
    }

    /// Puts one field in its place, the one made before if there is one.
    fn make(
        &mut self,
        node: NodeId,
        made: &[(Label, NodeId)],
        label: Label,
        position: usize,
        value: &Value,
        info: CloseInfo,
    ) {
        match made.iter().find(|(known, _)| *known == label) {
            Some((_, arc)) => self.node_mut(node).push_arc(label, *arc),
            None => {
                self.insert_data(node, label, position, value, info);
            }
        }
    }

    /// The field of a node, made from the data kept aside if need be.
    pub(crate) fn arc(&mut self, node: NodeId, label: Label) -> Option<NodeId> {
        if let Some(arc) = self.node(node).find(label) {
            return Some(arc);
        }
        let lazy = self.node(node).lazy.as_deref()?;
        let fields = match &lazy.value {
            Value::Struct(fields) if fields.len() <= SCAN_AT_MOST && label.is_regular() => fields,
            _ => {
                self.expand(node);
                return self.node(node).find(label);
            }
        };
        let text = self.labels.spelling(label);
        let position = fields.iter().position(|(name, _)| **name == *text)?;
        let (value, info) = (fields[position].1.clone(), lazy.info);
        // Not through `insert_arc`, which takes an additional field as a reason to expand.
        let lazy = self.node_mut(node).lazy.take();
        let arc = self.insert_data(node, label, position, &value, info);
        let slot = self.node_mut(node);
        slot.lazy = lazy;
        if slot.status == Status::Final {
            self.finalize(arc);
        }
        Some(arc)
    }

    /// Adds one field or element of plain data to a node.
    pub(super) fn insert_data(
        &mut self,
        node: NodeId,
        label: Label,
        position: usize,
        value: &Value,
        info: CloseInfo,
    ) -> NodeId {
        let source = self.data(value.clone());
        let info = CloseInfo {
            from_embed: false,
            ..info
        }
        .keyed(position as u64);
        let conjunct = Conjunct {
            source,
            env: super::NO_ENV,
            info,
        };
        self.insert_arc(node, label, ArcKind::Member, conjunct, MetaId(0))
    }
}

#[cfg(test)]
mod tests {
    use crate::builtins::parse_json;
    use crate::host::{Budget, Template};

    /// The nodes it takes to evaluate a template with a context of a thousand fields.
    fn nodes(source: &str) -> u64 {
        let fields: Vec<String> = (0..1_000)
            .map(|index| format!(r#""f{index}": {{"value": [{index}]}}"#))
            .collect();
        let context = parse_json(&format!("{{{}}}", fields.join(","))).expect("it is JSON");
        let wrapped = parse_json(r#"{"name": "x"}"#).expect("it is JSON");
        let template = Template::compile(source).expect("it compiles");
        let mut evaluation = template.evaluate(Budget::default());
        evaluation.fill(&["context", "big"], context);
        evaluation.fill(&["context", "small"], wrapped);
        let root = evaluation.root();
        assert!(evaluation.validate(root).is_empty());
        evaluation.counters().nodes
    }

    #[test]
    fn data_that_nothing_reads_costs_no_nodes() {
        assert!(nodes("context: _\nout: context.small.name") < 20);
    }

    #[test]
    fn data_that_a_pattern_constrains_is_taken_apart() {
        assert!(nodes("context: big: [string]: {value: [...int]}") > 1_000);
    }
}
