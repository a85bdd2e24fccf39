//! Reads JSON text into values, keeping field order and the exact text of numbers.

use std::collections::HashMap;
use std::sync::Arc;

use crate::number::Number;
use crate::value::Value;

/// Deeper nesting is refused; the reader recurses.
const DEPTH_LIMIT: usize = 500;

/// Structs with more fields look duplicates up in a map instead of scanning.
const SCAN_LIMIT: usize = 16;

/// Reads one JSON value that fills the text.
pub fn parse(source: &str) -> Result<Value, String> {
    let mut reader = Reader {
        source,
        offset: 0,
        depth: 0,
    };
    let value = reader.value()?;
    reader.skip_space();
    match reader.peek() {
        None => Ok(value),
        Some(_) => Err(reader.unexpected("after top-level value")),
    }
}

/// Reads JSON values one after the other.
pub(super) fn parse_stream(source: &str) -> Result<Vec<Value>, String> {
    let mut reader = Reader {
        source,
        offset: 0,
        depth: 0,
    };
    let mut values = Vec::new();
    reader.skip_space();
    while reader.peek().is_some() {
        values.push(reader.value()?);
        reader.skip_space();
    }
    Ok(values)
}

/// Checks that the text is one JSON value.
pub(super) fn check(source: &str) -> Result<(), String> {
    parse(source).map(|_| ())
}

struct Reader<'a> {
    source: &'a str,
    offset: usize,
    depth: usize,
}

impl<'a> Reader<'a> {
    fn peek(&self) -> Option<u8> {
        self.source.as_bytes().get(self.offset).copied()
    }

    fn skip_space(&mut self) {
        while matches!(self.peek(), Some(b' ' | b'\t' | b'\n' | b'\r')) {
            self.offset += 1;
        }
    }

    fn unexpected(&self, context: &str) -> String {
        match self.source[self.offset..].chars().next() {
            None => "unexpected end of JSON input".to_owned(),
            Some(character) => format!("invalid character {character:?} {context}"),
        }
    }

    fn value(&mut self) -> Result<Value, String> {
        self.skip_space();
        match self.peek() {
            Some(b'{') => self.nested(Self::structure),
            Some(b'[') => self.nested(Self::list),
            Some(b'"') => self.string().map(Value::String),
            Some(b'-' | b'0'..=b'9') => self.number(),
            Some(b't') => self.word("true", Value::Bool(true)),
            Some(b'f') => self.word("false", Value::Bool(false)),
            Some(b'n') => self.word("null", Value::Null),
            _ => Err(self.unexpected("looking for beginning of value")),
        }
    }

    fn nested(
        &mut self,
        read: impl Fn(&mut Self) -> Result<Value, String>,
    ) -> Result<Value, String> {
        self.depth += 1;
        if self.depth > DEPTH_LIMIT {
            return Err("exceeded max depth".to_owned());
        }
        self.offset += 1;
        let value = read(self)?;
        self.depth -= 1;
        Ok(value)
    }

    fn word(&mut self, word: &str, value: Value) -> Result<Value, String> {
        if self.source[self.offset..].starts_with(word) {
            self.offset += word.len();
            Ok(value)
        } else {
            Err(self.unexpected("looking for beginning of value"))
        }
    }

    fn list(&mut self) -> Result<Value, String> {
        let mut items = Vec::new();
        self.skip_space();
        if self.peek() == Some(b']') {
            self.offset += 1;
            return Ok(Value::list(items));
        }
        loop {
            items.push(self.value()?);
            self.skip_space();
            match self.peek() {
                Some(b',') => self.offset += 1,
                Some(b']') => {
                    self.offset += 1;
                    return Ok(Value::list(items));
                }
                _ => return Err(self.unexpected("after array element")),
            }
        }
    }

    fn structure(&mut self) -> Result<Value, String> {
        let mut fields = Fields::default();
        self.skip_space();
        if self.peek() == Some(b'}') {
            self.offset += 1;
            return Ok(Value::structure(fields.entries));
        }
        loop {
            self.skip_space();
            if self.peek() != Some(b'"') {
                return Err(self.unexpected("looking for beginning of object key string"));
            }
            let label = self.string()?;
            self.skip_space();
            if self.peek() != Some(b':') {
                return Err(self.unexpected("after object key"));
            }
            self.offset += 1;
            let value = self.value()?;
            fields.insert(label, value)?;
            self.skip_space();
            match self.peek() {
                Some(b',') => self.offset += 1,
                Some(b'}') => {
                    self.offset += 1;
                    return Ok(Value::structure(fields.entries));
                }
                _ => return Err(self.unexpected("after object key:value pair")),
            }
        }
    }

    fn number(&mut self) -> Result<Value, String> {
        let start = self.offset;
        if self.peek() == Some(b'-') {
            self.offset += 1;
        }
        match self.peek() {
            Some(b'0') => self.offset += 1,
            Some(b'1'..=b'9') => self.digits(),
            _ => return Err(self.unexpected("in numeric literal")),
        }
        if self.peek() == Some(b'.') {
            self.offset += 1;
            self.some_digits("after decimal point in numeric literal")?;
        }
        if matches!(self.peek(), Some(b'e' | b'E')) {
            self.offset += 1;
            if matches!(self.peek(), Some(b'+' | b'-')) {
                self.offset += 1;
            }
            self.some_digits("in exponent of numeric literal")?;
        }
        let text = &self.source[start..self.offset];
        Number::parse_decimal(text)
            .map(Value::Number)
            .map_err(|error| error.to_string())
    }

    fn digits(&mut self) {
        while matches!(self.peek(), Some(b'0'..=b'9')) {
            self.offset += 1;
        }
    }

    fn some_digits(&mut self, context: &str) -> Result<(), String> {
        let start = self.offset;
        self.digits();
        if start == self.offset {
            Err(self.unexpected(context))
        } else {
            Ok(())
        }
    }

    fn string(&mut self) -> Result<Arc<str>, String> {
        self.offset += 1;
        let plain = self.plain_run();
        if self.peek() == Some(b'"') {
            self.offset += 1;
            return Ok(plain.into());
        }
        let mut text = plain.to_owned();
        loop {
            text.push_str(self.plain_run());
            match self.peek() {
                Some(b'"') => {
                    self.offset += 1;
                    return Ok(text.into());
                }
                Some(b'\\') => {
                    self.offset += 1;
                    text.push(self.escape()?);
                }
                _ => return Err(self.unexpected("in string literal")),
            }
        }
    }

    /// Text up to the next quote, backslash or control character.
    fn plain_run(&mut self) -> &'a str {
        let start = self.offset;
        let stops = |byte: &u8| *byte == b'"' || *byte == b'\\' || *byte < 0x20;
        let rest = &self.source.as_bytes()[start..];
        self.offset += rest.iter().position(stops).unwrap_or(rest.len());
        &self.source[start..self.offset]
    }

    fn escape(&mut self) -> Result<char, String> {
        let Some(byte) = self.peek() else {
            return Err(self.unexpected("in string escape code"));
        };
        let simple = match byte {
            b'"' => '"',
            b'\\' => '\\',
            b'/' => '/',
            b'b' => '\u{8}',
            b'f' => '\u{c}',
            b'n' => '\n',
            b'r' => '\r',
            b't' => '\t',
            b'u' => return self.unicode_escape(),
            _ => return Err(self.unexpected("in string escape code")),
        };
        self.offset += 1;
        Ok(simple)
    }

    /// `u` and four digits, or two of them for a surrogate pair; a lone surrogate becomes the replacement
    /// character.
    fn unicode_escape(&mut self) -> Result<char, String> {
        let first = self.hexadecimal()?;
        if let Some(character) = char::from_u32(first) {
            return Ok(character);
        }
        if (0xD800..0xDC00).contains(&first) && self.source[self.offset..].starts_with("\\u") {
            let before = self.offset;
            self.offset += 1;
            let second = self.hexadecimal()?;
            if (0xDC00..0xE000).contains(&second) {
                let code = 0x10000 + ((first - 0xD800) << 10) + (second - 0xDC00);
                return Ok(char::from_u32(code).unwrap_or(char::REPLACEMENT_CHARACTER));
            }
            self.offset = before;
        }
        Ok(char::REPLACEMENT_CHARACTER)
    }

    fn hexadecimal(&mut self) -> Result<u32, String> {
        let digits = self.source.get(self.offset + 1..self.offset + 5);
        let code = digits
            .filter(|digits| digits.bytes().all(|byte| byte.is_ascii_hexdigit()))
            .and_then(|digits| u32::from_str_radix(digits, 16).ok());
        match code {
            Some(code) => {
                self.offset += 5;
                Ok(code)
            }
            None => Err("invalid character in \\u hexadecimal character escape".to_owned()),
        }
    }
}

/// Fields under construction. A repeated label must repeat its value, since fields unify.
#[derive(Default)]
struct Fields {
    entries: Vec<(Arc<str>, Value)>,
    index: HashMap<Arc<str>, usize>,
}

impl Fields {
    fn position(&self, label: &str) -> Option<usize> {
        if self.entries.len() <= SCAN_LIMIT {
            return self.entries.iter().position(|(name, _)| &**name == label);
        }
        self.index.get(label).copied()
    }

    fn insert(&mut self, label: Arc<str>, value: Value) -> Result<(), String> {
        if let Some(position) = self.position(&label) {
            if self.entries[position].1 == value {
                return Ok(());
            }
            return Err(format!("conflicting values for field {label:?}"));
        }
        if self.entries.len() == SCAN_LIMIT {
            for (position, (name, _)) in self.entries.iter().enumerate() {
                self.index.insert(name.clone(), position);
            }
        }
        if self.entries.len() >= SCAN_LIMIT {
            self.index.insert(label.clone(), self.entries.len());
        }
        self.entries.push((label, value));
        Ok(())
    }
}
