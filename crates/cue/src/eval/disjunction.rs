//! Disjunctions: trying alternatives and keeping the defaults.
//!
//! Alternatives that are plain scalars are resolved on copies of the node's scalar
//! state. Anything else is evaluated in a node of its own, which gets the conjuncts of
//! the original and the alternative chosen; conjuncts carry an identity, so that a
//! disjunction nested anywhere in them finds its choice again.

use std::sync::Arc;

use super::depend::{Need, Reader};
use super::error::Message;
use super::leaf::{Leaf, Level, Passed};
use super::marks::{Mode, mode};
use super::node::{Disjunction, Pending};
use super::{Base, ErrId, Error, Evaluator, NodeId, Source};
use crate::diagnostic::Code;
use crate::ir::Expr;

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
        let levels: Vec<Level> = pending.iter().map(|own| (own.info.key, 0)).collect();
        let start = Attempt {
            choices: self.node(node).choices.to_vec(),
            passed: Vec::new(),
            levels,
        };
        self.branch(node, pending[0], &start, &mut leaves, &mut errors);
        self.node_mut(node).disjunct = saved;
        if self.exhausted.is_some() {
            let error = self.exhaust("disjunction");
            self.add_error(node, error);
            return;
        }
        if leaves.iter().all(|leaf| leaf.node.is_none()) {
            self.empty_disjunction(node, errors);
            return;
        }
        let values = self.combine_leaves(leaves);
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
        attempt: &Attempt,
        leaves: &mut Vec<Leaf>,
        errors: &mut Vec<ErrId>,
    ) {
        let key = pending.info.key;
        let mut index = 0;
        while let Some((_, mode)) = self.term(pending, index) {
            let choice = index;
            index += 1;
            if leaves.len() >= self.budget.disjuncts || !self.step() {
                self.exhaust("disjunction");
                return;
            }
            let mut next = attempt.clone();
            next.choices.push((key, choice));
            next.passed.push(Passed {
                key,
                choice,
                mode,
                level: next.level(key),
            });
            let outcome = self.nested(|this| this.try_alternative(owner, next, leaves, errors));
            if let Err(error) = outcome {
                errors.push(error);
                return;
            }
        }
    }

    fn try_alternative(
        &mut self,
        owner: NodeId,
        mut attempt: Attempt,
        leaves: &mut Vec<Leaf>,
        errors: &mut Vec<ErrId>,
    ) {
        self.counters.disjuncts += 1;
        let node = self.alternative(owner, &attempt.choices);
        let saved = std::mem::replace(&mut self.node_mut(owner).disjunct, node);
        self.settle(node, true);
        if let Some(error) = self.quick_conflict(node, 0) {
            errors.push(error);
            self.node_mut(owner).disjunct = saved;
            return;
        }
        let failed = self
            .node(node)
            .error
            .is_some_and(|e| !self.error(e).code.is_temporary());
        match self.node(node).disjunctions.first().copied() {
            Some(next) if !failed => {
                let level = attempt.passed.last().map_or(0, |last| last.level);
                for found in &self.node(node).disjunctions {
                    if !attempt.levels.iter().any(|(key, _)| *key == found.info.key) {
                        attempt.levels.push((found.info.key, level + 1));
                    }
                }
                let count = leaves.len();
                self.branch(owner, next, &attempt, leaves, errors);
                // What fails for a disjunction inside the term never held.
                if leaves.len() == count && attempt.level(next.info.key) <= level {
                    leaves.push(Leaf {
                        node: NodeId::NONE,
                        passed: attempt.passed,
                    });
                }
            }
            _ => {
                self.finalize(node);
                let slot = self.node(node);
                match slot.error.or(slot.child_error) {
                    Some(error) => errors.push(error),
                    None => leaves.push(Leaf {
                        node,
                        passed: attempt.passed,
                    }),
                }
            }
        }
        self.node_mut(owner).disjunct = saved;
    }

    /// A node with the conjuncts of another, of whose disjunctions some terms are chosen.
    fn alternative(&mut self, owner: NodeId, choices: &[(u64, u32)]) -> NodeId {
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
        node
    }
}

/// The terms chosen on the way to an alternative.
#[derive(Debug, Clone)]
struct Attempt {
    choices: Vec<(u64, u32)>,
    passed: Vec<Passed>,
    /// The disjunctions met so far.
    levels: Vec<Level>,
}

impl Attempt {
    fn level(&self, key: u64) -> u32 {
        let known = self.levels.iter().find(|(known, _)| *known == key);
        known.map_or(0, |(_, level)| *level)
    }
}
