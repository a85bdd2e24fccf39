//! Operations on text. Positions count code points.

use super::format_string::format_string;
use super::{check_text_size, int, list, text};
use crate::declaration::{Functions, Outcome};
use crate::error::EvalError;
use crate::value::{Value, display};

pub(super) fn declare(functions: &mut Functions) {
    declare_positions(functions);
    declare_changes(functions);
    functions.add(
        "string_split_string",
        "string::split(string) -> list(string)",
        |a| Ok(split(text(a, 0)?, text(a, 1)?, -1)),
    );
    functions.add(
        "string_split_string_int",
        "string::split(string, int) -> list(string)",
        |a| Ok(split(text(a, 0)?, text(a, 1)?, int(a, 2)?)),
    );
    functions.add("list_join", "list(string)::join() -> string", |a| {
        join(a, "")
    });
    functions.add(
        "list_join_string",
        "list(string)::join(string) -> string",
        |a| join(a, text(a, 1)?),
    );
    functions.add(
        "string_format",
        "string::format(list(dyn)) -> string",
        |a| format_string(text(a, 0)?, list(a, 1)?).map(Value::text),
    );
    functions.add("strings_quote", "strings.quote(string) -> string", |a| {
        Ok(Value::text(quote(text(a, 0)?)))
    });
}

fn declare_positions(functions: &mut Functions) {
    functions.add("string_char_at_int", "string::charAt(int) -> string", |a| {
        char_at(text(a, 0)?, int(a, 1)?)
    });
    functions.add(
        "string_index_of_string",
        "string::indexOf(string) -> int",
        |a| index_of(text(a, 0)?, text(a, 1)?, 0),
    );
    functions.add(
        "string_index_of_string_int",
        "string::indexOf(string, int) -> int",
        |a| index_of(text(a, 0)?, text(a, 1)?, int(a, 2)?),
    );
    functions.add(
        "string_last_index_of_string",
        "string::lastIndexOf(string) -> int",
        |a| {
            let (text, part) = (text(a, 0)?, text(a, 1)?);
            let length = characters(text);
            if part.is_empty() {
                return Ok(Value::Int(length));
            }
            if text.len() < part.len() {
                return Ok(Value::Int(-1));
            }
            last_index_of(text, part, length - 1)
        },
    );
    functions.add(
        "string_last_index_of_string_int",
        "string::lastIndexOf(string, int) -> int",
        |a| last_index_of(text(a, 0)?, text(a, 1)?, int(a, 2)?),
    );
    functions.add(
        "string_substring_int",
        "string::substring(int) -> string",
        |a| {
            let text = text(a, 0)?;
            substring(text, int(a, 1)?, characters(text))
        },
    );
    functions.add(
        "string_substring_int_int",
        "string::substring(int, int) -> string",
        |a| {
            let (start, end) = (int(a, 1)?, int(a, 2)?);
            if start > end {
                return Err(EvalError::failed(format!(
                    "invalid substring range. start: {start}, end: {end}"
                )));
            }
            substring(text(a, 0)?, start, end)
        },
    );
}

fn declare_changes(functions: &mut Functions) {
    functions.add(
        "string_lower_ascii",
        "string::lowerAscii() -> string",
        |a| Ok(Value::text(text(a, 0)?.to_ascii_lowercase())),
    );
    functions.add(
        "string_upper_ascii",
        "string::upperAscii() -> string",
        |a| Ok(Value::text(text(a, 0)?.to_ascii_uppercase())),
    );
    functions.add("string_trim", "string::trim() -> string", |a| {
        Ok(Value::text(text(a, 0)?.trim()))
    });
    functions.add(
        "string_replace_string_string",
        "string::replace(string, string) -> string",
        |a| replace(text(a, 0)?, text(a, 1)?, text(a, 2)?, -1),
    );
    functions.add(
        "string_replace_string_string_int",
        "string::replace(string, string, int) -> string",
        |a| replace(text(a, 0)?, text(a, 1)?, text(a, 2)?, int(a, 3)?),
    );
}

pub(super) fn declare_reverse(functions: &mut Functions) {
    functions.add("string_reverse", "string::reverse() -> string", |a| {
        Ok(Value::text(text(a, 0)?.chars().rev().collect::<String>()))
    });
}

fn characters(text: &str) -> i64 {
    i64::try_from(crate::value::character_count(text)).unwrap_or(i64::MAX)
}

fn out_of_range(index: i64) -> EvalError {
    EvalError::failed(format!("index out of range: {index}"))
}

/// The byte where the character `index` starts, or the end of the text just behind the last.
fn offset(text: &str, index: i64) -> Result<usize, EvalError> {
    let count = usize::try_from(index).map_err(|_| out_of_range(index))?;
    if text.is_ascii() {
        return (count <= text.len())
            .then_some(count)
            .ok_or_else(|| out_of_range(index));
    }
    text.char_indices()
        .map(|(offset, _)| offset)
        .chain([text.len()])
        .nth(count)
        .ok_or_else(|| out_of_range(index))
}

fn char_at<'a>(text: &str, index: i64) -> Outcome<'a> {
    let start = offset(text, index)?;
    let character = text[start..].chars().next();
    Ok(Value::text(character.map(String::from).unwrap_or_default()))
}

fn substring<'a>(text: &str, start: i64, end: i64) -> Outcome<'a> {
    let start = offset(text, start)?;
    let end = offset(text, end)?;
    Ok(Value::text(&text[start..end]))
}

fn index_of<'a>(text: &str, part: &str, from: i64) -> Outcome<'a> {
    if part.is_empty() {
        return Ok(Value::Int(from));
    }
    if from < 0 {
        return Err(out_of_range(from));
    }
    let Ok(start) = offset(text, from) else {
        return Ok(Value::Int(-1));
    };
    Ok(Value::Int(match text[start..].find(part) {
        Some(found) => from + characters(&text[start..start + found]),
        None => -1,
    }))
}

fn last_index_of<'a>(text: &str, part: &str, from: i64) -> Outcome<'a> {
    if part.is_empty() {
        return Ok(Value::Int(from));
    }
    if from < 0 {
        return Err(out_of_range(from));
    }
    if from >= characters(text) {
        return Ok(Value::Int(-1));
    }
    let start = offset(text, from)?;
    // The last match that begins at or before the given character.
    let end = (start + part.len()).min(text.len());
    let end = (end..=text.len())
        .find(|end| text.is_char_boundary(*end))
        .unwrap_or(text.len());
    Ok(Value::Int(match text[..end].rfind(part) {
        Some(found) if found <= start => characters(&text[..found]),
        Some(_) | None => -1,
    }))
}

fn replace<'a>(text: &str, from: &str, to: &str, limit: i64) -> Outcome<'a> {
    let limit = usize::try_from(limit).unwrap_or(usize::MAX);
    let count = if from.is_empty() {
        text.chars().count() + 1
    } else {
        text.matches(from).count()
    }
    .min(limit);
    check_text_size(text.len().saturating_add(count.saturating_mul(to.len())))?;
    Ok(Value::text(text.replacen(from, to, limit)))
}

/// Go's `SplitN`: an empty separator splits characters; a limit of 0 gives nothing.
fn split<'a>(text: &str, separator: &str, limit: i64) -> Value<'a> {
    let limit = usize::try_from(limit).unwrap_or(usize::MAX);
    let mut parts: Vec<Value<'a>> = Vec::new();
    if limit == 0 {
        return Value::list(parts);
    }
    if separator.is_empty() {
        let mut rest = text;
        while let Some(character) = rest.chars().next() {
            if parts.len() + 1 == limit {
                break;
            }
            let (head, tail) = rest.split_at(character.len_utf8());
            parts.push(Value::text(head));
            rest = tail;
        }
        if !rest.is_empty() {
            parts.push(Value::text(rest));
        }
    } else {
        parts.extend(text.splitn(limit, separator).map(Value::text));
    }
    Value::list(parts)
}

fn join<'a>(arguments: &[Value<'a>], separator: &str) -> Outcome<'a> {
    let mut out = String::new();
    for (index, item) in list(arguments, 0)?.iter().enumerate() {
        if index > 0 {
            out.push_str(separator);
        }
        match item? {
            Value::String(text) => out.push_str(&text),
            other => {
                return Err(EvalError::failed(format!(
                    "join: invalid input: {}",
                    display(&other)
                )));
            }
        }
        check_text_size(out.len())?;
    }
    Ok(Value::text(out))
}

/// A double-quoted literal in which only the usual control characters are escaped.
fn quote(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    out.push('"');
    for character in text.chars() {
        match character {
            '\u{7}' => out.push_str("\\a"),
            '\u{8}' => out.push_str("\\b"),
            '\u{c}' => out.push_str("\\f"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            '\u{b}' => out.push_str("\\v"),
            '\\' => out.push_str("\\\\"),
            '"' => out.push_str("\\\""),
            other => out.push(other),
        }
    }
    out.push('"');
    out
}
