//! A cache that also knows what was just written: the echo of a write is no news.

use std::collections::HashMap;
use std::fmt::Debug;
use std::sync::Arc;

use bellwether_runtime::{Cache, Change, ObjectKey};
use kube::Resource;
use parking_lot::Mutex;
use serde::de::DeserializeOwned;

/// Objects of one kind as last seen or written. Cheap to clone.
pub(super) struct Latest<K> {
    cache: Cache<K>,
    written: Arc<Mutex<HashMap<ObjectKey, Arc<K>>>>,
}

impl<K> Clone for Latest<K> {
    fn clone(&self) -> Self {
        Self {
            cache: self.cache.clone(),
            written: Arc::clone(&self.written),
        }
    }
}

impl<K> Latest<K>
where
    K: Resource + Clone + DeserializeOwned + Debug + Send + Sync + 'static,
{
    pub(super) fn new(cache: Cache<K>) -> Self {
        Self {
            cache,
            written: Arc::default(),
        }
    }

    /// Has changes told that somebody else made.
    pub(super) fn listen(&self, on_news: impl Fn(&Change<'_, K>) + Send + 'static) {
        let written = Arc::clone(&self.written);
        self.cache.subscribe(move |change| {
            if is_news(&written, &change) {
                on_news(&change);
            }
        });
    }

    pub(super) async fn ready(&self) {
        self.cache.ready().await;
    }

    /// The object of that name, in its latest state that is known.
    pub(super) fn get(&self, key: &ObjectKey) -> Option<Arc<K>> {
        let seen = self.cache.get(key);
        let written = self.written.lock().get(key).cloned();
        match (seen, written) {
            (Some(seen), Some(written)) if version(&*seen) >= version(&*written) => Some(seen),
            (seen, written) => written.or(seen),
        }
    }

    pub(super) fn list(&self) -> Vec<Arc<K>> {
        self.cache.list()
    }

    pub(super) fn in_namespace(&self, namespace: &str) -> Vec<Arc<K>> {
        self.cache.in_namespace(namespace)
    }

    /// Notes the answer to a write.
    pub(super) fn wrote(&self, mut object: K) -> Arc<K> {
        // Nobody asks, and they are larger than all else.
        object.meta_mut().managed_fields = None;
        let object = Arc::new(object);
        let key = ObjectKey::of(&*object);
        // Held until it is put in, lest an end that is heard of meanwhile be taken for an old one.
        let mut written = self.written.lock();
        let is_known = match self.cache.get(&key) {
            Some(seen) => version(&*seen) >= version(&*object),
            // The end of an object may be heard of before the answer to the write that let it go.
            None => is_over(&*object),
        };
        if !is_known {
            written.insert(key, Arc::clone(&object));
        }
        drop(written);
        object
    }

    /// Forgets what was written: the server contradicts it.
    pub(super) fn doubt(&self, key: &ObjectKey) {
        self.written.lock().remove(key);
    }
}

/// Whether a change is not the echo of a write; what was written is forgotten once it is seen.
fn is_news<K: Resource>(
    written: &Mutex<HashMap<ObjectKey, Arc<K>>>,
    change: &Change<'_, K>,
) -> bool {
    let mut written = written.lock();
    let Some(own) = written.get(change.key) else {
        return true;
    };
    match change.new {
        Some(new) if version(&**new) < version(&**own) => false,
        Some(new) => {
            let is_echo = version(&**new) == version(&**own);
            written.remove(change.key);
            !is_echo
        }
        None => {
            let is_same = change
                .old
                .is_none_or(|old| old.meta().uid == own.meta().uid);
            if is_same {
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

fn version<K: Resource>(object: &K) -> u64 {
    let text = object.meta().resource_version.as_deref();
    text.and_then(|text| text.parse().ok()).unwrap_or_default()
}
