//! Cuts the source into tokens, including broken ones, which are reported and skipped.

use crate::error::Problems;
use crate::source::Position;

/// The kinds of token, in the order in which syntax errors list what was expected.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum TokenKind {
    Equals,
    NotEquals,
    In,
    Less,
    LessEquals,
    GreaterEquals,
    Greater,
    And,
    Or,
    LeftBracket,
    RightBracket,
    LeftBrace,
    RightBrace,
    LeftParen,
    RightParen,
    Dot,
    Comma,
    Minus,
    Exclamation,
    Question,
    Colon,
    Plus,
    Star,
    Slash,
    Percent,
    True,
    False,
    Null,
    Float,
    Int,
    Uint,
    String,
    Bytes,
    Identifier,
    EscapedIdentifier,
    End,
}

impl TokenKind {
    /// The name used in syntax errors.
    pub(crate) fn name(self) -> &'static str {
        match self {
            TokenKind::Equals => "'=='",
            TokenKind::NotEquals => "'!='",
            TokenKind::In => "'in'",
            TokenKind::Less => "'<'",
            TokenKind::LessEquals => "'<='",
            TokenKind::GreaterEquals => "'>='",
            TokenKind::Greater => "'>'",
            TokenKind::And => "'&&'",
            TokenKind::Or => "'||'",
            TokenKind::LeftBracket => "'['",
            TokenKind::RightBracket => "']'",
            TokenKind::LeftBrace => "'{'",
            TokenKind::RightBrace => "'}'",
            TokenKind::LeftParen => "'('",
            TokenKind::RightParen => "')'",
            TokenKind::Dot => "'.'",
            TokenKind::Comma => "','",
            TokenKind::Minus => "'-'",
            TokenKind::Exclamation => "'!'",
            TokenKind::Question => "'?'",
            TokenKind::Colon => "':'",
            TokenKind::Plus => "'+'",
            TokenKind::Star => "'*'",
            TokenKind::Slash => "'/'",
            TokenKind::Percent => "'%'",
            TokenKind::True => "'true'",
            TokenKind::False => "'false'",
            TokenKind::Null => "'null'",
            TokenKind::Float => "NUM_FLOAT",
            TokenKind::Int => "NUM_INT",
            TokenKind::Uint => "NUM_UINT",
            TokenKind::String => "STRING",
            TokenKind::Bytes => "BYTES",
            TokenKind::Identifier => "IDENTIFIER",
            TokenKind::EscapedIdentifier => "ESC_IDENTIFIER",
            TokenKind::End => "<EOF>",
        }
    }
}

/// One token and where it stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Token {
    pub(crate) kind: TokenKind,
    pub(crate) start: usize,
    pub(crate) end: usize,
}

impl Token {
    pub(crate) fn position(self) -> Position {
        Position::at(self.start)
    }

    pub(crate) fn text(self, source: &str) -> &str {
        source.get(self.start..self.end).unwrap_or_default()
    }
}

/// All tokens of `source`; the last one is always [`TokenKind::End`].
pub(crate) fn tokenize(source: &str, problems: &mut Problems) -> Vec<Token> {
    let mut lexer = Lexer {
        source,
        bytes: source.as_bytes(),
        at: 0,
    };
    let mut tokens = Vec::with_capacity(source.len() / 3 + 1);
    loop {
        lexer.skip_blank();
        let start = lexer.at;
        if start >= source.len() {
            break;
        }
        if let Some(kind) = lexer.next_kind() {
            tokens.push(Token {
                kind,
                start,
                end: lexer.at,
            });
        } else {
            lexer.at = lexer.broken_end(start);
            let text = &source[start..lexer.at];
            problems.report(
                Position::at(start),
                format!(
                    "Syntax error: token recognition error at: '{}'",
                    escape(text)
                ),
            );
        }
    }
    tokens.push(Token {
        kind: TokenKind::End,
        start: source.len(),
        end: source.len(),
    });
    tokens
}

/// Line ends and tabs are shown escaped in messages.
pub(crate) fn escape(text: &str) -> String {
    text.replace('\n', "\\n")
        .replace('\r', "\\r")
        .replace('\t', "\\t")
}

struct Lexer<'s> {
    source: &'s str,
    bytes: &'s [u8],
    at: usize,
}

impl Lexer<'_> {
    fn byte(&self, ahead: usize) -> u8 {
        self.bytes.get(self.at + ahead).copied().unwrap_or(0)
    }

    fn skip_blank(&mut self) {
        loop {
            match self.byte(0) {
                b' ' | b'\t' | b'\r' | b'\n' | 0x0c if self.at < self.bytes.len() => self.at += 1,
                b'/' if self.byte(1) == b'/' => {
                    let rest = &self.bytes[self.at..];
                    let length = rest.iter().position(|b| *b == b'\n').unwrap_or(rest.len());
                    self.at += length;
                }
                _ => return,
            }
        }
    }

    fn next_kind(&mut self) -> Option<TokenKind> {
        use TokenKind as K;
        let (length, kind) = match (self.byte(0), self.byte(1)) {
            (b'=', b'=') => (2, K::Equals),
            (b'!', b'=') => (2, K::NotEquals),
            (b'<', b'=') => (2, K::LessEquals),
            (b'>', b'=') => (2, K::GreaterEquals),
            (b'&', b'&') => (2, K::And),
            (b'|', b'|') => (2, K::Or),
            (b'<', _) => (1, K::Less),
            (b'>', _) => (1, K::Greater),
            (b'[', _) => (1, K::LeftBracket),
            (b']', _) => (1, K::RightBracket),
            (b'{', _) => (1, K::LeftBrace),
            (b'}', _) => (1, K::RightBrace),
            (b'(', _) => (1, K::LeftParen),
            (b')', _) => (1, K::RightParen),
            (b'.', next) if !next.is_ascii_digit() => (1, K::Dot),
            (b',', _) => (1, K::Comma),
            (b'-', _) => (1, K::Minus),
            (b'!', _) => (1, K::Exclamation),
            (b'?', _) => (1, K::Question),
            (b':', _) => (1, K::Colon),
            (b'+', _) => (1, K::Plus),
            (b'*', _) => (1, K::Star),
            (b'/', _) => (1, K::Slash),
            (b'%', _) => (1, K::Percent),
            (b'"' | b'\'', _) => return self.string(false).then_some(K::String),
            (b'`', _) => return self.escaped_identifier(),
            (b'.' | b'0'..=b'9', _) => return Some(self.number()),
            (first, _) if first.is_ascii_alphabetic() || first == b'_' => {
                return Some(self.word());
            }
            _ => return None,
        };
        self.at += length;
        Some(kind)
    }

    /// An identifier, keyword, or the prefix of a raw or bytes literal.
    fn word(&mut self) -> TokenKind {
        if let Some(kind) = self.prefixed_string() {
            return kind;
        }
        let start = self.at;
        while self.byte(0).is_ascii_alphanumeric() || self.byte(0) == b'_' {
            self.at += 1;
        }
        match &self.source[start..self.at] {
            "in" => TokenKind::In,
            "true" => TokenKind::True,
            "false" => TokenKind::False,
            "null" => TokenKind::Null,
            _ => TokenKind::Identifier,
        }
    }

    fn prefixed_string(&mut self) -> Option<TokenKind> {
        let start = self.at;
        let (bytes, raw) = match (self.byte(0), self.byte(1)) {
            (b'b' | b'B', b'r' | b'R') => (true, true),
            (b'b' | b'B', _) => (true, false),
            (b'r' | b'R', _) => (false, true),
            _ => return None,
        };
        self.at += usize::from(bytes) + usize::from(raw);
        if matches!(self.byte(0), b'"' | b'\'') && self.string(raw) {
            return Some(if bytes {
                TokenKind::Bytes
            } else {
                TokenKind::String
            });
        }
        self.at = start;
        None
    }

    /// Consumes a quoted literal; on failure nothing is consumed.
    fn string(&mut self, raw: bool) -> bool {
        let start = self.at;
        let quote = self.byte(0);
        let triple = self.byte(1) == quote && self.byte(2) == quote;
        if triple && self.quoted_body(quote, true, raw, start + 3) {
            return true;
        }
        // `''` followed by something else is an empty string, and so is the start of an
        // unclosed triple quote.
        self.quoted_body(quote, false, raw, start + 1) || {
            self.at = start;
            false
        }
    }

    fn quoted_body(&mut self, quote: u8, triple: bool, raw: bool, from: usize) -> bool {
        let mut at = from;
        while let Some(&byte) = self.bytes.get(at) {
            match byte {
                b'\\' if !raw => match escape_length(&self.bytes[at..]) {
                    Some(length) => at += length,
                    None => return false,
                },
                b'\n' | b'\r' if !triple => return false,
                _ if byte == quote && !triple => {
                    self.at = at + 1;
                    return true;
                }
                _ if byte == quote
                    && self.bytes.get(at + 1) == Some(&quote)
                    && self.bytes.get(at + 2) == Some(&quote) =>
                {
                    self.at = at + 3;
                    return true;
                }
                _ => at += 1,
            }
        }
        false
    }

    fn escaped_identifier(&mut self) -> Option<TokenKind> {
        let body = self.bytes.get(self.at + 1..)?;
        let length = body
            .iter()
            .position(|b| !(b.is_ascii_alphanumeric() || b"_.-/ ".contains(b)))?;
        if length == 0 || body[length] != b'`' {
            return None;
        }
        self.at += length + 2;
        Some(TokenKind::EscapedIdentifier)
    }

    fn digits(&mut self) {
        while self.byte(0).is_ascii_digit() {
            self.at += 1;
        }
    }

    fn number(&mut self) -> TokenKind {
        if self.byte(0) == b'0' && self.byte(1) == b'x' && self.byte(2).is_ascii_hexdigit() {
            self.at += 2;
            while self.byte(0).is_ascii_hexdigit() {
                self.at += 1;
            }
            return self.unsigned_suffix();
        }
        self.digits();
        let mut float = false;
        if self.byte(0) == b'.' && self.byte(1).is_ascii_digit() {
            float = true;
            self.at += 1;
            self.digits();
        }
        if matches!(self.byte(0), b'e' | b'E') {
            let sign = usize::from(matches!(self.byte(1), b'+' | b'-'));
            if self.byte(1 + sign).is_ascii_digit() {
                float = true;
                self.at += 1 + sign;
                self.digits();
            }
        }
        if float {
            TokenKind::Float
        } else {
            self.unsigned_suffix()
        }
    }

    fn unsigned_suffix(&mut self) -> TokenKind {
        if matches!(self.byte(0), b'u' | b'U') {
            self.at += 1;
            TokenKind::Uint
        } else {
            TokenKind::Int
        }
    }

    /// How far a token that cannot be recognised reaches.
    fn broken_end(&self, start: usize) -> usize {
        let rest = &self.source[start..];
        let first = rest.chars().next().map_or(1, char::len_utf8);
        match self.bytes[start] {
            // `&x` fails on the second character, which is part of the broken token.
            b'&' | b'|' | b'=' => {
                start + first + rest[first..].chars().next().map_or(0, char::len_utf8)
            }
            b'"' | b'\'' => start + broken_string_length(rest),
            b'`' => {
                let body = rest[1..]
                    .bytes()
                    .take_while(|b| b.is_ascii_alphanumeric() || b"_.-/ ".contains(b))
                    .count();
                let next = rest[1 + body..].chars().next().map_or(0, char::len_utf8);
                start + 1 + body + next
            }
            _ => start + first,
        }
    }
}

/// The length of an unclosed single-line string up to and with the character that broke it.
fn broken_string_length(rest: &str) -> usize {
    let mut escaped = false;
    for (index, character) in rest.char_indices().skip(1) {
        if escaped {
            escaped = false;
            if escape_length(&rest.as_bytes()[index - 1..]).is_none() {
                return index + character.len_utf8();
            }
            continue;
        }
        match character {
            '\\' => escaped = true,
            '\n' | '\r' => return index + 1,
            _ => {}
        }
    }
    rest.len()
}

/// The length of the escape sequence at the start of `bytes`, if it is well formed.
fn escape_length(bytes: &[u8]) -> Option<usize> {
    let hex = |count: usize| {
        bytes
            .get(2..2 + count)
            .is_some_and(|digits| digits.iter().all(u8::is_ascii_hexdigit))
            .then_some(2 + count)
    };
    match bytes.get(1)? {
        b'a' | b'b' | b'f' | b'n' | b'r' | b't' | b'v' | b'"' | b'\'' | b'\\' | b'?' | b'`' => {
            Some(2)
        }
        b'x' | b'X' => hex(2),
        b'u' => hex(4),
        b'U' => hex(8),
        b'0'..=b'3' => bytes
            .get(2..4)
            .is_some_and(|digits| digits.iter().all(|d| (b'0'..=b'7').contains(d)))
            .then_some(4),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(source: &str, expected: &[&str]) {
        let mut problems = Problems::default();
        let tokens = tokenize(source, &mut problems);
        let actual: Vec<&str> = tokens[..tokens.len() - 1]
            .iter()
            .map(|token| token.text(source))
            .collect();
        assert_eq!(actual, expected, "{source}");
        assert!(problems.is_empty(), "{source}: {problems:?}");
    }

    #[track_caller]
    fn check_broken(source: &str, expected: &str) {
        let mut problems = Problems::default();
        tokenize(source, &mut problems);
        let text = problems.into_errors(source).to_string();
        assert!(text.contains(expected), "{source}: {text}");
    }

    #[test]
    fn operators_and_words_are_cut() {
        check(
            "a.b[?0]<=1u&&!inx in y",
            &[
                "a", ".", "b", "[", "?", "0", "]", "<=", "1u", "&&", "!", "inx", "in", "y",
            ],
        );
    }

    #[test]
    fn numbers_of_every_shape_are_one_token() {
        check(
            "1 0x1Fu 1.5e3 .5 1e-2 3.x",
            &["1", "0x1Fu", "1.5e3", ".5", "1e-2", "3", ".", "x"],
        );
    }

    #[test]
    fn strings_of_every_shape_are_one_token() {
        check(
            r#"'a\'b' "" r'\' b"x" """a"b""" br'\x'"#,
            &[
                r"'a\'b'",
                r#""""#,
                r"r'\'",
                r#"b"x""#,
                r#""""a"b""""#,
                r"br'\x'",
            ],
        );
    }

    #[test]
    fn comments_and_blanks_are_skipped() {
        check("a // c ' \n\t b", &["a", "b"]);
    }

    #[test]
    fn unknown_characters_are_reported() {
        check_broken("a @ b", "token recognition error at: '@'");
        check_broken("'abc", "token recognition error at: ''abc'");
        check_broken("'a\nb", "token recognition error at: ''a\\n'");
    }
}
