//! Reading arguments and making results, shared by the packages.
//!
//! The evaluator checks kinds before a call, so a mismatch here is a defect of a table; it still
//! ends in an error and not in a panic.

use std::sync::Arc;

use num_bigint::BigInt;

use crate::number::{Number, NumberError};
use crate::value::{Failure, Host, Value};

/// What a builtin returns.
pub(super) type Outcome = Result<Value, Failure>;

fn mismatch(position: usize, value: &Value, wanted: &str) -> Failure {
    let kind = value.kind();
    Failure::error(format!(
        "cannot use argument {position} (type {kind}) as {wanted}"
    ))
}

/// The argument at a position.
pub(super) fn any(arguments: &[Value], position: usize) -> Result<&Value, Failure> {
    arguments
        .get(position)
        .ok_or_else(|| Failure::error(format!("missing argument {position}")))
}

/// A string argument.
pub(super) fn string(arguments: &[Value], position: usize) -> Result<&str, Failure> {
    match any(arguments, position)? {
        Value::String(text) => Ok(text),
        other => Err(mismatch(position, other, "string")),
    }
}

/// A bytes argument; a string counts as its UTF-8 bytes.
pub(super) fn bytes(arguments: &[Value], position: usize) -> Result<&[u8], Failure> {
    match any(arguments, position)? {
        Value::String(text) => Ok(text.as_bytes()),
        Value::Bytes(bytes) => Ok(bytes),
        other => Err(mismatch(position, other, "bytes")),
    }
}

/// A bytes argument that has to be text.
pub(super) fn text(arguments: &[Value], position: usize) -> Result<&str, Failure> {
    std::str::from_utf8(bytes(arguments, position)?)
        .map_err(|_| Failure::error("invalid UTF-8 in argument"))
}

/// A bool argument.
pub(super) fn boolean(arguments: &[Value], position: usize) -> Result<bool, Failure> {
    match any(arguments, position)? {
        Value::Bool(value) => Ok(*value),
        other => Err(mismatch(position, other, "bool")),
    }
}

/// A number argument.
pub(super) fn number(arguments: &[Value], position: usize) -> Result<&Number, Failure> {
    match any(arguments, position)? {
        Value::Number(number) => Ok(number),
        other => Err(mismatch(position, other, "number")),
    }
}

/// An integer argument that fits a machine word.
pub(super) fn int(arguments: &[Value], position: usize) -> Result<i64, Failure> {
    let number = number(arguments, position)?;
    number.to_i64().ok_or_else(|| {
        Failure::error(format!(
            "int {number} overflows int64 in argument {position}"
        ))
    })
}

/// An integer argument of any size.
pub(super) fn big(arguments: &[Value], position: usize) -> Result<BigInt, Failure> {
    let number = number(arguments, position)?;
    number
        .to_big()
        .ok_or_else(|| mismatch(position, &arguments[position], "int"))
}

/// A binary float argument.
pub(super) fn float(arguments: &[Value], position: usize) -> Result<f64, Failure> {
    number(arguments, position).map(Number::to_f64)
}

/// The elements of a list argument, opaque where they are not concrete.
pub(super) fn elements(
    host: &mut dyn Host,
    arguments: &[Value],
    position: usize,
) -> Result<Vec<Value>, Failure> {
    let argument = any(arguments, position)?;
    if let Some(items) = list_elements(host, argument) {
        return Ok(items);
    }
    if matches!(host.concrete(argument), Err(Failure::Incomplete(_))) {
        let message = format!("non-concrete list for argument {position}");
        return Err(Failure::Incomplete(message));
    }
    Err(mismatch(position, argument, "list"))
}

/// The elements of any list value; `None` if it is not a list.
pub(super) fn list_elements(host: &mut dyn Host, value: &Value) -> Option<Vec<Value>> {
    match value {
        Value::List(items) => Some(items.to_vec()),
        Value::Opaque(_) => host.elements(value),
        _ => None,
    }
}

/// The concrete strings of a list argument.
pub(super) fn strings(
    host: &mut dyn Host,
    arguments: &[Value],
    position: usize,
) -> Result<Vec<Arc<str>>, Failure> {
    let mut result = Vec::new();
    for (index, item) in elements(host, arguments, position)?.iter().enumerate() {
        match host.concrete(item)? {
            Value::String(text) => result.push(text),
            other => return Err(wrong_element(host, index, position, &other, "string")),
        }
    }
    Ok(result)
}

/// The concrete numbers of a list argument.
pub(super) fn numbers(
    host: &mut dyn Host,
    arguments: &[Value],
    position: usize,
) -> Result<Vec<Number>, Failure> {
    let mut result = Vec::new();
    for (index, item) in elements(host, arguments, position)?.iter().enumerate() {
        match host.concrete(item)? {
            Value::Number(number) => result.push(number),
            other => return Err(wrong_element(host, index, position, &other, "number")),
        }
    }
    Ok(result)
}

fn wrong_element(
    host: &mut dyn Host,
    index: usize,
    position: usize,
    value: &Value,
    wanted: &str,
) -> Failure {
    let (shown, kind) = (host.show(value), value.kind());
    Failure::error(format!(
        "invalid list element {index} in argument {position} to call: \
         cannot use value {shown} ({kind}) as {wanted}"
    ))
}

/// Fails when a result would be larger than the evaluation allows.
pub(super) fn check_size(host: &dyn Host, size: Option<usize>) -> Result<(), Failure> {
    let limit = host.output_limit();
    match size {
        Some(size) if size <= limit => Ok(()),
        _ => Err(Failure::error(format!(
            "evaluation limit exceeded: builtin output of more than {limit}"
        ))),
    }
}

/// Fails when a list would be longer than the evaluation allows.
pub(super) fn check_length(host: &dyn Host, length: Option<usize>) -> Result<(), Failure> {
    check_size(host, length.and_then(|length| length.checked_mul(ELEMENT)))
}

/// Bytes that an element of a list counts for; the limit is one of bytes.
const ELEMENT: usize = 8;

/// A list of strings.
pub(super) fn string_list<T: Into<Arc<str>>>(items: impl IntoIterator<Item = T>) -> Value {
    Value::list(items.into_iter().map(|item| Value::String(item.into())))
}

/// An integer result.
#[expect(clippy::unnecessary_wraps, reason = "the last expression of a builtin")]
pub(super) fn integer(value: impl Into<Number>) -> Outcome {
    Ok(Value::Number(value.into()))
}

/// A decimal result; the reference makes it an int when its value is integral.
pub(super) fn decimal(result: Result<Number, NumberError>) -> Outcome {
    let number = result.map_err(arithmetic)?;
    match number.to_big() {
        Some(integer) => Ok(Value::Number(Number::from_big(integer))),
        None => Ok(Value::Number(number)),
    }
}

/// A binary float result, always of kind float.
pub(super) fn from_float(value: f64) -> Outcome {
    match Number::from_f64(value) {
        Some(number) => Ok(Value::Number(number)),
        None => Err(Failure::error(format!(
            "result {value} is not a finite number"
        ))),
    }
}

/// An arithmetic failure, without the prefix that belongs to operators.
pub(super) fn arithmetic(error: NumberError) -> Failure {
    match error {
        NumberError::Arithmetic(message) => Failure::error(message),
        other => Failure::error(other.to_string()),
    }
}

/// A string result.
#[expect(clippy::unnecessary_wraps, reason = "the last expression of a builtin")]
pub(super) fn text_result(text: impl Into<Arc<str>>) -> Outcome {
    Ok(Value::String(text.into()))
}

/// A bytes result.
#[expect(clippy::unnecessary_wraps, reason = "the last expression of a builtin")]
pub(super) fn bytes_result(bytes: impl Into<Arc<[u8]>>) -> Outcome {
    Ok(Value::Bytes(bytes.into()))
}

/// A result of `true`, or a final error: the shape of validators that explain themselves.
pub(super) fn valid<T>(result: Result<T, String>) -> Outcome {
    result.map(|_| Value::Bool(true)).map_err(Failure::Error)
}
