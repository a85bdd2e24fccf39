//! Writes values as JSON text, and reformats JSON text without reading it into values.

use std::fmt::Write as _;

use crate::builtins::base64::encode_standard;
use crate::value::Value;

/// Writes a finished value on one line. Bytes become base64; nothing is escaped for HTML.
pub fn write(value: &Value) -> String {
    let mut output = String::new();
    write_value(&mut output, value);
    output
}

/// Writes a finished value over several lines, four blanks per level, as exports show it.
pub fn write_indented(value: &Value) -> String {
    let mut output = String::new();
    write_lines(&mut output, value, 0);
    output
}

fn write_scalar(output: &mut String, value: &Value) -> bool {
    match value {
        // A finished value holds nothing opaque.
        Value::Null | Value::Opaque(_) => output.push_str("null"),
        Value::Bool(value) => output.push_str(if *value { "true" } else { "false" }),
        Value::Number(number) => {
            let _ = write!(output, "{number}");
        }
        Value::String(text) => write_string(output, text),
        Value::Bytes(bytes) => write_string(output, &encode_standard(bytes)),
        Value::List(_) | Value::Struct(_) => return false,
    }
    true
}

/// Writes a finished value on one line behind what is there.
pub(crate) fn write_value(output: &mut String, value: &Value) {
    if write_scalar(output, value) {
        return;
    }
    match value {
        Value::List(items) => {
            for (position, item) in items.iter().enumerate() {
                output.push(if position == 0 { '[' } else { ',' });
                write_value(output, item);
            }
            output.push_str(if items.is_empty() { "[]" } else { "]" });
        }
        Value::Struct(fields) => {
            for (position, (label, field)) in fields.iter().enumerate() {
                output.push(if position == 0 { '{' } else { ',' });
                write_string(output, label);
                output.push(':');
                write_value(output, field);
            }
            output.push_str(if fields.is_empty() { "{}" } else { "}" });
        }
        _ => {}
    }
}

fn write_lines(output: &mut String, value: &Value, level: usize) {
    if write_scalar(output, value) {
        return;
    }
    let new_line = |output: &mut String, level: usize| {
        output.push('\n');
        output.extend(std::iter::repeat_n("    ", level));
    };
    match value {
        Value::List(items) if items.is_empty() => output.push_str("[]"),
        Value::Struct(fields) if fields.is_empty() => output.push_str("{}"),
        Value::List(items) => {
            for (position, item) in items.iter().enumerate() {
                output.push(if position == 0 { '[' } else { ',' });
                new_line(output, level + 1);
                write_lines(output, item, level + 1);
            }
            new_line(output, level);
            output.push(']');
        }
        Value::Struct(fields) => {
            for (position, (label, field)) in fields.iter().enumerate() {
                output.push(if position == 0 { '{' } else { ',' });
                new_line(output, level + 1);
                write_string(output, label);
                output.push_str(": ");
                write_lines(output, field, level + 1);
            }
            new_line(output, level);
            output.push('}');
        }
        _ => {}
    }
}

/// Writes a quoted string with the escapes the reference uses.
pub(crate) fn write_string(output: &mut String, text: &str) {
    output.push('"');
    // What needs no escape is copied as a whole.
    let mut copied = 0;
    for (position, character) in text.char_indices() {
        let escape = match character {
            '"' => "\\\"",
            '\\' => "\\\\",
            '\n' => "\\n",
            '\r' => "\\r",
            '\t' => "\\t",
            '\u{8}' => "\\b",
            '\u{c}' => "\\f",
            '\u{0}'..='\u{1f}' | '\u{2028}' | '\u{2029}' => "",
            _ => continue,
        };
        output.push_str(&text[copied..position]);
        copied = position + character.len_utf8();
        if escape.is_empty() {
            let _ = write!(output, "\\u{:04x}", u32::from(character));
        } else {
            output.push_str(escape);
        }
    }
    output.push_str(&text[copied..]);
    output.push('"');
}

/// Removes blanks outside strings from valid JSON.
pub(super) fn compact(source: &str) -> String {
    let mut output = String::with_capacity(source.len());
    for piece in pieces(source) {
        output.push_str(piece);
    }
    output
}

/// Lays valid JSON out over lines; `None` when the result outgrows the limit.
pub(super) fn indent(source: &str, prefix: &str, indent: &str, limit: usize) -> Option<String> {
    let mut output = String::new();
    let mut level = 0usize;
    let mut just_opened = false;
    let new_line = |output: &mut String, level: usize| {
        output.push('\n');
        output.push_str(prefix);
        output.extend(std::iter::repeat_n(indent, level));
    };
    for piece in pieces(source) {
        if output.len() > limit {
            return None;
        }
        match piece {
            "{" | "[" => {
                if just_opened {
                    new_line(&mut output, level);
                }
                output.push_str(piece);
                level += 1;
                just_opened = true;
                continue;
            }
            "}" | "]" => {
                level = level.saturating_sub(1);
                if !just_opened {
                    new_line(&mut output, level);
                }
                output.push_str(piece);
            }
            "," => {
                output.push(',');
                new_line(&mut output, level);
            }
            ":" => output.push_str(": "),
            _ => {
                if just_opened {
                    new_line(&mut output, level);
                }
                output.push_str(piece);
            }
        }
        just_opened = false;
    }
    Some(output)
}

/// The tokens of valid JSON: punctuation, strings, and runs of anything else.
fn pieces(source: &str) -> impl Iterator<Item = &str> {
    let mut rest = source;
    std::iter::from_fn(move || {
        rest = rest.trim_start_matches([' ', '\t', '\n', '\r']);
        let first = *rest.as_bytes().first()?;
        let length = match first {
            b'{' | b'}' | b'[' | b']' | b',' | b':' => 1,
            b'"' => string_length(rest),
            _ => rest
                .find(|c| "{}[],: \t\n\r".contains(c))
                .unwrap_or(rest.len()),
        };
        let (piece, tail) = rest.split_at(length);
        rest = tail;
        Some(piece)
    })
}

fn string_length(text: &str) -> usize {
    let mut escaped = false;
    for (position, byte) in text.bytes().enumerate().skip(1) {
        match byte {
            _ if escaped => escaped = false,
            b'\\' => escaped = true,
            b'"' => return position + 1,
            _ => {}
        }
    }
    text.len()
}
