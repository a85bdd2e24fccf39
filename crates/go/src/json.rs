//! JSON as `encoding/json` reads and writes it.

mod scan;

use std::fmt::Write as _;

use serde_json::Value as Json;

use crate::float;
use crate::value::{List, Meter, Type, UintKind, Value};

/// How JSON is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Style {
    /// Two blanks for each level, if it is on several lines.
    pub is_indented: bool,
    /// Whether `<`, `>` and `&` are escaped.
    pub escapes_html: bool,
}

impl Style {
    /// On one line: `json.Marshal`.
    pub const COMPACT: Self = Self {
        is_indented: false,
        escapes_html: true,
    };
    /// On several lines: `json.MarshalIndent` with two blanks.
    pub const PRETTY: Self = Self {
        is_indented: true,
        escapes_html: true,
    };
    /// On one line, without escapes for HTML.
    pub const RAW: Self = Self {
        is_indented: false,
        escapes_html: false,
    };
}

/// Why a value is not JSON.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum WriteError {
    /// Infinities and NaN.
    #[error("json: unsupported value: {0}")]
    Number(String),
    /// Complex numbers.
    #[error("json: unsupported type: {0}")]
    Type(String),
    /// A map that holds itself, or values that are nested as deeply.
    #[error("json: unsupported value: encountered a cycle via map[string]interface {{}}")]
    Cycle,
    /// The meter stopped it.
    #[error("{0}")]
    Exhausted(String),
}

/// Values nested deeper than this are taken for cycles.
const DEPTH_LIMIT: usize = crate::value::DEPTH_LIMIT;

/// Appends a value.
pub fn append(
    out: &mut Vec<u8>,
    value: &Value,
    style: Style,
    meter: &mut dyn Meter,
) -> Result<(), WriteError> {
    Writer { out, style, meter }.value(value, 0)
}

struct Writer<'a> {
    out: &'a mut Vec<u8>,
    style: Style,
    meter: &'a mut dyn Meter,
}

impl Writer<'_> {
    fn value(&mut self, value: &Value, depth: usize) -> Result<(), WriteError> {
        if depth > DEPTH_LIMIT {
            return Err(WriteError::Cycle);
        }
        self.charge(2)?;
        match value {
            Value::Invalid | Value::Nil => self.out.extend_from_slice(b"null"),
            Value::Bool(true) => self.out.extend_from_slice(b"true"),
            Value::Bool(false) => self.out.extend_from_slice(b"false"),
            Value::Int(_, number) => self.out.extend_from_slice(number.to_string().as_bytes()),
            Value::Uint(_, number) => self.out.extend_from_slice(number.to_string().as_bytes()),
            Value::Float(number) if !number.is_finite() => {
                return Err(WriteError::Number(float::shortest(*number)));
            }
            Value::Float(number) => self.out.extend_from_slice(float::json(*number).as_bytes()),
            Value::Complex(..) => return Err(WriteError::Type("complex128".to_owned())),
            Value::String(text) => self.string(text.as_bytes())?,
            Value::List(list) if list.is_nil() => self.out.extend_from_slice(b"null"),
            Value::List(list) if matches!(list.element(), Type::Uint(UintKind::Uint8)) => {
                let text = super::value::base64_of(list);
                self.string(text.as_bytes())?;
            }
            Value::List(list) => self.list(list, depth)?,
            Value::Map(map) if map.is_nil() => self.out.extend_from_slice(b"null"),
            Value::Map(map) => {
                let entries = map.entries();
                self.out.push(b'{');
                for (index, (key, item)) in entries.iter().enumerate() {
                    self.member(index, key.as_bytes(), item, depth)?;
                }
                self.close(b'}', entries.is_empty(), depth)?;
            }
            Value::Object(object) => match object.members() {
                Some(members) => self.members(&members, depth)?,
                None => return self.value(&object.data(), depth + 1),
            },
        }
        Ok(())
    }

    /// The fields of a struct, in their order.
    fn members(&mut self, members: &[(&str, Value)], depth: usize) -> Result<(), WriteError> {
        self.out.push(b'{');
        for (index, (key, item)) in members.iter().enumerate() {
            self.member(index, key.as_bytes(), item, depth)?;
        }
        self.close(b'}', members.is_empty(), depth)
    }

    fn member(
        &mut self,
        index: usize,
        key: &[u8],
        item: &Value,
        depth: usize,
    ) -> Result<(), WriteError> {
        self.separator(index, depth + 1)?;
        self.string(key)?;
        self.out.push(b':');
        if self.style.is_indented {
            self.out.push(b' ');
        }
        self.value(item, depth + 1)
    }

    fn list(&mut self, list: &List, depth: usize) -> Result<(), WriteError> {
        self.out.push(b'[');
        for (index, item) in list.iter().enumerate() {
            self.separator(index, depth + 1)?;
            self.value(item, depth + 1)?;
        }
        self.close(b']', list.is_empty(), depth)
    }

    fn charge(&mut self, count: usize) -> Result<(), WriteError> {
        self.meter.charge(count).map_err(WriteError::Exhausted)
    }

    fn newline(&mut self, depth: usize) -> Result<(), WriteError> {
        if self.style.is_indented {
            self.charge(depth * 2 + 1)?;
            self.out.push(b'\n');
            self.out.extend(std::iter::repeat_n(b' ', depth * 2));
        }
        Ok(())
    }

    fn separator(&mut self, index: usize, depth: usize) -> Result<(), WriteError> {
        if index > 0 {
            self.out.push(b',');
        }
        self.newline(depth)
    }

    fn close(&mut self, bracket: u8, is_empty: bool, depth: usize) -> Result<(), WriteError> {
        if !is_empty {
            self.newline(depth)?;
        }
        self.out.push(bracket);
        Ok(())
    }

    fn string(&mut self, bytes: &[u8]) -> Result<(), WriteError> {
        self.charge(bytes.len() + 2)?;
        let mut text = String::with_capacity(bytes.len() + 2);
        text.push('"');
        for character in String::from_utf8_lossy(bytes).chars() {
            // Writing to a String cannot fail.
            let _ = match character {
                '"' => text.write_str("\\\""),
                '\\' => text.write_str("\\\\"),
                '\u{8}' => text.write_str("\\b"),
                '\u{c}' => text.write_str("\\f"),
                '\n' => text.write_str("\\n"),
                '\r' => text.write_str("\\r"),
                '\t' => text.write_str("\\t"),
                '<' | '>' | '&' if self.style.escapes_html => {
                    write!(text, "\\u{:04x}", u32::from(character))
                }
                '\0'..='\u{1f}' | '\u{2028}' | '\u{2029}' => {
                    write!(text, "\\u{:04x}", u32::from(character))
                }
                _ => text.write_char(character),
            };
        }
        text.push('"');
        self.out.extend_from_slice(text.as_bytes());
        Ok(())
    }
}

/// Reads JSON into a value, with all numbers as `float64`; errors use Go's words.
pub fn parse(text: &[u8]) -> Result<Value, String> {
    parse_json(text).map(|json| Value::from_json(&json))
}

/// Reads JSON; errors use Go's words.
pub fn parse_json(text: &[u8]) -> Result<Json, String> {
    serde_json::from_slice(text)
        .map_err(|error| scan::problem(text).unwrap_or_else(|| error.to_string()))
}
