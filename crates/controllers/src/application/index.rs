//! Which objects belong to which application, so that nobody has to go through all of them.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use bellwether_runtime::{Cache, ObjectKey, Subscription};
use parking_lot::Mutex;

/// Keys of objects by the application that they belong to.
type Keys = HashMap<ObjectKey, BTreeSet<ObjectKey>>;

/// The objects of a kind by application.
pub(super) struct Owned<K> {
    cache: Cache<K>,
    keys: Arc<Mutex<Keys>>,
    _subscription: Subscription,
}

impl<K: Send + Sync + 'static> Owned<K> {
    /// Follows a cache. `owner` says to which application an object belongs.
    pub(super) fn new(cache: Cache<K>, owner: fn(&K) -> Option<ObjectKey>) -> Self {
        let keys: Arc<Mutex<Keys>> = Arc::default();
        let own = Arc::clone(&keys);
        let subscription = cache.subscribe_until_dropped(move |change| {
            let mut keys = own.lock();
            if let Some(before) = change.old.and_then(|object| owner(object))
                && let Some(of_owner) = keys.get_mut(&before)
            {
                of_owner.remove(change.key);
                if of_owner.is_empty() {
                    keys.remove(&before);
                }
            }
            if let Some(now) = change.new.and_then(|object| owner(object)) {
                keys.entry(now).or_default().insert(change.key.clone());
            }
        });
        Self {
            cache,
            keys,
            _subscription: subscription,
        }
    }

    /// The objects of an application, by name.
    pub(super) fn of(&self, application: &ObjectKey) -> Vec<Arc<K>> {
        let keys = self.keys.lock().get(application).cloned();
        let keys = keys.unwrap_or_default();
        keys.iter().filter_map(|key| self.cache.get(key)).collect()
    }

    /// All objects of the kind.
    pub(super) fn cache(&self) -> &Cache<K> {
        &self.cache
    }
}
