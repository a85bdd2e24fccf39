//! TOML as Go's programs read and write it.

mod write;

use crate::{number, quote};

pub use self::write::write;

/// What a TOML text is made of. Numbers, dates and times stay texts.
#[derive(Debug, Clone, PartialEq)]
pub enum Item {
    /// `true` or `false`.
    Bool(bool),
    /// A number as it is written, without a plus sign.
    Number(String),
    /// A date, a time, or both, as it is written.
    Time(String),
    /// A string.
    String(String),
    /// An array, also of tables.
    Array(Vec<Item>),
    /// A table, in the order of the text.
    Table(Vec<(String, Item)>),
}

/// Deeper nesting is refused; the reader recurses.
const DEPTH_LIMIT: usize = 200;

/// Reads a document; the error names the line.
pub fn parse(source: &str) -> Result<Item, String> {
    let mut reader = Reader {
        rest: source,
        source,
        depth: 0,
        last_key: Vec::new(),
    };
    let mut root = Table::default();
    let mut current: Vec<String> = Vec::new();
    loop {
        reader.skip_lines();
        if reader.rest.is_empty() {
            return Ok(root.into_item());
        }
        if let Some(rest) = reader.rest.strip_prefix("[[") {
            reader.rest = rest;
            reader.last_key.clear();
            current = reader.key()?;
            if !reader.rest.starts_with("]]") {
                return Err(reader.open_header());
            }
            reader.rest = &reader.rest[2..];
            root.append_element(&current)
                .map_err(|message| reader.fail(&message))?;
            reader.last_key.clone_from(&current);
        } else if let Some(rest) = reader.rest.strip_prefix('[') {
            reader.rest = rest;
            reader.last_key.clear();
            current = reader.key()?;
            let Some(rest) = reader.rest.strip_prefix(']') else {
                return Err(reader.unexpected("']' to end table name"));
            };
            root.open_table(&current)
                .map_err(|message| reader.fail(&message))?;
            reader.rest = rest;
            reader.last_key.clone_from(&current);
        } else {
            reader.last_key.clone_from(&current);
            let (key, value) = reader.assignment()?;
            let path: Vec<String> = current.iter().cloned().chain(key).collect();
            reader.last_key.clone_from(&path);
            root.insert(&path, value)
                .map_err(|message| reader.fail(&message))?;
            reader.last_key.clone_from(&current);
        }
        reader.end_of_line()?;
    }
}

/// A table under construction.
#[derive(Default)]
struct Table {
    entries: Vec<(String, Entry)>,
    /// Whether a header already named it.
    opened: bool,
}

enum Entry {
    Value(Item),
    Table(Table),
    Array(Vec<Table>),
}

impl Table {
    fn position(&self, label: &str) -> Option<usize> {
        self.entries.iter().position(|(name, _)| name == label)
    }

    /// The table at a path, made on the way; the last element of an array stands for it.
    fn descend(&mut self, path: &[String]) -> Result<&mut Table, String> {
        let mut table = self;
        for label in path {
            let position = table.position(label).unwrap_or(table.entries.len());
            if position == table.entries.len() {
                table
                    .entries
                    .push((label.clone(), Entry::Table(Table::default())));
            }
            table = match &mut table.entries[position].1 {
                Entry::Table(inner) => inner,
                Entry::Array(elements) => match elements.last_mut() {
                    Some(last) => last,
                    None => return Err(format!("key {label} has no element")),
                },
                Entry::Value(_) => return Err(format!("key {label} is not a table")),
            };
        }
        Ok(table)
    }

    fn open_table(&mut self, path: &[String]) -> Result<(), String> {
        let table = self.descend(path)?;
        if table.opened {
            return Err(defined(path));
        }
        table.opened = true;
        Ok(())
    }

    fn append_element(&mut self, path: &[String]) -> Result<(), String> {
        let Some((last, parents)) = path.split_last() else {
            return Err("empty key".to_owned());
        };
        let parent = self.descend(parents)?;
        match parent.position(last) {
            None => {
                parent
                    .entries
                    .push((last.clone(), Entry::Array(vec![Table::default()])));
                Ok(())
            }
            Some(position) => match &mut parent.entries[position].1 {
                Entry::Array(elements) => {
                    elements.push(Table::default());
                    Ok(())
                }
                _ => Err(defined(path)),
            },
        }
    }

    fn insert(&mut self, path: &[String], value: Item) -> Result<(), String> {
        let Some((last, parents)) = path.split_last() else {
            return Err("empty key".to_owned());
        };
        let table = self.descend(parents)?;
        if table.position(last).is_some() {
            return Err(defined(path));
        }
        table.entries.push((last.clone(), Entry::Value(value)));
        Ok(())
    }

    fn into_item(self) -> Item {
        let entries = self.entries.into_iter().map(|(label, entry)| {
            let item = match entry {
                Entry::Value(item) => item,
                Entry::Table(table) => table.into_item(),
                Entry::Array(tables) => {
                    Item::Array(tables.into_iter().map(Table::into_item).collect())
                }
            };
            (label, item)
        });
        Item::Table(entries.collect())
    }
}

/// What is wrong with a key that was there before.
fn defined(path: &[String]) -> String {
    format!("Key '{}' has already been defined.", path.join("."))
}

struct Reader<'a> {
    source: &'a str,
    rest: &'a str,
    depth: usize,
    /// The key whose value is read, for messages.
    last_key: Vec<String>,
}

impl<'a> Reader<'a> {
    fn fail(&self, message: &str) -> String {
        let offset = self.source.len() - self.rest.len();
        let line = self.source[..offset].matches('\n').count() + 1;
        if self.last_key.is_empty() {
            return format!("toml: line {line}: {message}");
        }
        let key = quote::quote(&self.last_key.join("."));
        format!("toml: line {line} (last key {key}): {message}")
    }

    /// The next character in quotes; the end of the text is a zero.
    fn found(&self) -> String {
        let found = self.rest.chars().next().unwrap_or('\0');
        quote::quote_char(found, quote::Keep::Printable)
    }

    /// Says that a key goes on with a character that it cannot have.
    fn unexpected(&self, end: &str) -> String {
        let found = self.found();
        self.fail(&format!("expected '.' or {end}, but got {found} instead"))
    }

    /// Says that the name of an array of tables is not closed.
    fn open_header(&mut self) -> String {
        let Some(rest) = self.rest.strip_prefix(']') else {
            return self.unexpected("']' to end table name");
        };
        self.rest = rest;
        let found = self.found();
        self.fail(&format!(
            "expected end of table array name delimiter ']', but got {found} instead"
        ))
    }

    /// Says that the text ends too early.
    fn ends(&self, expected: &str) -> String {
        self.fail(&format!("unexpected EOF; expected {expected}"))
    }

    fn skip_blanks(&mut self) {
        self.rest = self.rest.trim_start_matches([' ', '\t']);
    }

    fn skip_comment(&mut self) {
        self.skip_blanks();
        if self.rest.starts_with('#') {
            let end = self.rest.find('\n').unwrap_or(self.rest.len());
            self.rest = &self.rest[end..];
        }
    }

    /// Blanks, comments and line ends.
    fn skip_lines(&mut self) {
        loop {
            self.skip_comment();
            match self
                .rest
                .strip_prefix('\n')
                .or_else(|| self.rest.strip_prefix("\r\n"))
            {
                Some(rest) => self.rest = rest,
                None => return,
            }
        }
    }

    fn end_of_line(&mut self) -> Result<(), String> {
        self.skip_comment();
        if self.rest.is_empty() || self.rest.starts_with('\n') || self.rest.starts_with("\r\n") {
            Ok(())
        } else {
            let found = self.found();
            Err(self.fail(&format!(
                "expected a top-level item to end with a newline, comment, or EOF, but got {found} instead"
            )))
        }
    }

    fn assignment(&mut self) -> Result<(Vec<String>, Item), String> {
        let key = self.key()?;
        self.skip_blanks();
        if self.rest.is_empty() {
            return Err(self.ends("key separator '='"));
        }
        let Some(rest) = self.rest.strip_prefix('=') else {
            return Err(self.unexpected("'='"));
        };
        self.rest = rest;
        let outer = self.last_key.len();
        self.last_key.extend(key.iter().cloned());
        let value = self.value()?;
        self.last_key.truncate(outer);
        Ok((key, value))
    }

    /// A dotted key.
    fn key(&mut self) -> Result<Vec<String>, String> {
        let mut parts = Vec::new();
        loop {
            self.skip_blanks();
            let part = match self.rest.chars().next() {
                Some('"') => self.basic_string()?,
                Some('\'') => self.literal_string()?,
                _ => {
                    let bare = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
                    let end = self.rest.find(|c| !bare(c)).unwrap_or(self.rest.len());
                    if end == 0 {
                        return Err(if self.rest.is_empty() || self.rest.starts_with('=') {
                            self.fail("unexpected '=': key name appears blank")
                        } else {
                            self.unexpected("'='")
                        });
                    }
                    let (part, rest) = self.rest.split_at(end);
                    self.rest = rest;
                    part.to_owned()
                }
            };
            parts.push(part);
            self.skip_blanks();
            match self.rest.strip_prefix('.') {
                Some(rest) => self.rest = rest,
                None => return Ok(parts),
            }
        }
    }

    fn value(&mut self) -> Result<Item, String> {
        self.skip_blanks();
        self.depth += 1;
        if self.depth > DEPTH_LIMIT {
            return Err(self.fail("exceeded max depth"));
        }
        let value = match self.rest.chars().next() {
            Some('"') => Item::String(self.basic_string()?),
            Some('\'') => Item::String(self.literal_string()?),
            Some('[') => self.array()?,
            Some('{') => self.inline_table()?,
            _ => self.plain()?,
        };
        self.depth -= 1;
        Ok(value)
    }

    fn array(&mut self) -> Result<Item, String> {
        self.rest = &self.rest[1..];
        let mut items = Vec::new();
        loop {
            self.skip_lines();
            if let Some(rest) = self.rest.strip_prefix(']') {
                self.rest = rest;
                return Ok(Item::Array(items));
            }
            items.push(self.value()?);
            self.skip_lines();
            match self.rest.strip_prefix(',') {
                Some(rest) => self.rest = rest,
                None if self.rest.starts_with(']') => {}
                None => {
                    let found = match self.rest {
                        "" => "end of file".to_owned(),
                        _ => self.found(),
                    };
                    return Err(self.fail(&format!(
                        "expected a comma (',') or array terminator (']'), but got {found}"
                    )));
                }
            }
        }
    }

    fn inline_table(&mut self) -> Result<Item, String> {
        self.rest = &self.rest[1..];
        let mut table = Table::default();
        self.skip_blanks();
        if let Some(rest) = self.rest.strip_prefix('}') {
            self.rest = rest;
            return Ok(table.into_item());
        }
        loop {
            let (key, value) = self.assignment()?;
            table
                .insert(&key, value)
                .map_err(|message| self.fail(&message))?;
            self.skip_blanks();
            if let Some(rest) = self.rest.strip_prefix('}') {
                self.rest = rest;
                return Ok(table.into_item());
            }
            let Some(rest) = self.rest.strip_prefix(',') else {
                let found = match self.rest {
                    "" => "end of file".to_owned(),
                    _ => self.found(),
                };
                self.last_key.extend(key);
                return Err(self.fail(&format!(
                    "expected a comma or an inline table terminator '}}', but got {found} instead"
                )));
            };
            self.rest = rest;
        }
    }

    /// Booleans, numbers, dates and times.
    fn plain(&mut self) -> Result<Item, String> {
        let ends = |c: char| matches!(c, ',' | ']' | '}' | '#' | ' ' | '\t' | '\n' | '\r');
        let mut end = self.rest.find(ends).unwrap_or(self.rest.len());
        // A date may have its time behind a blank.
        let after = self.rest[end..].strip_prefix(' ').unwrap_or_default();
        if is_time(&self.rest[..end]) && self.rest[..end].contains('-') && is_time(after) {
            end += 1 + after.find(ends).unwrap_or(after.len());
        }
        let text = &self.rest[..end];
        let value = match text {
            "" if self.rest.is_empty() => return Err(self.ends("value")),
            "" => {
                let found = self.found();
                return Err(self.fail(&format!("expected value but found {found} instead")));
            }
            "true" => Item::Bool(true),
            "false" => Item::Bool(false),
            _ if is_time(text) => Item::Time(text.to_owned()),
            _ => Item::Number(self.number(text)?),
        };
        self.rest = &self.rest[end..];
        Ok(value)
    }

    fn number(&self, text: &str) -> Result<String, String> {
        let (sign, digits) = match text.strip_prefix('-') {
            Some(digits) => ("-", digits),
            None => ("", text.strip_prefix('+').unwrap_or(text)),
        };
        let is_signed = digits.len() < text.len();
        match digits.chars().next() {
            None => return Err(self.fail("expected a digit but got '\\x00'")),
            Some('0'..='9' | 'i' | 'n') => {}
            Some(found) if is_signed => {
                let found = quote::quote_char(found, quote::Keep::Printable);
                return Err(self.fail(&format!("expected a digit but got {found}")));
            }
            Some(_) => {
                let found = quote::quote(text);
                return Err(self.fail(&format!("expected value but found {found} instead")));
            }
        }
        match problem(digits) {
            Some(problem) => {
                let prefixed = ["0x", "0o", "0b"].iter().any(|it| digits.starts_with(it));
                let is_float = !prefixed && digits.contains(['.', 'e', 'E']);
                let kind = if is_float { "float" } else { "integer" };
                let shown = quote::quote(text);
                Err(self.fail(&format!("Invalid {kind} {shown}: {problem}")))
            }
            None if is_number(digits) => Ok(format!("{sign}{digits}")),
            None => {
                let found = quote::quote(text);
                Err(self.fail(&format!("expected value but found {found} instead")))
            }
        }
    }

    fn literal_string(&mut self) -> Result<String, String> {
        if let Some(body) = self.rest.strip_prefix("'''") {
            let Some(end) = body.find("'''") else {
                return Err(self.ends("\"'''\""));
            };
            let text = body[..end]
                .strip_prefix('\n')
                .unwrap_or(&body[..end])
                .to_owned();
            self.rest = &body[end + 3..];
            return Ok(text);
        }
        let body = &self.rest[1..];
        match body.find(['\'', '\n']) {
            Some(end) if body[end..].starts_with('\'') => {
                self.rest = &body[end + 1..];
                Ok(body[..end].to_owned())
            }
            Some(_) => Err(self.fail("strings cannot contain newlines")),
            None => Err(self.ends("\"'\"")),
        }
    }

    fn basic_string(&mut self) -> Result<String, String> {
        let (delimiter, body) = match self.rest.strip_prefix("\"\"\"") {
            Some(body) => ("\"\"\"", body.strip_prefix('\n').unwrap_or(body)),
            None => ("\"", &self.rest[1..]),
        };
        let mut text = String::new();
        let mut rest = body;
        loop {
            if let Some(after) = rest.strip_prefix(delimiter) {
                self.rest = after;
                return Ok(text);
            }
            let Some(character) = rest.chars().next() else {
                return Err(self.ends(if delimiter.len() == 1 {
                    "'\"'"
                } else {
                    "'\"\"\"'"
                }));
            };
            rest = &rest[character.len_utf8()..];
            match character {
                '\n' if delimiter.len() == 1 => {
                    return Err(self.fail("strings cannot contain newlines"));
                }
                '\\' => rest = self.escape(rest, &mut text)?,
                _ => text.push(character),
            }
        }
    }

    fn escape(&self, rest: &'a str, text: &mut String) -> Result<&'a str, String> {
        let letter = rest.chars().next().unwrap_or('\0');
        let invalid = || self.fail(&format!("invalid escape in string '\\{letter}'"));
        let digits = match letter {
            'u' => 4,
            'U' => 8,
            '\n' | ' ' | '\t' | '\r' => return Ok(rest.trim_start()),
            _ => 0,
        };
        if digits > 0 {
            let code = rest.get(1..=digits).ok_or_else(invalid)?;
            let code = u32::from_str_radix(code, 16).ok().and_then(char::from_u32);
            text.push(code.ok_or_else(invalid)?);
            return Ok(&rest[1 + digits..]);
        }
        text.push(match letter {
            'b' => '\u{8}',
            't' => '\t',
            'n' => '\n',
            'f' => '\u{c}',
            'r' => '\r',
            '"' | '\\' => letter,
            _ => return Err(invalid()),
        });
        Ok(&rest[letter.len_utf8()..])
    }
}

/// Dates and times start with digits and a dash or a colon.
fn is_time(text: &str) -> bool {
    let bytes = text.as_bytes();
    let digits = |range: std::ops::Range<usize>| {
        bytes
            .get(range)
            .is_some_and(|part| part.iter().all(u8::is_ascii_digit))
    };
    (digits(0..4) && bytes.get(4) == Some(&b'-')) || (digits(0..2) && bytes.get(2) == Some(&b':'))
}

/// What is wrong with the digits of a number.
fn problem(digits: &str) -> Option<&'static str> {
    let bytes = digits.as_bytes();
    let is_digit = |at: Option<&u8>| at.is_some_and(u8::is_ascii_alphanumeric);
    let is_stray = |(at, byte): (usize, &u8)| {
        *byte == b'_' && !(at > 0 && is_digit(bytes.get(at - 1)) && is_digit(bytes.get(at + 1)))
    };
    if bytes.iter().enumerate().any(is_stray) {
        return Some("underscores must be surrounded by digits");
    }
    let is_dot_alone = |(at, byte): (usize, &u8)| {
        *byte == b'.' && !bytes.get(at + 1).is_some_and(u8::is_ascii_digit)
    };
    if bytes.iter().enumerate().any(is_dot_alone) {
        return Some("'.' must be followed by one or more digits");
    }
    let has_leading_zero = bytes.len() > 1 && bytes[0] == b'0' && bytes[1].is_ascii_digit();
    has_leading_zero.then_some("cannot have leading zeroes")
}

/// Whether a text without its sign is a number.
fn is_number(text: &str) -> bool {
    let is_special = matches!(text, "inf" | "nan");
    is_special
        || number::parse_int(text).is_some()
        || number::parse_float(&text.replace('_', "")).is_some()
}

#[cfg(test)]
mod tests;
