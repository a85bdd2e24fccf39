//! Decoding of string and bytes literals, with their interpolations.

use super::Parser;
use crate::ast::{Expr, ExprKind, Interpolation, InterpolationPart};
use crate::lexer::{PieceEnd, Quote};
use crate::token::{Span, Token};

impl Parser<'_> {
    /// Parses the literal whose opening is the current token.
    pub(super) fn string_literal(&mut self) -> Expr {
        let start = self.span;
        let quote = self.lexer.quote;
        let bytes = quote.byte == b'\'';
        let mut pieces: Vec<(Span, Span)> = Vec::new();
        let mut exprs = Vec::new();
        let mut piece_start = start;
        loop {
            let (text, end) = self.lexer.string_piece(quote);
            pieces.push((text, piece_start));
            match end {
                PieceEnd::Close => break,
                PieceEnd::Unterminated => {
                    self.span = Span {
                        start: start.start,
                        end: text.end,
                    };
                    self.error(start, "string literal not terminated");
                    break;
                }
                PieceEnd::Interpolation => {
                    self.advance();
                    let inner = self.expression();
                    exprs.push(inner);
                    if self.token == Token::Comma && self.lexer.comma_inserted {
                        self.advance();
                    }
                    if self.token != Token::RightParen {
                        self.expected("')' for string interpolation");
                        self.skip_to_interpolation_end();
                        if self.token != Token::RightParen {
                            return Expr {
                                span: start,
                                kind: ExprKind::Bad,
                            };
                        }
                    }
                    piece_start = self.span;
                    self.lexer.resume_string(self.span.end);
                }
            }
        }
        let last = pieces.last().map_or(start.end, |(text, _)| text.end);
        let width = if quote.multiline { 3 } else { 1 } + quote.hashes;
        let width = u32::try_from(width).unwrap_or(0);
        let source_end = u32::try_from(self.source.len()).unwrap_or(u32::MAX);
        let whole = Span {
            start: start.start,
            end: (last + width).min(source_end),
        };
        let decoded = self.decode(quote, &pieces, whole);
        // Comments in interpolations belong to the text of the literal, which is kept as it is.
        self.pending
            .retain(|comment| comment.start < whole.start || comment.start >= whole.end);
        self.span = whole;
        self.advance();
        self.previous_end = whole.end;
        self.assemble(bytes, whole, decoded, pieces, exprs)
    }

    fn skip_to_interpolation_end(&mut self) {
        let mut depth = 0;
        while !matches!(self.token, Token::Eof) {
            match self.token {
                Token::LeftParen => depth += 1,
                Token::RightParen if depth == 0 => return,
                Token::RightParen => depth -= 1,
                Token::Comma if self.lexer.comma_inserted => return,
                _ => {}
            }
            self.advance();
        }
    }

    fn assemble(
        &mut self,
        bytes: bool,
        span: Span,
        mut decoded: Vec<Vec<u8>>,
        pieces: Vec<(Span, Span)>,
        exprs: Vec<Expr>,
    ) -> Expr {
        if exprs.is_empty() {
            let text = decoded.pop().unwrap_or_default();
            if bytes {
                return Expr {
                    span,
                    kind: ExprKind::Bytes(text.into()),
                };
            }
            let text = String::from_utf8(text).unwrap_or_else(|error| {
                self.error(span, "invalid string: not UTF-8");
                String::from_utf8_lossy(error.as_bytes()).into_owned()
            });
            return Expr {
                span,
                kind: ExprKind::String(text.into()),
            };
        }
        let mut parts = Vec::new();
        let mut exprs = exprs.into_iter();
        for (text, (piece, from)) in decoded.into_iter().zip(pieces) {
            let written = Span {
                start: from.start,
                end: piece.end,
            };
            parts.push(InterpolationPart::Text(text.into(), written));
            if let Some(expr) = exprs.next() {
                parts.push(InterpolationPart::Expr(expr));
            }
        }
        Expr {
            span,
            kind: ExprKind::Interpolation(Interpolation { bytes, parts }),
        }
    }

    /// Decodes the text pieces; for multi-line literals strips the indentation of the closing line.
    fn decode(&mut self, quote: Quote, pieces: &[(Span, Span)], whole: Span) -> Vec<Vec<u8>> {
        let texts: Vec<&str> = pieces
            .iter()
            .map(|(text, _)| text.text(self.source))
            .collect();
        if !quote.multiline {
            return texts
                .iter()
                .map(|text| self.unescape(quote, text, whole))
                .collect();
        }
        let last = texts.last().copied().unwrap_or("");
        let Some(line_start) = last.rfind('\n') else {
            self.error(whole, "invalid string: invalid whitespace");
            return texts.iter().map(|text| text.as_bytes().to_vec()).collect();
        };
        let indent = last[line_start + 1..].to_owned();
        if !indent.bytes().all(|byte| matches!(byte, b' ' | b'\t')) {
            self.error(whole, "invalid string: invalid whitespace");
        }
        let mut decoded = Vec::new();
        for (index, text) in texts.iter().enumerate() {
            let first = index == 0;
            let text = if index + 1 == texts.len() {
                &text[..line_start]
            } else {
                text
            };
            let stripped = self.strip_indent(text, &indent, first, whole);
            decoded.push(self.unescape(quote, &stripped, whole));
        }
        decoded
    }

    /// Removes the newline after the opening delimiter and `indent` at each line start.
    fn strip_indent(&mut self, text: &str, indent: &str, first: bool, whole: Span) -> String {
        let text = text.replace("\r\n", "\n");
        let mut lines = text.split('\n');
        let mut result = String::with_capacity(text.len());
        if let Some(head) = lines.next() {
            // The remainder of the opening line is empty by construction.
            result.push_str(head);
        }
        for (index, line) in lines.enumerate() {
            if !(first && index == 0) {
                result.push('\n');
            }
            match line.strip_prefix(indent) {
                Some(rest) => result.push_str(rest),
                None if line.trim().is_empty() => {}
                None => {
                    self.error(whole, "invalid string: invalid whitespace");
                    result.push_str(line);
                }
            }
        }
        result
    }

    fn unescape(&mut self, quote: Quote, text: &str, whole: Span) -> Vec<u8> {
        let mut out = Vec::with_capacity(text.len());
        let marker: String = std::iter::once('\\')
            .chain("#".repeat(quote.hashes).chars())
            .collect();
        let mut rest = text;
        while let Some(found) = rest.find(&marker) {
            out.extend_from_slice(&rest.as_bytes()[..found]);
            rest = &rest[found + marker.len()..];
            match escape(rest, quote) {
                Some((used, Escaped::Char(character))) => {
                    let mut buffer = [0; 4];
                    out.extend_from_slice(character.encode_utf8(&mut buffer).as_bytes());
                    rest = &rest[used..];
                }
                Some((used, Escaped::Byte(byte))) => {
                    out.push(byte);
                    rest = &rest[used..];
                }
                Some((used, Escaped::Nothing)) => rest = &rest[used..],
                None => {
                    self.error(whole, "invalid string: invalid syntax");
                    return out;
                }
            }
        }
        out.extend_from_slice(rest.as_bytes());
        out
    }
}

enum Escaped {
    Char(char),
    Byte(u8),
    Nothing,
}

/// Decodes one escape after its backslash; returns how many bytes it took.
fn escape(text: &str, quote: Quote) -> Option<(usize, Escaped)> {
    let first = text.as_bytes().first().copied()?;
    let one = |character: char| Some((1, Escaped::Char(character)));
    match first {
        b'a' => one('\u{7}'),
        b'b' => one('\u{8}'),
        b'f' => one('\u{c}'),
        b'n' => one('\n'),
        b'r' => one('\r'),
        b't' => one('\t'),
        b'v' => one('\u{b}'),
        b'/' => one('/'),
        b'\\' => one('\\'),
        b'"' if quote.byte == b'"' => one('"'),
        b'\'' if quote.byte == b'\'' => one('\''),
        b'\n' if quote.multiline => Some((1, Escaped::Nothing)),
        b'u' => unicode_escape(text, 4),
        b'U' => unicode_escape(text, 8),
        b'x' if quote.byte == b'\'' => {
            let digits = text.get(1..3)?;
            Some((3, Escaped::Byte(u8::from_str_radix(digits, 16).ok()?)))
        }
        b'0'..=b'7' if quote.byte == b'\'' => {
            let digits = text.get(0..3)?;
            Some((3, Escaped::Byte(u8::from_str_radix(digits, 8).ok()?)))
        }
        _ => None,
    }
}

fn unicode_escape(text: &str, width: usize) -> Option<(usize, Escaped)> {
    let digits = text.get(1..=width)?;
    let code = u32::from_str_radix(digits, 16).ok()?;
    // A surrogate pair is written as two escapes.
    if (0xd800..0xdc00).contains(&code) && width == 4 {
        let low = text
            .get(width + 1..)
            .and_then(|rest| rest.strip_prefix("\\u"))?;
        let low = u32::from_str_radix(low.get(..4)?, 16).ok()?;
        let combined = 0x1_0000 + ((code - 0xd800) << 10) + low.checked_sub(0xdc00)?;
        return Some((width + 7, Escaped::Char(char::from_u32(combined)?)));
    }
    Some((width + 1, Escaped::Char(char::from_u32(code)?)))
}
