//! Checks beyond types: constants that can never work, and mixed aggregate literals.

use super::Checked;
use crate::ast::{Call, Element, Expr, ExprId, ExprKind, Literal, Positions};
use crate::error::Problems;
use crate::library::format_string::{self, Piece};
use crate::library::regex;
use crate::time;
use crate::types::Type;

/// Reports constants that every evaluation would fail on and, unless they are `mixed`, aggregate
/// literals of several types.
pub(crate) fn validate(
    expr: &Expr,
    checked: &Checked,
    positions: &Positions,
    mixed: bool,
    problems: &mut Problems,
) {
    let mut validator = Validator {
        checked,
        positions,
        problems,
        exempt: mixed,
    };
    validator.visit(expr);
}

struct Validator<'v> {
    checked: &'v Checked,
    positions: &'v Positions,
    problems: &'v mut Problems,
    /// Literals may be of several types: everywhere, or inside the arguments of `format`.
    exempt: bool,
}

impl Validator<'_> {
    fn visit(&mut self, expr: &Expr) {
        match &expr.kind {
            ExprKind::Unspecified | ExprKind::Literal(_) | ExprKind::Ident(_) => {}
            ExprKind::Select(select) => self.visit(&select.operand),
            ExprKind::Call(call) => {
                self.constant_argument(call);
                let outside = self.exempt;
                if call.function == "format" {
                    self.format_arguments(expr.id, call);
                    self.exempt = true;
                }
                for argument in call.target.iter().chain(&call.arguments) {
                    self.visit(argument);
                }
                self.exempt = outside;
            }
            ExprKind::List(elements) => {
                let types: Vec<(ExprId, Type)> = elements
                    .iter()
                    .map(|element| self.unwrapped(&element.value, element.optional))
                    .collect();
                self.same_types(&types, true);
                for element in elements {
                    self.visit(&element.value);
                }
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
                for field in fields {
                    self.visit(&field.value);
                }
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
        if self.exempt {
            return;
        }
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
    /// Compares the clauses of a constant template with a literal list of arguments.
    fn format_arguments(&mut self, id: ExprId, call: &Call) {
        let (
            Some(Expr {
                kind: ExprKind::Literal(Literal::String(template)),
                ..
            }),
            [
                Expr {
                    kind: ExprKind::List(arguments),
                    ..
                },
            ],
        ) = (&call.target, call.arguments.as_slice())
        else {
            return;
        };
        match self.check_template(template, arguments) {
            Ok(used) if arguments.len() > used => {
                let message = format!(
                    "too many arguments supplied to string.format (expected {used}, got {})",
                    arguments.len()
                );
                self.problems.report(self.positions.get(id), message);
            }
            Ok(_) => {}
            Err((place, message)) => {
                let place = self.positions.get(place.unwrap_or(id));
                self.problems.report(place, message);
            }
        }
    }

    /// How many arguments a template uses, or the first thing wrong with it.
    fn check_template(
        &self,
        template: &str,
        arguments: &[Element],
    ) -> Result<usize, (Option<ExprId>, String)> {
        let mut rest = template;
        let mut used = 0;
        while let Some(piece) = format_string::next_piece(&mut rest) {
            let Piece::Clause(start) = piece else {
                continue;
            };
            if start.is_empty() {
                return Err((None, "unexpected end of string".to_owned()));
            }
            let Some(argument) = arguments.get(used) else {
                return Err((None, format!("index {used} out of range")));
            };
            used += 1;
            let (verb, _, after) =
                format_string::parse_clause(start).map_err(|message| (None, message))?;
            rest = after;
            if let Some(wrong) = self.unformattable(verb, &argument.value) {
                let message = format!(
                    "error during formatting: {}, was given {}",
                    format_string::rule(verb),
                    self.checked.type_of(wrong).runtime_name()
                );
                return Err((Some(wrong), message));
            }
        }
        Ok(used)
    }

    /// The node whose type the verb cannot format.
    fn unformattable(&self, verb: char, expr: &Expr) -> Option<ExprId> {
        let of = self.checked.type_of(expr.id);
        let fits = match verb {
            _ if of.is_dyn() => true,
            'd' | 'o' => matches!(of, Type::Int | Type::Uint),
            'f' | 'e' => matches!(of, Type::Double | Type::String),
            'b' => matches!(of, Type::Int | Type::Uint | Type::Bool),
            'x' | 'X' => matches!(of, Type::Int | Type::Uint | Type::String | Type::Bytes),
            _ => !matches!(of, Type::Object(_) | Type::Optional(_) | Type::Abstract(_)),
        };
        if !fits {
            return Some(expr.id);
        }
        match &expr.kind {
            ExprKind::List(elements) if verb == 's' => elements
                .iter()
                .find_map(|element| self.unformattable(verb, &element.value)),
            ExprKind::Map(entries) if verb == 's' => entries.iter().find_map(|entry| {
                self.unformattable(verb, &entry.key)
                    .or_else(|| self.unformattable(verb, &entry.value))
            }),
            _ => None,
        }
    }
}
