//! How large a value is when written out, as opposed to how much memory it shares.

use super::{Map, Value};

/// Whether `value`, written out, takes at most `bytes`; takes what it needs off them. Values
/// share parts, so a few operations can make one that takes more than any memory to write.
pub(crate) fn fits(value: &Value<'_>, bytes: &mut usize) -> bool {
    match value {
        Value::String(text) => take(bytes, text.len()),
        Value::Bytes(octets) => take(bytes, octets.len()),
        Value::List(list) => {
            take(bytes, 1)
                && list
                    .iter()
                    .all(|item| item.map_or(true, |item| fits(&item, bytes)))
        }
        Value::Map(Map::Json(entries) | Map::Declared(entries, _)) => entries
            .iter()
            .all(|(key, json)| take(bytes, key.len()) && fits_json(json, bytes)),
        Value::Map(Map::Shared(entries)) => entries
            .iter()
            .all(|(key, value)| fits(&key.to_value(), bytes) && fits(value, bytes)),
        Value::Optional(Some(value)) => fits(value, bytes),
        Value::Preserved(json) => fits_json(json, bytes),
        _ => take(bytes, 8),
    }
}

fn fits_json(json: &serde_json::Value, bytes: &mut usize) -> bool {
    match json {
        serde_json::Value::String(text) => take(bytes, text.len()),
        serde_json::Value::Array(items) => {
            take(bytes, 1) && items.iter().all(|item| fits_json(item, bytes))
        }
        serde_json::Value::Object(entries) => {
            take(bytes, 1)
                && entries
                    .iter()
                    .all(|(key, json)| take(bytes, key.len()) && fits_json(json, bytes))
        }
        _ => take(bytes, 8),
    }
}

/// Takes the size of one node and of its text.
fn take(bytes: &mut usize, size: usize) -> bool {
    match bytes.checked_sub(size.saturating_add(1)) {
        Some(rest) => {
            *bytes = rest;
            true
        }
        None => false,
    }
}
