//! Which objects belong to which application, so that nobody has to go through all of them.

use std::collections::{BTreeSet, HashMap};
use std::hash::Hash;
use std::sync::Arc;

use bellwether_runtime::{Cache, ObjectKey, Subscription};
use parking_lot::Mutex;

/// Keys of objects by what they are found by.
type Keys<T> = HashMap<T, BTreeSet<ObjectKey>>;

/// The objects of a kind by something that they have.
pub(super) struct Index<K, T> {
    cache: Cache<K>,
    keys: Arc<Mutex<Keys<T>>>,
    _subscription: Subscription,
}

/// The objects of a kind by the application that they belong to.
pub(super) type Owned<K> = Index<K, ObjectKey>;

impl<K, T> Index<K, T>
where
    K: Send + Sync + 'static,
    T: Eq + Hash + Send + 'static,
{
    /// Follows a cache. `found_by` says by what an object is found.
    pub(super) fn new<F, I>(cache: Cache<K>, found_by: F) -> Self
    where
        F: Fn(&K) -> I + Send + Sync + 'static,
        I: IntoIterator<Item = T>,
    {
        let keys: Arc<Mutex<Keys<T>>> = Arc::default();
        let own = Arc::clone(&keys);
        let subscription = cache.subscribe_until_dropped(move |change| {
            let mut keys = own.lock();
            for before in change.old.into_iter().flat_map(|object| found_by(object)) {
                if let Some(known) = keys.get_mut(&before) {
                    known.remove(change.key);
                    if known.is_empty() {
                        keys.remove(&before);
                    }
                }
            }
            for now in change.new.into_iter().flat_map(|object| found_by(object)) {
                keys.entry(now).or_default().insert(change.key.clone());
            }
        });
        Self {
            cache,
            keys,
            _subscription: subscription,
        }
    }

    /// The objects that are found by this, by name.
    pub(super) fn of(&self, found_by: &T) -> Vec<Arc<K>> {
        let keys = self.keys.lock().get(found_by).cloned();
        let keys = keys.unwrap_or_default();
        keys.iter().filter_map(|key| self.cache.get(key)).collect()
    }

    /// All objects of the kind.
    pub(super) fn cache(&self) -> &Cache<K> {
        &self.cache
    }
}
