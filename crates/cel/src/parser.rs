//! Text to tree: a recursive-descent parser for the CEL grammar that expands macros as it goes.
//!
//! Entry point: [`parse`]. Messages and positions are those of cel-go, whose parser is generated
//! from a grammar; after the first error that cannot be repaired by skipping or inserting one
//! token, parsing stops, where cel-go would go on looking for more.

mod literal;
mod macros;
pub(crate) use macros::ACCUMULATOR;
mod primary;

use crate::ast::{Call, Expr, ExprId, ExprKind, Literal, Positions, operator};
use crate::error::Problems;
use crate::lexer::{self, Token, TokenKind};
use crate::library::LibrarySet;
use crate::source::Position;

/// Deepest nesting of one grammar rule, as in cel-go. It also bounds every recursion over the
/// tree in this crate.
const MAX_DEPTH: u16 = 250;

/// Longest expression in code points, as in cel-go.
const MAX_CODE_POINTS: usize = 100_000;

/// Most nodes a tree may have. Only copying macros can get there: `optMap` writes its target
/// twice, so a chain of them doubles at every step.
const MAX_NODES: usize = 200_000;

/// A parsed expression; meaningful only if no problem was reported.
pub(crate) struct Parsed {
    pub(crate) expr: Expr,
    pub(crate) positions: Positions,
}

/// Parses `source`, reporting what is wrong with it to `problems`.
pub(crate) fn parse(source: &str, macros: LibrarySet, problems: &mut Problems) -> Parsed {
    let size = source.chars().count();
    let mut parser = Parser {
        source,
        tokens: Vec::new(),
        at: 0,
        positions: Positions::default(),
        visit_depths: Vec::new(),
        macros,
        problems,
        expr_depth: 0,
        relation_depth: 0,
        calc_depth: 0,
    };
    if size > MAX_CODE_POINTS {
        parser.problems.report(
            Position::NONE,
            format!(
                "expression code point size exceeds limit: size: {size}, limit {MAX_CODE_POINTS}"
            ),
        );
    } else {
        parser.tokens = lexer::tokenize(source, parser.problems);
        if let Ok(expr) = parser.start() {
            return Parsed {
                expr,
                positions: parser.positions,
            };
        }
    }
    let expr = parser.unspecified(Position::NONE);
    Parsed {
        expr,
        positions: parser.positions,
    }
}

/// Parsing cannot go on; the reason has been reported.
struct Stop;

type Result<T> = std::result::Result<T, Stop>;

struct Parser<'s, 'p> {
    source: &'s str,
    tokens: Vec<Token>,
    at: usize,
    positions: Positions,
    /// Per node, how many operators, selections and calls are nested in it.
    visit_depths: Vec<u16>,
    macros: LibrarySet,
    problems: &'p mut Problems,
    expr_depth: u16,
    relation_depth: u16,
    calc_depth: u16,
}

/// Tokens an expression can start with.
const EXPRESSION_START: &[TokenKind] = &[
    TokenKind::LeftBracket,
    TokenKind::LeftBrace,
    TokenKind::LeftParen,
    TokenKind::Dot,
    TokenKind::Minus,
    TokenKind::Exclamation,
    TokenKind::True,
    TokenKind::False,
    TokenKind::Null,
    TokenKind::Float,
    TokenKind::Int,
    TokenKind::Uint,
    TokenKind::String,
    TokenKind::Bytes,
    TokenKind::Identifier,
];

impl Parser<'_, '_> {
    fn start(&mut self) -> Result<Expr> {
        let expr = self.expr()?;
        if self.peek().kind != TokenKind::End {
            let extraneous = self.peek_at(1).kind == TokenKind::End;
            self.unexpected(extraneous, "<EOF>");
            return Err(Stop);
        }
        if self.visit_depth(&expr) > MAX_DEPTH {
            self.problems
                .report(Position::NONE, "max recursion depth exceeded");
            return Err(Stop);
        }
        if self.positions.len() >= MAX_NODES {
            self.problems.report(
                Position::NONE,
                format!("expression exceeds the limit of {MAX_NODES} nodes after macro expansion"),
            );
        }
        if self.problems.is_empty() {
            Ok(expr)
        } else {
            Err(Stop)
        }
    }

    // Tokens.

    fn peek(&self) -> Token {
        self.peek_at(0)
    }

    fn peek_at(&self, ahead: usize) -> Token {
        let index = (self.at + ahead).min(self.tokens.len().saturating_sub(1));
        self.tokens.get(index).copied().unwrap_or(Token {
            kind: TokenKind::End,
            start: self.source.len(),
            end: self.source.len(),
        })
    }

    fn advance(&mut self) -> Token {
        let token = self.peek();
        self.at += 1;
        token
    }

    fn take(&mut self, kind: TokenKind) -> Option<Token> {
        (self.peek().kind == kind).then(|| self.advance())
    }

    /// Requires a token, repairing the input by one token if that is enough. `can_follow` says
    /// whether the current token could stand after the missing one.
    fn expect(&mut self, kind: TokenKind, can_follow: impl Fn(TokenKind) -> bool) -> Result<Token> {
        if let Some(token) = self.take(kind) {
            return Ok(token);
        }
        if self.peek_at(1).kind == kind {
            self.unexpected(true, kind.name());
            self.advance();
            return Ok(self.advance());
        }
        let current = self.peek();
        if can_follow(current.kind) {
            let text = self.shown(current);
            self.syntax_error(current, format!("missing {} at '{text}'", kind.name()));
            return Ok(current);
        }
        self.unexpected(false, kind.name());
        Err(Stop)
    }

    fn shown(&self, token: Token) -> String {
        match token.kind {
            TokenKind::End => "<EOF>".to_owned(),
            _ => lexer::escape(token.text(self.source)),
        }
    }

    fn unexpected(&mut self, extraneous: bool, expecting: &str) {
        let current = self.peek();
        let text = self.shown(current);
        let verb = if extraneous {
            "extraneous"
        } else {
            "mismatched"
        };
        self.syntax_error(
            current,
            format!("{verb} input '{text}' expecting {expecting}"),
        );
    }

    /// Reports that an expression should start here. `also` are further tokens allowed.
    fn expected_expression(&mut self, also: &[TokenKind]) -> Stop {
        let mut allowed: Vec<TokenKind> = EXPRESSION_START.iter().chain(also).copied().collect();
        allowed.sort_unstable();
        let names: Vec<&str> = allowed.iter().map(|kind| kind.name()).collect();
        let extraneous = allowed.contains(&self.peek_at(1).kind);
        self.unexpected(extraneous, &format!("{{{}}}", names.join(", ")));
        Stop
    }

    fn syntax_error(&mut self, token: Token, message: impl AsRef<str>) {
        self.problems.report(
            token.position(),
            format!("Syntax error: {}", message.as_ref()),
        );
    }

    /// Reports a problem that does not stop parsing and returns a placeholder for the node.
    fn report(&mut self, position: Position, message: impl Into<String>) -> Expr {
        self.problems.report(position, message);
        self.unspecified(position)
    }

    // Nodes.

    fn node(&mut self, position: Position, kind: ExprKind) -> Expr {
        let depth = self.depth_of(&kind);
        let id = self.positions.add(position);
        self.visit_depths.push(depth);
        Expr { id, kind }
    }

    fn unspecified(&mut self, position: Position) -> Expr {
        self.node(position, ExprKind::Unspecified)
    }

    fn literal(&mut self, position: Position, literal: Literal) -> Expr {
        self.node(position, ExprKind::Literal(literal))
    }

    fn call(&mut self, position: Position, function: &str, arguments: Vec<Expr>) -> Expr {
        self.node(
            position,
            ExprKind::Call(Box::new(Call {
                target: None,
                function: function.to_owned(),
                arguments,
            })),
        )
    }

    fn visit_depth(&self, expr: &Expr) -> u16 {
        let ExprId(id) = expr.id;
        self.visit_depths.get(id as usize).copied().unwrap_or(0)
    }

    fn depth_of(&self, kind: &ExprKind) -> u16 {
        match kind {
            ExprKind::Unspecified | ExprKind::Literal(_) | ExprKind::Ident(_) => 0,
            ExprKind::Select(select) => self.visit_depth(&select.operand).saturating_add(1),
            ExprKind::Call(call) => {
                let counted = !matches!(
                    call.function.as_str(),
                    operator::LOGICAL_AND
                        | operator::LOGICAL_OR
                        | operator::LOGICAL_NOT
                        | operator::NEGATE
                ) && (call.target.is_some() || call.function.starts_with('_'));
                let inner = call
                    .target
                    .iter()
                    .chain(&call.arguments)
                    .map(|expr| self.visit_depth(expr))
                    .max()
                    .unwrap_or(0);
                inner.saturating_add(u16::from(counted))
            }
            ExprKind::List(elements) => elements
                .iter()
                .map(|element| self.visit_depth(&element.value))
                .max()
                .unwrap_or(0),
            ExprKind::Map(entries) => entries
                .iter()
                .map(|entry| {
                    self.visit_depth(&entry.key)
                        .max(self.visit_depth(&entry.value))
                })
                .max()
                .unwrap_or(0),
            ExprKind::Struct(_, fields) => fields
                .iter()
                .map(|field| self.visit_depth(&field.value))
                .max()
                .unwrap_or(0),
            ExprKind::Comprehension(fold) => [&fold.range, &fold.init, &fold.step, &fold.result]
                .into_iter()
                .map(|expr| self.visit_depth(expr))
                .max()
                .unwrap_or(0)
                .saturating_add(1),
        }
    }

    fn too_deep(&mut self) -> Stop {
        self.problems.report(
            Position::NONE,
            format!("expression recursion limit exceeded: {MAX_DEPTH}"),
        );
        Stop
    }

    // Rules.

    fn expr(&mut self) -> Result<Expr> {
        self.expr_or(&[])
    }

    /// An expression where `also` would have been allowed too, for the sake of the message.
    fn expr_or(&mut self, also: &[TokenKind]) -> Result<Expr> {
        self.expr_depth += 1;
        if self.expr_depth > MAX_DEPTH {
            return Err(self.too_deep());
        }
        if !EXPRESSION_START.contains(&self.peek().kind) {
            let stop = self.expected_expression(also);
            // One surplus token is skipped, as the generated parser does.
            if !EXPRESSION_START.contains(&self.peek_at(1).kind) {
                return Err(stop);
            }
            self.advance();
        }
        let condition = self.logical()?;
        let result = match self.take(TokenKind::Question) {
            None => condition,
            Some(question) => self.branches(question.position(), condition)?,
        };
        self.expr_depth -= 1;
        Ok(result)
    }

    /// What follows `?`.
    fn branches(&mut self, position: Position, condition: Expr) -> Result<Expr> {
        let when_true = self.logical()?;
        self.expect(TokenKind::Colon, |kind| EXPRESSION_START.contains(&kind))?;
        let when_false = self.expr()?;
        let arguments = vec![condition, when_true, when_false];
        Ok(self.call(position, operator::CONDITIONAL, arguments))
    }

    /// Chains of `||` and of `&&` between them. Chains become balanced trees, so that long ones
    /// stay shallow; the operators are associative and order of evaluation is kept.
    fn logical(&mut self) -> Result<Expr> {
        let mut either = Chain::default();
        let mut both = Chain::default();
        loop {
            both.terms.push(self.operands()?);
            let separator = self.peek();
            match separator.kind {
                TokenKind::And => both.operators.push(separator.position()),
                TokenKind::Or => {
                    let term = self.balance_chain(operator::LOGICAL_AND, &mut both);
                    either.terms.push(term);
                    either.operators.push(separator.position());
                }
                _ => break,
            }
            self.advance();
        }
        let last = self.balance_chain(operator::LOGICAL_AND, &mut both);
        either.terms.push(last);
        Ok(self.balance_chain(operator::LOGICAL_OR, &mut either))
    }

    fn balance_chain(&mut self, function: &str, chain: &mut Chain) -> Expr {
        let Chain { terms, operators } = std::mem::take(chain);
        self.balance(function, &operators, &mut terms.into_iter())
    }

    fn balance(
        &mut self,
        function: &str,
        operators: &[Position],
        terms: &mut std::vec::IntoIter<Expr>,
    ) -> Expr {
        if operators.is_empty() {
            return terms
                .next()
                .unwrap_or_else(|| self.unspecified(Position::NONE));
        }
        let middle = operators.len() / 2;
        let left = self.balance(function, &operators[..middle], terms);
        let right = self.balance(function, &operators[middle + 1..], terms);
        self.call(operators[middle], function, vec![left, right])
    }

    /// Operands joined by comparisons, sums and products. One loop with a stack rather than a
    /// function per precedence: every level of nesting goes through here, and the less stack it
    /// takes, the better.
    fn operands(&mut self) -> Result<Expr> {
        let mut operands: Vec<Expr> = Vec::new();
        let mut pending: Vec<Pending> = Vec::new();
        loop {
            let operand = self.operand(&pending)?;
            operands.push(operand);
            let token = self.peek();
            let next = binary_operator(token.kind);
            let precedence = next.map_or(0, |(_, precedence)| precedence);
            while let Some(operation) = pending.pop_if(|last| last.precedence >= precedence) {
                self.reduce(&operation, &mut operands);
            }
            let Some((function, precedence)) = next else {
                break;
            };
            self.advance();
            pending.push(Pending {
                function,
                precedence,
                position: token.position(),
            });
        }
        Ok(operands
            .pop()
            .unwrap_or_else(|| self.unspecified(Position::NONE)))
    }

    /// Replaces the last two operands by the operation on them.
    fn reduce(&mut self, operation: &Pending, operands: &mut Vec<Expr>) {
        if let (Some(right), Some(left)) = (operands.pop(), operands.pop()) {
            let node = self.call(operation.position, operation.function, vec![left, right]);
            operands.push(node);
        }
    }

    /// One operand with its signs. The depths count what the rules of cel-go's grammar nest.
    fn operand(&mut self, pending: &[Pending]) -> Result<Expr> {
        let comparisons = pending.iter().filter(|p| p.precedence == COMPARISON);
        let comparisons = u16::from(comparisons.count() > 0);
        let arithmetic = pending.iter().filter(|p| p.precedence > COMPARISON);
        let arithmetic = u16::try_from(arithmetic.count()).unwrap_or(u16::MAX);
        self.relation_depth += 1 + comparisons;
        self.calc_depth += 1 + arithmetic;
        if self.relation_depth.max(self.calc_depth) > MAX_DEPTH {
            return Err(self.too_deep());
        }
        let prefix = self.prefix();
        let mut operand = self.member()?;
        if let Some((function, position)) = prefix {
            operand = self.call(position, function, vec![operand]);
        }
        self.relation_depth -= 1 + comparisons;
        self.calc_depth -= 1 + arithmetic;
        Ok(operand)
    }

    /// The sign in front of an operand; two equal ones cancel out.
    fn prefix(&mut self) -> Option<(&'static str, Position)> {
        let first = self.peek();
        let function = match first.kind {
            TokenKind::Exclamation => operator::LOGICAL_NOT,
            TokenKind::Minus if !self.negative_literal() => operator::NEGATE,
            _ => return None,
        };
        let mut odd = false;
        while self.peek().kind == first.kind {
            self.advance();
            odd = !odd;
        }
        odd.then(|| (function, first.position()))
    }

    /// Whether the minus sign here belongs to a number.
    fn negative_literal(&self) -> bool {
        matches!(self.peek_at(1).kind, TokenKind::Int | TokenKind::Float)
    }
}

/// Terms and the places of the operators between them.
#[derive(Default)]
struct Chain {
    terms: Vec<Expr>,
    operators: Vec<Position>,
}

/// An operator that waits for its right operand.
struct Pending {
    function: &'static str,
    precedence: u8,
    position: Position,
}

/// Precedence of comparisons; sums and products bind tighter.
const COMPARISON: u8 = 1;

fn binary_operator(kind: TokenKind) -> Option<(&'static str, u8)> {
    Some(match kind {
        TokenKind::Less => (operator::LESS, COMPARISON),
        TokenKind::LessEquals => (operator::LESS_EQUALS, COMPARISON),
        TokenKind::Greater => (operator::GREATER, COMPARISON),
        TokenKind::GreaterEquals => (operator::GREATER_EQUALS, COMPARISON),
        TokenKind::Equals => (operator::EQUALS, COMPARISON),
        TokenKind::NotEquals => (operator::NOT_EQUALS, COMPARISON),
        TokenKind::In => (operator::IN, COMPARISON),
        TokenKind::Plus => (operator::ADD, 2),
        TokenKind::Minus => (operator::SUBTRACT, 2),
        TokenKind::Star => (operator::MULTIPLY, 3),
        TokenKind::Slash => (operator::DIVIDE, 3),
        TokenKind::Percent => (operator::MODULO, 3),
        _ => return None,
    })
}

#[cfg(test)]
mod tests;
