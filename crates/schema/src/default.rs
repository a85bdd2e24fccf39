//! Defaulting: absent fields get the default of their schema, and nulls that stand for absence go.

use serde_json::Value;

use crate::model::Schema;

/// Removes nulls that say nothing: of fields that are neither nullable nor have a default.
///
/// A null in place of a field with a default stays, for [`apply_defaults`] to replace.
pub fn drop_nulls(value: &mut Value, schema: &Schema) {
    match value {
        Value::Object(fields) => fields.retain(|name, field| {
            let Some(schema) = schema_of_field(schema, name) else {
                return true;
            };
            if field.is_null() {
                return schema.nullable || schema.default.is_some();
            }
            drop_nulls(field, schema);
            true
        }),
        Value::Array(items) => {
            if let Some(schema) = &schema.items {
                for item in items {
                    drop_nulls(item, schema);
                }
            }
        }
        _ => {}
    }
}

/// What defaults may add to one object, in bytes of memory. A definition can have a default for every
/// item of a list, so that a small request would become an object of gigabytes.
const MOST: usize = 32 * 1024 * 1024;

/// The defaults of an object would take more memory than any object that can be stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the defaults of the object take more than {} MiB", MOST / 1024 / 1024)]
pub struct TooManyDefaults;

/// Fills in defaults, everywhere in `value`, also inside defaults themselves.
///
/// If there are too many, some have been filled in.
pub fn apply_defaults(value: &mut Value, schema: &Schema) -> Result<(), TooManyDefaults> {
    let mut room = MOST;
    fill(value, schema, &mut room)
}

/// A copy of a default, if there is room for it.
fn copy(default: &Value, room: &mut usize) -> Result<Value, TooManyDefaults> {
    *room = room.checked_sub(weight(default)).ok_or(TooManyDefaults)?;
    Ok(default.clone())
}

/// What a map that is not empty takes: it has room for some fields.
const MAP: usize = 600;

/// About how many bytes of memory a value takes.
fn weight(value: &Value) -> usize {
    /// A value with the name of its field.
    const FIELD: usize = 64;
    match value {
        Value::String(text) => FIELD + text.len(),
        Value::Array(items) => FIELD + items.iter().map(weight).sum::<usize>(),
        Value::Object(fields) if !fields.is_empty() => {
            let fields = fields.iter();
            MAP + fields
                .map(|(name, field)| name.len() + weight(field))
                .sum::<usize>()
        }
        _ => FIELD,
    }
}

fn fill(value: &mut Value, schema: &Schema, room: &mut usize) -> Result<(), TooManyDefaults> {
    match value {
        Value::Object(fields) => {
            for (name, property) in &schema.properties {
                let Some(default) = &property.default else {
                    continue;
                };
                match fields.get_mut(name) {
                    None => {
                        // The first field makes a map of what was none.
                        let first = if fields.is_empty() { MAP } else { 0 };
                        *room = room.checked_sub(first).ok_or(TooManyDefaults)?;
                        fields.insert(name.clone(), copy(default, room)?);
                    }
                    Some(field) => replace_null(field, property, room)?,
                }
            }
            for (name, field) in fields.iter_mut() {
                if let Some(property) = schema.properties.get(name) {
                    fill(field, property, room)?;
                } else if let Some(additional) = &schema.additional_properties {
                    replace_null(field, additional, room)?;
                    fill(field, additional, room)?;
                }
            }
        }
        Value::Array(items) => {
            if let Some(schema) = &schema.items {
                for item in items {
                    replace_null(item, schema, room)?;
                    fill(item, schema, room)?;
                }
            }
        }
        _ => {}
    }
    Ok(())
}

fn replace_null(
    value: &mut Value,
    schema: &Schema,
    room: &mut usize,
) -> Result<(), TooManyDefaults> {
    if let (true, false, Some(default)) = (value.is_null(), schema.nullable, &schema.default) {
        *value = copy(default, room)?;
    }
    Ok(())
}

fn schema_of_field<'a>(schema: &'a Schema, name: &str) -> Option<&'a Schema> {
    let additional = || {
        schema
            .additional_properties
            .as_ref()
            .filter(|s| !s.is_unspecified())
    };
    schema
        .properties
        .get(name)
        .or_else(additional)
        .map(AsRef::as_ref)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::parse;

    #[track_caller]
    fn check(properties: Value, object: Value, expected: Value) {
        let schema = parse(&json!({"type": "object", "properties": properties})).unwrap();
        let mut defaulted = object.clone();
        drop_nulls(&mut defaulted, &schema);
        apply_defaults(&mut defaulted, &schema).unwrap();
        assert_eq!(defaulted, expected, "{object}");
    }

    #[test]
    fn absent_fields_get_their_default() {
        let properties = json!({
            "a": {"type": "integer", "default": 1},
            "b": {"type": "object", "default": {}, "properties": {"c": {"type": "string", "default": "x"}}},
            "d": {"type": "object", "properties": {"e": {"type": "string", "default": "x"}}},
        });
        check(
            properties.clone(),
            json!({}),
            json!({"a": 1, "b": {"c": "x"}}),
        );
        check(
            properties,
            json!({"a": 2, "b": {"c": ""}, "d": {}}),
            json!({"a": 2, "b": {"c": ""}, "d": {"e": "x"}}),
        );
    }

    #[test]
    fn lists_and_maps_are_defaulted_inside() {
        let item =
            json!({"type": "object", "properties": {"p": {"type": "string", "default": "TCP"}}});
        check(
            json!({
                "list": {"type": "array", "items": item},
                "map": {"type": "object", "additionalProperties": item},
            }),
            json!({"list": [{}, {"p": "UDP"}], "map": {"k": {}}}),
            json!({"list": [{"p": "TCP"}, {"p": "UDP"}], "map": {"k": {"p": "TCP"}}}),
        );
    }

    #[test]
    fn defaults_that_expand_are_bounded() {
        let large = "x".repeat(1_000);
        let schema = parse(&json!({"type": "object", "properties": {"list": {
            "type": "array", "items": {
                "type": "object", "properties": {"f": {"type": "string", "default": large}},
            },
        }}}))
        .unwrap();
        let fill = |count: usize| {
            let mut object = json!({"list": vec![json!({}); count]});
            apply_defaults(&mut object, &schema)
        };
        assert_eq!(fill(1_000), Ok(()));
        assert_eq!(fill(60_000), Err(TooManyDefaults));
    }

    #[test]
    fn null_is_a_value_only_where_the_schema_says_so() {
        check(
            json!({
                "plain": {"type": "string"},
                "defaulted": {"type": "string", "default": "x"},
                "nullable": {"type": "string", "nullable": true},
                "both": {"type": "string", "nullable": true, "default": "x"},
                "map": {"type": "object", "additionalProperties": {"type": "string"}},
                "open": {"type": "object", "additionalProperties": true},
                "list": {"type": "array", "items": {"type": "string"}},
            }),
            json!({
                "plain": null, "defaulted": null, "nullable": null, "both": null,
                "map": {"k": null}, "open": {"k": null}, "list": [null],
            }),
            json!({
                "defaulted": "x", "nullable": null, "both": null,
                "map": {}, "open": {"k": null}, "list": [null],
            }),
        );
    }
}
