//! Recursive-descent parser: text in, tree and problems out.
//!
//! [`parse_file`] always returns a tree; what could not be read becomes
//! [`DeclKind::Bad`](crate::ast::DeclKind::Bad) or [`ExprKind::Bad`] and a diagnostic. Nesting is bounded by
//! [`MAX_DEPTH`], so no input can exhaust the stack.

mod comments;
mod declarations;
mod expressions;
mod strings;

use std::sync::Arc;

use crate::ast::{Expr, ExprKind, File};
use crate::diagnostic::{Diagnostic, Location, Phase};
use crate::lexer::Lexer;
use crate::token::{LineIndex, Span, Token};

/// Deepest nesting of expressions, structs and lists. People stay below thirty; the limit keeps
/// the native stack of the recursive stages small.
pub const MAX_DEPTH: u32 = 400;

/// More problems than this are not listed: the first ones matter.
const MAX_ERRORS: usize = 20;

/// Parses one file. The tree is complete even if problems are returned.
pub fn parse_file(name: &str, source: &str) -> (File, Vec<Diagnostic>) {
    let mut parser = Parser::new(name, source);
    let file = parser.file();
    (file, parser.diagnostics)
}

/// Parses a single expression that must fill the whole text.
pub fn parse_expression(name: &str, source: &str) -> (Expr, Vec<Diagnostic>) {
    let mut parser = Parser::new(name, source);
    let expr = parser.expression();
    if parser.token == Token::Comma {
        parser.advance();
    }
    if parser.token != Token::Eof {
        parser.expected("operator");
    }
    (expr, parser.diagnostics)
}

pub(crate) struct Parser<'a> {
    name: Arc<str>,
    source: &'a str,
    lines: LineIndex,
    lexer: Lexer<'a>,
    token: Token,
    span: Span,
    /// End of the token before the current one.
    previous_end: u32,
    depth: u32,
    pending: Vec<Span>,
    diagnostics: Vec<Diagnostic>,
}

impl<'a> Parser<'a> {
    fn new(name: &str, source: &'a str) -> Self {
        let mut parser = Self {
            name: name.into(),
            source,
            lines: LineIndex::new(source),
            lexer: Lexer::new(source),
            token: Token::Eof,
            span: Span::default(),
            previous_end: 0,
            depth: 0,
            pending: Vec::new(),
            diagnostics: Vec::new(),
        };
        parser.advance();
        parser
    }

    fn advance(&mut self) {
        self.previous_end = self.span.end;
        (self.token, self.span) = self.lexer.next();
        self.pending
            .extend(self.lexer.comments.drain(..).map(|comment| comment.span));
        for (span, message) in std::mem::take(&mut self.lexer.errors) {
            self.error(span, message);
        }
    }

    fn error(&mut self, span: Span, message: impl Into<String>) {
        if self.diagnostics.len() >= MAX_ERRORS {
            return;
        }
        let at = self.lines.locate(span.start);
        let location = Location {
            file: self.name.clone(),
            at,
        };
        // One problem per line: the rest are usually its consequences.
        let same_line = |known: &Diagnostic| {
            known
                .location
                .as_ref()
                .is_some_and(|known| known.at.line == at.line)
        };
        if self.diagnostics.iter().any(same_line) {
            return;
        }
        self.diagnostics
            .push(Diagnostic::at(Phase::Parse, message, Some(location)));
    }

    fn expected(&mut self, what: &str) {
        let found = self.describe_token();
        self.error(self.span, format!("expected {what}, found {found}"));
    }

    fn describe_token(&self) -> String {
        let text = self.span.text(self.source);
        match self.token {
            Token::Eof => "'EOF'".into(),
            Token::Comma if self.lexer.comma_inserted => "newline".into(),
            Token::Ident if is_keyword(text) => format!("'{text}'"),
            Token::Ident => format!("'IDENT' {text}"),
            Token::Int => format!("'INT' {text}"),
            Token::Float => format!("'FLOAT' {text}"),
            Token::String => "'STRING'".into(),
            Token::Illegal => "'ILLEGAL'".into(),
            _ => format!("'{text}'"),
        }
    }

    /// Consumes the token if it is the wanted one, else reports what was expected.
    fn expect(&mut self, token: Token, text: &str) -> bool {
        if self.token == token {
            self.advance();
            return true;
        }
        self.expected(text);
        false
    }

    fn text(&self) -> &'a str {
        self.span.text(self.source)
    }

    fn at_keyword(&self, keyword: &str) -> bool {
        self.token == Token::Ident && self.text() == keyword
    }

    /// Runs `body` one nesting level deeper, or reports that the limit is reached.
    fn nested<T>(&mut self, bad: impl FnOnce(Span) -> T, body: impl FnOnce(&mut Self) -> T) -> T {
        if self.depth >= MAX_DEPTH {
            let span = self.span;
            self.error(span, format!("nesting is deeper than {MAX_DEPTH} levels"));
            self.skip_rest();
            return bad(span);
        }
        self.depth += 1;
        let result = stacker::maybe_grow(64 * 1024, 1024 * 1024, || body(self));
        self.depth -= 1;
        result
    }

    /// After the depth limit nothing sensible follows: go to the end.
    fn skip_rest(&mut self) {
        while self.token != Token::Eof {
            if self.token == Token::String {
                while let (_, crate::lexer::PieceEnd::Interpolation) =
                    self.lexer.string_piece(self.lexer.quote)
                {}
            }
            self.advance();
        }
    }

    fn span_from(&self, start: Span) -> Span {
        Span {
            start: start.start,
            end: self.previous_end.max(start.start),
        }
    }

    fn file(&mut self) -> File {
        let mut attributes = Vec::new();
        while self.token == Token::Attribute {
            let attribute = self.attribute();
            if attribute.name() == "experiment" {
                self.error(
                    attribute.span,
                    "parsing experiments for version \"v0.14.1\"",
                );
            }
            attributes.push(attribute);
            self.declaration_end(Token::Eof);
        }
        let package = self.package_clause();
        let mut imports = Vec::new();
        while self.at_keyword("import") && !self.label_follows() {
            imports.push(self.import_declaration());
        }
        let decls = self.declarations(Token::Eof);
        let end_comments = self.take_groups(u32::MAX);
        File {
            name: self.name.clone(),
            source: self.source.into(),
            lines: self.lines.clone(),
            package,
            imports,
            attributes,
            decls,
            end_comments,
        }
    }

    fn bad_expression(&self) -> Expr {
        Expr {
            span: self.span,
            kind: ExprKind::Bad,
        }
    }
}

/// Words with a meaning of their own where a value or clause is expected.
pub fn is_keyword(text: &str) -> bool {
    matches!(
        text,
        "if" | "for" | "in" | "let" | "true" | "false" | "null" | "package" | "import"
    )
}

#[cfg(test)]
mod tests;
