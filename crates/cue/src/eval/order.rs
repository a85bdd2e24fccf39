//! The order of fields, visible in `for`, in marshalled text and in exports.

use super::{Evaluator, NodeId};
use crate::label::Label;

impl Evaluator {
    /// The fields of a node in the order they are listed.
    pub(crate) fn ordered_arcs(&self, node: NodeId) -> Vec<(Label, NodeId)> {
        let node = self.deref(node);
        let mut arcs = self.node(node).arcs.clone();
        if self.node(node).list.is_some() {
            arcs.sort_by_key(|(label, _)| label.as_index().unwrap_or(usize::MAX));
        }
        arcs
    }
}
