//! The comparisons of filters: only values of the same kind, and only simple ones.

use std::cmp::Ordering;

use serde_json::Value;

use crate::error::Error;
use crate::node::Operator;

/// Whether a comparison holds.
pub(crate) fn holds(left: &Value, operator: &Operator, right: &Value) -> Result<bool, Error> {
    let order = compare(left, right)?;
    let needs_order = !matches!(operator, Operator::Equal | Operator::NotEqual);
    match operator {
        Operator::Unrecognized(text) => Err(Error::UnrecognizedOperator(text.clone())),
        _ if needs_order && left.is_boolean() => Err(Error::NotComparable),
        Operator::Less => Ok(order == Some(Ordering::Less)),
        Operator::LessOrEqual => Ok(matches!(order, Some(Ordering::Less | Ordering::Equal))),
        Operator::Equal => Ok(order == Some(Ordering::Equal)),
        Operator::NotEqual => Ok(order != Some(Ordering::Equal)),
        Operator::GreaterOrEqual => Ok(order != Some(Ordering::Less)),
        Operator::Greater => Ok(!matches!(order, Some(Ordering::Less | Ordering::Equal))),
    }
}

fn compare(left: &Value, right: &Value) -> Result<Option<Ordering>, Error> {
    let is_simple =
        |value: &Value| matches!(value, Value::Bool(_) | Value::Number(_) | Value::String(_));
    if !is_simple(left) || !is_simple(right) {
        return Err(Error::NotComparable);
    }
    match (left, right) {
        (Value::Bool(left), Value::Bool(right)) => Ok(Some(left.cmp(right))),
        (Value::String(left), Value::String(right)) => Ok(Some(left.cmp(right))),
        (Value::Number(left), Value::Number(right)) => match (left.as_i64(), right.as_i64()) {
            (Some(left), Some(right)) => Ok(Some(left.cmp(&right))),
            // Integers and floats are different kinds to Go.
            (None, None) => {
                let (left, right) = (left.as_f64(), right.as_f64());
                Ok(left
                    .zip(right)
                    .and_then(|(left, right)| left.partial_cmp(&right)))
            }
            _ => Err(Error::IncompatibleTypes),
        },
        _ => Err(Error::IncompatibleTypes),
    }
}
