//! Conversions between values: `int(x)`, `string(x)` and so on, and from and to Go's spelling of
//! numbers, which CEL's is.

use bellwether_go::float::shortest;
use bellwether_go::number::parse_float;

use super::{Text, Value};
use crate::error::EvalError;

type Converted<'a> = Result<Value<'a>, EvalError>;

fn conversion_error<'a>(value: &Value<'_>, to: &str) -> Converted<'a> {
    Err(EvalError::failed(format!(
        "type conversion error from '{}' to '{to}'",
        shown_type(value)
    )))
}

/// The name of a value's type as conversion errors spell it.
fn shown_type(value: &Value<'_>) -> &'static str {
    value.type_name()
}

/// `int(value)`.
pub(crate) fn to_int<'a>(value: &Value<'a>) -> Converted<'a> {
    let overflow = || EvalError::failed("integer overflow");
    Ok(Value::Int(match value {
        Value::Int(value) => *value,
        Value::Uint(value) => i64::try_from(*value).map_err(|_| overflow())?,
        Value::Double(value) => {
            #[expect(clippy::cast_precision_loss, reason = "the bounds are powers of two")]
            let inside = *value > i64::MIN as f64 && *value < i64::MAX as f64;
            if !inside {
                return Err(overflow());
            }
            #[expect(clippy::cast_possible_truncation, reason = "checked above")]
            let truncated = *value as i64;
            truncated
        }
        Value::String(text) => match parse_int(text) {
            Some(value) => value,
            None => return conversion_error(value, "int"),
        },
        Value::Timestamp(timestamp) => timestamp.seconds(),
        Value::Duration(duration) => duration.nanoseconds(),
        other => return conversion_error(other, "int"),
    }))
}

/// `uint(value)`.
pub(crate) fn to_uint<'a>(value: &Value<'a>) -> Converted<'a> {
    let overflow = || EvalError::failed("unsigned integer overflow");
    Ok(Value::Uint(match value {
        Value::Uint(value) => *value,
        Value::Int(value) => u64::try_from(*value).map_err(|_| overflow())?,
        Value::Double(value) => {
            #[expect(clippy::cast_precision_loss, reason = "rounds up to 2^64, the bound")]
            let inside = *value >= 0.0 && *value < u64::MAX as f64;
            if !inside {
                return Err(overflow());
            }
            #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
            let truncated = *value as u64;
            truncated
        }
        Value::String(text) if !text.starts_with('+') => match text.parse() {
            Ok(value) => value,
            Err(_) => return conversion_error(value, "uint"),
        },
        other => return conversion_error(other, "uint"),
    }))
}

/// `double(value)`.
pub(crate) fn to_double<'a>(value: &Value<'a>) -> Converted<'a> {
    #[expect(clippy::cast_precision_loss, reason = "the nearest double is meant")]
    Ok(Value::Double(match value {
        Value::Double(value) => *value,
        Value::Int(value) => *value as f64,
        Value::Uint(value) => *value as f64,
        Value::String(text) => match parse_float(text) {
            Some(value) => value,
            None => return conversion_error(value, "double"),
        },
        other => return conversion_error(other, "double"),
    }))
}

/// `bool(value)`.
pub(crate) fn to_bool<'a>(value: &Value<'a>) -> Converted<'a> {
    Ok(Value::Bool(match value {
        Value::Bool(value) => *value,
        Value::String(text) => match &**text {
            "1" | "t" | "T" | "TRUE" | "true" | "True" => true,
            "0" | "f" | "F" | "FALSE" | "false" | "False" => false,
            _ => return conversion_error(value, "bool"),
        },
        other => return conversion_error(other, "bool"),
    }))
}

/// `string(value)`.
pub(crate) fn to_string<'a>(value: &Value<'a>) -> Converted<'a> {
    Ok(Value::text(match value {
        Value::String(text) => return Ok(Value::String(text.clone())),
        Value::Bool(value) => value.to_string(),
        Value::Int(value) => value.to_string(),
        Value::Uint(value) => value.to_string(),
        Value::Double(value) => shortest(*value),
        Value::Bytes(bytes) => match std::str::from_utf8(bytes) {
            Ok(text) => text.to_owned(),
            Err(_) => {
                return Err(EvalError::failed(
                    "invalid UTF-8 in bytes, cannot convert to string",
                ));
            }
        },
        Value::Timestamp(timestamp) => timestamp.to_string(),
        Value::Duration(duration) => duration.to_string(),
        Value::Null => return Ok(Value::String(Text::Borrowed("null"))),
        other => return conversion_error(other, "string"),
    }))
}

/// Go's `ParseInt(text, 10, 64)`.
fn parse_int(text: &str) -> Option<i64> {
    text.parse().ok()
}
