//! JSON text to values, with what an API server has to say about it.
//!
//! [`parse`] reads one value in a single pass. It differs from `serde_json` in that it
//!
//! - speaks of errors in the words of Go's `encoding/json`, which Kubernetes shows to its users;
//! - reports every duplicate key by its path, instead of dropping the earlier value silently;
//! - makes of numbers what Kubernetes does (see [`crate::number`]);
//! - accepts what Go accepts inside strings: broken UTF-8 and lone surrogates become U+FFFD;
//! - stops at a depth of its own, so that no later recursion over the value can overflow.

mod scan;

use std::borrow::Cow;

use serde_json::Value;
use serde_json::map::Entry;

use scan::Scanner;

use crate::path;

/// Nesting allowed by default. Real objects stay below 60; twice the depth at which other readers
/// stop still fits the smallest thread stack with unoptimised code.
pub const DEFAULT_MAX_DEPTH: usize = 256;

/// Kubernetes lists at most this many duplicate or unknown fields of one body.
pub(crate) const MAX_REPORTED_DUPLICATES: usize = 100;

/// What [`parse_with`] accepts and how it treats numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ParseOptions {
    /// Containers inside containers beyond this number are refused.
    pub max_depth: usize,
    /// Whether `1.0` becomes the integer 1, as it does on its way through Kubernetes.
    pub fold_integral_floats: bool,
}

impl Default for ParseOptions {
    fn default() -> Self {
        Self {
            max_depth: DEFAULT_MAX_DEPTH,
            fold_integral_floats: true,
        }
    }
}

/// A parsed value and the keys that occurred more than once in it.
#[derive(Debug, Clone, PartialEq)]
pub struct Parsed {
    /// The value; of duplicate keys the last one counts.
    pub value: Value,
    /// Paths of duplicate keys, such as `data.a` or `spec.containers[0].image`, without repetition
    /// and in order of appearance.
    pub duplicates: Vec<String>,
}

/// Why a text is not JSON, in the words of Go's decoder.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct JsonError {
    /// What is wrong, e.g. `unexpected end of JSON input`.
    pub message: String,
    /// Byte offset of the offending character.
    pub offset: usize,
}

/// Parses one JSON value; of duplicate keys the last one counts, and each is reported.
pub fn parse(bytes: &[u8]) -> Result<Parsed, JsonError> {
    parse_with(bytes, ParseOptions::default())
}

/// [`parse`] with limits and number treatment of the caller's choice.
pub fn parse_with(bytes: &[u8], options: ParseOptions) -> Result<Parsed, JsonError> {
    let text = to_text(bytes);
    let mut parser = Parser::new(&text, options);
    let parsed = parser.document()?;
    match parser.scanner.peek() {
        Some(byte) => Err(parser.scanner.invalid(byte, "after top-level value")),
        None => Ok(parsed),
    }
}

/// Parses any number of values, one after the other, as `kubectl` accepts them in a file.
pub fn parse_stream(bytes: &[u8], options: ParseOptions) -> Result<Vec<Parsed>, JsonError> {
    let text = to_text(bytes);
    let mut parser = Parser::new(&text, options);
    let mut documents = Vec::new();
    parser.scanner.skip_whitespace();
    while parser.scanner.peek().is_some() {
        documents.push(parser.document()?);
    }
    Ok(documents)
}

/// Go replaces each byte that is not UTF-8 by U+FFFD.
fn to_text(bytes: &[u8]) -> Cow<'_, str> {
    if let Ok(text) = std::str::from_utf8(bytes) {
        return Cow::Borrowed(text);
    }
    let mut text = String::with_capacity(bytes.len());
    for chunk in bytes.utf8_chunks() {
        text.push_str(chunk.valid());
        text.extend(chunk.invalid().iter().map(|_| char::REPLACEMENT_CHARACTER));
    }
    Cow::Owned(text)
}

/// Paths were collected innermost segment first, because most bodies have no duplicates and should
/// not pay for keeping track of where the parser is.
fn finish(duplicates: Vec<Vec<Segment>>) -> Vec<String> {
    let mut paths: Vec<String> = Vec::new();
    for segments in duplicates {
        let mut path = String::new();
        for segment in segments.iter().rev() {
            match segment {
                Segment::Key(key) => path::push_key(&mut path, key),
                Segment::Index(index) => path::push_index(&mut path, *index),
            }
        }
        if !paths.contains(&path) {
            paths.push(path);
        }
    }
    paths
}

#[derive(Debug)]
enum Segment {
    Key(String),
    Index(usize),
}

struct Parser<'text> {
    scanner: Scanner<'text>,
    options: ParseOptions,
    depth: usize,
    duplicates: Vec<Vec<Segment>>,
}

impl<'text> Parser<'text> {
    fn new(text: &'text str, options: ParseOptions) -> Self {
        Self {
            scanner: Scanner::new(text),
            options,
            depth: 0,
            duplicates: Vec::new(),
        }
    }

    /// One value and the white space around it.
    fn document(&mut self) -> Result<Parsed, JsonError> {
        self.scanner.skip_whitespace();
        let value = self.value()?;
        self.scanner.skip_whitespace();
        let duplicates = finish(std::mem::take(&mut self.duplicates));
        Ok(Parsed { value, duplicates })
    }

    fn value(&mut self) -> Result<Value, JsonError> {
        match self.scanner.peek() {
            Some(b'"') => {
                self.scanner.advance();
                self.scanner.string().map(Value::String)
            }
            Some(b'{') => self.nested(Self::object),
            Some(b'[') => self.nested(Self::array),
            Some(b't') => self.scanner.literal("true", Value::Bool(true)),
            Some(b'f') => self.scanner.literal("false", Value::Bool(false)),
            Some(b'n') => self.scanner.literal("null", Value::Null),
            Some(b'-' | b'0'..=b'9') => self
                .scanner
                .number(self.options.fold_integral_floats)
                .map(Value::Number),
            Some(byte) => Err(self.scanner.invalid(byte, "looking for beginning of value")),
            None => Err(self.scanner.end_of_input()),
        }
    }

    fn nested(
        &mut self,
        container: fn(&mut Self) -> Result<Value, JsonError>,
    ) -> Result<Value, JsonError> {
        if self.depth == self.options.max_depth {
            return Err(self.scanner.error("exceeded max depth"));
        }
        self.scanner.advance();
        self.depth += 1;
        let value = container(self);
        self.depth -= 1;
        value
    }

    fn object(&mut self) -> Result<Value, JsonError> {
        let mut map = serde_json::Map::new();
        self.scanner.skip_whitespace();
        if self.scanner.eat(b'}') {
            return Ok(Value::Object(map));
        }
        loop {
            let key = self.key()?;
            let reported = self.duplicates.len();
            let value = self.value()?;
            self.add_parent(reported, || Segment::Key(key.clone()));
            match map.entry(key) {
                Entry::Vacant(entry) => {
                    entry.insert(value);
                }
                Entry::Occupied(mut entry) => {
                    if self.duplicates.len() < MAX_REPORTED_DUPLICATES {
                        // The key came before whatever is wrong inside its value.
                        self.duplicates
                            .insert(reported, vec![Segment::Key(entry.key().clone())]);
                    }
                    entry.insert(value);
                }
            }
            self.scanner.skip_whitespace();
            if self.scanner.eat(b',') {
                self.scanner.skip_whitespace();
                continue;
            }
            return self.close(b'}', Value::Object(map), "after object key:value pair");
        }
    }

    /// A key and its colon, up to the first byte of the value.
    fn key(&mut self) -> Result<String, JsonError> {
        const EXPECTED: &str = "looking for beginning of object key string";
        match self.scanner.peek() {
            Some(b'"') => self.scanner.advance(),
            Some(byte) => return Err(self.scanner.invalid(byte, EXPECTED)),
            None => return Err(self.scanner.end_of_input()),
        }
        let key = self.scanner.string()?;
        self.scanner.skip_whitespace();
        match self.scanner.peek() {
            Some(b':') => self.scanner.advance(),
            Some(byte) => return Err(self.scanner.invalid(byte, "after object key")),
            None => return Err(self.scanner.end_of_input()),
        }
        self.scanner.skip_whitespace();
        Ok(key)
    }

    fn array(&mut self) -> Result<Value, JsonError> {
        let mut items = Vec::new();
        self.scanner.skip_whitespace();
        if self.scanner.eat(b']') {
            return Ok(Value::Array(items));
        }
        loop {
            let reported = self.duplicates.len();
            let item = self.value()?;
            self.add_parent(reported, || Segment::Index(items.len()));
            items.push(item);
            self.scanner.skip_whitespace();
            if self.scanner.eat(b',') {
                self.scanner.skip_whitespace();
                continue;
            }
            return self.close(b']', Value::Array(items), "after array element");
        }
    }

    /// Completes the paths of duplicates found since `reported` by one step towards the root.
    fn add_parent(&mut self, reported: usize, segment: impl Fn() -> Segment) {
        for path in self.duplicates.iter_mut().skip(reported) {
            path.push(segment());
        }
    }

    fn close(&mut self, bracket: u8, value: Value, context: &str) -> Result<Value, JsonError> {
        match self.scanner.peek() {
            Some(byte) if byte == bracket => {
                self.scanner.advance();
                Ok(value)
            }
            Some(byte) => Err(self.scanner.invalid(byte, context)),
            None => Err(self.scanner.end_of_input()),
        }
    }
}

#[cfg(test)]
mod tests;
