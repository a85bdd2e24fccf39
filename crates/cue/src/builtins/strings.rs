//! Package `strings`.

use std::cmp::Ordering;

use super::argument::{
    Outcome, bytes, bytes_result, check_size, int, integer, string, string_list, strings,
    text_result,
};
use super::{BYTES, INT, LIST, STRING, function};
use crate::value::{Failure, Host, Kind, Package, Value};

pub(super) static PACKAGE: Package = Package {
    path: "strings",
    functions: &[
        function("ByteAt", &[BYTES, INT], Kind::INT, byte_at),
        function("ByteSlice", &[BYTES, INT, INT], Kind::BYTES, byte_slice),
        function("Runes", &[STRING], Kind::LIST, runes),
        function("MinRunes", &[STRING, INT], Kind::BOOL, min_runes),
        function("MaxRunes", &[STRING, INT], Kind::BOOL, max_runes),
        function("ToTitle", &[STRING], Kind::STRING, to_title),
        function("ToCamel", &[STRING], Kind::STRING, to_camel),
        function("SliceRunes", &[STRING, INT, INT], Kind::STRING, slice_runes),
        function("Compare", &[STRING, STRING], Kind::INT, compare),
        function("Count", &[STRING, STRING], Kind::INT, count),
        function("Contains", &[STRING, STRING], Kind::BOOL, contains),
        function("ContainsAny", &[STRING, STRING], Kind::BOOL, contains_any),
        function("LastIndex", &[STRING, STRING], Kind::INT, last_index),
        function("IndexAny", &[STRING, STRING], Kind::INT, index_any),
        function("LastIndexAny", &[STRING, STRING], Kind::INT, last_index_any),
        function("SplitN", &[STRING, STRING, INT], Kind::LIST, split_n),
        function(
            "SplitAfterN",
            &[STRING, STRING, INT],
            Kind::LIST,
            split_after_n,
        ),
        function("Split", &[STRING, STRING], Kind::LIST, split),
        function("SplitAfter", &[STRING, STRING], Kind::LIST, split_after),
        function("Fields", &[STRING], Kind::LIST, fields),
        function("Join", &[LIST, STRING], Kind::STRING, join),
        function("HasPrefix", &[STRING, STRING], Kind::BOOL, has_prefix),
        function("HasSuffix", &[STRING, STRING], Kind::BOOL, has_suffix),
        function("Index", &[STRING, STRING], Kind::INT, index),
        function("Repeat", &[STRING, INT], Kind::STRING, repeat),
        function("ToUpper", &[STRING], Kind::STRING, to_upper),
        function("ToLower", &[STRING], Kind::STRING, to_lower),
        function("Trim", &[STRING, STRING], Kind::STRING, trim),
        function("TrimLeft", &[STRING, STRING], Kind::STRING, trim_left),
        function("TrimRight", &[STRING, STRING], Kind::STRING, trim_right),
        function("TrimSpace", &[STRING], Kind::STRING, trim_space),
        function("TrimPrefix", &[STRING, STRING], Kind::STRING, trim_prefix),
        function("TrimSuffix", &[STRING, STRING], Kind::STRING, trim_suffix),
        function(
            "Replace",
            &[STRING, STRING, STRING, INT],
            Kind::STRING,
            replace,
        ),
    ],
    source: "",
};

const OUT_OF_RANGE: &str = "index out of range";

fn byte_at(_: &mut dyn Host, arguments: &[Value]) -> Outcome {
    let position = usize::try_from(int(arguments, 1)?).ok();
    match position.and_then(|position| bytes(arguments, 0).ok()?.get(position)) {
        Some(byte) => integer(i64::from(*byte)),
        None => Err(Failure::error(OUT_OF_RANGE)),
    }
}

/// The two bounds of a slice when `0 <= start <= end`.
fn bounds(arguments: &[Value]) -> Result<std::ops::Range<usize>, Failure> {
    let start = usize::try_from(int(arguments, 1)?);
    let end = usize::try_from(int(arguments, 2)?);
    match (start, end) {
        (Ok(start), Ok(end)) if start <= end => Ok(start..end),
        _ => Err(Failure::error(OUT_OF_RANGE)),
    }
}

fn byte_slice(_: &mut dyn Host, arguments: &[Value]) -> Outcome {
    match bytes(arguments, 0)?.get(bounds(arguments)?) {
        Some(slice) => bytes_result(slice),
        None => Err(Failure::error(OUT_OF_RANGE)),
    }
}

fn runes(_: &mut dyn Host, arguments: &[Value]) -> Outcome {
    let codes = string(arguments, 0)?
        .chars()
        .map(|rune| i64::from(u32::from(rune)));
    Ok(Value::list(codes.map(|code| Value::Number(code.into()))))
}

/// Compares the number of characters with a bound of any sign.
fn compare_length(arguments: &[Value]) -> Result<Ordering, Failure> {
    let length = i64::try_from(string(arguments, 0)?.chars().count()).unwrap_or(i64::MAX);
    Ok(length.cmp(&int(arguments, 1)?))
}

fn min_runes(_: &mut dyn Host, arguments: &[Value]) -> Outcome {
    Ok(Value::Bool(compare_length(arguments)? != Ordering::Less))
}

fn max_runes(_: &mut dyn Host, arguments: &[Value]) -> Outcome {
    Ok(Value::Bool(compare_length(arguments)? != Ordering::Greater))
}

/// One character to one character: where the full mapping needs several, the character stays.
fn upper(character: char) -> char {
    let mut mapped = character.to_uppercase();
    match (mapped.next(), mapped.next()) {
        (Some(single), None) => single,
        _ => character,
    }
}

fn lower(character: char) -> char {
    character.to_lowercase().next().unwrap_or(character)
}

fn map_word_starts(text: &str, map: impl Fn(char) -> char) -> String {
    let mut previous = ' ';
    let convert = |character: char| {
        let converted = if previous.is_whitespace() {
            map(character)
        } else {
            character
        };
        previous = character;
        converted
    };
    text.chars().map(convert).collect()
}

fn to_title(_: &mut dyn Host, arguments: &[Value]) -> Outcome {
    text_result(map_word_starts(string(arguments, 0)?, upper))
}

fn to_camel(_: &mut dyn Host, arguments: &[Value]) -> Outcome {
    text_result(map_word_starts(string(arguments, 0)?, lower))
}

fn slice_runes(_: &mut dyn Host, arguments: &[Value]) -> Outcome {
    let characters: Vec<char> = string(arguments, 0)?.chars().collect();
    match characters.get(bounds(arguments)?) {
        Some(slice) => text_result(slice.iter().collect::<String>()),
        None => Err(Failure::error(OUT_OF_RANGE)),
    }
}

fn compare(_: &mut dyn Host, arguments: &[Value]) -> Outcome {
    integer(match string(arguments, 0)?.cmp(string(arguments, 1)?) {
        Ordering::Less => -1i64,
        Ordering::Equal => 0,
        Ordering::Greater => 1,
    })
}

fn count(_: &mut dyn Host, arguments: &[Value]) -> Outcome {
    let (text, part) = (string(arguments, 0)?, string(arguments, 1)?);
    integer(if part.is_empty() {
        text.chars().count() + 1
    } else {
        text.matches(part).count()
    })
}

fn contains(_: &mut dyn Host, arguments: &[Value]) -> Outcome {
    Ok(Value::Bool(
        string(arguments, 0)?.contains(string(arguments, 1)?),
    ))
}

fn contains_any(_: &mut dyn Host, arguments: &[Value]) -> Outcome {
    let set = string(arguments, 1)?;
    Ok(Value::Bool(
        string(arguments, 0)?.contains(|character| set.contains(character)),
    ))
}

/// A byte position, or -1 for none.
fn position(found: Option<usize>) -> Outcome {
    match found {
        Some(position) => integer(position),
        None => integer(-1i64),
    }
}

fn index(_: &mut dyn Host, arguments: &[Value]) -> Outcome {
    position(string(arguments, 0)?.find(string(arguments, 1)?))
}

fn last_index(_: &mut dyn Host, arguments: &[Value]) -> Outcome {
    position(string(arguments, 0)?.rfind(string(arguments, 1)?))
}

fn index_any(_: &mut dyn Host, arguments: &[Value]) -> Outcome {
    let set = string(arguments, 1)?;
    position(string(arguments, 0)?.find(|character| set.contains(character)))
}

fn last_index_any(_: &mut dyn Host, arguments: &[Value]) -> Outcome {
    let set = string(arguments, 1)?;
    position(string(arguments, 0)?.rfind(|character| set.contains(character)))
}

/// Splits at a separator into at most `limit` parts; an empty separator splits into characters.
fn pieces<'a>(text: &'a str, separator: &str, limit: i64, keep: bool) -> Vec<&'a str> {
    let limit = match limit {
        0 => return Vec::new(),
        limit => usize::try_from(limit).unwrap_or(usize::MAX),
    };
    if separator.is_empty() {
        return characters(text, limit);
    }
    let mut parts = Vec::new();
    let mut rest = text;
    while parts.len() + 1 < limit
        && let Some(found) = rest.find(separator)
    {
        let end = found + separator.len();
        parts.push(&rest[..if keep { end } else { found }]);
        rest = &rest[end..];
    }
    parts.push(rest);
    parts
}

fn characters(text: &str, limit: usize) -> Vec<&str> {
    let mut parts = Vec::new();
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        if parts.len() + 1 == limit {
            parts.push(rest);
            break;
        }
        let (head, tail) = rest.split_at(first.len_utf8());
        parts.push(head);
        rest = tail;
    }
    parts
}

fn split_n(_: &mut dyn Host, arguments: &[Value]) -> Outcome {
    let limit = int(arguments, 2)?;
    Ok(string_list(pieces(
        string(arguments, 0)?,
        string(arguments, 1)?,
        limit,
        false,
    )))
}

fn split_after_n(_: &mut dyn Host, arguments: &[Value]) -> Outcome {
    let limit = int(arguments, 2)?;
    Ok(string_list(pieces(
        string(arguments, 0)?,
        string(arguments, 1)?,
        limit,
        true,
    )))
}

fn split(_: &mut dyn Host, arguments: &[Value]) -> Outcome {
    Ok(string_list(pieces(
        string(arguments, 0)?,
        string(arguments, 1)?,
        -1,
        false,
    )))
}

fn split_after(_: &mut dyn Host, arguments: &[Value]) -> Outcome {
    Ok(string_list(pieces(
        string(arguments, 0)?,
        string(arguments, 1)?,
        -1,
        true,
    )))
}

fn fields(_: &mut dyn Host, arguments: &[Value]) -> Outcome {
    Ok(string_list(string(arguments, 0)?.split_whitespace()))
}

fn join(host: &mut dyn Host, arguments: &[Value]) -> Outcome {
    let items = strings(host, arguments, 0)?;
    let separator = string(arguments, 1)?;
    let size = items.iter().map(|item| item.len() + separator.len()).sum();
    check_size(host, Some(size))?;
    text_result(items.join(separator))
}

fn has_prefix(_: &mut dyn Host, arguments: &[Value]) -> Outcome {
    Ok(Value::Bool(
        string(arguments, 0)?.starts_with(string(arguments, 1)?),
    ))
}

fn has_suffix(_: &mut dyn Host, arguments: &[Value]) -> Outcome {
    Ok(Value::Bool(
        string(arguments, 0)?.ends_with(string(arguments, 1)?),
    ))
}

fn repeat(host: &mut dyn Host, arguments: &[Value]) -> Outcome {
    let text = string(arguments, 0)?;
    let Ok(count) = usize::try_from(int(arguments, 1)?) else {
        return Err(Failure::error("strings: negative Repeat count"));
    };
    check_size(host, text.len().checked_mul(count))?;
    text_result(text.repeat(count))
}

fn to_upper(_: &mut dyn Host, arguments: &[Value]) -> Outcome {
    text_result(string(arguments, 0)?.chars().map(upper).collect::<String>())
}

fn to_lower(_: &mut dyn Host, arguments: &[Value]) -> Outcome {
    text_result(string(arguments, 0)?.chars().map(lower).collect::<String>())
}

fn trim(_: &mut dyn Host, arguments: &[Value]) -> Outcome {
    let set = string(arguments, 1)?;
    text_result(string(arguments, 0)?.trim_matches(|character| set.contains(character)))
}

fn trim_left(_: &mut dyn Host, arguments: &[Value]) -> Outcome {
    let set = string(arguments, 1)?;
    text_result(string(arguments, 0)?.trim_start_matches(|character| set.contains(character)))
}

fn trim_right(_: &mut dyn Host, arguments: &[Value]) -> Outcome {
    let set = string(arguments, 1)?;
    text_result(string(arguments, 0)?.trim_end_matches(|character| set.contains(character)))
}

fn trim_space(_: &mut dyn Host, arguments: &[Value]) -> Outcome {
    text_result(string(arguments, 0)?.trim())
}

fn trim_prefix(_: &mut dyn Host, arguments: &[Value]) -> Outcome {
    let text = string(arguments, 0)?;
    text_result(text.strip_prefix(string(arguments, 1)?).unwrap_or(text))
}

fn trim_suffix(_: &mut dyn Host, arguments: &[Value]) -> Outcome {
    let text = string(arguments, 0)?;
    text_result(text.strip_suffix(string(arguments, 1)?).unwrap_or(text))
}

fn replace(host: &mut dyn Host, arguments: &[Value]) -> Outcome {
    let (text, old, new) = (
        string(arguments, 0)?,
        string(arguments, 1)?,
        string(arguments, 2)?,
    );
    let limit = usize::try_from(int(arguments, 3)?).unwrap_or(usize::MAX);
    let growth = (text.len() + 1).checked_mul(new.len());
    check_size(
        host,
        growth.and_then(|growth| growth.checked_add(text.len())),
    )?;
    text_result(text.replacen(old, new, limit))
}
