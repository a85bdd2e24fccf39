//! Objects cached as JSON text: there are many works and records, and they are rarely read. Parsed, they
//! take several times the memory.

use std::marker::PhantomData;

use bellwether_runtime::{CacheEntry, ObjectKey};
use kube::Resource;
use serde::Serialize;
use serde::de::DeserializeOwned;

/// What can be cached.
pub(super) trait Object:
    Resource<DynamicType = ()> + Clone + Serialize + DeserializeOwned + Send + Sync + 'static
{
}

impl<K> Object for K where
    K: Resource<DynamicType = ()> + Clone + Serialize + DeserializeOwned + Send + Sync + 'static
{
}

/// An object without its `managedFields`, as text.
pub(super) struct CachedJson<K> {
    key: ObjectKey,
    uid: Box<str>,
    version: u64,
    text: Box<str>,
    kind: PhantomData<fn() -> K>,
}

impl<K> CachedJson<K> {
    /// Which write of the cluster it is the state after; 0 if nothing is said.
    pub(super) fn version(&self) -> u64 {
        self.version
    }

    /// Whether both are states of one object, and not of two that had the same name.
    pub(super) fn is_same_object(&self, other: &Self) -> bool {
        self.uid == other.uid
    }
}

impl<K: Object> CachedJson<K> {
    /// The text of an object; `None` if it cannot be serialized, which no kind of ours does.
    pub(super) fn encode(object: &K) -> Option<Self> {
        Self::new(object.clone()).ok()
    }

    /// The object, parsed. What was cached_json can be parsed.
    pub(super) fn decode(&self) -> Option<K> {
        serde_json::from_str(&self.text).ok()
    }

    fn new(mut object: K) -> Result<Self, serde_json::Error> {
        // Nobody asks, and they are larger than all else.
        object.meta_mut().managed_fields = None;
        let metadata = object.meta();
        let version = metadata.resource_version.as_deref();
        Ok(Self {
            key: ObjectKey::of(&object),
            uid: metadata.uid.as_deref().unwrap_or_default().into(),
            version: version
                .and_then(|text| text.parse().ok())
                .unwrap_or_default(),
            text: serde_json::to_string(&object)?.into(),
            kind: PhantomData,
        })
    }
}

impl<K: Object> CacheEntry for CachedJson<K> {
    fn read(text: &str) -> Result<Self, serde_json::Error> {
        Self::new(serde_json::from_str(text)?)
    }

    fn key(&self) -> ObjectKey {
        self.key.clone()
    }

    fn is_same(&self, other: &Self) -> bool {
        self.is_same_object(other) && self.version != 0 && self.version == other.version
    }
}
