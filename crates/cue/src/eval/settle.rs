//! Bringing nodes to their value: tasks, disjunctions, validation, children.

use super::depend::Reader;
use super::scalar::{Bound, Check, Described};
use super::{Base, ErrId, Evaluator, NodeId, Status};
use crate::diagnostic::Code;
use crate::ir::{ArcKind, Decl, ExprId, StructId};
use crate::token::Pos;
use crate::value::{Kind, Value};

impl Evaluator {
    /// Makes fields and value of a node known as far as possible. With `force`, whatever is
    /// still blocked then becomes the node's error.
    pub(crate) fn settle(&mut self, node: NodeId, force: bool) {
        if self.node(node).status >= Status::Settled {
            return;
        }
        let outcome = self.nested(|this| this.settle_inner(node, force));
        if let Err(error) = outcome {
            self.add_error(node, error);
            let slot = self.node_mut(node);
            slot.tasks.clear();
            slot.base = Base::Error(error);
            slot.status = Status::Settled;
        }
    }

    fn settle_inner(&mut self, node: NodeId, force: bool) {
        self.start(node);
        if self.node(node).settling {
            // Re-entered through a cycle: other tasks may still run.
            self.run_tasks(node);
            return;
        }
        let depth = self.node(node).eval_depth;
        let eval_depth = self.eval_depth;
        let slot = self.node_mut(node);
        slot.settling = true;
        slot.eval_depth = eval_depth;
        self.run_tasks(node);
        if force && self.node(node).running == 0 {
            self.force_tasks(node);
        } else if self.node(node).running == 0 && !self.waits(node) {
            // What blocks it is final as far as others are concerned; it may still be retried.
        }
        if self.node(node).tasks.is_empty() && self.node(node).running == 0 {
            if self.node(node).shared.is_none() {
                self.resolve_disjunctions(node);
                if self.node(node).tasks.is_empty() {
                    self.finish_value(node);
                }
            } else {
                let target = self.node(node).shared;
                self.settle(target, force);
                if self.node(target).status >= Status::Settled && !self.node(node).shared.is_none()
                {
                    self.node_mut(node).status = Status::Settled;
                }
            }
        }
        let slot = self.node_mut(node);
        slot.settling = false;
        slot.eval_depth = depth;
    }

    /// Whether a blocked task of the node may still succeed without new data.
    fn waits(&self, node: NodeId) -> bool {
        self.node(node)
            .tasks
            .iter()
            .any(|task| !task.done && task.error.is_none_or(|error| self.error(error).pending))
    }

    /// Lets blocked tasks assume that absent fields stay absent; what then still fails is an error.
    fn force_tasks(&mut self, node: NodeId) {
        if self.node(node).tasks.is_empty() {
            return;
        }
        let mut rounds = 0;
        while !self.node(node).tasks.is_empty() && self.exhausted.is_none() {
            rounds += 1;
            let saved = std::mem::replace(&mut self.forced, true);
            let mut progressed = false;
            self.node_mut(node).running += 1;
            for index in 0..self.node(node).tasks.len() {
                if self.try_task(node, index) {
                    progressed = true;
                    break;
                }
            }
            self.node_mut(node).running -= 1;
            self.forced = saved;
            if self.node(node).running == 0 {
                self.node_mut(node).tasks.retain(|task| !task.done);
            }
            self.run_tasks(node);
            if !progressed || rounds > 10_000 {
                break;
            }
        }
        let blocked: Vec<ErrId> = self
            .node(node)
            .tasks
            .iter()
            .filter_map(|task| task.error)
            .collect();
        self.node_mut(node).tasks.clear();
        for error in blocked {
            self.add_error(node, error);
        }
    }

    /// Decides what the node is once all its conjuncts are in.
    fn finish_value(&mut self, node: NodeId) {
        if !self.node(node).disjunct.is_none()
            || matches!(self.node(node).base, Base::Disjunction(_))
        {
            self.node_mut(node).status = Status::Settled;
            return;
        }
        if self.node(node).is_struct && self.node(node).scalar.kind != Kind::STRUCT {
            self.require_struct(node);
        }
        if self.node(node).error.is_none() {
            self.validate_atom(node);
        }
        let has_shape = self.has_shape(node);
        let slot = self.node_mut(node);
        slot.base = if let Some(error) = slot.error {
            Base::Error(error)
        } else if slot.scalar.atom.is_some() {
            Base::Scalar
        } else if slot.list.is_some() {
            Base::List
        } else if slot.scalar.kind == Kind::STRUCT || has_shape || slot.is_struct {
            Base::Struct
        } else {
            Base::Scalar
        };
        slot.status = Status::Settled;
        self.progress += 1;
    }

    /// Whether struct literals make the node a struct although none of them gave it a field. Beside `_`,
    /// a literal that may turn out to be a scalar does so only if a field is written in it.
    fn has_shape(&self, node: NodeId) -> bool {
        let slot = self.node(node);
        slot.has_struct
            && slot.scalar.kind.contains(Kind::STRUCT)
            && (!slot.has_top || slot.literals.iter().any(|id| self.promises_field(*id)))
    }

    /// Whether some comprehension of a literal has a field with a written name in its body.
    fn promises_field(&self, literal: StructId) -> bool {
        let decls = &self.program.structure(literal).decls;
        decls.iter().any(|decl| {
            let Decl::Comprehension(id) = decl else {
                return false;
            };
            let body = self.program.comprehension(*id).value;
            let is_field = |decl: &Decl| match decl {
                Decl::Field { label, kind, .. } => label.is_regular() && *kind != ArcKind::Optional,
                _ => false,
            };
            let decls = &self.program.structure(body).decls;
            decls.iter().any(is_field) || self.promises_field(body)
        })
    }

    pub(super) fn require_struct(&mut self, node: NodeId) {
        let literal = self.node(node).literals.first().copied();
        let by = literal.map_or(Described::Kind(Kind::STRUCT), Described::Literal);
        let pos = literal.map_or(Pos::NONE, |literal| self.program.structure(literal).pos);
        let scalar = &mut self.node_mut(node).scalar;
        let result = scalar.restrict_kind(Kind::STRUCT, by, pos);
        if let Err(conflict) = result {
            let error = self.conflict(node, conflict, pos);
            self.add_error(node, error);
        }
    }

    /// Checks a known atom against bounds and validators.
    fn validate_atom(&mut self, node: NodeId) {
        let scalar = &self.node(node).scalar;
        if !scalar.is_limited() {
            return;
        }
        let Some(atom) = scalar.atom.clone() else {
            return;
        };
        let bounds: Vec<Bound> = scalar.bounds().cloned().collect();
        for bound in bounds {
            self.validate_bound(node, &atom, &bound);
        }
        let checks = self.node(node).scalar.checks().to_vec();
        for check in checks {
            match check {
                Check::Bound(bound) => self.validate_bound(node, &atom, &bound),
                Check::Call { .. } => self.validate_check(node, &check),
            }
        }
    }

    fn validate_bound(&mut self, node: NodeId, atom: &Value, bound: &Bound) {
        let saved = std::mem::replace(&mut self.current, node);
        let error = self.bound_error(atom, bound);
        if let Some(error) = error {
            let pos = self.node(node).scalar.atom_pos;
            self.error_mut(error).related = vec![pos, bound.pos];
            self.add_error(node, error);
        }
        self.current = saved;
    }

    pub(crate) fn bound_error(&mut self, atom: &Value, bound: &Bound) -> Option<ErrId> {
        match self.satisfies(atom, bound) {
            Ok(true) => None,
            Ok(false) => {
                let text = self.show_value(atom);
                let limit = format!("{}{}", bound.op.text(), self.show_value(&bound.value));
                let message = format!("invalid value {text} (out of bound {limit})");
                Some(self.error_at(Code::Eval, bound.pos, message))
            }
            Err(message) => Some(self.error_at(Code::Eval, bound.pos, message)),
        }
    }

    /// Runs a validator on a node.
    pub(crate) fn validate_check(&mut self, node: NodeId, check: &Check) {
        let Check::Call {
            callee,
            arguments,
            pos,
        } = check
        else {
            return;
        };
        let saved = std::mem::replace(&mut self.current, node);
        let reader = Reader::Node(node);
        let outcome = self.reading_as(reader, |this| {
            this.run_validator(node, *callee, arguments, *pos)
        });
        self.current = saved;
        if let Err(error) = outcome {
            self.add_error(node, error);
            if self.node(node).status >= Status::Settled {
                let error = self.node(node).error.unwrap_or(error);
                self.node_mut(node).base = Base::Error(error);
            }
        }
    }

    /// Completes a node and everything below it.
    pub(crate) fn finalize(&mut self, node: NodeId) {
        if self.node(node).status == Status::Final || self.node(node).finalizing {
            return;
        }
        if let Err(error) = self.nested(|this| this.finalize_inner(node)) {
            self.add_error(node, error);
            let slot = self.node_mut(node);
            slot.finalizing = false;
            slot.settling = false;
            slot.base = Base::Error(error);
            slot.status = Status::Final;
        }
    }

    fn finalize_inner(&mut self, node: NodeId) {
        if self.node(node).settling {
            // Asked for in the middle of its own evaluation: the caller takes what there is.
            self.settle(node, false);
            return;
        }
        self.settle(node, true);
        if self.node(node).status < Status::Settled {
            return;
        }
        if self.refill.is_some() {
            self.reconcile(node);
        }
        let target = self.node(node).shared;
        if !target.is_none() {
            self.finalize_shared(node, target);
            return;
        }
        if !self.node(node).disjunct.is_none()
            || matches!(self.node(node).base, Base::Disjunction(_))
        {
            self.node_mut(node).status = Status::Final;
            return;
        }
        let saved = self.node(node).eval_depth;
        let depth = self.eval_depth;
        let slot = self.node_mut(node);
        slot.finalizing = true;
        slot.eval_depth = depth;
        if !self.assert_no_structural_cycle(node) {
            // Plain data has no problems, unless some closed struct does not allow its fields.
            if self.node(node).lazy.is_some() && self.is_restricted(node) {
                self.expand(node);
            }
            if self.node(node).lazy.is_none() {
                self.eval_depth += 1;
                self.finalize_children(node);
                self.eval_depth -= 1;
            }
        }
        let blocked = self.node(node).has_top && !self.node(node).has_struct
            || self.node(node).has_open_validator;
        if self.node(node).is_definition && !blocked {
            self.node_mut(node).closed_recursive = true;
        }
        if self.node(node).error.is_none() {
            self.validate_composite(node);
        }
        self.check_assumptions(node);
        self.check_closed(node);
        let slot = self.node_mut(node);
        if let Some(error) = slot.error {
            slot.base = Base::Error(error);
        }
        slot.finalizing = false;
        slot.eval_depth = saved;
        slot.status = Status::Final;
    }

    fn finalize_shared(&mut self, node: NodeId, target: NodeId) {
        if self.has_depth_cycle(target) || self.is_ancestor(node, target) {
            self.node_mut(node).shared = NodeId::NONE;
            self.report_structural_cycle(node);
            let error = self.node(node).error;
            let slot = self.node_mut(node);
            if let Some(error) = error {
                slot.base = Base::Error(error);
            }
            slot.status = Status::Final;
            return;
        }
        let saved = self.node(node).eval_depth;
        self.node_mut(node).eval_depth = self.eval_depth;
        self.node_mut(node).finalizing = true;
        self.finalize(target);
        let slot = self.node_mut(node);
        slot.finalizing = false;
        slot.eval_depth = saved;
        slot.status = Status::Final;
    }

    fn finalize_children(&mut self, node: NodeId) {
        let mut index = 0;
        while let Some((label, arc)) = self.node(node).arcs.get(index).copied() {
            index += 1;
            if self.node(arc).arc == ArcKind::Optional {
                continue;
            }
            self.finalize(arc);
            let kind = self.node(node).scalar.kind;
            if label.is_regular()
                && self.node(arc).arc == ArcKind::Member
                && !kind.contains(Kind::STRUCT)
                && self.node(node).error.is_none()
            {
                self.require_struct(node);
            }
        }
        for index in 0..self.node(node).arcs.len() {
            let (_, arc) = self.node(node).arcs[index];
            if self.node(arc).arc == ArcKind::Optional {
                continue;
            }
            let value = self.deref(arc);
            let found = self.node(value).error.or(self.node(value).child_error);
            if let Some(error) = found {
                let known = self.node(node).child_error;
                let combined = self.combine(known, error);
                self.node_mut(node).child_error = Some(combined);
            }
        }
    }

    /// Runs validators on structs and lists, whose children are known by now.
    fn validate_composite(&mut self, node: NodeId) {
        let scalar = &self.node(node).scalar;
        if scalar.atom.is_some() || scalar.checks().is_empty() {
            return;
        }
        if !matches!(self.node(node).base, Base::Struct | Base::List) {
            return;
        }
        let checks = self.node(node).scalar.checks().to_vec();
        for check in checks {
            if let Check::Call { .. } = check {
                self.validate_check(node, &check);
            }
        }
    }

    /// Asks again the guards that assumed a field absent.
    fn check_assumptions(&mut self, node: NodeId) {
        let assumptions = std::mem::take(&mut self.node_mut(node).assumptions);
        for (expr, env, answer) in assumptions {
            let saved = std::mem::replace(&mut self.current, node);
            let forced = std::mem::replace(&mut self.forced, true);
            let reader = Reader::Node(node);
            let now = self.reading_as(reader, |this| this.exists(expr, env));
            self.forced = forced;
            if let Ok(now) = now
                && now != answer
            {
                self.report_changed(node, expr);
            }
            self.current = saved;
        }
    }

    fn report_changed(&mut self, node: NodeId, expr: ExprId) {
        let text = self.program.text(expr).to_owned();
        let pos = self.program.pos(expr);
        let message = format!(
            "circular dependency in evaluation of conditionals: {text} changed after evaluation"
        );
        let error = self.error_at(Code::Cycle, pos, message);
        self.add_error(node, error);
    }
}
