//! Lists: borrowed JSON, constants of a program, or values made during evaluation.

use std::borrow::Cow;
use std::sync::Arc;

use super::{Value, equal, view};
use crate::error::EvalError;
use crate::schema::{ListDecl, ListType};

/// A list; cheap to clone.
#[derive(Debug, Clone)]
pub struct List<'a> {
    items: Items<'a>,
    /// What the schema says about the elements and about identity among them.
    decl: Option<&'a ListDecl>,
}

#[derive(Debug, Clone)]
enum Items<'a> {
    Json(&'a [serde_json::Value]),
    Constant(&'a [Value<'a>]),
    Shared(Arc<Vec<Value<'a>>>),
}

impl<'a> List<'a> {
    pub(crate) fn json(items: &'a [serde_json::Value]) -> List<'a> {
        List {
            items: Items::Json(items),
            decl: None,
        }
    }

    pub(crate) fn declared(items: &'a [serde_json::Value], decl: &'a ListDecl) -> List<'a> {
        List {
            items: Items::Json(items),
            decl: Some(decl),
        }
    }

    pub(crate) fn constant(items: &'a [Value<'a>]) -> List<'a> {
        List {
            items: Items::Constant(items),
            decl: None,
        }
    }

    /// A constant list, borrowed from the program that holds it.
    pub(crate) fn of_constant(list: &'a List<'static>) -> List<'a> {
        match &list.items {
            Items::Shared(items) => List::constant(items),
            _ => list.clone(),
        }
    }

    pub(crate) fn values(items: Vec<Value<'a>>) -> List<'a> {
        List {
            items: Items::Shared(Arc::new(items)),
            decl: None,
        }
    }

    /// How many elements there are.
    pub fn len(&self) -> usize {
        match &self.items {
            Items::Json(items) => items.len(),
            Items::Constant(items) => items.len(),
            Items::Shared(items) => items.len(),
        }
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The element at `index`. It fails where JSON contradicts its schema.
    pub fn get(&self, index: usize) -> Option<Result<Value<'a>, EvalError>> {
        match &self.items {
            Items::Json(items) => {
                let json = items.get(index)?;
                Some(match self.decl {
                    None => Ok(Value::from_json(json)),
                    Some(decl) => view(json, &decl.items),
                })
            }
            Items::Constant(items) => items.get(index).cloned().map(Ok),
            Items::Shared(items) => items.get(index).cloned().map(Ok),
        }
    }

    /// The elements in order.
    pub fn iter(&self) -> impl Iterator<Item = Result<Value<'a>, EvalError>> + '_ {
        (0..self.len()).filter_map(|index| self.get(index))
    }

    /// All elements, failing on the first that contradicts its schema.
    pub(crate) fn to_vec(&self) -> Result<Cow<'_, [Value<'a>]>, EvalError> {
        match &self.items {
            Items::Constant(items) => Ok(Cow::Borrowed(items)),
            Items::Shared(items) => Ok(Cow::Borrowed(items)),
            Items::Json(_) => self.iter().collect::<Result<_, _>>().map(Cow::Owned),
        }
    }

    /// Appends one element, in place if nobody else holds the list.
    pub(crate) fn push(&mut self, value: Value<'a>) -> Result<(), EvalError> {
        if let Items::Shared(items) = &mut self.items {
            Arc::make_mut(items).push(value);
            return Ok(());
        }
        let mut items = self.to_vec()?.into_owned();
        items.push(value);
        self.items = Items::Shared(Arc::new(items));
        Ok(())
    }

    /// `self + other`. A list declared as a set takes only new elements; one declared as a map
    /// replaces elements with the same key in place.
    pub(crate) fn concat(&self, other: &List<'a>) -> Result<List<'a>, EvalError> {
        let list_type = self.decl.map(|decl| &decl.list_type);
        match list_type {
            None | Some(ListType::Atomic) if self.is_empty() && self.decl.is_none() => {
                return Ok(other.clone());
            }
            None if other.is_empty() => return Ok(self.clone()),
            _ => {}
        }
        let mut items = self.to_vec()?.into_owned();
        for value in other.iter() {
            let value = value?;
            let same = match list_type {
                Some(ListType::Set) => find_equal(&items, &value)?,
                Some(ListType::Map(keys)) => find_same_key(&items, &value, keys)?,
                _ => None,
            };
            match (same, list_type) {
                (Some(index), Some(ListType::Map(_))) => items[index] = value,
                (Some(_), _) => {}
                (None, _) => items.push(value),
            }
        }
        Ok(List {
            items: Items::Shared(Arc::new(items)),
            decl: self.decl,
        })
    }

    /// `self == other`, in any order for lists declared as sets or maps.
    pub(crate) fn equal(&self, other: &List<'_>) -> Result<bool, EvalError> {
        if self.len() != other.len() {
            return Ok(false);
        }
        match self.decl.map(|decl| &decl.list_type) {
            None | Some(ListType::Atomic) => {
                for (left, right) in self.iter().zip(other.iter()) {
                    if !equal(&left?, &right?)? {
                        return Ok(false);
                    }
                }
                Ok(true)
            }
            Some(ListType::Set) => {
                let mine = self.to_vec()?;
                for value in other.iter() {
                    if find_equal(&mine, &value?)?.is_none() {
                        return Ok(false);
                    }
                }
                Ok(true)
            }
            Some(ListType::Map(keys)) => {
                let mine = self.to_vec()?;
                for value in other.iter() {
                    let value = value?;
                    let Some(index) = find_same_key(&mine, &value, keys)? else {
                        return Ok(false);
                    };
                    if !equal(&mine[index], &value)? {
                        return Ok(false);
                    }
                }
                Ok(true)
            }
        }
    }

    /// Whether an element equals `value`.
    pub(crate) fn contains(&self, value: &Value<'_>) -> Result<bool, EvalError> {
        for item in self.iter() {
            if equal(&item?, value)? {
                return Ok(true);
            }
        }
        Ok(false)
    }
}

fn find_equal(items: &[Value<'_>], value: &Value<'_>) -> Result<Option<usize>, EvalError> {
    for (index, item) in items.iter().enumerate() {
        if equal(item, value)? {
            return Ok(Some(index));
        }
    }
    Ok(None)
}

/// The last element with the same values under `keys`, as the later of two wins.
fn find_same_key(
    items: &[Value<'_>],
    value: &Value<'_>,
    keys: &[String],
) -> Result<Option<usize>, EvalError> {
    let Value::Map(value) = value else {
        return Ok(None);
    };
    'items: for (index, item) in items.iter().enumerate().rev() {
        let Value::Map(item) = item else {
            continue;
        };
        for key in keys {
            let same = match (item.get_str(key), value.get_str(key)) {
                (None, None) => true,
                (Some(left), Some(right)) => equal(&left?, &right?)?,
                _ => false,
            };
            if !same {
                continue 'items;
            }
        }
        return Ok(Some(index));
    }
    Ok(None)
}
