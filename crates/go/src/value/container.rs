//! Lists and maps.

use std::collections::BTreeMap;
use std::sync::Arc;

use parking_lot::RwLock;

use super::{Kind, Named, Text, Type, Value};

/// A slice: its elements never change, so that sharing it needs no lock.
#[derive(Debug, Clone)]
pub struct List {
    element: &'static Type,
    named: Option<&'static Named>,
    is_nil: bool,
    items: Arc<Items>,
}

#[derive(Debug, Default)]
struct Items(Vec<Value>);

impl List {
    /// A slice of elements of a type.
    pub fn new(element: &'static Type, items: Vec<Value>) -> Self {
        Self {
            element,
            named: None,
            is_nil: false,
            items: Arc::new(Items(items)),
        }
    }

    /// A slice that was never made: empty, and null in JSON.
    pub fn nil(element: &'static Type) -> Self {
        Self {
            is_nil: true,
            ..Self::new(element, Vec::new())
        }
    }

    /// The same elements as a type with a name.
    #[must_use]
    pub fn with_name(self, named: &'static Named) -> Self {
        Self {
            named: Some(named),
            ..self
        }
    }

    /// The type of the elements.
    pub const fn element(&self) -> &'static Type {
        self.element
    }

    /// The name of its type, if it has one.
    pub const fn named(&self) -> Option<&'static Named> {
        self.named
    }

    /// The type of the list.
    pub const fn type_of(&self) -> Type {
        match self.named {
            Some(named) => Type::Named(named, Kind::Slice),
            None => Type::List(self.element),
        }
    }

    /// Whether it was never made.
    pub const fn is_nil(&self) -> bool {
        self.is_nil
    }

    /// The elements.
    pub fn items(&self) -> &[Value] {
        &self.items.0
    }

    /// Iterates over the elements.
    pub fn iter(&self) -> std::slice::Iter<'_, Value> {
        self.items.0.iter()
    }

    /// The number of elements.
    pub fn len(&self) -> usize {
        self.items.0.len()
    }

    /// Whether it has no elements.
    pub fn is_empty(&self) -> bool {
        self.items.0.is_empty()
    }
}

impl<'a> IntoIterator for &'a List {
    type Item = &'a Value;
    type IntoIter = std::slice::Iter<'a, Value>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

/// The entries of a map at one moment, in the order of their keys.
pub type Entries = Arc<BTreeMap<Text, Value>>;

/// A map from strings, shared: a change is seen by everybody who holds it.
///
/// Readers take the entries of one moment ([`Map::entries`]) and hold no lock while they use them.
#[derive(Debug, Clone)]
pub struct Map {
    element: &'static Type,
    named: Option<&'static Named>,
    is_nil: bool,
    entries: Arc<Table>,
}

#[derive(Debug, Default)]
struct Table(RwLock<Entries>);

impl Map {
    /// A map to values of a type.
    pub fn new(element: &'static Type, entries: BTreeMap<Text, Value>) -> Self {
        Self {
            element,
            named: None,
            is_nil: false,
            entries: Arc::new(Table(RwLock::new(Arc::new(entries)))),
        }
    }

    /// A map that was never made: empty, and not to be written to.
    pub fn nil(element: &'static Type) -> Self {
        Self {
            is_nil: true,
            ..Self::new(element, BTreeMap::new())
        }
    }

    /// The same map, as a type with a name.
    #[must_use]
    pub fn with_name(self, named: &'static Named) -> Self {
        Self {
            named: Some(named),
            ..self
        }
    }

    /// The same map without a name: what conversion to `map[string]interface {}` gives.
    #[must_use]
    pub fn without_name(self) -> Self {
        Self {
            named: None,
            ..self
        }
    }

    /// The type of the values.
    pub const fn element(&self) -> &'static Type {
        self.element
    }

    /// The name of its type, if it has one.
    pub const fn named(&self) -> Option<&'static Named> {
        self.named
    }

    /// The type of the map.
    pub const fn type_of(&self) -> Type {
        match self.named {
            Some(named) => Type::Named(named, Kind::Map),
            None => Type::Map(self.element),
        }
    }

    /// Whether it was never made.
    pub const fn is_nil(&self) -> bool {
        self.is_nil
    }

    /// Whether both are one map.
    pub fn is_same(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.entries, &other.entries)
    }

    /// Where it is in memory, as `%p` writes it.
    pub(crate) fn address(&self) -> String {
        format!("{:p}", Arc::as_ptr(&self.entries))
    }

    /// The entries as they are now.
    pub fn entries(&self) -> Entries {
        self.entries.0.read().clone()
    }

    /// The value of a key.
    pub fn get(&self, key: &[u8]) -> Option<Value> {
        self.entries.0.read().get(key).cloned()
    }

    /// Whether there is such a key.
    pub fn contains(&self, key: &[u8]) -> bool {
        self.entries.0.read().contains_key(key)
    }

    /// Sets the value of a key, for everybody who holds the map.
    pub fn set(&self, key: Text, value: Value) {
        let replaced = Arc::make_mut(&mut *self.entries.0.write()).insert(key, value);
        // Only now, without the lock: what is dropped may hold this very map.
        drop(replaced);
    }

    /// Takes a key out, for everybody who holds the map.
    pub fn remove(&self, key: &[u8]) {
        let removed = Arc::make_mut(&mut *self.entries.0.write()).remove(key);
        drop(removed);
    }

    /// Takes all entries out, for everybody who holds the map: this breaks cycles.
    pub fn clear(&self) {
        let entries = std::mem::take(&mut *self.entries.0.write());
        drop(entries);
    }

    /// The number of entries.
    pub fn len(&self) -> usize {
        self.entries.0.read().len()
    }

    /// Whether it has no entries.
    pub fn is_empty(&self) -> bool {
        self.entries.0.read().is_empty()
    }
}

// Values can be nested deeper than the stack is: they are dropped in a loop.

impl Drop for Items {
    fn drop(&mut self) {
        if self.0.iter().any(is_container) {
            drop_all(std::mem::take(&mut self.0));
        }
    }
}

impl Drop for Table {
    fn drop(&mut self) {
        let entries = std::mem::take(self.0.get_mut());
        if let Some(entries) = Arc::into_inner(entries)
            && entries.values().any(is_container)
        {
            drop_all(entries.into_values().collect());
        }
    }
}

const fn is_container(value: &Value) -> bool {
    matches!(value, Value::List(_) | Value::Map(_))
}

fn drop_all(mut waiting: Vec<Value>) {
    while let Some(value) = waiting.pop() {
        match value {
            Value::List(list) => {
                if let Some(mut items) = Arc::into_inner(list.items) {
                    waiting.append(&mut items.0);
                }
            }
            Value::Map(map) => {
                if let Some(mut table) = Arc::into_inner(map.entries)
                    && let Some(entries) = Arc::into_inner(std::mem::take(table.0.get_mut()))
                {
                    waiting.extend(entries.into_values());
                }
            }
            _ => {}
        }
    }
}
