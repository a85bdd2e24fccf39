//! Folds, which is what every macro over lists and maps becomes.

use super::{Evaluator, Local, go_type};
use crate::cost::LIST_COST;
use crate::declaration::Outcome;
use crate::error::EvalError;
use crate::plan::{Fold, Node, Slot};
use crate::value::{List, Map, Value};

impl<'a> Evaluator<'a, '_> {
    pub(super) fn fold(&mut self, fold: &'a Fold) -> Outcome<'a> {
        let range = self.eval(&fold.range)?;
        self.slots[fold.accumulator.0] = Local::Pending(&fold.init);
        match (&range, fold.second_variable) {
            (Value::List(list), second) => self.fold_list(fold, list, second)?,
            (Value::Map(map), second) => self.fold_map(fold, map, second)?,
            (other, None) => {
                return Err(EvalError::failed(format!(
                    "got '{}', expected iterable type",
                    go_type(other)
                )));
            }
            (other, Some(_)) => {
                return Err(EvalError::failed(format!(
                    "unsupported comprehension range type: {}",
                    go_type(other)
                )));
            }
        }
        self.eval(&fold.result)
    }

    fn fold_list(
        &mut self,
        fold: &'a Fold,
        list: &List<'a>,
        second: Option<Slot>,
    ) -> Result<(), EvalError> {
        for index in 0..list.len() {
            let Some(element) = list.get(index) else {
                break;
            };
            match second {
                None => self.slots[fold.variable.0] = Local::Ready(element),
                Some(second) => {
                    let index = i64::try_from(index).unwrap_or(i64::MAX);
                    self.slots[fold.variable.0] = Local::Ready(Ok(Value::Int(index)));
                    self.slots[second.0] = Local::Ready(element);
                }
            }
            if !self.fold_step(fold)? {
                break;
            }
        }
        Ok(())
    }

    fn fold_map(
        &mut self,
        fold: &'a Fold,
        map: &Map<'a>,
        second: Option<Slot>,
    ) -> Result<(), EvalError> {
        for key in map.keys() {
            if let Some(second) = second
                && let Some(value) = map.find(&key)?
            {
                self.slots[second.0] = Local::Ready(value);
            }
            self.slots[fold.variable.0] = Local::Ready(Ok(key));
            if !self.fold_step(fold)? {
                break;
            }
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
