//! Regular expressions.

use bellwether_go::quote;
use bellwether_go::regexp::{self, Regex};
use bellwether_go::value::{List, Type, Value};

use super::argument::{bytes, int, string};
use crate::call::{Call, Failure};
use crate::function::{Entry, function};

const INT: Type = Type::INT;
const STRING: Type = Type::String;

type Done = Result<Value, Failure>;

pub(super) const TABLE: &[Entry] = &[
    function("regexMatch", &[STRING, STRING], |call, a| {
        match compiled(call, a) {
            Ok(regex) => matched(call, &regex, a),
            Err(Failure::Message(_)) => Ok(Value::Bool(false)),
            Err(exhausted) => Err(exhausted),
        }
    }),
    function("mustRegexMatch", &[STRING, STRING], |call, a| {
        let regex = compiled(call, a)?;
        matched(call, &regex, a)
    }),
    function("regexFind", &[STRING, STRING], |call, a| {
        let regex = must(call, a)?;
        found(call, &regex, a)
    }),
    function("mustRegexFind", &[STRING, STRING], |call, a| {
        let regex = compiled(call, a)?;
        found(call, &regex, a)
    }),
    function("regexFindAll", &[STRING, STRING, INT], |call, a| {
        let regex = must(call, a)?;
        found_all(call, &regex, a)
    }),
    function("mustRegexFindAll", &[STRING, STRING, INT], |call, a| {
        let regex = compiled(call, a)?;
        found_all(call, &regex, a)
    }),
    function("regexReplaceAll", &[STRING, STRING, STRING], |call, a| {
        let regex = must(call, a)?;
        replaced(call, &regex, a, true)
    }),
    function(
        "mustRegexReplaceAll",
        &[STRING, STRING, STRING],
        |call, a| {
            let regex = compiled(call, a)?;
            replaced(call, &regex, a, true)
        },
    ),
    function(
        "regexReplaceAllLiteral",
        &[STRING, STRING, STRING],
        |call, a| {
            let regex = must(call, a)?;
            replaced(call, &regex, a, false)
        },
    ),
    function(
        "mustRegexReplaceAllLiteral",
        &[STRING, STRING, STRING],
        |call, a| {
            let regex = compiled(call, a)?;
            replaced(call, &regex, a, false)
        },
    ),
    function("regexSplit", &[STRING, STRING, INT], |call, a| {
        let regex = must(call, a)?;
        split(call, &regex, a)
    }),
    function("mustRegexSplit", &[STRING, STRING, INT], |call, a| {
        let regex = compiled(call, a)?;
        split(call, &regex, a)
    }),
    function("regexQuoteMeta", &[STRING], |call, a| {
        call.text(regexp::quote_meta(bytes(a, 0)))
    }),
];

fn compiled(call: &mut Call<'_>, a: &[Value]) -> Result<Regex, Failure> {
    call.regex(&string(a, 0))
}

/// The functions without `must` panic, with other words.
fn must(call: &mut Call<'_>, a: &[Value]) -> Result<Regex, Failure> {
    compiled(call, a).map_err(|failure| match failure {
        Failure::Message(message) => {
            let pattern = string(a, 0);
            let shown = if quote::can_backquote(pattern.as_bytes()) {
                format!("`{pattern}`")
            } else {
                quote::quote(&pattern)
            };
            Failure::Message(format!("regexp: Compile({shown}): {message}"))
        }
        exhausted @ Failure::Exhausted(_) => exhausted,
    })
}

/// Matching takes time linear in the text.
fn searching(call: &mut Call<'_>, text: &[u8]) -> Result<(), Failure> {
    call.steps(text.len() / 8 + 1)
}

fn matched(call: &mut Call<'_>, regex: &Regex, a: &[Value]) -> Done {
    searching(call, bytes(a, 1))?;
    Ok(Value::Bool(regex.is_match_bytes(bytes(a, 1))))
}

fn found(call: &mut Call<'_>, regex: &Regex, a: &[Value]) -> Done {
    let text = bytes(a, 1);
    searching(call, text)?;
    let found = regex.matches(text).next();
    call.text(found.map_or(&b""[..], |range| &text[range]))
}

fn found_all(call: &mut Call<'_>, regex: &Regex, a: &[Value]) -> Done {
    let text = bytes(a, 1);
    searching(call, text)?;
    let limit = usize::try_from(int(a, 2)).unwrap_or(usize::MAX);
    let mut parts = Vec::new();
    for range in regex.matches(text).take(limit) {
        call.bytes(range.len() + size_of::<Value>())?;
        parts.push(&text[range]);
    }
    if parts.is_empty() {
        return Ok(Value::List(List::nil(&Type::String)));
    }
    Ok(Value::strings(parts))
}

fn replaced(call: &mut Call<'_>, regex: &Regex, a: &[Value], expands: bool) -> Done {
    let (text, by) = (bytes(a, 1), bytes(a, 2));
    searching(call, text)?;
    // Each match may copy every group that it refers to.
    let references = 1 + by.iter().filter(|byte| expands && **byte == b'$').count();
    let mut matches = 0;
    for range in regex.matches(text) {
        matches += 1;
        call.bytes(
            range
                .len()
                .saturating_mul(references)
                .saturating_add(by.len()),
        )?;
    }
    if matches == 0 {
        return call.text(text);
    }
    call.bytes(text.len())?;
    Ok(Value::string(regex.replace_all_bytes(text, by, expands)))
}

fn split(call: &mut Call<'_>, regex: &Regex, a: &[Value]) -> Done {
    let (pattern, text, limit) = (bytes(a, 0), bytes(a, 1), int(a, 2));
    searching(call, text)?;
    if limit == 0 {
        return Ok(Value::List(List::nil(&Type::String)));
    }
    if !pattern.is_empty() && text.is_empty() {
        return Ok(Value::strings([""]));
    }
    let limit = usize::try_from(limit).unwrap_or(usize::MAX);
    let mut parts = Vec::new();
    let (mut begin, mut end) = (0, 0);
    for range in regex.matches(text).take(limit) {
        if parts.len() == limit - 1 {
            break;
        }
        call.bytes(size_of::<Value>() + range.start - begin.min(range.start))?;
        end = range.start;
        if range.end != 0 {
            parts.push(&text[begin..end]);
        }
        begin = range.end;
    }
    if end != text.len() {
        parts.push(&text[begin..]);
    }
    Ok(Value::strings(parts))
}
