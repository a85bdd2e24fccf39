//! Expressions.

use super::Printer;
use super::declaration::first_offset;
use crate::ast::{
    BinaryOp, Clause, ClauseKind, Comments, Comprehension, Element, ElementKind, Expr, ExprKind,
    ListLit, StructLit, UnaryOp,
};
use crate::token::Span;

impl Printer<'_> {
    pub(super) fn expression(&mut self, expr: &Expr) {
        match &expr.kind {
            ExprKind::Bottom => self.output.push_str("_|_"),
            ExprKind::Null => self.output.push_str("null"),
            ExprKind::Bool(value) => self.output.push_str(if *value { "true" } else { "false" }),
            ExprKind::Ident(name) => self.output.push_str(name),
            ExprKind::Number
            | ExprKind::String(_)
            | ExprKind::Bytes(_)
            | ExprKind::Interpolation(_)
            | ExprKind::Bad => {
                let text = self.written(expr.span).to_owned();
                self.output.push_str(&text);
            }
            ExprKind::Struct(literal) => self.structure(expr.span, literal),
            ExprKind::List(literal) => self.list(expr.span, literal),
            ExprKind::Unary { op, operand } => self.unary(*op, operand),
            ExprKind::Binary {
                op,
                op_span,
                left,
                right,
            } => self.binary(*op, *op_span, left, right),
            ExprKind::Selector {
                base, label_span, ..
            } => self.selector(base, *label_span),
            ExprKind::Index { base, index } => {
                self.expression(base);
                self.output.push('[');
                self.expression(index);
                self.output.push(']');
            }
            ExprKind::Slice { base, low, high } => {
                self.expression(base);
                self.output.push('[');
                if let Some(low) = low {
                    self.expression(low);
                }
                self.output.push(':');
                if let Some(high) = high {
                    self.expression(high);
                }
                self.output.push(']');
            }
            ExprKind::Call {
                function,
                arguments,
            } => {
                self.expression(function);
                self.arguments(expr.span, arguments);
            }
            ExprKind::Paren(inner) => {
                self.output.push('(');
                self.expression(inner);
                self.output.push(')');
            }
            ExprKind::Alias { name, value } => {
                self.output.push_str(&name.name);
                self.alias_sign(value);
                self.expression(value);
            }
        }
    }

    fn unary(&mut self, op: UnaryOp, operand: &Expr) {
        self.output.push_str(op.text());
        // `!=~` would be read as `!=` and `~`.
        let runs_into = matches!(op, UnaryOp::Not | UnaryOp::Less | UnaryOp::Greater);
        if runs_into && is_match(operand) {
            self.output.push(' ');
        }
        self.expression(operand);
    }

    fn binary(&mut self, op: BinaryOp, op_span: Span, left: &Expr, right: &Expr) {
        self.expression(left);
        self.output.push(' ');
        self.output.push_str(op.text());
        if self.line(right.span.start) > self.line(op_span.start) {
            self.indent += 1;
            self.new_line();
            self.expression(right);
            self.indent -= 1;
        } else {
            self.output.push(' ');
            self.expression(right);
        }
    }

    fn selector(&mut self, base: &Expr, label: Span) {
        self.expression(base);
        // `2.a` would be read as the number `2.` and a name.
        if matches!(base.kind, ExprKind::Number) {
            self.output.push(' ');
        }
        self.output.push('.');
        let label = self.written(label).to_owned();
        self.output.push_str(&label);
    }

    /// The sign between an alias and what it names, kept apart from a match operator.
    pub(super) fn alias_sign(&mut self, value: &Expr) {
        self.output
            .push_str(if is_match(value) { "= " } else { "=" });
    }

    fn structure(&mut self, span: Span, literal: &StructLit) {
        if literal.decls.is_empty() && literal.end_comments.is_empty() {
            self.output.push_str("{}");
            return;
        }
        let comments = !literal.end_comments.is_empty()
            || literal.decls.iter().any(|decl| !decl.comments.is_empty());
        let one_line = self.line(span.start) == self.line(span.end) && !comments;
        self.output.push('{');
        if one_line {
            for (position, decl) in literal.decls.iter().enumerate() {
                if position > 0 {
                    self.output.push_str(", ");
                }
                self.declaration(decl);
            }
        } else {
            self.indent += 1;
            self.new_line();
            self.declarations(&literal.decls, &literal.end_comments);
            self.indent -= 1;
            self.new_line();
        }
        self.output.push('}');
    }

    pub(super) fn comprehension(&mut self, comprehension: &Comprehension) {
        for clause in &comprehension.clauses {
            self.clause(clause);
            self.output.push(' ');
        }
        self.expression(&comprehension.value);
    }

    fn clause(&mut self, clause: &Clause) {
        match &clause.kind {
            ClauseKind::For { key, value, source } => {
                self.output.push_str("for ");
                if let Some(key) = key {
                    self.output.push_str(&key.name);
                    self.output.push_str(", ");
                }
                self.output.push_str(&value.name);
                self.output.push_str(" in ");
                self.expression(source);
            }
            ClauseKind::If(condition) => {
                self.output.push_str("if ");
                self.expression(condition);
            }
            ClauseKind::Let { name, value } => {
                self.output.push_str("let ");
                self.output.push_str(&name.name);
                self.output.push_str(" = ");
                self.expression(value);
            }
        }
    }

    fn list(&mut self, span: Span, literal: &ListLit) {
        self.output.push('[');
        let mut previous = span.start;
        let mut after_comment = false;
        let outer = self.indent;
        for (position, element) in literal.elements.iter().enumerate() {
            let line = self.line(element_start(element));
            // Nothing can follow a comment on its line, wherever in the element it stood.
            let before = self
                .line(previous)
                .min(if after_comment { line - 1 } else { line });
            self.item_break(position, line, before, outer);
            self.leading(&element.comments);
            self.element(&element.kind);
            let last = position + 1 == literal.elements.len();
            let closes_below = self.line(span.end) > self.line(element.span.end);
            let ellipsis = matches!(element.kind, ElementKind::Ellipsis(_));
            let needs_comma = if last {
                closes_below || has_trailing(&element.comments) || !literal.end_comments.is_empty()
            } else {
                true
            };
            if needs_comma && !(last && ellipsis) {
                self.output.push(',');
            }
            self.trailing(&element.comments);
            after_comment = has_trailing(&element.comments);
            previous = element_end(element);
        }
        self.indent = outer;
        for group in &literal.end_comments {
            self.indent += 1;
            self.new_line();
            self.comment_lines(group);
            self.indent -= 1;
        }
        let commented = !literal.end_comments.is_empty()
            || literal
                .elements
                .last()
                .is_some_and(|element| has_trailing(&element.comments));
        if commented || self.line(span.end) > self.line(previous) {
            self.new_line();
        }
        self.output.push(']');
    }

    /// What goes between the previous item and this one: a blank, or the line breaks of the source.
    /// From the first item on a line of its own on, items are indented.
    fn item_break(&mut self, position: usize, line: u32, previous: u32, outer: usize) {
        if line > previous {
            if position > 0 && line > previous + 1 {
                self.output.push('\n');
            }
            self.indent = outer + 1;
            self.new_line();
        } else if position > 0 {
            self.output.push(' ');
        }
    }

    fn element(&mut self, kind: &ElementKind) {
        match kind {
            ElementKind::Value(value) => self.expression(value),
            ElementKind::Comprehension(comprehension) => self.comprehension(comprehension),
            ElementKind::Ellipsis(bound) => {
                self.output.push_str("...");
                if let Some(bound) = bound {
                    self.expression(bound);
                }
            }
        }
    }

    fn arguments(&mut self, span: Span, arguments: &[Expr]) {
        self.output.push('(');
        let mut previous = arguments
            .first()
            .map_or(span.start, |first| first.span.start);
        let outer = self.indent;
        for (position, argument) in arguments.iter().enumerate() {
            if position > 0 {
                self.output.push(',');
            }
            self.item_break(
                position,
                self.line(argument.span.start),
                self.line(previous),
                outer,
            );
            self.expression(argument);
            previous = argument.span.end;
        }
        self.indent = outer;
        self.output.push(')');
    }
}

fn has_trailing(comments: &Comments) -> bool {
    !comments.trailing.is_empty()
}

fn element_start(element: &Element) -> u32 {
    let comment = element
        .comments
        .leading
        .first()
        .and_then(|group| group.comments.first());
    let own = comment.map_or(element.span.start, |comment| comment.span.start);
    match &element.kind {
        // A struct in braces may begin with a comment of its own; its brace comes first.
        ElementKind::Value(Expr {
            kind: ExprKind::Struct(literal),
            ..
        }) => literal
            .decls
            .first()
            .map_or(own, |decl| own.min(first_offset(decl))),
        _ => own,
    }
}

fn element_end(element: &Element) -> u32 {
    let comment = element
        .comments
        .trailing
        .last()
        .and_then(|group| group.comments.last());
    comment
        .map_or(0, |comment| comment.span.end)
        .max(element.span.end)
}

/// Whether an expression begins with the match operator.
fn is_match(expr: &Expr) -> bool {
    let ExprKind::Unary { op, .. } = &expr.kind else {
        return false;
    };
    *op == UnaryOp::Match
}
