//! Disjunctions whose alternatives are all scalars, which most are: resolved on copies of the scalar
//! state of the node, without nodes of their own until several alternatives are left.

use smallvec::{SmallVec, smallvec};

use super::depend::Reader;
use super::equal::scalars_equal;
use super::marks::{Branch, Mode, Stage, mode};
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
type Term = (Body, Mode);

/// What an alternative is.
#[derive(Debug, Clone)]
enum Body {
    Plain(Constraints),
    Nested(Box<Terms>),
}

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
        if self.is_atom_among(node, pending) {
            return true;
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

    /// Whether a value is given, and each disjunction has a plain alternative for it: then it stays as
    /// it is, whatever the marks. This is the fate of nearly all defaults that somebody overrides.
    fn is_atom_among(&mut self, node: NodeId, pending: &[Pending]) -> bool {
        let scalar = &self.node(node).scalar;
        let Some(atom) = scalar.atom.as_ref().filter(|_| !scalar.is_limited()) else {
            return false;
        };
        let admits = |disjunction: &Pending| {
            let Source::Expr(expr) = disjunction.source else {
                return false;
            };
            let Expr::Disjunction { terms, .. } = self.program.expr(expr) else {
                return false;
            };
            let mut terms = self.program.terms(terms).iter();
            terms.any(|term| match self.program.expr(term.value) {
                Expr::Value(value) => self.program.constant(value) == atom,
                Expr::Type(kind) => kind.contains(atom.kind()),
                _ => false,
            })
        };
        let found = pending.iter().all(admits);
        if found {
            self.counters.disjuncts += pending.len() as u64;
        }
        found && self.step()
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
            let start = Branch {
                value: scalar,
                mode: Mode::Maybe,
                own: Mode::Maybe,
            };
            let mut errors = Vec::new();
            let left = self.cross(node, &[start], &terms, &mut errors);
            if left.is_empty() && self.exhausted.is_none() {
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
        for index in 0..terms.len() {
            let term = self.program.terms(terms)[index];
            let body = self.scalar_term(term.value, env, depth)?;
            all.push((body, mode(marked, term.default)));
        }
        Some(all)
    }

    fn scalar_term(&mut self, expr: ExprId, env: EnvId, depth: u32) -> Option<Body> {
        let pos = self.program.pos(expr);
        let one = |constraint| Some(Body::Plain(smallvec![constraint]));
        match self.program.expr(expr) {
            Expr::Value(value) => one(Constraint::Atom(self.program.constant(value).clone(), pos)),
            Expr::Type(kind) => one(Constraint::Kind(kind, pos)),
            Expr::Top => Some(Body::Plain(Constraints::new())),
            Expr::Range(kind, bounds) => {
                let mut all: Constraints = smallvec![Constraint::Kind(kind, pos)];
                for (op, value) in self.program.bounds(bounds) {
                    all.push(Constraint::Bound(Bound {
                        op: *op,
                        value: value.clone(),
                        pos,
                    }));
                }
                Some(Body::Plain(all))
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
            Expr::Disjunction { .. } if depth < 32 => {
                let terms = self.scalar_terms(expr, env, depth + 1)?;
                Some(Body::Nested(Box::new(terms)))
            }
            reference if reference.is_reference() => self.referenced_terms(expr, env),
            _ => None,
        }
    }

    /// A referenced alternative, if its value is scalar.
    fn referenced_terms(&mut self, expr: ExprId, env: EnvId) -> Option<Body> {
        let node = match self.eval(expr, env).ok()? {
            Val::Atom(value) if !matches!(value, Value::List(_) | Value::Struct(_)) => {
                let pos = self.program.pos(expr);
                return Some(Body::Plain(smallvec![Constraint::Atom(value, pos)]));
            }
            Val::Node(node) => self.deref(node),
            _ => return None,
        };
        if self.node(node).status < Status::Settled {
            return None;
        }
        match self.node(node).base.clone() {
            Base::Scalar => Some(Body::Plain(self.node_constraints(node)?)),
            Base::Disjunction(disjunction) => {
                let mut all = Terms::new();
                for (index, value) in disjunction.values.iter().enumerate() {
                    let value = self.deref(*value);
                    if !matches!(self.node(value).base, Base::Scalar) {
                        return None;
                    }
                    let default = mode(disjunction.defaults > 0, index < disjunction.defaults);
                    all.push((Body::Plain(self.node_constraints(value)?), default));
                }
                Some(Body::Nested(Box::new(all)))
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
            all.push((Body::Plain(self.node_constraints(node)?), Mode::Maybe));
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
        let mut cross = vec![Branch {
            value: self.node(node).scalar.clone(),
            mode: Mode::Maybe,
            own: Mode::Maybe,
        }];
        for terms in disjunctions {
            let mut errors = Vec::new();
            cross = self.cross(node, &cross, terms, &mut errors);
            if self.exhausted.is_some() {
                let error = self.exhaust("disjunction");
                self.add_error(node, error);
                return;
            }
            if cross.is_empty() {
                self.empty_disjunction(node, errors);
                return;
            }
        }
        self.store_scalars(node, cross);
    }

    /// Combines what is left so far with every alternative of a disjunction.
    fn cross(
        &mut self,
        node: NodeId,
        before: &[Branch<Scalar>],
        terms: &Terms,
        errors: &mut Vec<ErrId>,
    ) -> Vec<Branch<Scalar>> {
        let mut stage = Stage::new();
        for branch in before {
            for (body, mark) in terms {
                self.counters.disjuncts += 1;
                if !self.step() || stage.len() > self.budget.disjuncts {
                    self.exhaust("disjunction");
                    return Vec::new();
                }
                match body {
                    Body::Plain(constraints) => {
                        match self.apply_constraints(node, &branch.value, constraints) {
                            Ok(result) => stage.plain(branch, result, *mark),
                            Err(error) => errors.push(error),
                        }
                    }
                    Body::Nested(inner) => {
                        let start = Branch {
                            own: *mark,
                            ..branch.clone()
                        };
                        // The depth of terms is bounded where they are collected.
                        let left = self.cross(node, &[start], inner, errors);
                        stage.nested(branch, left, *mark);
                    }
                }
            }
        }
        stage.finish(add_scalar)
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
                Constraint::Atom(value, pos) => (scalar.add_atom(value.clone(), *pos), *pos),
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

    fn store_scalars(&mut self, node: NodeId, mut cross: Vec<Branch<Scalar>>) {
        if cross.len() == 1 {
            if let Some(only) = cross.pop() {
                self.node_mut(node).scalar = only.value;
            }
            return;
        }
        let (parent, label) = (self.node(node).parent, self.node(node).label);
        let mut values = Vec::with_capacity(cross.len());
        for branch in cross {
            let value = self.new_node(parent, label);
            let slot = self.node_mut(value);
            slot.scalar = branch.value;
            slot.base = Base::Scalar;
            slot.status = Status::Final;
            slot.is_disjunct = true;
            values.push((value, branch.mode));
        }
        self.store_values(node, values);
    }
}

/// Adds an alternative, or the mark of one that is there already.
fn add_scalar(all: &mut Vec<Branch<Scalar>>, branch: Branch<Scalar>) {
    let known = all
        .iter_mut()
        .find(|other| scalars_equal(&other.value, &branch.value));
    match known {
        Some(known) if branch.mode == Mode::Default => known.mode = Mode::Default,
        Some(_) => {}
        None => all.push(branch),
    }
}
