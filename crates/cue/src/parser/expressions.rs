//! Expressions: operators, operands, postfix forms, lists and struct literals.

use super::Parser;
use crate::ast::{
    BinaryOp, Clause, ClauseKind, Comprehension, Element, ElementKind, Expr, ExprKind, Ident,
    ListLit, StructLit, UnaryOp,
};
use crate::token::{Span, Token};

impl Parser<'_> {
    /// A whole expression.
    pub(super) fn expression(&mut self) -> Expr {
        self.nested(
            |span| Expr {
                span,
                kind: ExprKind::Bad,
            },
            |parser| parser.binary_expression(1),
        )
    }

    fn binary_expression(&mut self, minimum: u8) -> Expr {
        let mut left = self.unary_expression();
        while let Some(op) = self.binary_operator() {
            let precedence = op.precedence();
            if precedence < minimum {
                break;
            }
            let op_span = self.span;
            self.advance();
            let right = self.nested(
                |span| Expr {
                    span,
                    kind: ExprKind::Bad,
                },
                |parser| parser.binary_expression(precedence + 1),
            );
            let span = left.span.to(right.span);
            let (left_box, right) = (Box::new(left), Box::new(right));
            left = Expr {
                span,
                kind: ExprKind::Binary {
                    op,
                    op_span,
                    left: left_box,
                    right,
                },
            };
        }
        left
    }

    fn binary_operator(&self) -> Option<BinaryOp> {
        Some(match self.token {
            Token::Or => BinaryOp::Or,
            Token::And => BinaryOp::And,
            Token::LogicalOr => BinaryOp::LogicalOr,
            Token::LogicalAnd => BinaryOp::LogicalAnd,
            Token::Equal => BinaryOp::Equal,
            Token::NotEqual => BinaryOp::NotEqual,
            Token::Less => BinaryOp::Less,
            Token::LessEqual => BinaryOp::LessEqual,
            Token::Greater => BinaryOp::Greater,
            Token::GreaterEqual => BinaryOp::GreaterEqual,
            Token::Match => BinaryOp::Match,
            Token::NotMatch => BinaryOp::NotMatch,
            Token::Add => BinaryOp::Add,
            Token::Sub => BinaryOp::Subtract,
            Token::Mul => BinaryOp::Multiply,
            Token::Quo => BinaryOp::Divide,
            _ => return None,
        })
    }

    fn unary_operator(&self) -> Option<UnaryOp> {
        Some(match self.token {
            Token::Add => UnaryOp::Plus,
            Token::Sub => UnaryOp::Minus,
            Token::Not => UnaryOp::Not,
            Token::Mul => UnaryOp::Default,
            Token::NotEqual => UnaryOp::NotEqual,
            Token::Less => UnaryOp::Less,
            Token::LessEqual => UnaryOp::LessEqual,
            Token::Greater => UnaryOp::Greater,
            Token::GreaterEqual => UnaryOp::GreaterEqual,
            Token::Match => UnaryOp::Match,
            Token::NotMatch => UnaryOp::NotMatch,
            _ => return None,
        })
    }

    fn unary_expression(&mut self) -> Expr {
        let Some(op) = self.unary_operator() else {
            return self.primary_expression();
        };
        let start = self.span;
        self.advance();
        let operand = self.nested(
            |span| Expr {
                span,
                kind: ExprKind::Bad,
            },
            Self::unary_expression,
        );
        let span = start.to(operand.span);
        Expr {
            span,
            kind: ExprKind::Unary {
                op,
                operand: Box::new(operand),
            },
        }
    }

    fn primary_expression(&mut self) -> Expr {
        let mut expr = self.operand();
        let mut links = 0;
        loop {
            match self.token {
                Token::Period => expr = self.selector(expr),
                Token::LeftBracket => expr = self.index_or_slice(expr),
                Token::LeftParen => expr = self.call(expr),
                _ => return expr,
            }
            links += 1;
            if links > super::MAX_DEPTH {
                // Each link nests the tree one level deeper.
                self.error(expr.span, "expression has too many selectors");
                self.skip_rest();
                return self.bad_expression();
            }
        }
    }

    fn selector(&mut self, base: Expr) -> Expr {
        self.advance();
        let label_span = self.span;
        let (label, quoted) = match self.token {
            Token::Ident => {
                let label = self.text().into();
                self.advance();
                (label, false)
            }
            Token::String => {
                if let ExprKind::String(text) = self.string_literal().kind {
                    (text, true)
                } else {
                    self.error(label_span, "expected string literal, found interpolation");
                    return Expr {
                        span: base.span,
                        kind: ExprKind::Bad,
                    };
                }
            }
            _ => {
                self.expected("selector");
                if !matches!(self.token, Token::RightBrace | Token::Eof | Token::Comma) {
                    self.advance();
                }
                return Expr {
                    span: base.span,
                    kind: ExprKind::Bad,
                };
            }
        };
        let label_span = Span {
            start: label_span.start,
            end: self.previous_end,
        };
        let span = base.span.to(label_span);
        let base = Box::new(base);
        Expr {
            span,
            kind: ExprKind::Selector {
                base,
                label,
                label_span,
                quoted,
            },
        }
    }

    fn index_or_slice(&mut self, base: Expr) -> Expr {
        self.advance();
        let low = if self.token == Token::Colon {
            None
        } else {
            Some(Box::new(self.expression()))
        };
        self.skip_inserted_comma();
        if self.token == Token::Colon {
            self.advance();
            let high = if self.token == Token::RightBracket {
                None
            } else {
                Some(Box::new(self.expression()))
            };
            self.skip_inserted_comma();
            self.expect(Token::RightBracket, "']'");
            let span = self.span_from(base.span);
            return Expr {
                span,
                kind: ExprKind::Slice {
                    base: Box::new(base),
                    low,
                    high,
                },
            };
        }
        if self.token == Token::Comma {
            self.advance();
        }
        self.expect(Token::RightBracket, "']'");
        let span = self.span_from(base.span);
        let index = low.unwrap_or_else(|| Box::new(self.bad_expression()));
        Expr {
            span,
            kind: ExprKind::Index {
                base: Box::new(base),
                index,
            },
        }
    }

    fn skip_inserted_comma(&mut self) {
        if self.token == Token::Comma && self.lexer.comma_inserted {
            self.advance();
        }
    }

    fn call(&mut self, function: Expr) -> Expr {
        self.advance();
        let mut arguments = Vec::new();
        while !matches!(self.token, Token::RightParen | Token::Eof) {
            arguments.push(self.expression());
            if self.token == Token::Comma {
                self.advance();
            } else {
                break;
            }
        }
        self.expect(Token::RightParen, "')'");
        let span = self.span_from(function.span);
        Expr {
            span,
            kind: ExprKind::Call {
                function: Box::new(function),
                arguments,
            },
        }
    }

    fn operand(&mut self) -> Expr {
        let span = self.span;
        let simple = |kind| Expr { span, kind };
        match self.token {
            Token::Ident => {
                let text = self.text();
                self.advance();
                simple(match text {
                    "true" => ExprKind::Bool(true),
                    "false" => ExprKind::Bool(false),
                    "null" => ExprKind::Null,
                    _ => ExprKind::Ident(text.into()),
                })
            }
            Token::Int | Token::Float => {
                self.advance();
                simple(ExprKind::Number)
            }
            Token::Bottom => {
                self.advance();
                simple(ExprKind::Bottom)
            }
            Token::String => self.string_literal(),
            Token::LeftBrace => self.struct_literal(),
            Token::LeftBracket => self.list_literal(),
            Token::LeftParen => {
                self.advance();
                let inner = self.expression();
                self.skip_inserted_comma();
                self.expect(Token::RightParen, "')'");
                let span = self.span_from(span);
                Expr {
                    span,
                    kind: ExprKind::Paren(Box::new(inner)),
                }
            }
            _ => {
                self.expected("operand");
                if !matches!(
                    self.token,
                    Token::RightBrace
                        | Token::RightBracket
                        | Token::RightParen
                        | Token::Comma
                        | Token::Eof
                ) {
                    self.advance();
                }
                simple(ExprKind::Bad)
            }
        }
    }

    /// `{ … }`; the current token is the brace.
    pub(super) fn struct_literal(&mut self) -> Expr {
        let start = self.span;
        self.advance();
        let decls = self.nested(
            |_| Vec::new(),
            |parser| parser.declarations(Token::RightBrace),
        );
        let end_comments = self.take_groups(self.span.start);
        self.expect(Token::RightBrace, "'}'");
        let span = self.span_from(start);
        Expr {
            span,
            kind: ExprKind::Struct(StructLit {
                braces: true,
                decls,
                end_comments,
            }),
        }
    }

    fn list_literal(&mut self) -> Expr {
        let start = self.span;
        self.advance();
        let elements = self.nested(|_| Vec::new(), Self::elements);
        let end_comments = self.take_groups(self.span.start);
        self.expect(Token::RightBracket, "']'");
        let span = self.span_from(start);
        Expr {
            span,
            kind: ExprKind::List(ListLit {
                elements,
                end_comments,
            }),
        }
    }

    fn elements(&mut self) -> Vec<Element> {
        let mut elements: Vec<Element> = Vec::new();
        while !matches!(self.token, Token::RightBracket | Token::Eof) {
            let mut comments = self.leading_comments();
            let start = self.span;
            let kind = self.element();
            let span = self.span_from(start);
            let written_comma = self.token == Token::Comma && !self.lexer.comma_inserted;
            let end = if written_comma {
                self.span.end
            } else {
                span.end
            };
            let more = self.token == Token::Comma;
            let inserted = more && self.lexer.comma_inserted;
            if more {
                self.advance();
            }
            self.trailing_comments(&mut comments, end);
            elements.push(Element {
                span,
                comments,
                kind,
            });
            if inserted && self.token != Token::RightBracket {
                self.error(
                    Span::new(end as usize, end as usize),
                    "missing ',' before newline in list literal",
                );
            }
            if !more && self.token != Token::RightBracket {
                self.error(self.span, "missing ',' in list literal");
                if matches!(
                    self.token,
                    Token::RightBrace | Token::RightParen | Token::Colon
                ) {
                    break;
                }
            }
        }
        elements
    }

    fn element(&mut self) -> ElementKind {
        if self.token == Token::Ellipsis {
            self.advance();
            let none = matches!(self.token, Token::RightBracket | Token::Comma | Token::Eof);
            return ElementKind::Ellipsis(if none { None } else { Some(self.expression()) });
        }
        if self.at_clause()
            && let Some(comprehension) = self.comprehension()
        {
            return ElementKind::Comprehension(comprehension);
        }
        let expr = self.expression();
        if self.token == Token::Bind {
            return ElementKind::Value(self.alias_value(expr));
        }
        ElementKind::Value(expr)
    }

    /// `X = expr`, with the parser standing at `=`.
    pub(super) fn alias_value(&mut self, name: Expr) -> Expr {
        let start = name.span;
        let ExprKind::Ident(text) = name.kind else {
            self.expected("identifier for alias");
            self.advance();
            self.expression();
            return Expr {
                span: start,
                kind: ExprKind::Bad,
            };
        };
        self.advance();
        let value = Box::new(self.expression());
        let name = Ident {
            span: start,
            name: text,
        };
        Expr {
            span: start.to(value.span),
            kind: ExprKind::Alias { name, value },
        }
    }

    /// Whether a comprehension clause starts here.
    pub(super) fn at_clause(&self) -> bool {
        if self.token != Token::Ident || !matches!(self.text(), "if" | "for") {
            return false;
        }
        // `if: 1` and `for?: 1` are fields.
        !self.label_follows()
    }

    /// Whether the identifier at hand is used as a label.
    pub(super) fn label_follows(&self) -> bool {
        match self.lexer.peek_pair() {
            (b':' | b'?' | b',' | b'\n' | b'}' | b']' | b')' | 0, _) => true,
            (b'!', next) => next == b':',
            (b'=', next) => !matches!(next, b'~' | b'='),
            _ => false,
        }
    }

    pub(super) fn comprehension(&mut self) -> Option<Comprehension> {
        let mut clauses = Vec::new();
        loop {
            let start = self.span;
            let kind = match self.text() {
                "for" if self.token == Token::Ident => self.for_clause()?,
                "if" if self.token == Token::Ident => {
                    self.advance();
                    ClauseKind::If(self.expression())
                }
                "let" if self.token == Token::Ident && !clauses.is_empty() => {
                    self.advance();
                    let name = self.identifier()?;
                    self.expect(Token::Bind, "'='");
                    ClauseKind::Let {
                        name,
                        value: self.expression(),
                    }
                }
                _ => break,
            };
            clauses.push(Clause {
                span: self.span_from(start),
                kind,
            });
            if self.token == Token::Comma {
                self.advance();
            }
        }
        if self.token != Token::LeftBrace {
            self.expected("'{'");
            let value = Box::new(self.bad_expression());
            return Some(Comprehension { clauses, value });
        }
        let value = Box::new(self.struct_literal());
        Some(Comprehension { clauses, value })
    }

    fn for_clause(&mut self) -> Option<ClauseKind> {
        self.advance();
        let mut value = self.identifier()?;
        let mut key = None;
        if self.token == Token::Comma {
            self.advance();
            key = Some(value);
            value = self.identifier()?;
        }
        self.skip_inserted_comma();
        if self.at_keyword("in") {
            self.advance();
        } else {
            self.expected("'in'");
        }
        Some(ClauseKind::For {
            key,
            value,
            source: self.expression(),
        })
    }

    pub(super) fn identifier(&mut self) -> Option<Ident> {
        if self.token != Token::Ident {
            self.expected("'IDENT'");
            return None;
        }
        let ident = Ident {
            span: self.span,
            name: self.text().into(),
        };
        self.advance();
        Some(ident)
    }
}
