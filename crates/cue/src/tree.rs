//! Evaluated values as trees of fields, lists and literals; only what is still open is text.
//!
//! A tree is what two values are merged as ([`patch`](crate::patch)): it is made from the nodes of an
//! evaluation, rearranged, and compiled to a program of its own, without being written and read in between.

use std::sync::Arc;

use crate::value::Value;

/// A comment line, kept with its field.
pub(crate) type Line = Arc<str>;

/// A value.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Tree {
    /// Fields in order.
    Struct(Vec<Entry>),
    /// Elements.
    List {
        items: Vec<Tree>,
        /// The expression after `...`, possibly empty, when the list is open.
        rest: Option<String>,
    },
    /// A scalar that is written as one token: a negative number is not.
    Literal(Value),
    /// Any other expression: a type, bounds, a choice.
    Open(String),
}

/// A field.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Entry {
    pub(crate) label: Arc<str>,
    pub(crate) docs: Vec<Line>,
    pub(crate) value: Tree,
}

impl Tree {
    /// The tree of plain data.
    pub(crate) fn of(value: &Value) -> Self {
        match value {
            Value::Number(number) if number.is_negative() => Self::Open(number.to_source()),
            Value::List(items) => Self::List {
                items: items.iter().map(Self::of).collect(),
                rest: None,
            },
            Value::Struct(fields) => {
                let entry = |(label, value): &(Arc<str>, Value)| Entry {
                    label: label.clone(),
                    docs: Vec::new(),
                    value: Self::of(value),
                };
                Self::Struct(fields.iter().map(entry).collect())
            }
            Value::Opaque(_) => Self::Open("_".to_owned()),
            literal => Self::Literal(literal.clone()),
        }
    }

    /// Follows labels and list positions.
    pub(crate) fn find_mut(&mut self, path: &[Arc<str>]) -> Option<&mut Tree> {
        let Some((first, rest)) = path.split_first() else {
            return Some(self);
        };
        match self {
            Self::Struct(entries) => {
                let entry = entries.iter_mut().find(|entry| entry.label == *first)?;
                entry.value.find_mut(rest)
            }
            Self::List { items, .. } => items.get_mut(first.parse::<usize>().ok()?)?.find_mut(rest),
            Self::Literal(_) | Self::Open(_) => None,
        }
    }

    /// Like [`Tree::find_mut`] without the right to change.
    pub(crate) fn find(&self, path: &[&str]) -> Option<&Tree> {
        let Some((first, rest)) = path.split_first() else {
            return Some(self);
        };
        match self {
            Self::Struct(entries) => entries
                .iter()
                .find(|entry| *entry.label == **first)?
                .value
                .find(rest),
            Self::List { items, .. } => items.get(first.parse::<usize>().ok()?)?.find(rest),
            Self::Literal(_) | Self::Open(_) => None,
        }
    }

    /// Opens every list that is the value of a field, so that elements can be added.
    pub(crate) fn open_lists(&mut self) {
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
            Self::Literal(_) | Self::Open(_) => {}
        }
    }
}

/// Whether two literals are written alike, which is when they identify the same element: `1` and `1.0` do not.
pub(crate) fn are_written_alike(left: &Value, right: &Value) -> bool {
    match (left, right) {
        (Value::Number(left), Value::Number(right)) => left.to_source() == right.to_source(),
        _ => left == right,
    }
}
