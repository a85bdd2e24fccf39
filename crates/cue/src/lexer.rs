//! Turns source text into tokens, inserting commas at line ends.
//!
//! The lexer is driven by the parser one token at a time. String literals are
//! special: the lexer reports their opening only, and the parser asks for the
//! text pieces with [`Lexer::string_piece`], because interpolations nest.

use crate::token::{Span, Token};

/// The opening of a string or bytes literal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Quote {
    /// `"` or `'`.
    pub(crate) byte: u8,
    /// Number of `#` around the literal.
    pub(crate) hashes: usize,
    /// Whether the delimiter is tripled.
    pub(crate) multiline: bool,
}

/// How a piece of a string literal ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PieceEnd {
    /// At the closing delimiter.
    Close,
    /// At `\(`.
    Interpolation,
    /// The text ended first.
    Unterminated,
}

/// A comment found between tokens.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RawComment {
    pub(crate) span: Span,
}

/// The state of the scan.
#[derive(Debug)]
pub(crate) struct Lexer<'a> {
    source: &'a [u8],
    text: &'a str,
    offset: usize,
    /// Whether a newline now stands for a comma.
    insert_comma: bool,
    /// Comments met since the parser last took them.
    pub(crate) comments: Vec<RawComment>,
    /// Problems met since the parser last took them.
    pub(crate) errors: Vec<(Span, String)>,
    /// The opening of the string token just returned.
    pub(crate) quote: Quote,
    /// Whether the comma token just returned was inserted.
    pub(crate) comma_inserted: bool,
}

impl<'a> Lexer<'a> {
    pub(crate) fn new(text: &'a str) -> Self {
        let offset = if text.starts_with('\u{feff}') { 3 } else { 0 };
        Self {
            source: text.as_bytes(),
            text,
            offset,
            insert_comma: false,
            comments: Vec::new(),
            errors: Vec::new(),
            quote: Quote {
                byte: b'"',
                hashes: 0,
                multiline: false,
            },
            comma_inserted: false,
        }
    }

    fn byte(&self, ahead: usize) -> u8 {
        self.source.get(self.offset + ahead).copied().unwrap_or(0)
    }

    /// The next byte that is neither blank nor newline, without consuming anything.
    pub(crate) fn peek_significant(&self) -> u8 {
        self.source[self.offset.min(self.source.len())..]
            .iter()
            .copied()
            .find(|byte| !matches!(byte, b' ' | b'\t' | b'\r'))
            .unwrap_or(0)
    }

    /// The two bytes at the next significant position.
    pub(crate) fn peek_pair(&self) -> (u8, u8) {
        let rest = &self.source[self.offset.min(self.source.len())..];
        let start = rest
            .iter()
            .position(|byte| !matches!(byte, b' ' | b'\t' | b'\r'));
        let at = |index: usize| rest.get(index).copied().unwrap_or(0);
        start.map_or((0, 0), |start| (at(start), at(start + 1)))
    }

    /// The next token and its span.
    pub(crate) fn next(&mut self) -> (Token, Span) {
        if let Some(span) = self.skip_blanks() {
            self.insert_comma = false;
            self.comma_inserted = true;
            return (Token::Comma, span);
        }
        self.comma_inserted = false;
        let start = self.offset;
        if start >= self.source.len() {
            if self.insert_comma {
                self.insert_comma = false;
                self.comma_inserted = true;
                return (Token::Comma, Span::new(start, start));
            }
            return (Token::Eof, Span::new(start, start));
        }
        let token = self.token();
        self.insert_comma = matches!(
            token,
            Token::Ident
                | Token::Bottom
                | Token::Int
                | Token::Float
                | Token::RightParen
                | Token::RightBracket
                | Token::RightBrace
                | Token::Option
                | Token::Ellipsis
                | Token::Attribute
        );
        (token, Span::new(start, self.offset))
    }

    /// Skips blanks and comments; returns the place of an inserted comma, if one is due.
    fn skip_blanks(&mut self) -> Option<Span> {
        loop {
            match self.byte(0) {
                b'\n' if self.insert_comma && !self.continues() => {
                    return Some(Span::new(self.offset, self.offset));
                }
                b' ' | b'\t' | b'\r' | b'\n' => self.offset += 1,
                b'/' if self.byte(1) == b'/' => {
                    if self.insert_comma {
                        // The comma stands before the comment, so that the comment
                        // is seen after the declaration it trails.
                        return Some(Span::new(self.offset, self.offset));
                    }
                    let rest = &self.source[self.offset..];
                    let length = rest.iter().position(|b| *b == b'\n').unwrap_or(rest.len());
                    let text = &self.text[self.offset..self.offset + length];
                    let end = self.offset + text.trim_end().len();
                    self.comments.push(RawComment {
                        span: Span::new(self.offset, end),
                    });
                    self.offset += length;
                }
                _ => return None,
            }
        }
    }

    /// Whether the next line goes on with a comma or colon, so that none is inserted here.
    fn continues(&self) -> bool {
        let rest = &self.source[self.offset..];
        let next = rest.iter().find(|byte| !byte.is_ascii_whitespace());
        matches!(next, Some(b',' | b':'))
    }

    fn token(&mut self) -> Token {
        let first = self.byte(0);
        match first {
            b'_' if self.source[self.offset..].starts_with(b"_|_") => self.take(3, Token::Bottom),
            b'a'..=b'z' | b'A'..=b'Z' | b'_' | b'$' => self.identifier(),
            b'#' => self.hash(),
            b'0'..=b'9' => self.number(),
            b'.' if self.byte(1).is_ascii_digit() => self.number(),
            b'"' | b'\'' => self.open_quote(0),
            b'@' => self.attribute(),
            _ if first >= 0x80 => {
                let character = self.text[self.offset..].chars().next().unwrap_or(' ');
                if character.is_alphabetic() {
                    self.identifier()
                } else {
                    self.illegal()
                }
            }
            _ => self.operator(first),
        }
    }

    fn take(&mut self, length: usize, token: Token) -> Token {
        self.offset += length;
        token
    }

    fn operator(&mut self, first: u8) -> Token {
        let second = self.byte(1);
        match (first, second) {
            (b'.', b'.') if self.byte(2) == b'.' => self.take(3, Token::Ellipsis),
            (b'.', _) => self.take(1, Token::Period),
            (b'=', b'=') => self.take(2, Token::Equal),
            (b'=', b'~') => self.take(2, Token::Match),
            (b'=', _) => self.take(1, Token::Bind),
            (b'!', b'=') => self.take(2, Token::NotEqual),
            (b'!', b'~') => self.take(2, Token::NotMatch),
            (b'!', _) => self.take(1, Token::Not),
            (b'<', b'=') => self.take(2, Token::LessEqual),
            (b'<', _) => self.take(1, Token::Less),
            (b'>', b'=') => self.take(2, Token::GreaterEqual),
            (b'>', _) => self.take(1, Token::Greater),
            (b'&', b'&') => self.take(2, Token::LogicalAnd),
            (b'&', _) => self.take(1, Token::And),
            (b'|', b'|') => self.take(2, Token::LogicalOr),
            (b'|', _) => self.take(1, Token::Or),
            (b'+', _) => self.take(1, Token::Add),
            (b'-', _) => self.take(1, Token::Sub),
            (b'*', _) => self.take(1, Token::Mul),
            (b'/', _) => self.take(1, Token::Quo),
            (b'(', _) => self.take(1, Token::LeftParen),
            (b')', _) => self.take(1, Token::RightParen),
            (b'[', _) => self.take(1, Token::LeftBracket),
            (b']', _) => self.take(1, Token::RightBracket),
            (b'{', _) => self.take(1, Token::LeftBrace),
            (b'}', _) => self.take(1, Token::RightBrace),
            (b',', _) => self.take(1, Token::Comma),
            (b':', _) => self.take(1, Token::Colon),
            (b'?', _) => self.take(1, Token::Option),
            _ => self.illegal(),
        }
    }

    fn illegal(&mut self) -> Token {
        let character = self.text[self.offset..].chars().next().unwrap_or('\0');
        let span = Span::new(self.offset, self.offset + character.len_utf8());
        let code = u32::from(character);
        self.errors.push((
            span,
            format!("illegal character U+{code:04X} '{character}'"),
        ));
        self.offset += character.len_utf8();
        Token::Illegal
    }

    fn identifier(&mut self) -> Token {
        let rest = &self.text[self.offset..];
        let length = rest
            .char_indices()
            .find(|(_, c)| !(c.is_alphanumeric() || matches!(c, '_' | '$' | '#')))
            .map_or(rest.len(), |(index, _)| index);
        // `#` may only open an identifier, possibly after one underscore.
        let bytes = rest.as_bytes();
        let prefix = if rest.starts_with("_#") { 2 } else { 1 };
        let length = bytes[..length]
            .iter()
            .enumerate()
            .skip(prefix)
            .find(|(_, byte)| **byte == b'#')
            .map_or(length, |(index, _)| index);
        self.take(length, Token::Ident)
    }

    /// `#name`, or a raw string.
    fn hash(&mut self) -> Token {
        let hashes = self.source[self.offset..]
            .iter()
            .take_while(|b| **b == b'#')
            .count();
        match self.byte(hashes) {
            b'"' | b'\'' => self.open_quote(hashes),
            _ => self.identifier(),
        }
    }

    fn open_quote(&mut self, hashes: usize) -> Token {
        let byte = self.byte(hashes);
        let multiline = self.byte(hashes + 1) == byte && self.byte(hashes + 2) == byte;
        // `""` is an empty string, `"""` opens a multi-line one only at a line end.
        let multiline = multiline && matches!(self.byte(hashes + 3), b'\n' | b'\r');
        self.quote = Quote {
            byte,
            hashes,
            multiline,
        };
        self.take(hashes + if multiline { 3 } else { 1 }, Token::String)
    }

    /// Scans literal text up to the closing delimiter or an interpolation. The span covers the
    /// text only; the delimiter is consumed.
    pub(crate) fn string_piece(&mut self, quote: Quote) -> (Span, PieceEnd) {
        let start = self.offset;
        loop {
            let Some(byte) = self.source.get(self.offset).copied() else {
                return (Span::new(start, self.offset), PieceEnd::Unterminated);
            };
            let end = Span::new(start, self.offset);
            if byte == b'\\' && self.hashes_follow(self.offset + 1, quote.hashes) {
                let escaped = self.offset + 1 + quote.hashes;
                if self.source.get(escaped) == Some(&b'(') {
                    self.offset = escaped + 1;
                    self.insert_comma = false;
                    return (end, PieceEnd::Interpolation);
                }
                let character = self.text[escaped..]
                    .chars()
                    .next()
                    .map_or(1, char::len_utf8);
                if !quote.multiline && self.source.get(escaped) == Some(&b'\n') {
                    return (end, PieceEnd::Unterminated);
                }
                self.offset = escaped + character;
            } else if self.closes(quote) {
                self.offset += if quote.multiline { 3 } else { 1 } + quote.hashes;
                self.insert_comma = true;
                return (end, PieceEnd::Close);
            } else if byte == b'\n' && !quote.multiline {
                self.insert_comma = true;
                return (end, PieceEnd::Unterminated);
            } else {
                self.offset += 1;
            }
        }
    }

    fn hashes_follow(&self, offset: usize, count: usize) -> bool {
        let found = self.source.get(offset..offset + count);
        found.is_some_and(|bytes| bytes.iter().all(|byte| *byte == b'#'))
    }

    fn closes(&self, quote: Quote) -> bool {
        let width = if quote.multiline { 3 } else { 1 };
        let delimiter = self.source.get(self.offset..self.offset + width);
        delimiter.is_some_and(|bytes| bytes.iter().all(|byte| *byte == quote.byte))
            && self.hashes_follow(self.offset + width, quote.hashes)
    }

    /// Continues after the `)` of an interpolation: the next scan is a string piece again.
    pub(crate) fn resume_string(&mut self, offset: u32) {
        self.offset = offset as usize;
        self.insert_comma = false;
    }

    fn number(&mut self) -> Token {
        let start = self.offset;
        if self.byte(0) == b'0' && matches!(self.byte(1), b'x' | b'X' | b'o' | b'b' | b'B' | b'O') {
            self.offset += 2;
            self.digits(|byte| byte.is_ascii_hexdigit());
            return Token::Int;
        }
        self.digits(|byte| byte.is_ascii_digit());
        let mut token = Token::Int;
        if self.byte(0) == b'.' && !(self.byte(1) == b'.' && self.byte(2) == b'.') {
            token = Token::Float;
            self.offset += 1;
            self.digits(|byte| byte.is_ascii_digit());
        }
        if matches!(self.byte(0), b'e' | b'E') {
            token = Token::Float;
            self.offset += 1;
            if matches!(self.byte(0), b'+' | b'-') {
                self.offset += 1;
            }
            self.digits(|byte| byte.is_ascii_digit());
        } else if matches!(self.byte(0), b'K' | b'M' | b'G' | b'T' | b'P') {
            self.offset += 1;
            if self.byte(0) == b'i' {
                self.offset += 1;
            }
            token = Token::Int;
        }
        let text = &self.text[start..self.offset];
        let leading_zero = text.len() > 1 && text.starts_with('0') && token == Token::Int;
        if leading_zero && text.as_bytes()[1].is_ascii_digit() {
            let span = Span::new(start, self.offset);
            self.errors.push((span, "illegal integer number".into()));
        }
        token
    }

    fn digits(&mut self, accept: fn(u8) -> bool) {
        while accept(self.byte(0)) || (self.byte(0) == b'_' && accept(self.byte(1))) {
            self.offset += 1;
        }
    }

    fn skip_string(&mut self, hashes: usize) {
        self.open_quote(hashes);
        let quote = self.quote;
        while let (_, PieceEnd::Interpolation) = self.string_piece(quote) {}
    }

    /// `@name(balanced text)`
    fn attribute(&mut self) -> Token {
        let start = self.offset;
        self.offset += 1;
        self.identifier();
        if self.byte(0) != b'(' {
            let span = Span::new(start, self.offset);
            self.errors
                .push((span, "invalid attribute: expected '('".into()));
            return Token::Illegal;
        }
        let mut depth = 0_usize;
        while let Some(byte) = self.source.get(self.offset).copied() {
            match byte {
                b'(' | b'[' | b'{' => depth += 1,
                b')' | b']' | b'}' => depth = depth.saturating_sub(1),
                b'"' | b'\'' => {
                    self.skip_string(0);
                    continue;
                }
                b'#' => {
                    let rest = &self.source[self.offset..];
                    let hashes = rest.iter().take_while(|byte| **byte == b'#').count();
                    if matches!(rest.get(hashes), Some(b'"' | b'\'')) {
                        self.skip_string(hashes);
                    } else {
                        self.offset += hashes;
                    }
                    continue;
                }
                b'/' if self.byte(1) == b'/' => {
                    let rest = &self.source[self.offset..];
                    self.offset += rest.iter().position(|b| *b == b'\n').unwrap_or(rest.len());
                    continue;
                }
                _ => {}
            }
            self.offset += 1;
            if depth == 0 {
                return Token::Attribute;
            }
        }
        self.errors.push((
            Span::new(start, self.offset),
            "attribute missing ')'".into(),
        ));
        Token::Attribute
    }
}
