//! Strategic merge patches as kustomize applies them.
//!
//! They differ from those of an API server (`bellwether_patch::strategic`): items of a patch come
//! first in a list, `$setElementOrder` and `$retainKeys` are ordinary fields, lists without a schema
//! are replaced, and so are those of custom resources.

use std::collections::BTreeSet;

use bellwether_json::path::type_name;
use bellwether_json::yaml::plain_scalar;
use serde_json::{Map, Value};

use crate::error::{Problem, Result};
use crate::merge_schema::{MergeSchema, Schemas};
use crate::resource::scalar_text;

const PATCH: &str = "$patch";

/// Items of a list that is merged by key; comparing them costs the square.
const MAX_MERGED_ITEMS: usize = 2_000;

/// Applies a patch to an object; `None` if the patch deletes it.
pub(crate) fn merge(object: Value, patch: Value, schemas: &Schemas) -> Result<Option<Value>> {
    let merger = Merger { schemas };
    merger.walk(Some(object), Some(patch), None)
}

struct Merger<'s> {
    schemas: &'s Schemas,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Directive {
    Merge,
    Replace,
    Delete,
}

impl Merger<'_> {
    /// Merges what a patch says about one place; `None` removes it.
    fn walk(
        &self,
        target: Option<Value>,
        patch: Option<Value>,
        schema: Option<MergeSchema>,
    ) -> Result<Option<Value>> {
        let present = |value: &Option<Value>| value.as_ref().is_some_and(|value| !value.is_null());
        if !present(&target) && !present(&patch) {
            // A null that was there stays; one that only the patch has does nothing.
            return Ok(if patch.is_none() { target } else { None });
        }
        if let (Some(target), Some(patch)) = (&target, &patch) {
            check_kinds(target, patch)?;
        }
        let schema = schema.or_else(|| {
            let known = [&target, &patch].into_iter().flatten();
            known
                .filter(|value| value.is_object())
                .find_map(|value| self.schemas.of(value))
        });
        match (target, patch) {
            // The patch has nothing to say.
            (target, None) => Ok(target),
            (Some(_), Some(Value::Null)) => Ok(None),
            (Some(Value::Object(target)), Some(Value::Object(patch))) => {
                self.walk_maps(target, patch, schema)
            }
            (Some(Value::Array(target)), Some(Value::Array(patch))) => {
                self.walk_lists(target, patch, schema)
            }
            // Nothing to merge with: only directives are carried out.
            (None | Some(Value::Null), Some(patch)) => self.clean(patch, schema),
            (Some(_), Some(patch)) => Ok(Some(patch)),
        }
    }

    fn walk_maps(
        &self,
        mut target: Map<String, Value>,
        mut patch: Map<String, Value>,
        schema: Option<MergeSchema>,
    ) -> Result<Option<Value>> {
        match take_directive(&mut patch)? {
            Directive::Delete => return Ok(None),
            Directive::Replace => return self.clean(Value::Object(patch), schema),
            Directive::Merge => {}
        }
        for (name, change) in patch {
            let schema = schema.as_ref().and_then(|schema| schema.field(&name));
            let merged = self.walk(target.remove(&name), Some(change), schema)?;
            if let Some(merged) = merged.filter(|merged| !merged.is_null()) {
                target.insert(name, merged);
            }
        }
        Ok(Some(Value::Object(target)))
    }

    fn walk_lists(
        &self,
        target: Vec<Value>,
        mut patch: Vec<Value>,
        schema: Option<MergeSchema>,
    ) -> Result<Option<Value>> {
        let Some(keys) = schema.as_ref().and_then(MergeSchema::merge_keys) else {
            return Ok(Some(Value::Array(patch)));
        };
        let items = schema.and_then(|schema| schema.items());
        match take_list_directive(&mut patch)? {
            Directive::Delete => Ok(None),
            Directive::Replace => {
                let same = patch.clone();
                self.merge_items(patch, &same, &keys, items.as_ref(), true)
            }
            Directive::Merge => self.merge_items(target, &patch, &keys, items.as_ref(), false),
        }
    }

    /// Carries out directives in a part of a patch that has nothing to merge with.
    fn clean(&self, value: Value, schema: Option<MergeSchema>) -> Result<Option<Value>> {
        match value {
            Value::Object(mut members) => {
                if take_directive(&mut members)? == Directive::Delete {
                    return Ok(None);
                }
                let mut cleaned = Map::new();
                for (name, member) in members {
                    let schema = schema.as_ref().and_then(|schema| schema.field(&name));
                    let member = self.clean(member, schema)?;
                    if let Some(member) = member.filter(|member| !member.is_null()) {
                        cleaned.insert(name, member);
                    }
                }
                Ok(Some(Value::Object(cleaned)))
            }
            Value::Array(mut items) => {
                let Some(keys) = schema.as_ref().and_then(MergeSchema::merge_keys) else {
                    return Ok(Some(Value::Array(items)));
                };
                if take_list_directive(&mut items)? == Directive::Delete {
                    return Ok(None);
                }
                let schema = schema.and_then(|schema| schema.items());
                let same = items.clone();
                self.merge_items(items, &same, &keys, schema.as_ref(), true)
            }
            scalar => Ok(Some(scalar)),
        }
    }

    /// Merges a list whose items are identified by keys. `same` means that both lists are one.
    fn merge_items(
        &self,
        mut target: Vec<Value>,
        patch: &[Value],
        keys: &[String],
        schema: Option<&MergeSchema>,
        same: bool,
    ) -> Result<Option<Value>> {
        if target.len() + patch.len() > 2 * MAX_MERGED_ITEMS {
            let message = format!("a list has more than {MAX_MERGED_ITEMS} items to merge by key");
            return Err(Problem::new(message));
        }
        let keys: Vec<&str> = if keys.is_empty() {
            vec![""]
        } else {
            keys.iter().map(String::as_str).collect()
        };
        let identities = identities(&target, patch, &keys);
        let mut merged: Vec<Value> = Vec::new();
        let mut used: Vec<&str> = Vec::new();
        for identity in &identities {
            let (valid, values) = valid_keys(&identities, identity, &keys);
            let item = self.merge_item(&mut target, patch, schema, (&valid, &values), same)?;
            match item {
                Some(item) => set_element(&mut merged, Some(item), &valid, &values),
                None => set_element(&mut target, None, &valid, &values),
            }
            used = valid;
        }
        if !identities.is_empty() {
            append(&mut merged, target, &used);
            target = merged;
        }
        Ok(Some(Value::Array(target)))
    }

    /// Merges the item of one identity, and leaves it in the target if it was there.
    fn merge_item(
        &self,
        target: &mut [Value],
        patch: &[Value],
        schema: Option<&MergeSchema>,
        (keys, values): (&[&str], &[String]),
        same: bool,
    ) -> Result<Option<Value>> {
        // Only keys with a value tell items apart here.
        let named: Vec<(&str, &String)> = keys
            .iter()
            .copied()
            .zip(values)
            .filter(|(_, value)| !value.is_empty())
            .collect();
        let find = |items: &[Value]| {
            items.iter().position(|item| {
                !named.is_empty()
                    && named
                        .iter()
                        .all(|(key, value)| element_value(item, key).as_ref() == Some(value))
            })
        };
        let at = find(target);
        let change = find(patch).map(|index| patch[index].clone());
        let before = at.map(|index| target[index].clone());
        let merged = if same {
            match before {
                Some(before) => self.clean(before, schema.cloned())?,
                None => None,
            }
        } else {
            self.walk(before, change, schema.cloned())?
        };
        let mut merged = merged.filter(|item| !is_blank(item));
        if let Some(Value::Object(members)) = &mut merged {
            for (key, value) in named {
                if !members.contains_key(key) {
                    members.insert(key.to_owned(), plain_scalar(value));
                }
            }
        }
        if let (Some(index), Some(item)) = (at, &merged) {
            target[index] = item.clone();
        }
        Ok(merged)
    }
}

fn check_kinds(target: &Value, patch: &Value) -> Result<()> {
    let kind = |value: &Value| match value {
        Value::Object(_) => 1,
        Value::Array(_) => 2,
        _ => 3,
    };
    if target.is_null() || patch.is_null() || kind(target) == kind(patch) {
        return Ok(());
    }
    let message = format!(
        "a patch has a {} where the object has a {}",
        type_name(patch),
        type_name(target)
    );
    Err(Problem::new(message))
}

fn directive(text: &str) -> Result<Directive> {
    match text {
        "delete" => Ok(Directive::Delete),
        "replace" => Ok(Directive::Replace),
        "merge" => Ok(Directive::Merge),
        _ => {
            let message = format!("unknown patch strategy {text:?}; use delete, replace or merge");
            Err(Problem::new(message))
        }
    }
}

fn take_directive(patch: &mut Map<String, Value>) -> Result<Directive> {
    match patch.remove(PATCH) {
        Some(text) => directive(&scalar_text(&text)),
        None => Ok(Directive::Merge),
    }
}

/// An item that is nothing but a directive speaks for the whole list.
fn take_list_directive(patch: &mut Vec<Value>) -> Result<Directive> {
    let first = patch.iter().find(|item| item.get(PATCH).is_some());
    let Some(Value::Object(members)) = first else {
        return Ok(Directive::Merge);
    };
    if members.len() > 1 {
        return Ok(Directive::Merge);
    }
    let text = members.get(PATCH).map(scalar_text).unwrap_or_default();
    patch.retain(|item| item.get(PATCH).map(scalar_text).as_ref() != Some(&text));
    directive(&text)
}

fn is_blank(item: &Value) -> bool {
    match item {
        Value::Null => true,
        Value::Object(members) => members.is_empty(),
        _ => false,
    }
}

/// The value of a key of an item, or the item itself for the empty key.
fn element_value(item: &Value, key: &str) -> Option<String> {
    if key.is_empty() {
        return (!item.is_object() && !item.is_array()).then(|| scalar_text(item));
    }
    item.get(key).map(scalar_text)
}

/// The values of the keys of all items, those of the patch first, each once.
fn identities(target: &[Value], patch: &[Value], keys: &[&str]) -> Vec<Vec<String>> {
    let mut seen = BTreeSet::new();
    let mut identities = Vec::new();
    for item in patch.iter().chain(target) {
        let value = |key: &&str| element_value(item, key).unwrap_or_default();
        let identity: Vec<String> = keys.iter().map(value).collect();
        if seen.insert(identity.clone()) {
            identities.push(identity);
        }
    }
    if keys.len() > 1 {
        complete(&mut identities);
    }
    identities
}

/// An identity that lacks a value which a matching one has gets it from there.
fn complete(identities: &mut [Vec<String>]) {
    for first in 0..identities.len() {
        for second in 0..identities.len() {
            if let Some(both) = combine(&identities[first], &identities[second]) {
                identities[first].clone_from(&both);
                identities[second] = both;
            }
        }
    }
}

fn combine(first: &[String], second: &[String]) -> Option<Vec<String>> {
    let mut agree = false;
    let mut both = Vec::with_capacity(first.len());
    for (first, second) in first.iter().zip(second) {
        agree |= first == second;
        if first != second && !first.is_empty() && !second.is_empty() {
            return None;
        }
        both.push(if first.is_empty() { second } else { first }.clone());
    }
    agree.then_some(both)
}

/// The keys that any item has, and the values of one identity for them.
fn valid_keys<'k>(
    identities: &[Vec<String>],
    identity: &[String],
    keys: &[&'k str],
) -> (Vec<&'k str>, Vec<String>) {
    let is_used = |index: usize| identities.iter().any(|other| !other[index].is_empty());
    let used: Vec<usize> = (0..keys.len()).filter(|index| is_used(*index)).collect();
    if used.is_empty() {
        return (keys.to_vec(), identity.to_vec());
    }
    (
        used.iter().map(|index| keys[*index]).collect(),
        used.iter().map(|index| identity[*index].clone()).collect(),
    )
}

/// Replaces the items that match by an element, or removes them; an element that matches nothing is
/// added at the end. An empty value matches whatever the key has.
fn set_element(items: &mut Vec<Value>, element: Option<Value>, keys: &[&str], values: &[String]) {
    let sets_mapping = keys.first().is_some_and(|key| !key.is_empty())
        && values.first().is_some_and(|value| !value.is_empty());
    let mut found = false;
    let mut kept = Vec::with_capacity(items.len() + 1);
    for item in std::mem::take(items) {
        if is_blank(&item) {
            continue;
        }
        if sets_mapping && !item.is_object() {
            kept.push(item);
            continue;
        }
        let mut last = false;
        let matches = keys.iter().enumerate().all(|(index, key)| {
            // A key without a value counts as the one before it did.
            if let Some(value) = values.get(index) {
                let own = element_value(&item, key);
                last = own.is_some_and(|own| value.is_empty() && !key.is_empty() || own == *value);
            }
            last
        });
        if !matches {
            if !values.is_empty() {
                kept.push(item);
            }
            continue;
        }
        found = true;
        kept.extend(element.clone());
    }
    if !found {
        kept.extend(element);
    }
    *items = kept;
}

/// Adds the items of the target behind those of the patch; with several keys they keep their order.
fn append(merged: &mut Vec<Value>, target: Vec<Value>, keys: &[&str]) {
    for item in target {
        if keys.first().is_none_or(|key| key.is_empty()) {
            let value = scalar_text(&item);
            set_element(merged, Some(item), &[""], &[value]);
            continue;
        }
        let mut values = Vec::new();
        for key in keys {
            match element_value(&item, key) {
                Some(value) => values.push(value),
                None => merged.push(item.clone()),
            }
        }
        if keys.len() > 1 {
            set_element(merged, None, keys, &values);
        }
        set_element(merged, Some(item), keys, &values);
    }
}
