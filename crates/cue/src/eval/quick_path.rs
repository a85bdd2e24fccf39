//! The short way to values that are known already.
//!
//! Most operands of guards are fields of data, or loop variables, which were evaluated long before. For
//! these the general way, made for values that may still be at work, costs ten times what it yields.
//! Whatever is not plainly there is left to the general way, which decides all the same.

use super::depend::Need;
use super::{Base, Binding, EnvId, Evaluator, NodeId, Status};
use crate::ir::{ArcKind, Expr, ExprId};
use crate::label::Label;
use crate::value::Value;

impl Evaluator {
    /// The scalar that an expression denotes, if it is known.
    pub(super) fn known_atom(&mut self, expr: ExprId, env: EnvId) -> Option<Value> {
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
            Expr::Field { .. } | Expr::ForValue { .. } | Expr::Selector { .. } => {
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
            Expr::Selector { base, label } => {
                let base = self.known_node(base, env)?;
                let node = self.known_default(base)?;
                let slot = self.node(node);
                let is_sound = slot.error.is_none() && slot.child_error.is_none();
                if !is_sound || !matches!(slot.base, Base::Struct) {
                    return None;
                }
                let member = self.known_member(node, label)?;
                self.note(base, Need::Nature);
                Some(member)
            }
            _ => None,
        }
    }

    /// The member of a settled node.
    fn known_member(&self, node: NodeId, label: Label) -> Option<NodeId> {
        let slot = self.node(node);
        if slot.status < Status::Settled || matches!(slot.base, Base::Disjunction(_)) {
            return None;
        }
        let member = slot.find(label)?;
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
