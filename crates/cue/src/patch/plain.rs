//! Base and patch as data, where both are finished: most workloads and patches are. Then they unify without being compiled again.
//!
//! Anything but structs, lists and plain literals is left to the compiler, and so is everything that may be a contradiction, for the sake of its
//! message.

use std::sync::Arc;

use super::tree::{Entry, Tree};
use crate::number::Number;
use crate::value::Value;

/// The most digits of an integer that is read here.
const MOST_DIGITS: usize = 18;

/// Both trees as data that unifies; none if that takes more than data. Lists have the same length in both.
pub(super) fn both(base: &Tree, patch: &Tree) -> Option<(Value, Value)> {
    match (base, patch) {
        (Tree::Struct(base), Tree::Struct(patch)) => both_structs(base, patch),
        (
            Tree::List { items, rest },
            Tree::List {
                items: patch,
                rest: patch_rest,
            },
        ) => {
            let can_grow = |rest: &Option<String>| rest.as_deref() == Some("");
            let fits = (items.len() >= patch.len() || can_grow(rest))
                && (patch.len() >= items.len() || can_grow(patch_rest));
            if !fits || !is_untyped(rest) || !is_untyped(patch_rest) {
                return None;
            }
            let length = items.len().max(patch.len());
            let pairs =
                (0..length).map(
                    |position| match (items.get(position), patch.get(position)) {
                        (Some(item), Some(change)) => both(item, change),
                        (Some(only), None) | (None, Some(only)) => {
                            let value = value(only)?;
                            Some((value.clone(), value))
                        }
                        (None, None) => None,
                    },
                );
            let (items, changes): (Vec<Value>, Vec<Value>) = pairs.collect::<Option<_>>()?;
            Some((Value::list(items), Value::list(changes)))
        }
        (Tree::Literal(base), Tree::Literal(patch)) if base == patch => {
            let value = literal(base)?;
            Some((value.clone(), value))
        }
        _ => None,
    }
}

/// Whether further elements may be anything, or there are none.
fn is_untyped(rest: &Option<String>) -> bool {
    rest.as_deref().unwrap_or_default().is_empty()
}

fn both_structs(base: &[Entry], patch: &[Entry]) -> Option<(Value, Value)> {
    let label = |entry: &Entry| -> Arc<str> { Arc::from(entry.label.as_str()) };
    let mut fields = Vec::with_capacity(base.len());
    let mut changes: Vec<Option<Value>> = vec![None; patch.len()];
    for entry in base {
        let change = patch.iter().position(|change| change.label == entry.label);
        let own = match change {
            Some(position) => {
                let (own, changed) = both(&entry.value, &patch[position].value)?;
                changes[position] = Some(changed);
                own
            }
            None => value(&entry.value)?,
        };
        fields.push((label(entry), own));
    }
    let changes = patch.iter().zip(changes).map(|(entry, change)| {
        let change = match change {
            Some(change) => change,
            None => value(&entry.value)?,
        };
        Some((label(entry), change))
    });
    let changes: Option<Vec<_>> = changes.collect();
    Some((Value::structure(fields), Value::structure(changes?)))
}

/// A tree as data; none if it is not finished.
fn value(tree: &Tree) -> Option<Value> {
    match tree {
        Tree::Struct(entries) => {
            let fields = entries
                .iter()
                .map(|entry| Some((Arc::from(entry.label.as_str()), value(&entry.value)?)));
            fields.collect::<Option<Vec<_>>>().map(Value::structure)
        }
        Tree::List { items, rest } if is_untyped(rest) => {
            let items: Option<Vec<Value>> = items.iter().map(value).collect();
            items.map(Value::list)
        }
        Tree::Literal(text) => literal(text),
        Tree::List { .. } | Tree::Other(_) => None,
    }
}

/// A literal that is written as JSON writes it.
fn literal(text: &str) -> Option<Value> {
    match text {
        "null" => return Some(Value::Null),
        "true" => return Some(Value::Bool(true)),
        "false" => return Some(Value::Bool(false)),
        _ => {}
    }
    if let Some(inner) = text
        .strip_prefix('"')
        .and_then(|rest| rest.strip_suffix('"'))
    {
        let is_plain = !inner.contains(['\\', '"']) && !inner.contains(char::is_control);
        return is_plain.then(|| Value::string(inner));
    }
    let is_integer = text.len() <= MOST_DIGITS
        && !text.is_empty()
        && text.bytes().all(|byte| byte.is_ascii_digit())
        && (text == "0" || !text.starts_with('0'));
    let integer = is_integer.then(|| text.parse::<i64>().ok()).flatten()?;
    Some(Value::Number(Number::from(integer)))
}
