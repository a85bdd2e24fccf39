//! Filling in data after an evaluation: only what may depend on the data is evaluated again.
//!
//! Dependencies are read off the program, field by field of the package: a field depends on every
//! field of the package whose name occurs in it. That is more than the truth where an inner field has
//! the same name, and never less. Fields made by comprehensions or embeddings at the top of a file
//! have no place of their own to start again from; data they depend on starts everything again.

use super::node::Node;
use super::{CloseInfo, Conjunct, Evaluator, NodeId, Status};
use crate::ir::{Clause, Decl, Element, Expr, ExprId, StructId};
use crate::label::Label;
use crate::quick::QuickSet;
use crate::value::Value;

/// The names that occur somewhere, or that any name may.
#[derive(Debug, Default)]
struct Mentions {
    labels: QuickSet<Label>,
    anything: bool,
}

impl Mentions {
    fn touches(&self, affected: &QuickSet<Label>) -> bool {
        self.anything || self.labels.iter().any(|label| affected.contains(label))
    }
}

impl Evaluator {
    /// Adds data at a path below the root. Before the first evaluation this only lists one more
    /// conjunct.
    pub(crate) fn fill(&mut self, path: &[&str], data: Value) {
        let mut whole = data;
        for name in path.iter().rev() {
            whole = Value::structure([((*name).into(), whole)]);
        }
        let affected = path.first().and_then(|name| self.dependents(name));
        let source = self.data(whole.clone());
        let info = CloseInfo {
            key: u64::from(u32::MAX) + self.values.len() as u64,
            ..CloseInfo::default()
        };
        let conjunct = Conjunct {
            source,
            env: super::NO_ENV,
            info,
        };
        let root = self.root;
        if self.node(root).status == Status::New {
            self.node_mut(root).conjuncts.push(conjunct);
            return;
        }
        match (affected, whole) {
            (Some(affected), Value::Struct(fields)) if self.can_restart(root) => {
                self.node_mut(root).conjuncts.push(conjunct);
                self.restart(root, &affected);
                for (name, value) in fields.iter() {
                    let label = self.labels.string(name);
                    self.insert_data(root, label, 0, value, info);
                }
            }
            _ => {
                let conjuncts = self.node(root).conjuncts.clone();
                self.reset();
                let slot = self.node_mut(self.root);
                slot.conjuncts = conjuncts;
                slot.conjuncts.push(conjunct);
            }
        }
    }

    /// Whether the fields of a node can start again one by one.
    fn can_restart(&self, root: NodeId) -> bool {
        let slot = self.node(root);
        slot.status >= Status::Settled
            && slot.error.is_none()
            && slot.disjunct.is_none()
            && slot.shared.is_none()
            && slot.lazy.is_none()
            && slot.tasks.is_empty()
            && slot.disjunctions.is_empty()
            && self.exhausted.is_none()
    }

    /// Puts the fields with the given labels back to where they were before evaluation.
    fn restart(&mut self, root: NodeId, affected: &QuickSet<Label>) {
        // What is bound by `let` may depend on the data; it is cheap to bind again.
        self.lets.clear();
        let arcs = std::mem::take(&mut self.node_mut(root).arcs);
        self.node_mut(root).clear_arcs();
        for (label, arc) in arcs {
            let arc = if affected.contains(&label) {
                self.fresh(root, label, arc)
            } else {
                arc
            };
            self.node_mut(root).push_arc(label, arc);
        }
        let slot = self.node_mut(root);
        slot.status = Status::Settled;
        slot.child_error = None;
    }

    /// A node with the conjuncts of another and nothing evaluated.
    fn fresh(&mut self, parent: NodeId, label: Label, old: NodeId) -> NodeId {
        let node = self.new_node(parent, label);
        let Node {
            conjuncts,
            metas,
            arc,
            ..
        } = self.node_mut(old);
        let (conjuncts, metas, arc) = (conjuncts.clone(), metas.clone(), *arc);
        let slot = self.node_mut(node);
        slot.conjuncts = conjuncts;
        slot.metas = metas;
        slot.arc = arc;
        node
    }

    /// The fields of the main package that data at one of them may change, that one included;
    /// `None` for all.
    fn dependents(&mut self, name: &str) -> Option<QuickSet<Label>> {
        let start = self.labels.string(name);
        let files = self.program.packages.first()?.files.clone();
        let mut fields: Vec<(Label, Mentions)> = Vec::new();
        let mut everywhere = Mentions::default();
        let mut computed = Mentions::default();
        for file in files {
            for decl in &self.program.structure(file).decls {
                match *decl {
                    Decl::Field { label, value, .. } => {
                        let mut mentions = Mentions::default();
                        self.mentions(value, &mut mentions);
                        fields.push((label, mentions));
                    }
                    Decl::Pattern { pattern, value, .. } => {
                        self.mentions(pattern, &mut computed);
                        self.mentions(value, &mut everywhere);
                    }
                    Decl::Ellipsis => {}
                    Decl::Dynamic { .. } | Decl::Embed(_) | Decl::Comprehension(_) => {
                        self.decl_mentions(*decl, &mut computed);
                    }
                }
            }
        }
        let mut affected: QuickSet<Label> = [start].into_iter().collect();
        loop {
            if computed.touches(&affected) || everywhere.touches(&affected) {
                return None;
            }
            let known = affected.len();
            for (label, mentions) in &fields {
                if mentions.touches(&affected) {
                    affected.insert(*label);
                }
            }
            if affected.len() == known {
                return Some(affected);
            }
        }
    }

    fn decl_mentions(&self, decl: Decl, found: &mut Mentions) {
        match decl {
            Decl::Field { value, .. } | Decl::Embed(value) => self.mentions(value, found),
            Decl::Dynamic {
                key: left,
                value: right,
                ..
            }
            | Decl::Pattern {
                pattern: left,
                value: right,
                ..
            } => {
                self.mentions(left, found);
                self.mentions(right, found);
            }
            Decl::Comprehension(id) => {
                let comprehension = self.program.comprehension(id);
                for clause in &comprehension.clauses {
                    let (Clause::For { source: part }
                    | Clause::If { condition: part }
                    | Clause::Let { value: part }) = clause;
                    self.mentions(*part, found);
                }
                self.struct_mentions(comprehension.value, found);
            }
            Decl::Ellipsis => {}
        }
    }

    fn struct_mentions(&self, literal: StructId, found: &mut Mentions) {
        for decl in &self.program.structure(literal).decls {
            self.decl_mentions(*decl, found);
        }
    }

    /// The names of fields that occur in an expression. The parser bounds the nesting.
    fn mentions(&self, expr: ExprId, found: &mut Mentions) {
        stacker::maybe_grow(super::STACK_FOR_READING, super::STACK_MORE, || {
            self.mentions_inner(expr, found);
        });
    }

    fn mentions_inner(&self, expr: ExprId, found: &mut Mentions) {
        let program = &self.program;
        match program.expr(expr) {
            Expr::Field { label, .. } => {
                found.labels.insert(label);
            }
            Expr::DynamicField { .. } => found.anything = true,
            Expr::Let { id, .. } => self.mentions(program.lets[id.0 as usize], found),
            Expr::Bound(_, inner)
            | Expr::Unary(_, inner)
            | Expr::WithSelf(inner)
            | Expr::Selector { base: inner, .. } => self.mentions(inner, found),
            Expr::Index {
                base: left,
                index: right,
            }
            | Expr::Binary { left, right, .. }
            | Expr::And(left, right) => {
                self.mentions(left, found);
                self.mentions(right, found);
            }
            Expr::Slice { base, low, high } => {
                for part in [Some(base), low, high].into_iter().flatten() {
                    self.mentions(part, found);
                }
            }
            Expr::Call {
                function,
                arguments,
            } => {
                self.mentions(function, found);
                for argument in program.operands(arguments) {
                    self.mentions(*argument, found);
                }
            }
            Expr::Interpolation { parts, .. } => {
                for part in program.operands(parts) {
                    self.mentions(*part, found);
                }
            }
            Expr::Struct(literal) => self.struct_mentions(literal, found),
            Expr::List(elements) => {
                for element in program.elements(elements) {
                    match *element {
                        Element::Value(value) | Element::Ellipsis(Some(value)) => {
                            self.mentions(value, found);
                        }
                        Element::Comprehension(id) => {
                            self.decl_mentions(Decl::Comprehension(id), found);
                        }
                        Element::Ellipsis(None) => {}
                    }
                }
            }
            Expr::Disjunction { terms, .. } => {
                for term in program.terms(terms) {
                    self.mentions(term.value, found);
                }
            }
            Expr::Bottom
            | Expr::Top
            | Expr::Type(_)
            | Expr::Value(_)
            | Expr::Range(..)
            | Expr::ForKey { .. }
            | Expr::ForValue { .. }
            | Expr::ClauseLet { .. }
            | Expr::PatternLabel { .. }
            | Expr::SelfValue { .. }
            | Expr::Import(_)
            | Expr::Function(_) => {}
        }
    }

    /// Forgets everything evaluated.
    fn reset(&mut self) {
        let values = std::mem::take(&mut self.values);
        let mut fresh = Self::new(self.program.clone(), self.budget);
        fresh.values = values;
        fresh.labels = std::mem::take(&mut self.labels);
        fresh.strict = self.strict;
        fresh.deadline = self.deadline.take();
        fresh.counters.steps = self.counters.steps;
        *self = fresh;
    }
}
