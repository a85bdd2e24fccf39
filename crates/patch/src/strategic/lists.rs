//! Order and identity of list items.

use std::collections::{HashMap, HashSet};

use serde_json::{Map, Value};

use super::{PATCH, StrategicError};
use crate::go_text;

/// What a list is made of; all items have to be of one kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ItemKind {
    Object,
    Scalar,
}

/// The kind of the items of several lists taken together.
pub(super) fn item_kind(lists: &[&[Value]]) -> Result<ItemKind, StrategicError> {
    let mut items = lists.iter().copied().flatten();
    let Some(first) = items.next() else {
        let message = "no elements in any of the given slices";
        return Err(StrategicError::Mismatch(message.to_owned()));
    };
    if first.is_array() {
        return Err(StrategicError::LIST_OF_LISTS);
    }
    let name = go_text::type_name(first);
    if items.any(|item| go_text::type_name(item) != name) {
        let lists: Vec<Value> = lists
            .iter()
            .map(|list| Value::Array(list.to_vec()))
            .collect();
        return Err(StrategicError::Mismatch(format!(
            "list element types are not identical: {}",
            go_text::text(&Value::Array(lists))
        )));
    }
    Ok(if first.is_object() {
        ItemKind::Object
    } else {
        ItemKind::Scalar
    })
}

pub(super) fn as_object(item: &Value) -> Result<&Map<String, Value>, StrategicError> {
    item.as_object()
        .ok_or_else(|| StrategicError::wrong_type(&Value::Object(Map::new()), item))
}

pub(super) fn as_list(value: &Value) -> Result<&Vec<Value>, StrategicError> {
    value
        .as_array()
        .ok_or_else(|| StrategicError::wrong_type(&Value::Array(Vec::new()), value))
}

/// The value of an item's merge key.
pub(super) fn key_of<'v>(item: &'v Value, merge_key: &str) -> Result<&'v Value, StrategicError> {
    let item = as_object(item)?;
    item.get(merge_key)
        .ok_or_else(|| StrategicError::no_merge_key(item, merge_key))
}

/// Where items are: by the value of their merge key, or by themselves.
pub(super) struct Places<'v> {
    /// The first place of each value.
    first: HashMap<&'v Value, usize>,
    /// The first place of an object without the key.
    keyless: Option<usize>,
    /// The first place of something that should be an object and is not.
    misfit: Option<usize>,
}

impl<'v> Places<'v> {
    /// The places of objects, by their merge key.
    pub(super) fn of_objects(items: &'v [Value], merge_key: &str) -> Self {
        let mut places = Self {
            first: HashMap::with_capacity(items.len()),
            keyless: None,
            misfit: items.iter().position(|item| !item.is_object()),
        };
        for (place, item) in items.iter().enumerate() {
            match item.get(merge_key) {
                Some(key) => {
                    places.first.entry(key).or_insert(place);
                }
                None => places.keyless = places.keyless.or(Some(place)),
            }
        }
        places
    }

    fn of(items: &'v [Value], merge_key: Option<&str>, kind: ItemKind) -> Self {
        match kind {
            ItemKind::Object => Self::of_objects(items, merge_key.unwrap_or_default()),
            ItemKind::Scalar => {
                let mut first = HashMap::with_capacity(items.len());
                for (place, item) in items.iter().enumerate() {
                    first.entry(item).or_insert(place);
                }
                Self {
                    first,
                    keyless: None,
                    misfit: None,
                }
            }
        }
    }

    /// Where the object with this key is; objects without the key are passed over.
    pub(super) fn find(&self, key: &Value) -> Result<Option<usize>, StrategicError> {
        let found = self.first.get(key).copied();
        match self.misfit {
            Some(misfit) if found.is_none_or(|found| misfit < found) => {
                let message = format!("value for key {misfit} is not a map");
                Err(StrategicError::Mismatch(message))
            }
            _ => Ok(found),
        }
    }

    /// Where the item that is the same as this one is.
    fn place(&self, item: &Value, merge_key: Option<&str>, kind: ItemKind) -> Option<usize> {
        let identity = match kind {
            ItemKind::Object => item.get(merge_key.unwrap_or_default()),
            ItemKind::Scalar => Some(item),
        };
        match identity {
            Some(identity) => self.first.get(identity).copied(),
            None => self.keyless,
        }
    }
}

/// Sorts items as they occur in `order`; deleted ones go to the end.
pub(super) fn sort_like(
    items: Vec<Value>,
    order: &[Value],
    merge_key: Option<&str>,
    kind: ItemKind,
) -> Result<Vec<Value>, StrategicError> {
    if kind == ItemKind::Object {
        for item in items.iter().chain(order) {
            key_of(item, merge_key.unwrap_or_default())?;
        }
    }
    let (deleted, mut kept): (Vec<Value>, Vec<Value>) = items.into_iter().partition(is_deletion);
    let places = Places::of(order, merge_key, kind);
    kept.sort_by_cached_key(|item| places.place(item, merge_key, kind));
    kept.extend(deleted);
    Ok(kept)
}

pub(super) fn is_deletion(item: &Value) -> bool {
    item.get(PATCH).and_then(Value::as_str) == Some("delete")
}

/// Brings a merged list into order: items of the patch in `patch_order`, the others in `live_order`,
/// each of the latter as far as possible before the item that it preceded.
pub(super) fn order_items(
    merged: Vec<Value>,
    patch_order: &[Value],
    live_order: &[Value],
    merge_key: Option<&str>,
    kind: ItemKind,
) -> Result<Vec<Value>, StrategicError> {
    let mut patched = Vec::new();
    let mut others = Vec::new();
    let named = match merge_key {
        Some(merge_key) => Places::of_objects(patch_order, merge_key),
        None => Places::of(patch_order, None, ItemKind::Scalar),
    };
    for item in merged {
        let named = match merge_key {
            Some(merge_key) => named.find(key_of(&item, merge_key)?)?.is_some(),
            None => named.find(&item)?.is_some(),
        };
        if named {
            patched.push(item);
        } else {
            others.push(item);
        }
    }
    let patched = sort_like(patched, patch_order, merge_key, kind)?;
    let others = sort_like(others, live_order, merge_key, kind)?;

    let mut ordered = Vec::with_capacity(patched.len() + others.len());
    let mut patched = patched.into_iter().peekable();
    let live = Places::of(live_order, merge_key, kind);
    for item in others {
        let place = live.place(&item, merge_key, kind);
        while let Some(next) = patched.peek() {
            let next_place = live.place(next, merge_key, kind);
            if let (Some(place), Some(next_place)) = (place, next_place)
                && place < next_place
            {
                break;
            }
            ordered.extend(patched.next());
        }
        ordered.push(item);
    }
    ordered.extend(patched);
    Ok(ordered)
}

/// Scalars sorted by their text.
pub(super) fn sorted_scalars(mut items: Vec<Value>) -> Vec<Value> {
    items.sort_by_cached_key(go_text::text);
    items
}

/// The items without repetitions, in order of first occurrence.
pub(super) fn without_repetitions<'v>(items: impl IntoIterator<Item = &'v Value>) -> Vec<Value> {
    let mut seen = HashSet::new();
    let first = items.into_iter().filter(|item| seen.insert(*item));
    first.cloned().collect()
}
