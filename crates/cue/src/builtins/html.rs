//! Package `html`.

use super::argument::{Outcome, string, text_result};
use super::{STRING, function};
use crate::value::{Host, Kind, Package, Value};

pub(super) static PACKAGE: Package = Package {
    path: "html",
    functions: &[
        function("Escape", &[STRING], Kind::STRING, escape),
        function("Unescape", &[STRING], Kind::STRING, unescape),
    ],
    source: "",
};

/// Replaces the five characters that matter in HTML.
fn escape_text(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '&' => escaped.push_str("&amp;"),
            '\'' => escaped.push_str("&#39;"),
            '"' => escaped.push_str("&#34;"),
            _ => escaped.push(character),
        }
    }
    escaped
}

fn escape(_: &mut dyn Host, arguments: &[Value]) -> Outcome {
    text_result(escape_text(string(arguments, 0)?))
}

fn unescape(_: &mut dyn Host, arguments: &[Value]) -> Outcome {
    let mut rest = string(arguments, 0)?;
    let mut text = String::with_capacity(rest.len());
    while let Some(start) = rest.find('&') {
        text.push_str(&rest[..start]);
        rest = &rest[start..];
        let (character, length) = entity(rest).unwrap_or(('&', 1));
        text.push(character);
        rest = &rest[length..];
    }
    text.push_str(rest);
    text_result(text)
}

/// The character of a reference at the start of the text and the length of the reference.
fn entity(text: &str) -> Option<(char, usize)> {
    let end = text.bytes().skip(1).position(|byte| byte == b';')? + 1;
    let body = &text[1..end];
    let character = match body.strip_prefix('#') {
        Some(number) => {
            let code = match number.strip_prefix(['x', 'X']) {
                Some(digits) => u32::from_str_radix(digits, 16).ok()?,
                None => number.parse().ok()?,
            };
            match code {
                0 => char::REPLACEMENT_CHARACTER,
                code => char::from_u32(code).unwrap_or(char::REPLACEMENT_CHARACTER),
            }
        }
        None => NAMES.iter().find(|(name, _)| *name == body)?.1,
    };
    Some((character, end + 1))
}

/// The named references of HTML 4 that appear in practice; others stay as they are.
const NAMES: &[(&str, char)] = &[
    ("lt", '<'),
    ("gt", '>'),
    ("amp", '&'),
    ("quot", '"'),
    ("apos", '\''),
    ("nbsp", '\u{a0}'),
    ("copy", '©'),
    ("reg", '®'),
    ("trade", '™'),
    ("hellip", '…'),
    ("mdash", '—'),
    ("ndash", '–'),
    ("lsquo", '‘'),
    ("rsquo", '’'),
    ("ldquo", '“'),
    ("rdquo", '”'),
    ("bull", '•'),
    ("middot", '·'),
    ("laquo", '«'),
    ("raquo", '»'),
    ("deg", '°'),
    ("plusmn", '±'),
    ("times", '×'),
    ("divide", '÷'),
    ("micro", 'µ'),
    ("para", '¶'),
    ("sect", '§'),
    ("cent", '¢'),
    ("pound", '£'),
    ("yen", '¥'),
    ("euro", '€'),
    ("szlig", 'ß'),
    ("agrave", 'à'),
    ("aacute", 'á'),
    ("acirc", 'â'),
    ("atilde", 'ã'),
    ("auml", 'ä'),
    ("aring", 'å'),
    ("aelig", 'æ'),
    ("ccedil", 'ç'),
    ("egrave", 'è'),
    ("eacute", 'é'),
    ("ecirc", 'ê'),
    ("euml", 'ë'),
    ("igrave", 'ì'),
    ("iacute", 'í'),
    ("icirc", 'î'),
    ("iuml", 'ï'),
    ("ntilde", 'ñ'),
    ("ograve", 'ò'),
    ("oacute", 'ó'),
    ("ocirc", 'ô'),
    ("otilde", 'õ'),
    ("ouml", 'ö'),
    ("oslash", 'ø'),
    ("ugrave", 'ù'),
    ("uacute", 'ú'),
    ("ucirc", 'û'),
    ("uuml", 'ü'),
    ("larr", '←'),
    ("uarr", '↑'),
    ("rarr", '→'),
    ("darr", '↓'),
    ("ne", '≠'),
    ("le", '≤'),
    ("ge", '≥'),
    ("infin", '∞'),
    ("alpha", 'α'),
    ("beta", 'β'),
    ("gamma", 'γ'),
    ("delta", 'δ'),
    ("pi", 'π'),
    ("sigma", 'σ'),
    ("omega", 'ω'),
];
