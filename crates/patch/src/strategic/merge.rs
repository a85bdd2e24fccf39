//! Merging a patch into a document, or into an earlier patch.

use std::collections::{HashMap, HashSet};

use serde_json::{Map, Value};

use super::lists::{
    ItemKind, Places, as_list, as_object, is_deletion, item_kind, key_of, order_items,
    without_repetitions,
};
use super::{DELETE_FROM_LIST, Field, PATCH, RETAIN_KEYS, SET_ELEMENT_ORDER, StrategicError};
use crate::typed::Type;
use crate::{MAX_DEPTH, go_text};

/// What a patch is merged into.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mode {
    /// A document: directives are carried out, nulls remove.
    Apply,
    /// Another patch: directives and nulls are kept for the document to come.
    Combine,
}

/// Merges a patch into an object.
pub(crate) fn merge_maps(
    mut original: Map<String, Value>,
    mut patch: Map<String, Value>,
    kind: Type,
    mode: Mode,
    depth: usize,
) -> Result<Map<String, Value>, StrategicError> {
    if depth > MAX_DEPTH {
        return Err(StrategicError::TOO_DEEP);
    }
    if let Some(directive) = patch.remove(PATCH) {
        return match directive.as_str() {
            Some("replace") => {
                let mut replacement = Value::Object(patch);
                strip(&mut replacement, mode, depth)?;
                match replacement {
                    Value::Object(members) => Ok(members),
                    _ => Ok(Map::new()),
                }
            }
            Some("delete") => Ok(Map::new()),
            _ => Err(unknown_directive(directive, patch)),
        };
    }
    retain_keys(&mut original, &mut patch, mode)?;
    merge_ordered_lists(&mut original, &mut patch, kind, mode, depth)?;
    for (name, change) in patch {
        merge_member(&mut original, name, change, kind, mode, depth)?;
    }
    Ok(original)
}

fn unknown_directive(directive: Value, mut patch: Map<String, Value>) -> StrategicError {
    let text = go_text::text(&directive);
    patch.insert(PATCH.to_owned(), directive);
    let patch = go_text::text(&Value::Object(patch));
    StrategicError::Mismatch(format!("unknown patch type: {text} in map: {patch}"))
}

fn merge_member(
    original: &mut Map<String, Value>,
    name: String,
    change: Value,
    kind: Type,
    mode: Mode,
    depth: usize,
) -> Result<(), StrategicError> {
    let mut name = name;
    let mut deletes = false;
    if name.starts_with(DELETE_FROM_LIST) {
        if mode == Mode::Combine {
            original.insert(name, change);
            return Ok(());
        }
        name = list_name(&name, DELETE_FROM_LIST, StrategicError::BAD_PRIMITIVE_LIST)?;
        deletes = true;
    }
    if change.is_null() {
        original.remove(&name);
        if mode == Mode::Combine && !deletes {
            original.insert(name, Value::Null);
        }
        return Ok(());
    }
    let merged = match (original.remove(&name), change) {
        (Some(Value::Object(before)), Value::Object(change)) => {
            let field = Field::lookup(kind, &name)?;
            Some(Value::Object(merge_maps(
                before,
                change,
                field.kind,
                mode,
                depth + 1,
            )?))
        }
        (Some(Value::Array(before)), Value::Array(change)) => {
            let field = Field::lookup(kind, &name)?;
            let merged = if deletes {
                delete_from_list(before, change, field, mode, depth + 1)?
            } else if field.merges() {
                merge_lists(before, change, field, mode, depth + 1)?
            } else {
                let mut replacement = Value::Array(change);
                strip(&mut replacement, mode, depth + 1)?;
                original.insert(name, replacement);
                return Ok(());
            };
            Some(Value::Array(merged))
        }
        // Values to delete from what is not a list, or not there.
        (before, _) if deletes => before,
        (_, change) => added(change, mode, depth + 1)?,
    };
    if let Some(merged) = merged {
        original.insert(name, merged);
    }
    Ok(())
}

fn delete_from_list(
    before: Vec<Value>,
    gone: Vec<Value>,
    field: Field,
    mode: Mode,
    depth: usize,
) -> Result<Vec<Value>, StrategicError> {
    if before.is_empty() && gone.is_empty() {
        return Ok(before);
    }
    match item_kind(&[&before, &gone])? {
        ItemKind::Scalar => {
            let gone: HashSet<&Value> = gone.iter().collect();
            let kept = before.into_iter().filter(|item| !gone.contains(item));
            Ok(kept.collect())
        }
        // Objects are not deleted by value; Kubernetes merges them here.
        ItemKind::Object => merge_lists(before, gone, field, mode, depth),
    }
}

/// A part of a patch that has nothing to merge with; `None` if it is only a directive.
fn added(mut value: Value, mode: Mode, depth: usize) -> Result<Option<Value>, StrategicError> {
    let kept = clean(&mut value, depth)?;
    strip(&mut value, mode, depth)?;
    Ok(kept.then_some(value))
}

/// Removes objects that are directives; whether the value itself stays.
fn clean(value: &mut Value, depth: usize) -> Result<bool, StrategicError> {
    if depth > MAX_DEPTH {
        return Err(StrategicError::TOO_DEEP);
    }
    match value {
        Value::Object(members) => {
            if members.contains_key(PATCH) {
                return Ok(false);
            }
            for (name, mut member) in std::mem::take(members) {
                if clean(&mut member, depth + 1)? {
                    members.insert(name, member);
                }
            }
        }
        Value::Array(items) => {
            for mut item in std::mem::take(items) {
                if clean(&mut item, depth + 1)? {
                    items.push(item);
                }
            }
        }
        _ => {}
    }
    Ok(true)
}

/// Removes what has no place in a document: nulls and the members that are directives, which
/// Kubernetes loses when it decodes the result into its types.
fn strip(value: &mut Value, mode: Mode, depth: usize) -> Result<(), StrategicError> {
    if depth > MAX_DEPTH {
        return Err(StrategicError::TOO_DEEP);
    }
    match value {
        _ if mode == Mode::Combine => Ok(()),
        Value::Object(members) => {
            members.retain(|name, member| !member.is_null() && !is_directive(name));
            let mut members = members.values_mut();
            members.try_for_each(|member| strip(member, mode, depth + 1))
        }
        Value::Array(items) => items
            .iter_mut()
            .try_for_each(|item| strip(item, mode, depth + 1)),
        _ => Ok(()),
    }
}

fn is_directive(name: &str) -> bool {
    name == RETAIN_KEYS || name.starts_with(DELETE_FROM_LIST) || name.starts_with(SET_ELEMENT_ORDER)
}

/// The list that a directive such as `$setElementOrder/containers` is about.
fn list_name(name: &str, prefix: &str, error: StrategicError) -> Result<String, StrategicError> {
    match name.split_once('/') {
        Some((found, list)) if found == prefix => Ok(list.to_owned()),
        _ => Err(error),
    }
}

fn retain_keys(
    original: &mut Map<String, Value>,
    patch: &mut Map<String, Value>,
    mode: Mode,
) -> Result<(), StrategicError> {
    let Some(directive) = patch.remove(RETAIN_KEYS) else {
        return Ok(());
    };
    if mode == Mode::Combine {
        let earlier = original
            .entry(RETAIN_KEYS)
            .or_insert_with(|| directive.clone());
        if *earlier != directive {
            return Err(StrategicError::Mismatch(format!(
                "{} and {} are not deep equal: this may happen when calculating the 3-way diff patch",
                go_text::text(earlier),
                go_text::text(&directive)
            )));
        }
        return Ok(());
    }
    let Value::Array(keys) = directive else {
        return Err(StrategicError::BAD_RETAIN_KEYS);
    };
    let keys: HashSet<&str> = keys.iter().filter_map(Value::as_str).collect();
    let retained = |name: &str| keys.contains(name);
    for (name, value) in patch.iter() {
        let parallel = name.starts_with(DELETE_FROM_LIST) || name.starts_with(SET_ELEMENT_ORDER);
        if !value.is_null() && !parallel && !retained(name) {
            return Err(StrategicError::BAD_RETAIN_KEYS);
        }
    }
    original.retain(|name, _| retained(name));
    Ok(())
}

/// Merges the lists for which the patch gives an order, and takes both out of the patch.
fn merge_ordered_lists(
    original: &mut Map<String, Value>,
    patch: &mut Map<String, Value>,
    kind: Type,
    mode: Mode,
    depth: usize,
) -> Result<(), StrategicError> {
    let directives: Vec<String> = patch
        .keys()
        .filter(|name| name.starts_with(SET_ELEMENT_ORDER))
        .cloned()
        .collect();
    for directive in directives {
        let Some(order) = patch.remove(&directive) else {
            continue;
        };
        if mode == Mode::Combine {
            let earlier = original.entry(&directive).or_insert_with(|| order.clone());
            if *earlier != order {
                return Err(StrategicError::BAD_ELEMENT_ORDER);
            }
        }
        let order = as_list(&order)?;
        let name = list_name(
            &directive,
            SET_ELEMENT_ORDER,
            StrategicError::BAD_ELEMENT_ORDER,
        )?;
        let before = original.get(&name).map(as_list).transpose()?.cloned();
        let change = patch.get(&name).map(as_list).transpose()?.cloned();
        let field = Field::lookup(kind, &name)?;
        check_order(change.as_deref().unwrap_or(&[]), order, field.merge_key())?;
        let merged = match (&before, &change) {
            (None, None) => continue,
            (Some(before), None) => before.clone(),
            (None, Some(change)) => match added(Value::Array(change.clone()), mode, depth + 1)? {
                Some(Value::Array(items)) => items,
                _ => continue,
            },
            (Some(before), Some(change)) if field.merges() => {
                merge_lists(before.clone(), change.clone(), field, mode, depth + 1)?
            }
            (Some(_), Some(change)) => {
                let mut replacement = Value::Array(change.clone());
                strip(&mut replacement, mode, depth + 1)?;
                as_list(&replacement)?.clone()
            }
        };
        let live = before.unwrap_or_default();
        let item_kind = item_kind(&[&live, change.as_deref().unwrap_or(&[])])?;
        let ordered = order_items(merged, order, &live, field.merge_key(), item_kind)?;
        original.insert(name.clone(), Value::Array(ordered));
        patch.remove(&name);
    }
    Ok(())
}

/// The items of the patch have to occur in the order, as a subsequence.
fn check_order(
    patch: &[Value],
    order: &[Value],
    merge_key: Option<&str>,
) -> Result<(), StrategicError> {
    if patch.is_empty() || order.is_empty() {
        return Ok(());
    }
    if merge_key.is_some() {
        patch
            .iter()
            .try_for_each(|item| as_object(item).map(drop))?;
    }
    let mut rest = order.iter();
    let relevant = |item: &&Value| match merge_key {
        Some(_) => !is_deletion(item) && item.get(PATCH).is_none(),
        None => true,
    };
    'items: for item in patch.iter().filter(relevant) {
        for place in rest.by_ref() {
            let same = match merge_key {
                Some(merge_key) => key_of(item, merge_key)? == key_of(place, merge_key)?,
                None => item == place,
            };
            if same {
                continue 'items;
            }
        }
        return Err(StrategicError::Mismatch(format!(
            "The order in patch list:\n{}\n doesn't match {SET_ELEMENT_ORDER} list:\n{}\n",
            go_text::text(&Value::Array(patch.to_vec())),
            go_text::text(&Value::Array(order.to_vec()))
        )));
    }
    Ok(())
}

/// Merges a list whose items have an identity.
fn merge_lists(
    original: Vec<Value>,
    patch: Vec<Value>,
    field: Field,
    mode: Mode,
    depth: usize,
) -> Result<Vec<Value>, StrategicError> {
    if original.is_empty() && patch.is_empty() {
        return Ok(original);
    }
    let kind = item_kind(&[&original, &patch])?;
    if kind == ItemKind::Scalar {
        let merged = without_repetitions(original.iter().chain(&patch));
        return order_items(merged, &patch, &original, None, kind);
    }
    let Some(merge_key) = field.merge_key() else {
        return Err(StrategicError::Mismatch(
            "cannot merge lists without merge key for struct".to_owned(),
        ));
    };
    let (original, patch) = carry_out_directives(original, patch, merge_key)?;
    let merged = merge_items(&original, &patch, merge_key, |before, change| {
        merge_maps(before, change, field.kind.item(), mode, depth + 1)
    })?;
    let mut ordered = order_items(merged, &patch, &original, Some(merge_key), kind)?;
    // Only now, because a key that is null still tells an item from others.
    let known = Places::of_objects(&original, merge_key);
    for item in &mut ordered {
        let key = item.get(merge_key).cloned().unwrap_or_default();
        if known.find(&key)?.is_none() {
            strip(item, mode, depth + 1)?;
        }
    }
    Ok(ordered)
}

type Members = Map<String, Value>;

/// Merges each change into the item with its key, or adds it.
fn merge_items(
    original: &[Value],
    patch: &[Value],
    merge_key: &str,
    merge: impl Fn(Members, Members) -> Result<Members, StrategicError>,
) -> Result<Vec<Value>, StrategicError> {
    let mut merged = original.to_vec();
    let mut places: HashMap<&Value, usize> = HashMap::with_capacity(merged.len());
    for (place, item) in original.iter().enumerate() {
        if let Some(key) = as_object(item)?.get(merge_key) {
            places.entry(key).or_insert(place);
        }
    }
    for change in patch {
        let key = key_of(change, merge_key)?;
        let Some(place) = places.get(key).copied() else {
            places.insert(key, merged.len());
            merged.push(change.clone());
            continue;
        };
        let before = std::mem::take(&mut merged[place]);
        let (Value::Object(before), Value::Object(change)) = (before, change.clone()) else {
            return Err(StrategicError::BAD_DOCUMENT);
        };
        let item = merge(before, change)?;
        if item.get(merge_key) != Some(key) {
            // A change that does not retain the key leaves an item that nobody finds again.
            places.remove(key);
        }
        merged[place] = Value::Object(item);
    }
    Ok(merged)
}

/// Deletes the items that the patch wants gone, and takes the directives out of it.
fn carry_out_directives(
    mut original: Vec<Value>,
    patch: Vec<Value>,
    merge_key: &str,
) -> Result<(Vec<Value>, Vec<Value>), StrategicError> {
    let mut changes = Vec::with_capacity(patch.len());
    let mut replace = false;
    let mut gone: HashSet<Value> = HashSet::new();
    for item in patch {
        let members = as_object(&item)?;
        match members
            .get(PATCH)
            .map(|directive| directive.as_str().unwrap_or_default())
        {
            None => changes.push(item),
            Some("delete") => {
                gone.insert(key_of(&item, merge_key)?.clone());
            }
            Some("replace") => replace = true,
            Some("merge") => {
                let message = "merging lists cannot yet be specified in the patch";
                return Err(StrategicError::Mismatch(message.to_owned()));
            }
            Some(_) => {
                let mut members = members.clone();
                let directive = members.remove(PATCH).unwrap_or_default();
                return Err(unknown_directive(directive, members));
            }
        }
    }
    if !gone.is_empty() {
        original.retain(|item| item.get(merge_key).is_none_or(|key| !gone.contains(key)));
    }
    Ok(if replace {
        (changes, Vec::new())
    } else {
        (original, changes)
    })
}
