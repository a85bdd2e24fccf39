//! Collecting the problems of a value.

use super::{Base, ErrId, Evaluator, NodeId, Status};
use crate::diagnostic::Diagnostic;
use crate::ir::ArcKind;
use crate::token::Pos;

/// What counts as a problem, from the mildest on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Strictness {
    /// What no further data can resolve.
    Plain,
    /// What keeps a value from being what it is meant to be: required fields that are absent,
    /// computations that lack an operand. A mere type is fine.
    Final,
    /// What keeps a value from being exported.
    Concrete,
}

/// Values nested more deeply than this are not looked into, which is a problem of its own.
pub(super) const MAX_NESTING: u32 = 1_000;

/// More problems than this are not collected.
const MAX_PROBLEMS: usize = 100;

impl Evaluator {
    /// The problems of a node and everything below it.
    pub(crate) fn validate(&mut self, node: NodeId, strictness: Strictness) -> Vec<Diagnostic> {
        self.finalize(node);
        let mut found: Vec<ErrId> = Vec::new();
        self.collect(node, strictness, 0, &mut found);
        // What was not evaluated has no problems of its own.
        found.extend(self.exhausted);
        let mut diagnostics: Vec<Diagnostic> = Vec::new();
        for error in found {
            let diagnostic = self.diagnostic(error);
            if !diagnostics.contains(&diagnostic) {
                diagnostics.push(diagnostic);
            }
        }
        // A final problem makes what merely is not known yet uninteresting.
        if diagnostics
            .iter()
            .any(|diagnostic| !diagnostic.code.is_temporary())
        {
            diagnostics.retain(|diagnostic| !diagnostic.code.is_temporary());
        }
        diagnostics
    }

    fn collect(
        &mut self,
        node: NodeId,
        strictness: Strictness,
        depth: u32,
        found: &mut Vec<ErrId>,
    ) {
        if found.len() > MAX_PROBLEMS {
            return;
        }
        if depth > MAX_NESTING {
            let error = self.too_deep(node);
            found.push(error);
            return;
        }
        self.with_stack(super::limit::STACK_FOR_READING, |this| {
            this.collect_inner(node, strictness, depth, found);
        });
    }

    fn collect_inner(
        &mut self,
        node: NodeId,
        strictness: Strictness,
        depth: u32,
        found: &mut Vec<ErrId>,
    ) {
        let original = node;
        let mut node = self.deref(node);
        let slot = self.node(node);
        let is_sound = slot.error.is_none() && slot.child_error.is_none();
        if is_sound && strictness == Strictness::Plain && slot.status == Status::Final {
            return;
        }
        if matches!(self.node(node).base, Base::Disjunction(_)) && self.node(node).error.is_none() {
            if strictness < Strictness::Concrete {
                return;
            }
            if let Ok(default) = self.default_node(node, Pos::NONE) {
                node = default;
            } else {
                let error = self.incomplete_value(original);
                found.push(error);
                return;
            }
        }
        if let Some(error) = self.node(node).error {
            let temporary = self.error(error).code.is_temporary();
            if !temporary || strictness > Strictness::Plain {
                found.extend(self.leaves(error));
            }
            if !temporary {
                return;
            }
        } else if strictness == Strictness::Concrete
            && matches!(self.node(node).base, Base::Scalar | Base::Unset)
            && self.node(node).scalar.atom.is_none()
        {
            let error = self.incomplete_value(original);
            found.push(error);
        }
        if self.node(node).lazy.is_some() {
            return;
        }
        for index in 0..self.node(node).arcs.len() {
            let (label, arc) = self.node(node).arcs[index];
            let below = if label.is_regular() || label.is_index() {
                strictness
            } else {
                Strictness::Plain
            };
            match self.node(arc).arc {
                ArcKind::Optional => continue,
                ArcKind::Required => {
                    if below > Strictness::Plain {
                        let error = self.required(arc);
                        found.push(error);
                    }
                    continue;
                }
                ArcKind::Member => {}
            }
            self.collect(arc, below, depth + 1, found);
        }
    }
}
