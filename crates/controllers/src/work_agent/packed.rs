//! Objects as text: works and records are many, and looked at rarely. Parsed, they take several
//! times as much.

use std::marker::PhantomData;

use bellwether_api::multicluster::{AppliedWork, Work};
use bellwether_api::work::{AppliedManifestWork, ManifestWork};
use bellwether_runtime::{Kept, ObjectKey};
use kube::Resource;
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::terse::{Likeness, Terse};

/// What can be packed.
pub(super) trait Object:
    Resource<DynamicType = ()> + Clone + Serialize + DeserializeOwned + Send + Sync + 'static
{
    /// Where the texts of its objects meet.
    fn likeness() -> &'static Likeness;
}

macro_rules! objects {
    ($($kind:ty),*) => {
        $(impl Object for $kind {
            fn likeness() -> &'static Likeness {
                static LIKENESS: Likeness = Likeness::new();
                &LIKENESS
            }
        })*
    };
}
objects!(ManifestWork, AppliedManifestWork, Work, AppliedWork);

/// An object without its `managedFields`, as text.
pub(super) struct Packed<K> {
    key: ObjectKey,
    uid: Box<str>,
    version: u64,
    text: Terse,
    kind: PhantomData<fn() -> K>,
}

impl<K> Packed<K> {
    /// Which write of the cluster it is the state after; 0 if nothing is said.
    pub(super) fn version(&self) -> u64 {
        self.version
    }

    /// Whether both are states of one object, and not of two that had the same name.
    pub(super) fn is_same_object(&self, other: &Self) -> bool {
        self.uid == other.uid
    }
}

impl<K: Object> Packed<K> {
    /// Packs an object. There is none that cannot be written as text.
    pub(super) fn of(object: &K) -> Option<Self> {
        Self::pack(object.clone()).ok()
    }

    /// The object, parsed. What was packed can be parsed.
    pub(super) fn open(&self) -> Option<K> {
        serde_json::from_str(&self.text.text()?).ok()
    }

    fn pack(mut object: K) -> Result<Self, serde_json::Error> {
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
            text: Terse::new(&serde_json::to_string(&object)?, K::likeness()),
            kind: PhantomData,
        })
    }
}

impl<K: Object> Kept for Packed<K> {
    fn read(text: &str) -> Result<Self, serde_json::Error> {
        Self::pack(serde_json::from_str(text)?)
    }

    fn key(&self) -> ObjectKey {
        self.key.clone()
    }

    fn is_same(&self, other: &Self) -> bool {
        self.is_same_object(other) && self.version != 0 && self.version == other.version
    }
}
