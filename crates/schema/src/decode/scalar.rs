//! Decoding of single values, and of the types that read their JSON themselves: times, quantities,
//! base64 and int-or-string.

use bellwether_go::civil::days_in_month;
use bellwether_json::quantity::{Quantity, QuantityError};
use serde_json::Value;

use super::{DecodeError, qualified};
use crate::model::{Schema, Type};
use crate::text;

const QUANTITY: &str = "io.k8s.apimachinery.pkg.api.resource.Quantity";
const MICRO_TIME: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.MicroTime";

/// Whether decoding keeps whatever is there: raw extensions and free-form JSON.
pub(super) fn is_opaque(schema: &Schema) -> bool {
    let typed = schema.kind.is_some() || schema.int_or_string || is_quantity(schema);
    !typed
        || (schema.preserve_unknown_fields
            && schema.properties.is_empty()
            && schema.additional_properties.is_none()
            && schema.items.is_none())
}

fn is_quantity(schema: &Schema) -> bool {
    schema.type_name.as_deref() == Some(QUANTITY)
}

/// The Go type of a scalar field.
pub(super) fn go_type(schema: &Schema) -> String {
    if let Some(name) = &schema.type_name {
        return qualified(name);
    }
    let format = schema.format.as_deref();
    match (schema.kind, format) {
        (Some(Type::String), Some("byte")) => "[]uint8".to_owned(),
        (Some(Type::String), _) => "string".to_owned(),
        (Some(Type::Integer), format) => format.unwrap_or("int64").to_owned(),
        (Some(Type::Number), Some("float")) => "float32".to_owned(),
        (Some(Type::Number), _) => "float64".to_owned(),
        (Some(Type::Boolean), _) => "bool".to_owned(),
        _ => "interface {}".to_owned(),
    }
}

/// Checks a value that is neither list nor object; `mismatch` makes the error for a wrong type.
pub(super) fn check(
    value: &Value,
    schema: &Schema,
    mismatch: impl Fn(&Value, &str) -> DecodeError,
) -> Result<(), DecodeError> {
    if is_quantity(schema) {
        return quantity(value);
    }
    if schema.int_or_string {
        return int_or_string(value, mismatch);
    }
    let format = schema.format.as_deref();
    match (schema.kind, value) {
        (Some(Type::String), Value::String(text)) if format == Some("byte") => base64(text),
        (Some(Type::String), Value::String(text)) if format == Some("date-time") => {
            time(text, schema)
        }
        (Some(Type::String), _) if format == Some("date-time") => Err(mismatch(value, "string")),
        (Some(Type::String), Value::String(_))
        | (Some(Type::Boolean), Value::Bool(_))
        | (Some(Type::Number), Value::Number(_))
        | (None, _) => Ok(()),
        (Some(Type::Integer), Value::Number(number)) if fits(number, format) => Ok(()),
        _ => Err(mismatch(value, &go_type(schema))),
    }
}

fn fits(number: &serde_json::Number, format: Option<&str>) -> bool {
    match format {
        Some("int32") => number
            .as_i64()
            .is_some_and(|value| i32::try_from(value).is_ok()),
        _ => number.is_i64(),
    }
}

fn int_or_string(
    value: &Value,
    mismatch: impl Fn(&Value, &str) -> DecodeError,
) -> Result<(), DecodeError> {
    match value {
        Value::String(_) => Ok(()),
        Value::Number(number) if fits(number, Some("int32")) => Ok(()),
        other => Err(mismatch(other, "int32")),
    }
}

/// A quantity reads the raw text of any JSON value, so that even a list is refused for its form.
fn quantity(value: &Value) -> Result<(), DecodeError> {
    let parsed = match value {
        Value::String(text) => text.trim().parse::<Quantity>(),
        Value::Number(number) => number.to_string().parse(),
        _ => Err(QuantityError::Format),
    };
    match parsed {
        Ok(_) => Ok(()),
        Err(error) => Err(DecodeError::Other(error.to_string())),
    }
}

fn base64(text: &str) -> Result<(), DecodeError> {
    match bellwether_go::base64::decode(text.as_bytes()) {
        Ok(_) => Ok(()),
        Err(error) => Err(DecodeError::Other(error.to_string())),
    }
}

fn time(written: &str, schema: &Schema) -> Result<(), DecodeError> {
    let layout = if schema.type_name.as_deref() == Some(MICRO_TIME) {
        "2006-01-02T15:04:05.000000Z07:00"
    } else {
        "2006-01-02T15:04:05Z07:00"
    };
    time_problem(written).map_or(Ok(()), |problem| {
        let quoted = text::quote(written);
        let problem = match problem {
            TimeProblem::Layout(problem) => {
                format!("parsing time {quoted} as \"{layout}\": {problem}")
            }
            TimeProblem::Value(problem) => format!("parsing time {quoted}: {problem}"),
        };
        Err(DecodeError::Other(problem))
    })
}

/// Go names the layout only where the text does not follow it.
enum TimeProblem {
    Layout(String),
    Value(String),
}

/// What Go's `time.Parse` says of a text that is not in RFC 3339; `None` if it is.
fn time_problem(written: &str) -> Option<TimeProblem> {
    let cannot = |rest: &str, element: &str| {
        let problem = format!(
            "cannot parse {} as {}",
            text::quote(rest),
            text::quote(element)
        );
        Some(TimeProblem::Layout(problem))
    };
    let out_of_range = |what: &str| Some(TimeProblem::Value(format!("{what} out of range")));
    let elements = [
        ("2006", 4, "-", "year", 0..=9999),
        ("01", 2, "-", "month", 1..=12),
        // How many days there are is known only at the end.
        ("02", 2, "T", "day", 0..=99),
        ("15", 2, ":", "hour", 0..=23),
        ("04", 2, ":", "minute", 0..=59),
        ("05", 2, "", "second", 0..=59),
    ];
    let mut rest = written;
    let mut numbers = [0_u32; 6];
    for (slot, (element, width, separator, what, range)) in numbers.iter_mut().zip(elements) {
        let Some(digits) = rest
            .get(..width)
            .filter(|part| part.bytes().all(|b| b.is_ascii_digit()))
        else {
            return cannot(rest, element);
        };
        *slot = digits.parse().unwrap_or_default();
        if !range.contains(slot) {
            return out_of_range(what);
        }
        rest = &rest[width..];
        let Some(after) = rest.strip_prefix(separator) else {
            return cannot(rest, separator);
        };
        rest = after;
    }
    rest = without_fraction(rest);
    rest = match rest.strip_prefix('Z') {
        Some(after) => after,
        None if is_offset(rest) => &rest[6..],
        None => return cannot(rest, "Z07:00"),
    };
    if !rest.is_empty() {
        return Some(TimeProblem::Value(format!(
            "extra text: {}",
            text::quote(rest)
        )));
    }
    let [year, month, day, ..] = numbers;
    if day == 0 || day > days_in_month(i64::from(year), month) {
        out_of_range("day")
    } else {
        None
    }
}

/// The text without the fraction of a second at its start.
fn without_fraction(text: &str) -> &str {
    let Some(fraction) = text.strip_prefix(['.', ',']) else {
        return text;
    };
    let digits = fraction.bytes().take_while(u8::is_ascii_digit).count();
    if digits == 0 {
        text
    } else {
        &fraction[digits..]
    }
}

fn is_offset(zone: &str) -> bool {
    let bytes = zone.as_bytes();
    matches!(bytes, [b'+' | b'-', _, _, b':', _, _, ..])
        && [1, 2, 4, 5]
            .iter()
            .all(|index| bytes[*index].is_ascii_digit())
}
