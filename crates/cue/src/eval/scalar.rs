//! What is known of a value that is no struct or list: its kinds, an atom, bounds.

use std::cmp::Ordering;

use super::error::{Clash, Message};
use super::{Evaluator, Val};
use crate::ir::{BoundOp, Callee};
use crate::number::{Number, Rounding};
use crate::token::Pos;
use crate::value::{Kind, Value};

/// A comparison with a concrete value.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Bound {
    pub(crate) op: BoundOp,
    pub(crate) value: Value,
    pub(crate) pos: Pos,
}

/// A check that runs once the value is known.
#[derive(Debug, Clone)]
pub(crate) enum Check {
    Bound(Bound),
    Call {
        callee: Callee,
        arguments: Vec<Val>,
        pos: Pos,
    },
}

/// The scalar side of a node.
#[derive(Debug, Clone)]
pub(crate) struct Scalar {
    pub(crate) kind: Kind,
    /// What last narrowed the kind, printed in conflicts.
    pub(crate) kind_text: Option<Described>,
    pub(crate) atom: Option<Value>,
    pub(crate) atom_pos: Pos,
    limits: Option<Box<Limits>>,
}

/// What else a value must satisfy; most values have none of it.
#[derive(Debug, Clone, Default)]
struct Limits {
    lower: Option<Bound>,
    upper: Option<Bound>,
    checks: Vec<Check>,
}

impl Scalar {
    pub(crate) fn lower(&self) -> Option<&Bound> {
        self.limits.as_ref()?.lower.as_ref()
    }

    pub(crate) fn upper(&self) -> Option<&Bound> {
        self.limits.as_ref()?.upper.as_ref()
    }

    /// Whether there are bounds or checks.
    pub(crate) fn is_limited(&self) -> bool {
        self.limits.is_some()
    }

    /// The lower and the upper bound.
    pub(crate) fn bounds(&self) -> impl Iterator<Item = &Bound> {
        self.lower().into_iter().chain(self.upper())
    }

    /// Everything that runs once the value is known, bounds excepted.
    pub(crate) fn checks(&self) -> &[Check] {
        self.limits.as_ref().map_or(&[], |limits| &limits.checks)
    }

    pub(crate) fn push_check(&mut self, check: Check) {
        self.limits_mut().checks.push(check);
    }

    /// Restricts the kinds.
    pub(crate) fn restrict_kind(
        &mut self,
        kind: Kind,
        by: Described,
        pos: Pos,
    ) -> Result<(), Conflict> {
        let met = self.kind & kind;
        if met.is_empty() {
            if self.kind.is_empty() {
                return Ok(());
            }
            let other = match (&self.atom, &self.kind_text) {
                (Some(atom), _) => Described::Value(atom.clone()),
                (None, Some(text)) => text.clone(),
                (None, None) => Described::Kind(self.kind),
            };
            let clash = Clash {
                left: other,
                right: by,
                kinds: Some((self.kind, kind)),
            };
            self.kind = Kind::BOTTOM;
            return Err(Conflict {
                message: Message::Conflict(Box::new(clash)),
                related: vec![self.atom_pos, pos],
            });
        }
        if met != self.kind || self.kind_text.is_none() {
            self.kind_text = Some(by);
            if self.atom.is_none() {
                self.atom_pos = pos;
            }
        }
        self.kind = met;
        Ok(())
    }

    /// Adds an atom.
    pub(crate) fn add_atom(&mut self, value: Value, pos: Pos) -> Result<(), Conflict> {
        if let Some(known) = &self.atom {
            if atoms_equal(known, &value) {
                return Ok(());
            }
            if known.kind() == value.kind() {
                let clash = Clash {
                    left: Described::Value(value),
                    right: Described::Value(known.clone()),
                    kinds: None,
                };
                self.kind = Kind::BOTTOM;
                return Err(Conflict {
                    message: Message::Conflict(Box::new(clash)),
                    related: vec![self.atom_pos, pos],
                });
            }
        }
        let met = self.kind & value.kind();
        if met.is_empty() {
            let kind = value.kind();
            return self.restrict_kind(kind, Described::Value(value), pos);
        }
        self.kind = met;
        self.atom = Some(value);
        self.atom_pos = pos;
        Ok(())
    }

    fn limits_mut(&mut self) -> &mut Limits {
        self.limits.get_or_insert_default()
    }
}

/// How a conjunct is named in messages.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Described {
    Value(Value),
    Expr(crate::ir::ExprId),
    Literal(crate::ir::StructId),
    Kind(Kind),
    Bound(Box<Bound>),
    Text(&'static str),
}

impl Default for Scalar {
    fn default() -> Self {
        Self {
            kind: Kind::TOP,
            kind_text: None,
            atom: None,
            atom_pos: Pos::NONE,
            limits: None,
        }
    }
}

/// A contradiction between two constraints.
#[derive(Debug)]
pub(crate) struct Conflict {
    pub(crate) message: Message,
    pub(crate) related: Vec<Pos>,
}

impl Evaluator {
    /// Adds a comparison, simplifying it with those already there.
    pub(crate) fn add_bound(&mut self, scalar: &mut Scalar, bound: Bound) -> Result<(), Conflict> {
        let kind = bound_kind(&bound);
        scalar.restrict_kind(kind, Described::Bound(Box::new(bound.clone())), bound.pos)?;
        match bound.op {
            BoundOp::Less | BoundOp::LessEqual => {
                let limits = scalar.limits_mut();
                limits.upper = Some(tighter(limits.upper.take(), bound, Ordering::Less));
            }
            BoundOp::Greater | BoundOp::GreaterEqual => {
                let limits = scalar.limits_mut();
                limits.lower = Some(tighter(limits.lower.take(), bound, Ordering::Greater));
            }
            BoundOp::NotEqual | BoundOp::Match | BoundOp::NotMatch => {
                let same = |check: &Check| {
                    matches!(check, Check::Bound(known)
                        if known.op == bound.op && atoms_equal(&known.value, &bound.value))
                };
                if !scalar.checks().iter().any(same) {
                    scalar.push_check(Check::Bound(bound));
                }
            }
        }
        self.check_range(scalar)
    }

    /// Rejects `>5 & <3`; keeps everything that leaves room for a value.
    fn check_range(&mut self, scalar: &mut Scalar) -> Result<(), Conflict> {
        let (Some(lower), Some(upper)) = (scalar.lower(), scalar.upper()) else {
            return Ok(());
        };
        let strict = lower.op == BoundOp::Greater || upper.op == BoundOp::Less;
        let (low, high) = if scalar.kind.intersects(Kind::FLOAT) {
            (lower.value.clone(), upper.value.clone())
        } else {
            integer_limits(lower, upper)
        };
        let empty = match compare(&low, &high) {
            Some(Ordering::Greater) => true,
            Some(Ordering::Equal) => strict,
            Some(Ordering::Less) => integer_gap_is_empty(scalar.kind, lower, upper),
            None => false,
        };
        if !empty {
            return Ok(());
        }
        let what = match &lower.value {
            Value::Number(_) if scalar.kind == Kind::INT => "integer bounds",
            Value::Number(_) => "number bounds",
            Value::Bytes(_) => "bytes bounds",
            _ => "string bounds",
        };
        let message = format!(
            "incompatible {what} {}{} and {}{}",
            upper.op.text(),
            self.show_value(&upper.value),
            lower.op.text(),
            self.show_value(&lower.value)
        );
        let related = vec![lower.pos, upper.pos];
        scalar.kind = Kind::BOTTOM;
        Err(Conflict {
            message: message.into(),
            related,
        })
    }

    /// Checks a concrete value against one comparison.
    pub(crate) fn satisfies(&mut self, value: &Value, bound: &Bound) -> Result<bool, String> {
        let order = || compare(value, &bound.value);
        Ok(match bound.op {
            BoundOp::Less => order() == Some(Ordering::Less),
            BoundOp::LessEqual => matches!(order(), Some(Ordering::Less | Ordering::Equal)),
            BoundOp::Greater => order() == Some(Ordering::Greater),
            BoundOp::GreaterEqual => matches!(order(), Some(Ordering::Greater | Ordering::Equal)),
            BoundOp::NotEqual => !equal_values(value, &bound.value),
            BoundOp::Match => self.matches_regex(value, &bound.value)?,
            BoundOp::NotMatch => !self.matches_regex(value, &bound.value)?,
        })
    }
}

/// The kinds a comparison admits.
pub(crate) fn bound_kind(bound: &Bound) -> Kind {
    match (bound.op, &bound.value) {
        (BoundOp::NotEqual, Value::Null) => Kind(Kind::TOP.0 & !Kind::NULL.0),
        (BoundOp::NotEqual, value)
            if value.kind() != Kind::LIST && value.kind() != Kind::STRUCT =>
        {
            // The reference leaves the kind open for `!=` with any other value.
            same_family(value.kind())
        }
        (BoundOp::NotEqual, _) => Kind::TOP,
        (BoundOp::Match | BoundOp::NotMatch, _) => Kind::STRING | Kind::BYTES,
        (_, value) => same_family(value.kind()),
    }
}

fn same_family(kind: Kind) -> Kind {
    if Kind::NUMBER.intersects(kind) {
        Kind::NUMBER
    } else {
        kind
    }
}

/// Of two comparisons in one direction, the one that says more.
fn tighter(known: Option<Bound>, new: Bound, direction: Ordering) -> Bound {
    let Some(known) = known else { return new };
    match compare(&new.value, &known.value) {
        Some(order) if order == direction => new,
        Some(Ordering::Equal) => {
            let strict = |bound: &Bound| matches!(bound.op, BoundOp::Less | BoundOp::Greater);
            if strict(&known) || !strict(&new) {
                known
            } else {
                new
            }
        }
        _ => known,
    }
}

/// The bounds of an integer moved to the nearest integers they admit.
fn integer_limits(lower: &Bound, upper: &Bound) -> (Value, Value) {
    let round = |value: &Value, up: bool| match value {
        Value::Number(number) => {
            let rounding = if up {
                Rounding::Ceiling
            } else {
                Rounding::Floor
            };
            number
                .round_to_integer(rounding)
                .map_or_else(|_| value.clone(), Value::Number)
        }
        other => other.clone(),
    };
    (
        round(&lower.value, lower.op == BoundOp::GreaterEqual),
        round(&upper.value, upper.op == BoundOp::Less),
    )
}

/// Whether no integer lies strictly between two different bounds.
fn integer_gap_is_empty(kind: Kind, lower: &Bound, upper: &Bound) -> bool {
    if kind.intersects(Kind::FLOAT) || !kind.intersects(Kind::INT) {
        return false;
    }
    let (Value::Number(low), Value::Number(high)) = (&lower.value, &upper.value) else {
        return false;
    };
    let strict = lower.op == BoundOp::Greater && upper.op == BoundOp::Less;
    let Ok(difference) = high.sub(low) else {
        return false;
    };
    strict && difference.compare(&Number::from(1)) != Ordering::Greater && low.is_int()
}

/// Whether two atoms are the same value: kinds count.
pub(crate) fn atoms_equal(left: &Value, right: &Value) -> bool {
    left == right
}

/// The `==` of the language: numbers by value, lists by elements.
pub(crate) fn equal_values(left: &Value, right: &Value) -> bool {
    match (left, right) {
        (Value::Number(left), Value::Number(right)) => left.compare(right) == Ordering::Equal,
        (Value::List(left), Value::List(right)) => {
            left.len() == right.len()
                && left
                    .iter()
                    .zip(right.iter())
                    .all(|(left, right)| equal_values(left, right))
        }
        (Value::Struct(left), Value::Struct(right)) => {
            left.len() == right.len()
                && left.iter().all(|(label, value)| {
                    right
                        .iter()
                        .any(|(other, known)| other == label && equal_values(value, known))
                })
        }
        _ => left == right,
    }
}

/// The order of two atoms of one family.
pub(crate) fn compare(left: &Value, right: &Value) -> Option<Ordering> {
    match (left, right) {
        (Value::Number(left), Value::Number(right)) => Some(left.compare(right)),
        (Value::String(left), Value::String(right)) => Some(left.as_bytes().cmp(right.as_bytes())),
        (Value::Bytes(left), Value::Bytes(right)) => Some(left.cmp(right)),
        (Value::Bool(left), Value::Bool(right)) => Some(left.cmp(right)),
        (Value::Null, Value::Null) => Some(Ordering::Equal),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::{Described, Scalar};
    use crate::token::Pos;
    use crate::value::{Kind, Value};

    fn number(value: i64) -> Value {
        Value::Number(value.into())
    }

    #[test]
    fn kinds_only_narrow() {
        let mut scalar = Scalar::default();
        let mut narrow = |kind| {
            let by = Described::Kind(kind);
            let result = scalar.restrict_kind(kind, by, Pos::NONE);
            (result.is_ok(), scalar.kind)
        };
        assert_eq!(narrow(Kind::NUMBER), (true, Kind::NUMBER));
        assert_eq!(narrow(Kind::INT | Kind::STRING), (true, Kind::INT));
        assert_eq!(narrow(Kind::STRING), (false, Kind::BOTTOM));
    }

    #[test]
    fn an_atom_unifies_with_itself_only() {
        let mut scalar = Scalar::default();
        assert!(scalar.add_atom(number(1), Pos::NONE).is_ok());
        assert!(scalar.add_atom(number(1), Pos::NONE).is_ok());
        assert!(scalar.add_atom(number(2), Pos::NONE).is_err());
    }

    #[test]
    fn an_integer_is_no_float() {
        let mut scalar = Scalar::default();
        let by = Described::Kind(Kind::FLOAT);
        assert!(scalar.restrict_kind(Kind::FLOAT, by, Pos::NONE).is_ok());
        assert!(scalar.add_atom(number(1), Pos::NONE).is_err());
    }

    #[test]
    fn what_is_not_limited_takes_no_space_for_limits() {
        assert!(!Scalar::default().is_limited());
        assert!(size_of::<Scalar>() <= 96, "{}", size_of::<Scalar>());
    }
}
