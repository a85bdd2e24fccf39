//! Strings.

use bellwether_go::quote;
use bellwether_go::value::{Map, Text, Type, Value};

use super::argument::{any, bytes, int, string, text_of};
use super::cases;
use crate::call::{Call, Failure};
use crate::function::{Entry, function, variadic};

const ANY: Type = Type::Interface;
const INT: Type = Type::INT;
const STRING: Type = Type::String;

type Done = Result<Value, Failure>;

pub(super) const TABLE: &[Entry] = &[
    function("trim", &[STRING], |call, a| {
        call.text(trim_spaces(&string(a, 0)))
    }),
    function("trimAll", &[STRING, STRING], trimmed),
    function("trimall", &[STRING, STRING], trimmed),
    function("trimSuffix", &[STRING, STRING], |call, a| {
        let text = bytes(a, 1);
        call.text(text.strip_suffix(bytes(a, 0)).unwrap_or(text))
    }),
    function("trimPrefix", &[STRING, STRING], |call, a| {
        let text = bytes(a, 1);
        call.text(text.strip_prefix(bytes(a, 0)).unwrap_or(text))
    }),
    function("upper", &[STRING], |call, a| {
        call.text(string(a, 0).chars().map(cases::upper).collect::<String>())
    }),
    function("lower", &[STRING], |call, a| {
        call.text(string(a, 0).chars().map(cases::lower).collect::<String>())
    }),
    function("title", &[STRING], |call, a| {
        call.text(cases::title(&string(a, 0)))
    }),
    function("untitle", &[STRING], |call, a| {
        call.text(cases::untitle(&string(a, 0)))
    }),
    function("swapcase", &[STRING], |call, a| {
        call.text(cases::swap(&string(a, 0)))
    }),
    function("snakecase", &[STRING], |call, a| {
        call.text(cases::connected(&string(a, 0), '_'))
    }),
    function("kebabcase", &[STRING], |call, a| {
        call.text(cases::connected(&string(a, 0), '-'))
    }),
    function("camelcase", &[STRING], |call, a| {
        call.text(cases::pascal(&string(a, 0)))
    }),
    function("initials", &[STRING], |call, a| {
        call.text(cases::initials(&string(a, 0)))
    }),
    function("nospace", &[STRING], |call, a| {
        // Byte by byte, as the original does: what is not ASCII becomes Latin-1 unless nothing goes.
        let text = bytes(a, 0);
        let is_space = |byte: &u8| matches!(byte, 9..=13 | b' ' | 0x85 | 0xa0);
        if !text.iter().any(is_space) {
            return call.text(text);
        }
        let kept = text.iter().filter(|byte| !is_space(byte));
        call.text(kept.map(|byte| char::from(*byte)).collect::<String>())
    }),
    function("trunc", &[INT, STRING], |call, a| {
        let (count, text) = (int(a, 0), bytes(a, 1));
        let size = usize::try_from(count.unsigned_abs()).unwrap_or(usize::MAX);
        call.text(if size >= text.len() {
            text
        } else if count < 0 {
            &text[text.len() - size..]
        } else {
            &text[..size]
        })
    }),
    function("abbrev", &[INT, STRING], |call, a| {
        abbreviated(call, 0, int(a, 0), bytes(a, 1))
    }),
    function("abbrevboth", &[INT, INT, STRING], |call, a| {
        let (left, right) = (int(a, 0), int(a, 1));
        if right < 4 || (left > 0 && right < 7) {
            return Ok(any(a, 2).clone());
        }
        abbreviated(call, left, right, bytes(a, 2))
    }),
    function("substr", &[INT, INT, STRING], substring),
    function("repeat", &[INT, STRING], |call, a| {
        let (count, text) = (int(a, 0), bytes(a, 1));
        let Ok(count) = usize::try_from(count) else {
            return Err("strings: negative Repeat count".into());
        };
        call.bytes(text.len().saturating_mul(count))?;
        Ok(Value::string(text.repeat(count)))
    }),
    function("contains", &[STRING, STRING], |_, a| {
        Ok(Value::Bool(find(bytes(a, 1), bytes(a, 0)).is_some()))
    }),
    function("hasPrefix", &[STRING, STRING], |_, a| {
        Ok(Value::Bool(bytes(a, 1).starts_with(bytes(a, 0))))
    }),
    function("hasSuffix", &[STRING, STRING], |_, a| {
        Ok(Value::Bool(bytes(a, 1).ends_with(bytes(a, 0))))
    }),
    variadic("quote", &[ANY], |call, a| {
        quoted(call, a, |text| {
            quote::quote_bytes(text.as_bytes()).into_bytes()
        })
    }),
    variadic("squote", &[ANY], |call, a| {
        quoted(call, a, |text| [b"'", text.as_bytes(), b"'"].concat())
    }),
    variadic("cat", &[ANY], |call, a| {
        quoted(call, a, |text| text.as_bytes().to_vec())
    }),
    function("indent", &[INT, STRING], |call, a| {
        indented(call, "", int(a, 0), bytes(a, 1))
    }),
    function("nindent", &[INT, STRING], |call, a| {
        indented(call, "\n", int(a, 0), bytes(a, 1))
    }),
    function("replace", &[STRING, STRING, STRING], |call, a| {
        let replaced = replace(call, bytes(a, 2), bytes(a, 0), bytes(a, 1))?;
        Ok(Value::string(replaced))
    }),
    function("plural", &[STRING, STRING, INT], |_, a| {
        let chosen = usize::from(int(a, 2) != 1);
        Ok(any(a, chosen).clone())
    }),
    function("toString", &[ANY], |call, a| {
        Ok(Value::String(text_of(call, any(a, 0))?))
    }),
    function("split", &[STRING, STRING], |call, a| {
        let parts = split(call, bytes(a, 1), bytes(a, 0), None)?;
        Ok(numbered(parts))
    }),
    function("splitn", &[STRING, INT, STRING], |call, a| {
        let limit = usize::try_from(int(a, 1)).ok();
        let parts = split(call, bytes(a, 2), bytes(a, 0), limit)?;
        Ok(numbered(parts))
    }),
    function("splitList", &[STRING, STRING], |call, a| {
        let parts = split(call, bytes(a, 1), bytes(a, 0), None)?;
        Ok(Value::strings(parts))
    }),
    function("wrap", &[INT, STRING], |call, a| {
        wrapped(call, bytes(a, 1), int(a, 0), b"\n", false)
    }),
    function("wrapWith", &[INT, STRING, STRING], |call, a| {
        let newline: &[u8] = match bytes(a, 1) {
            b"" => b"\n",
            other => other,
        };
        wrapped(call, bytes(a, 2), int(a, 0), newline, true)
    }),
];

/// Go's blanks: those of Unicode.
fn trim_spaces(text: &str) -> &str {
    text.trim_matches(|c: char| c.is_whitespace())
}

fn trimmed(call: &mut Call<'_>, a: &[Value]) -> Done {
    let (set, text) = (string(a, 0), string(a, 1));
    call.steps(text.len().min(1 << 20).saturating_mul(set.len()) / 64)?;
    call.text(text.trim_matches(|c: char| set.contains(c)))
}

/// Where a part begins in a text.
pub(super) fn find(text: &[u8], part: &[u8]) -> Option<usize> {
    if part.is_empty() {
        return Some(0);
    }
    memchr::memmem::find(text, part)
}

fn abbreviated(call: &mut Call<'_>, offset: i64, width: i64, text: &[u8]) -> Done {
    let Ok(width) = usize::try_from(width) else {
        return call.text(text);
    };
    if width < 4 || text.len() <= width {
        return call.text(text);
    }
    let mut offset = usize::try_from(offset).unwrap_or(0).min(text.len());
    if text.len() - offset < width - 3 {
        offset = text.len() - (width - 3);
    }
    if offset <= 4 {
        return call.text([&text[..width - 3], b"..."].concat());
    }
    if width < 7 {
        return call.text("");
    }
    if offset + width - 3 < text.len() {
        // What is left is cut on the right as well.
        let inner = &text[offset..];
        let short = &inner[..(width - 6).min(inner.len())];
        return call.text([b"...", short, b"..."].concat());
    }
    call.text([b"...", &text[text.len() - (width - 3)..]].concat())
}

fn substring(call: &mut Call<'_>, a: &[Value]) -> Done {
    let (start, end, text) = (int(a, 0), int(a, 1), bytes(a, 2));
    let length = i64::try_from(text.len()).unwrap_or(i64::MAX);
    let (from, to) = if start < 0 {
        (0, end)
    } else if end < 0 || end > length {
        (start, length)
    } else {
        (start, end)
    };
    if to < 0 || to > length {
        return Err(format!(
            "runtime error: slice bounds out of range [:{to}]{}",
            with_length(to, length)
        )
        .into());
    }
    if from > to {
        return Err(format!("runtime error: slice bounds out of range [{from}:{to}]").into());
    }
    let (from, to) = (usize::try_from(from), usize::try_from(to));
    call.text(&text[from.unwrap_or(0)..to.unwrap_or(0)])
}

fn with_length(to: i64, length: i64) -> String {
    if to < 0 {
        String::new()
    } else {
        format!(" with length {length}")
    }
}

/// The texts of all arguments that are not nil, each written by a function, with blanks between.
fn quoted(call: &mut Call<'_>, a: &[Value], write: fn(&Text) -> Vec<u8>) -> Done {
    let mut out = Vec::new();
    let mut is_first = true;
    for value in a.iter().filter(|value| !value.is_nil()) {
        if !std::mem::take(&mut is_first) {
            out.push(b' ');
        }
        let text = text_of(call, value)?;
        call.bytes(text.len())?;
        out.extend(write(&text));
    }
    call.text(out)
}

fn indented(call: &mut Call<'_>, before: &str, count: i64, text: &[u8]) -> Done {
    let Ok(count) = usize::try_from(count) else {
        return Err("strings: negative Repeat count".into());
    };
    let lines = text.split(|byte| *byte == b'\n').count();
    call.bytes(lines.saturating_mul(count).saturating_add(text.len() + 1))?;
    let mut out = Vec::with_capacity(text.len() + lines * count + before.len());
    out.extend_from_slice(before.as_bytes());
    for (index, line) in text.split(|byte| *byte == b'\n').enumerate() {
        if index > 0 {
            out.push(b'\n');
        }
        out.extend(std::iter::repeat_n(b' ', count));
        out.extend_from_slice(line);
    }
    Ok(Value::string(out))
}

/// Replaces all occurrences; an empty text occurs before every character and at the end.
pub(super) fn replace(
    call: &mut Call<'_>,
    text: &[u8],
    old: &[u8],
    new: &[u8],
) -> Result<Vec<u8>, Failure> {
    if old.is_empty() {
        let lossy = String::from_utf8_lossy(text);
        call.bytes(
            text.len()
                .saturating_add(new.len().saturating_mul(lossy.len() + 1)),
        )?;
        let mut out = new.to_vec();
        for character in lossy.chars() {
            out.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes());
            out.extend_from_slice(new);
        }
        return Ok(out);
    }
    let mut out = Vec::new();
    let mut rest = text;
    while let Some(at) = find(rest, old) {
        call.bytes(at + new.len() + 1)?;
        out.extend_from_slice(&rest[..at]);
        out.extend_from_slice(new);
        rest = &rest[at + old.len()..];
    }
    call.bytes(rest.len())?;
    out.extend_from_slice(rest);
    Ok(out)
}

/// Parts between separators, at most `limit` of them; without a separator, characters.
fn split(
    call: &mut Call<'_>,
    text: &[u8],
    separator: &[u8],
    limit: Option<usize>,
) -> Result<Vec<Text>, Failure> {
    let limit = limit.unwrap_or(usize::MAX);
    let mut parts = Vec::new();
    let mut rest = text;
    if limit == 0 {
        return Ok(parts);
    }
    while parts.len() + 1 < limit {
        call.bytes(size_of::<Value>())?;
        if separator.is_empty() {
            let length = first_character(rest);
            if length == 0 || length == rest.len() {
                break;
            }
            parts.push(Text::from(&rest[..length]));
            rest = &rest[length..];
        } else {
            let Some(at) = find(rest, separator) else {
                break;
            };
            parts.push(Text::from(&rest[..at]));
            rest = &rest[at + separator.len()..];
        }
    }
    call.bytes(text.len())?;
    if !(separator.is_empty() && text.is_empty()) {
        parts.push(Text::from(rest));
    }
    Ok(parts)
}

fn first_character(bytes: &[u8]) -> usize {
    let head = &bytes[..bytes.len().min(4)];
    match head.utf8_chunks().next() {
        Some(chunk) => match chunk.valid().chars().next() {
            Some(character) => character.len_utf8(),
            None => 1,
        },
        None => 0,
    }
}

/// A map from `_0`, `_1`, … to strings.
fn numbered(parts: Vec<Text>) -> Value {
    let entries = parts.into_iter().enumerate();
    let entries =
        entries.map(|(index, part)| (Text::from(format!("_{index}")), Value::String(part)));
    Value::Map(Map::new(&Type::String, entries.collect()))
}

/// Breaks a line at blanks so that parts are at most `width` long.
fn wrapped(
    call: &mut Call<'_>,
    text: &[u8],
    width: i64,
    newline: &[u8],
    breaks_words: bool,
) -> Done {
    let width = usize::try_from(width).unwrap_or(1).max(1);
    let mut out = Vec::new();
    let mut offset = 0;
    while text.len() - offset > width {
        call.bytes(newline.len() + 8)?;
        if text[offset] == b' ' {
            offset += 1;
            continue;
        }
        let end = offset + width + 1;
        let window = &text[offset..end];
        if let Some(space) = window.iter().rposition(|byte| *byte == b' ') {
            out.extend_from_slice(&text[offset..offset + space]);
            out.extend_from_slice(newline);
            offset += space + 1;
        } else if breaks_words {
            out.extend_from_slice(&text[offset..offset + width]);
            out.extend_from_slice(newline);
            offset += width;
        } else {
            let space = text[offset + width..].iter().position(|byte| *byte == b' ');
            let Some(at) = space else { break };
            out.extend_from_slice(&text[offset..offset + width + at]);
            out.extend_from_slice(newline);
            offset += width + at + 1;
        }
    }
    out.extend_from_slice(&text[offset..]);
    call.text(out)
}
