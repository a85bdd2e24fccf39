//! The short way to values that are known already.
//!
//! Most operands of guards are fields of data, or loop variables, which were evaluated long before. For
//! these the general way, made for values that may still be at work, costs ten times what it yields.
//! Whatever is not plainly there is left to the general way, which decides all the same.

use super::depend::Need;
use super::{Base, Binding, EnvId, Evaluator, NodeId, Status, Val};
use crate::ast::BinaryOp;
use crate::ir::{ArcKind, Expr, ExprId};
use crate::label::Label;
use crate::value::Value;

/// Operators inside each other that are gone through: enough for guards as people write them, and no
/// way to use up the stack, or to try the same again and again.
const DEEP_ENOUGH: u32 = 4;

impl Evaluator {
    /// The scalar that an expression denotes, if it is known.
    pub(super) fn known_atom(&mut self, expr: ExprId, env: EnvId) -> Option<Value> {
        self.known_within(expr, env, DEEP_ENOUGH)
    }

    fn known_within(&mut self, expr: ExprId, env: EnvId, depth: u32) -> Option<Value> {
        match self.program.expr(expr) {
            Expr::Value(value) => {
                let value = self.program.constant(value);
                (!matches!(value, Value::List(_) | Value::Struct(_))).then(|| value.clone())
            }
            Expr::ForKey { up } => {
                let env = self.up(env, up);
                match &self.envs[env.0 as usize].binding {
                    Binding::For { key, .. } => Some(key.clone()),
                    _ => None,
                }
            }
            Expr::Field { .. }
            | Expr::ForValue { .. }
            | Expr::Selector { .. }
            | Expr::Index { .. } => {
                let node = self.known_node(expr, env)?;
                let inner = self.known_default(node)?;
                let slot = self.node(inner);
                if slot.error.is_some() || slot.function.is_some() {
                    return None;
                }
                let atom = slot.scalar.atom.clone()?;
                self.note_whole(node);
                self.step().then_some(atom)
            }
            Expr::Binary { op, left, right } if depth > 0 => {
                self.known_result(expr, op, (left, right), env, depth - 1)
            }
            _ => None,
        }
    }

    /// The result of an operator whose operands are known.
    fn known_result(
        &mut self,
        expr: ExprId,
        op: BinaryOp,
        (left, right): (ExprId, ExprId),
        env: EnvId,
        depth: u32,
    ) -> Option<Value> {
        if let Some(tested) = self.tested_for_existence(op, left, right) {
            let exists = self.is_known_to_exist(tested, env)?;
            return Some(Value::Bool(exists == (op == BinaryOp::NotEqual)));
        }
        let left = self.known_within(left, env, depth)?;
        let right = self.known_within(right, env, depth)?;
        if !self.step() {
            return None;
        }
        let pos = self.program.pos(expr);
        match self.operate(op, &Val::Atom(left), &Val::Atom(right), pos) {
            Ok(Val::Atom(result)) => Some(result),
            // The general path reports what is wrong with it, with its position.
            _ => None,
        }
    }

    /// The operand that is compared with `_|_`, if one is.
    pub(super) fn tested_for_existence(
        &self,
        op: BinaryOp,
        left: ExprId,
        right: ExprId,
    ) -> Option<ExprId> {
        if !matches!(op, BinaryOp::Equal | BinaryOp::NotEqual) {
            return None;
        }
        if matches!(self.program.expr(left), Expr::Bottom) {
            Some(right)
        } else if matches!(self.program.expr(right), Expr::Bottom) {
            Some(left)
        } else {
            None
        }
    }

    /// Whether something is there, if that is plain to see: a scalar, or a field of a finished struct.
    pub(super) fn is_known_to_exist(&mut self, expr: ExprId, env: EnvId) -> Option<bool> {
        if self.known_within(expr, env, 0).is_some() {
            return Some(true);
        }
        let (base, label) = self.known_selection(expr, env)?;
        let node = self.known_struct(base)?;
        let member = self.arc(node, label);
        if let Some(member) = member
            && self.node(member).arc != ArcKind::Optional
        {
            return self.is_known_composite(member).then_some(true);
        }
        // The general way has it from an error that it makes; here none is needed.
        if self.may_gain(node, label) || !self.step() {
            return None;
        }
        self.note(base, Need::Nature);
        self.note(node, Need::Members);
        if let Some(member) = member {
            self.note(member, Need::Conjuncts);
        }
        Some(false)
    }

    /// Whether a node is a finished struct or list without problems.
    fn is_known_composite(&mut self, node: NodeId) -> bool {
        let Some(value) = self.known_default(node) else {
            return false;
        };
        let slot = self.node(value);
        let is_sound = slot.error.is_none() && slot.child_error.is_none();
        let is_finished = slot.status == Status::Final && self.node(node).arc == ArcKind::Member;
        if !is_sound || !is_finished || !matches!(slot.base, Base::Struct | Base::List) {
            return false;
        }
        self.note_whole(node);
        self.step()
    }

    /// The node and the label that a selector or an index by a known string selects.
    fn known_selection(&mut self, expr: ExprId, env: EnvId) -> Option<(NodeId, Label)> {
        match self.program.expr(expr) {
            Expr::Selector { base, label } => Some((self.known_node(base, env)?, label)),
            Expr::Index { base, index } => {
                let base = self.known_node(base, env)?;
                let Value::String(text) = self.known_within(index, env, 0)? else {
                    return None;
                };
                Some((base, self.labels.string(&text)))
            }
            _ => None,
        }
    }

    /// The node that a reference denotes, if everything on the way to it is settled.
    fn known_node(&mut self, expr: ExprId, env: EnvId) -> Option<NodeId> {
        match self.program.expr(expr) {
            Expr::ForValue { up } => {
                let env = self.up(env, up);
                match self.envs[env.0 as usize].binding {
                    Binding::For { value, .. } => Some(value),
                    _ => None,
                }
            }
            Expr::Field { up, label } => {
                let env = self.up(env, up);
                let node = self.deref(self.envs[env.0 as usize].node);
                self.known_member(node, label)
            }
            Expr::Selector { .. } | Expr::Index { .. } => {
                let (base, label) = self.known_selection(expr, env)?;
                let node = self.known_struct(base)?;
                let member = self.known_member(node, label)?;
                self.note(base, Need::Nature);
                Some(member)
            }
            _ => None,
        }
    }

    /// The settled value that a reference denotes, to be ranged over.
    pub(super) fn known_range(&mut self, expr: ExprId, env: EnvId) -> Option<NodeId> {
        let node = self.known_node(expr, env)?;
        let value = self.known_default(node)?;
        let slot = self.node(value);
        let is_plain = slot.error.is_none() && slot.function.is_none();
        if !is_plain || !self.step() {
            return None;
        }
        self.note(node, Need::Members);
        Some(value)
    }

    /// The sound struct that a settled node is.
    fn known_struct(&self, node: NodeId) -> Option<NodeId> {
        let node = self.known_default(node)?;
        let slot = self.node(node);
        let is_sound = slot.error.is_none() && slot.child_error.is_none();
        (is_sound && matches!(slot.base, Base::Struct)).then_some(node)
    }

    /// The member of a settled node.
    fn known_member(&mut self, node: NodeId, label: Label) -> Option<NodeId> {
        let slot = self.node(node);
        if slot.status < Status::Settled || matches!(slot.base, Base::Disjunction(_)) {
            return None;
        }
        let member = self.arc(node, label)?;
        (self.node(member).arc == ArcKind::Member).then_some(member)
    }

    /// A settled node, its default taken.
    fn known_default(&self, node: NodeId) -> Option<NodeId> {
        let mut node = self.deref(node);
        loop {
            let slot = self.node(node);
            if slot.status < Status::Settled {
                return None;
            }
            match &slot.base {
                Base::Disjunction(disjunction) if disjunction.defaults == 1 => {
                    node = self.deref(disjunction.values[0]);
                }
                Base::Disjunction(_) => return None,
                _ => return Some(node),
            }
        }
    }
}
