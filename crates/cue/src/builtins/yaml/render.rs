//! Writes values as YAML in the reference's layout: two blanks per level, sequences indented
//! below their key, literal blocks for text of several lines.

use std::fmt::Write as _;

use super::scalar::is_ambiguous;
use crate::builtins::base64::encode_standard;
use crate::value::Value;

/// Writes a finished value as one document.
pub fn write(value: &Value) -> String {
    let mut output = String::new();
    write_node(&mut output, value, 0, Place::Root);
    output
}

/// What stands before a node on its line.
#[derive(Clone, Copy, PartialEq)]
enum Place {
    /// Nothing at all.
    Root,
    /// `key:`
    Field,
    /// `- `
    Item,
}

fn write_node(output: &mut String, value: &Value, level: usize, place: Place) {
    match value {
        Value::List(items) if items.is_empty() => write_inline(output, "[]", place),
        Value::Struct(fields) if fields.is_empty() => write_inline(output, "{}", place),
        Value::List(items) => {
            let level = if place == Place::Field {
                level + 1
            } else {
                level
            };
            for (position, item) in items.iter().enumerate() {
                start_line(output, level, place, position);
                output.push('-');
                output.push(' ');
                write_node(output, item, level + 1, Place::Item);
            }
        }
        Value::Struct(fields) => {
            let level = if place == Place::Field {
                level + 1
            } else {
                level
            };
            for (position, (label, field)) in fields.iter().enumerate() {
                start_line(output, level, place, position);
                output.push_str(&key(label));
                output.push(':');
                write_node(output, field, level, Place::Field);
            }
        }
        _ => write_scalar(output, value, level, place),
    }
}

/// Begins the line of an entry; the first entry of an item stays on the item's line.
fn start_line(output: &mut String, level: usize, place: Place, position: usize) {
    if position == 0 && place == Place::Item {
        return;
    }
    if position == 0 && place == Place::Field {
        output.push('\n');
    }
    output.extend(std::iter::repeat_n("  ", level));
}

fn write_inline(output: &mut String, text: &str, place: Place) {
    if place == Place::Field {
        output.push(' ');
    }
    output.push_str(text);
    output.push('\n');
}

fn write_scalar(output: &mut String, value: &Value, level: usize, place: Place) {
    let text = match value {
        Value::Bool(true) => "true".to_owned(),
        Value::Bool(false) => "false".to_owned(),
        Value::Number(number) => number.to_string(),
        Value::String(text) if is_block(text) => {
            return write_block(output, text, level, place);
        }
        Value::String(text) => flow_text(text, false),
        Value::Bytes(bytes) => format!("!!binary {}", encode_standard(bytes)),
        // A finished value holds nothing opaque.
        _ => "null".to_owned(),
    };
    write_inline(output, &text, place);
}

fn key(label: &str) -> String {
    flow_text(label, true)
}

/// A string on one line, quoted only when it has to be.
fn flow_text(text: &str, key: bool) -> String {
    if is_ambiguous(text) {
        return double_quoted(text);
    }
    if needs_escapes(text) {
        return double_quoted(text);
    }
    if is_plain(text) && !(key && text.len() > 128) {
        text.to_owned()
    } else {
        format!("'{}'", text.replace('\'', "''"))
    }
}

fn is_printable(character: char) -> bool {
    matches!(character, '\n' | '\u{20}'..='\u{7e}' | '\u{85}' | '\u{a0}'..='\u{d7ff}'
        | '\u{e000}'..='\u{fefe}' | '\u{ff00}'..='\u{fffd}' | '\u{10000}'..='\u{10ffff}')
}

/// Whether only double quotes can hold the text.
fn needs_escapes(text: &str) -> bool {
    text.contains('\n') || text.chars().any(|character| !is_printable(character))
}

/// Whether the text can stand without quotes, in block context.
fn is_plain(text: &str) -> bool {
    let mut characters = text.chars();
    let Some(first) = characters.next() else {
        return false;
    };
    let second = characters.next();
    let blank_follows = second.is_none_or(char::is_whitespace);
    let bad_start = match first {
        '#' | ',' | '[' | ']' | '{' | '}' | '&' | '*' | '!' | '|' | '>' | '\'' | '"' | '%'
        | '@' | '`' => true,
        '-' | '?' | ':' => blank_follows,
        _ => false,
    };
    let document_mark = text.starts_with("---") || text.starts_with("...");
    let edges = text.starts_with(' ') || text.ends_with(' ');
    let indicators = text.contains(": ") || text.contains(" #") || text.ends_with(':');
    let breaks = text.contains(['\u{85}', '\u{2028}', '\u{2029}']);
    !(bad_start || document_mark || edges || indicators || breaks)
}

fn double_quoted(text: &str) -> String {
    let mut quoted = String::from("\"");
    for character in text.chars() {
        match character {
            '"' => quoted.push_str("\\\""),
            '\\' => quoted.push_str("\\\\"),
            '\n' => quoted.push_str("\\n"),
            '\r' => quoted.push_str("\\r"),
            '\t' => quoted.push_str("\\t"),
            '\u{0}' => quoted.push_str("\\0"),
            '\u{7}' => quoted.push_str("\\a"),
            '\u{8}' => quoted.push_str("\\b"),
            '\u{b}' => quoted.push_str("\\v"),
            '\u{c}' => quoted.push_str("\\f"),
            '\u{1b}' => quoted.push_str("\\e"),
            '\u{85}' => quoted.push_str("\\N"),
            '\u{a0}' => quoted.push_str("\\_"),
            '\u{2028}' => quoted.push_str("\\L"),
            '\u{2029}' => quoted.push_str("\\P"),
            '\u{feff}' => quoted.push_str("\\uFEFF"),
            _ if is_printable(character) => quoted.push(character),
            _ => {
                let code = u32::from(character);
                let _ = match code {
                    0..=0xff => write!(quoted, "\\x{code:02X}"),
                    0x100..=0xffff => write!(quoted, "\\u{code:04X}"),
                    _ => write!(quoted, "\\U{code:08X}"),
                };
            }
        }
    }
    quoted.push('"');
    quoted
}

/// Whether the text is written as a literal block: several lines, nothing a block cannot hold.
fn is_block(text: &str) -> bool {
    let trailing_blank = text
        .split('\n')
        .rev()
        .skip(1)
        .any(|line| line.ends_with(' '))
        || text.ends_with(' ');
    text.contains('\n')
        && !trailing_blank
        && text
            .chars()
            .all(|character| character == '\t' || is_printable(character))
}

/// A literal block. The reference drops one of several leading line breaks; here they all stay,
/// so that the text reads back as it was.
fn write_block(output: &mut String, text: &str, level: usize, place: Place) {
    if place == Place::Field {
        output.push(' ');
    }
    output.push('|');
    if text.starts_with([' ', '\n', '\t']) {
        output.push('2');
    }
    let body = match text.strip_suffix('\n') {
        None => {
            output.push('-');
            text
        }
        Some(body) if body.is_empty() || body.ends_with('\n') => {
            output.push('+');
            body
        }
        Some(body) => body,
    };
    output.push('\n');
    // The block's lines stand one level below what holds it; items already count their dash.
    let level = if place == Place::Item {
        level
    } else {
        level + 1
    };
    for line in body.split('\n') {
        if !line.is_empty() {
            output.extend(std::iter::repeat_n("  ", level));
            output.push_str(line);
        }
        output.push('\n');
    }
}
