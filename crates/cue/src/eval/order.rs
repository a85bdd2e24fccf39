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
use crate::quick::{QuickMap, QuickSet};
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
        if self.is_in_order(node) {
            return slot.arcs.clone();
        }
        if slot.list.is_some() {
            let mut arcs = slot.arcs.clone();
            arcs.sort_by_key(|(label, _)| label.as_index().unwrap_or(usize::MAX));
            return arcs;
        }
        let shape = self.shape(node);
        if !self.orders.contains_key(&shape) {
            let order = self.field_order(node);
            let arcs = &self.node(node).arcs;
            let mut places: Vec<usize> = (0..arcs.len()).collect();
            places.sort_by_key(|place| order.get(&arcs[*place].0).copied().unwrap_or(usize::MAX));
            self.orders.insert(shape.clone(), places);
        }
        let arcs = &self.node(node).arcs;
        let places = self.orders.get(&shape).into_iter().flatten();
        places.map(|place| arcs[*place]).collect()
    }

    /// Whether the fields of a node are listed in the order in which they came.
    pub(crate) fn is_in_order(&self, node: NodeId) -> bool {
        let slot = self.node(node);
        if slot.list.is_some() {
            let place = |(label, _): &(Label, NodeId)| label.as_index().unwrap_or(usize::MAX);
            return slot.arcs.is_sorted_by_key(place);
        }
        slot.arcs.len() <= 1 || slot.literals.len() <= 1
    }

    /// Everything that decides about the order of the fields of a node. Elements of one list mostly
    /// have it in common, and are sorted once.
    fn shape(&self, node: NodeId) -> Vec<u32> {
        let slot = self.node(node);
        let mut shape: Vec<u32> = Vec::with_capacity(slot.literals.len() + 4 * slot.arcs.len());
        shape.extend(slot.literals.iter().map(|literal| literal.0));
        let of_source = |source: Source| match source {
            Source::Expr(expr) => expr.0,
            _ => u32::MAX,
        };
        shape.push(u32::MAX);
        shape.extend(slot.conjuncts.iter().map(|own| of_source(own.source)));
        for (label, arc) in &slot.arcs {
            shape.extend([u32::MAX, label.raw()]);
            for conjunct in &self.node(*arc).conjuncts {
                shape.push(of_source(conjunct.source));
                let reference = self.oldest_reference(conjunct.info.refs);
                shape.push(reference.map_or(u32::MAX, |reference| reference.0));
            }
        }
        shape
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
        let batches = batches(program, literals, &computed);
        let sorted = chain(program, &batches, &computed, &slot.arcs).unwrap_or_else(|| {
            let mut graph = Graph::default();
            for (label, _) in &slot.arcs {
                graph.node(*label);
            }
            add_edges(program, &mut graph, batches, computed);
            graph.sort(|left, right| self.compare_labels(left, right))
        });
        sorted
            .into_iter()
            .enumerate()
            .map(|(position, label)| (label, position))
            .collect()
    }

    fn compare_labels(&self, left: Label, right: Label) -> std::cmp::Ordering {
        match (left.as_index(), right.as_index()) {
            (None, None) => self.labels.spelling(left).cmp(self.labels.spelling(right)),
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

/// The order, where literals simply follow each other: nothing is left to decide then.
fn chain(
    program: &Program,
    batches: &[Vec<Literal>],
    computed: &Computed,
    arcs: &[(Label, NodeId)],
) -> Option<Vec<Label>> {
    let file = batches.first()?.first()?.pos.file;
    let mut chain: Vec<Label> = Vec::with_capacity(arcs.len());
    let mut seen: QuickSet<Label> = QuickSet::default();
    for batch in batches {
        let [literal] = batch.as_slice() else {
            return None;
        };
        if literal.explicit || !literal.pos.is_known() || literal.pos.file != file {
            return None;
        }
        for decl in &program.structure(literal.id).decls {
            match decl {
                Decl::Field { label, .. } if seen.insert(*label) => chain.push(*label),
                Decl::Dynamic { value, .. } if computed.contains_key(value) => return None,
                _ => {}
            }
        }
    }
    let is_complete = arcs.iter().all(|(label, _)| seen.contains(label));
    is_complete.then_some(chain)
}

/// Draws the edges between labels: along each literal, and from one batch of literals to the next.
fn add_edges(
    program: &Program,
    graph: &mut Graph,
    batches: Vec<Vec<Literal>>,
    mut computed: Computed,
) {
    let mut frontier: Vec<Label> = Vec::new();
    let mut previous_file = None;
    let mut owners: QuickMap<Label, (usize, Pos)> = QuickMap::default();
    let mut next_index = 0;
    for batch in batches {
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

/// Sorts literals by position. Those at one position form a batch; batches of explicit unification that follow each other
/// are one.
fn batches(
    program: &Program,
    mut literals: Vec<Literal>,
    computed: &Computed,
) -> Vec<Vec<Literal>> {
    literals.sort_by(|left, right| {
        compare_positions(program, left.pos, right.pos).then_with(|| {
            let late = |literal: &Literal| has_computed(program, literal, computed);
            late(left).cmp(&late(right))
        })
    });
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
