//! Comparing and printing JSON values as structured-merge-diff and Go do.

use std::cmp::Ordering;
use std::fmt::Write;

use bellwether_schema::text;
use serde_json::{Number, Value};

/// The name that Go's `encoding/json` uses for a JSON value in its error texts.
pub(crate) fn go_json_type(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "bool",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

/// Whether two values are the same, where `1` and `1.0` are.
pub(crate) fn equal(left: &Value, right: &Value) -> bool {
    match (left, right) {
        (Value::Number(left), Value::Number(right)) => compare_numbers(left, right).is_eq(),
        (Value::Array(left), Value::Array(right)) => {
            left.len() == right.len() && left.iter().zip(right).all(|(l, r)| equal(l, r))
        }
        (Value::Object(left), Value::Object(right)) => {
            left.len() == right.len()
                && left
                    .iter()
                    .all(|(name, l)| right.get(name).is_some_and(|r| equal(l, r)))
        }
        (left, right) => left == right,
    }
}

/// A total order over all values: numbers, strings, booleans, lists, objects, null.
pub(crate) fn compare(left: &Value, right: &Value) -> Ordering {
    match (left, right) {
        (Value::Number(left), Value::Number(right)) => compare_numbers(left, right),
        (Value::String(left), Value::String(right)) => left.cmp(right),
        (Value::Bool(left), Value::Bool(right)) => left.cmp(right),
        (Value::Array(left), Value::Array(right)) => {
            for (l, r) in left.iter().zip(right) {
                let order = compare(l, r);
                if order.is_ne() {
                    return order;
                }
            }
            left.len().cmp(&right.len())
        }
        (Value::Object(left), Value::Object(right)) => {
            let mut left: Vec<_> = left.iter().collect();
            let mut right: Vec<_> = right.iter().collect();
            left.sort_by_key(|(name, _)| *name);
            right.sort_by_key(|(name, _)| *name);
            for ((left_name, l), (right_name, r)) in left.iter().zip(&right) {
                let order = left_name.cmp(right_name).then_with(|| compare(l, r));
                if order.is_ne() {
                    return order;
                }
            }
            left.len().cmp(&right.len())
        }
        (left, right) => rank(left).cmp(&rank(right)),
    }
}

fn rank(value: &Value) -> u8 {
    match value {
        Value::Number(_) => 0,
        Value::String(_) => 1,
        Value::Bool(_) => 2,
        Value::Array(_) => 3,
        Value::Object(_) => 4,
        Value::Null => 5,
    }
}

fn compare_numbers(left: &Number, right: &Number) -> Ordering {
    if let (Some(left), Some(right)) = (left.as_i64(), right.as_i64()) {
        return left.cmp(&right);
    }
    if let (Some(left), Some(right)) = (left.as_u64(), right.as_u64()) {
        return left.cmp(&right);
    }
    // Every JSON number has a finite value as f64, so this order is total.
    let left = left.as_f64().unwrap_or_default();
    let right = right.as_f64().unwrap_or_default();
    left.partial_cmp(&right).unwrap_or(Ordering::Equal)
}

/// Writes a value as it appears in the path of a conflict (`"http"`, `80`, `true`).
pub(crate) fn write_readable(value: &Value, out: &mut String) {
    match value {
        Value::Null => out.push_str("null"),
        Value::Bool(flag) => out.push_str(if *flag { "true" } else { "false" }),
        Value::Number(number) => {
            let _ = write!(out, "{number}");
        }
        Value::String(text) => out.push_str(&text::quote(text)),
        Value::Array(items) => {
            out.push('[');
            for (index, item) in items.iter().enumerate() {
                if index > 0 {
                    out.push(',');
                }
                write_readable(item, out);
            }
            out.push(']');
        }
        Value::Object(members) => {
            for (name, member) in members {
                out.push_str(name);
                out.push('=');
                write_readable(member, out);
            }
        }
    }
}
