//! Trees, as files of one package.
//!
//! What is written nowhere has no place, but the order of fields depends on places: the parts of a tree are
//! numbered in their order, as if they were written one after the other.

use std::collections::HashMap;

use super::{Compiler, Packages};
use crate::ast;
use crate::diagnostic::Diagnostic;
use crate::ir::{ArcKind, Decl, Element, Expr, ExprId, MetaId, PackageIr, Program, Run, StructId};
use crate::parser::parse_file;
use crate::token::Span;
use crate::tree::{Entry, Tree};
use crate::value::Value;

/// Compiles two trees that are unified, as two files of one package would be; comments are left out.
///
/// What only one of the trees has, and what is plain, stays plain data, of which nothing has to be evaluated.
pub(crate) fn compile_pair(
    (left_name, left): (&str, &Tree),
    (right_name, right): (&str, &Tree),
) -> Result<Program, Vec<Diagnostic>> {
    let files = [open_parts(left_name, left)?, open_parts(right_name, right)?];
    let none = Packages::new();
    let mut compiler = Compiler::new(&none, &none);
    let [left_file, right_file] = &files;
    let literals = vec![
        compiler.tree_file(left_file, left, Met::Tree(right)),
        compiler.tree_file(right_file, right, Met::Tree(left)),
    ];
    compiler.finish_trees(literals)
}

/// Compiles one tree; comments are left out.
pub(crate) fn compile_tree(name: &str, tree: &Tree) -> Result<Program, Vec<Diagnostic>> {
    let file = open_parts(name, tree)?;
    let none = Packages::new();
    let mut compiler = Compiler::new(&none, &none);
    let literal = compiler.tree_file(&file, tree, Met::Nothing);
    compiler.finish_trees(vec![literal])
}

/// The open parts of a tree as a file of fields, in the order in which the tree is gone through.
fn open_parts(name: &str, tree: &Tree) -> Result<ast::File, Vec<Diagnostic>> {
    let mut text = String::new();
    write_open_parts(tree, &mut text);
    let (file, problems) = parse_file(name, &text);
    if problems.is_empty() {
        Ok(file)
    } else {
        Err(problems)
    }
}

fn write_open_parts(tree: &Tree, text: &mut String) {
    match tree {
        Tree::Literal(_) => {}
        Tree::Open(part) => write_part(part, text),
        Tree::Struct(entries) => {
            for entry in entries {
                write_open_parts(&entry.value, text);
            }
        }
        Tree::List { items, rest } => {
            for item in items {
                write_open_parts(item, text);
            }
            if let Some(rest) = rest
                && !rest.is_empty()
            {
                write_part(rest, text);
            }
        }
    }
}

/// One field for each part, whatever its name.
fn write_part(part: &str, text: &mut String) {
    text.push_str("a: ");
    text.push_str(part);
    text.push('\n');
}

/// What a part of a tree is unified with.
#[derive(Clone, Copy)]
enum Met<'t> {
    Nothing,
    Tree(&'t Tree),
    /// Something that is known only when it is evaluated, or that contradicts the part.
    Anything,
}

impl<'t> Met<'t> {
    /// What fields of a struct meet that is unified with this.
    fn fields(self) -> MetFields<'t> {
        let entries = match self {
            Self::Tree(Tree::Struct(entries)) => entries.as_slice(),
            _ => &[],
        };
        let by_label = (entries.len() > SEARCHED_ENTRIES).then(|| {
            let entries = entries.iter();
            entries.map(|it| (&*it.label, &it.value)).collect()
        });
        MetFields {
            met: self,
            entries,
            by_label,
        }
    }

    fn element(self, position: usize) -> Self {
        match self {
            Self::Tree(Tree::List { items, rest }) => match (items.get(position), rest) {
                (Some(item), _) => Self::Tree(item),
                (None, Some(rest)) if rest.is_empty() => Self::Nothing,
                (None, _) => Self::Anything,
            },
            Self::Nothing => Self::Nothing,
            Self::Tree(_) | Self::Anything => Self::Anything,
        }
    }
}

/// Structs with more fields are looked up by an index: time must not grow with the square of their number.
const SEARCHED_ENTRIES: usize = 16;

/// What the fields of a struct are unified with.
struct MetFields<'t> {
    met: Met<'t>,
    entries: &'t [Entry],
    by_label: Option<HashMap<&'t str, &'t Tree>>,
}

impl<'t> MetFields<'t> {
    fn get(&self, label: &str) -> Met<'t> {
        let found = match (self.met, &self.by_label) {
            (Met::Nothing, _) => return Met::Nothing,
            (Met::Tree(Tree::Struct(_)), Some(index)) => index.get(label).copied(),
            (Met::Tree(Tree::Struct(_)), None) => {
                let mut entries = self.entries.iter();
                entries.find(|it| *it.label == *label).map(|it| &it.value)
            }
            (Met::Tree(_) | Met::Anything, _) => return Met::Anything,
        };
        found.map_or(Met::Nothing, Met::Tree)
    }
}

/// A compiled part of a tree.
enum Part {
    Data(Value),
    Expr(ExprId),
}

/// The parts of one tree on their way into a program.
struct Walk<'a> {
    /// The open parts that are still to come.
    open: std::slice::Iter<'a, ast::Decl>,
    /// The place of the next part.
    next: u32,
}

impl Walk<'_> {
    fn place(&mut self) -> Span {
        let start = self.next;
        // The largest number stands for no place.
        self.next = start.saturating_add(1).min(u32::MAX - 1);
        Span { start, end: start }
    }
}

impl<'a> Compiler<'a> {
    fn finish_trees(mut self, files: Vec<StructId>) -> Result<Program, Vec<Diagnostic>> {
        if !self.diagnostics.is_empty() {
            return Err(self.diagnostics);
        }
        self.program.packages.push(PackageIr { files });
        self.program.labels = std::sync::Arc::new(self.labels);
        Ok(self.program)
    }

    fn tree_file(&mut self, file: &'a ast::File, tree: &Tree, met: Met<'_>) -> StructId {
        self.open_file(file);
        let mut walk = Walk {
            open: file.decls.iter(),
            next: u32::try_from(file.source.len()).unwrap_or(u32::MAX - 1),
        };
        let decls = if let Tree::Struct(entries) = tree {
            self.tree_fields(entries, met, &mut walk)
        } else {
            let part = self.tree_part(tree, met, false, &mut walk);
            vec![Decl::Embed(self.tree_expr(part, &mut walk))]
        };
        self.finish_struct(decls, true, Span::default())
    }

    fn tree_expr(&mut self, part: Part, walk: &mut Walk<'a>) -> ExprId {
        match part {
            Part::Data(value) => self.add_value(value, walk.place()),
            Part::Expr(expr) => expr,
        }
    }

    /// A part of a tree. Lists that are values of fields are open, or are opened before they are merged again: as
    /// data they may be closed.
    fn tree_part(
        &mut self,
        tree: &Tree,
        met: Met<'_>,
        is_field: bool,
        walk: &mut Walk<'a>,
    ) -> Part {
        match tree {
            Tree::Literal(value) => Part::Data(value.clone()),
            Tree::Open(_) => Part::Expr(self.open_part(walk)),
            Tree::Struct(entries) => stacker::maybe_grow(64 * 1024, 1024 * 1024, || {
                self.tree_struct(entries, met, walk)
            }),
            Tree::List { items, rest } => stacker::maybe_grow(64 * 1024, 1024 * 1024, || {
                self.tree_list((items, rest.as_deref()), met, is_field, walk)
            }),
        }
    }

    fn open_part(&mut self, walk: &mut Walk<'a>) -> ExprId {
        match walk.open.next().map(|decl| &decl.kind) {
            Some(ast::DeclKind::Field(field)) => self.expr(&field.value),
            _ => self.add(Expr::Bottom, walk.place()),
        }
    }

    fn tree_struct(&mut self, entries: &[Entry], met: Met<'_>, walk: &mut Walk<'a>) -> Part {
        if !matches!(met, Met::Nothing) {
            let span = walk.place();
            let decls = self.tree_fields(entries, met, walk);
            let literal = self.finish_struct(decls, false, span);
            return Part::Expr(self.add(Expr::Struct(literal), span));
        }
        let span = walk.place();
        let mut parts = Vec::with_capacity(entries.len());
        for entry in entries {
            parts.push(self.tree_part(&entry.value, Met::Nothing, true, walk));
        }
        if parts.iter().all(|part| matches!(part, Part::Data(_))) {
            let labels = entries.iter().map(|entry| entry.label.clone());
            let values = parts.into_iter().filter_map(|part| match part {
                Part::Data(value) => Some(value),
                Part::Expr(_) => None,
            });
            return Part::Data(Value::structure(labels.zip(values)));
        }
        let mut decls = Vec::with_capacity(entries.len());
        for (entry, part) in entries.iter().zip(parts) {
            decls.push(self.tree_field(entry, part, walk));
        }
        let literal = self.finish_struct(decls, false, span);
        Part::Expr(self.add(Expr::Struct(literal), span))
    }

    fn tree_fields(&mut self, entries: &[Entry], met: Met<'_>, walk: &mut Walk<'a>) -> Vec<Decl> {
        let met = met.fields();
        let mut decls = Vec::with_capacity(entries.len());
        for entry in entries {
            let part = self.tree_part(&entry.value, met.get(&entry.label), true, walk);
            decls.push(self.tree_field(entry, part, walk));
        }
        decls
    }

    fn tree_field(&mut self, entry: &Entry, part: Part, walk: &mut Walk<'a>) -> Decl {
        Decl::Field {
            label: self.labels.string(&entry.label),
            kind: ArcKind::Member,
            value: self.tree_expr(part, walk),
            meta: MetaId(0),
        }
    }

    fn tree_list(
        &mut self,
        (items, rest): (&[Tree], Option<&str>),
        met: Met<'_>,
        is_field: bool,
        walk: &mut Walk<'a>,
    ) -> Part {
        let span = walk.place();
        let mut parts = Vec::with_capacity(items.len());
        for (position, item) in items.iter().enumerate() {
            parts.push(self.tree_part(item, met.element(position), false, walk));
        }
        let is_data = matches!(met, Met::Nothing)
            && rest.is_none_or(|rest| is_field && rest.is_empty())
            && parts.iter().all(|part| matches!(part, Part::Data(_)));
        if is_data {
            return Part::Data(Value::list(parts.into_iter().filter_map(
                |part| match part {
                    Part::Data(value) => Some(value),
                    Part::Expr(_) => None,
                },
            )));
        }
        let mut elements = Vec::with_capacity(parts.len() + 1);
        for part in parts {
            elements.push(Element::Value(self.tree_expr(part, walk)));
        }
        if let Some(rest) = rest {
            let rest = if rest.is_empty() {
                self.add(Expr::Top, walk.place())
            } else {
                self.open_part(walk)
            };
            elements.push(Element::Ellipsis(rest));
        }
        let elements = Run::append(&mut self.program.elements, elements);
        Part::Expr(self.add(Expr::List(elements), span))
    }
}
