//! The order of fields, visible in `for`, in marshalled text and in exports.
//!
//! Fields of one struct literal keep their order, literals come in the order of their positions,
//! the operands of an explicit `&` impose no order on each other, and what is left undecided is
//! sorted by name. A literal counts as standing where the last of its fields stands, or where the
//! reference stands that brought it in; that is why fields of a comprehension may come before the
//! static fields around it. All this follows the reference (cue: internal/core/toposort), because
//! the order shows in strings made by `json.Marshal`.

mod graph;

use smallvec::SmallVec;

use self::graph::Graph;
use super::{Evaluator, NodeId, Source};
use crate::ir::{Decl, Expr, ExprId, Program, StructId};
use crate::label::Label;
use crate::quick::QuickMap;
use crate::token::Pos;

/// A struct literal of a node, and where it counts as standing.
struct Literal {
    id: StructId,
    pos: Pos,
    /// Part of an explicit unification.
    explicit: bool,
}

/// Literals by the expressions they are reached through.
type Reached = QuickMap<ExprId, SmallVec<[usize; 2]>>;

/// Labels that computed fields got, by the value of their declaration.
type Computed = QuickMap<ExprId, Vec<Label>>;

impl Evaluator {
    /// The fields of a node in the order they are listed.
    pub(crate) fn ordered_arcs(&mut self, node: NodeId) -> Vec<(Label, NodeId)> {
        let node = self.deref(node);
        self.expand(node);
        let slot = self.node(node);
        let mut arcs = slot.arcs.clone();
        if slot.list.is_some() {
            arcs.sort_by_key(|(label, _)| label.as_index().unwrap_or(usize::MAX));
        } else if arcs.len() > 1 && slot.literals.len() > 1 {
            let order = self.field_order(node);
            arcs.sort_by_key(|(label, _)| order.get(label).copied().unwrap_or(usize::MAX));
        }
        arcs
    }

    fn field_order(&self, node: NodeId) -> QuickMap<Label, usize> {
        let program = &self.program;
        let slot = self.node(node);
        let mut literals: Vec<Literal> = Vec::with_capacity(slot.literals.len());
        let mut reached = Reached::default();
        let mut copies: QuickMap<StructId, u32> = QuickMap::default();
        for id in &slot.literals {
            // A literal may be unified with itself any number of times; two tell as much as all.
            let count = copies.entry(*id).or_default();
            *count += 1;
            if *count > 2 {
                continue;
            }
            for decl in &program.structure(*id).decls {
                if let Decl::Field { value, .. } | Decl::Dynamic { value, .. } = decl {
                    reached.entry(*value).or_default().push(literals.len());
                }
            }
            literals.push(Literal {
                id: *id,
                pos: program.structure(*id).pos,
                explicit: false,
            });
        }
        let computed = self.locate_literals(node, &mut literals, &mut reached);
        self.mark_explicit(node, &mut literals, &reached);
        let mut graph = Graph::default();
        for (label, _) in &slot.arcs {
            graph.node(*label);
        }
        add_edges(program, &mut graph, literals, computed);
        let sorted = graph.sort(|left, right| self.compare_labels(left, right));
        sorted
            .into_iter()
            .enumerate()
            .map(|(position, label)| (label, position))
            .collect()
    }

    fn compare_labels(&self, left: Label, right: Label) -> std::cmp::Ordering {
        match (left.as_index(), right.as_index()) {
            (None, None) => self.labels.text(left).cmp(&self.labels.text(right)),
            (left, right) => left.is_none().cmp(&right.is_none()).then(left.cmp(&right)),
        }
    }

    /// Moves every literal to the place of its last field, or of the reference that brought it
    /// in, and collects the labels of computed fields.
    fn locate_literals(
        &self,
        node: NodeId,
        literals: &mut [Literal],
        reached: &mut Reached,
    ) -> Computed {
        let program = &self.program;
        let mut computed = Computed::default();
        for literal in literals.iter() {
            for decl in &program.structure(literal.id).decls {
                if let Decl::Dynamic { value, .. } = decl {
                    computed.insert(*value, Vec::new());
                }
            }
        }
        for (label, arc) in &self.node(node).arcs {
            for conjunct in &self.node(*arc).conjuncts {
                let Source::Expr(expr) = conjunct.source else {
                    continue;
                };
                if let Some(labels) = computed.get_mut(&expr) {
                    labels.push(*label);
                }
                let Some(found) = reached.get(&expr).cloned() else {
                    continue;
                };
                for index in &found {
                    literals[*index].pos = program.pos(expr);
                }
                let Some(reference) = self.oldest_reference(conjunct.info.refs) else {
                    continue;
                };
                let known = reached.entry(reference).or_default();
                for index in found {
                    if !known.contains(&index) {
                        known.push(index);
                    }
                }
                let pos = program.pos(reference);
                if pos.is_known() {
                    for index in known.iter() {
                        literals[*index].pos = pos;
                    }
                }
            }
        }
        computed.retain(|_, labels| !labels.is_empty());
        computed
    }

    /// Marks the literals that are operands of an explicit `&`.
    fn mark_explicit(&self, node: NodeId, literals: &mut [Literal], reached: &Reached) {
        let program = &self.program;
        let mut pending: Vec<ExprId> = Vec::new();
        for conjunct in &self.node(node).conjuncts {
            if let Source::Expr(expr) = conjunct.source {
                pending.push(expr);
            }
        }
        for literal in literals.iter() {
            for decl in &program.structure(literal.id).decls {
                if let Decl::Embed(expr) = decl {
                    pending.push(*expr);
                }
            }
        }
        while let Some(expr) = pending.pop() {
            let Expr::And(left, right) = program.expr(expr) else {
                continue;
            };
            for operand in [left, right] {
                if let Expr::Struct(id) = program.expr(operand) {
                    let own = literals.iter_mut().filter(|literal| literal.id == id);
                    own.for_each(|literal| literal.explicit = true);
                }
                for index in reached.get(&operand).into_iter().flatten() {
                    literals[*index].explicit = true;
                }
                pending.push(operand);
            }
        }
    }
}

/// Whether a literal has computed fields that exist.
fn has_computed(program: &Program, literal: &Literal, computed: &Computed) -> bool {
    program
        .structure(literal.id)
        .decls
        .iter()
        .any(|decl| matches!(decl, Decl::Dynamic { value, .. } if computed.contains_key(value)))
}

/// Orders literals by position, files by name; unknown positions come last.
fn compare_positions(program: &Program, left: Pos, right: Pos) -> std::cmp::Ordering {
    if left.file == right.file || !left.is_known() || !right.is_known() {
        return (!left.is_known(), left.offset).cmp(&(!right.is_known(), right.offset));
    }
    let name = |pos: Pos| {
        program
            .sources
            .get(usize::from(pos.file.0))
            .map(|source| &*source.name)
    };
    name(left)
        .cmp(&name(right))
        .then(left.offset.cmp(&right.offset))
}

/// Draws the edges between labels: along each literal, and from one batch of literals to the next.
fn add_edges(
    program: &Program,
    graph: &mut Graph,
    mut literals: Vec<Literal>,
    mut computed: Computed,
) {
    literals.sort_by(|left, right| {
        compare_positions(program, left.pos, right.pos).then_with(|| {
            let late = |literal: &Literal| has_computed(program, literal, &computed);
            late(left).cmp(&late(right))
        })
    });
    let mut frontier: Vec<Label> = Vec::new();
    let mut previous_file = None;
    let mut owners: QuickMap<Label, (usize, Pos)> = QuickMap::default();
    let mut next_index = 0;
    for batch in batches(program, literals, &computed) {
        let file = batch[0].pos.file;
        if previous_file.is_some_and(|previous| previous != file) {
            frontier.clear();
        }
        previous_file = Some(file);
        let explicit = is_explicit(&batch);
        let mut next = Vec::new();
        for literal in batch {
            let mut last = frontier.clone();
            for decl in &program.structure(literal.id).decls {
                let label = match decl {
                    Decl::Field { label, .. } => Some(*label),
                    Decl::Dynamic { value, .. } => computed
                        .get_mut(value)
                        .and_then(|labels| (!labels.is_empty()).then(|| labels.remove(0))),
                    _ => None,
                };
                let Some(label) = label else { continue };
                let known = owners.get(&label).is_some_and(|(index, pos)| {
                    // The same literal, or another one of the same file unified implicitly.
                    *index == next_index
                        || (!explicit && literal.pos.is_known() && pos.file == literal.pos.file)
                });
                if known {
                    continue;
                }
                owners.insert(label, (next_index, literal.pos));
                for before in &last {
                    graph.edge(*before, label);
                }
                last = vec![label];
            }
            next.extend(last);
            next_index += 1;
        }
        frontier = next;
    }
}

fn is_explicit(batch: &[Literal]) -> bool {
    batch.len() > 1 || batch.iter().any(|literal| literal.explicit)
}

/// Literals at one position form a batch; batches of explicit unification that follow each other
/// are one.
fn batches(program: &Program, literals: Vec<Literal>, computed: &Computed) -> Vec<Vec<Literal>> {
    let mut result: Vec<Vec<Literal>> = Vec::new();
    let mut batch: Vec<Literal> = Vec::new();
    let mut close = |batch: Vec<Literal>| {
        let Some(first) = batch.first() else { return };
        match result.last_mut() {
            Some(previous)
                if is_explicit(&batch)
                    && is_explicit(previous)
                    && previous[0].pos.file == first.pos.file =>
            {
                previous.extend(batch);
            }
            _ => result.push(batch),
        }
    };
    for literal in literals {
        let joins = batch.first().is_none_or(|first| {
            first.pos == literal.pos && !has_computed(program, &literal, computed)
        });
        if !joins {
            close(std::mem::take(&mut batch));
        }
        batch.push(literal);
    }
    close(batch);
    result
}
