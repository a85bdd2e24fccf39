//! Evaluated values as trees of fields: what the merge needs to see, and text for the rest.

use std::fmt::Write as _;

use super::Line;
use crate::ast::{DeclKind, ElementKind, Expr, ExprKind, File, LabelKind};
use crate::diagnostic::Diagnostic;
use crate::label::{is_identifier, quote};
use crate::parser::{is_keyword, parse_file};

/// A value.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Tree {
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
pub(super) struct Entry {
    pub(super) label: String,
    pub(super) docs: Vec<Line>,
    pub(super) value: Tree,
}

impl Tree {
    /// Reads the text of an evaluated value.
    pub(super) fn parse(text: &str) -> Result<Self, Vec<Diagnostic>> {
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
    pub(super) fn find_mut(&mut self, path: &[String]) -> Option<&mut Tree> {
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
    pub(super) fn find(&self, path: &[&str]) -> Option<&Tree> {
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
    pub(super) fn open_lists(&mut self) {
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
    pub(super) fn to_source(&self) -> String {
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
