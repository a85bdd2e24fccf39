//! The objects of one kind, kept in memory and true by a watch.

use std::collections::BTreeMap;
use std::fmt::{self, Debug};
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};
use std::sync::{Arc, Weak};

use kube::{Api, Resource};
use parking_lot::{Mutex, RwLock};
use serde::de::DeserializeOwned;
use tokio::sync::Notify;
use tokio::task::AbortHandle;

use crate::cluster_handle::ClusterHandle;
use crate::feed::{FeedEvent, Selection, follow};
use crate::key::ObjectKey;
use crate::supervise::spawn_vital;

/// The objects of one kind as last seen. Cheap to clone; the watch ends with the last clone.
///
/// It lags behind the server by milliseconds: who writes what they decided by it says which
/// `resourceVersion` they saw. `managedFields` are left out.
pub struct Cache<K> {
    objects: Arc<RwLock<BTreeMap<ObjectKey, Arc<K>>>>,
    listeners: Arc<Mutex<Listeners<K>>>,
    progress: Arc<Progress>,
    watch: Arc<EndOnDrop>,
}

/// What a cache keeps of an object: all of it, or only what somebody asks for.
pub trait CacheEntry: Sized + Send + Sync + 'static {
    /// Reads the text of an object as the server sent it.
    fn read(text: &str) -> Result<Self, serde_json::Error>;

    /// Which object it is.
    fn key(&self) -> ObjectKey;

    /// Whether both are one state of one object.
    fn is_same(&self, other: &Self) -> bool;
}

impl<K: Resource + DeserializeOwned + Send + Sync + 'static> CacheEntry for K {
    fn read(text: &str) -> Result<Self, serde_json::Error> {
        let mut object: Self = serde_json::from_str(text)?;
        // They are larger than all else of most objects, and no controller asks for them.
        object.meta_mut().managed_fields = None;
        Ok(object)
    }

    fn key(&self) -> ObjectKey {
        ObjectKey::of(self)
    }

    fn is_same(&self, other: &Self) -> bool {
        let (one, other) = (self.meta(), other.meta());
        one.uid == other.uid
            && one.resource_version.is_some()
            && one.resource_version == other.resource_version
    }
}

/// How far a cache has come.
#[derive(Default)]
struct Progress {
    reached: AtomicU8,
    /// The server cannot be followed at present.
    is_interrupted: AtomicBool,
    changed: Notify,
}

/// The server has answered something.
const ANSWERED: u8 = 1;
/// Everything that there was at the beginning has been seen.
const READY: u8 = 2;

impl Progress {
    fn reach(&self, stage: u8) {
        if self.reached.fetch_max(stage, Ordering::AcqRel) < stage {
            self.changed.notify_waiters();
        }
    }

    fn has_reached(&self, stage: u8) -> bool {
        self.reached.load(Ordering::Acquire) >= stage
    }

    fn set_interrupted(&self, is_interrupted: bool) {
        if self.is_interrupted.swap(is_interrupted, Ordering::AcqRel) != is_interrupted {
            self.changed.notify_waiters();
        }
    }

    async fn until(&self, stage: u8) {
        self.until_holds(|| self.has_reached(stage)).await;
    }

    async fn until_holds(&self, holds: impl Fn() -> bool) {
        loop {
            // Set up before the check, so that what happens in between still wakes.
            let changed = self.changed.notified();
            if holds() {
                return;
            }
            changed.await;
        }
    }
}

/// A listener, which is called for every change.
type Listener<K> = Box<dyn Fn(Change<'_, K>) + Send>;

/// All listeners, by number, in the order in which they subscribed.
struct Listeners<K> {
    all: BTreeMap<u64, Listener<K>>,
    next: u64,
}

impl<K> Listeners<K> {
    fn add(&mut self, listener: Listener<K>) -> u64 {
        let number = self.next;
        self.next += 1;
        self.all.insert(number, listener);
        number
    }

    fn notify(&self, key: &ObjectKey, old: Option<&Arc<K>>, new: Option<&Arc<K>>) {
        for listener in self.all.values() {
            listener(Change { key, old, new });
        }
    }
}

/// Ends when it is dropped: its listener is not told of further changes. Listeners must not drop it
/// themselves.
pub struct Subscription {
    end: Option<Box<dyn FnOnce() + Send + Sync>>,
}

impl Drop for Subscription {
    fn drop(&mut self) {
        if let Some(end) = self.end.take() {
            end();
        }
    }
}

impl Debug for Subscription {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Subscription")
    }
}

/// Something that happened to an object, as a cache tells it after it has happened in the cache.
#[derive(Debug)]
pub struct Change<'a, K> {
    /// Whose change it is.
    pub key: &'a ObjectKey,
    /// The object before; nothing if it is new.
    pub old: Option<&'a Arc<K>>,
    /// The object now; nothing if it is gone.
    pub new: Option<&'a Arc<K>>,
}

struct EndOnDrop(AbortHandle);

impl Drop for EndOnDrop {
    fn drop(&mut self) {
        self.0.abort();
    }
}

impl<K> Cache<K>
where
    K: Resource + Clone + DeserializeOwned + Debug + Send + Sync + 'static,
{
    /// Begins to watch, and tells every change in the order in which it happened.
    ///
    /// A watch that breaks is taken up again for as long as it takes; what happened meanwhile is
    /// told then. Must be called within a tokio runtime.
    pub fn start(
        api: Api<K>,
        selection: Selection,
        on_change: impl Fn(Change<'_, K>) + Send + 'static,
    ) -> Self {
        let path = api.resource_url().to_owned();
        Self::follow(api.into_client(), path, selection, on_change)
    }
}

impl<K: CacheEntry> Cache<K> {
    /// The same for the objects at a path such as `/api/v1/nodes`, of which it keeps what the type
    /// asks for.
    pub fn follow(
        cluster: impl Into<ClusterHandle>,
        path: String,
        selection: Selection,
        on_change: impl Fn(Change<'_, K>) + Send + 'static,
    ) -> Self {
        let objects = Arc::new(RwLock::new(BTreeMap::new()));
        let mut listeners = Listeners {
            all: BTreeMap::new(),
            next: 0,
        };
        listeners.add(Box::new(on_change));
        let listeners = Arc::new(Mutex::new(listeners));
        let progress: Arc<Progress> = Arc::default();
        let mut follower = Follower {
            objects: Arc::clone(&objects),
            listing: BTreeMap::new(),
            progress: Arc::clone(&progress),
            listeners: Arc::clone(&listeners),
        };
        let cluster = cluster.into();
        let name = format!("watch of {path}");
        let task = spawn_vital(name, async move {
            follow(cluster, &path, &selection, &mut |event| {
                follower.handle_event(&event);
            })
            .await;
        });
        Self {
            objects,
            listeners,
            progress,
            watch: Arc::new(EndOnDrop(task.abort_handle())),
        }
    }
}

impl<K> Cache<K> {
    /// Calls a listener for every change from now on; first, as if they were new, for all objects that
    /// there are. Listeners must not call this themselves.
    pub fn subscribe(&self, on_change: impl Fn(Change<'_, K>) + Send + 'static) {
        self.add_listener(Box::new(on_change));
    }

    /// Does the same until the returned value is dropped. A listener that holds a clone of the cache
    /// would keep its watch running otherwise.
    #[must_use]
    pub fn subscribe_until_dropped(
        &self,
        on_change: impl Fn(Change<'_, K>) + Send + 'static,
    ) -> Subscription
    where
        K: Send + Sync + 'static,
    {
        let number = self.add_listener(Box::new(on_change));
        let listeners: Weak<Mutex<Listeners<K>>> = Arc::downgrade(&self.listeners);
        let end = move || {
            if let Some(listeners) = listeners.upgrade() {
                // Dropped after the lock: what it holds may be the last clone of a cache.
                let removed = listeners.lock().all.remove(&number);
                drop(removed);
            }
        };
        Subscription {
            end: Some(Box::new(end)),
        }
    }

    fn add_listener(&self, on_change: Listener<K>) -> u64 {
        let mut listeners = self.listeners.lock();
        let objects = self.objects.read().clone();
        for (key, object) in &objects {
            on_change(Change {
                key,
                old: None,
                new: Some(object),
            });
        }
        listeners.add(on_change)
    }

    /// Waits until everything that there was at the beginning has been seen and told.
    pub async fn ready(&self) {
        self.progress.until(READY).await;
    }

    /// Waits until the server has answered at all, be it that it has no such kind.
    pub async fn answered(&self) {
        self.progress.until(ANSWERED).await;
    }

    /// Whether the server has answered anything, be it that there is nothing to see.
    pub fn has_answered(&self) -> bool {
        self.progress.has_reached(ANSWERED)
    }

    /// Whether everything that there was at the beginning has been seen.
    pub fn is_ready(&self) -> bool {
        self.progress.has_reached(READY)
    }

    /// True while the server cannot be followed: what the cache has may be out of date.
    pub fn is_interrupted(&self) -> bool {
        self.progress.is_interrupted.load(Ordering::Acquire)
    }

    /// Waits until [`is_interrupted`](Self::is_interrupted) has that value.
    pub async fn until_interrupted(&self, is_interrupted: bool) {
        self.progress
            .until_holds(|| self.is_interrupted() == is_interrupted)
            .await;
    }

    /// The object of that name.
    pub fn get(&self, key: &ObjectKey) -> Option<Arc<K>> {
        self.objects.read().get(key).cloned()
    }

    /// All objects, in the order of their keys.
    pub fn list(&self) -> Vec<Arc<K>> {
        self.objects.read().values().cloned().collect()
    }

    /// The objects of one namespace, in the order of their names.
    pub fn in_namespace(&self, namespace: &str) -> Vec<Arc<K>> {
        let objects = self.objects.read();
        objects
            .range(ObjectKey::new(namespace, "")..)
            .take_while(|(key, _)| &*key.namespace == namespace)
            .map(|(_, object)| Arc::clone(object))
            .collect()
    }

    /// The keys of all objects, in order.
    pub fn keys(&self) -> Vec<ObjectKey> {
        self.objects.read().keys().cloned().collect()
    }

    /// The keys of the objects of one namespace, in the order of their names.
    pub fn keys_in(&self, namespace: &str) -> Vec<ObjectKey> {
        let objects = self.objects.read();
        let keys = objects
            .range(ObjectKey::new(namespace, "")..)
            .map(|(key, _)| key);
        keys.take_while(|key| &*key.namespace == namespace)
            .cloned()
            .collect()
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.objects.read().len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.objects.read().is_empty()
    }
}

impl<K> Clone for Cache<K> {
    fn clone(&self) -> Self {
        Self {
            objects: Arc::clone(&self.objects),
            listeners: Arc::clone(&self.listeners),
            progress: Arc::clone(&self.progress),
            watch: Arc::clone(&self.watch),
        }
    }
}

impl<K> Debug for Cache<K> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Cache")
            .field("objects", &self.len())
            .field("ready", &self.is_ready())
            .finish()
    }
}

/// Carries the events of a watch over to the cache.
struct Follower<K> {
    objects: Arc<RwLock<BTreeMap<ObjectKey, Arc<K>>>>,
    /// Locked before anything changes until all listeners were called, so that a new listener neither
    /// misses a change nor gets it twice.
    listeners: Arc<Mutex<Listeners<K>>>,
    /// What has been seen of a list that is being read.
    listing: BTreeMap<ObjectKey, Arc<K>>,
    progress: Arc<Progress>,
}

impl<K: CacheEntry> Follower<K> {
    fn handle_event(&mut self, event: &FeedEvent<'_>) {
        match event {
            FeedEvent::ListStarted => self.listing.clear(),
            FeedEvent::Listed(text) => {
                if let Some(object) = read::<K>(text) {
                    self.listing.insert(object.key(), Arc::new(object));
                }
            }
            FeedEvent::ListDone(_) => self.replace_all(),
            FeedEvent::Applied(text) => {
                if let Some(object) = read::<K>(text) {
                    self.put(&object.key(), &Arc::new(object));
                }
            }
            FeedEvent::Deleted(text) => {
                if let Some(object) = read::<K>(text) {
                    self.remove(&object.key());
                }
            }
            FeedEvent::Disconnected(_) => {
                self.progress.set_interrupted(true);
                self.progress.reach(ANSWERED);
            }
        }
    }

    fn put(&self, key: &ObjectKey, new: &Arc<K>) {
        let listeners = self.listeners.lock();
        let old = self.objects.write().insert(key.clone(), Arc::clone(new));
        listeners.notify(key, old.as_ref(), Some(new));
    }

    fn remove(&self, key: &ObjectKey) {
        let listeners = self.listeners.lock();
        let old = self.objects.write().remove(key);
        if old.is_some() {
            listeners.notify(key, old.as_ref(), None);
        }
    }

    /// A list is complete: everything else is gone.
    fn replace_all(&mut self) {
        let listeners = self.listeners.lock();
        let new = std::mem::take(&mut self.listing);
        let old = std::mem::replace(&mut *self.objects.write(), new.clone());
        for (key, gone) in old.iter().filter(|(key, _)| !new.contains_key(*key)) {
            listeners.notify(key, Some(gone), None);
        }
        for (key, object) in &new {
            let before = old.get(key);
            if before.is_none_or(|before| !before.is_same(object)) {
                listeners.notify(key, before, Some(object));
            }
        }
        self.progress.set_interrupted(false);
        self.progress.reach(READY);
    }
}

/// The object that a text says. One that cannot be read is left out, and stops none of the others.
fn read<K: CacheEntry>(text: &str) -> Option<K> {
    match K::read(text) {
        Ok(object) => Some(object),
        Err(error) => {
            tracing::warn!(%error, "an object is ignored, since it cannot be read");
            None
        }
    }
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::core::v1::ConfigMap;

    use super::*;

    #[test]
    fn an_object_that_cannot_be_read_is_left_out() {
        assert!(read::<ConfigMap>(r#"{"metadata": {"name": "a"}}"#).is_some());
        assert!(read::<ConfigMap>(r#"{"metadata": {"name": 1}}"#).is_none());
    }

    #[test]
    fn managed_fields_are_left_out() {
        let text = r#"{"metadata": {"name": "a", "managedFields": [{"manager": "b"}]}}"#;
        let object: ConfigMap = read(text).unwrap();
        assert_eq!(object.metadata.managed_fields, None);
    }
}
