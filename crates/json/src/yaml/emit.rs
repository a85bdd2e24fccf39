//! Values to YAML, byte for byte as Go's writer does.
//!
//! The writer keeps two facts beside the column: whether the last thing written counts as white
//! space, and whether the line so far consists of indentation and indicators only. They decide
//! where blanks and line breaks go, exactly as in libyaml, from which Go's writer descends.

use serde_json::{Map, Number, Value};

use super::YamlStyle;
use super::order::sort_keys;
use super::resolve::{Resolved, is_base60, resolve};
use crate::number;

const INDENT: usize = 2;

/// Longer keys are written with an explicit `?`.
const SIMPLE_KEY_BYTES: usize = 128;

pub(super) fn emit(value: &Value, style: YamlStyle) -> String {
    let fold_after = style.fold_after.unwrap_or(usize::MAX);
    let mut emitter = Emitter {
        out: String::new(),
        column: 0,
        after_whitespace: true,
        only_indentation: true,
        fold_after,
        indent_lists: style.indent_lists,
        is_direct: style.is_direct,
        is_v3: style.is_v3,
    };
    emitter.node(value, None, Place::Root);
    emitter.indent_to(0);
    emitter.out
}

/// Where a node stands, which decides how a list in it is indented.
#[derive(Clone, Copy, PartialEq)]
enum Place {
    Root,
    Item,
    MappingValue,
}

#[derive(Clone, Copy, PartialEq)]
enum ScalarStyle {
    Plain,
    SingleQuoted,
    DoubleQuoted,
    Literal,
}

#[expect(
    clippy::struct_excessive_bools,
    reason = "a position and three choices of the caller"
)]
struct Emitter {
    out: String,
    column: usize,
    after_whitespace: bool,
    only_indentation: bool,
    fold_after: usize,
    indent_lists: bool,
    is_direct: bool,
    is_v3: bool,
}

impl Emitter {
    /// Writes a value; `indent` is the indentation of the surrounding container, if any. Values
    /// come from readers with a depth limit, which bounds this recursion.
    fn node(&mut self, value: &Value, indent: Option<usize>, place: Place) {
        match value {
            Value::Null => self.plain("null", indent, true),
            Value::Bool(flag) => self.plain(if *flag { "true" } else { "false" }, indent, true),
            Value::Number(number) => self.plain(&self.number_text(number), indent, true),
            Value::String(text) => self.scalar(text, indent, false),
            Value::Array(items) if items.is_empty() => self.indicator("[]", true, false),
            Value::Array(items) => self.list(items, indent, place),
            Value::Object(map) if map.is_empty() => self.indicator("{}", true, false),
            Value::Object(map) => self.mapping(map, indent),
        }
    }

    fn list(&mut self, items: &[Value], indent: Option<usize>, place: Place) {
        let is_under_key =
            place == Place::MappingValue && !self.only_indentation && !self.indent_lists;
        let indent = match indent {
            None => 0,
            Some(indent) if is_under_key => indent,
            Some(indent) => indent + INDENT,
        };
        for item in items {
            self.indent_to(indent);
            self.indicator("-", true, true);
            self.node(item, Some(indent), Place::Item);
        }
    }

    fn mapping(&mut self, map: &Map<String, Value>, indent: Option<usize>) {
        let indent = indent.map_or(0, |indent| indent + INDENT);
        let mut keys: Vec<&str> = map.keys().map(String::as_str).collect();
        sort_keys(&mut keys);
        for key in keys {
            self.indent_to(indent);
            if key.len() <= SIMPLE_KEY_BYTES && !key.contains(is_break) {
                self.scalar(key, Some(indent), true);
                self.indicator(":", false, false);
            } else {
                self.indicator("?", true, true);
                self.scalar(key, Some(indent), false);
                self.indent_to(indent);
                self.indicator(":", true, true);
            }
            if let Some(value) = map.get(key) {
                self.node(value, Some(indent), Place::MappingValue);
            }
        }
    }

    fn scalar(&mut self, text: &str, indent: Option<usize>, is_simple_key: bool) {
        let continuation = indent.unwrap_or(0) + INDENT;
        match scalar_style(text, is_simple_key, self.is_v3) {
            ScalarStyle::Plain => self.plain(text, indent, !is_simple_key),
            ScalarStyle::SingleQuoted => self.single_quoted(text, continuation, !is_simple_key),
            ScalarStyle::DoubleQuoted => self.double_quoted(text, continuation, !is_simple_key),
            ScalarStyle::Literal => self.literal(text, continuation),
        }
    }

    fn plain(&mut self, text: &str, indent: Option<usize>, may_fold: bool) {
        if !self.after_whitespace {
            self.put(' ');
        }
        self.folded(
            text,
            indent.unwrap_or(0) + INDENT,
            may_fold,
            |emitter, character| {
                emitter.put(character);
            },
        );
        self.after_whitespace = false;
        self.only_indentation = false;
    }

    fn single_quoted(&mut self, text: &str, indent: usize, may_fold: bool) {
        self.indicator("'", true, false);
        self.folded(text, indent, may_fold, |emitter, character| {
            if character == '\'' {
                emitter.put('\'');
            }
            emitter.put(character);
        });
        self.indicator("'", false, false);
    }

    /// Writes characters, breaking the line at single spaces beyond the width.
    fn folded(&mut self, text: &str, indent: usize, may_fold: bool, write: fn(&mut Self, char)) {
        let mut after_space = false;
        let mut characters = text.chars().enumerate().peekable();
        while let Some((index, character)) = characters.next() {
            if character != ' ' {
                write(self, character);
                after_space = false;
                continue;
            }
            let is_inside = index > 0 && characters.peek().is_some_and(|(_, next)| *next != ' ');
            if may_fold && !after_space && self.column > self.fold_after && is_inside {
                self.only_indentation = false;
                self.indent_to(indent);
            } else {
                self.put(' ');
            }
            after_space = true;
        }
    }

    fn double_quoted(&mut self, text: &str, indent: usize, may_fold: bool) {
        self.indicator("\"", true, false);
        let mut after_space = false;
        let mut characters = text.chars().enumerate().peekable();
        while let Some((index, character)) = characters.next() {
            if character != ' ' {
                self.escaped(character);
                after_space = false;
                continue;
            }
            let next = characters.peek().map(|(_, next)| *next);
            let is_inside = index > 0 && next.is_some();
            if may_fold && !after_space && self.column > self.fold_after && is_inside {
                self.only_indentation = false;
                self.indent_to(indent);
                if next == Some(' ') {
                    self.put('\\');
                }
            } else {
                self.put(' ');
            }
            after_space = true;
        }
        self.indicator("\"", false, false);
    }

    fn escaped(&mut self, character: char) {
        if is_printable(character) && !is_break(character) && !matches!(character, '"' | '\\') {
            self.put(character);
            return;
        }
        let code = u32::from(character);
        let escape = match code {
            0x00 => "\\0",
            0x07 => "\\a",
            0x08 => "\\b",
            0x09 => "\\t",
            0x0A => "\\n",
            0x0B => "\\v",
            0x0C => "\\f",
            0x0D => "\\r",
            0x1B => "\\e",
            0x22 => "\\\"",
            0x5C => "\\\\",
            0x85 => "\\N",
            0x2028 => "\\L",
            0x2029 => "\\P",
            _ if code <= 0xFF => &format!("\\x{code:02X}"),
            _ if code <= 0xFFFF => &format!("\\u{code:04X}"),
            _ => &format!("\\U{code:08X}"),
        };
        self.put_all(escape);
    }

    fn literal(&mut self, text: &str, indent: usize) {
        self.indicator("|", true, false);
        if text.starts_with([' ', '\n']) {
            self.put_all("2");
        }
        if !text.ends_with('\n') {
            self.put('-');
        } else if text.len() == 1 || text.ends_with("\n\n") {
            self.put('+');
        }
        // The peer takes the first line break for the one that ends this line.
        if !(self.is_v3 && text.starts_with('\n')) {
            self.line_break();
        }
        let mut at_line_start = true;
        for character in text.chars() {
            if character == '\n' {
                self.line_break();
                at_line_start = true;
                continue;
            }
            if at_line_start {
                self.indent_to(indent);
            }
            self.put(character);
            self.only_indentation = false;
            at_line_start = false;
        }
    }

    fn indicator(&mut self, text: &str, needs_whitespace: bool, keeps_indentation: bool) {
        if needs_whitespace && !self.after_whitespace {
            self.put(' ');
        }
        self.put_all(text);
        self.after_whitespace = false;
        self.only_indentation &= keeps_indentation;
    }

    /// Moves to a column at the start of a line, on this line if nothing else is on it yet.
    fn indent_to(&mut self, indent: usize) {
        let is_taken = !self.only_indentation
            || self.column > indent
            || (self.column == indent && !self.after_whitespace);
        if is_taken {
            self.line_break();
        }
        while self.column < indent {
            self.put(' ');
        }
        self.after_whitespace = true;
        self.only_indentation = true;
    }

    fn line_break(&mut self) {
        self.out.push('\n');
        self.column = 0;
        self.after_whitespace = true;
        self.only_indentation = true;
    }

    fn put(&mut self, character: char) {
        self.out.push(character);
        self.column += 1;
    }

    fn put_all(&mut self, text: &str) {
        self.out.push_str(text);
        self.column += text.chars().count();
    }

    /// Integers as they are; floats as a YAML reader of Go would make of their JSON text, or as Go writes them.
    fn number_text(&self, number: &Number) -> String {
        let Some(float) = number.as_f64().filter(|_| number.is_f64()) else {
            return number.to_string();
        };
        if self.is_direct {
            return number::go_general_float(float);
        }
        let text = number::go_json_float(float);
        match resolve(&text) {
            Resolved::Integer(integer) => integer.to_string(),
            Resolved::Unsigned(integer) => integer.to_string(),
            _ => number::go_general_float(float),
        }
    }
}

/// Chooses the notation of a string: plain if it stays a string without quotes, literal if it has
/// several lines, quoted otherwise.
fn scalar_style(text: &str, is_simple_key: bool, is_v3: bool) -> ScalarStyle {
    let shape = Shape::of(text, is_v3);
    if text.contains('\n') {
        if shape.may_be_literal && !is_simple_key {
            return ScalarStyle::Literal;
        }
        return ScalarStyle::DoubleQuoted;
    }
    // The peer leaves the key `<<` bare, which reads back as an instruction.
    let is_merge_key = is_simple_key && text == "<<";
    if resolve(text) != Resolved::String || is_base60(text) || is_merge_key {
        return ScalarStyle::DoubleQuoted;
    }
    if shape.may_be_plain {
        return ScalarStyle::Plain;
    }
    if shape.may_be_single_quoted {
        ScalarStyle::SingleQuoted
    } else {
        ScalarStyle::DoubleQuoted
    }
}

/// Which notations can hold a string.
struct Shape {
    may_be_plain: bool,
    may_be_single_quoted: bool,
    may_be_literal: bool,
}

impl Shape {
    fn of(text: &str, is_v3: bool) -> Self {
        let starts_as_marker = text.starts_with("---") || text.starts_with("...");
        let mut has_indicator = starts_as_marker;
        let mut has_special = false;
        let mut has_space_before_break = false;
        let mut previous = None;
        let mut characters = text.chars().peekable();
        while let Some(character) = characters.next() {
            let blank_follows = characters
                .peek()
                .is_none_or(|next| matches!(next, ' ' | '\t'));
            has_indicator |= match character {
                '#' => {
                    previous.is_none_or(|before| is_break(before) || matches!(before, ' ' | '\t'))
                }
                ':' => blank_follows,
                '?' | '-' => previous.is_none() && blank_follows,
                ',' | '[' | ']' | '{' | '}' | '&' | '*' | '!' | '|' | '>' | '\'' | '"' | '%'
                | '@' | '`' => previous.is_none(),
                _ => false,
            };
            // The peer writes Unicode line breaks raw, which readers of YAML 1.2 take for text:
            // escaping them is understood by all.
            has_special |= !(is_printable(character) || is_v3 && character == '\t')
                || (is_break(character) && character != '\n');
            has_space_before_break |= character == '\n' && previous == Some(' ');
            previous = Some(character);
        }
        let is_padded = text.starts_with([' ', '\n']) || text.ends_with([' ', '\n']);
        let is_simple = !has_special && !has_space_before_break;
        let is_short = is_simple && !text.contains('\t');
        Self {
            may_be_plain: is_short && !has_indicator && !is_padded && !text.contains('\n'),
            may_be_single_quoted: is_short && !text.contains("\n "),
            may_be_literal: is_simple && !text.ends_with(' '),
        }
    }
}

/// Go's writer escapes everything outside the basic plane, and tabs.
fn is_printable(character: char) -> bool {
    matches!(character, '\n' | ' '..='~' | '\u{A0}'..='\u{D7FF}' | '\u{E000}'..='\u{FFFD}')
        && character != '\u{FEFF}'
}

fn is_break(character: char) -> bool {
    matches!(character, '\n' | '\r' | '\u{85}' | '\u{2028}' | '\u{2029}')
}
