//! Quotes strings and characters with the escapes of Go's syntax.

use std::fmt::Write as _;

/// Which characters stay as they are.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Keep {
    /// Letters, marks, numbers, punctuation, symbols and the ASCII blank.
    Printable,
    /// ASCII only.
    Ascii,
    /// Printable characters and every Unicode blank.
    Graphic,
}

impl Keep {
    /// Whether a character needs no escape.
    pub(super) fn keeps(self, character: char) -> bool {
        match self {
            Self::Ascii => matches!(character, ' '..='~'),
            Self::Printable => is_printable(character),
            Self::Graphic => is_printable(character) || is_space_separator(character),
        }
    }
}

/// The standard library knows which characters it shows as themselves in debug output; a letter
/// in front keeps combining marks from being escaped for want of a base.
fn is_printable(character: char) -> bool {
    if character.is_ascii() {
        return matches!(character, ' '..='~');
    }
    let shown = format!("{:?}", format!("a{character}"));
    shown.len() == 3 + character.len_utf8() && !is_space_separator(character)
}

fn is_space_separator(character: char) -> bool {
    matches!(
        character,
        ' ' | '\u{a0}' | '\u{1680}' | '\u{2000}'
            ..='\u{200a}' | '\u{202f}' | '\u{205f}' | '\u{3000}'
    )
}

/// A string in double quotes.
pub(super) fn quote(text: &str, keep: Keep) -> String {
    let mut quoted = String::from("\"");
    for character in text.chars() {
        push_escaped(&mut quoted, character, '"', keep);
    }
    quoted.push('"');
    quoted
}

/// A character in single quotes.
pub(super) fn quote_rune(character: char, keep: Keep) -> String {
    let mut quoted = String::from("'");
    push_escaped(&mut quoted, character, '\'', keep);
    quoted.push('\'');
    quoted
}

fn push_escaped(output: &mut String, character: char, delimiter: char, keep: Keep) {
    if character == delimiter || character == '\\' {
        output.push('\\');
        output.push(character);
        return;
    }
    if keep.keeps(character) {
        output.push(character);
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
                0..=0x1f | 0x7f => write!(output, "\\x{code:02x}"),
                0..=0xffff => write!(output, "\\u{code:04x}"),
                _ => write!(output, "\\U{code:08x}"),
            };
            return;
        }
    };
    output.push('\\');
    output.push(simple);
}
