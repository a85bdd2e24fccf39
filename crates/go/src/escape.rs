//! Escapes for HTML and JavaScript, as `text/template` writes them.

use std::fmt::Write as _;

use crate::quote::is_print;

/// Escapes what has a meaning in HTML: `template.HTMLEscape`.
pub fn html(text: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(text.len());
    for byte in text {
        match byte {
            0 => out.extend_from_slice("\u{fffd}".as_bytes()),
            b'"' => out.extend_from_slice(b"&#34;"),
            b'\'' => out.extend_from_slice(b"&#39;"),
            b'&' => out.extend_from_slice(b"&amp;"),
            b'<' => out.extend_from_slice(b"&lt;"),
            b'>' => out.extend_from_slice(b"&gt;"),
            _ => out.push(*byte),
        }
    }
    out
}

/// Escapes a text for a string of JavaScript: `template.JSEscape`.
pub fn script(text: &[u8]) -> Vec<u8> {
    let mut out = String::with_capacity(text.len());
    for character in String::from_utf8_lossy(text).chars() {
        // Writing to a String cannot fail.
        let _ = match character {
            '\\' => out.write_str("\\\\"),
            '\'' => out.write_str("\\'"),
            '"' => out.write_str("\\\""),
            '<' | '>' | '&' | '=' => write!(out, "\\u{:04X}", u32::from(character)),
            ' '..='\u{7f}' => out.write_char(character),
            _ if is_print(character) => out.write_char(character),
            _ => write!(out, "\\u{:04X}", u32::from(character)),
        };
    }
    out.into_bytes()
}
