//! CEL's `==`.

use std::cmp::Ordering;

use super::compare::{compare_int_double, compare_int_uint, compare_uint_double};
use super::{Map, Value};
use crate::error::EvalError;

/// Steps comparisons may take. Values can share parts, so that a few operations build what takes
/// exponentially many steps to compare; no document needs as many.
pub(crate) const MAX_STEPS: u32 = 5_000_000;

/// Whether two values are equal. Values of different types are unequal, except numbers, which
/// are compared by value.
pub(crate) fn equal(left: &Value<'_>, right: &Value<'_>) -> Result<bool, EvalError> {
    let mut steps = MAX_STEPS;
    equal_within(left, right, &mut steps)
}

/// Whether two values are equal, giving up when `steps` are used up.
pub(crate) fn equal_within(
    left: &Value<'_>,
    right: &Value<'_>,
    steps: &mut u32,
) -> Result<bool, EvalError> {
    *steps = steps.checked_sub(1).ok_or(EvalError::CallLimitExceeded)?;
    Ok(match (left, right) {
        (Value::Null, Value::Null) | (Value::Optional(None), Value::Optional(None)) => true,
        (Value::Null, _) | (_, Value::Null) => false,
        (Value::String(left), Value::String(right)) => **left == **right,
        (Value::Int(left), Value::Int(right)) => left == right,
        (Value::Bool(left), Value::Bool(right)) => left == right,
        (Value::Uint(left), Value::Uint(right)) => left == right,
        (Value::Int(int), Value::Uint(uint)) | (Value::Uint(uint), Value::Int(int)) => {
            compare_int_uint(*int, *uint) == Ordering::Equal
        }
        #[expect(clippy::float_cmp, reason = "this is the language's own equality")]
        (Value::Double(left), Value::Double(right)) => left == right,
        (Value::Int(int), Value::Double(double)) | (Value::Double(double), Value::Int(int)) => {
            compare_int_double(*int, *double) == Some(Ordering::Equal)
        }
        (Value::Uint(uint), Value::Double(double)) | (Value::Double(double), Value::Uint(uint)) => {
            compare_uint_double(*uint, *double) == Some(Ordering::Equal)
        }
        (Value::Bytes(left), Value::Bytes(right)) => left == right,
        (Value::List(left), Value::List(right)) => return left.equal(right, steps),
        (Value::Map(left), Value::Map(right)) => return left.equal(right, steps),
        // Kubernetes refuses to compare a typed object with anything else, and decisions of an authorizer with anything.
        (Value::Map(Map::Declared(..)) | Value::Authorization(_), _) => {
            return Err(EvalError::no_such_overload());
        }
        (Value::Timestamp(left), Value::Timestamp(right)) => left == right,
        (Value::Duration(left), Value::Duration(right)) => left == right,
        (Value::Type(left), Value::Type(right)) => left.runtime_name() == right.runtime_name(),
        (Value::Optional(Some(left)), Value::Optional(Some(right))) => {
            return equal_within(left, right, steps);
        }
        (Value::Quantity(left), Value::Quantity(right)) => left == right,
        (Value::Url(left), Value::Url(right)) => left == right,
        (Value::Ip(left), Value::Ip(right)) => left == right,
        (Value::Cidr(left), Value::Cidr(right)) => left == right,
        (Value::Semver(left), Value::Semver(right)) => left.compare(right) == Ordering::Equal,
        (Value::Format(left), Value::Format(right)) => std::ptr::eq(*left, *right),
        (Value::Preserved(left), Value::Preserved(right)) => left == right,
        _ => false,
    })
}
