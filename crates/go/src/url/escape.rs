//! Percent escapes of the parts of a URL.

use std::fmt::Write as _;

use crate::quote::quote;

/// The part of a URL in which a text stands. It decides which bytes are escaped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Part {
    Path,
    PathSegment,
    Query,
    User,
    Host,
    Zone,
    Fragment,
}

impl Part {
    fn is_host(self) -> bool {
        matches!(self, Self::Host | Self::Zone)
    }

    /// Whether a byte stands for itself in this part.
    pub(super) fn keeps(self, byte: u8) -> bool {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'~' => true,
            b'!' | b'$' | b'&' | b'\'' | b'(' | b')' | b'*' | b'+' | b',' | b';' | b'=' | b':'
            | b'[' | b']' | b'<' | b'>' | b'"'
                if self.is_host() =>
            {
                true
            }
            b'$' | b'&' | b'+' | b',' | b'/' | b':' | b';' | b'=' | b'?' | b'@' => match self {
                Self::Path => byte != b'?',
                Self::PathSegment => !matches!(byte, b'/' | b';' | b',' | b'?'),
                Self::User => !matches!(byte, b'@' | b'/' | b'?' | b':'),
                Self::Fragment => true,
                Self::Query | Self::Host | Self::Zone => false,
            },
            b'!' | b'(' | b')' | b'*' => self == Self::Fragment,
            _ => false,
        }
    }
}

/// Escapes a text for one segment of a path: `url.PathEscape`.
pub fn path_escape(text: &str) -> String {
    escape(text.as_bytes(), Part::PathSegment)
}

/// Undoes [`path_escape`]: `url.PathUnescape`.
pub fn path_unescape(text: &str) -> Result<String, String> {
    unescape_text(text, Part::PathSegment)
}

/// Undoes [`path_escape`], to bytes that need not be UTF-8.
pub fn path_unescape_bytes(text: &str) -> Result<Vec<u8>, String> {
    unescape(text, Part::PathSegment)
}

/// Escapes a text for a key or value of a query: `url.QueryEscape`.
pub fn query_escape(text: &[u8]) -> String {
    escape(text, Part::Query)
}

/// Undoes [`query_escape`]: `url.QueryUnescape`.
pub fn query_unescape(text: &str) -> Result<String, String> {
    unescape_text(text, Part::Query)
}

/// Undoes [`query_escape`], to bytes that need not be UTF-8.
pub fn query_unescape_bytes(text: &str) -> Result<Vec<u8>, String> {
    unescape(text, Part::Query)
}

pub(super) fn escape(text: &[u8], part: Part) -> String {
    let mut out = String::with_capacity(text.len());
    for byte in text {
        if part.keeps(*byte) {
            out.push(char::from(*byte));
        } else if *byte == b' ' && part == Part::Query {
            out.push('+');
        } else {
            // Writing to a String cannot fail.
            let _ = write!(out, "%{byte:02X}");
        }
    }
    out
}

/// Undoes escapes; bytes that are no UTF-8 become replacement characters.
pub(super) fn unescape_text(text: &str, part: Part) -> Result<String, String> {
    Ok(String::from_utf8_lossy(&unescape(text, part)?).into_owned())
}

/// Undoes escapes. The error is Go's message.
pub(super) fn unescape(text: &str, part: Part) -> Result<Vec<u8>, String> {
    let bytes = text.as_bytes();
    let mut out = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while let Some(byte) = bytes.get(at) {
        match byte {
            b'%' => {
                let shown = &bytes[at..bytes.len().min(at + 3)];
                let decoded = decode(shown).filter(|code| may_be_escaped(*code, part));
                let invalid = || {
                    let shown = String::from_utf8_lossy(shown);
                    format!("invalid URL escape {}", quote(&shown))
                };
                out.push(decoded.ok_or_else(invalid)?);
                at += 3;
                continue;
            }
            b'+' if part == Part::Query => out.push(b' '),
            byte if part.is_host() && byte.is_ascii() && !part.keeps(*byte) => {
                let shown = quote(&char::from(*byte).to_string());
                return Err(format!("invalid character {shown} in host name"));
            }
            byte => out.push(*byte),
        }
        at += 1;
    }
    Ok(out)
}

/// The byte that `%XX` stands for.
fn decode(escape: &[u8]) -> Option<u8> {
    let digits = escape.get(1..3)?;
    if !digits.iter().all(u8::is_ascii_hexdigit) {
        return None;
    }
    u8::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()
}

/// In a host only bytes outside ASCII may be escaped, in a zone also what may stand there unescaped.
fn may_be_escaped(code: u8, part: Part) -> bool {
    match part {
        Part::Host => code == b'%' || !code.is_ascii(),
        Part::Zone => matches!(code, b'%' | b' ') || Part::Host.keeps(code),
        _ => true,
    }
}
