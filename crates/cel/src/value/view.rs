//! JSON seen through a declared type: text in a date format is a timestamp, and so on.

use std::sync::Arc;

use bellwether_go::base64;

use super::{List, Map, Text, Value};
use crate::error::EvalError;
use crate::schema::{DeclType, StringFormat};
use crate::time;

/// The value of `json` as declared. JSON that contradicts the declaration is an error, worded as
/// Kubernetes words it.
pub(crate) fn view<'a>(
    json: &'a serde_json::Value,
    decl: &'a DeclType,
) -> Result<Value<'a>, EvalError> {
    if json.is_null() {
        return if decl.is_nullable() {
            Ok(Value::Null)
        } else {
            Err(EvalError::failed(
                "invalid data, got null for schema with nullable=false",
            ))
        };
    }
    match decl {
        DeclType::IntOrString(_) => match json {
            serde_json::Value::String(text) => Ok(Value::String(Text::Borrowed(text))),
            serde_json::Value::Number(number) if number.is_i64() => Ok(Value::from_json(json)),
            _ => fail("invalid data, expected XIntOrString value to be either a string or integer"),
        },
        DeclType::Object(_) | DeclType::Map(_) => match json {
            serde_json::Value::Object(entries) => Ok(Value::Map(Map::Declared(entries, decl))),
            _ => fail("invalid data, expected a map for the provided schema with type=object"),
        },
        DeclType::List(list) => match json {
            serde_json::Value::Array(items) => Ok(Value::List(List::declared(items, list))),
            _ => fail("invalid data, expected an array for the provided schema with type=array"),
        },
        DeclType::String(string) => match json {
            serde_json::Value::String(text) => formatted(text, string.format),
            other => mismatch("string", other),
        },
        DeclType::Double(_) => match json {
            serde_json::Value::Number(number) => {
                Ok(Value::Double(number.as_f64().unwrap_or(f64::NAN)))
            }
            other => mismatch("float", other),
        },
        DeclType::Int(_) => match json {
            serde_json::Value::Number(number) if number.is_i64() => Ok(Value::from_json(json)),
            other => mismatch("int", other),
        },
        DeclType::Bool(_) => match json {
            serde_json::Value::Bool(value) => Ok(Value::Bool(*value)),
            other => mismatch("bool", other),
        },
        DeclType::Preserved => Ok(Value::Preserved(json)),
        DeclType::Dyn => Ok(Value::from_json(json)),
    }
}

fn fail<'a>(text: &'static str) -> Result<Value<'a>, EvalError> {
    Err(EvalError::failed(text))
}

fn mismatch<'a>(wanted: &str, json: &serde_json::Value) -> Result<Value<'a>, EvalError> {
    let found = match json {
        serde_json::Value::Null => "<nil>",
        serde_json::Value::Bool(_) => "bool",
        serde_json::Value::Number(number) if number.is_i64() => "int64",
        serde_json::Value::Number(_) => "float64",
        serde_json::Value::String(_) => "string",
        serde_json::Value::Array(_) => "[]interface {}",
        serde_json::Value::Object(_) => "map[string]interface {}",
    };
    Err(EvalError::failed(format!(
        "invalid data, expected {wanted}, got {found}"
    )))
}

fn formatted(text: &str, format: StringFormat) -> Result<Value<'_>, EvalError> {
    let invalid = |what: &str| EvalError::failed(format!("Invalid {what} {text}"));
    Ok(match format {
        StringFormat::Plain => Value::String(Text::Borrowed(text)),
        StringFormat::Duration => {
            Value::Duration(time::parse_open_api_duration(text).ok_or_else(|| invalid("duration"))?)
        }
        StringFormat::Date => Value::Timestamp(
            time::parse_date(text).ok_or_else(|| invalid("date formatted string"))?,
        ),
        StringFormat::DateTime => Value::Timestamp(
            time::parse_date_time(text).ok_or_else(|| invalid("date-time formatted string"))?,
        ),
        StringFormat::Byte => Value::Bytes(Arc::from(
            base64::decode(text.as_bytes()).map_err(|_| invalid("byte formatted string"))?,
        )),
    })
}
