//! Objects that many others have a copy of, kept in memory once.
//!
//! Each revision of an application has its definitions, and thousands of revisions have the same ones. A [`SharedObject`] that is read is
//! compared with those that are in memory, and is one of them if it is equal.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::hash::{BuildHasher as _, RandomState};
use std::ops::Deref;
use std::sync::{Arc, LazyLock, Mutex, PoisonError, Weak};

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Value;

/// Objects in memory by their hash. Of two with one hash the later is not shared.
static KNOWN: LazyLock<Mutex<Table>> = LazyLock::new(Mutex::default);

#[derive(Default)]
struct Table {
    hasher: RandomState,
    objects: HashMap<u64, Weak<Value>>,
    /// Number of entries at which unused ones are dropped.
    limit: usize,
}

/// An object that may be shared with others in memory.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SharedObject(Arc<Value>);

impl SharedObject {
    /// Shares an object with those that are equal.
    pub fn new(value: Value) -> Self {
        let mut table = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
        let hash = table.hasher.hash_one(&value);
        if table.objects.len() >= table.limit {
            table.objects.retain(|_, known| known.strong_count() > 0);
            table.limit = (table.objects.len() * 2).max(64);
        }
        match table.objects.entry(hash) {
            Entry::Occupied(mut entry) => match entry.get().upgrade() {
                Some(known) if *known == value => Self(known),
                Some(_) => Self(Arc::new(value)),
                None => {
                    let value = Arc::new(value);
                    entry.insert(Arc::downgrade(&value));
                    Self(value)
                }
            },
            Entry::Vacant(entry) => {
                let value = Arc::new(value);
                entry.insert(Arc::downgrade(&value));
                Self(value)
            }
        }
    }

    /// Returns true if both are the same object in memory.
    pub fn is_shared_with(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl Deref for SharedObject {
    type Target = Value;

    fn deref(&self) -> &Value {
        &self.0
    }
}

impl Serialize for SharedObject {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.0.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for SharedObject {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Value::deserialize(deserializer).map(Self::new)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn equal_objects_are_kept_once() {
        let read = |text: &str| serde_json::from_str::<SharedObject>(text).unwrap();
        let first = read(r#"{"kind": "TraitDefinition", "spec": {"a": 1}}"#);
        let second = read(r#"{"spec": {"a": 1}, "kind": "TraitDefinition"}"#);
        let third = read(r#"{"kind": "TraitDefinition", "spec": {"a": 2}}"#);
        assert!(first.is_shared_with(&second));
        assert!(!first.is_shared_with(&third));
        assert_eq!(
            serde_json::to_value(&third).unwrap(),
            json!({"kind": "TraitDefinition", "spec": {"a": 2}})
        );
    }
}
