//! The resources that the definitions of a cluster add to it.

use std::collections::HashMap;
use std::sync::{Arc, Weak};

use bellwether_store::{Keyspace, Range};

use super::{DefinitionCache, PREFIX};
use crate::object::StoredObject;
use crate::resource::Resource;

/// What was read of the definitions of a cluster, by their keys. A definition that has not been written since is
/// not read again: a cluster with many of them pays for the one that changes.
#[derive(Debug, Default)]
pub(crate) struct Served(HashMap<Arc<str>, Definition>);

/// What was read of one definition.
#[derive(Debug)]
struct Definition {
    /// The version that was read. It is not kept alive, but its address is: no other version has it.
    stored: Weak<StoredObject>,
    resources: Vec<Arc<Resource>>,
}

impl Definition {
    fn is_of(&self, stored: &Arc<StoredObject>) -> bool {
        std::ptr::eq(self.stored.as_ptr(), Arc::as_ptr(stored))
    }
}

impl Served {
    /// Reads the definitions that have changed, and returns the resources of all that are established.
    pub(crate) fn refresh(
        &mut self,
        keyspace: &Keyspace<StoredObject>,
        cache: &DefinitionCache,
    ) -> Vec<Arc<Resource>> {
        let page = keyspace.range(Range::prefix(PREFIX));
        let entries = page.map(|page| page.entries).unwrap_or_default();
        let mut before = std::mem::take(&mut self.0);
        let mut all = Vec::new();
        for entry in entries {
            let known = before.remove(&entry.key);
            let known = known.filter(|known| known.is_of(&entry.value));
            let definition = known.unwrap_or_else(|| Definition {
                resources: cache.resources(&entry.value),
                stored: Arc::downgrade(&entry.value),
            });
            all.extend(definition.resources.iter().cloned());
            self.0.insert(entry.key, definition);
        }
        all
    }
}
