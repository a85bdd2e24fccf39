//! Disjunctions: trying alternatives and keeping the defaults.
//!
//! Alternatives that are plain scalars are resolved on copies of the node's scalar
//! state. Anything else is evaluated in a node of its own, which gets the conjuncts of
//! the original and the alternative chosen; conjuncts carry an identity, so that a
//! disjunction nested anywhere in them finds its choice again.

use std::sync::Arc;

use super::depend::{Need, Reader};
use super::error::Message;
use super::node::{Disjunction, Pending};
use super::{Base, ErrId, Error, Evaluator, NodeId, Source};
use crate::diagnostic::Code;
use crate::ir::Expr;

/// Whether an alternative is a default. The order is that of combination: the later wins.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Mode {
    Maybe,
    Default,
    Not,
}

pub(super) fn mode(marked: bool, default: bool) -> Mode {
    match (marked, default) {
        (false, _) => Mode::Maybe,
        (true, true) => Mode::Default,
        (true, false) => Mode::Not,
    }
}

/// A disjunction passed on the way to an alternative, and the mark of the term chosen there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Passed {
    key: u64,
    mode: Mode,
}

/// An alternative that survived, with the mode of each disjunction it passed.
struct Leaf {
    node: NodeId,
    modes: Vec<Passed>,
}

impl Evaluator {
    /// The source and the default mark of one alternative.
    pub(crate) fn term(&self, pending: Pending, index: u32) -> Option<(Source, Mode)> {
        match pending.source {
            Source::Expr(expr) => {
                let Expr::Disjunction { terms, marked } = self.program.expr(expr) else {
                    return None;
                };
                let term = self.program.terms(terms).get(index as usize)?;
                Some((Source::Expr(term.value), mode(marked, term.default)))
            }
            Source::Or(list) => {
                let node = *self.alternatives.get(list as usize)?.get(index as usize)?;
                Some((Source::Node(node), Mode::Maybe))
            }
            _ => None,
        }
    }

    /// Resolves the disjunctions of a node all of whose other tasks are done.
    pub(crate) fn resolve_disjunctions(&mut self, node: NodeId) {
        if self.node(node).disjunctions.is_empty() {
            return;
        }
        if let Some(error) = self.node(node).error {
            if self.error(error).code.is_temporary() {
                let pending = self.node(node).disjunctions.clone();
                self.rule_out(node, &pending);
            }
            return;
        }
        if self.node(node).is_disjunct {
            // The alternative being tried branches further; its owner collects the leaves, because
            // the marks of all disjunctions passed decide together what is a default.
            return;
        }
        let pending = self.node(node).disjunctions.clone();
        if self.resolve_scalars(node, &pending) {
            self.node_mut(node).disjunctions.clear();
            return;
        }
        self.resolve_general(node, &pending);
    }

    pub(super) fn store_values(&mut self, node: NodeId, values: Vec<(NodeId, Mode)>) {
        let (mut ordered, rest): (Vec<_>, Vec<_>) = values
            .into_iter()
            .partition(|(_, mode)| *mode == Mode::Default);
        let defaults = ordered.len();
        ordered.extend(rest);
        let values = ordered.into_iter().map(|(node, _)| node).collect();
        self.node_mut(node).base = Base::Disjunction(Arc::new(Disjunction { values, defaults }));
        self.progress += 1;
    }

    /// Records that no alternative is left.
    pub(super) fn empty_disjunction(&mut self, node: NodeId, mut errors: Vec<ErrId>) {
        // The mildest code wins: more data may turn one alternative into a value.
        let code = errors
            .iter()
            .flat_map(|error| self.leaves(*error))
            .map(|error| self.error(error).code)
            .max()
            .unwrap_or(Code::Eval);
        // What the author has to say replaces what the evaluation has.
        let user = errors
            .iter()
            .any(|error| self.error(*error).code == Code::User);
        if user {
            errors.retain(|error| self.error(*error).code == Code::User);
        }
        let mut distinct: Vec<ErrId> = Vec::new();
        for error in errors {
            for leaf in self.leaves(error) {
                let duplicate = distinct.iter().any(|known| {
                    let (a, b) = (self.error(*known), self.error(leaf));
                    a.message == b.message && a.node == b.node
                });
                if !duplicate {
                    distinct.push(leaf);
                }
            }
        }
        if let [only] = distinct.as_slice() {
            let mut only = *only;
            if user && self.error(only).code != code {
                only = self.push_error(Error {
                    code,
                    ..self.error(only).clone()
                });
            }
            self.add_error(node, only);
            return;
        }
        let current = std::mem::replace(&mut self.current, node);
        let message = format!("{} errors in empty disjunction:", distinct.len());
        let pos = self.node_pos(node);
        let head = self.error_at(code, pos, message);
        self.current = current;
        let mut parts = vec![head];
        parts.extend(distinct);
        let error = self.push_error(Error {
            code,
            message: Message::Static(""),
            pos,
            related: Vec::new(),
            node,
            parts,
            pending: false,
            not_allowed: false,
        });
        self.add_error(node, error);
    }

    fn resolve_general(&mut self, node: NodeId, pending: &[Pending]) {
        let mut leaves = Vec::new();
        let mut errors = Vec::new();
        let saved = self.node(node).disjunct;
        let first = pending[0];
        let choices = self.node(node).choices.clone();
        self.branch(node, first, &choices, &[], &mut leaves, &mut errors);
        self.node_mut(node).disjunct = saved;
        if self.exhausted.is_some() {
            let error = self.exhaust("disjunction");
            self.add_error(node, error);
            return;
        }
        if leaves.is_empty() {
            self.empty_disjunction(node, errors);
            return;
        }
        let order: Vec<u64> = pending.iter().map(|pending| pending.info.key).collect();
        let values = self.combine_leaves(leaves, &order);
        if let [(only, _)] = values.as_slice() {
            let only = *only;
            let slot = self.node_mut(node);
            slot.disjunct = only;
            self.progress += 1;
            return;
        }
        self.store_values(node, values);
    }

    /// Tries every alternative of one disjunction on top of the choices already made.
    fn branch(
        &mut self,
        owner: NodeId,
        pending: Pending,
        choices: &[(u64, u32)],
        modes: &[Passed],
        leaves: &mut Vec<Leaf>,
        errors: &mut Vec<ErrId>,
    ) {
        let mut index = 0;
        while let Some((_, mode)) = self.term(pending, index) {
            let choice = index;
            index += 1;
            if leaves.len() >= self.budget.disjuncts || !self.step() {
                self.exhaust("disjunction");
                return;
            }
            let mut chosen = choices.to_vec();
            chosen.push((pending.info.key, choice));
            let mut marks = modes.to_vec();
            marks.push(Passed {
                key: pending.info.key,
                mode,
            });
            let outcome =
                self.deeper(|this| this.try_alternative(owner, &chosen, &marks, leaves, errors));
            if let Err(error) = outcome {
                errors.push(error);
                return;
            }
        }
    }

    fn try_alternative(
        &mut self,
        owner: NodeId,
        choices: &[(u64, u32)],
        modes: &[Passed],
        leaves: &mut Vec<Leaf>,
        errors: &mut Vec<ErrId>,
    ) {
        self.counters.disjuncts += 1;
        let (parent, label) = (self.node(owner).parent, self.node(owner).label);
        let node = self.new_node(parent, label);
        let original = self.node(owner);
        let (conjuncts, arc, metas) = (
            original.conjuncts.clone(),
            original.arc,
            original.metas.clone(),
        );
        let (anonymous, drop_parent) = (original.anonymous, original.drop_parent_requirements);
        let (rootless, depth) = (original.rootless, original.depth);
        let closed_once = original.closed_once;
        let slot = self.node_mut(node);
        slot.conjuncts = conjuncts;
        slot.arc = arc;
        slot.metas = metas;
        slot.choices = choices.to_vec().into();
        slot.is_disjunct = true;
        slot.eager = true;
        slot.no_sharing = true;
        slot.anonymous = anonymous;
        slot.rootless = rootless;
        slot.depth = depth;
        slot.drop_parent_requirements = drop_parent;
        slot.closed_once = closed_once;
        self.note_for(Reader::Node(owner), node, Need::Whole);
        let saved = std::mem::replace(&mut self.node_mut(owner).disjunct, node);
        self.settle(node, true);
        if let Some(error) = self.quick_conflict(node, 0) {
            errors.push(error);
            self.node_mut(owner).disjunct = saved;
            return;
        }
        let branching = self.node(node).disjunctions.first().copied();
        let failed = self
            .node(node)
            .error
            .is_some_and(|e| !self.error(e).code.is_temporary());
        match branching {
            Some(next) if !failed => {
                self.branch(owner, next, choices, modes, leaves, errors);
            }
            _ => {
                self.finalize(node);
                let slot = self.node(node);
                match slot.error.or(slot.child_error) {
                    Some(error) => errors.push(error),
                    None => leaves.push(Leaf {
                        node,
                        modes: modes.to_vec(),
                    }),
                }
            }
        }
        self.node_mut(owner).disjunct = saved;
    }

    /// Works out which of the surviving alternatives are defaults, and merges equal ones.
    fn combine_leaves(&mut self, leaves: Vec<Leaf>, order: &[u64]) -> Vec<(NodeId, Mode)> {
        let mut modes: Vec<Mode> = vec![Mode::Maybe; leaves.len()];
        let depth = leaves
            .iter()
            .map(|leaf| leaf.modes.len())
            .max()
            .unwrap_or(0);
        for level in 0..depth {
            let at = |leaf: &Leaf| mode_at(&leaves, leaf, level, order);
            let left_drops = !modes.contains(&Mode::Default);
            let right_drops = !leaves.iter().any(|leaf| at(leaf) == Mode::Default);
            let is_nested = |leaf: &Leaf| {
                leaf.modes
                    .get(level)
                    .is_some_and(|passed| !order.contains(&passed.key))
                    && at(leaf) != Mode::Maybe
            };
            let nested = leaves.iter().any(is_nested);
            for (mode, leaf) in modes.iter_mut().zip(&leaves) {
                let left = if left_drops && !nested {
                    Mode::Maybe
                } else {
                    *mode
                };
                let right = if right_drops && !nested {
                    Mode::Maybe
                } else {
                    at(leaf)
                };
                *mode = left.max(right);
                if nested && *mode == Mode::Maybe {
                    *mode = Mode::Not;
                }
            }
        }
        let mut unique: Vec<(NodeId, Mode)> = Vec::new();
        for (leaf, mode) in leaves.into_iter().zip(modes) {
            let known = unique
                .iter()
                .position(|(other, _)| self.nodes_equal(*other, leaf.node));
            match known {
                Some(index) if mode == Mode::Default => unique[index].1 = Mode::Default,
                Some(_) => {}
                None => unique.push((leaf.node, mode)),
            }
        }
        unique
    }
}

/// The mark of a leaf at one level of its path. A disjunction nested in an alternative counts for
/// the one it stands in, and has no marks left once all its defaults are gone.
fn mode_at(leaves: &[Leaf], leaf: &Leaf, level: usize, order: &[u64]) -> Mode {
    let Some(passed) = leaf.modes.get(level) else {
        return Mode::Maybe;
    };
    if order.contains(&passed.key) {
        return passed.mode;
    }
    // The key tells where the disjunction stands, choices above it included.
    let mut siblings = leaves.iter().flat_map(|other| &other.modes);
    let default = siblings.any(|other| other.key == passed.key && other.mode == Mode::Default);
    if default { passed.mode } else { Mode::Maybe }
}
