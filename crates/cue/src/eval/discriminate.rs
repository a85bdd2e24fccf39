//! Discarding alternatives early.
//!
//! Most alternatives fail because a field that tells them apart has the wrong value. Looking at
//! the fields that are cheap to evaluate first avoids evaluating the rest, which matters most
//! when alternatives recurse.

use super::{ErrId, Evaluator, NodeId, Source};
use crate::ir::{ArcKind, Element, Expr, ExprId};

/// Fields deeper than this rarely tell alternatives apart.
const DEPTH: u32 = 4;

impl Evaluator {
    /// A final error among the fields that are cheap to evaluate.
    pub(crate) fn quick_conflict(&mut self, node: NodeId, depth: u32) -> Option<ErrId> {
        let final_error = |this: &Self, node: NodeId| {
            let error = this.node(this.deref(node)).error?;
            (!this.error(error).code.is_temporary()).then_some(error)
        };
        if let Some(error) = final_error(self, node) {
            return Some(error);
        }
        if depth >= DEPTH {
            return None;
        }
        for index in 0..self.node(node).arcs.len() {
            let Some((_, arc)) = self.node(node).arcs.get(index).copied() else {
                break;
            };
            if self.node(arc).arc == ArcKind::Optional || !self.is_cheap(arc) {
                continue;
            }
            self.settle(arc, false);
            if let Some(error) = final_error(self, arc) {
                return Some(error);
            }
            if self.node(arc).disjunctions.is_empty()
                && self.node(arc).shared.is_none()
                && let Some(error) = self.quick_conflict(arc, depth + 1)
            {
                return Some(error);
            }
        }
        None
    }

    fn is_cheap(&self, node: NodeId) -> bool {
        self.node(node)
            .conjuncts
            .iter()
            .all(|conjunct| match conjunct.source {
                Source::Expr(expr) => self.is_cheap_expr(expr, 0),
                Source::Data(_) => true,
                _ => false,
            })
    }

    fn is_cheap_expr(&self, expr: ExprId, depth: u32) -> bool {
        if depth > 8 {
            return false;
        }
        let cheap = |expr: ExprId| self.is_cheap_expr(expr, depth + 1);
        match self.program.expr(expr) {
            Expr::Value(_)
            | Expr::Type(_)
            | Expr::Top
            | Expr::Range(..)
            | Expr::Struct(_)
            | Expr::Field { .. }
            | Expr::ForValue { .. }
            | Expr::ForKey { .. }
            | Expr::SelfValue { .. }
            | Expr::PatternLabel { .. } => true,
            Expr::List(elements) => !self
                .program
                .elements(elements)
                .iter()
                .any(|element| matches!(element, Element::Comprehension(_))),
            Expr::Bound(_, operand) | Expr::Unary(_, operand) => cheap(operand),
            Expr::Selector { base, .. } => self.program.expr(base).is_reference() && cheap(base),
            Expr::Index { base, index } => {
                self.program.expr(base).is_reference() && cheap(base) && cheap(index)
            }
            Expr::Disjunction { terms, .. } => self.program.terms(terms).iter().all(|term| {
                matches!(
                    self.program.expr(term.value),
                    Expr::Value(_) | Expr::Type(_)
                )
            }),
            Expr::And(left, right) => cheap(left) && cheap(right),
            _ => false,
        }
    }
}
