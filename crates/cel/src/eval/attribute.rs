//! Selections: `a.b[c].?d`, and presence tests.

use super::Evaluator;
use crate::declaration::Outcome;
use crate::error::EvalError;
use crate::plan::{Attribute, Node, Qualifier, QualifierKey, Root};
use crate::value::{Map, Text, Value, display};

/// A selected value, or its absence where that is not an error.
type Selected<'a> = Result<Option<Value<'a>>, EvalError>;

impl<'a> Evaluator<'a, '_> {
    pub(super) fn attribute(&mut self, attribute: &'a Attribute) -> Outcome<'a> {
        let result = self.resolve(attribute, false);
        if let Err(error) = &result
            && error.is_over_budget()
        {
            return result;
        }
        // A condition has no cost of its own; everything is in its branches.
        if !matches!(attribute.root, Root::Conditional(_)) {
            self.charge(1)?;
        }
        result
    }

    /// `has(...)`.
    pub(super) fn test(&mut self, attribute: &'a Attribute) -> Outcome<'a> {
        match self.resolve(attribute, true)? {
            Value::Optional(value) => Ok(Value::Bool(value.is_some())),
            other => Ok(other),
        }
    }

    fn resolve(&mut self, attribute: &'a Attribute, test: bool) -> Outcome<'a> {
        let root = match &attribute.root {
            Root::Global(index) => self.globals.value(*index, self.vars)?,
            Root::Local(slot) => self.local(*slot)?,
            Root::Operand(node) => self.eval(node)?,
            Root::Conditional(branches) => self.conditional(branches)?,
        };
        if attribute.qualifiers.is_empty() {
            return Ok(root);
        }
        self.qualify(root, &attribute.qualifiers, test)
    }

    /// A variable as a branch is not charged for being read; cel-go's tracker misses it.
    fn conditional(&mut self, branches: &'a [Node; 3]) -> Outcome<'a> {
        let branch = match self.eval(&branches[0])? {
            Value::Bool(true) => &branches[1],
            Value::Bool(false) => &branches[2],
            _ => return Err(EvalError::no_such_overload()),
        };
        match branch {
            Node::Attribute(attribute) => self.resolve(attribute, false),
            other => self.eval(other),
        }
    }

    fn qualify(&mut self, root: Value<'a>, qualifiers: &'a [Qualifier], test: bool) -> Outcome<'a> {
        let (mut value, mut optional) = match root {
            Value::Optional(None) => return Ok(Value::none()),
            Value::Optional(Some(inner)) => ((*inner).clone(), true),
            other => (other, false),
        };
        for (index, qualifier) in qualifiers.iter().enumerate() {
            optional |= qualifier.optional;
            let last = index + 1 == qualifiers.len();
            let found = self.select(&value, qualifier, optional, test && last)?;
            value = match found {
                Some(found) => found,
                None if optional => return Ok(Value::none()),
                None => return Ok(Value::Bool(false)),
            };
            if test && last && !optional {
                return Ok(Value::Bool(true));
            }
        }
        Ok(if optional { Value::some(value) } else { value })
    }

    /// One selection and its charge. Absence is an error unless `optional` or `test`.
    fn select(
        &mut self,
        value: &Value<'a>,
        qualifier: &'a Qualifier,
        optional: bool,
        test: bool,
    ) -> Selected<'a> {
        let lenient = optional || test;
        let found = match &qualifier.key {
            QualifierKey::Field(name) => select_field(value, name, lenient),
            QualifierKey::Constant(key) => select_key(value, key, lenient),
            QualifierKey::Computed(node) => {
                let key = match node {
                    // An index that is itself a selection is charged once, not twice.
                    Node::Attribute(attribute) => self.resolve(attribute, false),
                    other => self.eval(other),
                };
                key.and_then(|key| {
                    require_key(&key)?;
                    select_key(value, &key, lenient)
                })
            }
        };
        if let Err(error) = &found
            && error.is_over_budget()
        {
            return found;
        }
        let uncharged = optional && !test && matches!(found, Ok(None));
        if !uncharged {
            self.charge(1)?;
        }
        found
    }
}

fn select_field<'a>(value: &Value<'a>, name: &'a str, lenient: bool) -> Selected<'a> {
    match value {
        Value::Map(Map::Json(entries)) => match entries.get(name) {
            Some(json) => Ok(Some(Value::from_json(json))),
            None if lenient => Ok(None),
            None => Err(EvalError::no_such_key(name)),
        },
        _ => select_key(value, &Value::String(Text::Borrowed(name)), lenient),
    }
}

fn select_key<'a>(value: &Value<'a>, key: &Value<'a>, lenient: bool) -> Selected<'a> {
    match value {
        Value::Map(map) => match map.find(key)? {
            Some(found) => found.map(Some),
            None if lenient => Ok(None),
            None => Err(EvalError::no_such_key(display(key))),
        },
        Value::List(list) => {
            let index = list_index(key)?;
            match usize::try_from(index)
                .ok()
                .and_then(|index| list.get(index))
            {
                Some(found) => found.map(Some),
                None if lenient => Ok(None),
                None => Err(EvalError::failed(format!(
                    "index out of bounds: {}",
                    display(key)
                ))),
            }
        }
        _ if lenient => Ok(None),
        _ => Err(EvalError::no_such_key(display(key))),
    }
}

/// Refuses computed keys of types that cannot be one.
fn require_key(key: &Value<'_>) -> Result<(), EvalError> {
    match key {
        Value::String(_) | Value::Int(_) | Value::Uint(_) | Value::Bool(_) | Value::Double(_) => {
            Ok(())
        }
        other => Err(EvalError::failed(format!(
            "invalid qualifier type: {}",
            super::go_type(other)
        ))),
    }
}

/// A list index: any number that is a whole one.
fn list_index(key: &Value<'_>) -> Result<i64, EvalError> {
    let unsupported =
        || EvalError::failed(format!("unsupported index value {} in list", display(key)));
    match key {
        Value::Int(index) => Ok(*index),
        Value::Uint(index) => i64::try_from(*index).map_err(|_| unsupported()),
        Value::Double(index) => {
            #[expect(clippy::cast_possible_truncation, clippy::cast_precision_loss)]
            let (whole, back) = (*index as i64, (*index as i64) as f64);
            #[expect(clippy::float_cmp, reason = "only exact indexes count")]
            (back == *index).then_some(whole).ok_or_else(unsupported)
        }
        other => Err(EvalError::failed(format!(
            "unsupported index type '{}' in list",
            other.type_name()
        ))),
    }
}
