//! Package `math/bits`: bitwise operations on integers of any size, in two's complement; counting
//! looks at the magnitude.

use num_bigint::BigInt;

use super::argument::{Outcome, big, int, integer};
use super::{INT, function};
use crate::number::{INTEGER_BITS_LIMIT, Number};
use crate::value::{Failure, Host, Kind, Package, Value};

pub(super) static PACKAGE: Package = Package {
    path: "math/bits",
    functions: &[
        function("Lsh", &[INT, INT], Kind::INT, shift_left),
        function("Rsh", &[INT, INT], Kind::INT, shift_right),
        function("At", &[INT, INT], Kind::INT, at),
        function("Set", &[INT, INT, INT], Kind::INT, set),
        function("And", &[INT, INT], Kind::INT, and),
        function("Or", &[INT, INT], Kind::INT, or),
        function("Xor", &[INT, INT], Kind::INT, xor),
        function("Clear", &[INT, INT], Kind::INT, clear),
        function("OnesCount", &[INT], Kind::INT, ones_count),
        function("Len", &[INT], Kind::INT, length),
    ],
    source: "",
};

/// A bit position; positions beyond the size limit of integers are refused.
fn position(arguments: &[Value], index: usize) -> Result<u64, Failure> {
    let value = int(arguments, index)?;
    u64::try_from(value)
        .ok()
        .filter(|value| *value <= INTEGER_BITS_LIMIT)
        .ok_or_else(|| {
            Failure::error(format!(
                "cannot use {value} as bit position in argument {index}"
            ))
        })
}

#[expect(clippy::unnecessary_wraps, reason = "the last expression of a builtin")]
fn result(value: BigInt) -> Outcome {
    Ok(Value::Number(Number::from_big(value)))
}

fn shift_left(_: &mut dyn Host, arguments: &[Value]) -> Outcome {
    result(big(arguments, 0)? << position(arguments, 1)?)
}

fn shift_right(_: &mut dyn Host, arguments: &[Value]) -> Outcome {
    result(big(arguments, 0)? >> position(arguments, 1)?)
}

fn at(_: &mut dyn Host, arguments: &[Value]) -> Outcome {
    integer(i64::from(big(arguments, 0)?.bit(position(arguments, 1)?)))
}

fn set(_: &mut dyn Host, arguments: &[Value]) -> Outcome {
    let mut value = big(arguments, 0)?;
    value.set_bit(position(arguments, 1)?, int(arguments, 2)? & 1 == 1);
    result(value)
}

fn and(_: &mut dyn Host, arguments: &[Value]) -> Outcome {
    result(big(arguments, 0)? & big(arguments, 1)?)
}

fn or(_: &mut dyn Host, arguments: &[Value]) -> Outcome {
    result(big(arguments, 0)? | big(arguments, 1)?)
}

fn xor(_: &mut dyn Host, arguments: &[Value]) -> Outcome {
    result(big(arguments, 0)? ^ big(arguments, 1)?)
}

fn clear(_: &mut dyn Host, arguments: &[Value]) -> Outcome {
    result(big(arguments, 0)? & !big(arguments, 1)?)
}

fn ones_count(_: &mut dyn Host, arguments: &[Value]) -> Outcome {
    integer(big(arguments, 0)?.magnitude().count_ones())
}

fn length(_: &mut dyn Host, arguments: &[Value]) -> Outcome {
    integer(big(arguments, 0)?.magnitude().bits())
}
