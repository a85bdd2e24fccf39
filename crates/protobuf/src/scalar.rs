//! Values that are not messages of the table: text, numbers, bytes, embedded JSON, and the small
//! messages that are one value in JSON.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Number, Value};

use crate::error::Reason;
use crate::wire::{Reader, WireType};

/// Text, in which every byte that is not UTF-8 is U+FFFD, as Go prints it.
pub(crate) fn text(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len());
    for chunk in bytes.utf8_chunks() {
        text.push_str(chunk.valid());
        text.extend(chunk.invalid().iter().map(|_| char::REPLACEMENT_CHARACTER));
    }
    text
}

/// The lower 32 bits: negative numbers come with the sign extended to 64 bits.
pub(crate) fn int32(varint: u64) -> i32 {
    let [first, second, third, fourth, ..] = varint.to_le_bytes();
    i32::from_le_bytes([first, second, third, fourth])
}

/// A floating point number. Whole numbers are written without a fraction or exponent as long as Go
/// does so, and are then integers to anyone who reads them.
pub(crate) fn double(bytes: [u8; 8]) -> Result<Value, Reason> {
    /// From here on, Go writes numbers with an exponent.
    const WITH_EXPONENT: f64 = 1e21;
    let number = f64::from_le_bytes(bytes);
    let is_negative_zero = number == 0.0 && number.is_sign_negative();
    if number.fract() == 0.0 && number.abs() < WITH_EXPONENT && !is_negative_zero {
        // The same digits as Go's: the shortest that mean the number, then zeros.
        let digits = number.to_string();
        if let Ok(integer) = digits.parse::<i64>() {
            return Ok(Value::from(integer));
        }
        if let Ok(integer) = digits.parse::<u64>() {
            return Ok(Value::from(integer));
        }
    }
    let number = Number::from_f64(number).ok_or(Reason::NotFinite)?;
    Ok(Value::Number(number))
}

/// Bytes in JSON.
pub(crate) fn base64(bytes: &[u8]) -> Value {
    Value::String(STANDARD.encode(bytes))
}

/// JSON text within a message. Nothing at all stands for `null`.
pub(crate) fn json(bytes: &[u8]) -> Result<Value, Reason> {
    if bytes.is_empty() {
        return Ok(Value::Null);
    }
    serde_json::from_str(&text(bytes)).map_err(|error| Reason::EmbeddedJson(error.to_string()))
}

/// `resource.Quantity`: its text, whatever it is. Validation judges it as it does in JSON.
pub(crate) fn quantity(message: &[u8]) -> Result<Value, Reason> {
    let mut quantity = "0".to_owned();
    let mut reader = Reader::new(message);
    while let Some(tag) = reader.tag()? {
        if tag.number == 1 {
            tag.expect(WireType::Bytes)?;
            quantity = text(reader.bytes()?);
        } else {
            reader.skip(tag)?;
        }
    }
    Ok(Value::String(quantity))
}

/// `intstr.IntOrString`: a number or a string, as its type says.
pub(crate) fn int_or_string(message: &[u8]) -> Result<Value, Reason> {
    let mut kind = 0;
    let mut number = 0;
    let mut string = String::new();
    let mut reader = Reader::new(message);
    while let Some(tag) = reader.tag()? {
        match tag.number {
            1 => {
                tag.expect(WireType::Varint)?;
                kind = reader.varint()?.cast_signed();
            }
            2 => {
                tag.expect(WireType::Varint)?;
                number = int32(reader.varint()?);
            }
            3 => {
                tag.expect(WireType::Bytes)?;
                string = text(reader.bytes()?);
            }
            _ => reader.skip(tag)?,
        }
    }
    match kind {
        0 => Ok(Value::from(number)),
        1 => Ok(Value::String(string)),
        other => Err(Reason::NeitherNumberNorString(other)),
    }
}

/// Levels of objects and lists in a value. Its reader has bounded them.
pub(crate) fn height(value: &Value) -> usize {
    match value {
        Value::Array(items) => 1 + items.iter().map(height).max().unwrap_or(0),
        Value::Object(fields) => 1 + fields.values().map(height).max().unwrap_or(0),
        _ => 0,
    }
}
