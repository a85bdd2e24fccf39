//! Declarations: package and import clauses, fields, embeddings, comprehensions.

use super::Parser;
use crate::ast::{
    Attribute, Comments, Constraint, Decl, DeclKind, ElementKind, Expr, ExprKind, Field, Ident,
    ImportDecl, ImportSpec, Label, LabelKind, LetDecl, PackageClause, StructLit,
};
use crate::token::Token;

impl Parser<'_> {
    pub(super) fn package_clause(&mut self) -> Option<PackageClause> {
        if !self.at_keyword("package") || self.label_follows() {
            return None;
        }
        let mut comments = self.leading_comments();
        let start = self.span;
        self.advance();
        let name = self.identifier()?;
        if &*name.name == "_" || name.name.starts_with('#') {
            self.error(name.span, format!("invalid package name {}", name.name));
        }
        let span = self.span_from(start);
        self.declaration_end(Token::Eof);
        self.trailing_comments(&mut comments, span.end);
        Some(PackageClause {
            comments,
            span,
            name,
        })
    }

    pub(super) fn import_declaration(&mut self) -> ImportDecl {
        let mut comments = self.leading_comments();
        let start = self.span;
        self.advance();
        let mut specs = Vec::new();
        let mut end_comments = Vec::new();
        let grouped = self.token == Token::LeftParen;
        if grouped {
            self.advance();
            while !matches!(self.token, Token::RightParen | Token::Eof) {
                let before = self.span;
                if let Some(spec) = self.import_spec() {
                    specs.push(spec);
                }
                if self.span == before {
                    self.advance();
                }
            }
            end_comments = self.take_groups(self.span.start);
            self.expect(Token::RightParen, "')'");
        } else if let Some(spec) = self.import_spec_body() {
            specs.push(spec);
        }
        let span = self.span_from(start);
        self.declaration_end(Token::Eof);
        self.trailing_comments(&mut comments, span.end);
        ImportDecl {
            comments,
            span,
            grouped,
            specs,
            end_comments,
        }
    }

    fn import_spec(&mut self) -> Option<ImportSpec> {
        let comments = self.leading_comments();
        let mut spec = self.import_spec_body()?;
        spec.comments = comments;
        self.declaration_end(Token::RightParen);
        self.trailing_comments(&mut spec.comments, spec.span.end);
        Some(spec)
    }

    fn import_spec_body(&mut self) -> Option<ImportSpec> {
        let start = self.span;
        let name = if self.token == Token::Ident {
            self.identifier()
        } else {
            None
        };
        if self.token != Token::String {
            self.error(self.span, "missing import path; require quoted string");
            return None;
        }
        let path_span = self.span;
        let ExprKind::String(path) = self.string_literal().kind else {
            self.error(path_span, "import path must be a string");
            return None;
        };
        let path_span = self.span_from(path_span);
        let span = self.span_from(start);
        Some(ImportSpec {
            comments: Comments::default(),
            span,
            name,
            path,
            path_span,
        })
    }

    /// Members up to, but without, `end`.
    pub(super) fn declarations(&mut self, end: Token) -> Vec<Decl> {
        let mut decls = Vec::new();
        while !matches!(self.token, Token::Eof) && self.token != end {
            if self.token == Token::Comma {
                if !self.lexer.comma_inserted {
                    self.expected("label or ':'");
                }
                self.advance();
                continue;
            }
            let mut comments = self.leading_comments();
            let start = self.span;
            let kind = self.declaration(end);
            let span = self.span_from(start);
            let written_comma = self.token == Token::Comma && !self.lexer.comma_inserted;
            let line_end = if written_comma {
                self.span.end
            } else {
                span.end
            };
            self.declaration_end(end);
            self.trailing_comments(&mut comments, line_end);
            decls.push(Decl {
                span,
                comments,
                kind,
            });
            if self.span == start {
                // Nothing was consumed: skip a token so that the loop ends.
                self.advance();
            }
        }
        decls
    }

    /// Consumes the comma after a declaration, or reports that it is missing.
    pub(super) fn declaration_end(&mut self, end: Token) {
        match self.token {
            Token::Comma => self.advance(),
            Token::Eof => {}
            token if token == end => {}
            _ => {
                self.error(self.span, "missing ',' in struct literal");
                self.synchronize(end);
            }
        }
    }

    /// After an error, continues at the next line or at the end of the struct.
    fn synchronize(&mut self, end: Token) {
        let mut depth = 0_u32;
        while self.token != Token::Eof {
            match self.token {
                Token::Comma if depth == 0 => {
                    self.advance();
                    return;
                }
                token if depth == 0 && token == end => return,
                Token::LeftBrace | Token::LeftBracket | Token::LeftParen => depth += 1,
                Token::RightBrace | Token::RightBracket | Token::RightParen => {
                    depth = depth.saturating_sub(1);
                }
                Token::String => {
                    while let (_, crate::lexer::PieceEnd::Interpolation) =
                        self.lexer.string_piece(self.lexer.quote)
                    {}
                }
                _ => {}
            }
            self.advance();
        }
    }

    pub(super) fn attribute(&mut self) -> Attribute {
        let attribute = Attribute {
            span: self.span,
            text: self.text().into(),
        };
        self.advance();
        attribute
    }

    fn declaration(&mut self, end: Token) -> DeclKind {
        match self.token {
            Token::Ellipsis => {
                self.advance();
                let none = matches!(self.token, Token::Comma | Token::Eof) || self.token == end;
                return DeclKind::Ellipsis(if none { None } else { Some(self.expression()) });
            }
            Token::Attribute => return DeclKind::Attribute(self.attribute()),
            Token::Ident if self.text() == "let" && !self.label_follows() => {
                return self.let_declaration();
            }
            Token::Ident if self.at_clause() => {
                return match self.comprehension() {
                    Some(comprehension) => DeclKind::Comprehension(comprehension),
                    None => DeclKind::Bad,
                };
            }
            Token::Ident if self.at_keyword("import") && !self.label_follows() => {
                self.error(self.span, "imports must appear before other declarations");
                self.import_declaration();
                return DeclKind::Bad;
            }
            _ => {}
        }
        self.field_or_embedding()
    }

    fn let_declaration(&mut self) -> DeclKind {
        self.advance();
        let Some(name) = self.identifier() else {
            return DeclKind::Bad;
        };
        if !self.expect(Token::Bind, "'='") {
            return DeclKind::Bad;
        }
        let value = self.expression();
        DeclKind::Let(LetDecl { name, value })
    }

    fn field_or_embedding(&mut self) -> DeclKind {
        let expr = self.expression();
        if self.token == Token::Bind {
            let ExprKind::Ident(name) = &expr.kind else {
                self.expected("label or ':'");
                return DeclKind::Bad;
            };
            let alias = Ident {
                span: expr.span,
                name: name.clone(),
            };
            self.advance();
            let label = self.expression();
            if self.at_field_colon() {
                return self.field(Some(alias), label);
            }
            self.error(
                alias.span,
                "old-style alias no longer supported: use \"let X = expr\" instead",
            );
            return DeclKind::Bad;
        }
        if self.at_field_colon() {
            return self.field(None, expr);
        }
        if matches!(expr.kind, ExprKind::Bad) {
            return DeclKind::Bad;
        }
        if !matches!(self.token, Token::Comma | Token::RightBrace | Token::Eof)
            && matches!(expr.kind, ExprKind::Ident(_) | ExprKind::String(_))
        {
            self.expected("label or ':'");
            return DeclKind::Bad;
        }
        DeclKind::Embed(expr)
    }

    fn at_field_colon(&self) -> bool {
        match self.token {
            Token::Colon => true,
            Token::Option | Token::Not => self.lexer.peek_significant() == b':',
            _ => false,
        }
    }

    fn field(&mut self, alias: Option<Ident>, label: Expr) -> DeclKind {
        self.nested(|_| DeclKind::Bad, |parser| parser.field_body(alias, label))
    }

    fn field_body(&mut self, alias: Option<Ident>, label: Expr) -> DeclKind {
        let label = self.label(label);
        let constraint = match self.token {
            Token::Option => Constraint::Optional,
            Token::Not => Constraint::Required,
            _ => Constraint::None,
        };
        if constraint != Constraint::None {
            self.advance();
        }
        self.expect(Token::Colon, "':'");
        let value = self.field_value();
        let mut attributes = Vec::new();
        while self.token == Token::Attribute {
            attributes.push(self.attribute());
        }
        match label {
            Some(label) => DeclKind::Field(Field {
                alias,
                label,
                constraint,
                value,
                attributes,
            }),
            None => DeclKind::Bad,
        }
    }

    /// The value after a colon; in `a: b: 1` it is itself a field.
    fn field_value(&mut self) -> Expr {
        let comments = self.leading_comments();
        let start = self.span;
        let mut expr = self.expression();
        let mut alias = None;
        if self.token == Token::Bind {
            expr = self.alias_value(expr);
            if self.at_field_colon()
                && let ExprKind::Alias { name, value } = expr.kind
            {
                alias = Some(name);
                expr = *value;
            }
        }
        if !self.at_field_colon() {
            return expr;
        }
        let kind = self.field(alias, expr);
        let span = self.span_from(start);
        let decl = Decl {
            span,
            comments,
            kind,
        };
        let literal = StructLit {
            braces: false,
            decls: vec![decl],
            end_comments: Vec::new(),
        };
        Expr {
            span,
            kind: ExprKind::Struct(literal),
        }
    }

    /// Turns the expression before a colon into a label.
    fn label(&mut self, expr: Expr) -> Option<Label> {
        let span = expr.span;
        let kind = match expr.kind {
            ExprKind::Ident(name) => LabelKind::Ident(name),
            ExprKind::Null | ExprKind::Bool(_) => LabelKind::Ident(span.text(self.source).into()),
            ExprKind::String(text) => LabelKind::String(text),
            ExprKind::Interpolation(interpolation) if !interpolation.bytes => {
                LabelKind::Interpolation(interpolation)
            }
            ExprKind::Paren(inner) => LabelKind::Dynamic(inner),
            ExprKind::List(mut list) if list.elements.len() == 1 => {
                if let Some(ElementKind::Value(pattern)) =
                    list.elements.pop().map(|element| element.kind)
                {
                    Self::pattern_label(pattern)
                } else {
                    self.error(span, "invalid pattern constraint");
                    return None;
                }
            }
            ExprKind::List(_) => {
                self.error(span, "square bracket must have exactly one element");
                return None;
            }
            _ => {
                self.error(self.span, "expected label or ':', found ':'");
                return None;
            }
        };
        Some(Label { span, kind })
    }

    fn pattern_label(pattern: Expr) -> LabelKind {
        match pattern.kind {
            ExprKind::Alias { name, value } => LabelKind::Pattern {
                alias: Some(name),
                pattern: value,
            },
            _ => LabelKind::Pattern {
                alias: None,
                pattern: Box::new(pattern),
            },
        }
    }
}
