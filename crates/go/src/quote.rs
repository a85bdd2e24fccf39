//! Strings and characters in quotes, as `strconv` writes and reads them.

mod printable;

use std::fmt::Write as _;

/// Which characters stay as they are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Keep {
    /// Letters, marks, numbers, punctuation, symbols and the ASCII blank: `unicode.IsPrint`.
    Printable,
    /// ASCII only.
    Ascii,
    /// Printable characters and every Unicode blank: `unicode.IsGraphic`.
    Graphic,
}

impl Keep {
    /// Whether a character needs no escape.
    pub fn keeps(self, character: char) -> bool {
        match self {
            Self::Ascii => matches!(character, ' '..='~'),
            Self::Printable => is_print(character),
            Self::Graphic => is_print(character) || is_space_separator(character),
        }
    }
}

/// Whether Go prints a character as itself: `unicode.IsPrint`.
pub fn is_print(character: char) -> bool {
    if character.is_ascii() {
        return matches!(character, ' '..='~');
    }
    // A table of its own: Rust follows newer versions of Unicode than Go.
    let turns = printable::TURNS.partition_point(|turn| *turn <= u32::from(character));
    turns % 2 == 1
}

fn is_space_separator(character: char) -> bool {
    matches!(
        character,
        ' ' | '\u{a0}' | '\u{1680}' | '\u{2000}'
            ..='\u{200a}' | '\u{202f}' | '\u{205f}' | '\u{3000}'
    )
}

/// `text` as `%q` writes it: in double quotes, unprintable characters escaped.
pub fn quote(text: &str) -> String {
    quote_with(text.as_bytes(), Keep::Printable)
}

/// Bytes in double quotes; those that are not UTF-8 become `\x` escapes.
pub fn quote_bytes(bytes: &[u8]) -> String {
    quote_with(bytes, Keep::Printable)
}

/// Bytes in double quotes, with the escapes that `keep` asks for.
pub fn quote_with(bytes: &[u8], keep: Keep) -> String {
    let mut out = String::with_capacity(bytes.len() + 2);
    out.push('"');
    for chunk in bytes.utf8_chunks() {
        for character in chunk.valid().chars() {
            push_escaped(&mut out, character, '"', keep);
        }
        for byte in chunk.invalid() {
            // Writing to a String cannot fail, here and below.
            let _ = write!(out, "\\x{byte:02x}");
        }
    }
    out.push('"');
    out
}

/// A character in single quotes.
pub fn quote_char(character: char, keep: Keep) -> String {
    let mut out = String::from("'");
    push_escaped(&mut out, character, '\'', keep);
    out.push('\'');
    out
}

fn push_escaped(out: &mut String, character: char, delimiter: char, keep: Keep) {
    if character == delimiter || character == '\\' {
        out.push('\\');
        out.push(character);
        return;
    }
    if keep.keeps(character) {
        out.push(character);
        return;
    }
    let simple = match character {
        '\u{7}' => 'a',
        '\u{8}' => 'b',
        '\u{c}' => 'f',
        '\n' => 'n',
        '\r' => 'r',
        '\t' => 't',
        '\u{b}' => 'v',
        _ => {
            let code = u32::from(character);
            let _ = match code {
                0..=0x1f | 0x7f => write!(out, "\\x{code:02x}"),
                0..=0xffff => write!(out, "\\u{code:04x}"),
                _ => write!(out, "\\U{code:08x}"),
            };
            return;
        }
    };
    out.push('\\');
    out.push(simple);
}

/// Whether a text can stand between back quotes: `strconv.CanBackquote`.
pub fn can_backquote(bytes: &[u8]) -> bool {
    std::str::from_utf8(bytes).is_ok_and(|text| {
        text.chars()
            .all(|c| c != '\u{feff}' && c != '`' && c != '\u{7f}' && (c >= ' ' || c == '\t'))
    })
}

/// A text is not a Go literal: `strconv.ErrSyntax`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("invalid syntax")]
pub struct SyntaxError;

/// The bytes that a literal in double quotes, single quotes or back quotes stands for.
pub fn unquote(literal: &str) -> Result<Vec<u8>, SyntaxError> {
    let mut quotes = literal.chars();
    let (Some(first), Some(last)) = (quotes.next(), quotes.next_back()) else {
        return Err(SyntaxError);
    };
    let body = quotes.as_str();
    if first != last {
        return Err(SyntaxError);
    }
    match first {
        '`' if body.contains('`') => Err(SyntaxError),
        '`' => Ok(body.bytes().filter(|byte| *byte != b'\r').collect()),
        '"' | '\'' => {
            let mut out = Vec::with_capacity(body.len());
            let mut rest = body;
            let mut count = 0;
            while !rest.is_empty() {
                if rest.starts_with(['\n', first]) {
                    return Err(SyntaxError);
                }
                let (character, after) = unquote_char(rest, first)?;
                character.push_to(&mut out);
                rest = after;
                count += 1;
            }
            if first == '\'' && count != 1 {
                return Err(SyntaxError);
            }
            Ok(out)
        }
        _ => Err(SyntaxError),
    }
}

/// What one escape or character of a literal stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unquoted {
    /// A character; surrogates and numbers beyond Unicode are refused before.
    Char(char),
    /// A byte, from `\x` or an octal escape.
    Byte(u8),
}

impl Unquoted {
    /// The number that a character constant has.
    pub fn code(self) -> u32 {
        match self {
            Self::Char(character) => u32::from(character),
            Self::Byte(byte) => u32::from(byte),
        }
    }

    fn push_to(self, out: &mut Vec<u8>) {
        match self {
            Self::Char(character) => {
                out.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes());
            }
            Self::Byte(byte) => out.push(byte),
        }
    }
}

/// Reads the first character or escape of what stands between `quote`s, and what follows it.
pub fn unquote_char(text: &str, quote: char) -> Result<(Unquoted, &str), SyntaxError> {
    let mut characters = text.chars();
    let first = characters.next().ok_or(SyntaxError)?;
    if first == quote && (quote == '\'' || quote == '"') {
        return Err(SyntaxError);
    }
    if first != '\\' {
        return Ok((Unquoted::Char(first), characters.as_str()));
    }
    let escape = characters.next().ok_or(SyntaxError)?;
    let rest = characters.as_str();
    let plain = |character: char| Ok((Unquoted::Char(character), rest));
    match escape {
        'a' => plain('\u{7}'),
        'b' => plain('\u{8}'),
        'f' => plain('\u{c}'),
        'n' => plain('\n'),
        'r' => plain('\r'),
        't' => plain('\t'),
        'v' => plain('\u{b}'),
        '\\' => plain('\\'),
        '\'' | '"' if escape == quote => plain(escape),
        'x' => {
            let (code, rest) = digits(rest, 2, 16)?;
            Ok((
                Unquoted::Byte(u8::try_from(code).map_err(|_| SyntaxError)?),
                rest,
            ))
        }
        'u' | 'U' => {
            let (code, rest) = digits(rest, if escape == 'u' { 4 } else { 8 }, 16)?;
            let character = char::from_u32(code).ok_or(SyntaxError)?;
            Ok((Unquoted::Char(character), rest))
        }
        '0'..='7' => {
            let from = text.get(1..).ok_or(SyntaxError)?;
            let (code, rest) = digits(from, 3, 8)?;
            Ok((
                Unquoted::Byte(u8::try_from(code).map_err(|_| SyntaxError)?),
                rest,
            ))
        }
        _ => Err(SyntaxError),
    }
}

fn digits(text: &str, count: usize, radix: u32) -> Result<(u32, &str), SyntaxError> {
    let digits = text.get(..count).ok_or(SyntaxError)?;
    if !digits.chars().all(|digit| digit.is_digit(radix)) {
        return Err(SyntaxError);
    }
    let code = u32::from_str_radix(digits, radix).map_err(|_| SyntaxError)?;
    Ok((code, &text[count..]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn characters_are_quoted_as_in_go() {
        // Values of strconv.Quote, Go 1.26.
        let cases = [
            ("a\u{301}", "\"a\u{301}\""),
            ("\u{301}", "\"\u{301}\""),
            ("\u{a0}", r#""\u00a0""#),
            ("\u{ad}", r#""\u00ad""#),
            ("\u{2028}", r#""\u2028""#),
            ("\u{1f600}", "\"\u{1f600}\""),
            ("\u{e000}", r#""\ue000""#),
            ("\u{10ffff}", r#""\U0010ffff""#),
            ("\0\x07\x7f\u{80}", r#""\x00\a\x7f\u0080""#),
            ("'\"\\", r#""'\"\\""#),
        ];
        for (text, expected) in cases {
            assert_eq!(quote(text), expected);
        }
        assert_eq!(quote_bytes(b"a\xffb"), r#""a\xffb""#);
        assert_eq!(
            quote_with("é\u{a0}".as_bytes(), Keep::Ascii),
            r#""\u00e9\u00a0""#
        );
        assert_eq!(
            quote_with("é\u{a0}".as_bytes(), Keep::Graphic),
            "\"é\u{a0}\""
        );
    }

    #[test]
    fn every_character_is_printable_as_in_go() {
        let data = include_str!("../tests/data/printable.txt").lines();
        let range = |line: &str| {
            let (first, last) = line.split_once(' ').unwrap();
            let number = |text: &str| u32::from_str_radix(text, 16).unwrap();
            number(first)..=number(last)
        };
        let ranges: Vec<_> = data
            .filter(|line| !line.starts_with('#'))
            .map(range)
            .collect();
        let mut printable = vec![false; 0x11_0000];
        for code in ranges.into_iter().flatten() {
            printable[usize::try_from(code).unwrap()] = true;
        }
        for (code, expected) in (0..).zip(printable) {
            // Surrogates are no characters, and not printable.
            let found = char::from_u32(code).is_some_and(is_print);
            assert_eq!(found, expected, "{code:#x}");
        }
    }

    #[test]
    fn literals_are_read_as_in_go() {
        assert_eq!(unquote(r#""a\n\x41\u00e9\101""#), Ok("a\nAéA".into()));
        assert_eq!(unquote("`a\r\\n`"), Ok("a\\n".into()));
        assert_eq!(unquote(r#""\xff""#), Ok(vec![0xff]));
        for wrong in [
            r#""a'"#,
            r#""\'""#,
            r#""\q""#,
            "\"",
            "",
            "'ab'",
            r#""\ud800""#,
        ] {
            assert_eq!(unquote(wrong), Err(SyntaxError), "{wrong}");
        }
    }
}
