//! Following a reference: the target's conjuncts are copied, now and as they come, or the node
//! becomes another name of the target if the reference is all there is to it.

use super::close::Mark;
use super::depend::{Need, Reader};
use super::node::{CycleKind, Receiver};
use super::{CloseInfo, Conjunct, Evaluator, NodeId, Source, Status};
use crate::ir::Expr;

impl Evaluator {
    /// Adds all conjuncts of `target`, now and in future, to `node`; or shares it.
    pub(crate) fn add_target(&mut self, node: NodeId, target: NodeId, conjunct: Conjunct) {
        let mut info = conjunct.info;
        {
            let slot = self.node(target);
            if !slot.closed_recursive && !slot.closed_once && info.embed != 0 {
                info.from_def = false;
            }
        }
        if self.deref(node) == self.deref(target) && self.node(node).shared.is_none() {
            return;
        }
        self.note_for(Reader::Node(node), target, Need::Conjuncts);
        if self.share(node, target, conjunct) {
            return;
        }
        self.unshare(node);
        let definition = self.refers_to_definition(conjunct.source)
            || self.node(target).label.is_definition() && !self.node(target).anonymous;
        if definition {
            self.node_mut(node).is_definition = true;
            info.from_def = true;
        }
        info = self.enter_reference(node, target, info, !definition);
        if self.node(node).followed.contains(&target) {
            return;
        }
        self.node_mut(node).followed.push(target);
        self.subscribe(node, target, info);
        let mut index = 0;
        while let Some(part) = self.node(target).conjuncts.get(index).copied() {
            let info = CloseInfo {
                key: super::node::mix(info.key, part.info.key),
                ..info
            };
            self.schedule(node, Conjunct { info, ..part });
            index += 1;
        }
        if self.node(target).closed_once {
            self.node_mut(node).closed_once = true;
        }
    }

    /// Asks for conjuncts added to `target` later, if there may be any.
    fn subscribe(&mut self, node: NodeId, target: NodeId, info: CloseInfo) {
        let parent = self.node(target).parent;
        if parent.is_none() || self.is_complete(parent) {
            return;
        }
        self.node_mut(target).notify.push(Receiver { node, info });
    }

    /// Whether no further conjuncts can reach the children of a node.
    pub(crate) fn is_complete(&self, node: NodeId) -> bool {
        let mut node = node;
        while !node.is_none() {
            let slot = self.node(node);
            if slot.status < Status::Settled && !slot.tasks.is_empty() || slot.status == Status::New
            {
                return false;
            }
            if slot.anonymous {
                return true;
            }
            node = slot.parent;
        }
        true
    }

    /// Whether a conjunct names a definition or something inside one.
    fn refers_to_definition(&self, source: Source) -> bool {
        let Source::Expr(mut expr) = source else {
            return false;
        };
        loop {
            match self.program.expr(expr) {
                Expr::Field { label, .. } => return label.is_definition(),
                Expr::Selector { label, .. } if label.is_definition() => return true,
                Expr::Selector { base, .. } | Expr::Index { base, .. } => expr = base,
                _ => return false,
            }
        }
    }

    /// Makes `node` an alias of `target` if the reference is all there is to it.
    fn share(&mut self, node: NodeId, target: NodeId, conjunct: Conjunct) -> bool {
        let (slot, other) = (self.node(node), self.node(target));
        let possible = slot.arcs.is_empty()
            && slot.conjuncts.len() == 1
            && slot.tasks.len() <= 1
            && slot.patterns.is_empty()
            && slot.disjunctions.is_empty()
            && !slot.no_sharing
            && slot.shared.is_none()
            && !slot.is_disjunct
            && !slot.has_struct
            && slot.error.is_none()
            && !other.rootless
            && !other.is_disjunct
            && conjunct.info.cycle != CycleKind::Cyclic
            && (!slot.closed_recursive || other.closed_recursive);
        if !possible || self.is_ancestor(node, target) {
            return false;
        }
        let slot = self.node_mut(node);
        slot.shared = target;
        slot.shared_by = Some(Box::new(conjunct));
        self.note_for(Reader::Node(node), target, Need::Whole);
        self.evidence(node, conjunct.info, Mark::None);
        true
    }

    /// Undoes sharing, because something else is added to the node.
    pub(crate) fn unshare(&mut self, node: NodeId) {
        let slot = self.node_mut(node);
        slot.no_sharing = true;
        if slot.shared.is_none() {
            return;
        }
        let target = std::mem::replace(&mut slot.shared, NodeId::NONE);
        if slot.status >= Status::Settled {
            slot.status = Status::Started;
        }
        if let Some(conjunct) = slot.shared_by.take() {
            self.add_target(node, target, *conjunct);
        }
    }
}
