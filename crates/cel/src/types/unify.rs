//! Type inference: which type fits where, and what that says about type variables.
//!
//! A faithful rendering of the rules of cel-go's checker, including its leniency towards `null`.

use std::sync::Arc;

use super::Type;

/// What is known about type variables; failed attempts leave no trace.
#[derive(Debug, Default)]
pub(crate) struct Substitution {
    bound: Vec<Option<Type>>,
    /// Earlier values of changed variables, for undoing a failed attempt.
    trail: Vec<(u32, Option<Type>)>,
}

impl Substitution {
    /// A type variable nothing is known about yet.
    pub(crate) fn fresh(&mut self) -> Type {
        Type::Parameter(self.reserve(1))
    }

    /// Reserves `count` variables and returns the first.
    pub(crate) fn reserve(&mut self, count: u32) -> u32 {
        let base = u32::try_from(self.bound.len()).unwrap_or(u32::MAX);
        self.bound.resize(self.bound.len() + count as usize, None);
        base
    }

    /// `declared` with its variables renamed to the run starting at `base`.
    pub(crate) fn instantiate(declared: &Type, base: u32) -> Type {
        match declared {
            Type::Parameter(index) => Type::Parameter(base + index),
            Type::List(element) => Type::list(Self::instantiate(element, base)),
            Type::Map(entry) => Type::map(
                Self::instantiate(&entry.0, base),
                Self::instantiate(&entry.1, base),
            ),
            Type::Optional(inner) => Type::optional(Self::instantiate(inner, base)),
            Type::Type(Some(of)) => Type::type_of(Self::instantiate(of, base)),
            other => other.clone(),
        }
    }

    fn get(&self, index: u32) -> Option<&Type> {
        self.bound.get(index as usize)?.as_ref()
    }

    fn set(&mut self, index: u32, to: Type) {
        if let Some(slot) = self.bound.get_mut(index as usize) {
            self.trail.push((index, slot.replace(to)));
        }
    }

    /// Whether every type fits its counterpart; remembers what was learned only if so.
    pub(crate) fn assignable_all(&mut self, from: &[Type], to: &[Type]) -> bool {
        self.trail.clear();
        if from.len() == to.len() && from.iter().zip(to).all(|(f, t)| self.fits(f, t)) {
            return true;
        }
        while let Some((index, earlier)) = self.trail.pop() {
            self.bound[index as usize] = earlier;
        }
        false
    }

    /// Whether a value of type `from` can stand where `to` is wanted.
    pub(crate) fn assignable(&mut self, from: &Type, to: &Type) -> bool {
        self.assignable_all(std::slice::from_ref(from), std::slice::from_ref(to))
    }

    fn fits(&mut self, from: &Type, to: &Type) -> bool {
        if let Type::Parameter(index) = to {
            let (valid, had_substitution) = self.substitutes(from, *index);
            if valid {
                return true;
            }
            if had_substitution {
                return false;
            }
        }
        if let Type::Parameter(index) = from {
            return self.substitutes(to, *index).0;
        }
        if from.is_dyn_or_error() || to.is_dyn_or_error() {
            return true;
        }
        match (from, to) {
            (Type::Null, other) | (other, Type::Null) => is_nullable(other),
            (Type::Type(_), Type::Type(_)) => true,
            (Type::List(from), Type::List(to)) | (Type::Optional(from), Type::Optional(to)) => {
                self.fits(from, to)
            }
            (Type::Map(from), Type::Map(to)) => {
                self.fits(&from.0, &to.0) && self.fits(&from.1, &to.1)
            }
            _ => from.is_exactly(to),
        }
    }

    /// Whether variable `index` can stand for `other`, and whether it already stood for a type.
    fn substitutes(&mut self, other: &Type, index: u32) -> (bool, bool) {
        if *other == Type::Parameter(index) {
            return (true, true);
        }
        if let Some(bound) = self.get(index).cloned() {
            if other.is_exactly(&bound) {
                return (true, true);
            }
            if self.fits(other, &bound) {
                let general = most_general(other, &bound).clone();
                if self.absent_from(index, &general) {
                    self.set(index, general);
                }
                return (true, true);
            }
            return (false, true);
        }
        if self.absent_from(index, other) {
            self.set(index, other.clone());
            return (true, false);
        }
        (false, false)
    }

    /// The occurs check: a variable must not be defined by itself.
    fn absent_from(&self, index: u32, within: &Type) -> bool {
        match within {
            Type::Parameter(other) if *other == index => false,
            Type::Parameter(other) => self
                .get(*other)
                .is_none_or(|bound| self.absent_from(index, bound)),
            Type::List(inner) | Type::Optional(inner) | Type::Type(Some(inner)) => {
                self.absent_from(index, inner)
            }
            Type::Map(entry) => {
                self.absent_from(index, &entry.0) && self.absent_from(index, &entry.1)
            }
            _ => true,
        }
    }

    /// `of` with every known variable replaced; unknown ones become `dyn` if `close`.
    pub(crate) fn apply(&self, of: &Type, close: bool) -> Type {
        match of {
            Type::Parameter(index) => match self.get(*index) {
                Some(bound) => self.apply(bound, close),
                None if close => Type::Dyn,
                None => of.clone(),
            },
            Type::List(element) => Type::List(Arc::new(self.apply(element, close))),
            Type::Optional(inner) => Type::Optional(Arc::new(self.apply(inner, close))),
            Type::Map(entry) => Type::map(self.apply(&entry.0, close), self.apply(&entry.1, close)),
            Type::Type(Some(of)) => Type::type_of(self.apply(of, close)),
            other => other.clone(),
        }
    }
}

/// Which types `null` may stand for.
fn is_nullable(of: &Type) -> bool {
    matches!(
        of,
        Type::Null
            | Type::Object(_)
            | Type::Optional(_)
            | Type::Abstract(_)
            | Type::Duration
            | Type::Timestamp
    )
}

/// The less specific of two types that fit each other.
pub(crate) fn most_general<'t>(left: &'t Type, right: &'t Type) -> &'t Type {
    if is_equal_or_less_specific(left, right) {
        left
    } else {
        right
    }
}

fn is_equal_or_less_specific(left: &Type, right: &Type) -> bool {
    match (left, right) {
        (Type::Dyn | Type::Parameter(_), _) | (Type::Type(_), Type::Type(_)) => true,
        (_, Type::Dyn | Type::Parameter(_)) => false,
        (Type::List(left), Type::List(right)) | (Type::Optional(left), Type::Optional(right)) => {
            is_equal_or_less_specific(left, right)
        }
        (Type::Map(left), Type::Map(right)) => {
            is_equal_or_less_specific(&left.0, &right.0)
                && is_equal_or_less_specific(&left.1, &right.1)
        }
        _ => left.is_exactly(right),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_variable_takes_the_most_general_type_seen() {
        let mut known = Substitution::default();
        let variable = known.fresh();
        assert!(known.assignable(&Type::Int, &variable));
        assert!(known.assignable(&Type::Dyn, &variable));
        assert_eq!(known.apply(&variable, false), Type::Dyn);
    }

    #[test]
    fn a_failed_attempt_teaches_nothing() {
        let mut known = Substitution::default();
        let variable = known.fresh();
        assert!(!known.assignable_all(&[Type::Int, Type::Int], &[variable.clone(), Type::String]));
        assert_eq!(known.apply(&variable, false), variable);
    }

    #[test]
    fn a_variable_cannot_contain_itself() {
        let mut known = Substitution::default();
        let variable = known.fresh();
        assert!(!known.assignable(&Type::list(variable.clone()), &variable));
    }

    #[test]
    fn null_fits_messages_but_not_scalars() {
        let mut known = Substitution::default();
        assert!(known.assignable(&Type::Null, &Type::Timestamp));
        assert!(known.assignable(&Type::object("T", []), &Type::Null));
        assert!(!known.assignable(&Type::Null, &Type::Int));
        assert!(!known.assignable(&Type::Null, &Type::list(Type::Int)));
    }
}
