//! Access from outside: finding fields, filling in data.

use super::{CloseInfo, Conjunct, Evaluator, NodeId, Status};
use crate::ir::ArcKind;
use crate::label::Label;
use crate::token::Pos;
use crate::value::Value;

impl Evaluator {
    /// The field of a node with a name as it is written in a path.
    pub(crate) fn find_field(&mut self, node: NodeId, name: &str) -> Option<NodeId> {
        self.finalize(node);
        let node = self.default_node(node, Pos::NONE).ok()?;
        if self.node(node).list.is_some() {
            let index: usize = name.parse().ok()?;
            return self.arc(node, Label::index(index));
        }
        let label = if name.starts_with('#') || name.starts_with('_') {
            self.labels.identifier(name, 0)
        } else {
            let name = name
                .strip_prefix('"')
                .and_then(|n| n.strip_suffix('"'))
                .unwrap_or(name);
            self.labels.string(name)
        };
        let arc = self.arc(node, label)?;
        (self.node(arc).arc != ArcKind::Optional).then_some(arc)
    }

    /// Adds data at a path below the root. Before the first evaluation this only lists one more
    /// conjunct; afterwards everything evaluated is discarded, because any of it may depend on
    /// the data.
    pub(crate) fn fill(&mut self, path: &[&str], data: Value) {
        let mut data = data;
        for name in path.iter().rev() {
            data = Value::structure([((*name).into(), data)]);
        }
        let source = self.data(data);
        let info = CloseInfo {
            key: u64::from(u32::MAX) + self.values.len() as u64,
            ..CloseInfo::default()
        };
        let conjunct = Conjunct {
            source,
            env: super::NO_ENV,
            info,
        };
        let root = self.root;
        if self.node(root).status == Status::New {
            self.node_mut(root).conjuncts.push(conjunct);
            return;
        }
        let conjuncts = self.node(root).conjuncts.clone();
        self.reset();
        let root = self.root;
        let slot = self.node_mut(root);
        slot.conjuncts = conjuncts;
        slot.conjuncts.push(conjunct);
    }

    /// Forgets everything evaluated.
    fn reset(&mut self) {
        let values = std::mem::take(&mut self.values);
        let mut fresh = Self::new(self.program.clone(), self.budget);
        fresh.values = values;
        fresh.labels = std::mem::take(&mut self.labels);
        fresh.strict = self.strict;
        fresh.alarm = self.alarm.take();
        fresh.counters.steps = self.counters.steps;
        *self = fresh;
    }
}
