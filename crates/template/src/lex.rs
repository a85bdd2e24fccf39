//! Splits a template into tokens, by the rules of `text/template/parse`.

use std::borrow::Cow;

use bellwether_go::quote;

/// What a token is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Error,
    Bool,
    Char,
    CharConstant,
    Complex,
    Assign,
    Declare,
    Eof,
    Field,
    Identifier,
    LeftDelim,
    LeftParen,
    Number,
    Pipe,
    RawString,
    RightDelim,
    RightParen,
    Space,
    String,
    Text,
    Variable,
    Block,
    Break,
    Continue,
    Dot,
    Define,
    Else,
    End,
    If,
    Nil,
    Range,
    Template,
    With,
}

impl Kind {
    const fn is_keyword(self) -> bool {
        matches!(
            self,
            Self::Block
                | Self::Break
                | Self::Continue
                | Self::Dot
                | Self::Define
                | Self::Else
                | Self::End
                | Self::If
                | Self::Nil
                | Self::Range
                | Self::Template
                | Self::With
        )
    }
}

/// A token and where it begins.
#[derive(Debug, Clone)]
pub(crate) struct Token<'a> {
    pub(crate) kind: Kind,
    pub(crate) pos: usize,
    pub(crate) text: Cow<'a, str>,
    pub(crate) line: usize,
}

impl Token<'_> {
    /// The token as error messages show it.
    pub(crate) fn shown(&self) -> String {
        match self.kind {
            Kind::Eof => "EOF".to_owned(),
            Kind::Error => self.text.clone().into_owned(),
            kind if kind.is_keyword() => format!("<{}>", self.text),
            _ if self.text.len() > 10 => {
                let head: String = self.text.chars().take(10).collect();
                format!("{}...", quote::quote(&head))
            }
            _ => quote::quote(&self.text),
        }
    }
}

/// Blanks that trim marks take away.
pub(crate) const BLANKS: [char; 4] = [' ', '\t', '\r', '\n'];

/// Reads tokens one by one.
#[derive(Debug)]
pub(crate) struct Lexer<'a> {
    input: &'a str,
    left: &'a str,
    right: &'a str,
    pos: usize,
    start: usize,
    line: usize,
    start_line: usize,
    depth: usize,
    inside_action: bool,
    /// Whether `break` and `continue` are keywords: they are not if there are such functions.
    pub(crate) break_is_keyword: bool,
    pub(crate) continue_is_keyword: bool,
}

/// What is read next.
enum State {
    Text,
    LeftDelim,
    Comment,
}

impl<'a> Lexer<'a> {
    pub(crate) fn new(input: &'a str, left: &'a str, right: &'a str) -> Self {
        Self {
            input,
            left,
            right,
            pos: 0,
            start: 0,
            line: 1,
            start_line: 1,
            depth: 0,
            inside_action: false,
            break_is_keyword: true,
            continue_is_keyword: true,
        }
    }

    fn rest(&self) -> &'a str {
        &self.input[self.pos..]
    }

    fn peek(&self) -> Option<char> {
        self.rest().chars().next()
    }

    fn next(&mut self) -> Option<char> {
        let character = self.peek()?;
        self.pos += character.len_utf8();
        self.line += usize::from(character == '\n');
        Some(character)
    }

    fn token(&mut self, kind: Kind) -> Token<'a> {
        let token = Token {
            kind,
            pos: self.start,
            text: Cow::Borrowed(&self.input[self.start..self.pos]),
            line: self.start_line,
        };
        self.start = self.pos;
        self.start_line = self.line;
        token
    }

    /// Counts lines of what was jumped over, and leaves it out.
    fn ignore(&mut self) {
        self.line += newlines(&self.input[self.start..self.pos]);
        self.start = self.pos;
        self.start_line = self.line;
    }

    fn error(&mut self, message: impl Into<Cow<'a, str>>) -> Token<'a> {
        let token = Token {
            kind: Kind::Error,
            pos: self.start,
            text: message.into(),
            line: self.start_line,
        };
        self.input = "";
        self.pos = 0;
        self.start = 0;
        token
    }

    /// The next token; after the last one, the end over and over.
    pub(crate) fn next_token(&mut self) -> Token<'a> {
        if self.inside_action {
            return self.inside_action();
        }
        let mut state = State::Text;
        loop {
            let step = match state {
                State::Text => self.text(),
                State::LeftDelim => self.left_delim(),
                State::Comment => self.comment(),
            };
            match step {
                Ok(token) => return token,
                Err(next) => state = next,
            }
        }
    }

    fn text(&mut self) -> Result<Token<'a>, State> {
        let Some(length) = self.rest().find(self.left) else {
            self.pos = self.input.len();
            if self.pos > self.start {
                self.line += newlines(&self.input[self.start..self.pos]);
                return Ok(self.token(Kind::Text));
            }
            return Ok(self.token(Kind::Eof));
        };
        if length > 0 {
            self.pos += length;
            let mut trimmed = 0;
            if has_left_trim_mark(&self.input[self.pos + self.left.len()..]) {
                let text = &self.input[self.start..self.pos];
                trimmed = text.len() - text.trim_end_matches(BLANKS).len();
            }
            self.pos -= trimmed;
            self.line += newlines(&self.input[self.start..self.pos]);
            let token = self.token(Kind::Text);
            self.pos += trimmed;
            self.ignore();
            if !token.text.is_empty() {
                return Ok(token);
            }
        }
        Err(State::LeftDelim)
    }

    fn left_delim(&mut self) -> Result<Token<'a>, State> {
        self.pos += self.left.len();
        let after_mark = if has_left_trim_mark(self.rest()) {
            2
        } else {
            0
        };
        if self.input[self.pos + after_mark..].starts_with("/*") {
            self.pos += after_mark;
            self.ignore();
            return Err(State::Comment);
        }
        let token = self.token(Kind::LeftDelim);
        self.inside_action = true;
        self.pos += after_mark;
        self.ignore();
        self.depth = 0;
        Ok(token)
    }

    fn comment(&mut self) -> Result<Token<'a>, State> {
        self.pos += 2;
        let Some(length) = self.rest().find("*/") else {
            return Ok(self.error("unclosed comment"));
        };
        self.pos += length + 2;
        let (is_delim, trims) = self.at_right_delim();
        if !is_delim {
            return Ok(self.error("comment ends before closing delimiter"));
        }
        self.line += newlines(&self.input[self.start..self.pos]);
        self.start = self.pos;
        self.start_line = self.line;
        self.pos += self.right.len() + if trims { 2 } else { 0 };
        if trims {
            self.pos += left_blanks(self.rest());
        }
        self.ignore();
        Err(State::Text)
    }

    fn at_right_delim(&self) -> (bool, bool) {
        let rest = self.rest();
        if has_right_trim_mark(rest) && rest[2..].starts_with(self.right) {
            return (true, true);
        }
        (rest.starts_with(self.right), false)
    }

    fn right_delim(&mut self) -> Token<'a> {
        let (_, trims) = self.at_right_delim();
        if trims {
            self.pos += 2;
            self.ignore();
        }
        self.pos += self.right.len();
        let token = self.token(Kind::RightDelim);
        if trims {
            self.pos += left_blanks(self.rest());
            self.ignore();
        }
        self.inside_action = false;
        token
    }

    fn inside_action(&mut self) -> Token<'a> {
        if self.at_right_delim().0 {
            if self.depth == 0 {
                return self.right_delim();
            }
            return self.error("unclosed left paren");
        }
        let Some(first) = self.peek() else {
            return self.error("unclosed action");
        };
        if BLANKS.contains(&first) {
            return self.space();
        }
        self.next();
        match first {
            '=' => self.token(Kind::Assign),
            ':' if self.next() == Some('=') => self.token(Kind::Declare),
            ':' => self.error("expected :="),
            '|' => self.token(Kind::Pipe),
            '"' => self.quoted('"', Kind::String, "unterminated quoted string"),
            '\'' => self.quoted('\'', Kind::CharConstant, "unterminated character constant"),
            '`' => match self.rest().find('`') {
                Some(length) => {
                    self.line += newlines(&self.rest()[..length]);
                    self.pos += length + 1;
                    self.token(Kind::RawString)
                }
                None => self.error("unterminated raw quoted string"),
            },
            '$' => self.field_or_variable(Kind::Variable),
            '.' if !self.peek().is_some_and(|c| c.is_ascii_digit()) => {
                if self.pos < self.input.len() {
                    self.field_or_variable(Kind::Field)
                } else {
                    self.pos -= 1;
                    self.number()
                }
            }
            '.' | '+' | '-' | '0'..='9' => {
                self.pos -= 1;
                self.number()
            }
            _ if is_alphanumeric(first) => {
                self.pos -= first.len_utf8();
                self.identifier()
            }
            '(' => {
                self.depth += 1;
                self.token(Kind::LeftParen)
            }
            ')' if self.depth == 0 => self.error("unexpected right paren"),
            ')' => {
                self.depth -= 1;
                self.token(Kind::RightParen)
            }
            ' '..='~' => self.token(Kind::Char),
            _ => self.error(format!(
                "unrecognized character in action: {}",
                shown(Some(first))
            )),
        }
    }

    fn space(&mut self) -> Token<'a> {
        let mut count = 0;
        while self.peek().is_some_and(|c| BLANKS.contains(&c)) {
            self.next();
            count += 1;
        }
        let last = &self.input[self.pos - 1..];
        if has_right_trim_mark(last) && last[2..].starts_with(self.right) {
            // The last blank belongs to the trim mark.
            self.pos -= 1;
            self.line -= usize::from(last.starts_with('\n'));
            if count == 1 {
                return self.right_delim();
            }
        }
        self.token(Kind::Space)
    }

    fn identifier(&mut self) -> Token<'a> {
        while self.peek().is_some_and(is_alphanumeric) {
            self.next();
        }
        if !self.at_terminator() {
            let bad = shown(self.peek());
            return self.error(format!("bad character {bad}"));
        }
        let kind = match &self.input[self.start..self.pos] {
            "block" => Kind::Block,
            "break" if self.break_is_keyword => Kind::Break,
            "continue" if self.continue_is_keyword => Kind::Continue,
            "define" => Kind::Define,
            "else" => Kind::Else,
            "end" => Kind::End,
            "if" => Kind::If,
            "range" => Kind::Range,
            "nil" => Kind::Nil,
            "template" => Kind::Template,
            "with" => Kind::With,
            "true" | "false" => Kind::Bool,
            _ => Kind::Identifier,
        };
        self.token(kind)
    }

    fn field_or_variable(&mut self, kind: Kind) -> Token<'a> {
        if self.at_terminator() {
            return self.token(if kind == Kind::Variable {
                Kind::Variable
            } else {
                Kind::Dot
            });
        }
        while self.peek().is_some_and(is_alphanumeric) {
            self.next();
        }
        if !self.at_terminator() {
            let bad = shown(self.peek());
            return self.error(format!("bad character {bad}"));
        }
        self.token(kind)
    }

    fn at_terminator(&self) -> bool {
        match self.peek() {
            None => true,
            Some(c) if BLANKS.contains(&c) || ".,|:)(".contains(c) => true,
            _ => self.rest().starts_with(self.right),
        }
    }

    fn quoted(&mut self, quote: char, kind: Kind, unterminated: &'static str) -> Token<'a> {
        loop {
            match self.next() {
                Some('\\') => {
                    if matches!(self.next(), None | Some('\n')) {
                        return self.error(unterminated);
                    }
                }
                None | Some('\n') => return self.error(unterminated),
                Some(c) if c == quote => return self.token(kind),
                _ => {}
            }
        }
    }

    fn number(&mut self) -> Token<'a> {
        if !self.scan_number() {
            return self.bad_number();
        }
        if matches!(self.peek(), Some('+' | '-')) {
            if !self.scan_number() || !self.input[..self.pos].ends_with('i') {
                return self.bad_number();
            }
            return self.token(Kind::Complex);
        }
        self.token(Kind::Number)
    }

    fn bad_number(&mut self) -> Token<'a> {
        let text = quote::quote(&self.input[self.start..self.pos]);
        self.error(format!("bad number syntax: {text}"))
    }

    fn accept(&mut self, valid: &str) -> bool {
        let found = self.peek().is_some_and(|c| valid.contains(c));
        if found {
            self.next();
        }
        found
    }

    fn accept_run(&mut self, valid: &str) {
        while self.accept(valid) {}
    }

    fn scan_number(&mut self) -> bool {
        const DECIMAL: &str = "0123456789_";
        const HEX: &str = "0123456789abcdefABCDEF_";
        self.accept("+-");
        let mut digits = DECIMAL;
        if self.accept("0") {
            if self.accept("xX") {
                digits = HEX;
            } else if self.accept("oO") {
                digits = "01234567_";
            } else if self.accept("bB") {
                digits = "01_";
            }
        }
        self.accept_run(digits);
        if self.accept(".") {
            self.accept_run(digits);
        }
        if (digits == DECIMAL && self.accept("eE")) || (digits == HEX && self.accept("pP")) {
            self.accept("+-");
            self.accept_run(DECIMAL);
        }
        self.accept("i");
        if self.peek().is_some_and(is_alphanumeric) {
            self.next();
            return false;
        }
        true
    }
}

fn newlines(text: &str) -> usize {
    text.bytes().filter(|byte| *byte == b'\n').count()
}

fn left_blanks(text: &str) -> usize {
    text.len() - text.trim_start_matches(BLANKS).len()
}

fn has_left_trim_mark(text: &str) -> bool {
    text.strip_prefix('-')
        .is_some_and(|rest| rest.starts_with(BLANKS))
}

fn has_right_trim_mark(text: &str) -> bool {
    text.strip_prefix(BLANKS)
        .is_some_and(|rest| rest.starts_with('-'))
}

/// Letters, digits and the underscore.
pub(crate) fn is_alphanumeric(character: char) -> bool {
    character == '_' || character.is_alphabetic() || is_digit(character)
}

/// Decimal digits of any script; other numbers are not part of names.
fn is_digit(character: char) -> bool {
    character.is_ascii_digit() || (!character.is_ascii() && character.is_numeric())
}

/// A character as `%#U` writes it.
fn shown(character: Option<char>) -> String {
    match character {
        None => "U+FFFFFFFFFFFFFFFF".to_owned(),
        Some(character) if quote::is_print(character) => {
            format!("U+{:04X} '{character}'", u32::from(character))
        }
        Some(character) => format!("U+{:04X}", u32::from(character)),
    }
}
