//! Lists and maps.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::{Arc, LazyLock};

use parking_lot::RwLock;

use super::{Kind, Named, Text, Type, UintKind, Value};

/// A slice: its elements never change, so that sharing it needs no lock.
#[derive(Debug, Clone)]
pub struct List {
    element: &'static Type,
    named: Option<&'static Named>,
    is_nil: bool,
    items: Arc<Items>,
}

#[derive(Debug)]
enum Items {
    Values(Vec<Value>),
    /// The elements of a `[]byte`, which would take many times the memory as values.
    Bytes(Arc<[u8]>),
}

static BYTE: Type = Type::Uint(UintKind::Uint8);

/// Every byte as a value, so that elements of bytes can be borrowed as those of other lists.
static BYTES: LazyLock<Vec<Value>> = LazyLock::new(|| {
    (0..=u8::MAX)
        .map(|byte| Value::Uint(UintKind::Uint8, u64::from(byte)))
        .collect()
});

impl List {
    /// A slice of elements of a type.
    pub fn new(element: &'static Type, items: Vec<Value>) -> Self {
        Self {
            element,
            named: None,
            is_nil: false,
            items: Arc::new(Items::Values(items)),
        }
    }

    /// A `[]byte`.
    pub fn bytes(bytes: Arc<[u8]>) -> Self {
        Self {
            items: Arc::new(Items::Bytes(bytes)),
            ..Self::new(&BYTE, Vec::new())
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

    /// The elements as a slice; those of a `[]byte` are made for it.
    pub fn items(&self) -> Cow<'_, [Value]> {
        match &*self.items {
            Items::Values(values) => Cow::Borrowed(values),
            Items::Bytes(_) => self.iter().cloned().collect(),
        }
    }

    /// The content of a `[]byte`; nothing for lists of other types.
    pub fn as_bytes(&self) -> Option<Cow<'_, [u8]>> {
        match &*self.items {
            Items::Bytes(bytes) => Some(Cow::Borrowed(bytes)),
            Items::Values(values) if matches!(self.element, Type::Uint(UintKind::Uint8)) => {
                let byte = |value: &Value| match value {
                    Value::Uint(_, number) => u8::try_from(*number).ok(),
                    _ => None,
                };
                Some(values.iter().filter_map(byte).collect())
            }
            Items::Values(_) => None,
        }
    }

    /// An element.
    pub fn get(&self, position: usize) -> Option<&Value> {
        match &*self.items {
            Items::Values(values) => values.get(position),
            Items::Bytes(bytes) => Some(&BYTES[usize::from(*bytes.get(position)?)]),
        }
    }

    /// The elements from one position to another, which have to be in order; what is out of range is
    /// left out.
    #[must_use]
    pub fn slice(&self, from: usize, to: usize) -> Self {
        let to = to.min(self.len());
        let from = from.min(to);
        let items = match &*self.items {
            Items::Values(values) => Items::Values(values[from..to].to_vec()),
            Items::Bytes(bytes) => Items::Bytes(Arc::from(&bytes[from..to])),
        };
        Self {
            items: Arc::new(items),
            ..Self::new(self.element, Vec::new())
        }
    }

    /// Where it is in memory, as `%p` writes it.
    pub(crate) fn address(&self) -> usize {
        match &*self.items {
            Items::Values(values) => values.as_ptr().addr(),
            Items::Bytes(bytes) => bytes.as_ptr().addr(),
        }
    }

    /// Iterates over the elements.
    pub fn iter(&self) -> Elements<'_> {
        Elements {
            list: self,
            positions: 0..self.len(),
        }
    }

    /// The number of elements.
    pub fn len(&self) -> usize {
        match &*self.items {
            Items::Values(values) => values.len(),
            Items::Bytes(bytes) => bytes.len(),
        }
    }

    /// Whether it has no elements.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl<'a> IntoIterator for &'a List {
    type Item = &'a Value;
    type IntoIter = Elements<'a>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

/// Iterates over the elements of a list.
#[derive(Debug, Clone)]
pub struct Elements<'a> {
    list: &'a List,
    positions: std::ops::Range<usize>,
}

impl<'a> Iterator for Elements<'a> {
    type Item = &'a Value;

    fn next(&mut self) -> Option<&'a Value> {
        self.list.get(self.positions.next()?)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        self.positions.size_hint()
    }
}

impl DoubleEndedIterator for Elements<'_> {
    fn next_back(&mut self) -> Option<Self::Item> {
        self.list.get(self.positions.next_back()?)
    }
}

impl ExactSizeIterator for Elements<'_> {}

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
    pub(crate) fn address(&self) -> usize {
        Arc::as_ptr(&self.entries).addr()
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
        if let Self::Values(values) = self
            && values.iter().any(is_container)
        {
            drop_all(std::mem::take(values));
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
                if let Some(mut items) = Arc::into_inner(list.items)
                    && let Items::Values(values) = &mut items
                {
                    waiting.append(values);
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
