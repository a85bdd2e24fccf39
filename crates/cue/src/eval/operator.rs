//! Binary operators on concrete operands.

use std::cmp::Ordering;

use super::scalar::{compare, equal_values};
use super::{ErrId, Evaluator, Val};
use crate::ast::BinaryOp;
use crate::diagnostic::Code;
use crate::number::{Number, NumberError};
use crate::token::Pos;
use crate::value::{Kind, Value};

/// Whether two values are in the order that a comparison asks for; nothing if they have none.
fn in_order(op: BinaryOp, left: &Value, right: &Value) -> Option<bool> {
    if matches!(left.kind(), Kind::BOOL | Kind::NULL) {
        return None;
    }
    let order = compare(left, right)?;
    Some(match op {
        BinaryOp::Less => order == Ordering::Less,
        BinaryOp::LessEqual => order != Ordering::Greater,
        BinaryOp::Greater => order == Ordering::Greater,
        _ => order != Ordering::Less,
    })
}

impl Evaluator {
    /// Applies an operator.
    pub(crate) fn operate(
        &mut self,
        op: BinaryOp,
        left: &Val,
        right: &Val,
        pos: Pos,
    ) -> Result<Val, ErrId> {
        let (left_kind, right_kind) = (self.kind_of(left), self.kind_of(right));
        let truth = |value: bool| Ok(Val::Atom(Value::Bool(value)));
        match (op, left.literal(), right.literal()) {
            (BinaryOp::Equal | BinaryOp::NotEqual, _, _) => {
                let equal = self.equality(left, right, left_kind, right_kind, op, pos)?;
                return truth(equal == (op == BinaryOp::Equal));
            }
            (
                BinaryOp::Less | BinaryOp::LessEqual | BinaryOp::Greater | BinaryOp::GreaterEqual,
                Some(a),
                Some(b),
            ) => {
                if let Some(holds) = in_order(op, a, b) {
                    return truth(holds);
                }
            }
            (BinaryOp::LogicalAnd | BinaryOp::LogicalOr, ..) => {
                return self.logical(op, left, right, pos);
            }
            (BinaryOp::Match | BinaryOp::NotMatch, Some(a), Some(b))
                if matches!(a, Value::String(_) | Value::Bytes(_))
                    && matches!(b, Value::String(_) | Value::Bytes(_)) =>
            {
                return match self.matches_regex(a, b) {
                    Ok(found) => truth(found == (op == BinaryOp::Match)),
                    Err(message) => Err(self.error_at(Code::Eval, pos, message)),
                };
            }
            (BinaryOp::Add, Some(Value::String(a)), Some(Value::String(b))) => {
                self.check_output(a.len() + b.len())?;
                return Ok(Val::Atom(Value::string([&**a, b].concat())));
            }
            (BinaryOp::Add, Some(Value::Bytes(a)), Some(Value::Bytes(b))) => {
                self.check_output(a.len() + b.len())?;
                return Ok(Val::Atom(Value::Bytes([&**a, b].concat().into())));
            }
            (_, Some(Value::Number(a)), Some(Value::Number(b))) => {
                if let Some(result) = arithmetic(op, a, b) {
                    return match result {
                        Ok(number) => Ok(Val::Atom(Value::Number(number))),
                        Err(error) => Err(self.error_at(Code::Eval, pos, error.to_string())),
                    };
                }
            }
            (BinaryOp::Multiply, Some(Value::Number(count)), Some(other))
            | (BinaryOp::Multiply, Some(other), Some(Value::Number(count)))
                if count.is_int() && matches!(other, Value::String(_) | Value::Bytes(_)) =>
            {
                return self.repeat(other, count, pos);
            }
            _ => {}
        }
        if let Some(result) = self.list_arithmetic(op, left, right, pos) {
            return result;
        }
        let (a, b) = (self.show(left), self.show(right));
        let message = format!(
            "invalid operands {a} and {b} to '{}' (type {left_kind} and {right_kind})",
            op.text()
        );
        Err(self.error_at(Code::Eval, pos, message))
    }

    /// `&&` and `||`
    fn logical(&mut self, op: BinaryOp, left: &Val, right: &Val, pos: Pos) -> Result<Val, ErrId> {
        let truth = |value: &Val| match value.literal() {
            Some(Value::Bool(value)) => Some(*value),
            _ => None,
        };
        let bad = match (truth(left), truth(right)) {
            (Some(a), Some(b)) => {
                let result = if op == BinaryOp::LogicalAnd {
                    a && b
                } else {
                    a || b
                };
                return Ok(Val::Atom(Value::Bool(result)));
            }
            (Some(_), None) => right,
            (None, _) => left,
        };
        let (text, kind) = (self.show(bad), self.kind_of(bad));
        let message = format!(
            "cannot use {text} (type {kind}) as type bool in {}",
            op.text()
        );
        Err(self.error_at(Code::Eval, pos, message))
    }

    /// Accounts for text or bytes that are about to be made.
    pub(crate) fn check_output(&mut self, length: usize) -> Result<(), ErrId> {
        if length > self.budget.output {
            Err(self.exhaust("output"))
        } else if self.use_memory(length) {
            Ok(())
        } else {
            Err(self.exhaust("memory"))
        }
    }

    fn equality(
        &mut self,
        left: &Val,
        right: &Val,
        left_kind: Kind,
        right_kind: Kind,
        op: BinaryOp,
        pos: Pos,
    ) -> Result<bool, ErrId> {
        if let (Some(a), Some(b)) = (left.literal(), right.literal()) {
            let comparable = left_kind == right_kind
                || Kind::NUMBER.contains(left_kind) && Kind::NUMBER.contains(right_kind)
                || left_kind == Kind::NULL
                || right_kind == Kind::NULL;
            if comparable {
                return Ok(equal_values(a, b));
            }
        } else if left_kind == Kind::NULL || right_kind == Kind::NULL {
            return Ok(false);
        } else if left_kind == right_kind && left_kind == Kind::LIST {
            // Between elements, unlike between operands, kinds count: [1] is not [1.0].
            let (a, b) = (self.plain_value(left)?, self.plain_value(right)?);
            return Ok(a == b);
        }
        let (a, b) = (self.show(left), self.show(right));
        let message = format!(
            "invalid operands {a} and {b} to '{}' (type {left_kind} and {right_kind})",
            op.text()
        );
        Err(self.error_at(Code::Eval, pos, message))
    }

    fn repeat(&mut self, value: &Value, count: &Number, pos: Pos) -> Result<Val, ErrId> {
        let Some(count) = count.to_usize() else {
            let message = format!("cannot convert negative number to uint64: {count}");
            return Err(self.error_at(Code::Eval, pos, message));
        };
        match value {
            Value::String(text) => {
                self.check_output(text.len().saturating_mul(count))?;
                Ok(Val::Atom(Value::string(text.repeat(count))))
            }
            Value::Bytes(bytes) => {
                self.check_output(bytes.len().saturating_mul(count))?;
                Ok(Val::Atom(Value::Bytes(bytes.repeat(count).into())))
            }
            other => Ok(Val::Atom(other.clone())),
        }
    }

    /// `+` and `*` on lists: dropped from the language, still used by templates in the field, so
    /// they mean concatenation and repetition here.
    fn list_arithmetic(
        &mut self,
        op: BinaryOp,
        left: &Val,
        right: &Val,
        pos: Pos,
    ) -> Option<Result<Val, ErrId>> {
        let (left_items, right_items) = (self.list_items(left), self.list_items(right));
        if self.strict && (left_items.is_some() || right_items.is_some()) {
            let (what, instead) = match (op, &left_items, &right_items) {
                (BinaryOp::Add, Some(_), Some(_)) => ("Addition", "Concat"),
                (BinaryOp::Multiply, _, _) => ("Multiplication", "Repeat"),
                _ => return None,
            };
            let message = format!(
                "{what} of lists is superseded by list.{instead}; \
                 see https://cuelang.org/e/v0.11-list-arithmetic"
            );
            return Some(Err(self.error_at(Code::Eval, pos, message)));
        }
        let items = match (op, left_items, right_items) {
            (BinaryOp::Add, Some(mut items), Some(more)) => {
                items.extend(more);
                items
            }
            (BinaryOp::Multiply, Some(items), None) => self.repeated(&items, right)?,
            (BinaryOp::Multiply, None, Some(items)) => self.repeated(&items, left)?,
            _ => return None,
        };
        if items.len() > self.budget.output {
            return Some(Err(self.exhaust("output")));
        }
        Some(Ok(self.returned(Value::List(items.into()))))
    }

    fn repeated(&mut self, items: &[Value], count: &Val) -> Option<Vec<Value>> {
        let Some(Value::Number(count)) = self.atom(count) else {
            return None;
        };
        let count = count.to_usize()?;
        if items.len().saturating_mul(count) > self.budget.output {
            self.exhaust("output");
            return Some(Vec::new());
        }
        Some(
            items
                .iter()
                .cloned()
                .cycle()
                .take(items.len() * count)
                .collect(),
        )
    }

    /// The elements of a list value, each by handle.
    pub(crate) fn list_items(&mut self, value: &Val) -> Option<Vec<Value>> {
        match value {
            Val::Atom(Value::List(items)) => Some(items.to_vec()),
            Val::Node(node) => {
                let node = self.deref(*node);
                let length = self.node(node).list?.length;
                let elements: Vec<_> = (0..length)
                    .filter_map(|index| self.node(node).find(crate::label::Label::index(index)))
                    .collect();
                Some(
                    elements
                        .into_iter()
                        .map(|element| self.opaque(element))
                        .collect(),
                )
            }
            _ => None,
        }
    }
}

fn arithmetic(op: BinaryOp, left: &Number, right: &Number) -> Option<Result<Number, NumberError>> {
    Some(match op {
        BinaryOp::Add => left.add(right),
        BinaryOp::Subtract => left.sub(right),
        BinaryOp::Multiply => left.mul(right),
        BinaryOp::Divide => left.quo(right),
        _ => return None,
    })
}
