//! An encoder for tests: fields by hand, or whole objects from their JSON.
//!
//! It writes as Go does: fields that are not pointers even if they are zero.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;

use crate::PREFIX;
use crate::table::{Field, Kind, Message, Presence, Shape, Table};

fn varint(mut value: u64) -> Vec<u8> {
    let mut bytes = Vec::new();
    while value >= 0x80 {
        bytes.push(value.to_le_bytes()[0] | 0x80);
        value >>= 7;
    }
    bytes.push(value.to_le_bytes()[0]);
    bytes
}

fn tag(number: u32, wire_type: u64) -> Vec<u8> {
    varint(u64::from(number) << 3 | wire_type)
}

/// A field that is a number.
pub(super) fn number(field: u32, value: u64) -> Vec<u8> {
    [tag(field, 0), varint(value)].concat()
}

/// A field that is a floating point number.
pub(super) fn double(field: u32, value: f64) -> Vec<u8> {
    [tag(field, 1), value.to_le_bytes().to_vec()].concat()
}

/// A field that is a message or a run of bytes.
pub(super) fn bytes(field: u32, value: &[u8]) -> Vec<u8> {
    [tag(field, 2), varint(value.len() as u64), value.to_vec()].concat()
}

/// A field that is text.
pub(super) fn text(field: u32, value: &str) -> Vec<u8> {
    bytes(field, value.as_bytes())
}

/// The body of a request with a message of this kind.
pub(super) fn envelope(api_version: &str, kind: &str, message: &[u8]) -> Vec<u8> {
    let type_meta = [text(1, api_version), text(2, kind)].concat();
    [PREFIX.to_vec(), bytes(1, &type_meta), bytes(2, message)].concat()
}

/// The body of a request with this object.
pub(super) fn object(table: &Table, object: &Value) -> Vec<u8> {
    let api_version = object["apiVersion"].as_str().unwrap();
    let kind = object["kind"].as_str().unwrap();
    let known = table.kind(api_version, kind).unwrap();
    envelope(api_version, kind, &message(table, known, object))
}

fn message(table: &Table, message: &Message, object: &Value) -> Vec<u8> {
    let mut fields = message.fields.iter().collect::<Vec<_>>();
    if message.is_choice {
        let chosen = fields.iter().find(|field| suits(field, object));
        return chosen.map_or(Vec::new(), |field| one_field(table, field, Some(object)));
    }
    fields.sort_by_key(|field| field.number);
    fields
        .into_iter()
        .flat_map(|field| match (field.presence, field.kind) {
            (Presence::Inline, Kind::Message(index)) => bytes(
                field.number,
                &self::message(table, table.message(index), object),
            ),
            _ => one_field(table, field, object.get(field.name)),
        })
        .collect()
}

/// Whether this alternative of a choice can hold the value.
fn suits(field: &Field, value: &Value) -> bool {
    match (field.shape, field.kind) {
        (Shape::List, _) => value.is_array(),
        (_, Kind::Json) => true,
        (_, Kind::Bool) => value.is_boolean(),
        _ => value.is_object(),
    }
}

fn one_field(table: &Table, field: &Field, json: Option<&Value>) -> Vec<u8> {
    match (field.shape, json) {
        (Shape::List, Some(Value::Array(items))) => items
            .iter()
            .flat_map(|item| value(table, field.number, field.kind, item))
            .collect(),
        (Shape::Map, Some(Value::Object(entries))) => entries
            .iter()
            .flat_map(|(key, item)| {
                let entry = [text(1, key), value(table, 2, field.kind, item)].concat();
                bytes(field.number, &entry)
            })
            .collect(),
        (Shape::One, Some(json)) if !json.is_null() || can_be_null(table, field) => {
            value(table, field.number, field.kind, json)
        }
        (Shape::One, None) if field.presence == Presence::NotZero => zero(field),
        _ => Vec::new(),
    }
}

/// Whether the type has a null of its own, which is not the absence of the field.
fn can_be_null(table: &Table, field: &Field) -> bool {
    match field.kind {
        Kind::Message(index) => table.message(index).is_choice,
        kind => kind == Kind::Json,
    }
}

/// What Go writes for a field that is zero.
fn zero(field: &Field) -> Vec<u8> {
    match field.kind {
        Kind::Bool | Kind::Int32 | Kind::Int64 => number(field.number, 0),
        Kind::String | Kind::Time => bytes(field.number, &[]),
        _ => Vec::new(),
    }
}

fn value(table: &Table, field: u32, kind: Kind, json: &Value) -> Vec<u8> {
    let string = || json.as_str().unwrap_or_default();
    match kind {
        Kind::String => text(field, string()),
        Kind::Bool => number(field, u64::from(json.as_bool().unwrap())),
        Kind::Int32 | Kind::Int64 => number(field, json.as_i64().unwrap().cast_unsigned()),
        Kind::Double => double(field, json.as_f64().unwrap()),
        Kind::Bytes => bytes(field, &STANDARD.decode(string()).unwrap()),
        Kind::Json => text(field, &json.to_string()),
        Kind::Time | Kind::MicroTime => bytes(field, &timestamp(string())),
        Kind::Quantity => bytes(field, &text(1, string())),
        Kind::IntOrString => bytes(field, &int_or_string(json)),
        Kind::Strings => {
            let items = json.as_array().unwrap().iter();
            let items: Vec<u8> = items
                .flat_map(|item| text(1, item.as_str().unwrap()))
                .collect();
            bytes(field, &items)
        }
        Kind::Message(index) => bytes(field, &message(table, table.message(index), json)),
    }
}

fn int_or_string(json: &Value) -> Vec<u8> {
    match json.as_i64() {
        Some(value) => [number(1, 0), number(2, value.cast_unsigned()), text(3, "")].concat(),
        None => [number(1, 1), number(2, 0), text(3, json.as_str().unwrap())].concat(),
    }
}

/// Seconds and nanoseconds of a time in RFC 3339, counting day by day rather than by formula.
fn timestamp(time: &str) -> Vec<u8> {
    let part = |range: std::ops::Range<usize>| time[range].parse::<i64>().unwrap();
    let is_leap = |year: i64| year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    let year = part(0..4);
    let mut days: i64 = (1970..year)
        .map(|year| 365 + i64::from(is_leap(year)))
        .sum();
    days -= (year..1970)
        .map(|year| 365 + i64::from(is_leap(year)))
        .sum::<i64>();
    for month in 1..part(5..7) {
        days += match month {
            2 => 28 + i64::from(is_leap(year)),
            4 | 6 | 9 | 11 => 30,
            _ => 31,
        };
    }
    days += part(8..10) - 1;
    let seconds = days * 86_400 + part(11..13) * 3_600 + part(14..16) * 60 + part(17..19);
    let nanoseconds = if time.len() > 20 {
        part(20..26) * 1_000
    } else {
        0
    };
    [
        number(1, seconds.cast_unsigned()),
        number(2, nanoseconds.cast_unsigned()),
    ]
    .concat()
}
