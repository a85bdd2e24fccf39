//! Following one kind: what a feed reports of it becomes known.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};
use std::fmt::Debug;
use std::sync::Arc;

use bellwether_apply::ResourceType;
use serde::Deserialize;

use super::{Entry, Kind, KindState, Kinds, Name, Snapshot, Watch};
use crate::feed::{FeedError, FeedEvent, Selection, follow};
use crate::objects::{Objects, collection};
use crate::queue::Queue;

/// Follows one kind.
pub(super) struct Follower<K> {
    pub(super) objects: Objects,
    pub(super) queue: Queue<K>,
    pub(super) kinds: Kinds<K>,
    pub(super) kind: Kind,
    pub(super) resource: Arc<ResourceType>,
    pub(super) listing: Listing,
}

/// A list that is being read.
#[derive(Default)]
pub(super) struct Listing {
    /// What was of interest when it began. What becomes so only later is looked at by whom it
    /// concerns.
    wanted: HashSet<Name>,
    /// What of that it has.
    seen: HashMap<Name, (u64, Box<str>)>,
}

/// What is read of an object to know which one it is.
#[derive(Deserialize)]
struct Head<'a> {
    #[serde(borrow)]
    metadata: Metadata<'a>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Metadata<'a> {
    #[serde(borrow, default)]
    namespace: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    name: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    resource_version: Option<Cow<'a, str>>,
}

impl Metadata<'_> {
    fn key(&self) -> Name {
        let text = |field: &Option<Cow<'_, str>>| field.as_deref().unwrap_or_default().to_owned();
        (text(&self.namespace), text(&self.name))
    }

    fn version(&self) -> u64 {
        let text = self.resource_version.as_deref();
        text.and_then(|text| text.parse().ok()).unwrap_or_default()
    }
}

/// Which object a text is, and its version.
fn identify(text: &str) -> Option<(Name, u64)> {
    let head: Head<'_> = serde_json::from_str(text).ok()?;
    Some((head.metadata.key(), head.metadata.version()))
}

impl<K: Clone + Ord + Debug + Send + Sync + 'static> Follower<K> {
    /// Follows until it is cancelled.
    pub(super) async fn run(mut self) {
        let cluster = self.objects.cluster().clone();
        let path = collection(&self.resource, "").url_path;
        follow(cluster, &path, &Selection::default(), &mut |event| {
            self.handle(&event);
        })
        .await;
    }

    fn handle(&mut self, event: &FeedEvent<'_>) {
        match event {
            FeedEvent::ListStarted => {
                self.listing = Listing {
                    wanted: self.of_interest(),
                    seen: HashMap::new(),
                };
            }
            FeedEvent::Listed(text) => {
                if let Some((key, version)) = identify(text)
                    && self.listing.wanted.contains(&key)
                {
                    let seen = &mut self.listing.seen;
                    seen.insert(key, (version, (*text).into()));
                }
            }
            FeedEvent::ListDone(version) => self.take_list(version.parse().unwrap_or_default()),
            FeedEvent::Applied(text) => {
                if let Some((key, version)) = identify(text) {
                    self.with_state(|state| state.see(&key, version, text));
                }
            }
            FeedEvent::Deleted(text) => {
                if let Some((key, version)) = identify(text) {
                    self.with_state(|state| state.miss(&key, version));
                }
            }
            FeedEvent::Disconnected(error) => self.interrupted(error),
        }
    }

    /// Nothing is known for certain until the next list.
    fn interrupted(&self, error: &FeedError) {
        let refused = error.is_refusal();
        self.with_watch(|watch| {
            watch.is_current = false;
            watch.is_refused = refused;
            watch.settled.send_if_modified(|settled| {
                std::mem::replace(settled, refused || *settled) != *settled
            });
        });
        if refused {
            self.enqueue_all();
        }
    }

    fn of_interest(&self) -> HashSet<Name> {
        let kinds = self.kinds.lock();
        let state = kinds.get(&self.kind);
        state.map_or_else(HashSet::new, |state| {
            state.objects.keys().cloned().collect()
        })
    }

    fn take_list(&mut self, version: u64) {
        let Listing { wanted, seen } = std::mem::take(&mut self.listing);
        let mut kinds = self.kinds.lock();
        let Some(state) = kinds.get_mut(&self.kind) else {
            return;
        };
        if let Some(watch) = &mut state.watch {
            watch.is_current = true;
            watch.is_refused = false;
            watch.settled.send_replace(true);
        }
        for key in &wanted {
            let news = match seen.get(key) {
                Some((version, text)) => state.see(key, *version, text),
                None => state.miss(key, version),
            };
            if let Some(entry) = news {
                self.enqueue(entry);
            }
        }
        // What came to be of interest while the list was read is read by whom it concerns.
        for (key, entry) in &state.objects {
            if matches!(entry.kept, Snapshot::Unknown) && !wanted.contains(key) {
                self.enqueue(entry);
            }
        }
    }

    /// Changes what is known, and enqueues the keys that track it if it changed.
    fn with_state(&self, change: impl FnOnce(&mut KindState<K>) -> Option<&Entry<K>>) {
        let mut kinds = self.kinds.lock();
        if let Some(entry) = kinds.get_mut(&self.kind).and_then(change) {
            self.enqueue(entry);
        }
    }

    fn with_watch(&self, change: impl FnOnce(&mut Watch)) {
        let mut kinds = self.kinds.lock();
        if let Some(watch) = kinds
            .get_mut(&self.kind)
            .and_then(|state| state.watch.as_mut())
        {
            change(watch);
        }
    }

    fn enqueue(&self, entry: &Entry<K>) {
        for key in &entry.keys {
            self.queue.add(key.clone());
        }
    }

    fn enqueue_all(&self) {
        let kinds = self.kinds.lock();
        let objects = kinds.get(&self.kind).map(|state| &state.objects);
        objects
            .into_iter()
            .flat_map(HashMap::values)
            .for_each(|entry| self.enqueue(entry));
    }
}
