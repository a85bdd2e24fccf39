//! Rearranges base and patch according to the markers, so that unifying them afterwards gives the
//! merged value.

use std::sync::Arc;

use super::marker;
use crate::tree::{Entry, Line, Tree, are_written_alike};
use crate::value::Value;

/// Applies the markers of the patch to both trees.
pub(super) fn align(base: &mut Tree, patch: &mut Tree) {
    walk(base, patch, &mut Vec::new(), None);
}

/// Visits the fields of the patch. A key applies to every list below its field that has none of
/// its own.
fn walk(base: &mut Tree, patch: &mut Tree, place: &mut Vec<Arc<str>>, inherited: Option<&str>) {
    match patch {
        Tree::Struct(entries) => {
            for entry in entries {
                visit(base, entry, place, inherited);
            }
        }
        Tree::List { items, .. } => {
            for (position, item) in items.iter_mut().enumerate() {
                place.push(position.to_string().into());
                walk(base, item, place, inherited);
                place.pop();
            }
        }
        Tree::Literal(_) | Tree::Open(_) => {}
    }
}

fn visit(base: &mut Tree, entry: &mut Entry, place: &mut Vec<Arc<str>>, inherited: Option<&str>) {
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
    let mut waiting: Vec<(&str, Value, usize)> = Vec::new();
    for key in keys.split(',') {
        let steps: Vec<&str> = key.split('.').collect();
        let mut found = false;
        for (position, item) in patch.iter().enumerate() {
            let Some(value) = item.find(&steps) else {
                continue;
            };
            found = true;
            let Tree::Literal(value) = value else {
                return None;
            };
            waiting.retain(|(name, known, _)| *name != key || !are_written_alike(known, value));
            waiting.push((key, value.clone(), position));
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
            let Tree::Literal(value) = value else {
                return None;
            };
            let index = waiting
                .iter()
                .position(|(name, known, _)| *name == key && are_written_alike(known, value));
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
