//! The tokens of JSON: strings, numbers, literals, and the error texts that belong to them.

use serde_json::{Number, Value};

use super::JsonError;
use crate::number;

/// A position in a JSON text.
pub(super) struct Scanner<'text> {
    text: &'text str,
    position: usize,
}

impl<'text> Scanner<'text> {
    pub(super) fn new(text: &'text str) -> Self {
        Self { text, position: 0 }
    }

    #[inline]
    pub(super) fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.position).copied()
    }

    #[inline]
    pub(super) fn advance(&mut self) {
        self.position += 1;
    }

    #[inline]
    pub(super) fn eat(&mut self, byte: u8) -> bool {
        let found = self.peek() == Some(byte);
        if found {
            self.position += 1;
        }
        found
    }

    #[inline]
    pub(super) fn skip_whitespace(&mut self) {
        while let Some(b' ' | b'\n' | b'\t' | b'\r') = self.peek() {
            self.position += 1;
        }
    }

    pub(super) fn literal(&mut self, literal: &str, value: Value) -> Result<Value, JsonError> {
        for expected in literal.bytes() {
            match self.peek() {
                Some(byte) if byte == expected => self.advance(),
                other => {
                    let expected = char::from(expected);
                    let context = format!("in literal {literal} (expecting '{expected}')");
                    return Err(self.invalid_inside(other, &context));
                }
            }
        }
        Ok(value)
    }

    /// A string after its opening quote. Nearly all strings are one run of ordinary bytes, so those
    /// are copied at once; escapes take the slower way.
    pub(super) fn string(&mut self) -> Result<String, JsonError> {
        let run = self.ordinary_run();
        if self.eat(b'"') {
            return Ok(run.to_owned());
        }
        let mut string = run.to_owned();
        loop {
            match self.peek() {
                Some(b'"') => {
                    self.advance();
                    return Ok(string);
                }
                Some(b'\\') => {
                    self.advance();
                    string.push(self.escape()?);
                }
                Some(byte) => return Err(self.invalid(byte, "in string literal")),
                None => return Err(self.end_of_input()),
            }
            string.push_str(self.ordinary_run());
        }
    }

    /// Takes the bytes up to the next quote, backslash or control character.
    fn ordinary_run(&mut self) -> &'text str {
        let start = self.position;
        let rest = &self.text.as_bytes()[start..];
        self.position += special_byte(rest);
        // The three kinds of stop byte are ASCII, hence character boundaries.
        self.text.get(start..self.position).unwrap_or_default()
    }

    fn escape(&mut self) -> Result<char, JsonError> {
        let character = match self.peek() {
            Some(byte @ (b'"' | b'\\' | b'/')) => char::from(byte),
            Some(b'b') => '\u{8}',
            Some(b'f') => '\u{c}',
            Some(b'n') => '\n',
            Some(b'r') => '\r',
            Some(b't') => '\t',
            Some(b'u') => {
                self.advance();
                return self.unicode_escape();
            }
            other => return Err(self.invalid_inside(other, "in string escape code")),
        };
        self.advance();
        Ok(character)
    }

    /// The four digits after `\u`; a high surrogate takes the following low one with it, and whatever
    /// is left alone becomes U+FFFD.
    fn unicode_escape(&mut self) -> Result<char, JsonError> {
        let unit = self.hex4()?;
        if let 0xD800..=0xDBFF = unit {
            let before = self.position;
            if self.eat(b'\\') && self.eat(b'u') {
                let low = self.hex4()?;
                if let 0xDC00..=0xDFFF = low {
                    let code = 0x1_0000 + ((unit - 0xD800) << 10) + (low - 0xDC00);
                    return Ok(char::from_u32(code).unwrap_or(char::REPLACEMENT_CHARACTER));
                }
            }
            // Not a pair: the second escape stands for itself and is read again.
            self.position = before;
        }
        Ok(char::from_u32(unit).unwrap_or(char::REPLACEMENT_CHARACTER))
    }

    fn hex4(&mut self) -> Result<u32, JsonError> {
        let mut unit = 0;
        for _ in 0..4 {
            let next = self.peek();
            let Some(digit) = next.and_then(|byte| char::from(byte).to_digit(16)) else {
                return Err(self.invalid_inside(next, "in \\u hexadecimal character escape"));
            };
            unit = unit * 16 + digit;
            self.advance();
        }
        Ok(unit)
    }

    pub(super) fn number(&mut self, fold_integral_floats: bool) -> Result<Number, JsonError> {
        let start = self.position;
        self.eat(b'-');
        match self.peek() {
            Some(b'0') => self.advance(),
            Some(b'1'..=b'9') => self.digits(),
            other => return Err(self.invalid_inside(other, "in numeric literal")),
        }
        let mut is_integer = true;
        if self.eat(b'.') {
            is_integer = false;
            self.some_digits("after decimal point in numeric literal")?;
        }
        if let Some(b'e' | b'E') = self.peek() {
            is_integer = false;
            self.advance();
            if let Some(b'+' | b'-') = self.peek() {
                self.advance();
            }
            self.some_digits("in exponent of numeric literal")?;
        }
        let text = &self.text[start..self.position];
        if is_integer && let Ok(integer) = text.parse::<i64>() {
            return Ok(Number::from(integer));
        }
        let float: f64 = text.parse().unwrap_or(f64::INFINITY);
        let number = if fold_integral_floats {
            number::from_f64(float)
        } else {
            Number::from_f64(float)
        };
        number.ok_or_else(|| JsonError {
            message: format!("json: cannot unmarshal number {text} into Go value of type float64"),
            offset: start,
        })
    }

    fn digits(&mut self) {
        while let Some(b'0'..=b'9') = self.peek() {
            self.position += 1;
        }
    }

    fn some_digits(&mut self, context: &str) -> Result<(), JsonError> {
        match self.peek() {
            Some(b'0'..=b'9') => {
                self.digits();
                Ok(())
            }
            other => Err(self.invalid_inside(other, context)),
        }
    }

    pub(super) fn error(&self, message: impl Into<String>) -> JsonError {
        JsonError {
            message: message.into(),
            offset: self.position,
        }
    }

    pub(super) fn end_of_input(&self) -> JsonError {
        self.error("unexpected end of JSON input")
    }

    pub(super) fn invalid(&self, byte: u8, context: &str) -> JsonError {
        self.error(format!("invalid character {} {context}", quote(byte)))
    }

    /// An error inside a token. Go's scanner meets the end of the text there as if it were a space.
    fn invalid_inside(&self, byte: Option<u8>, context: &str) -> JsonError {
        self.invalid(byte.unwrap_or(b' '), context)
    }
}

/// A byte in single quotes as Go shows it: bytes, not characters, so non-ASCII appears as Latin-1.
fn quote(byte: u8) -> String {
    match byte {
        b'\'' => r"'\''".to_owned(),
        b'"' => "'\"'".to_owned(),
        b'\\' => r"'\\'".to_owned(),
        b'\n' => r"'\n'".to_owned(),
        b'\r' => r"'\r'".to_owned(),
        b'\t' => r"'\t'".to_owned(),
        7 => r"'\a'".to_owned(),
        8 => r"'\b'".to_owned(),
        11 => r"'\v'".to_owned(),
        12 => r"'\f'".to_owned(),
        0..=0x1F | 0x7F => format!(r"'\x{byte:02x}'"),
        0x80..=0xA0 | 0xAD => format!(r"'\u{byte:04x}'"),
        _ => format!("'{}'", char::from(byte)),
    }
}

/// Index of the first quote, backslash or control character, or the length. Looks at eight bytes
/// at a time: strings are most of what an object weighs.
fn special_byte(bytes: &[u8]) -> usize {
    const ONES: u64 = u64::MAX / 255;
    const HIGH: u64 = ONES << 7;
    // Sets the high bit of each byte that is less than `limit`, exact up to the first such byte.
    let below = |word: u64, limit: u64| word.wrapping_sub(ONES * limit) & !word & HIGH;
    let (chunks, rest) = bytes.as_chunks::<8>();
    for (index, chunk) in chunks.iter().enumerate() {
        let word = u64::from_le_bytes(*chunk);
        let quote = below(word ^ (ONES * u64::from(b'"')), 1);
        let backslash = below(word ^ (ONES * u64::from(b'\\')), 1);
        let control = below(word, 0x20);
        let found = quote | backslash | control;
        if found != 0 {
            return index * 8 + (found.trailing_zeros() / 8) as usize;
        }
    }
    let start = bytes.len() - rest.len();
    let is_special = |byte: &u8| matches!(byte, b'"' | b'\\' | 0..=0x1F);
    start + rest.iter().position(is_special).unwrap_or(rest.len())
}
