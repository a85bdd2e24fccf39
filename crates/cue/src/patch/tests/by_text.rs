//! Patches by way of texts: base and patch are written, read, aligned, written again, and compiled as two files. What
//! [`apply`](super::super::apply) does without texts has to come to the same.

use std::fmt::Write as _;

use super::super::{Operand, PatchError, marker};
use crate::ast::{DeclKind, ElementKind, Expr, ExprKind, File, LabelKind};
use crate::diagnostic::Diagnostic;
use crate::host::{Budget, Evaluation, SyntaxOptions, Template};
use crate::label::{is_identifier, quote};
use crate::parser::{is_keyword, parse_file};
use crate::tree::Line;

pub(super) fn unify(
    mut base: Operand<'_>,
    mut patch: Operand<'_>,
    budget: Budget,
) -> Result<Evaluation, PatchError> {
    let mut base = parsed(&mut base)?;
    let mut patch = parsed(&mut patch)?;
    base.open_lists();
    align(&mut base, &mut patch);
    evaluated(&[base.to_source(), patch.to_source()], budget)
}

/// An operand as a tree of fields, with everything else as text.
fn parsed(operand: &mut Operand<'_>) -> Result<Tree, PatchError> {
    let problems = operand.evaluation.validate(operand.value);
    if !problems.is_empty() {
        return Err(PatchError::Result(problems));
    }
    let options = SyntaxOptions {
        docs: true,
        ..SyntaxOptions::default()
    };
    let text = operand.evaluation.source(operand.value, options);
    let text = text.map_err(|problem| PatchError::Result(vec![problem]))?;
    Tree::parse(&text).map_err(PatchError::Result)
}

/// Unifies texts, one file each, and checks the result.
fn evaluated(texts: &[String], budget: Budget) -> Result<Evaluation, PatchError> {
    const NAMES: [&str; 2] = ["base", "patch"];
    let files: Vec<(&str, &str)> = NAMES
        .iter()
        .zip(texts)
        .map(|(name, text)| (*name, text.as_str()))
        .collect();
    let template = Template::compile_files(&files, &[]).map_err(PatchError::Result)?;
    let mut evaluation = template.evaluate(budget);
    let root = evaluation.root();
    let problems = evaluation.validate(root);
    if problems.is_empty() {
        Ok(evaluation)
    } else {
        Err(PatchError::Result(problems))
    }
}

/// A value.
#[derive(Debug, Clone, PartialEq)]
enum Tree {
    Struct(Vec<Entry>),
    List {
        items: Vec<Tree>,
        /// The text after `...`, when the list is open.
        rest: Option<String>,
    },
    /// A literal; only these identify elements.
    Literal(String),
    /// Any other expression.
    Other(String),
}

/// A field.
#[derive(Debug, Clone, PartialEq)]
struct Entry {
    label: String,
    docs: Vec<Line>,
    value: Tree,
}

impl Tree {
    /// Reads the text of an evaluated value.
    fn parse(text: &str) -> Result<Self, Vec<Diagnostic>> {
        let (file, problems) = parse_file("-", text);
        if !problems.is_empty() {
            return Err(problems);
        }
        // A value inside braces is a file with one embedding.
        if let [decl] = file.decls.as_slice()
            && let DeclKind::Embed(expr) = &decl.kind
        {
            return Ok(Self::from_expr(&file, expr));
        }
        Ok(Self::Struct(
            file.decls
                .iter()
                .filter_map(|decl| entry(&file, decl))
                .collect(),
        ))
    }

    fn from_expr(file: &File, expr: &Expr) -> Self {
        let text = || expr.span.text(&file.source).to_owned();
        match &expr.kind {
            ExprKind::Paren(inner) => Self::from_expr(file, inner),
            ExprKind::Struct(literal) => {
                let plain = literal
                    .decls
                    .iter()
                    .all(|decl| matches!(decl.kind, DeclKind::Field(_)));
                if !plain {
                    return Self::Other(text());
                }
                let entries = literal.decls.iter().filter_map(|decl| entry(file, decl));
                Self::Struct(entries.collect())
            }
            ExprKind::List(literal) => {
                let mut items = Vec::new();
                let mut rest = None;
                for element in &literal.elements {
                    match &element.kind {
                        ElementKind::Value(value) => items.push(Self::from_expr(file, value)),
                        ElementKind::Ellipsis(bound) => {
                            let bound = bound.as_ref().map(|b| b.span.text(&file.source));
                            rest = Some(bound.unwrap_or("").to_owned());
                        }
                        ElementKind::Comprehension(_) => return Self::Other(text()),
                    }
                }
                Self::List { items, rest }
            }
            ExprKind::Null
            | ExprKind::Bool(_)
            | ExprKind::Number
            | ExprKind::String(_)
            | ExprKind::Bytes(_) => Self::Literal(text()),
            _ => Self::Other(text()),
        }
    }

    /// Follows labels and list positions.
    fn find_mut(&mut self, path: &[String]) -> Option<&mut Tree> {
        let Some((first, rest)) = path.split_first() else {
            return Some(self);
        };
        match self {
            Self::Struct(entries) => {
                let entry = entries.iter_mut().find(|entry| entry.label == *first)?;
                entry.value.find_mut(rest)
            }
            Self::List { items, .. } => items.get_mut(first.parse::<usize>().ok()?)?.find_mut(rest),
            Self::Literal(_) | Self::Other(_) => None,
        }
    }

    /// Like [`Tree::find_mut`] without the right to change.
    fn find(&self, path: &[&str]) -> Option<&Tree> {
        let Some((first, rest)) = path.split_first() else {
            return Some(self);
        };
        match self {
            Self::Struct(entries) => entries
                .iter()
                .find(|entry| entry.label == *first)?
                .value
                .find(rest),
            Self::List { items, .. } => items.get(first.parse::<usize>().ok()?)?.find(rest),
            Self::Literal(_) | Self::Other(_) => None,
        }
    }

    /// Opens every list that is the value of a field, so that elements can be added.
    fn open_lists(&mut self) {
        match self {
            Self::Struct(entries) => {
                for entry in entries {
                    if let Self::List { rest, .. } = &mut entry.value
                        && rest.is_none()
                    {
                        *rest = Some(String::new());
                    }
                    entry.value.open_lists();
                }
            }
            Self::List { items, .. } => items.iter_mut().for_each(Self::open_lists),
            Self::Literal(_) | Self::Other(_) => {}
        }
    }

    /// The text of the value as a file.
    fn to_source(&self) -> String {
        let mut output = String::new();
        match self {
            Self::Struct(entries) => write_entries(&mut output, entries),
            other => {
                other.write(&mut output);
                output.push('\n');
            }
        }
        output
    }

    fn write(&self, output: &mut String) {
        match self {
            Self::Struct(entries) => {
                output.push_str("{\n");
                write_entries(output, entries);
                output.push('}');
            }
            Self::List { items, rest } => {
                output.push('[');
                for (position, item) in items.iter().enumerate() {
                    if position > 0 {
                        output.push_str(", ");
                    }
                    item.write(output);
                }
                if let Some(rest) = rest {
                    let separator = if items.is_empty() { "" } else { ", " };
                    let _ = write!(output, "{separator}...{rest}");
                }
                output.push(']');
            }
            Self::Literal(text) | Self::Other(text) => output.push_str(text),
        }
    }
}

fn write_entries(output: &mut String, entries: &[Entry]) {
    for entry in entries {
        for line in &entry.docs {
            output.push_str(line);
            output.push('\n');
        }
        if is_identifier(&entry.label) && !is_keyword(&entry.label) {
            output.push_str(&entry.label);
        } else {
            output.push_str(&quote(&entry.label));
        }
        output.push_str(": ");
        entry.value.write(output);
        output.push('\n');
    }
}

fn entry(file: &File, decl: &crate::ast::Decl) -> Option<Entry> {
    let DeclKind::Field(field) = &decl.kind else {
        return None;
    };
    let label = match &field.label.kind {
        LabelKind::Ident(name) | LabelKind::String(name) => name.to_string(),
        _ => return None,
    };
    let docs = decl.comments.docs().flat_map(|group| &group.comments);
    Some(Entry {
        label,
        docs: docs.map(|comment| comment.text.clone()).collect(),
        value: Tree::from_expr(file, &field.value),
    })
}
/// Applies the markers of the patch to both trees.
fn align(base: &mut Tree, patch: &mut Tree) {
    walk(base, patch, &mut Vec::new(), None);
}

/// Visits the fields of the patch. A key applies to every list below its field that has none of
/// its own.
fn walk(base: &mut Tree, patch: &mut Tree, place: &mut Vec<String>, inherited: Option<&str>) {
    match patch {
        Tree::Struct(entries) => {
            for entry in entries {
                visit(base, entry, place, inherited);
            }
        }
        Tree::List { items, .. } => {
            for (position, item) in items.iter_mut().enumerate() {
                place.push(position.to_string());
                walk(base, item, place, inherited);
                place.pop();
            }
        }
        Tree::Literal(_) | Tree::Other(_) => {}
    }
}

fn visit(base: &mut Tree, entry: &mut Entry, place: &mut Vec<String>, inherited: Option<&str>) {
    let own = lookup(&entry.docs, "patchKey");
    let key = own.as_deref().or(inherited);
    let strategy = lookup(&entry.docs, "patchStrategy");
    let retain = strategy.as_deref() == Some("retainKeys");
    place.push(entry.label.clone());
    match &mut entry.value {
        Tree::List { items, rest } => {
            if let Some(Tree::List {
                items: base_items,
                rest: base_rest,
            }) = base.find_mut(place)
            {
                if strategy.as_deref() == Some("replace") {
                    base_items.clone_from(items);
                    base_rest.clone_from(rest);
                } else if let Some(key) = key
                    && let Some(merged) = merge_list(base_items, items, key, retain)
                {
                    *items = merged;
                    *rest = Some(String::new());
                }
            }
        }
        value if retain => {
            if let Some(target) = base.find_mut(place) {
                *target = value.clone();
            }
        }
        _ => {}
    }
    walk(base, &mut entry.value, place, key);
    place.pop();
}

fn lookup(docs: &[Line], name: &str) -> Option<String> {
    marker(docs.iter().map(|line| &**line), name).map(str::to_owned)
}

/// The elements of the patch, placed opposite the elements of the base with the same key; empty
/// structs stand where the patch has none. `None` when the lists unify by position.
///
/// Several keys are taken in turn and their alignments put one after the other, and an element of
/// the base without the key is left out of the alignment; both are quirks of the reference
/// (kubevela/workflow: pkg/cue/model/sets/operation.go, `listMergeProcess`).
fn merge_list(base: &mut [Tree], patch: &[Tree], keys: &str, retain: bool) -> Option<Vec<Tree>> {
    let mut merged = Vec::new();
    // Positions in the patch by key and literal; a later element with the same key wins.
    let mut waiting: Vec<(&str, String, usize)> = Vec::new();
    for key in keys.split(',') {
        let steps: Vec<&str> = key.split('.').collect();
        let mut found = false;
        for (position, item) in patch.iter().enumerate() {
            let Some(value) = item.find(&steps) else {
                continue;
            };
            found = true;
            let Tree::Literal(text) = value else {
                return None;
            };
            waiting.retain(|(name, known, _)| !(*name == key && known == text));
            waiting.push((key, text.clone(), position));
        }
        if !found {
            if patch.is_empty() {
                continue;
            }
            return None;
        }
        for item in base.iter_mut() {
            let Some(value) = item.find(&steps) else {
                continue;
            };
            let Tree::Literal(text) = value else {
                return None;
            };
            let index = waiting
                .iter()
                .position(|(name, known, _)| *name == key && known == text);
            match index {
                Some(index) => {
                    let (_, _, position) = waiting.remove(index);
                    if retain {
                        *item = Tree::Struct(Vec::new());
                    }
                    merged.push(patch[position].clone());
                }
                None => merged.push(Tree::Struct(Vec::new())),
            }
        }
    }
    for (position, item) in patch.iter().enumerate() {
        if waiting.iter().any(|(_, _, known)| *known == position) {
            merged.push(item.clone());
        }
    }
    Some(merged)
}
