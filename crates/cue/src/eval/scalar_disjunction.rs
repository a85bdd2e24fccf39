//! Disjunctions whose alternatives are all scalars, which most are: resolved on copies of the scalar
//! state of the node, without nodes of their own until several alternatives are left.

use smallvec::{SmallVec, smallvec};

use super::depend::Reader;
use super::disjunction::{Mode, mode};
use super::equal::scalars_equal;
use super::node::Pending;
use super::scalar::{Bound, Check, Scalar};
use super::{Base, EnvId, ErrId, Evaluator, NodeId, Source, Status, Val};
use crate::diagnostic::Code;
use crate::ir::{Expr, ExprId};
use crate::token::Pos;
use crate::value::{Kind, Value};

/// A scalar constraint of an alternative.
#[derive(Debug, Clone)]
enum Constraint {
    Kind(Kind, Pos),
    Atom(Value, Pos),
    Bound(Bound),
    Fails(ErrId),
}

/// What an alternative demands; nearly always one thing.
type Constraints = SmallVec<[Constraint; 1]>;

/// An alternative, and whether it is a default.
type Term = (Constraints, Mode);

/// The alternatives of a disjunction.
type Terms = SmallVec<[Term; 2]>;

impl Evaluator {
    /// Resolves disjunctions whose alternatives are all scalars; false if they are not.
    pub(super) fn resolve_scalars(&mut self, node: NodeId, pending: &[Pending]) -> bool {
        let slot = self.node(node);
        let calls = slot
            .scalar
            .checks()
            .iter()
            .any(|check| matches!(check, Check::Call { .. }));
        if slot.has_struct || slot.list.is_some() || calls || !slot.arcs.is_empty() {
            return false;
        }
        let current = std::mem::replace(&mut self.current, node);
        let reader = std::mem::replace(&mut self.reads.reader, Reader::Node(node));
        let mut disjunctions = Vec::with_capacity(pending.len());
        for disjunction in pending {
            let terms = match disjunction.source {
                Source::Expr(expr) => self.scalar_terms(expr, disjunction.env, 0),
                Source::Or(list) => self.listed_terms(list),
                _ => None,
            };
            match terms {
                Some(terms) => disjunctions.push(terms),
                None => break,
            }
        }
        let complete = disjunctions.len() == pending.len();
        if complete {
            self.cross_scalars(node, &disjunctions);
        }
        self.current = current;
        self.reads.reader = reader;
        complete
    }

    /// Finds disjunctions of an incomplete node of which no alternative can hold, whatever comes.
    pub(super) fn rule_out(&mut self, node: NodeId, pending: &[Pending]) {
        if self.node(node).is_struct && self.node(node).scalar.kind != Kind::STRUCT {
            self.require_struct(node);
        }
        let reader = Reader::Node(node);
        let current = std::mem::replace(&mut self.current, node);
        for disjunction in pending {
            let Source::Expr(expr) = disjunction.source else {
                continue;
            };
            let terms = self.reading_as(reader, |this| this.scalar_terms(expr, disjunction.env, 0));
            let Some(terms) = terms else {
                continue;
            };
            let scalar = self.node(node).scalar.clone();
            let mut errors = Vec::new();
            for (constraints, _) in &terms {
                if let Err(error) = self.apply_constraints(node, &scalar, constraints) {
                    errors.push(error);
                }
            }
            if errors.len() == terms.len() {
                self.empty_disjunction(node, errors);
                break;
            }
        }
        self.current = current;
    }

    /// The alternatives of a disjunction expression as scalar constraints.
    fn scalar_terms(&mut self, expr: ExprId, env: EnvId, depth: u32) -> Option<Terms> {
        let Expr::Disjunction { terms, marked } = self.program.expr(expr) else {
            return None;
        };
        let mut all = Terms::with_capacity(terms.len());
        let mut nested_marks = false;
        for index in 0..terms.len() {
            let term = self.program.terms(terms)[index];
            let own = mode(marked, term.default);
            let inner = self.scalar_term(term.value, env, depth)?;
            for (constraints, nested) in inner {
                let combined = own.max(nested);
                nested_marks |= nested != Mode::Maybe;
                all.push((constraints, combined));
            }
        }
        if nested_marks {
            for (_, mode) in &mut all {
                if *mode == Mode::Maybe {
                    *mode = Mode::Not;
                }
            }
        }
        Some(all)
    }

    fn scalar_term(&mut self, expr: ExprId, env: EnvId, depth: u32) -> Option<Terms> {
        let pos = self.program.pos(expr);
        let one = |constraint| Some(smallvec![(smallvec![constraint], Mode::Maybe)]);
        match self.program.expr(expr) {
            Expr::Value(value) => one(Constraint::Atom(self.program.constant(value).clone(), pos)),
            Expr::Type(kind) => one(Constraint::Kind(kind, pos)),
            Expr::Top => Some(smallvec![(Constraints::new(), Mode::Maybe)]),
            Expr::Range(kind, bounds) => {
                let mut all: Constraints = smallvec![Constraint::Kind(kind, pos)];
                for (op, value) in self.program.bounds(bounds) {
                    all.push(Constraint::Bound(Bound {
                        op: *op,
                        value: value.clone(),
                        pos,
                    }));
                }
                Some(smallvec![(all, Mode::Maybe)])
            }
            Expr::Bound(op, operand) => {
                let value = self.bound_operand(expr, op, operand, env).ok()?;
                one(Constraint::Bound(Bound { op, value, pos }))
            }
            Expr::Bottom => {
                let message = "explicit error (_|_ literal) in source";
                let error = self.error_at(Code::User, pos, message);
                one(Constraint::Fails(error))
            }
            Expr::Disjunction { .. } if depth < 32 => self.scalar_terms(expr, env, depth + 1),
            reference if reference.is_reference() => self.referenced_terms(expr, env),
            _ => None,
        }
    }

    /// A referenced alternative, if its value is scalar.
    fn referenced_terms(&mut self, expr: ExprId, env: EnvId) -> Option<Terms> {
        let node = match self.eval(expr, env).ok()? {
            Val::Atom(value) if !matches!(value, Value::List(_) | Value::Struct(_)) => {
                let pos = self.program.pos(expr);
                return Some(smallvec![(
                    smallvec![Constraint::Atom(value, pos)],
                    Mode::Maybe
                )]);
            }
            Val::Node(node) => self.deref(node),
            _ => return None,
        };
        if self.node(node).status < Status::Settled {
            return None;
        }
        match self.node(node).base.clone() {
            Base::Scalar => Some(smallvec![(self.node_constraints(node)?, Mode::Maybe)]),
            Base::Disjunction(disjunction) => {
                let mut all = Terms::new();
                for (index, value) in disjunction.values.iter().enumerate() {
                    let value = self.deref(*value);
                    if !matches!(self.node(value).base, Base::Scalar) {
                        return None;
                    }
                    let default = mode(disjunction.defaults > 0, index < disjunction.defaults);
                    all.push((self.node_constraints(value)?, default));
                }
                Some(all)
            }
            _ => None,
        }
    }

    /// The alternatives of a call of `or`, if all are scalars.
    fn listed_terms(&mut self, list: u32) -> Option<Terms> {
        let nodes = self.alternatives.get(list as usize)?.clone();
        let mut all = Terms::with_capacity(nodes.len());
        for node in nodes {
            self.settle(node, false);
            let node = self.deref(node);
            if self.node(node).status < Status::Settled {
                return None;
            }
            if !matches!(self.node(node).base, Base::Scalar) {
                return None;
            }
            all.push((self.node_constraints(node)?, Mode::Maybe));
        }
        Some(all)
    }

    fn node_constraints(&self, node: NodeId) -> Option<Constraints> {
        let scalar = &self.node(node).scalar;
        let pos = scalar.atom_pos;
        if let Some(atom) = &scalar.atom {
            return Some(smallvec![Constraint::Atom(atom.clone(), pos)]);
        }
        let mut all: Constraints = smallvec![Constraint::Kind(scalar.kind, pos)];
        if scalar.kind.intersects(Kind(Kind::STRUCT.0 | Kind::LIST.0)) && scalar.kind != Kind::TOP {
            return None;
        }
        for bound in scalar.bounds() {
            all.push(Constraint::Bound(bound.clone()));
        }
        for check in scalar.checks() {
            match check {
                Check::Bound(bound) => all.push(Constraint::Bound(bound.clone())),
                Check::Call { .. } => return None,
            }
        }
        Some(all)
    }

    fn cross_scalars(&mut self, node: NodeId, disjunctions: &[Terms]) {
        let start = self.node(node).scalar.clone();
        let mut cross: Vec<(Scalar, Mode)> = vec![(start, Mode::Maybe)];
        for terms in disjunctions {
            let mut survivors: Vec<(Scalar, Mode, Mode)> = Vec::new();
            let mut errors = Vec::new();
            for (scalar, left) in &cross {
                for (constraints, right) in terms {
                    self.counters.disjuncts += 1;
                    if !self.step() || survivors.len() > self.budget.disjuncts {
                        let error = self.exhaust("disjunction");
                        self.add_error(node, error);
                        return;
                    }
                    match self.apply_constraints(node, scalar, constraints) {
                        Ok(result) => survivors.push((result, *left, *right)),
                        Err(error) => errors.push(error),
                    }
                }
            }
            if survivors.is_empty() {
                self.empty_disjunction(node, errors);
                return;
            }
            cross = combine_modes(survivors);
            cross = Self::dedupe_scalars(cross);
        }
        self.store_scalars(node, cross);
    }

    fn apply_constraints(
        &mut self,
        node: NodeId,
        scalar: &Scalar,
        constraints: &[Constraint],
    ) -> Result<Scalar, ErrId> {
        let mut scalar = scalar.clone();
        for constraint in constraints {
            let (result, pos) = match constraint {
                Constraint::Kind(kind, pos) => {
                    let by = super::scalar::Described::Kind(*kind);
                    (scalar.restrict_kind(*kind, by, *pos), *pos)
                }
                Constraint::Atom(value, pos) => (scalar.add_atom(value, *pos), *pos),
                Constraint::Bound(bound) => (self.add_bound(&mut scalar, bound.clone()), bound.pos),
                Constraint::Fails(error) => return Err(*error),
            };
            if let Err(conflict) = result {
                return Err(self.conflict(node, conflict, pos));
            }
        }
        if let Some(atom) = scalar.atom.clone() {
            let checks = scalar.checks().iter().filter_map(|check| match check {
                Check::Bound(bound) => Some(bound),
                Check::Call { .. } => None,
            });
            let bounds: Vec<Bound> = scalar.bounds().chain(checks).cloned().collect();
            for bound in bounds {
                if let Some(error) = self.bound_error(&atom, &bound) {
                    return Err(error);
                }
            }
        }
        Ok(scalar)
    }

    fn dedupe_scalars(cross: Vec<(Scalar, Mode)>) -> Vec<(Scalar, Mode)> {
        let mut unique: Vec<(Scalar, Mode)> = Vec::with_capacity(cross.len());
        for (scalar, mode) in cross {
            let known = unique
                .iter_mut()
                .find(|(other, _)| scalars_equal(other, &scalar));
            match known {
                Some((_, known)) => {
                    if mode == Mode::Default {
                        *known = Mode::Default;
                    }
                }
                None => unique.push((scalar, mode)),
            }
        }
        unique
    }

    fn store_scalars(&mut self, node: NodeId, mut cross: Vec<(Scalar, Mode)>) {
        if cross.len() == 1 {
            if let Some((scalar, _)) = cross.pop() {
                self.node_mut(node).scalar = scalar;
            }
            return;
        }
        let (parent, label) = (self.node(node).parent, self.node(node).label);
        let mut values = Vec::with_capacity(cross.len());
        for (scalar, mode) in cross {
            let value = self.new_node(parent, label);
            let slot = self.node_mut(value);
            slot.scalar = scalar;
            slot.base = Base::Scalar;
            slot.status = Status::Final;
            slot.is_disjunct = true;
            values.push((value, mode));
        }
        self.store_values(node, values);
    }
}

/// Combines the marks of two disjunctions; a side that lost all its defaults has none.
fn combine_modes(survivors: Vec<(Scalar, Mode, Mode)>) -> Vec<(Scalar, Mode)> {
    let left_drops = !survivors.iter().any(|(_, left, _)| *left == Mode::Default);
    let right_drops = !survivors
        .iter()
        .any(|(_, _, right)| *right == Mode::Default);
    survivors
        .into_iter()
        .map(|(scalar, left, right)| {
            let left = if left_drops { Mode::Maybe } else { left };
            let right = if right_drops { Mode::Maybe } else { right };
            (scalar, left.max(right))
        })
        .collect()
}
