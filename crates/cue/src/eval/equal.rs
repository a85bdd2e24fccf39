//! Structural equality of evaluated values.

use super::scalar::{Check, Scalar, atoms_equal};
use super::{Base, Evaluator, NodeId};
use crate::ir::ArcKind;

impl Evaluator {
    /// Whether two settled nodes are the same value.
    pub(crate) fn nodes_equal(&mut self, left: NodeId, right: NodeId) -> bool {
        self.equal_at(left, right, 0)
    }

    fn equal_at(&mut self, left: NodeId, right: NodeId, depth: u32) -> bool {
        let (left, right) = (self.deref(left), self.deref(right));
        if left == right {
            return true;
        }
        if depth > 200 {
            return false;
        }
        self.expand(left);
        self.expand(right);
        let (a, b) = (self.node(left), self.node(right));
        match (a.base.clone(), b.base.clone()) {
            (Base::Scalar, Base::Scalar) => scalars_equal(&a.scalar, &b.scalar),
            (Base::Struct, Base::Struct) => {
                a.closed_recursive == b.closed_recursive
                    && a.closed_once == b.closed_once
                    && a.patterns.len() == b.patterns.len()
                    && self.arcs_equal(left, right, depth)
            }
            (Base::List, Base::List) => a.list == b.list && self.arcs_equal(left, right, depth),
            (Base::Disjunction(a), Base::Disjunction(b)) => {
                a.defaults == b.defaults
                    && a.values.len() == b.values.len()
                    && a.values
                        .iter()
                        .zip(&b.values)
                        .all(|(a, b)| self.equal_at(*a, *b, depth + 1))
            }
            _ => false,
        }
    }

    fn arcs_equal(&mut self, left: NodeId, right: NodeId, depth: u32) -> bool {
        let count = self.node(left).arcs.len();
        count == self.node(right).arcs.len()
            && (0..count).all(|index| {
                let (label, arc) = self.node(left).arcs[index];
                self.node(right).find(label).is_some_and(|other| {
                    let (x, y) = (self.node(arc).arc, self.node(other).arc);
                    x == y && (x == ArcKind::Optional || self.equal_at(arc, other, depth + 1))
                })
            })
    }
}

/// Whether two scalars admit the same values, as far as can be told.
pub(crate) fn scalars_equal(left: &Scalar, right: &Scalar) -> bool {
    match (&left.atom, &right.atom) {
        (Some(left), Some(right)) => return atoms_equal(left, right),
        (None, None) => {}
        _ => return false,
    }
    let same_bounds =
        |a: Option<&super::scalar::Bound>, b: Option<&super::scalar::Bound>| match (a, b) {
            (Some(a), Some(b)) => a.op == b.op && atoms_equal(&a.value, &b.value),
            (None, None) => true,
            _ => false,
        };
    left.kind == right.kind
        && same_bounds(left.lower(), right.lower())
        && same_bounds(left.upper(), right.upper())
        && left.checks().len() == right.checks().len()
        && left
            .checks()
            .iter()
            .zip(right.checks())
            .all(|pair| match pair {
                (Check::Bound(a), Check::Bound(b)) => {
                    a.op == b.op && atoms_equal(&a.value, &b.value)
                }
                (Check::Call { pos: a, .. }, Check::Call { pos: b, .. }) => a == b,
                _ => false,
            })
}
