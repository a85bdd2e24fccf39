//! Conversions between values: `int(x)`, `string(x)` and so on, and from and to Go's spelling of
//! numbers, which CEL's is.

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
        Value::String(text) => match parse_double(text) {
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
        Value::Double(value) => format_double(*value),
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

/// Go's `ParseFloat`: like Rust's, but underscores and `infinity` in any case are read too.
fn parse_double(text: &str) -> Option<f64> {
    let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text);
    if let Some(hex) = unsigned
        .strip_prefix("0x")
        .or_else(|| unsigned.strip_prefix("0X"))
    {
        let value = parse_hex_double(hex)?;
        return Some(if text.starts_with('-') { -value } else { value });
    }
    let value: f64 = text.parse().ok()?;
    // Go reports a number too large to represent; only a spelled-out infinity is one.
    let spelled_out = unsigned
        .chars()
        .next()
        .is_some_and(|first| first.is_ascii_alphabetic());
    (value.is_finite() || spelled_out).then_some(value)
}

/// `1.8p3` with hexadecimal digits; the exponent is required.
fn parse_hex_double(text: &str) -> Option<f64> {
    let (digits, exponent) = text.split_once(['p', 'P'])?;
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    if whole.is_empty() && fraction.is_empty() {
        return None;
    }
    let mut value = 0.0_f64;
    for digit in whole.chars() {
        value = value * 16.0 + f64::from(digit.to_digit(16)?);
    }
    let mut scale = 1.0 / 16.0;
    for digit in fraction.chars() {
        value += f64::from(digit.to_digit(16)?) * scale;
        scale /= 16.0;
    }
    let exponent: i32 = exponent.parse().ok()?;
    let value = value * 2.0_f64.powi(exponent);
    value.is_finite().then_some(value)
}

/// Go's `%g`: the shortest digits that read back, in scientific notation from a million up and
/// below a ten-thousandth.
pub(crate) fn format_double(value: f64) -> String {
    if value.is_nan() {
        return "NaN".to_owned();
    }
    if value.is_infinite() {
        return if value > 0.0 { "+Inf" } else { "-Inf" }.to_owned();
    }
    let scientific = format!("{value:e}");
    let Some((mantissa, exponent)) = scientific.split_once('e') else {
        return scientific;
    };
    let exponent: i32 = exponent.parse().unwrap_or(0);
    if !(-4..6).contains(&exponent) {
        let sign = if exponent < 0 { '-' } else { '+' };
        return format!("{mantissa}e{sign}{:02}", exponent.abs());
    }
    format!("{value}")
}
