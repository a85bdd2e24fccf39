//! What differs between two values of a type.

use std::collections::BTreeMap;

use serde_json::Value;

use super::validate::TypeErrors;
use super::{Items, Shape, Type, list, members};
use crate::MAX_DEPTH;
use crate::fieldset::FieldSet;
use crate::path::PathElement;
use crate::value::equal;

/// The difference of two values; no path is in two of the sets.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Comparison {
    /// Only in the right value.
    pub(crate) added: FieldSet,
    /// In both, with different values.
    pub(crate) modified: FieldSet,
    /// Only in the left value.
    pub(crate) removed: FieldSet,
}

impl Comparison {
    /// Whether the values are the same.
    pub(crate) fn is_same(&self) -> bool {
        self.added.is_empty() && self.modified.is_empty() && self.removed.is_empty()
    }

    /// Forgets these fields and all below them.
    pub(crate) fn without(self, fields: Option<&FieldSet>) -> Self {
        match fields {
            Some(fields) if !self.is_same() => Self {
                added: self.added.recursive_difference(fields),
                modified: self.modified.recursive_difference(fields),
                removed: self.removed.recursive_difference(fields),
            },
            _ => self,
        }
    }
}

/// Compares two values of one type.
pub(crate) fn compare(kind: Type, left: &Value, right: &Value) -> Result<Comparison, TypeErrors> {
    visit(kind, Some(left), Some(right), 0).map(|change| change.below)
}

/// What happened at one place: to the place itself, and below it.
#[derive(Default)]
struct Change {
    added: bool,
    modified: bool,
    removed: bool,
    below: Comparison,
}

impl Change {
    /// The change of a value that is one leaf.
    fn of_leaf(left: Option<&Value>, right: Option<&Value>) -> Self {
        Self {
            added: left.is_none(),
            removed: right.is_none(),
            modified: matches!((left, right), (Some(left), Some(right)) if !equal(left, right)),
            below: Comparison::default(),
        }
    }

    fn push(&mut self, element: &PathElement, change: Change) {
        let push = |set: &mut FieldSet, member: bool, children: FieldSet| {
            if member || !children.is_empty() {
                set.push(element.clone(), member, children);
            }
        };
        push(&mut self.below.added, change.added, change.below.added);
        push(
            &mut self.below.modified,
            change.modified,
            change.below.modified,
        );
        push(
            &mut self.below.removed,
            change.removed,
            change.below.removed,
        );
    }

    fn finish(self) -> Self {
        Self {
            below: Comparison {
                added: self.below.added.finish(),
                modified: self.below.modified.finish(),
                removed: self.below.removed.finish(),
            },
            ..self
        }
    }

    fn join(self, other: Self) -> Self {
        Self {
            added: self.added || other.added,
            modified: self.modified || other.modified,
            removed: self.removed || other.removed,
            below: Comparison {
                added: self.below.added.union(other.below.added),
                modified: self.below.modified.union(other.below.modified),
                removed: self.below.removed.union(other.below.removed),
            },
        }
    }
}

fn visit(
    kind: Type,
    left: Option<&Value>,
    right: Option<&Value>,
    depth: usize,
) -> Result<Change, TypeErrors> {
    if depth > MAX_DEPTH {
        return Err(TypeErrors::new(format!(
            "nested deeper than {MAX_DEPTH} levels"
        )));
    }
    match kind.shapes(left, right) {
        (None, shape) => visit_shape(kind, shape, left, right, depth),
        (Some(first), second) => Ok(visit_shape(kind, first, left, right, depth)?
            .join(visit_shape(kind, second, left, right, depth)?)),
    }
}

fn visit_shape(
    kind: Type,
    shape: Shape,
    left: Option<&Value>,
    right: Option<&Value>,
    depth: usize,
) -> Result<Change, TypeErrors> {
    let mut change = match shape {
        Shape::Scalar => return Ok(Change::of_leaf(left, right)),
        Shape::List => {
            let (left_items, right_items) = (list(left), list(right));
            let both_empty =
                left_items.is_none_or(<[_]>::is_empty) && right_items.is_none_or(<[_]>::is_empty);
            // An empty list is a leaf, to tell it from null.
            if matches!(kind.items(), Items::Atomic) || both_empty {
                return Ok(Change::of_leaf(left, right));
            }
            if left_items == right_items {
                return Ok(Change::default());
            }
            visit_items(
                kind,
                left_items.unwrap_or(&[]),
                right_items.unwrap_or(&[]),
                depth,
            )?
        }
        Shape::Map => {
            let (left_members, right_members) = (members(left), members(right));
            let both_empty = left_members.is_none_or(serde_json::Map::is_empty)
                && right_members.is_none_or(serde_json::Map::is_empty);
            if kind.is_atomic_map() || both_empty {
                return Ok(Change::of_leaf(left, right));
            }
            let mut change = Change::default();
            for (name, left) in left_members.into_iter().flatten() {
                let right = right_members.and_then(|members| members.get(name));
                visit_member(kind, name, Some(left), right, depth, &mut change)?;
            }
            for (name, right) in right_members.into_iter().flatten() {
                if left_members.is_none_or(|members| !members.contains_key(name)) {
                    visit_member(kind, name, None, Some(right), depth, &mut change)?;
                }
            }
            change.finish()
        }
    };
    change.added |= left.is_none();
    change.removed |= right.is_none();
    Ok(change)
}

fn visit_member(
    kind: Type,
    name: &str,
    left: Option<&Value>,
    right: Option<&Value>,
    depth: usize,
    change: &mut Change,
) -> Result<(), TypeErrors> {
    let below = visit(kind.field(name).kind, left, right, depth + 1)
        .map_err(|errors| errors.at(&PathElement::field(name)))?;
    if below.added || below.modified || below.removed || !below.below.is_same() {
        change.push(&PathElement::field(name), below);
    }
    Ok(())
}

fn visit_items(
    kind: Type,
    left: &[Value],
    right: &[Value],
    depth: usize,
) -> Result<Change, TypeErrors> {
    let mut pairs: BTreeMap<PathElement, (Vec<&Value>, Vec<&Value>)> = BTreeMap::new();
    let element = |index: usize, item: &Value| {
        kind.element(item)
            .map_err(|message| TypeErrors::new(format!("element {index}: {message}")))
    };
    for (index, item) in left.iter().enumerate() {
        pairs.entry(element(index, item)?).or_default().0.push(item);
    }
    for (index, item) in right.iter().enumerate() {
        pairs.entry(element(index, item)?).or_default().1.push(item);
    }
    let mut change = Change::default();
    for (element, (left, right)) in pairs {
        let compare = |left: Option<&&Value>, right: Option<&&Value>| {
            visit(kind.item(), left.copied(), right.copied(), depth + 1)
                .map_err(|errors| errors.at(&element))
        };
        // Items with the same key are owned together, as one leaf.
        let below = match (left.len(), right.len()) {
            (0 | 1, 0 | 1) => compare(left.first(), right.first())?,
            (2.., 2..) => Change {
                modified: left.len() != right.len()
                    || !left
                        .iter()
                        .zip(&right)
                        .all(|(left, right)| equal(left, right)),
                ..Change::default()
            },
            (2.., _) => {
                let mut below = match right.first() {
                    Some(_) => compare(None, right.first())?,
                    None => Change::default(),
                };
                below.removed = true;
                below
            }
            (_, _) => {
                let mut below = match left.first() {
                    Some(_) => compare(left.first(), None)?,
                    None => Change::default(),
                };
                below.added = true;
                below
            }
        };
        change.push(&element, below);
    }
    Ok(change.finish())
}
