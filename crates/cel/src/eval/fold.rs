//! Folds, which is what every macro over lists and maps becomes.

use super::{Evaluator, Local, go_type};
use crate::cost::LIST_COST;
use crate::declaration::Outcome;
use crate::error::EvalError;
use crate::plan::{Fold, Node, Quantifier, Slot};
use crate::value::Value;

impl<'a> Evaluator<'a, '_> {
    pub(super) fn fold(&mut self, fold: &'a Fold) -> Outcome<'a> {
        let range = self.eval(&fold.range)?;
        self.slots[fold.accumulator.0] = Local::Pending(&fold.init);
        let variables = (fold.variable, fold.second_variable);
        self.visit(&range, variables, |evaluator| evaluator.fold_step(fold))?;
        self.eval(&fold.result)
    }

    /// `all` and `exists`: a failure counts only if no element decides.
    pub(super) fn quantifier(&mut self, quantifier: &'a Quantifier) -> Outcome<'a> {
        let range = self.eval(&quantifier.range)?;
        let variables = (quantifier.variable, quantifier.second_variable);
        // What reading and testing the accumulator would have cost.
        let condition_cost = if quantifier.deciding { 3 } else { 2 };
        let mut decided = false;
        let mut failure = None;
        self.visit(&range, variables, |evaluator| {
            evaluator.charge(condition_cost)?;
            if decided {
                return Ok(false);
            }
            evaluator.charge(1)?;
            match evaluator.eval(&quantifier.predicate) {
                Ok(Value::Bool(value)) => decided = value == quantifier.deciding,
                Ok(_) => {
                    failure.get_or_insert_with(EvalError::no_such_overload);
                }
                Err(error) if error.is_over_budget() => return Err(error),
                Err(error) => {
                    failure.get_or_insert(error);
                }
            }
            Ok(true)
        })?;
        self.charge(1)?;
        match failure {
            Some(error) if !decided => Err(error),
            _ => Ok(Value::Bool(decided == quantifier.deciding)),
        }
    }

    /// Binds the variables to every element or entry in turn, until `step` says to stop.
    fn visit(
        &mut self,
        range: &Value<'a>,
        (variable, second): (Slot, Option<Slot>),
        mut step: impl FnMut(&mut Self) -> Result<bool, EvalError>,
    ) -> Result<(), EvalError> {
        match range {
            Value::List(list) => {
                for (index, element) in list.iter().enumerate() {
                    match second {
                        None => self.slots[variable.0] = Local::Ready(element),
                        Some(second) => {
                            let index = i64::try_from(index).unwrap_or(i64::MAX);
                            self.slots[variable.0] = Local::Ready(Ok(Value::Int(index)));
                            self.slots[second.0] = Local::Ready(element);
                        }
                    }
                    if !step(self)? {
                        break;
                    }
                }
            }
            Value::Map(map) => {
                for key in map.keys() {
                    if let Some(second) = second
                        && let Some(value) = map.find(&key)?
                    {
                        self.slots[second.0] = Local::Ready(value);
                    }
                    self.slots[variable.0] = Local::Ready(Ok(key));
                    if !step(self)? {
                        break;
                    }
                }
            }
            other => return Err(not_iterable(other, second.is_some())),
        }
        Ok(())
    }

    /// One round; false if the condition ended the fold. A failing step does not end it: a later
    /// one may still decide the result.
    fn fold_step(&mut self, fold: &'a Fold) -> Result<bool, EvalError> {
        match self.eval(&fold.condition) {
            Ok(Value::Bool(false)) => return Ok(false),
            Err(error) if error.is_over_budget() => return Err(error),
            _ => {}
        }
        let value = self.eval(&fold.step);
        if let Err(error) = &value
            && error.is_over_budget()
        {
            return Err(error.clone());
        }
        self.slots[fold.accumulator.0] = Local::Ready(value);
        Ok(true)
    }

    /// `accumulator + [element]`: charged as written, but without making the lists.
    pub(super) fn append(&mut self, slot: Slot, element: &'a Node) -> Outcome<'a> {
        // Resolving makes sure that a pending accumulator is evaluated.
        if matches!(self.slots[slot.0], Local::Pending(_)) {
            let _ = self.local(slot);
        }
        self.charge(1)?;
        let element = self.eval(element);
        if let Err(error) = &element
            && error.is_over_budget()
        {
            return element;
        }
        self.charge(LIST_COST + 1)?;
        let accumulated = std::mem::replace(&mut self.slots[slot.0], Local::Empty);
        let Local::Ready(accumulated) = accumulated else {
            return Err(EvalError::failed("no such attribute(s): @result"));
        };
        match (accumulated?, element?) {
            (Value::List(mut list), element) => {
                list.push(element)?;
                Ok(Value::List(list))
            }
            _ => Err(EvalError::no_such_overload()),
        }
    }

    /// `cel.@mapInsert(accumulator, key, value)`.
    pub(super) fn insert(&mut self, slot: Slot, key: &'a Node, value: &'a Node) -> Outcome<'a> {
        if matches!(self.slots[slot.0], Local::Pending(_)) {
            let _ = self.local(slot);
        }
        self.charge(1)?;
        if let Local::Ready(Err(error)) = &self.slots[slot.0] {
            return Err(error.clone());
        }
        let key = self.eval(key)?;
        let value = self.eval(value);
        if let Err(error) = &value
            && error.is_over_budget()
        {
            return value;
        }
        self.charge(1)?;
        let value = value?;
        match std::mem::replace(&mut self.slots[slot.0], Local::Empty) {
            Local::Ready(Ok(Value::Map(map))) => map.insert(&key, value).map(Value::Map),
            _ => Err(EvalError::no_such_overload()),
        }
    }
}

fn not_iterable(value: &Value<'_>, two_variables: bool) -> EvalError {
    let of = go_type(value);
    EvalError::failed(if two_variables {
        format!("unsupported comprehension range type: {of}")
    } else {
        format!("got '{of}', expected iterable type")
    })
}
