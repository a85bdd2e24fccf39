//! Laying a partial value over another one.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value};

use super::validate::TypeErrors;
use super::{Items, Shape, Type, list, members};
use crate::MAX_DEPTH;
use crate::path::PathElement;

/// Merges `right` into `left`: nothing is removed, and where both have a leaf the right one wins.
///
/// List items keep the order of `left`, except that those named by `right` come in its order.
pub(crate) fn merge(kind: Type, left: &Value, right: &Value) -> Result<Value, TypeErrors> {
    visit(kind, Some(left), Some(right), 0).map(|merged| merged.unwrap_or(Value::Null))
}

fn visit(
    kind: Type,
    left: Option<&Value>,
    right: Option<&Value>,
    depth: usize,
) -> Result<Option<Value>, TypeErrors> {
    if depth > MAX_DEPTH {
        return Err(TypeErrors::new(format!(
            "nested deeper than {MAX_DEPTH} levels"
        )));
    }
    let (_, shape) = kind.shapes(left, right);
    match shape {
        Shape::Scalar => Ok(leaf(left, right)),
        Shape::List => {
            let (left_items, right_items) = (list(left), list(right));
            let both_empty =
                left_items.is_none_or(<[_]>::is_empty) && right_items.is_none_or(<[_]>::is_empty);
            if matches!(kind.items(), Items::Atomic) || both_empty {
                return Ok(leaf(left, right));
            }
            let items = merge_items(
                kind,
                left_items.unwrap_or(&[]),
                right_items.unwrap_or(&[]),
                depth,
            )?;
            Ok((!items.is_empty()).then_some(Value::Array(items)))
        }
        Shape::Map => {
            let (left_members, right_members) = (members(left), members(right));
            let both_empty =
                left_members.is_none_or(Map::is_empty) && right_members.is_none_or(Map::is_empty);
            if kind.is_atomic_map() || both_empty {
                return Ok(leaf(left, right));
            }
            let merged = merge_members(kind, left_members, right_members, depth)?;
            Ok((!merged.is_empty()).then_some(Value::Object(merged)))
        }
    }
}

fn leaf(left: Option<&Value>, right: Option<&Value>) -> Option<Value> {
    right.or(left).cloned()
}

fn merge_members(
    kind: Type,
    left: Option<&Map<String, Value>>,
    right: Option<&Map<String, Value>>,
    depth: usize,
) -> Result<Map<String, Value>, TypeErrors> {
    let mut merged = Map::new();
    let mut visit_member = |name: &str, left: Option<&Value>, right: Option<&Value>| {
        let value = match (left, right) {
            // Nothing to merge with: no need to look inside.
            (Some(only), None) => Some(only.clone()),
            _ => visit(kind.field(name).kind, left, right, depth + 1)
                .map_err(|errors| errors.at(&PathElement::field(name)))?,
        };
        if let Some(value) = value {
            merged.insert(name.to_owned(), value);
        }
        Ok(())
    };
    for (name, value) in left.into_iter().flatten() {
        visit_member(
            name,
            Some(value),
            right.and_then(|members| members.get(name)),
        )?;
    }
    for (name, value) in right.into_iter().flatten() {
        if left.is_none_or(|members| !members.contains_key(name)) {
            visit_member(name, None, Some(value))?;
        }
    }
    Ok(merged)
}

/// The items of one side by element; `None` marks elements that occur more than once, which are
/// not merged into.
struct Index<'v> {
    order: Vec<PathElement>,
    values: BTreeMap<PathElement, Option<&'v Value>>,
}

impl<'v> Index<'v> {
    fn new(kind: Type, items: &'v [Value], allow_duplicates: bool) -> Result<Self, TypeErrors> {
        let mut index = Self {
            order: Vec::with_capacity(items.len()),
            values: BTreeMap::new(),
        };
        for (position, item) in items.iter().enumerate() {
            let element = kind
                .element(item)
                .map_err(|message| TypeErrors::new(format!("element {position}: {message}")))?;
            if index.values.contains_key(&element) {
                if !allow_duplicates {
                    let message = format!("duplicate entries for key {element}");
                    return Err(TypeErrors::new(message));
                }
                index.values.insert(element.clone(), None);
            } else {
                index.values.insert(element.clone(), Some(item));
            }
            index.order.push(element);
        }
        Ok(index)
    }

    fn has(&self, element: &PathElement) -> bool {
        self.values.contains_key(element)
    }

    fn get(&self, element: &PathElement) -> Option<&'v Value> {
        self.values.get(element).copied().flatten()
    }
}

/// Items of both sides appear in the order of the right one; items of only the left side stay behind
/// the shared item that they followed.
fn merge_items(
    kind: Type,
    left: &[Value],
    right: &[Value],
    depth: usize,
) -> Result<Vec<Value>, TypeErrors> {
    let right_index = Index::new(kind, right, false)?;
    let left_index = Index::new(kind, left, true)?;
    let mut merged = Vec::with_capacity(left.len().max(right.len()));
    for place in order(&left_index, &right_index) {
        let (element, left, right) = match place {
            Place::Left(position) => (&left_index.order[position], left.get(position), None),
            Place::Right(element) => (element, left_index.get(element), right_index.get(element)),
        };
        let item = visit(kind.item(), left, right, depth + 1);
        merged.extend(item.map_err(|errors| errors.at(element))?);
    }
    Ok(merged)
}

/// Where an item of the result comes from.
enum Place<'i> {
    /// Only from the left list, at this position.
    Left(usize),
    /// From the right list, and the left one where it has such an item.
    Right(&'i PathElement),
}

/// Walks both lists at once.
fn order<'i>(left: &'i Index, right: &'i Index) -> Vec<Place<'i>> {
    let mut shared = right.order.iter().filter(|element| left.has(element));
    let mut next_shared = shared.next();
    let mut done: BTreeSet<&PathElement> = BTreeSet::new();
    let mut places = Vec::with_capacity(left.order.len().max(right.order.len()));
    let (mut l, mut r) = (0, 0);
    while l < left.order.len() || r < right.order.len() {
        let (left_element, right_element) = (left.order.get(l), right.order.get(r));
        if let Some(element) = left_element {
            if !right.has(element) {
                places.push(Place::Left(l));
                l += 1;
                continue;
            }
            let meets = right_element == Some(element);
            let waits = right_element.is_some() && next_shared.is_some_and(|next| next != element);
            if meets || waits || done.contains(element) {
                l += 1;
            }
            if waits && !meets {
                // Shared, but its turn comes later.
                continue;
            }
        }
        if let Some(element) = right_element {
            done.insert(element);
            places.push(Place::Right(element));
            r += 1;
            if next_shared == Some(element) {
                next_shared = shared.next();
            }
        }
    }
    places
}
