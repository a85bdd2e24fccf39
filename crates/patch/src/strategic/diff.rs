//! Making a patch from two documents.

use std::cmp::Ordering;
use std::collections::{HashMap, HashSet};

use serde_json::{Map, Value, json};

use super::lists::{ItemKind, item_kind, key_of, sort_like, sorted_scalars, without_repetitions};
use super::{DELETE_FROM_LIST, Field, PATCH, RETAIN_KEYS, SET_ELEMENT_ORDER, StrategicError};
use crate::typed::Type;
use crate::{MAX_DEPTH, go_text};

/// Which part of the difference is wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Part {
    All,
    /// What is added or changed.
    Changes,
    /// What is removed.
    Deletions,
}

/// How to describe a difference.
#[derive(Debug, Clone, Copy)]
pub(crate) struct DiffOptions {
    pub(crate) part: Part,
    /// Whether the object gets a `$retainKeys` directive.
    retain_keys: bool,
}

impl DiffOptions {
    pub(crate) fn of(part: Part) -> Self {
        Self {
            part,
            retain_keys: false,
        }
    }

    fn with_changes(self) -> bool {
        self.part != Part::Deletions
    }

    fn with_deletions(self) -> bool {
        self.part != Part::Changes
    }
}

/// The patch that turns one object into the other.
pub(crate) fn diff_maps(
    original: &Map<String, Value>,
    modified: &Map<String, Value>,
    kind: Type,
    options: DiffOptions,
    depth: usize,
) -> Result<Map<String, Value>, StrategicError> {
    if depth > MAX_DEPTH {
        return Err(StrategicError::TOO_DEEP);
    }
    let mut patch = Map::new();
    for (name, value) in modified {
        match (original.get(name), value) {
            (Some(before), value) if before == value => {}
            (Some(Value::Object(before)), Value::Object(after)) => {
                let field = Field::lookup(kind, name)?;
                let options = DiffOptions {
                    retain_keys: field.retains_keys(),
                    ..options
                };
                let below = diff_maps(before, after, field.kind, options, depth + 1)?;
                if !below.is_empty() {
                    patch.insert(name.clone(), Value::Object(below));
                }
            }
            (Some(Value::Array(before)), Value::Array(after)) => {
                let field = Field::lookup(kind, name)?;
                if field.merges() {
                    let options = DiffOptions {
                        retain_keys: field.retains_keys(),
                        ..options
                    };
                    let lists = diff_lists(before, after, field, options, depth + 1)?;
                    lists.write(name, &mut patch);
                } else if options.with_changes() {
                    patch.insert(name.clone(), value.clone());
                }
            }
            _ if !options.with_changes() => {}
            _ => {
                patch.insert(name.clone(), value.clone());
            }
        }
    }
    if options.with_deletions() {
        for name in original.keys().filter(|name| !modified.contains_key(*name)) {
            patch.insert(name.clone(), Value::Null);
        }
    }
    if options.retain_keys {
        let kept = modified.iter().filter(|(_, value)| !value.is_null());
        let kept: Vec<Value> = kept.map(|(name, _)| name.as_str().into()).collect();
        let loses = original.keys().any(|name| !modified.contains_key(name));
        if !kept.is_empty() && (!patch.is_empty() || loses) {
            patch.insert(RETAIN_KEYS.to_owned(), Value::Array(sorted_scalars(kept)));
        }
    }
    Ok(patch)
}

/// The lists that together describe the change of one.
#[derive(Default)]
struct ListDiff {
    changes: Vec<Value>,
    deletions: Vec<Value>,
    order: Vec<Value>,
}

impl ListDiff {
    fn write(self, name: &str, patch: &mut Map<String, Value>) {
        let mut write = |name: String, list: Vec<Value>| {
            if !list.is_empty() {
                patch.insert(name, Value::Array(list));
            }
        };
        write(name.to_owned(), self.changes);
        write(format!("{DELETE_FROM_LIST}/{name}"), self.deletions);
        write(format!("{SET_ELEMENT_ORDER}/{name}"), self.order);
    }
}

fn diff_lists(
    original: &[Value],
    modified: &[Value],
    field: Field,
    options: DiffOptions,
    depth: usize,
) -> Result<ListDiff, StrategicError> {
    if original.is_empty() {
        let changes = if options.with_changes() {
            modified.to_vec()
        } else {
            Vec::new()
        };
        return Ok(ListDiff {
            changes,
            ..ListDiff::default()
        });
    }
    match item_kind(&[original, modified])? {
        ItemKind::Object => diff_objects(original, modified, field, options, depth),
        ItemKind::Scalar => diff_scalars(original, modified, options),
    }
}

fn diff_scalars(
    original: &[Value],
    modified: &[Value],
    options: DiffOptions,
) -> Result<ListDiff, StrategicError> {
    let mut diff = ListDiff::default();
    if options.with_changes() {
        let mut before: HashMap<&Value, usize> = HashMap::new();
        for item in original {
            *before.entry(item).or_default() += 1;
        }
        let mut added = Vec::new();
        // One occurrence of the original accounts for one of the modified list.
        for item in modified {
            match before.get_mut(item) {
                Some(count) if *count > 0 => *count -= 1,
                _ => added.push(item.clone()),
            }
        }
        diff.changes = sort_like(added, modified, None, ItemKind::Scalar)?;
    }
    if options.with_deletions() {
        let kept: HashSet<&Value> = modified.iter().collect();
        let gone = original.iter().filter(|item| !kept.contains(item));
        diff.deletions = sorted_scalars(without_repetitions(gone));
    }
    if !diff.deletions.is_empty() || options.with_changes() {
        diff.order = modified.to_vec();
    }
    Ok(diff)
}

fn diff_objects(
    original: &[Value],
    modified: &[Value],
    field: Field,
    options: DiffOptions,
    depth: usize,
) -> Result<ListDiff, StrategicError> {
    let merge_key = field.merge_key().unwrap_or_default();
    let mut changes = Vec::new();
    let mut deletions = Vec::new();
    for pair in pairs(original, modified, merge_key)? {
        match pair {
            (Some(before), Some(after)) => {
                changes.extend(diff_item(before, after, field, options, depth)?);
            }
            (None, Some(after)) if options.with_changes() => changes.push(after.clone()),
            (Some(before), None) if options.with_deletions() => {
                let key = key_of(before, merge_key)?;
                deletions.push(json!({merge_key: key, PATCH: "delete"}));
            }
            _ => {}
        }
    }
    let mut changes = sort_like(changes, modified, field.merge_key(), ItemKind::Object)?;
    changes.extend(deletions);

    let keys = |items: &[Value]| -> Result<Vec<Value>, StrategicError> {
        items
            .iter()
            .map(|item| key_of(item, merge_key).cloned())
            .collect()
    };
    let reordered = keys(original)? != keys(modified)?;
    let mut diff = ListDiff::default();
    if !changes.is_empty() || (reordered && options.with_changes()) {
        let keys = keys(modified)?.into_iter();
        diff.order = keys.map(|key| json!({merge_key: key})).collect();
    }
    diff.changes = changes;
    Ok(diff)
}

type Pair<'v> = (Option<&'v Value>, Option<&'v Value>);

/// The items of both lists by the text of their key, matched where both have one.
fn pairs<'v>(
    original: &'v [Value],
    modified: &'v [Value],
    merge_key: &str,
) -> Result<Vec<Pair<'v>>, StrategicError> {
    let keyed = |items: &'v [Value]| -> Result<Vec<(String, &'v Value)>, StrategicError> {
        let mut keyed = items
            .iter()
            .map(|item| Ok((go_text::text(key_of(item, merge_key)?), item)))
            .collect::<Result<Vec<_>, StrategicError>>()?;
        keyed.sort_by(|left, right| left.0.cmp(&right.0));
        Ok(keyed)
    };
    let mut before = keyed(original)?.into_iter().peekable();
    let mut after = keyed(modified)?.into_iter().peekable();
    let mut pairs = Vec::new();
    loop {
        let order = match (before.peek(), after.peek()) {
            (Some(before), Some(after)) => before.0.cmp(&after.0),
            (Some(_), None) => Ordering::Less,
            (None, Some(_)) => Ordering::Greater,
            (None, None) => return Ok(pairs),
        };
        let left = if order.is_le() { before.next() } else { None };
        let right = if order.is_ge() { after.next() } else { None };
        pairs.push((left.map(|(_, item)| item), right.map(|(_, item)| item)));
    }
}

fn diff_item(
    before: &Value,
    after: &Value,
    field: Field,
    options: DiffOptions,
    depth: usize,
) -> Result<Option<Value>, StrategicError> {
    let (Value::Object(before), Value::Object(after)) = (before, after) else {
        return Ok(None);
    };
    let mut patch = diff_maps(before, after, field.kind.item(), options, depth + 1)?;
    if patch.is_empty() {
        return Ok(None);
    }
    if let Some(merge_key) = field.merge_key()
        && let Some(key) = after.get(merge_key)
    {
        patch.insert(merge_key.to_owned(), key.clone());
    }
    Ok(Some(Value::Object(patch)))
}
