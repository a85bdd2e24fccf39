//! Detection of values that contain themselves.
//!
//! Each conjunct carries the list of references it came through. A reference to an
//! ancestor, or one that the conjunct already followed, makes the conjunct cyclic. A
//! node all of whose conjuncts are cyclic is a structural cycle; conjuncts below
//! optional fields, patterns and disjunctions get one more round, because they may
//! still end.

use super::node::CycleKind;
use super::{CloseInfo, Conjunct, Evaluator, NodeId, Status};
use crate::diagnostic::Code;
use crate::ir::ExprId;
use crate::token::Pos;

/// Cyclic references followed in a row. Data that feeds a recursive schema does not count, so
/// this only bounds computed recursion.
const MAX_ROUNDS: u8 = 3;

/// One followed reference; a linked list through `next`, zero ends it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Reference {
    target: NodeId,
    node: NodeId,
    expr: ExprId,
    depth: u32,
    next: u32,
}

impl Reference {
    /// What tells it apart from others.
    pub(super) fn key(&self) -> super::identity::ReferenceKey {
        (self.target, self.node, self.expr, self.depth, self.next)
    }
}

impl Default for Reference {
    fn default() -> Self {
        Self {
            target: NodeId::NONE,
            node: NodeId::NONE,
            expr: ExprId(0),
            depth: 0,
            next: 0,
        }
    }
}

/// What to do with a reference after the check.
pub(crate) enum Followed {
    Go(CloseInfo),
    Skip,
}

impl Evaluator {
    /// The first reference a conjunct came through, from the head of its list.
    pub(crate) fn oldest_reference(&self, head: u32) -> Option<ExprId> {
        let mut oldest = None;
        let mut cursor = head;
        while cursor != 0 {
            let reference = &self.refs[cursor as usize];
            oldest = Some(reference.expr);
            cursor = reference.next;
        }
        oldest
    }

    /// Checks the reference `conjunct` of `node`, which denotes `target`.
    pub(crate) fn detect_cycle(
        &mut self,
        node: NodeId,
        target: NodeId,
        expr: ExprId,
        conjunct: Conjunct,
    ) -> Followed {
        let mut info = conjunct.info;
        let here = self.deref_disjunct(node);
        if self.is_ancestor(node, target) {
            return self.mark_cyclic(node, target, conjunct);
        }
        let (non_cycle, non_cyclic, depth) = {
            let slot = self.node(node);
            (slot.has_non_cycle, slot.has_non_cyclic, slot.depth)
        };
        if non_cyclic && info.cycle == CycleKind::Maybe {
            return Followed::Go(info);
        }
        let mut cursor = info.refs;
        while cursor != 0 {
            self.charge_small(4);
            let reference = self.refs[cursor as usize];
            let same_target = self.same(reference.target, target);
            let same_node = self.same(reference.node, here);
            if same_target {
                if same_node {
                    return Followed::Skip;
                }
                if info.cycle == CycleKind::Optional && non_cyclic {
                    info.cycle = CycleKind::Maybe;
                    if reference.depth == depth {
                        return Followed::Skip;
                    }
                    info.refs = 0;
                    return Followed::Go(info);
                }
                if non_cycle && non_cyclic && reference.depth != depth {
                    return Followed::Go(info);
                }
                return self.mark_cyclic_path(node, target, conjunct, info);
            }
            if same_node && reference.expr == expr && self.node(target).rootless {
                return self.mark_cyclic_path(node, target, conjunct, info);
            }
            cursor = reference.next;
        }
        info.refs = self.push_reference(here, target, expr, depth, info.refs);
        Followed::Go(info)
    }

    fn push_reference(
        &mut self,
        node: NodeId,
        target: NodeId,
        expr: ExprId,
        depth: u32,
        next: u32,
    ) -> u32 {
        let target = self.deref(target);
        let reference = Reference {
            target,
            node,
            expr,
            depth,
            next,
        };
        if let Some(known) = self.known_reference(&reference) {
            return known;
        }
        self.refs.push(reference);
        u32::try_from(self.refs.len() - 1).unwrap_or(0)
    }

    fn same(&self, left: NodeId, right: NodeId) -> bool {
        left == right
            || (!left.is_none() && !right.is_none() && self.deref(left) == self.deref(right))
    }

    /// Follows a reference to a value around it only if something else gives the node structure.
    fn mark_cyclic(&mut self, node: NodeId, target: NodeId, conjunct: Conjunct) -> Followed {
        let mut info = conjunct.info;
        info.cycle = CycleKind::Cyclic;
        info.is_cyclic = true;
        if self.too_many_rounds(node, &mut info) {
            return Followed::Skip;
        }
        let slot = self.node_mut(node);
        slot.has_cyclic = true;
        slot.has_ancestor_cycle = true;
        if !slot.has_non_cycle {
            slot.postponed.push((Conjunct { info, ..conjunct }, target));
            return Followed::Skip;
        }
        Followed::Go(info)
    }

    fn mark_cyclic_path(
        &mut self,
        node: NodeId,
        target: NodeId,
        conjunct: Conjunct,
        mut info: CloseInfo,
    ) -> Followed {
        info.cycle = CycleKind::Cyclic;
        info.is_cyclic = true;
        if self.too_many_rounds(node, &mut info) {
            return Followed::Skip;
        }
        let slot = self.node_mut(node);
        slot.has_cyclic = true;
        if !slot.has_non_cyclic && !slot.has_non_cycle {
            slot.postponed.push((Conjunct { info, ..conjunct }, target));
            return Followed::Skip;
        }
        Followed::Go(info)
    }

    /// Ends recursion that feeds itself through expressions, which have no place in the tree.
    fn too_many_rounds(&mut self, node: NodeId, info: &mut CloseInfo) -> bool {
        info.rounds = info.rounds.saturating_add(1);
        if info.rounds <= MAX_ROUNDS {
            return false;
        }
        self.report_structural_cycle(node);
        true
    }

    /// Whether `target` is being evaluated around `node` or is one of its ancestors.
    pub(crate) fn is_ancestor(&self, node: NodeId, target: NodeId) -> bool {
        if self.has_depth_cycle(target) {
            return true;
        }
        let target = self.deref(target);
        self.charge_small(self.node(node).depth as usize);
        let mut cursor = node;
        // What is outside the tree has no ancestors in it.
        while !self.node(cursor).anonymous {
            cursor = self.node(cursor).parent;
            if cursor.is_none() {
                return false;
            }
            if self.deref(cursor) == target {
                return true;
            }
        }
        false
    }

    pub(crate) fn has_depth_cycle(&self, target: NodeId) -> bool {
        let slot = self.node(target);
        slot.status != Status::Final && slot.eval_depth > 0 && slot.eval_depth < self.eval_depth
    }

    /// Records that a conjunct takes part before it is processed.
    pub(crate) fn mark_non_cyclic(&mut self, node: NodeId, info: CloseInfo) {
        if matches!(info.cycle, CycleKind::None | CycleKind::Optional) {
            self.node_mut(node).has_non_cyclic = true;
        }
    }

    /// Records proof of structure: postponed conjuncts may go on.
    pub(crate) fn update_cyclic_status(&mut self, node: NodeId, info: CloseInfo) {
        if info.is_cyclic {
            return;
        }
        self.node_mut(node).has_non_cycle = true;
        let postponed = std::mem::take(&mut self.node_mut(node).postponed);
        for (conjunct, target) in postponed {
            if target.is_none() {
                self.schedule(node, conjunct);
            } else {
                self.add_target(node, target, conjunct);
            }
        }
    }

    /// Reports a structural cycle if nothing but cyclic conjuncts make up the node.
    pub(crate) fn assert_no_structural_cycle(&mut self, node: NodeId) -> bool {
        let slot = self.node_mut(node);
        slot.postponed.clear();
        let only_cyclic = (slot.has_ancestor_cycle && !slot.has_non_cycle)
            || (slot.has_cyclic && !slot.has_non_cyclic);
        if only_cyclic {
            self.report_structural_cycle(node);
        }
        only_cyclic
    }

    pub(crate) fn report_structural_cycle(&mut self, node: NodeId) {
        let saved = std::mem::replace(&mut self.current, node);
        let pos = self.node_pos(node);
        let error = self.error_at(Code::StructuralCycle, pos, "structural cycle");
        self.current = saved;
        self.add_error(node, error);
        self.node_mut(node).clear_arcs();
    }

    /// A place in the source that stands for the node.
    pub(crate) fn node_pos(&self, node: NodeId) -> Pos {
        let first = self.node(node).conjuncts.first();
        first.map_or(Pos::NONE, |conjunct| self.source_pos(conjunct.source))
    }
}
