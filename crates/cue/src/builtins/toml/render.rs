//! Writes values as TOML: plain keys first, then tables, then tables of arrays.

use std::fmt::Write as _;
use std::sync::Arc;

use crate::value::Value;

/// Writes a struct as a document.
pub(super) fn write(value: &Value) -> Result<String, String> {
    let Value::Struct(fields) = value else {
        return Err(format!(
            "toml: cannot encode {} as a document",
            value.kind()
        ));
    };
    let mut output = String::new();
    write_table(&mut output, fields, &mut Vec::new())?;
    Ok(output)
}

type Fields = [(Arc<str>, Value)];

/// Whether a value is written under a header of its own.
fn is_table(value: &Value) -> bool {
    match value {
        Value::Struct(_) => true,
        Value::List(items) => {
            !items.is_empty() && items.iter().all(|item| matches!(item, Value::Struct(_)))
        }
        _ => false,
    }
}

fn write_table(output: &mut String, fields: &Fields, path: &mut Vec<String>) -> Result<(), String> {
    for (label, value) in fields.iter().filter(|(_, value)| !is_table(value)) {
        let _ = write!(output, "{} = ", key(label));
        write_inline(output, value)?;
        output.push('\n');
    }
    for (label, value) in fields.iter().filter(|(_, value)| is_table(value)) {
        path.push(key(label));
        match value {
            Value::Struct(inner) => {
                // A table that only holds tables needs no header of its own.
                let header = inner.is_empty() || inner.iter().any(|(_, value)| !is_table(value));
                if header {
                    start_section(output);
                    let _ = writeln!(output, "[{}]", path.join("."));
                }
                write_table(output, inner, path)?;
            }
            Value::List(items) => {
                for item in items.iter() {
                    start_section(output);
                    let _ = writeln!(output, "[[{}]]", path.join("."));
                    if let Value::Struct(inner) = item {
                        write_table(output, inner, path)?;
                    }
                }
            }
            _ => {}
        }
        path.pop();
    }
    Ok(())
}

fn start_section(output: &mut String) {
    if !output.is_empty() {
        output.push('\n');
    }
}

fn key(label: &str) -> String {
    let bare = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
    if !label.is_empty() && label.bytes().all(bare) {
        label.to_owned()
    } else {
        quoted(label)
    }
}

/// Single quotes unless the text needs escapes.
fn quoted(text: &str) -> String {
    let literal = !text.contains('\'') && !text.chars().any(|c| c.is_control() && c != '\t');
    if literal {
        return format!("'{text}'");
    }
    let mut output = String::from("\"");
    for character in text.chars() {
        match character {
            '"' => output.push_str("\\\""),
            '\\' => output.push_str("\\\\"),
            '\n' => output.push_str("\\n"),
            '\r' => output.push_str("\\r"),
            '\t' => output.push_str("\\t"),
            '\u{8}' => output.push_str("\\b"),
            '\u{c}' => output.push_str("\\f"),
            _ if character.is_control() => {
                let _ = write!(output, "\\u{:04X}", u32::from(character));
            }
            _ => output.push(character),
        }
    }
    output.push('"');
    output
}

fn write_inline(output: &mut String, value: &Value) -> Result<(), String> {
    match value {
        Value::Null => return Err("toml: cannot encode null".to_owned()),
        Value::Opaque(_) => return Err("toml: cannot encode a value that is not concrete".into()),
        Value::Bool(value) => output.push_str(if *value { "true" } else { "false" }),
        Value::Number(number) if number.is_int() => {
            let _ = write!(output, "{number}");
        }
        Value::Number(number) => {
            let text = number.to_source();
            output.push_str(&text);
        }
        Value::String(text) => output.push_str(&quoted(text)),
        Value::Bytes(bytes) => output.push_str(&quoted(&String::from_utf8_lossy(bytes))),
        Value::List(items) => {
            output.push('[');
            for (position, item) in items.iter().enumerate() {
                if position > 0 {
                    output.push_str(", ");
                }
                write_inline(output, item)?;
            }
            output.push(']');
        }
        Value::Struct(fields) => {
            output.push('{');
            for (position, (label, field)) in fields.iter().enumerate() {
                if position > 0 {
                    output.push_str(", ");
                }
                let _ = write!(output, "{} = ", key(label));
                write_inline(output, field)?;
            }
            output.push('}');
        }
    }
    Ok(())
}
