//! Lists: borrowed JSON, constants of a program, or values made during evaluation.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;

use super::{Key, Value, equal, equal_within, view};
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
    /// Two lists, one after the other: adding lists must not cost what their lengths are, since
    /// it is not charged so.
    Joined(Arc<Joined<'a>>),
}

#[derive(Debug)]
struct Joined<'a> {
    left: List<'a>,
    right: List<'a>,
    length: usize,
    depth: usize,
}

/// Longest list that can come from adding lists; going through a longer one could not be paid
/// for.
const MAX_LENGTH: usize = 1_000_000;

/// Deepest chain of joined lists; deeper ones are copied, to keep access quick.
const MAX_JOIN_DEPTH: usize = 16;

/// Lists up to this length are copied rather than joined.
const COPY_LENGTH: usize = 16;

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
            Items::Joined(joined) => joined.length,
        }
    }

    fn depth(&self) -> usize {
        match &self.items {
            Items::Joined(joined) => joined.depth,
            _ => 0,
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
            Items::Joined(joined) => match index.checked_sub(joined.left.len()) {
                None => joined.left.get(index),
                Some(index) => joined.right.get(index),
            },
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
            Items::Json(_) | Items::Joined(_) => {
                self.iter().collect::<Result<_, _>>().map(Cow::Owned)
            }
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
        let length = self.len().saturating_add(other.len());
        if length > MAX_LENGTH {
            return Err(EvalError::CallLimitExceeded);
        }
        if matches!(list_type, None | Some(ListType::Atomic)) {
            if self.is_empty() && self.decl.is_none() {
                return Ok(other.clone());
            }
            if other.is_empty() {
                return Ok(self.clone());
            }
            let depth = 1 + self.depth().max(other.depth());
            if length > COPY_LENGTH && depth <= MAX_JOIN_DEPTH {
                let joined = Joined {
                    left: self.clone(),
                    right: other.clone(),
                    length,
                    depth,
                };
                return Ok(List {
                    items: Items::Joined(Arc::new(joined)),
                    decl: self.decl,
                });
            }
        }
        let mut items = self.to_vec()?.into_owned();
        let Some(list_type @ (ListType::Set | ListType::Map(_))) = list_type else {
            for value in other.iter() {
                items.push(value?);
            }
            return Ok(List::values(items));
        };
        let mut index = Index::new(&items, list_type);
        for value in other.iter() {
            let value = value?;
            match index.find(&items, &value)? {
                Some(at) if *list_type != ListType::Set => items[at] = value,
                Some(_) => {}
                None => {
                    index.add(&value, items.len());
                    items.push(value);
                }
            }
        }
        Ok(List {
            items: Items::Shared(Arc::new(items)),
            decl: self.decl,
        })
    }

    /// `self == other`, in any order for lists declared as sets or maps.
    pub(crate) fn equal(&self, other: &List<'_>, steps: &mut u32) -> Result<bool, EvalError> {
        if self.len() != other.len() {
            return Ok(false);
        }
        match self.decl.map(|decl| &decl.list_type) {
            None | Some(ListType::Atomic) => {
                for (left, right) in self.iter().zip(other.iter()) {
                    if !equal_within(&left?, &right?, steps)? {
                        return Ok(false);
                    }
                }
                Ok(true)
            }
            Some(list_type) => {
                let mine = self.to_vec()?;
                let index = Index::new(&mine, list_type);
                for value in other.iter() {
                    let value = value?;
                    let Some(at) = index.find(&mine, &value)? else {
                        return Ok(false);
                    };
                    if *list_type != ListType::Set && !equal_within(&mine[at], &value, steps)? {
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

/// What makes an element of a set or map list the one it is.
type Identity<'a> = Vec<Option<Key<'a>>>;

/// Finds elements by identity; large lists are compared in every update of an object.
struct Index<'l, 'a> {
    list_type: &'l ListType,
    known: BTreeMap<Identity<'a>, usize>,
    /// Elements whose identity is no simple key, such as fractions.
    others: Vec<usize>,
}

impl<'l, 'a> Index<'l, 'a> {
    fn new(items: &[Value<'a>], list_type: &'l ListType) -> Index<'l, 'a> {
        let mut index = Index {
            list_type,
            known: BTreeMap::new(),
            others: Vec::new(),
        };
        for (at, item) in items.iter().enumerate() {
            index.add(item, at);
        }
        index
    }

    fn add(&mut self, item: &Value<'a>, at: usize) {
        match identity(item, self.list_type) {
            Some(identity) => {
                // The later of two elements with one identity counts.
                self.known.insert(identity, at);
            }
            None => self.others.push(at),
        }
    }

    fn find(&self, items: &[Value<'a>], value: &Value<'_>) -> Result<Option<usize>, EvalError> {
        if let Some(identity) = identity(value, self.list_type) {
            return Ok(self.lookup(&identity));
        }
        for at in &self.others {
            if equal(&items[*at], value)? {
                return Ok(Some(*at));
            }
        }
        Ok(None)
    }

    /// Shortens the lifetime of the table to that of what is looked up.
    fn lookup<'k>(&self, identity: &Identity<'k>) -> Option<usize>
    where
        'a: 'k,
    {
        let known: &BTreeMap<Identity<'k>, usize> = &self.known;
        known.get(identity).copied()
    }
}

fn identity<'a>(value: &Value<'a>, list_type: &ListType) -> Option<Identity<'a>> {
    match (list_type, value) {
        (ListType::Map(keys), Value::Map(map)) => keys
            .iter()
            .map(|key| match map.get_str(key) {
                None => Some(None),
                Some(Ok(value)) => Key::new(&value).map(Some),
                Some(Err(_)) => None,
            })
            .collect(),
        (ListType::Map(_), _) => None,
        (_, value) => Key::new(value).map(|key| vec![Some(key)]),
    }
}
