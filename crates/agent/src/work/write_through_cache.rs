//! A cache that also has what was just written: the watch event of an own write changes nothing.

use std::collections::HashMap;
use std::sync::Arc;

use bellwether_runtime::{Cache, Change, ObjectKey};
use kube::Resource;
use parking_lot::Mutex;

use super::cached_json::{CachedJson, Object};

/// Objects of one kind as last seen or written. Cheap to clone.
pub(super) struct WriteThroughCache<K> {
    cache: Cache<CachedJson<K>>,
    written: Written<K>,
}

/// What was written and not seen since.
type Written<K> = Arc<Mutex<HashMap<ObjectKey, CachedJson<K>>>>;

impl<K> Clone for WriteThroughCache<K> {
    fn clone(&self) -> Self {
        Self {
            cache: self.cache.clone(),
            written: Arc::clone(&self.written),
        }
    }
}

impl<K: Object> WriteThroughCache<K> {
    pub(super) fn new(cache: Cache<CachedJson<K>>) -> Self {
        Self {
            cache,
            written: Arc::default(),
        }
    }

    /// Calls back for each object that somebody else changed.
    pub(super) fn listen(&self, on_news: impl Fn(&ObjectKey) + Send + 'static) {
        let written = Arc::clone(&self.written);
        self.cache.subscribe(move |change| {
            if is_news(&written, &change) {
                on_news(change.key);
            }
        });
    }

    pub(super) async fn ready(&self) {
        self.cache.ready().await;
    }

    /// Waits until the server has answered at all, be it with an error.
    pub(super) async fn answered(&self) {
        self.cache.answered().await;
    }

    /// Whether everything that there was at the beginning has been seen.
    pub(super) fn is_ready(&self) -> bool {
        self.cache.is_ready()
    }

    /// The object of that name, in its latest state that is known.
    pub(super) fn get(&self, key: &ObjectKey) -> Option<K> {
        let seen = self.cache.get(key);
        let written = self.written.lock();
        match (seen, written.get(key)) {
            (Some(seen), Some(written)) if seen.version() < written.version() => written.decode(),
            (Some(seen), _) => {
                drop(written);
                seen.decode()
            }
            (None, written) => written?.decode(),
        }
    }

    pub(super) fn list(&self) -> Vec<K> {
        let all = self.cache.list();
        all.iter()
            .filter_map(|cached_json| cached_json.decode())
            .collect()
    }

    /// What they are called.
    pub(super) fn keys(&self) -> Vec<ObjectKey> {
        self.cache.keys()
    }

    /// What those of a namespace are called.
    pub(super) fn keys_in(&self, namespace: &str) -> Vec<ObjectKey> {
        self.cache.keys_in(namespace)
    }

    /// Notes the answer to a write.
    pub(super) fn record_write(&self, object: &K) {
        let Some(cached_json) = CachedJson::encode(object) else {
            return;
        };
        let key = ObjectKey::of(object);
        // Locked until it is inserted: a deletion that arrives meanwhile would be taken for an older one.
        let mut written = self.written.lock();
        let is_known = match self.cache.get(&key) {
            Some(seen) => seen.version() >= cached_json.version(),
            // The deletion of an object may be seen before the response to the write that caused it.
            None => is_over(object),
        };
        if !is_known {
            written.insert(key, cached_json);
        }
    }

    /// Forgets what was written: the server contradicts it.
    pub(super) fn invalidate(&self, key: &ObjectKey) {
        self.written.lock().remove(key);
    }
}

/// Whether a change is not the echo of a write; what was written is forgotten once it is seen.
fn is_news<K>(
    written: &Mutex<HashMap<ObjectKey, CachedJson<K>>>,
    change: &Change<'_, CachedJson<K>>,
) -> bool {
    let mut written = written.lock();
    let Some(own) = written.get(change.key) else {
        return true;
    };
    match change.new {
        Some(new) if new.version() < own.version() => false,
        Some(new) => {
            let is_echo = new.version() == own.version();
            written.remove(change.key);
            !is_echo
        }
        None => {
            if change.old.is_none_or(|old| old.is_same_object(own)) {
                written.remove(change.key);
            }
            true
        }
    }
}

/// Whether nothing holds an object any more that is to go.
fn is_over<K: Resource>(object: &K) -> bool {
    let metadata = object.meta();
    let finalizers = metadata.finalizers.as_deref().unwrap_or_default();
    metadata.deletion_timestamp.is_some() && finalizers.is_empty()
}
