//! RFC 7396 and RFC 6902 on plain values.

use std::sync::Arc;

use crate::builtins::encode_base64;
use crate::number::Number;
use crate::value::Value;

/// A value as it would be after it was written as JSON and read again: bytes are base64, and a number without a
/// fraction is an integer.
pub(super) fn rewritten(value: &Value) -> Value {
    match value {
        Value::Number(number) if !number.is_int() => {
            let read = Number::parse_literal(&number.to_string());
            read.map_or_else(|_| value.clone(), Value::Number)
        }
        Value::Bytes(bytes) => Value::string(encode_base64(bytes)),
        Value::List(items) => Value::list(items.iter().map(rewritten)),
        Value::Struct(fields) => {
            let fields = fields.iter();
            Value::structure(fields.map(|(label, field)| (label.clone(), rewritten(field))))
        }
        Value::Opaque(_) => Value::Null,
        other => other.clone(),
    }
}

/// Applies a merge patch: fields replace fields, `null` removes them.
pub(super) fn merge_patch(base: &Value, patch: &Value) -> Value {
    let Value::Struct(changes) = patch else {
        return patch.clone();
    };
    let mut fields: Vec<(Arc<str>, Value)> = match base {
        Value::Struct(fields) => fields.to_vec(),
        _ => Vec::new(),
    };
    for (label, change) in changes.iter() {
        let position = fields.iter().position(|(known, _)| known == label);
        match (change, position) {
            (Value::Null, Some(position)) => {
                fields.remove(position);
            }
            (Value::Null, None) => {}
            (change, Some(position)) => {
                fields[position].1 = merge_patch(&fields[position].1, change);
            }
            (change, None) => fields.push((label.clone(), merge_patch(&Value::Null, change))),
        }
    }
    Value::structure(fields)
}

/// Applies a list of operations in order.
pub(super) fn apply_operations(base: &Value, operations: &Value) -> Result<Value, String> {
    let Value::List(operations) = operations else {
        return Err("operations is not a list".to_owned());
    };
    operations.iter().try_fold(base.clone(), apply_operation)
}

fn apply_operation(document: Value, operation: &Value) -> Result<Value, String> {
    let text = |name: &str| match operation.field(name) {
        Some(Value::String(text)) => Ok(text.clone()),
        _ => Err(format!("operation without a string field {name:?}")),
    };
    let value = || {
        operation
            .field("value")
            .cloned()
            .ok_or_else(|| "operation without a value".to_owned())
    };
    let path = pointer(&text("path")?)?;
    match &*text("op")? {
        "add" => edit(&document, &path, &Edit::Add(value()?)),
        "replace" => edit(&document, &path, &Edit::Replace(value()?)),
        "remove" => edit(&document, &path, &Edit::Remove),
        "test" => {
            let found = find(&document, &path).ok_or_else(|| missing(&path))?;
            if *found == value()? {
                Ok(document)
            } else {
                Err(format!("testing value {} failed", show(&path)))
            }
        }
        "copy" => {
            let from = pointer(&text("from")?)?;
            let copied = find(&document, &from)
                .ok_or_else(|| missing(&from))?
                .clone();
            edit(&document, &path, &Edit::Add(copied))
        }
        "move" => {
            let from = pointer(&text("from")?)?;
            let moved = find(&document, &from)
                .ok_or_else(|| missing(&from))?
                .clone();
            let without = edit(&document, &from, &Edit::Remove)?;
            edit(&without, &path, &Edit::Add(moved))
        }
        other => Err(format!("unexpected kind: {other}")),
    }
}

/// The elements of a JSON pointer.
fn pointer(text: &str) -> Result<Vec<String>, String> {
    let Some(body) = text.strip_prefix('/') else {
        return if text.is_empty() {
            Ok(Vec::new())
        } else {
            Err(format!("invalid path {text:?}"))
        };
    };
    Ok(body
        .split('/')
        .map(|part| part.replace("~1", "/").replace("~0", "~"))
        .collect())
}

fn show(path: &[String]) -> String {
    format!("/{}", path.join("/"))
}

fn missing(path: &[String]) -> String {
    format!("{}: missing path", show(path))
}

fn find<'a>(document: &'a Value, path: &[String]) -> Option<&'a Value> {
    path.iter().try_fold(document, |value, part| match value {
        Value::List(items) => items.get(part.parse::<usize>().ok()?),
        other => other.field(part),
    })
}

enum Edit {
    Add(Value),
    Replace(Value),
    Remove,
}

fn edit(document: &Value, path: &[String], change: &Edit) -> Result<Value, String> {
    let Some((first, rest)) = path.split_first() else {
        return match change {
            Edit::Add(value) | Edit::Replace(value) => Ok(value.clone()),
            Edit::Remove => Ok(Value::Null),
        };
    };
    match document {
        Value::Struct(fields) => {
            let mut fields = fields.to_vec();
            let position = fields.iter().position(|(label, _)| **label == **first);
            match (position, rest.is_empty(), change) {
                (Some(position), true, Edit::Remove) => {
                    fields.remove(position);
                }
                (Some(position), ..) => {
                    fields[position].1 = edit(&fields[position].1, rest, change)?;
                }
                (None, true, Edit::Add(value)) => {
                    fields.push((Arc::from(first.as_str()), value.clone()));
                }
                (None, ..) => return Err(missing(path)),
            }
            Ok(Value::structure(fields))
        }
        Value::List(items) => edit_list(items, first, rest, change),
        _ => Err(missing(path)),
    }
}

fn edit_list(
    items: &[Value],
    first: &str,
    rest: &[String],
    change: &Edit,
) -> Result<Value, String> {
    let mut items = items.to_vec();
    let position = match first {
        "-" => Some(items.len()),
        digits => digits.parse::<usize>().ok(),
    };
    let out_of_range = || format!("unable to access invalid index: {first}");
    let position = position
        .filter(|position| *position <= items.len())
        .ok_or_else(out_of_range)?;
    match (rest.is_empty(), change) {
        (true, Edit::Add(value)) => items.insert(position, value.clone()),
        _ if position == items.len() => return Err(out_of_range()),
        (true, Edit::Remove) => {
            items.remove(position);
        }
        _ => items[position] = edit(&items[position], rest, change)?,
    }
    Ok(Value::list(items))
}
