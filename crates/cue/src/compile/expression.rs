//! Expressions.

use super::Compiler;
use crate::ast::{self, BinaryOp, ElementKind, ExprKind, UnaryOp};
use crate::ir::{BoundOp, Callee, Disjunct, Element, Expr, ExprId, Run};
use crate::number::Number;
use crate::token::Span;
use crate::value::Value;

impl<'a> Compiler<'a> {
    /// Compiles an expression. The parser bounds the nesting, the stack grows as needed.
    pub(super) fn expr(&mut self, expr: &'a ast::Expr) -> ExprId {
        stacker::maybe_grow(64 * 1024, 1024 * 1024, || self.expr_inner(expr))
    }

    fn expr_inner(&mut self, expr: &'a ast::Expr) -> ExprId {
        let span = expr.span;
        match &expr.kind {
            ExprKind::Bottom | ExprKind::Bad => self.add(Expr::Bottom, span),
            ExprKind::Null => self.add_value(Value::Null, span),
            ExprKind::Bool(value) => self.add_value(Value::Bool(*value), span),
            ExprKind::Number => self.number(span),
            ExprKind::String(text) => self.add_value(Value::String(text.clone()), span),
            ExprKind::Bytes(bytes) => self.add_value(Value::Bytes(bytes.clone()), span),
            ExprKind::Interpolation(literal) => self.interpolation(literal, span),
            ExprKind::Ident(name) => self.identifier(name, span),
            ExprKind::Struct(literal) => {
                let id = self.struct_literal(literal, span);
                self.add(Expr::Struct(id), span)
            }
            ExprKind::List(list) => self.list(list, span),
            ExprKind::Unary { op, operand } => self.unary(*op, operand, span),
            ExprKind::Binary {
                op, left, right, ..
            } => self.binary(*op, left, right, expr),
            ExprKind::Selector {
                base,
                label,
                quoted,
                ..
            } => self.selector(base, label, *quoted, span),
            ExprKind::Index { base, index } => {
                let (base, index) = (self.expr(base), self.expr(index));
                self.add(Expr::Index { base, index }, span)
            }
            ExprKind::Slice { base, low, high } => {
                let base = self.expr(base);
                let low = low.as_ref().map(|low| self.expr(low));
                let high = high.as_ref().map(|high| self.expr(high));
                self.add(Expr::Slice { base, low, high }, span)
            }
            ExprKind::Call {
                function,
                arguments,
            } => {
                let function = self.expr(function);
                let arguments: Vec<ExprId> = arguments
                    .iter()
                    .map(|argument| self.expr(argument))
                    .collect();
                let arguments = Run::append(&mut self.program.operands, arguments);
                self.add(
                    Expr::Call {
                        function,
                        arguments,
                    },
                    span,
                )
            }
            ExprKind::Paren(inner) => self.expr(inner),
            ExprKind::Alias { .. } => {
                self.bottom(span, "alias values not allowed in this position")
            }
        }
    }

    fn number(&mut self, span: Span) -> ExprId {
        let source = self.program.sources.get(usize::from(self.file));
        let text = source.map_or("", |source| span.text(&source.text));
        match Number::parse_literal(text) {
            Ok(number) => self.add_value(Value::Number(number), span),
            Err(error) => {
                let message = format!("parse error: {error}");
                self.bottom(span, message)
            }
        }
    }

    fn list(&mut self, literal: &'a ast::ListLit, span: Span) -> ExprId {
        let mut elements = Vec::with_capacity(literal.elements.len());
        let last = literal.elements.len().saturating_sub(1);
        for (index, element) in literal.elements.iter().enumerate() {
            match &element.kind {
                ElementKind::Value(value) => elements.push(Element::Value(self.field_value(value))),
                ElementKind::Comprehension(comprehension) => {
                    if let Some(id) = self.comprehension(comprehension) {
                        elements.push(Element::Comprehension(id));
                    }
                }
                ElementKind::Ellipsis(value) => {
                    if index != last {
                        self.error(element.span, "ellipsis must be last element in list");
                    }
                    let value = match value {
                        Some(value) => self.expr(value),
                        None => self.add(Expr::Top, element.span),
                    };
                    elements.push(Element::Ellipsis(value));
                }
            }
        }
        let elements = Run::append(&mut self.program.elements, elements);
        self.add(Expr::List(elements), span)
    }

    fn unary(&mut self, op: UnaryOp, operand: &'a ast::Expr, span: Span) -> ExprId {
        let bound = match op {
            UnaryOp::NotEqual => BoundOp::NotEqual,
            UnaryOp::Less => BoundOp::Less,
            UnaryOp::LessEqual => BoundOp::LessEqual,
            UnaryOp::Greater => BoundOp::Greater,
            UnaryOp::GreaterEqual => BoundOp::GreaterEqual,
            UnaryOp::Match => BoundOp::Match,
            UnaryOp::NotMatch => BoundOp::NotMatch,
            UnaryOp::Default => {
                return self.bottom(span, "preference mark not allowed at this position");
            }
            UnaryOp::Plus | UnaryOp::Minus | UnaryOp::Not => {
                return self.sign(op, operand, span);
            }
        };
        let operand = self.expr(operand);
        self.add(Expr::Bound(bound, operand), span)
    }

    /// `-1` is a literal; `-x` is computed.
    fn sign(&mut self, op: UnaryOp, operand: &'a ast::Expr, span: Span) -> ExprId {
        let id = self.expr(operand);
        if matches!(operand.kind, ExprKind::Number)
            && let Expr::Value(constant) = self.program.expr(id)
            && let Value::Number(number) = self.program.constant(constant)
        {
            let number = match op {
                UnaryOp::Minus => Some(number.negated()),
                UnaryOp::Plus => Some(number.clone()),
                _ => None,
            };
            if let Some(number) = number {
                return self.add_value(Value::Number(number), span);
            }
        }
        self.add(Expr::Unary(op, id), span)
    }

    fn binary(
        &mut self,
        op: BinaryOp,
        left: &'a ast::Expr,
        right: &'a ast::Expr,
        whole: &'a ast::Expr,
    ) -> ExprId {
        let span = whole.span;
        match op {
            BinaryOp::Or => {
                let mut terms = Vec::new();
                let mut marked = false;
                self.disjuncts(whole, false, &mut terms, &mut marked);
                let terms = Run::append(&mut self.program.terms, terms);
                self.add(Expr::Disjunction { terms, marked }, span)
            }
            BinaryOp::And => {
                let (left, right) = (self.expr(left), self.expr(right));
                self.add(Expr::And(left, right), span)
            }
            _ => {
                let (left_id, right_id) = (self.expr(left), self.expr(right));
                self.must_be_concrete(op, left, left_id);
                self.must_be_concrete(op, right, right_id);
                self.add(
                    Expr::Binary {
                        op,
                        left: left_id,
                        right: right_id,
                    },
                    span,
                )
            }
        }
    }

    fn disjuncts(
        &mut self,
        expr: &'a ast::Expr,
        mark: bool,
        terms: &mut Vec<Disjunct>,
        marked: &mut bool,
    ) {
        match &expr.kind {
            ExprKind::Binary {
                op: BinaryOp::Or,
                left,
                right,
                ..
            } => {
                stacker::maybe_grow(64 * 1024, 1024 * 1024, || {
                    self.disjuncts(left, mark, terms, marked);
                    self.disjuncts(right, mark, terms, marked);
                });
            }
            ExprKind::Unary {
                op: UnaryOp::Default,
                operand,
            } => {
                *marked = true;
                self.disjuncts(operand, true, terms, marked);
            }
            _ => {
                let value = self.expr(expr);
                terms.push(Disjunct {
                    value,
                    default: mark,
                });
            }
        }
    }

    /// Operands that can never be concrete are rejected at once.
    fn must_be_concrete(&mut self, op: BinaryOp, source: &ast::Expr, id: ExprId) {
        if matches!(
            self.program.expr(id),
            Expr::Top | Expr::Type(_) | Expr::Range(..) | Expr::Bound(..)
        ) {
            let text = self.program.text(id).to_owned();
            let message = format!(
                "invalid operand {text} ('{}' requires concrete value)",
                op.text()
            );
            self.error(source.span, message);
        }
    }

    fn selector(&mut self, base: &'a ast::Expr, name: &str, quoted: bool, span: Span) -> ExprId {
        if let ExprKind::Ident(package) = &base.kind
            && let Some(expr) = self.package_member(package, name, span)
        {
            return expr;
        }
        let focus = self.selected_at(base.span, span);
        let base = self.expr(base);
        let label = if quoted {
            self.labels.string(name)
        } else {
            self.labels.identifier(name, self.package)
        };
        let id = self.add(Expr::Selector { base, label }, span);
        self.program.origins[id.0 as usize].focus = focus;
        id
    }

    /// The offset of the name in `base.name`.
    fn selected_at(&self, base: Span, whole: Span) -> u32 {
        let source = self.program.sources.get(usize::from(self.file));
        let rest = source
            .and_then(|source| source.text.get(base.end as usize..whole.end as usize))
            .unwrap_or("");
        let skipped = rest.find('.').map_or(0, |dot| {
            let name = &rest[dot + 1..];
            dot + 1 + (name.len() - name.trim_start().len())
        });
        base.end + u32::try_from(skipped).unwrap_or(0)
    }

    /// `strings.Join`: a member of an imported builtin package.
    fn package_member(&mut self, package: &str, name: &str, span: Span) -> Option<ExprId> {
        let shadowed = self
            .scopes
            .iter()
            .any(|scope| scope.names.iter().any(|(known, _)| &**known == package));
        if shadowed {
            return None;
        }
        let import = self
            .imports
            .iter_mut()
            .find(|import| &*import.name == package)?;
        import.used = true;
        let target = import.target?;
        let builtin = target.builtin?;
        if let Some(function) = builtin.functions.iter().find(|f| f.name == name) {
            let callee = Callee::Builtin(builtin.path, function);
            return Some(self.add(Expr::Function(callee), span));
        }
        None
    }
}
