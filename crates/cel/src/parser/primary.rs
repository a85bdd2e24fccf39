//! The tight end of the grammar: names, calls, selections, literals.

use super::{EXPRESSION_START, Parser, Result, Stop, literal};
use crate::ast::{
    Call, Element, Entry, Expr, ExprKind, Field, Literal, Select, operator, qualified_name,
};
use crate::lexer::{Token, TokenKind};

/// Words that cannot name a variable or a function.
const RESERVED: &[&str] = &[
    "as",
    "break",
    "const",
    "continue",
    "else",
    "false",
    "for",
    "function",
    "if",
    "import",
    "in",
    "let",
    "loop",
    "package",
    "namespace",
    "null",
    "return",
    "true",
    "var",
    "void",
    "while",
];

impl Parser<'_, '_> {
    /// A primary followed by any number of selections, calls and indexes.
    pub(super) fn member(&mut self) -> Result<Expr> {
        let mut expr = self.primary()?;
        loop {
            expr = match self.peek().kind {
                TokenKind::Dot => self.selection(expr)?,
                TokenKind::LeftBracket => self.index(expr)?,
                TokenKind::LeftBrace if qualified_name(&expr).is_some() => self.message(&expr)?,
                _ => return Ok(expr),
            };
        }
    }

    fn selection(&mut self, operand: Expr) -> Result<Expr> {
        let dot = self.advance();
        let optional = self.take(TokenKind::Question).is_some();
        let name = self.peek();
        let field = match name.kind {
            TokenKind::Identifier => name.text(self.source).to_owned(),
            TokenKind::EscapedIdentifier => {
                self.report(name.position(), "unsupported syntax: '`'");
                name.text(self.source).to_owned()
            }
            _ => return Err(self.bad_selector(dot, name)),
        };
        self.advance();
        if optional {
            let field = self.literal(name.position(), Literal::String(field));
            return Ok(self.call(dot.position(), operator::OPT_SELECT, vec![operand, field]));
        }
        if name.kind == TokenKind::Identifier && self.peek().kind == TokenKind::LeftParen {
            return self.member_call(operand, &field);
        }
        Ok(self.node(
            dot.position(),
            ExprKind::Select(Box::new(Select {
                operand,
                field,
                test_only: false,
            })),
        ))
    }

    fn bad_selector(&mut self, dot: Token, name: Token) -> Stop {
        let text = match name.kind {
            TokenKind::End => "",
            _ => name.text(self.source),
        };
        let message = match name.kind {
            TokenKind::True | TokenKind::False | TokenKind::Null => {
                format!("mismatched input '{text}' expecting IDENTIFIER")
            }
            _ => format!(
                "no viable alternative at input '{}{text}'",
                dot.text(self.source)
            ),
        };
        self.syntax_error(name, message);
        Stop
    }

    fn member_call(&mut self, target: Expr, function: &str) -> Result<Expr> {
        let open = self.advance();
        let arguments = self.arguments()?;
        Ok(self.expand_or_call(open.position(), Some(target), function, arguments))
    }

    fn expand_or_call(
        &mut self,
        position: crate::source::Position,
        target: Option<Expr>,
        function: &str,
        arguments: Vec<Expr>,
    ) -> Expr {
        match self.expand_macro(position, function, target, arguments) {
            Ok(expanded) => expanded,
            Err((target, arguments)) => self.node(
                position,
                ExprKind::Call(Box::new(Call {
                    target,
                    function: function.to_owned(),
                    arguments,
                })),
            ),
        }
    }

    /// The arguments of a call and the closing parenthesis.
    fn arguments(&mut self) -> Result<Vec<Expr>> {
        if self.take(TokenKind::RightParen).is_some() {
            return Ok(Vec::new());
        }
        let mut arguments = vec![self.expr_or(&[TokenKind::RightParen])?];
        while self.take(TokenKind::Comma).is_some() {
            arguments.push(self.expr()?);
        }
        self.expect(TokenKind::RightParen, can_follow_operand)?;
        Ok(arguments)
    }

    fn index(&mut self, operand: Expr) -> Result<Expr> {
        let open = self.advance();
        let optional = self.take(TokenKind::Question).is_some();
        let index = if optional {
            self.expr()?
        } else {
            self.expr_or(&[TokenKind::Question])?
        };
        self.expect(TokenKind::RightBracket, can_follow_operand)?;
        let function = if optional {
            operator::OPT_INDEX
        } else {
            operator::INDEX
        };
        Ok(self.call(open.position(), function, vec![operand, index]))
    }

    fn primary(&mut self) -> Result<Expr> {
        let token = self.peek();
        match token.kind {
            TokenKind::LeftParen => {
                self.advance();
                let expr = self.expr()?;
                self.expect(TokenKind::RightParen, can_follow_operand)?;
                Ok(expr)
            }
            TokenKind::LeftBracket => self.list(),
            TokenKind::LeftBrace => self.map(),
            TokenKind::Dot | TokenKind::Identifier => self.name(),
            _ => self.constant(),
        }
    }

    fn name(&mut self) -> Result<Expr> {
        let start = self.peek();
        let mut name = String::new();
        if self.take(TokenKind::Dot).is_some() {
            name.push('.');
        }
        let token = self.expect(TokenKind::Identifier, |_| false)?;
        let word = token.text(self.source);
        if RESERVED.contains(&word) {
            self.report(start.position(), format!("reserved identifier: {word}"));
        }
        name.push_str(word);
        if self.peek().kind == TokenKind::LeftParen {
            let open = self.advance();
            let arguments = self.arguments()?;
            return Ok(self.expand_or_call(open.position(), None, &name, arguments));
        }
        Ok(self.node(token.position(), ExprKind::Ident(name)))
    }

    fn list(&mut self) -> Result<Expr> {
        let open = self.advance();
        let mut elements = Vec::new();
        while self.peek().kind != TokenKind::RightBracket {
            if self.peek().kind == TokenKind::Comma {
                self.advance();
                break;
            }
            let optional = self.take(TokenKind::Question).is_some();
            let value = self.expr()?;
            elements.push(Element { value, optional });
            if !self.separator(TokenKind::RightBracket)? {
                break;
            }
        }
        self.expect(TokenKind::RightBracket, |kind| {
            kind != TokenKind::Comma && can_follow_operand(kind)
        })?;
        Ok(self.node(open.position(), ExprKind::List(elements)))
    }

    /// Consumes a comma; false if the aggregate ends here. Anything else is an error.
    fn separator(&mut self, close: TokenKind) -> Result<bool> {
        match self.peek().kind {
            TokenKind::Comma => {
                self.advance();
                Ok(self.peek().kind != TokenKind::Comma)
            }
            kind if kind == close => Ok(false),
            _ => {
                let next = self.peek_at(1).kind;
                let extraneous = next == close || next == TokenKind::Comma;
                self.unexpected(extraneous, &format!("{{{}, ','}}", close.name()));
                Err(Stop)
            }
        }
    }

    fn map(&mut self) -> Result<Expr> {
        let open = self.advance();
        let mut entries = Vec::new();
        while self.peek().kind != TokenKind::RightBrace {
            if self.peek().kind == TokenKind::Comma {
                self.advance();
                break;
            }
            let optional = self.take(TokenKind::Question).is_some();
            let key = self.expr()?;
            self.expect(TokenKind::Colon, |kind| EXPRESSION_START.contains(&kind))?;
            let value = self.expr()?;
            entries.push(Entry {
                key,
                value,
                optional,
            });
            if !self.separator(TokenKind::RightBrace)? {
                break;
            }
        }
        self.expect(TokenKind::RightBrace, can_follow_operand)?;
        Ok(self.node(open.position(), ExprKind::Map(entries)))
    }

    /// `name{field: value}`.
    fn message(&mut self, name: &Expr) -> Result<Expr> {
        let name = qualified_name(name).unwrap_or_default();
        let open = self.advance();
        let mut fields = Vec::new();
        while self.peek().kind != TokenKind::RightBrace {
            self.take(TokenKind::Question);
            let field = self.expect(TokenKind::Identifier, |_| false)?;
            self.expect(TokenKind::Colon, |kind| EXPRESSION_START.contains(&kind))?;
            let value = self.expr()?;
            fields.push(Field {
                name: field.text(self.source).to_owned(),
                value,
            });
            if !self.separator(TokenKind::RightBrace)? {
                break;
            }
        }
        self.expect(TokenKind::RightBrace, can_follow_operand)?;
        Ok(self.node(open.position(), ExprKind::Struct(name, fields)))
    }

    fn constant(&mut self) -> Result<Expr> {
        let start = self.peek();
        let negative = start.kind == TokenKind::Minus && self.negative_literal();
        if negative {
            self.advance();
        }
        let token = self.peek();
        let text = token.text(self.source);
        let parsed = match token.kind {
            TokenKind::Int => literal::int(text, negative).map(Literal::Int),
            TokenKind::Uint => literal::uint(text).map(Literal::Uint),
            TokenKind::Float => literal::double(text, negative).map(Literal::Double),
            TokenKind::String => literal::string(text).map(Literal::String),
            TokenKind::Bytes => literal::bytes(text).map(Literal::Bytes),
            TokenKind::True => Ok(Literal::Bool(true)),
            TokenKind::False => Ok(Literal::Bool(false)),
            TokenKind::Null => Ok(Literal::Null),
            _ => return Err(self.expected_expression(&[])),
        };
        self.advance();
        Ok(match parsed {
            Ok(value) => self.literal(start.position(), value),
            Err(message) => self.report(start.position(), message),
        })
    }
}

/// Whether `kind` can stand after a closing bracket.
fn can_follow_operand(kind: TokenKind) -> bool {
    !EXPRESSION_START.contains(&kind)
        || matches!(
            kind,
            TokenKind::LeftBracket | TokenKind::Dot | TokenKind::Minus
        )
}
