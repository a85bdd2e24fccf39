//! Keys that share an object: what one of them does to it is news to the others.

use std::fmt::Debug;

use bellwether_apply::ObjectId;

use super::{Watches, kind_of, name_of};

impl<K: Clone + Ord + Debug + Send + Sync + 'static> Watches<K> {
    /// Enqueues all keys that track an object, except the one that removed it or created it again: for
    /// that one the watch event of its own write is nothing new.
    pub fn enqueue_others(&self, id: &ObjectId, key: &K) {
        let kinds = self.kinds.lock();
        let entry = kinds
            .get(&kind_of(id))
            .and_then(|state| state.objects.get(&name_of(id)));
        let keys = entry.into_iter().flat_map(|entry| &entry.keys);
        for other in keys.filter(|other| *other != key) {
            self.queue.add(other.clone());
        }
    }
}
