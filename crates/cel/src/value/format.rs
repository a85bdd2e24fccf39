//! Values as text: for people ([`Display`](std::fmt::Display)), for messages, and as JSON.

use std::fmt;

pub(crate) use bellwether_go::quote::quote;

use bellwether_go::float::shortest;

use super::Value;

/// A value as error messages quote it: text without quotes.
pub(crate) fn display(value: &Value<'_>) -> String {
    match value {
        Value::String(text) => text.to_string(),
        Value::Uint(value) => value.to_string(),
        other => other.to_string(),
    }
}

impl fmt::Display for Value<'_> {
    /// As an expression that yields the value, where there is one: `"text"`, `[1, 2u]`,
    /// `duration("1s")`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Value::Null => f.write_str("null"),
            Value::Bool(value) => write!(f, "{value}"),
            Value::Int(value) => write!(f, "{value}"),
            Value::Uint(value) => write!(f, "{value}u"),
            Value::Double(value) => write_double(f, *value),
            Value::String(text) => f.write_str(&quote(text)),
            Value::Bytes(bytes) => {
                f.write_str("b\"")?;
                for byte in bytes.iter() {
                    write!(f, "\\{byte:03o}")?;
                }
                f.write_str("\"")
            }
            Value::List(list) => {
                f.write_str("[")?;
                for (index, item) in list.iter().enumerate() {
                    if index > 0 {
                        f.write_str(", ")?;
                    }
                    write_or_error(f, item)?;
                }
                f.write_str("]")
            }
            Value::Map(map) => {
                let mut entries: Vec<(String, Value<'_>)> = map
                    .keys()
                    .into_iter()
                    .map(|key| (key.to_string(), key))
                    .collect();
                entries.sort_by(|left, right| left.0.cmp(&right.0));
                f.write_str("{")?;
                for (index, (text, key)) in entries.iter().enumerate() {
                    if index > 0 {
                        f.write_str(", ")?;
                    }
                    write!(f, "{text}: ")?;
                    if let Ok(Some(value)) = map.find(key) {
                        write_or_error(f, value)?;
                    }
                }
                f.write_str("}")
            }
            Value::Timestamp(timestamp) => write!(f, "timestamp(\"{}\")", timestamp.in_utc()),
            Value::Duration(duration) => write!(f, "duration(\"{duration}\")"),
            Value::Type(of) => f.write_str(of.runtime_name()),
            Value::Optional(None) => f.write_str("optional.none()"),
            Value::Optional(Some(value)) => write!(f, "optional.of({value})"),
            Value::Quantity(quantity) => write!(f, "{quantity}"),
            Value::Url(url) => write!(f, "{url}"),
            Value::Ip(address) => write!(f, "{address}"),
            Value::Cidr(cidr) => write!(f, "{cidr}"),
            Value::Semver(version) => write!(f, "{version}"),
            Value::Format(format) => f.write_str(format.name),
            Value::Authorization(value) => f.write_str(value.abstract_type().name()),
            Value::Preserved(json) => write!(f, "{json}"),
        }
    }
}

fn write_or_error(
    f: &mut fmt::Formatter<'_>,
    value: Result<Value<'_>, crate::EvalError>,
) -> fmt::Result {
    match value {
        Ok(value) => write!(f, "{value}"),
        Err(error) => write!(f, "{error}"),
    }
}

fn write_double(f: &mut fmt::Formatter<'_>, value: f64) -> fmt::Result {
    if value.is_nan() {
        return f.write_str("double(\"NaN\")");
    }
    if value.is_infinite() {
        let sign = if value > 0.0 { "Infinity" } else { "-Infinity" };
        return write!(f, "double(\"{sign}\")");
    }
    if value.fract() == 0.0 {
        return write!(f, "{value:.1}");
    }
    write!(f, "{value}")
}

impl Value<'_> {
    /// The value as JSON. Numbers JSON cannot hold, times, versions and the like become their
    /// text; bytes become base64; an absent optional becomes null; map keys become text.
    pub fn to_json(&self) -> serde_json::Value {
        use serde_json::Value as Json;
        match self {
            Value::Null | Value::Optional(None) => Json::Null,
            Value::Bool(value) => Json::Bool(*value),
            Value::Int(value) => Json::from(*value),
            Value::Uint(value) => Json::from(*value),
            Value::Double(value) => serde_json::Number::from_f64(*value)
                .map_or_else(|| Json::String(shortest(*value)), Json::Number),
            Value::String(text) => Json::String(text.to_string()),
            Value::Bytes(bytes) => Json::String(bellwether_go::base64::encode(bytes)),
            Value::List(list) => Json::Array(
                list.iter()
                    .map(|item| item.map_or(Json::Null, |item| item.to_json()))
                    .collect(),
            ),
            Value::Map(super::Map::Json(entries) | super::Map::Declared(entries, _)) => {
                Json::Object((*entries).clone())
            }
            Value::Map(map) => Json::Object(
                map.keys()
                    .into_iter()
                    .map(|key| {
                        let value = match map.find(&key) {
                            Ok(Some(Ok(value))) => value.to_json(),
                            _ => Json::Null,
                        };
                        (display(&key), value)
                    })
                    .collect(),
            ),
            Value::Timestamp(timestamp) => Json::String(timestamp.to_string()),
            Value::Duration(duration) => Json::String(duration.to_string()),
            Value::Optional(Some(value)) => value.to_json(),
            Value::Preserved(json) => (*json).clone(),
            other => Json::String(other.to_string()),
        }
    }
}
