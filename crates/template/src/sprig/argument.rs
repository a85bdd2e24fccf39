//! Arguments of functions as Rust values. The engine has checked their types already, so that a
//! value of another type cannot occur; it reads as zero.

use bellwether_go::number;
use bellwether_go::print;
use bellwether_go::value::{Map, Text, Type, Value};

use crate::builtin::metered;
use crate::call::{Call, Failure};

/// The bytes of a string.
pub(crate) fn bytes(arguments: &[Value], index: usize) -> &[u8] {
    match arguments.get(index) {
        Some(Value::String(text)) => text.as_bytes(),
        _ => b"",
    }
}

/// A string as UTF-8, with replacement characters for what is not.
pub(crate) fn string(arguments: &[Value], index: usize) -> std::borrow::Cow<'_, str> {
    String::from_utf8_lossy(bytes(arguments, index))
}

/// An integer.
pub(crate) fn int(arguments: &[Value], index: usize) -> i64 {
    match arguments.get(index) {
        Some(Value::Int(_, value)) => *value,
        _ => 0,
    }
}

/// A value of any type.
pub(crate) fn any(arguments: &[Value], index: usize) -> &Value {
    arguments.get(index).unwrap_or(&Value::Nil)
}

/// A map.
pub(crate) fn map(arguments: &[Value], index: usize) -> Map {
    match arguments.get(index) {
        Some(Value::Map(map)) => map.clone(),
        _ => Map::nil(&Type::Interface),
    }
}

/// The text of a value: strings and bytes as they are, others as they print.
pub(crate) fn text_of(call: &mut Call<'_>, value: &Value) -> Result<Text, Failure> {
    match value {
        Value::String(text) => Ok(text.clone()),
        value => {
            if let Value::List(list) = value
                && let Some(bytes) = list.as_bytes()
            {
                return Ok(Text::from(&*bytes));
            }
            let mut out = Vec::new();
            metered(print::append(&mut out, value, call))?;
            Ok(Text::from(out))
        }
    }
}

/// The texts of a list, without nil; any other value is a list of one.
pub(crate) fn texts_of(call: &mut Call<'_>, value: &Value) -> Result<Vec<Text>, Failure> {
    match value {
        Value::Invalid | Value::Nil => Ok(Vec::new()),
        Value::List(list) => {
            call.steps(list.len())?;
            let present = list.iter().filter(|item| !item.is_nil());
            present.map(|item| text_of(call, item)).collect()
        }
        other => Ok(vec![text_of(call, other)?]),
    }
}

/// Any value as an integer: what cannot be one is 0.
pub(crate) fn to_int(value: &Value) -> i64 {
    match value {
        Value::Int(bellwether_go::value::IntKind::Duration, _) => 0,
        Value::Int(_, value) => *value,
        #[expect(clippy::cast_possible_wrap, reason = "as in Go")]
        Value::Uint(_, value) => *value as i64,
        Value::Float(value) => float_to_int(*value),
        Value::Bool(value) => i64::from(*value),
        Value::String(text) => {
            let text = text.to_str();
            number::parse_int(without_zero_decimals(&text)).unwrap_or(0)
        }
        _ => 0,
    }
}

/// `12.00` is an integer, `12.50` is none.
fn without_zero_decimals(text: &str) -> &str {
    match text.rsplit_once('.') {
        Some((whole, decimals)) if decimals.bytes().all(|byte| byte == b'0') => {
            if decimals.is_empty() { text } else { whole }
        }
        _ => text,
    }
}

/// Out of range is the smallest integer, as on amd64.
#[expect(clippy::cast_possible_truncation, reason = "within range")]
pub(crate) fn float_to_int(value: f64) -> i64 {
    const LIMIT: f64 = 9_223_372_036_854_775_808.0;
    if (-LIMIT..LIMIT).contains(&value) {
        value as i64
    } else {
        i64::MIN
    }
}

/// Any value as a float: what cannot be one is 0.
#[expect(clippy::cast_precision_loss, reason = "as in Go")]
pub(crate) fn to_float(value: &Value) -> f64 {
    match value {
        Value::Int(bellwether_go::value::IntKind::Duration, _) => 0.0,
        Value::Int(_, value) => *value as f64,
        Value::Uint(_, value) => *value as f64,
        Value::Float(value) => *value,
        Value::Bool(value) => f64::from(u8::from(*value)),
        Value::String(text) => number::parse_float(&text.to_str()).unwrap_or(0.0),
        _ => 0.0,
    }
}

/// Whether sprig takes a value for empty: like not true, but for structs, which are never empty.
pub(crate) fn is_empty(value: &Value) -> bool {
    !value.is_true()
}
