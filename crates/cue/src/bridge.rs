//! Values to and from `serde_json`, without texts in between.
//!
//! Objects of Kubernetes are `serde_json` values everywhere else; this is where they become data of an
//! evaluation and where results become objects. Numbers follow the way of objects through a server:
//! one without a fraction is an integer, whether it was written `2` or `2.0`.

use std::sync::Arc;

use serde_json::Number as JsonNumber;

use crate::builtins::encode_base64;
use crate::number::Number;
use crate::value::Value;

/// From here on a float is written with an exponent and is no longer taken for an integer.
const INTEGRAL_LIMIT: f64 = 1e21;

/// JSON as plain data; members keep the order they have in the map.
pub fn from_json(value: &serde_json::Value) -> Value {
    match value {
        serde_json::Value::Null => Value::Null,
        serde_json::Value::Bool(value) => Value::Bool(*value),
        serde_json::Value::Number(number) => from_json_number(number),
        serde_json::Value::String(text) => Value::String(Arc::from(text.as_str())),
        serde_json::Value::Array(items) => Value::list(items.iter().map(from_json)),
        serde_json::Value::Object(members) => Value::structure(
            members
                .iter()
                .map(|(name, member)| (Arc::from(name.as_str()), from_json(member))),
        ),
    }
}

fn from_json_number(number: &JsonNumber) -> Value {
    if let Some(integer) = number.as_i64() {
        return Value::Number(Number::from(integer));
    }
    let text = match number.as_f64() {
        Some(float) if !number.is_u64() && is_integral(float) => format!("{float:.0}"),
        _ => number.to_string(),
    };
    // Any number of JSON is a decimal number.
    Number::parse_decimal(&text).map_or(Value::Null, Value::Number)
}

fn is_integral(float: f64) -> bool {
    float.fract() == 0.0 && float.abs() < INTEGRAL_LIMIT
}

/// A finished value as JSON. Bytes become base64. An integer beyond 64 bits becomes the nearest float,
/// because `serde_json` has no larger one.
pub fn to_json(value: &Value) -> serde_json::Value {
    match value {
        // A finished value holds nothing opaque.
        Value::Null | Value::Opaque(_) => serde_json::Value::Null,
        Value::Bool(value) => (*value).into(),
        Value::Number(number) => to_json_number(number),
        Value::String(text) => (&**text).into(),
        Value::Bytes(bytes) => encode_base64(bytes).into(),
        Value::List(items) => items.iter().map(to_json).collect(),
        Value::Struct(fields) => fields
            .iter()
            .map(|(name, field)| (name.to_string(), to_json(field)))
            .collect(),
    }
}

fn to_json_number(number: &Number) -> serde_json::Value {
    if let Some(integer) = number.to_i64() {
        return integer.into();
    }
    if let Some(integer) = number.to_big() {
        if let Ok(integer) = i64::try_from(&integer) {
            return integer.into();
        }
        if let Ok(integer) = u64::try_from(&integer) {
            return integer.into();
        }
    }
    JsonNumber::from_f64(number.to_f64()).map_or(serde_json::Value::Null, Into::into)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[track_caller]
    fn check_round_trip(value: &serde_json::Value) {
        assert_eq!(to_json(&from_json(value)), *value);
    }

    #[test]
    fn everything_survives_the_way_there_and_back() {
        check_round_trip(&json!(null));
        check_round_trip(&json!([true, 1, -7, 2.5, "text", {"a": {"b": []}}]));
        check_round_trip(&json!(i64::MIN));
        check_round_trip(&json!(u64::MAX));
        check_round_trip(&json!(1e-7));
    }

    #[test]
    fn numbers_without_a_fraction_are_integers() {
        let from_text = |text: &str| from_json(&serde_json::from_str(text).unwrap());
        assert_eq!(from_text("2.0"), Value::Number(Number::from(2_i64)));
        assert_eq!(from_text("1e3"), Value::Number(Number::from(1000_i64)));
        assert!(matches!(from_text("1e22"), Value::Number(number) if !number.is_int()));
        assert!(matches!(from_text("2.5"), Value::Number(number) if !number.is_int()));
        let decimal = Number::parse_decimal("3.0").unwrap();
        assert_eq!(to_json(&Value::Number(decimal)), json!(3));
    }

    #[test]
    fn integers_beyond_64_bits_become_floats() {
        let large = Number::parse_decimal("36893488147419103232").unwrap();
        assert_eq!(
            to_json(&Value::Number(large)),
            json!(36_893_488_147_419_103_232.0)
        );
    }

    #[test]
    fn bytes_become_base64() {
        assert_eq!(to_json(&Value::Bytes(Arc::from(&b"hi"[..]))), json!("aGk="));
    }
}
