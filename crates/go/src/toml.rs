//! TOML as Go's programs read and write it.

mod write;

use crate::number;

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
            current = reader.key()?;
            reader.expect("]]")?;
            root.append_element(&current)
                .map_err(|message| reader.fail(&message))?;
        } else if let Some(rest) = reader.rest.strip_prefix('[') {
            reader.rest = rest;
            current = reader.key()?;
            if !reader.rest.starts_with([']', '\n']) && !reader.rest.is_empty() {
                return Err(reader.unexpected("']' to end table name"));
            }
            reader.expect("]")?;
            root.open_table(&current)
                .map_err(|message| reader.fail(&message))?;
        } else {
            let (key, value) = reader.assignment()?;
            let path: Vec<String> = current.iter().cloned().chain(key).collect();
            root.insert(&path, value)
                .map_err(|message| reader.fail(&message))?;
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
            return Err(format!("duplicate key: {}", path.join(".")));
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
                _ => Err(format!("duplicate key: {last}")),
            },
        }
    }

    fn insert(&mut self, path: &[String], value: Item) -> Result<(), String> {
        let Some((last, parents)) = path.split_last() else {
            return Err("empty key".to_owned());
        };
        let table = self.descend(parents)?;
        if table.position(last).is_some() {
            return Err(format!("duplicate key: {}", path.join(".")));
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

struct Reader<'a> {
    source: &'a str,
    rest: &'a str,
    depth: usize,
}

impl<'a> Reader<'a> {
    fn fail(&self, message: &str) -> String {
        let offset = self.source.len() - self.rest.len();
        let line = self.source[..offset].matches('\n').count() + 1;
        format!("toml: line {line}: {message}")
    }

    /// Says that a key goes on with a character that it cannot have.
    fn unexpected(&self, end: &str) -> String {
        match self.rest.chars().next() {
            Some(found) => {
                let found = crate::quote::quote_char(found, crate::quote::Keep::Printable);
                self.fail(&format!("expected '.' or {end}, but got {found} instead"))
            }
            None => self.fail("expected a key"),
        }
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
            Err(self.fail("expected newline"))
        }
    }

    fn expect(&mut self, text: &str) -> Result<(), String> {
        self.skip_blanks();
        match self.rest.strip_prefix(text) {
            Some(rest) => {
                self.rest = rest;
                Ok(())
            }
            None => Err(self.fail(&format!("expected {text:?}"))),
        }
    }

    fn assignment(&mut self) -> Result<(Vec<String>, Item), String> {
        let key = self.key()?;
        self.skip_blanks();
        if !self.rest.starts_with(['=', '\n']) && !self.rest.is_empty() {
            return Err(self.unexpected("'='"));
        }
        self.expect("=")?;
        let value = self.value()?;
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
                        return Err(if self.rest.starts_with('=') {
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
                None => return Err(self.fail("expected ',' or ']' in array")),
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
            self.expect(",")?;
        }
    }

    /// Booleans, numbers, dates and times.
    fn plain(&mut self) -> Result<Item, String> {
        let ends = |c: char| matches!(c, ',' | ']' | '}' | '#' | '\n' | '\r');
        let end = self.rest.find(ends).unwrap_or(self.rest.len());
        let text = self.rest[..end].trim_end();
        let value = match text {
            "" => return Err(self.fail("expected a value")),
            "true" => Item::Bool(true),
            "false" => Item::Bool(false),
            _ if is_time(text) => Item::Time(text.to_owned()),
            _ => {
                let (sign, digits) = match text.strip_prefix('-') {
                    Some(digits) => ("-", digits),
                    None => ("", text.strip_prefix('+').unwrap_or(text)),
                };
                if !is_number(digits) {
                    return Err(self.fail(&format!("invalid value {text:?}")));
                }
                Item::Number(format!("{sign}{digits}"))
            }
        };
        self.rest = &self.rest[end..];
        Ok(value)
    }

    fn literal_string(&mut self) -> Result<String, String> {
        if let Some(body) = self.rest.strip_prefix("'''") {
            let Some(end) = body.find("'''") else {
                return Err(self.fail("unterminated string"));
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
            _ => Err(self.fail("unterminated string")),
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
                return Err(self.fail("unterminated string"));
            };
            rest = &rest[character.len_utf8()..];
            match character {
                '\n' if delimiter.len() == 1 => return Err(self.fail("unterminated string")),
                '\\' => rest = self.escape(rest, &mut text)?,
                _ => text.push(character),
            }
        }
    }

    fn escape(&self, rest: &'a str, text: &mut String) -> Result<&'a str, String> {
        let invalid = || self.fail("invalid escape");
        let letter = rest.chars().next().ok_or_else(invalid)?;
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

/// Whether a text without its sign is a number.
fn is_number(text: &str) -> bool {
    let is_special = matches!(text, "inf" | "nan");
    is_special
        || number::parse_int(text).is_some()
        || number::parse_float(&text.replace('_', "")).is_some()
}
