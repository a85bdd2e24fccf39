//! Access from outside: finding fields, unifying values.

use super::{Evaluator, NodeId};
use crate::ir::ArcKind;
use crate::label::Label;
use crate::token::Pos;

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

    /// A node that is the unification of two others.
    pub(crate) fn unify(&mut self, left: NodeId, right: NodeId) -> NodeId {
        self.unified(&[left, right])
    }
}
