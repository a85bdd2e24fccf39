//! From evaluated nodes to trees, which keep defaults and comments.

use super::syntax::SyntaxOptions;
use super::{Base, ErrId, Evaluator, NodeId};
use crate::ir::ArcKind;
use crate::tree::{Entry, Line, Tree};

/// Structs nested more deeply than this are left open.
const MAX_NESTING: usize = 500;

/// Bytes that a field, an element or a scalar counts for, besides its text.
const PART_BYTES: usize = 4;

impl Evaluator {
    /// The tree of a node. Definitions, hidden fields and fields without a value are left out, as they are
    /// in its [source text](Evaluator::source).
    pub(crate) fn tree(&mut self, node: NodeId) -> Result<Tree, ErrId> {
        self.finalize(node);
        let mut written = 0;
        let value = self.deref(node);
        let tree = if value == self.root && matches!(self.node(value).base, Base::Struct) {
            self.tree_fields(value, 0, &mut written)
        } else {
            self.tree_at(node, 0, &mut written)
        };
        // A value may be small and its tree large, where one part stands in many places.
        if written > self.budget.output {
            return Err(self.exhaust("output"));
        }
        Ok(tree)
    }

    fn tree_at(&mut self, node: NodeId, nesting: usize, written: &mut usize) -> Tree {
        *written += PART_BYTES;
        if nesting > MAX_NESTING || *written > self.budget.output {
            return Tree::Open("_".to_owned());
        }
        self.with_stack(super::limit::STACK_FOR_READING, |this| {
            this.tree_inner(node, nesting, written)
        })
    }

    fn tree_inner(&mut self, node: NodeId, nesting: usize, written: &mut usize) -> Tree {
        let node = self.deref(node);
        let slot = self.node(node);
        match slot.base {
            // Nothing but an error can come of it.
            Base::Error(_) => Tree::Open("_|_".to_owned()),
            Base::Disjunction(_) => self.open(node, nesting, written),
            Base::Struct => self.tree_fields(node, nesting + 1, written),
            Base::List => self.tree_list(node, nesting, written),
            Base::Unset if slot.has_struct => self.tree_fields(node, nesting + 1, written),
            Base::Scalar | Base::Unset => match &slot.scalar.atom {
                Some(atom) => {
                    let tree = Tree::of(atom);
                    *written += size(&tree);
                    tree
                }
                None => self.open(node, nesting, written),
            },
        }
    }

    /// A value that is not decided yet, as text.
    fn open(&mut self, node: NodeId, nesting: usize, written: &mut usize) -> Tree {
        let mut text = String::new();
        self.source_node(&mut text, node, SyntaxOptions::default(), nesting);
        *written += text.len();
        Tree::Open(text)
    }

    fn tree_fields(&mut self, node: NodeId, nesting: usize, written: &mut usize) -> Tree {
        let mut entries = Vec::new();
        for (label, arc) in self.ordered_arcs(node) {
            if !label.is_regular() || self.node(arc).arc != ArcKind::Member {
                continue;
            }
            let text = self.labels.text(label);
            *written += text.len();
            entries.push(Entry {
                label: text,
                docs: self.docs(arc),
                value: self.tree_at(arc, nesting, written),
            });
        }
        Tree::Struct(entries)
    }

    /// The comment lines of a field, from all its declarations.
    fn docs(&self, arc: NodeId) -> Vec<Line> {
        let metas = &self.program.metas;
        let lines = self.node(arc).metas.iter();
        let lines = lines.flat_map(|meta| &metas[meta.0 as usize].docs);
        lines.cloned().collect()
    }

    fn tree_list(&mut self, node: NodeId, nesting: usize, written: &mut usize) -> Tree {
        let mut items = Vec::new();
        for (label, arc) in self.ordered_arcs(node) {
            if label.is_index() {
                items.push(self.tree_at(arc, nesting, written));
            }
        }
        let is_open = self.node(node).list.is_some_and(|list| !list.closed);
        let rest = is_open.then(|| {
            let mut text = String::new();
            self.source_rest(&mut text, node, SyntaxOptions::default(), nesting);
            *written += text.len();
            text
        });
        Tree::List { items, rest }
    }
}

/// Bytes of the text of a scalar.
fn size(tree: &Tree) -> usize {
    use crate::value::Value;
    match tree {
        Tree::Literal(Value::String(text)) => text.len(),
        Tree::Literal(Value::Bytes(bytes)) => bytes.len(),
        _ => PART_BYTES,
    }
}
