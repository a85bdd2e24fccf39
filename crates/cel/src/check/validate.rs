//! Checks beyond types: constants that can never work, and mixed aggregate literals.

use super::Checked;
use crate::ast::{Call, Expr, ExprId, ExprKind, Literal, Positions};
use crate::error::Problems;
use crate::library::regex;
use crate::time;
use crate::types::Type;

/// Reports constants that every evaluation would fail on and aggregate literals of mixed types.
pub(crate) fn validate(
    expr: &Expr,
    checked: &Checked,
    positions: &Positions,
    problems: &mut Problems,
) {
    let mut validator = Validator {
        checked,
        positions,
        problems,
    };
    validator.visit(expr);
}

struct Validator<'v> {
    checked: &'v Checked,
    positions: &'v Positions,
    problems: &'v mut Problems,
}

impl Validator<'_> {
    fn visit(&mut self, expr: &Expr) {
        match &expr.kind {
            ExprKind::Unspecified | ExprKind::Literal(_) | ExprKind::Ident(_) => {}
            ExprKind::Select(select) => self.visit(&select.operand),
            ExprKind::Call(call) => {
                self.constant_argument(call);
                call.target
                    .iter()
                    .chain(&call.arguments)
                    .for_each(|argument| self.visit(argument));
            }
            ExprKind::List(elements) => {
                let types: Vec<(ExprId, Type)> = elements
                    .iter()
                    .map(|element| self.unwrapped(&element.value, element.optional))
                    .collect();
                self.same_types(&types, true);
                elements
                    .iter()
                    .for_each(|element| self.visit(&element.value));
            }
            ExprKind::Map(entries) => {
                let keys: Vec<(ExprId, Type)> = entries
                    .iter()
                    .map(|entry| self.unwrapped(&entry.key, false))
                    .collect();
                self.same_types(&keys, false);
                let values: Vec<(ExprId, Type)> = entries
                    .iter()
                    .map(|entry| self.unwrapped(&entry.value, entry.optional))
                    .collect();
                self.same_types(&values, false);
                for entry in entries {
                    self.visit(&entry.key);
                    self.visit(&entry.value);
                }
            }
            ExprKind::Struct(_, fields) => {
                fields.iter().for_each(|field| self.visit(&field.value));
            }
            ExprKind::Comprehension(fold) => {
                for part in [
                    &fold.range,
                    &fold.init,
                    &fold.condition,
                    &fold.step,
                    &fold.result,
                ] {
                    self.visit(part);
                }
            }
        }
    }

    fn constant_argument(&mut self, call: &Call) {
        let Some(argument) = call.arguments.first() else {
            return;
        };
        let ExprKind::Literal(literal) = &argument.kind else {
            return;
        };
        let valid = match (call.function.as_str(), literal) {
            ("duration", Literal::String(text)) => time::parse_go_duration(text).is_some(),
            ("timestamp", Literal::String(text)) => time::parse_rfc3339(text).is_ok(),
            ("timestamp", Literal::Int(seconds)) => time::Timestamp::new(*seconds, 0).is_some(),
            ("duration", _) => false,
            ("matches", Literal::String(pattern)) => regex::compile(pattern).is_ok(),
            _ => true,
        };
        if !valid {
            self.problems.report(
                self.positions.get(argument.id),
                format!("invalid {} argument", call.function),
            );
        }
    }

    fn unwrapped(&self, expr: &Expr, optional: bool) -> (ExprId, Type) {
        let of = self.checked.type_of(expr.id);
        let of = match of {
            Type::Optional(inner) if optional => (**inner).clone(),
            other => other.clone(),
        };
        (expr.id, of)
    }

    /// Every type must equal the first; `only_first` stops at the first that does not.
    fn same_types(&mut self, types: &[(ExprId, Type)], only_first: bool) {
        let Some(((_, expected), rest)) = types.split_first() else {
            return;
        };
        for (id, actual) in rest {
            if expected.is_exactly(actual) {
                continue;
            }
            self.problems.report(
                self.positions.get(*id),
                format!("expected type '{expected}' but found '{actual}'"),
            );
            if only_first {
                return;
            }
        }
    }
}
