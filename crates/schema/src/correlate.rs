//! Which old value belongs to a new one: fields by name, items of keyed lists by their keys.
//!
//! Ratcheting ([`crate::validate`]) and transition rules ([`crate::rules`]) both rest on it. Items of
//! other lists have no counterpart, because nothing tells which is which.

use serde_json::{Map, Value};

use crate::model::{ListType, Schema};
use crate::number::deep_equal;

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

    /// The item at `index` of a keyed list, if the old list has one with the same keys.
    pub(crate) fn index(&self, index: usize) -> Option<Correlated<'a>> {
        let ListType::Map(keys) = &self.schema.list_type else {
            return None;
        };
        let new = self.new.as_array()?.get(index)?;
        let old = find_by_keys(self.old.as_array()?, keys, new)?;
        let schema = self.schema.items.as_deref()?;
        Some(Correlated { new, old, schema })
    }

    /// Whether nothing changed. Reordering a keyed list is no change; a field that the schema does
    /// not know counts as one, because it cannot be correlated.
    pub(crate) fn is_unchanged(&self) -> bool {
        match (self.new, self.old) {
            (Value::Array(new), Value::Array(old)) => {
                if new.len() != old.len() {
                    return false;
                }
                match self.schema.list_type {
                    ListType::Map(_) => (0..new.len())
                        .all(|index| self.index(index).is_some_and(|child| child.is_unchanged())),
                    _ => deep_equal(self.new, self.old),
                }
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

/// The first item whose keys have the values of those of `wanted`; keys have to be scalars.
pub(crate) fn find_by_keys<'a>(
    items: &'a [Value],
    keys: &[String],
    wanted: &Value,
) -> Option<&'a Value> {
    let wanted = wanted.as_object()?;
    if keys.is_empty()
        || !keys
            .iter()
            .all(|key| wanted.get(key).is_some_and(is_scalar))
    {
        return None;
    }
    let same = |item: &Map<String, Value>| {
        keys.iter()
            .all(|key| match (item.get(key), wanted.get(key)) {
                (Some(left), Some(right)) => deep_equal(left, right),
                _ => false,
            })
    };
    items.iter().find(|item| item.as_object().is_some_and(same))
}

fn is_scalar(value: &Value) -> bool {
    matches!(value, Value::Bool(_) | Value::Number(_) | Value::String(_))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

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
