//! Which old value belongs to a new one: fields by name, items of keyed lists by their keys.
//!
//! Ratcheting ([`crate::validate`]) and transition rules ([`crate::rules`]) both rest on it. Items of
//! other lists have no counterpart, because nothing tells which is which.

use std::collections::HashMap;

use serde_json::{Map, Value};

use crate::model::{ListType, Schema};
use crate::number::deep_equal;
use crate::text;

/// A value with the one it replaces.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Correlated<'a> {
    pub(crate) new: &'a Value,
    pub(crate) old: &'a Value,
    pub(crate) schema: &'a Schema,
}

impl<'a> Correlated<'a> {
    /// The field `name`, if both values have it and the schema knows it.
    pub(crate) fn key(&self, name: &str) -> Option<Correlated<'a>> {
        let new = self.new.as_object()?.get(name)?;
        let old = self.old.as_object()?.get(name)?;
        let specified = |schema: &&Schema| !schema.is_unspecified();
        let schema = match self.schema.properties.get(name) {
            Some(property) => property,
            None => self
                .schema
                .additional_properties
                .as_deref()
                .filter(specified)?,
        };
        Some(Correlated { new, old, schema })
    }

    /// The items of a keyed list.
    pub(crate) fn items(&self) -> Option<CorrelatedItems<'a>> {
        let ListType::Map(keys) = &self.schema.list_type else {
            return None;
        };
        let (Value::Array(_), Value::Array(old)) = (self.new, self.old) else {
            return None;
        };
        let schema = self.schema.items.as_deref()?;
        Some(CorrelatedItems {
            old: KeyedItems::new(old, keys),
            schema,
        })
    }

    /// Whether nothing changed. Reordering a keyed list is no change; a field that the schema does
    /// not know counts as one, because it cannot be correlated.
    pub(crate) fn is_unchanged(&self) -> bool {
        match (self.new, self.old) {
            (Value::Array(new), Value::Array(old)) => {
                if new.len() != old.len() {
                    return false;
                }
                if !matches!(self.schema.list_type, ListType::Map(_)) {
                    return deep_equal(self.new, self.old);
                }
                let items = self.items();
                let counterpart = |item| items.as_ref().and_then(|items| items.find(item));
                new.iter()
                    .all(|item| counterpart(item).is_some_and(|child| child.is_unchanged()))
            }
            (Value::Object(new), Value::Object(old)) => {
                new.len() == old.len()
                    && new
                        .keys()
                        .all(|name| self.key(name).is_some_and(|child| child.is_unchanged()))
            }
            (new, old) => deep_equal(new, old),
        }
    }
}

/// The items of a keyed list, each with the one it replaces.
#[derive(Debug)]
pub(crate) struct CorrelatedItems<'a> {
    old: KeyedItems<'a>,
    schema: &'a Schema,
}

impl<'a> CorrelatedItems<'a> {
    /// The new item `new`, if the old list has one with the same keys.
    pub(crate) fn find(&self, new: &'a Value) -> Option<Correlated<'a>> {
        let old = self.old.find(new)?;
        Some(Correlated {
            new,
            old,
            schema: self.schema,
        })
    }
}

/// The items of a list by their keys.
#[derive(Debug)]
pub(crate) struct KeyedItems<'a> {
    keys: &'a [String],
    items: &'a [Value],
    /// Made for lists that are too long to be searched again and again.
    index: Option<HashMap<String, &'a Value>>,
}

impl<'a> KeyedItems<'a> {
    /// Up to here searching is faster than making an index.
    const FEW: usize = 8;

    pub(crate) fn new(items: &'a [Value], keys: &'a [String]) -> Self {
        let index = (items.len() > Self::FEW).then(|| {
            let mut index = HashMap::with_capacity(items.len());
            for item in items {
                if let Some(identity) = identity(item, keys) {
                    // Of several items with the same keys the first counts.
                    index.entry(identity).or_insert(item);
                }
            }
            index
        });
        Self { keys, items, index }
    }

    /// The first item whose keys have the values of those of `wanted`; keys have to be scalars.
    pub(crate) fn find(&self, wanted: &Value) -> Option<&'a Value> {
        if let Some(index) = &self.index {
            return index.get(&identity(wanted, self.keys)?).copied();
        }
        let wanted = wanted.as_object()?;
        let has_keys = self
            .keys
            .iter()
            .all(|key| wanted.get(key).is_some_and(is_scalar));
        if self.keys.is_empty() || !has_keys {
            return None;
        }
        let same = |item: &Map<String, Value>| {
            self.keys
                .iter()
                .all(|key| match (item.get(key), wanted.get(key)) {
                    (Some(left), Some(right)) => deep_equal(left, right),
                    _ => false,
                })
        };
        self.items
            .iter()
            .find(|item| item.as_object().is_some_and(same))
    }
}

/// What tells an item apart, as text; `None` if a key is missing or no scalar.
fn identity(item: &Value, keys: &[String]) -> Option<String> {
    let fields = item.as_object()?;
    let mut identity = String::new();
    for key in keys {
        let value = fields.get(key).filter(|value| is_scalar(value))?;
        // An integer and a float are different even if they print alike.
        if matches!(value, Value::Number(number) if number.is_f64()) {
            identity.push('.');
        }
        identity.push_str(&text::json(value));
        identity.push('\0');
    }
    (!keys.is_empty()).then_some(identity)
}

fn is_scalar(value: &Value) -> bool {
    matches!(value, Value::Bool(_) | Value::Number(_) | Value::String(_))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    #[test]
    fn long_and_short_lists_are_searched_alike() {
        let keys = ["k".to_owned(), "n".to_owned()];
        let item = |k: &str, n: Value, v: usize| json!({"k": k, "n": n, "v": v});
        let mut items = vec![
            item("a", json!(1), 0),
            item("a", json!(1), 1),
            item("a", json!(1.0), 2),
            item("a", json!({}), 3),
            json!({"k": "a"}),
            json!(null),
        ];
        let wanted = items.clone();
        let positions = |items: &[Value]| -> Vec<Option<Value>> {
            let keyed = KeyedItems::new(items, &keys);
            wanted
                .iter()
                .map(|wanted| keyed.find(wanted).map(|item| item["v"].clone()))
                .collect()
        };
        let expected = [
            Some(json!(0)),
            Some(json!(0)),
            Some(json!(2)),
            None,
            None,
            None,
        ];
        assert_eq!(positions(&items), expected);
        items.extend((0..20).map(|n| item("b", json!(n), 9)));
        assert_eq!(positions(&items), expected);
    }

    use super::*;
    use crate::parse;

    #[test]
    fn unchanged_means_equal_up_to_the_order_of_keyed_lists() {
        let schema = parse(&json!({"type": "object", "properties": {
            "keyed": {"type": "array", "x-kubernetes-list-type": "map",
                "x-kubernetes-list-map-keys": ["k"],
                "items": {"type": "object", "properties": {"k": {"type": "string"}, "v": {"type": "integer"}}}},
            "plain": {"type": "array", "items": {"type": "integer"}},
            "free": {"type": "object", "x-kubernetes-preserve-unknown-fields": true},
        }}))
        .unwrap();
        let keyed = |entries: &[(&str, i64)]| {
            let items: Vec<_> = entries
                .iter()
                .map(|(k, v)| json!({"k": k, "v": v}))
                .collect();
            json!({"keyed": items})
        };
        let cases = [
            (
                keyed(&[("a", 1), ("b", 2)]),
                keyed(&[("b", 2), ("a", 1)]),
                true,
            ),
            (keyed(&[("a", 1)]), keyed(&[("a", 2)]), false),
            (keyed(&[("a", 1)]), keyed(&[("b", 1)]), false),
            (keyed(&[]), keyed(&[]), true),
            (json!({"plain": [1, 2]}), json!({"plain": [1, 2]}), true),
            (json!({"plain": [1, 2]}), json!({"plain": [2, 1]}), false),
            (json!({"plain": [1]}), json!({"plain": [1.0]}), false),
            (json!({"free": {"x": 1}}), json!({"free": {"x": 1}}), false),
            (json!({"free": {}}), json!({"free": {}}), true),
            (json!({"plain": null}), json!({"plain": null}), true),
            (json!({"plain": null}), json!({}), false),
        ];
        for (new, old, expected) in cases {
            let correlated = Correlated {
                new: &new,
                old: &old,
                schema: &schema,
            };
            assert_eq!(correlated.is_unchanged(), expected, "{new} from {old}");
        }
    }
}
