//! Field sets of values, and field sets read in the light of a type.

use std::collections::BTreeMap;

use serde_json::Value;

use super::validate::TypeErrors;
use super::{Items, Shape, Type};
use crate::MAX_DEPTH;
use crate::fieldset::FieldSet;
use crate::path::PathElement;

/// Every leaf, list item and map entry that a value mentions.
///
/// Fields that a schema declares are left out when they only hold others: naming a field of `spec`
/// does not claim `spec`.
pub(crate) fn field_set(kind: Type, value: &Value) -> Result<FieldSet, TypeErrors> {
    visit(kind, value, 0).map(|(_, below)| below)
}

/// Whether the place itself is in the set, and the set below it.
fn visit(kind: Type, value: &Value, depth: usize) -> Result<(bool, FieldSet), TypeErrors> {
    if depth > MAX_DEPTH {
        return Err(TypeErrors::new(format!(
            "nested deeper than {MAX_DEPTH} levels"
        )));
    }
    match (kind.shape(Some(value)), value) {
        (Shape::Scalar, _) => Ok((true, FieldSet::new())),
        (Shape::List, _) if matches!(kind.items(), Items::Atomic) => Ok((true, FieldSet::new())),
        (Shape::Map, _) if kind.is_atomic_map() => Ok((true, FieldSet::new())),
        (Shape::List, Value::Array(items)) => Ok((false, visit_items(kind, items, depth)?)),
        (Shape::Map, Value::Object(members)) => {
            let mut set = FieldSet::new();
            for (name, member) in members {
                let element = PathElement::field(name.as_str());
                let field = kind.field(name);
                let (is_leaf, below) =
                    visit(field.kind, member, depth + 1).map_err(|errors| errors.at(&element))?;
                let empty =
                    member.is_null() || member.as_object().is_some_and(serde_json::Map::is_empty);
                set.push(element, is_leaf || empty || !field.declared, below);
            }
            Ok((false, set.finish()))
        }
        _ => Ok((false, FieldSet::new())),
    }
}

fn visit_items(kind: Type, items: &[Value], depth: usize) -> Result<FieldSet, TypeErrors> {
    let mut by_element: BTreeMap<PathElement, (usize, &Value)> = BTreeMap::new();
    for (index, item) in items.iter().enumerate() {
        let element = kind
            .element(item)
            .map_err(|message| TypeErrors::new(format!("element {index}: {message}")))?;
        by_element.entry(element).or_insert((0, item)).0 += 1;
    }
    let mut set = FieldSet::new();
    for (element, (count, item)) in by_element {
        // Items with the same key are owned together; nothing can be said of what is inside.
        let below = if count > 1 {
            FieldSet::new()
        } else {
            visit(kind.item(), item, depth + 1)
                .map_err(|errors| errors.at(&element))?
                .1
        };
        set.push(element, true, below);
    }
    Ok(set.finish())
}

/// Adds to a set the declared fields that hold members of it, so that removing the set also removes
/// what it leaves empty.
pub(crate) fn with_named_parents(kind: Type, set: &FieldSet) -> FieldSet {
    let mut out = FieldSet::new();
    for (element, member, children) in set.iter() {
        let (child, declared) = child(kind, element);
        let below = with_named_parents(child, children);
        out.push(
            element.clone(),
            member || (declared && !below.is_empty()),
            below,
        );
    }
    out
}

fn child<'s>(kind: Type<'s>, element: &PathElement) -> (Type<'s>, bool) {
    match element {
        PathElement::Field(name) => {
            let field = kind.field(name);
            (field.kind, field.declared)
        }
        PathElement::Key(_) => (kind.item(), false),
        PathElement::Value(_) | PathElement::Index(_) => (Type::Untyped, false),
    }
}

/// Whether a stored set still owns something inside an object or list that became atomic since.
pub(crate) fn is_outdated(kind: Type, set: &FieldSet) -> bool {
    set.iter()
        .filter(|(_, _, children)| !children.is_empty())
        .any(|(element, _, children)| {
            let (child, _) = child(kind, element);
            became_atomic(child) || is_outdated(child, children)
        })
}

/// Brings an outdated set up to date: who owned something inside now owns the whole.
pub(crate) fn reconciled(kind: Type, set: &FieldSet) -> FieldSet {
    let mut out = FieldSet::new();
    for (element, member, children) in set.iter() {
        let (child, _) = child(kind, element);
        if !children.is_empty() && became_atomic(child) {
            out.push(element.clone(), true, FieldSet::new());
        } else {
            out.push(element.clone(), member, reconciled(child, children));
        }
    }
    out
}

fn became_atomic(kind: Type) -> bool {
    let Type::Known { .. } = kind else {
        return false;
    };
    match kind.shape(None) {
        Shape::Map => kind.is_atomic_map(),
        Shape::List => matches!(kind.items(), Items::Atomic),
        Shape::Scalar => false,
    }
}
