//! `eq`, `lt` and their relatives: comparison across kinds.

use std::cmp::Ordering;
use std::sync::Arc;

use bellwether_go::print;
use bellwether_go::value::{Limit, Value};

use crate::call::Failure;

/// Structs with more parts than this are not compared.
const STRUCT_LIMIT: usize = 100_000;

#[derive(Clone, Copy, PartialEq, Eq)]
enum Basic {
    Bool,
    Complex,
    Int,
    Float,
    String,
    Uint,
    Other,
}

fn basic(value: &Value) -> Basic {
    match value {
        Value::Bool(_) => Basic::Bool,
        Value::Int(..) => Basic::Int,
        Value::Uint(..) => Basic::Uint,
        Value::Float(_) => Basic::Float,
        Value::Complex(..) => Basic::Complex,
        Value::String(_) => Basic::String,
        _ => Basic::Other,
    }
}

fn incompatible<T>(left: &Value, right: &Value) -> Result<T, Failure> {
    let (left, right) = (left.type_of(), right.type_of());
    Err(format!("incompatible types for comparison: {left} and {right}").into())
}

/// Whether the first equals any of the others.
pub(super) fn equal(arguments: &[Value]) -> Result<bool, Failure> {
    let Some((first, others)) = arguments.split_first().filter(|(_, rest)| !rest.is_empty()) else {
        return Err("missing argument for comparison".into());
    };
    for other in others {
        let truth = if basic(first) == Basic::Other && basic(other) == Basic::Other {
            equal_others(first, other)?
        } else if basic(first) == basic(other) {
            order(first, other) == Some(Ordering::Equal)
        } else {
            match (first, other) {
                (Value::Int(_, int), Value::Uint(_, uint))
                | (Value::Uint(_, uint), Value::Int(_, int)) => u64::try_from(*int) == Ok(*uint),
                _ if first.is_nil() || other.is_nil() => false,
                _ => return incompatible(first, other),
            }
        };
        if truth {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Lists, maps and structs can be compared with nil, and pointers with pointers.
fn equal_others(left: &Value, right: &Value) -> Result<bool, Failure> {
    if !left.is_nil() && !right.is_nil() && left.kind() != right.kind() {
        let (left_type, right_type) = (left.type_of(), right.type_of());
        let (left, right) = (as_string(left), print::text(right));
        return Err(
            format!("non-comparable types {left}: {left_type}, {right_type}: {right}").into(),
        );
    }
    if left.is_nil_of_any_type() || right.is_nil_of_any_type() {
        return Ok(left.is_nil_of_any_type() == right.is_nil_of_any_type());
    }
    if let (Value::Object(one), Value::Object(other)) = (left, right) {
        let mut limit = Limit(STRUCT_LIMIT);
        return Ok(Arc::ptr_eq(one, other) || left.deep_equal(right, &mut limit)?);
    }
    let shown = as_string(right);
    let found = right.type_of();
    Err(format!("non-comparable type {shown}: {found}").into())
}

/// A value as `%s` shows it.
fn as_string(value: &Value) -> String {
    let operands = std::slice::from_ref(value);
    let shown = print::sprintf(b"%s", operands, &mut Limit(STRUCT_LIMIT));
    shown.map_or_else(
        |error| error,
        |text| String::from_utf8_lossy(&text).into_owned(),
    )
}

/// The order of two values of one kind; floats may have none.
fn order(left: &Value, right: &Value) -> Option<Ordering> {
    match (left, right) {
        (Value::Bool(left), Value::Bool(right)) => Some(left.cmp(right)),
        (Value::Int(_, left), Value::Int(_, right)) => Some(left.cmp(right)),
        (Value::Uint(_, left), Value::Uint(_, right)) => Some(left.cmp(right)),
        (Value::Float(left), Value::Float(right)) => left.partial_cmp(right),
        (Value::String(left), Value::String(right)) => Some(left.cmp(right)),
        (Value::Complex(a, b), Value::Complex(c, d)) => {
            let is_equal = a.partial_cmp(c) == Some(Ordering::Equal)
                && b.partial_cmp(d) == Some(Ordering::Equal);
            is_equal.then_some(Ordering::Equal)
        }
        _ => None,
    }
}

pub(super) fn less(left: &Value, right: &Value) -> Result<bool, Failure> {
    if basic(left) == Basic::Other || basic(right) == Basic::Other {
        return Err("invalid type for comparison".into());
    }
    if basic(left) == basic(right) {
        if matches!(basic(left), Basic::Bool | Basic::Complex) {
            return Err("invalid type for comparison".into());
        }
        return Ok(order(left, right) == Some(Ordering::Less));
    }
    match (left, right) {
        (Value::Int(_, left), Value::Uint(_, right)) => Ok(i128::from(*left) < i128::from(*right)),
        (Value::Uint(_, left), Value::Int(_, right)) => Ok(i128::from(*left) < i128::from(*right)),
        _ => incompatible(left, right),
    }
}

pub(super) fn less_or_equal(arguments: &[Value]) -> Result<bool, Failure> {
    Ok(less(&arguments[0], &arguments[1])? || equal(arguments)?)
}
