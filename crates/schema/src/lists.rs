//! List types: the items of a set, and the keys of the items of a map, occur once.

use std::collections::HashMap;

use serde_json::{Map, Value};

use crate::field::{FieldError, FieldPath};
use crate::field_errors::FieldErrors;
use crate::model::{ListType, Schema};
use crate::text;

/// The duplicates in the sets and keyed lists of `value`.
pub fn check_list_types(value: &Value, schema: &Schema, path: &FieldPath<'_>) -> Vec<FieldError> {
    let mut errors = FieldErrors::new();
    check(value, schema, path, &mut errors);
    errors.into_vec()
}

fn check(value: &Value, schema: &Schema, path: &FieldPath<'_>, errors: &mut FieldErrors) {
    match value {
        Value::Object(fields) => {
            if let Some(additional) = schema
                .additional_properties
                .as_ref()
                .filter(|s| !s.is_unspecified())
            {
                for (name, field) in fields {
                    check(field, additional, &path.key(name), errors);
                }
            }
            for (name, field) in fields {
                if let Some(property) = schema.properties.get(name) {
                    check(field, property, &path.child(name), errors);
                }
            }
        }
        Value::Array(items) => {
            match &schema.list_type {
                ListType::Set => {
                    for index in repeated(items.iter().map(Key::of)) {
                        errors.push(FieldError::duplicate(
                            &path.index(index),
                            items[index].clone(),
                        ));
                    }
                }
                ListType::Map(keys) => check_keys(items, keys, path, errors),
                ListType::Atomic => {}
            }
            if let Some(schema) = &schema.items {
                for (index, item) in items.iter().enumerate() {
                    check(item, schema, &path.index(index), errors);
                }
            }
        }
        _ => {}
    }
}

fn check_keys(items: &[Value], keys: &[String], path: &FieldPath<'_>, errors: &mut FieldErrors) {
    let is_item = |item: &Value| item.is_object() || item.is_null();
    if let Some(index) = items.iter().position(|item| !is_item(item)) {
        let detail = "must be an object for an array of list-type map";
        errors.push(FieldError::invalid(
            &path.index(index),
            items[index].clone(),
            detail,
        ));
        return;
    }
    let identities: Vec<Map<String, Value>> = items
        .iter()
        .map(|item| {
            let value = |key: &String| Some((key.clone(), item.get(key)?.clone()));
            keys.iter().filter_map(value).collect()
        })
        .collect();
    // Compared as text, missing keys are equal to each other and to nothing else.
    let printed = identities.iter().map(|identity| {
        let values = identity
            .iter()
            .map(|(key, value)| format!("{key}\0{}", text::json(value)));
        Key::Compound(values.collect::<Vec<_>>().join("\0"))
    });
    for index in repeated(printed) {
        errors.push(FieldError::duplicate(
            &path.index(index),
            Value::Object(identities[index].clone()),
        ));
    }
}

/// What tells items apart.
#[derive(PartialEq, Eq, Hash)]
enum Key<'a> {
    Null,
    Bool(bool),
    String(&'a str),
    Compound(String),
}

impl<'a> Key<'a> {
    fn of(value: &'a Value) -> Self {
        match value {
            Value::Null => Key::Null,
            Value::Bool(flag) => Key::Bool(*flag),
            Value::String(text) => Key::String(text),
            // An integer and a float are different keys even if they print alike.
            Value::Number(number) if number.is_f64() => Key::Compound(format!("float {number}")),
            other => Key::Compound(text::json(other)),
        }
    }
}

/// The second occurrence of each key that occurs more than once.
fn repeated<'a>(keys: impl Iterator<Item = Key<'a>>) -> Vec<usize> {
    let mut counts: HashMap<Key<'a>, usize> = HashMap::new();
    let mut seconds = Vec::new();
    for (index, key) in keys.enumerate() {
        let count = counts.entry(key).or_default();
        *count += 1;
        if *count == 2 {
            seconds.push(index);
        }
    }
    seconds
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::parse;

    #[track_caller]
    fn found(field: Value, value: Value, expected: &[&str]) {
        let schema = parse(&json!({"type": "object", "properties": {"f": field}})).unwrap();
        let errors = check_list_types(&json!({"f": value}), &schema, &FieldPath::NIL);
        let texts: Vec<_> = errors.iter().map(ToString::to_string).collect();
        assert_eq!(texts, expected, "{value}");
    }

    #[test]
    fn items_of_sets_are_unique() {
        let set =
            json!({"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "string"}});
        found(set.clone(), json!(["a", "b"]), &[]);
        found(
            set.clone(),
            json!(["a", "b", "a", "a"]),
            &["f[2]: Duplicate value: \"a\""],
        );
        found(set.clone(), json!([1, 1.0, "1", true]), &[]);
        found(
            set,
            json!([{"a": 1, "b": 2}, {"b": 2, "a": 1}]),
            &["f[1]: Duplicate value: {\"a\":1,\"b\":2}"],
        );
    }

    #[test]
    fn keys_of_maps_are_unique() {
        let keyed = |keys: Value| {
            json!({"type": "array", "x-kubernetes-list-type": "map",
                "x-kubernetes-list-map-keys": keys, "items": {"type": "object"}})
        };
        found(
            keyed(json!(["k"])),
            json!([{"k": "a"}, {"k": "b"}, {}]),
            &[],
        );
        found(
            keyed(json!(["k"])),
            json!([{"k": "a", "v": 1}, {"k": "a", "v": 2}, {}, null]),
            &[
                "f[1]: Duplicate value: {\"k\":\"a\"}",
                "f[3]: Duplicate value: {}",
            ],
        );
        found(
            keyed(json!(["port", "protocol"])),
            json!([{"port": 1, "protocol": "TCP"}, {"port": 1, "protocol": "UDP"}, {"port": 1, "protocol": "TCP"}]),
            &["f[2]: Duplicate value: {\"port\":1,\"protocol\":\"TCP\"}"],
        );
        found(
            keyed(json!(["k"])),
            json!([{"k": "a"}, "x"]),
            &["f[1]: Invalid value: \"x\": must be an object for an array of list-type map"],
        );
    }

    #[test]
    fn nested_lists_are_found() {
        let set =
            json!({"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "string"}});
        found(
            json!({"type": "object", "additionalProperties": {"type": "array", "items": set}}),
            json!({"k": [["a"], ["a", "a"]]}),
            &["f[k][1][1]: Duplicate value: \"a\""],
        );
    }
}
