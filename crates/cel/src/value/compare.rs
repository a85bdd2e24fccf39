//! CEL's `<` and its relatives.

use std::cmp::Ordering;

use super::Value;
use crate::error::EvalError;

/// The order of two values. `function` is named in the error if the left one has no order.
pub(crate) fn compare(
    function: &str,
    left: &Value<'_>,
    right: &Value<'_>,
) -> Result<Ordering, EvalError> {
    let ordering = match (left, right) {
        (Value::Int(left), Value::Int(right)) => Some(left.cmp(right)),
        (Value::Uint(left), Value::Uint(right)) => Some(left.cmp(right)),
        (Value::Int(left), Value::Uint(right)) => Some(compare_int_uint(*left, *right)),
        (Value::Uint(left), Value::Int(right)) => Some(compare_int_uint(*right, *left).reverse()),
        (Value::Double(left), Value::Double(right)) => left.partial_cmp(right),
        (Value::Int(left), Value::Double(right)) => compare_int_double(*left, *right),
        (Value::Double(left), Value::Int(right)) => {
            compare_int_double(*right, *left).map(Ordering::reverse)
        }
        (Value::Uint(left), Value::Double(right)) => compare_uint_double(*left, *right),
        (Value::Double(left), Value::Uint(right)) => {
            compare_uint_double(*right, *left).map(Ordering::reverse)
        }
        (Value::String(left), Value::String(right)) => Some((**left).cmp(&**right)),
        (Value::Bytes(left), Value::Bytes(right)) => Some(left.cmp(right)),
        (Value::Bool(left), Value::Bool(right)) => Some(left.cmp(right)),
        (Value::Timestamp(left), Value::Timestamp(right)) => Some(left.cmp(right)),
        (Value::Duration(left), Value::Duration(right)) => Some(left.cmp(right)),
        (
            Value::Bool(_)
            | Value::Int(_)
            | Value::Uint(_)
            | Value::Double(_)
            | Value::String(_)
            | Value::Bytes(_)
            | Value::Timestamp(_)
            | Value::Duration(_),
            _,
        ) => return Err(EvalError::no_such_overload()),
        _ => {
            return Err(EvalError::failed(format!("no such overload: {function}")));
        }
    };
    ordering.ok_or_else(|| EvalError::failed("NaN values cannot be ordered"))
}

pub(super) fn compare_int_uint(int: i64, uint: u64) -> Ordering {
    i128::from(int).cmp(&i128::from(uint))
}

/// Compares by value; like cel-go, an integer is rounded to a double where it is not one.
#[expect(clippy::cast_precision_loss)]
pub(super) fn compare_int_double(int: i64, double: f64) -> Option<Ordering> {
    (int as f64).partial_cmp(&double)
}

/// As [`compare_int_double`].
#[expect(clippy::cast_precision_loss)]
pub(super) fn compare_uint_double(uint: u64, double: f64) -> Option<Ordering> {
    (uint as f64).partial_cmp(&double)
}
