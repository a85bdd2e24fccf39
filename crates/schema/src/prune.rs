//! Pruning: what a schema does not know is removed, and named for `fieldValidation`.

use std::fmt::Write as _;

use serde_json::Value;

use crate::model::Schema;

/// Removes unknown fields from the object at the root of a custom resource and returns their paths,
/// sorted. `apiVersion`, `kind` and `metadata` are always known.
pub fn prune(object: &mut Value, schema: &Schema) -> Vec<String> {
    let mut pruner = Pruner::default();
    if schema.preserve_unknown_fields {
        pruner.keep(object, schema, true);
    } else {
        pruner.known_fields(object, schema, true);
    }
    pruner.unknown.sort();
    pruner.unknown
}

/// Removes unknown fields from a value that is no resource, such as a default.
pub(crate) fn prune_value(value: &mut Value, schema: &Schema) {
    Pruner::default().prune(value, Some(schema));
}

/// Whether pruning leaves a field of a resource alone.
fn is_meta(name: &str) -> bool {
    matches!(name, "apiVersion" | "kind" | "metadata")
}

#[derive(Default)]
struct Pruner {
    path: String,
    unknown: Vec<String>,
}

// Recursion follows the schema, and nested lists where there is none; both are bounded by what parses.
impl Pruner {
    fn prune(&mut self, value: &mut Value, schema: Option<&Schema>) {
        match (schema, value) {
            (Some(schema), value) if schema.preserve_unknown_fields => {
                self.keep(value, schema, schema.embedded_resource);
            }
            (Some(schema), value) => self.known_fields(value, schema, schema.embedded_resource),
            (None, Value::Object(fields)) => {
                for name in fields.keys() {
                    self.record(name);
                }
                fields.clear();
            }
            (None, Value::Array(items)) => {
                for (index, item) in items.iter_mut().enumerate() {
                    self.at_index(index, |pruner| pruner.prune(item, None));
                }
            }
            _ => {}
        }
    }

    fn known_fields(&mut self, value: &mut Value, schema: &Schema, resource: bool) {
        match value {
            Value::Object(fields) => fields.retain(|name, field| {
                if resource && is_meta(name) {
                    return true;
                }
                let known = schema
                    .properties
                    .get(name)
                    .or(schema.additional_properties.as_ref());
                match known {
                    Some(known) => self.at_key(name, |pruner| pruner.prune(field, Some(known))),
                    None if is_meta(name) && self.path.is_empty() => {}
                    None => self.record(name),
                }
                known.is_some()
            }),
            Value::Array(items) => {
                for (index, item) in items.iter_mut().enumerate() {
                    self.at_index(index, |pruner| pruner.prune(item, schema.items.as_deref()));
                }
            }
            _ => {}
        }
    }

    /// Unknown fields stay, but what is specified further down is pruned again.
    fn keep(&mut self, value: &mut Value, schema: &Schema, resource: bool) {
        match value {
            Value::Object(fields) => {
                for (name, field) in fields
                    .iter_mut()
                    .filter(|(name, _)| !(resource && is_meta(name)))
                {
                    let known = schema
                        .properties
                        .get(name)
                        .or(schema.additional_properties.as_ref());
                    if let Some(known) = known {
                        self.at_key(name, |pruner| pruner.prune(field, Some(known)));
                    }
                }
            }
            Value::Array(items) => {
                let Some(schema) = &schema.items else { return };
                for (index, item) in items.iter_mut().enumerate() {
                    self.at_index(index, |pruner| {
                        pruner.keep(item, schema, schema.embedded_resource);
                    });
                }
            }
            _ => {}
        }
    }

    fn record(&mut self, name: &str) {
        self.at_key(name, |pruner| pruner.unknown.push(pruner.path.clone()));
    }

    fn at_key(&mut self, key: &str, then: impl FnOnce(&mut Self)) {
        let length = self.path.len();
        if length > 0 {
            self.path.push('.');
        }
        self.path.push_str(key);
        then(self);
        self.path.truncate(length);
    }

    fn at_index(&mut self, index: usize, then: impl FnOnce(&mut Self)) {
        let length = self.path.len();
        // Writing to a String cannot fail.
        let _ = write!(self.path, "[{index}]");
        then(self);
        self.path.truncate(length);
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::parse;

    #[track_caller]
    fn check(properties: Value, object: Value, expected: Value, unknown: &[&str]) {
        let schema = parse(&json!({"type": "object", "properties": properties})).unwrap();
        let mut pruned = object.clone();
        assert_eq!(prune(&mut pruned, &schema), unknown, "{object}");
        assert_eq!(pruned, expected, "{object}");
    }

    #[test]
    fn unknown_fields_are_removed_and_named() {
        check(
            json!({"spec": {"type": "object", "properties": {
                "list": {"type": "array", "items": {"type": "object", "properties": {"a": {"type": "string"}}}},
                "map": {"type": "object", "additionalProperties": {"type": "object"}},
                "plain": {"type": "string"},
            }}}),
            json!({
                "apiVersion": "v1", "kind": "K", "metadata": {"any": 1}, "extra": 1,
                "spec": {"list": [{"a": "x", "b": 1}], "map": {"k": {"c": 1}}, "plain": {"d": 1}, "e": {}},
            }),
            json!({
                "apiVersion": "v1", "kind": "K", "metadata": {"any": 1},
                "spec": {"list": [{"a": "x"}], "map": {"k": {}}, "plain": {}},
            }),
            &[
                "extra",
                "spec.e",
                "spec.list[0].b",
                "spec.map.k.c",
                "spec.plain.d",
            ],
        );
    }

    #[test]
    fn preserving_holds_until_something_is_specified() {
        check(
            json!({"free": {"type": "object", "x-kubernetes-preserve-unknown-fields": true,
                "properties": {"known": {"type": "object", "properties": {"a": {"type": "string"}}}}}}),
            json!({"free": {"x": {"y": 1}, "known": {"a": "1", "b": 2}}}),
            json!({"free": {"x": {"y": 1}, "known": {"a": "1"}}}),
            &["free.known.b"],
        );
    }

    #[test]
    fn any_additional_properties_are_kept_one_level_deep() {
        check(
            json!({"open": {"type": "object", "additionalProperties": true}}),
            json!({"open": {"a": 1, "b": {"c": 1}, "d": [{"e": 1}]}}),
            json!({"open": {"a": 1, "b": {}, "d": [{}]}}),
            &["open.b.c", "open.d[0].e"],
        );
    }

    #[test]
    fn embedded_resources_keep_their_metadata() {
        check(
            json!({"raw": {"type": "object", "x-kubernetes-embedded-resource": true,
                "properties": {"spec": {"type": "object"}}}}),
            json!({"raw": {"apiVersion": "v1", "kind": "K", "metadata": {"name": "n"}, "spec": {"a": 1}, "x": 1}}),
            json!({"raw": {"apiVersion": "v1", "kind": "K", "metadata": {"name": "n"}, "spec": {}}}),
            &["raw.spec.a", "raw.x"],
        );
    }
}
