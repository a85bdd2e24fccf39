//! From JSON to a message: what is in an object, field by field, and nothing else. What Go writes
//! besides, such as empty texts, reads the same.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;

use crate::table::{Field, Kind, Message, Presence, Shape, Table};
use crate::{PREFIX, time};

const VARINT: u64 = 0;
const FIXED64: u64 = 1;
const BYTES: u64 = 2;

/// How much room is made in advance for a message that follows.
const MAX_RESERVED: usize = 1 << 20;

/// An envelope with a message of this kind.
pub(crate) fn envelope(api_version: &str, kind: &str, message: &[u8]) -> Vec<u8> {
    let mut out = open_envelope(api_version, kind, message.len());
    out.extend_from_slice(message);
    out
}

/// What stands before a message of this kind and length.
fn open_envelope(api_version: &str, kind: &str, length: usize) -> Vec<u8> {
    let mut type_meta = Vec::new();
    bytes(1, api_version.as_bytes(), &mut type_meta);
    bytes(2, kind.as_bytes(), &mut type_meta);
    let mut out = Vec::with_capacity(length.min(MAX_RESERVED) + type_meta.len() + 16);
    out.extend_from_slice(PREFIX);
    bytes(1, &type_meta, &mut out);
    tag(2, BYTES, &mut out);
    varint(length as u64, &mut out);
    out
}

/// The message of an object.
pub(crate) fn object(table: &Table, known: &Message, object: &Value) -> Vec<u8> {
    let mut out = Vec::new();
    message(table, known, object, &mut out);
    out
}

/// The message of a list, whose items are of this kind: `metadata` and `items`, in all packages alike.
pub(crate) fn list(table: &Table, items: &Message, list: &Value) -> Vec<u8> {
    let mut out = list_metadata(&list["metadata"]);
    for object in list["items"].as_array().into_iter().flatten() {
        list_item(table, items, object, &mut out);
    }
    out
}

/// What stands before the items of a list, if these have that length together.
pub(crate) fn list_head(
    api_version: &str,
    kind: &str,
    metadata: &Value,
    items_length: usize,
) -> Vec<u8> {
    let metadata = list_metadata(metadata);
    let length = metadata.len().saturating_add(items_length);
    let mut out = open_envelope(api_version, kind, length);
    out.extend_from_slice(&metadata);
    out
}

fn list_metadata(json: &Value) -> Vec<u8> {
    let mut metadata = Vec::new();
    for (number, field) in [(1, "selfLink"), (2, "resourceVersion"), (3, "continue")] {
        if let Some(text) = json[field].as_str() {
            bytes(number, text.as_bytes(), &mut metadata);
        }
    }
    if let Some(count) = json["remainingItemCount"].as_i64() {
        number(4, count, &mut metadata);
    }
    let mut out = Vec::new();
    bytes(1, &metadata, &mut out);
    out
}

/// Appends an item of a list.
pub(crate) fn list_item(table: &Table, known: &Message, object: &Value, out: &mut Vec<u8>) {
    let item = self::object(table, known, object);
    bytes(2, &item, out);
}

fn varint(mut value: u64, out: &mut Vec<u8>) {
    while value >= 0x80 {
        out.push(value.to_le_bytes()[0] | 0x80);
        value >>= 7;
    }
    out.push(value.to_le_bytes()[0]);
}

fn tag(field: u32, wire_type: u64, out: &mut Vec<u8>) {
    varint(u64::from(field) << 3 | wire_type, out);
}

fn number(field: u32, value: i64, out: &mut Vec<u8>) {
    tag(field, VARINT, out);
    varint(value.cast_unsigned(), out);
}

fn bytes(field: u32, value: &[u8], out: &mut Vec<u8>) {
    tag(field, BYTES, out);
    varint(value.len() as u64, out);
    out.extend_from_slice(value);
}

// The recursion is as deep as the object, whose reader has bounded it.
fn message(table: &Table, message: &Message, object: &Value, out: &mut Vec<u8>) {
    if message.is_choice {
        let chosen = message.fields.iter().find(|field| suits(field, object));
        if let Some(field) = chosen {
            one_field(table, field, object, out);
        }
        return;
    }
    for field in &message.fields {
        match (field.presence, field.kind) {
            (Presence::Inline, Kind::Message(index)) => {
                let inner = self::object(table, table.message(index), object);
                bytes(field.number, &inner, out);
            }
            _ => {
                if let Some(json) = object.get(field.name) {
                    one_field(table, field, json, out);
                }
            }
        }
    }
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

fn one_field(table: &Table, field: &Field, json: &Value, out: &mut Vec<u8>) {
    match (field.shape, json) {
        (Shape::List, Value::Array(items)) => {
            for item in items {
                value(table, field.number, field.kind, item, out);
            }
        }
        (Shape::Map, Value::Object(entries)) => {
            for (key, item) in entries {
                let mut entry = Vec::new();
                bytes(1, key.as_bytes(), &mut entry);
                value(table, 2, field.kind, item, &mut entry);
                bytes(field.number, &entry, out);
            }
        }
        (Shape::One, json) if !json.is_null() || has_null(table, field.kind) => {
            value(table, field.number, field.kind, json, out);
        }
        _ => {}
    }
}

/// Whether the type has a null of its own, which is not the absence of the field.
fn has_null(table: &Table, kind: Kind) -> bool {
    match kind {
        Kind::Message(index) => table.message(index).is_choice,
        kind => kind == Kind::Json,
    }
}

fn value(table: &Table, field: u32, kind: Kind, json: &Value, out: &mut Vec<u8>) {
    let text = || json.as_str().unwrap_or_default();
    match kind {
        Kind::String => bytes(field, text().as_bytes(), out),
        Kind::Bool => number(field, i64::from(json.as_bool().unwrap_or_default()), out),
        Kind::Int32 | Kind::Int64 => number(field, json.as_i64().unwrap_or_default(), out),
        Kind::Double => {
            tag(field, FIXED64, out);
            out.extend_from_slice(&json.as_f64().unwrap_or_default().to_le_bytes());
        }
        Kind::Bytes => bytes(field, &STANDARD.decode(text()).unwrap_or_default(), out),
        Kind::Json => bytes(field, json.to_string().as_bytes(), out),
        Kind::Time | Kind::MicroTime => bytes(field, &timestamp(text()), out),
        Kind::Quantity => {
            let mut inner = Vec::new();
            // A quantity may be written as a number.
            let amount = json
                .as_str()
                .map_or_else(|| json.to_string(), str::to_owned);
            bytes(1, amount.as_bytes(), &mut inner);
            bytes(field, &inner, out);
        }
        Kind::IntOrString => bytes(field, &int_or_string(json), out),
        Kind::Strings => {
            let mut inner = Vec::new();
            let items = json.as_array().into_iter().flatten();
            for item in items.filter_map(Value::as_str) {
                bytes(1, item.as_bytes(), &mut inner);
            }
            bytes(field, &inner, out);
        }
        Kind::Message(index) => {
            let inner = object(table, table.message(index), json);
            bytes(field, &inner, out);
        }
    }
}

fn int_or_string(json: &Value) -> Vec<u8> {
    let mut out = Vec::new();
    if let Some(value) = json.as_i64() {
        number(2, value, &mut out);
    } else {
        number(1, 1, &mut out);
        bytes(3, json.as_str().unwrap_or_default().as_bytes(), &mut out);
    }
    out
}

fn timestamp(text: &str) -> Vec<u8> {
    let mut out = Vec::new();
    if let Some((seconds, nanoseconds)) = time::parse(text) {
        number(1, seconds, &mut out);
        number(2, nanoseconds, &mut out);
    }
    out
}
