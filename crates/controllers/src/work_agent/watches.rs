//! What is known of applied objects: one watch a kind, however many objects and works there are.
//!
//! A watch begins when the first object of its kind is of interest. Of all that it sees it keeps
//! only what is of interest, and tells the works that an object concerns when it changes. What the
//! agent writes itself is noted at once, so that the echo of a write is no news.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;
use std::time::Duration;

use bellwether_runtime::Queue;
use bellwether_work::manifest::{ObjectId, ResourceType};
use futures::StreamExt as _;
use kube::api::{ListParams, WatchEvent, WatchParams};
use parking_lot::Mutex;
use serde_json::Value;
use tokio::task::AbortHandle;

use super::WorkKey;
use super::metrics::Metrics;
use super::objects::{Objects, RequestError, collection, version_of};

/// How many objects a page of a list has.
const PAGE: u32 = 500;
/// How long to wait after a watch broke, at first and at most.
const FIRST_RETRY: Duration = Duration::from_millis(100);
const LAST_RETRY: Duration = Duration::from_secs(30);
/// How long the first list of a kind is waited for.
const PATIENCE: Duration = Duration::from_secs(10);
/// After how long a server is asked to end a watch, in seconds.
const WATCH_SECONDS: u32 = 290;

/// What is known of an object.
#[derive(Debug, Clone, Default)]
pub(super) enum Known {
    /// Nothing.
    #[default]
    Unknown,
    /// It is not there.
    Absent,
    /// It is there.
    Present(Arc<Value>),
}

/// Group and name of a kind; the version does not matter.
type Kind = (String, String);

/// The watches of one cluster.
pub(super) struct Watches {
    objects: Objects,
    queue: Queue<WorkKey>,
    metrics: Arc<Metrics>,
    kinds: Arc<Mutex<HashMap<Kind, KindState>>>,
}

#[derive(Default)]
struct KindState {
    /// By namespace and name.
    objects: HashMap<(String, String), Entry>,
    watch: Option<Watch>,
}

struct Watch {
    task: AbortHandle,
    /// Whether a list has been read since the watch last broke for good.
    is_current: bool,
    /// Tells when a list was read, or refused.
    settled: tokio::sync::watch::Sender<bool>,
    /// Whether the server refuses to be watched, so that objects have to be read.
    is_refused: bool,
}

impl Drop for Watch {
    fn drop(&mut self) {
        self.task.abort();
    }
}

#[derive(Default)]
struct Entry {
    known: Known,
    /// The version after which it was seen to be absent, or which was written.
    version: u64,
    /// Works that it concerns.
    works: BTreeSet<WorkKey>,
}

impl Watches {
    pub(super) fn new(objects: Objects, queue: Queue<WorkKey>, metrics: Arc<Metrics>) -> Self {
        Self {
            objects,
            queue,
            metrics,
            kinds: Arc::default(),
        }
    }

    /// Says that an object concerns a work.
    pub(super) fn concern(&self, id: &ObjectId, work: &WorkKey) {
        let mut kinds = self.kinds.lock();
        let entry = kinds
            .entry(kind_of(id))
            .or_default()
            .objects
            .entry(name_of(id))
            .or_default();
        entry.works.insert(work.clone());
    }

    /// Says that an object no longer concerns a work. The last one ends the watch of the kind.
    pub(super) fn unconcern(&self, id: &ObjectId, work: &WorkKey) {
        let mut kinds = self.kinds.lock();
        let Some(state) = kinds.get_mut(&kind_of(id)) else {
            return;
        };
        if let Some(entry) = state.objects.get_mut(&name_of(id)) {
            entry.works.remove(work);
            if entry.works.is_empty() {
                state.objects.remove(&name_of(id));
            }
        }
        if state.objects.is_empty() {
            if state.watch.is_some() {
                self.metrics.watches.add(-1);
            }
            kinds.remove(&kind_of(id));
        }
    }

    /// What is known of an object. Without a watch that is current, nothing is.
    pub(super) fn known(&self, id: &ObjectId) -> Known {
        let kinds = self.kinds.lock();
        let Some(state) = kinds.get(&kind_of(id)) else {
            return Known::Unknown;
        };
        if !state.watch.as_ref().is_some_and(|watch| watch.is_current) {
            return Known::Unknown;
        }
        state
            .objects
            .get(&name_of(id))
            .map_or(Known::Unknown, |entry| entry.known.clone())
    }

    /// Whether objects of a kind have to be read, because the server refuses to be watched.
    pub(super) fn is_refused(&self, id: &ObjectId) -> bool {
        let kinds = self.kinds.lock();
        let watch = kinds
            .get(&kind_of(id))
            .and_then(|state| state.watch.as_ref());
        watch.is_some_and(|watch| watch.is_refused)
    }

    /// Notes a state of an object that was written or read; later ones stay.
    pub(super) fn note(&self, id: &ObjectId, object: &Arc<Value>) {
        let mut kinds = self.kinds.lock();
        let Some(entry) = kinds
            .get_mut(&kind_of(id))
            .and_then(|state| state.objects.get_mut(&name_of(id)))
        else {
            return;
        };
        entry.see(object);
    }

    /// Notes that an object is gone.
    pub(super) fn note_gone(&self, id: &ObjectId) {
        let mut kinds = self.kinds.lock();
        let entry = kinds
            .get_mut(&kind_of(id))
            .and_then(|state| state.objects.get_mut(&name_of(id)));
        if let Some(entry) = entry {
            entry.known = Known::Absent;
        }
    }

    /// Begins to watch a kind, unless it is being watched.
    pub(super) fn ensure(&self, resource: &Arc<ResourceType>) {
        let kind = (resource.group.clone(), resource.plural.clone());
        let mut kinds = self.kinds.lock();
        let state = kinds.entry(kind.clone()).or_default();
        if state.watch.is_some() || state.objects.is_empty() {
            return;
        }
        let follower = Follower {
            objects: self.objects.clone(),
            queue: self.queue.clone(),
            kinds: Arc::clone(&self.kinds),
            kind,
            resource: Arc::clone(resource),
        };
        self.metrics.watches.add(1);
        state.watch = Some(Watch {
            task: tokio::spawn(follower.run()).abort_handle(),
            is_current: false,
            settled: tokio::sync::watch::Sender::new(false),
            is_refused: false,
        });
    }

    /// Waits until a watch has seen everything that there was when it began, but not for ever.
    pub(super) async fn settled(&self, id: &ObjectId) {
        let settled = {
            let kinds = self.kinds.lock();
            let watch = kinds
                .get(&kind_of(id))
                .and_then(|state| state.watch.as_ref());
            watch.map(|watch| watch.settled.subscribe())
        };
        if let Some(mut settled) = settled {
            // In vain means that objects are read one by one.
            let _ = tokio::time::timeout(PATIENCE, settled.wait_for(|settled| *settled)).await;
        }
    }
}

fn kind_of(id: &ObjectId) -> Kind {
    (id.group.clone(), id.resource.clone())
}

fn name_of(id: &ObjectId) -> (String, String) {
    (id.namespace.clone(), id.name.clone())
}

impl Entry {
    /// Takes a state of the object, unless a later one is known. Returns whether it is news.
    fn see(&mut self, object: &Arc<Value>) -> bool {
        let version = version_of(object).unwrap_or_default();
        if version <= self.version && version != 0 {
            return false;
        }
        self.version = version;
        self.known = Known::Present(Arc::clone(object));
        true
    }

    /// Takes note that the object was not there at a version. Returns whether it is news.
    fn miss(&mut self, version: u64) -> bool {
        if version < self.version && version != 0 {
            return false;
        }
        self.version = self.version.max(version);
        !matches!(
            std::mem::replace(&mut self.known, Known::Absent),
            Known::Absent
        )
    }
}

/// Follows one kind.
struct Follower {
    objects: Objects,
    queue: Queue<WorkKey>,
    kinds: Arc<Mutex<HashMap<Kind, KindState>>>,
    kind: Kind,
    resource: Arc<ResourceType>,
}

impl Follower {
    async fn run(self) {
        let mut wait = FIRST_RETRY;
        loop {
            match self.follow(&mut wait).await {
                Ok(()) => wait = FIRST_RETRY,
                Err(error) => {
                    let refused = error.is_forbidden() || error.is_not_found();
                    self.with_watch(|watch| {
                        watch.is_current = false;
                        watch.is_refused = refused;
                        watch.settled.send_if_modified(|settled| {
                            std::mem::replace(settled, refused || *settled) != *settled
                        });
                    });
                    tracing::debug!(kind = ?self.kind, %error, ?wait, "watch interrupted");
                    if refused {
                        self.tell_all();
                    }
                    tokio::time::sleep(wait).await;
                    wait = (wait * 2).min(LAST_RETRY);
                }
            }
        }
    }

    /// Reads a list, and follows from there until something breaks.
    async fn follow(&self, wait: &mut Duration) -> Result<(), RequestError> {
        let mut version = self.list().await?;
        loop {
            let params = WatchParams::default().timeout(WATCH_SECONDS);
            let request = collection(&self.resource, "").watch(&params, &version);
            let request = request.map_err(|error| RequestError::Unreached(error.to_string()))?;
            let events = self
                .objects
                .client()
                .request_events::<Value>(request)
                .await?;
            let mut events = std::pin::pin!(events);
            let mut seen = false;
            while let Some(event) = events.next().await {
                match event? {
                    WatchEvent::Added(object) | WatchEvent::Modified(object) => {
                        version_text(&object, &mut version);
                        self.see(object);
                    }
                    WatchEvent::Deleted(object) => {
                        version_text(&object, &mut version);
                        self.miss(&object);
                    }
                    WatchEvent::Bookmark(mark) => version = mark.metadata.resource_version,
                    // Too old, or worse: begin anew.
                    WatchEvent::Error(status) => return Err(kube::Error::Api(status).into()),
                }
                seen = true;
            }
            if seen {
                *wait = FIRST_RETRY;
            } else {
                // A server that ends watches at once is not asked again at once.
                tokio::time::sleep(FIRST_RETRY).await;
            }
        }
    }

    /// Reads all objects of the kind, and returns the version of the list.
    async fn list(&self) -> Result<String, RequestError> {
        let mut params = ListParams::default().limit(PAGE);
        let mut seen: HashMap<(String, String), Arc<Value>> = HashMap::new();
        loop {
            let request = collection(&self.resource, "").list(&params);
            let request = request.map_err(|error| RequestError::Unreached(error.to_string()))?;
            let mut page: Value = self.objects.client().request(request).await?;
            let version = page["metadata"]["resourceVersion"]
                .as_str()
                .unwrap_or_default()
                .to_owned();
            let next = page["metadata"]["continue"]
                .as_str()
                .unwrap_or_default()
                .to_owned();
            if let Value::Array(items) = page["items"].take() {
                for mut item in items {
                    // Items of lists may leave out what all of them are.
                    if item.get("apiVersion").is_none() {
                        let group = &self.resource.group;
                        let slash = if group.is_empty() { "" } else { "/" };
                        item["apiVersion"] =
                            format!("{group}{slash}{}", self.resource.version).into();
                        item["kind"] = self.resource.kind.clone().into();
                    }
                    seen.insert(key_of(&item), Arc::new(item));
                }
            }
            if next.is_empty() {
                self.take_list(&seen, version.parse().unwrap_or_default());
                return Ok(version);
            }
            params = params.continue_token(&next);
        }
    }

    fn take_list(&self, seen: &HashMap<(String, String), Arc<Value>>, version: u64) {
        let mut kinds = self.kinds.lock();
        let Some(state) = kinds.get_mut(&self.kind) else {
            return;
        };
        if let Some(watch) = &mut state.watch {
            watch.is_current = true;
            watch.is_refused = false;
            watch.settled.send_replace(true);
        }
        for (key, entry) in &mut state.objects {
            let is_news = match seen.get(key) {
                Some(object) => entry.see(object),
                None => entry.miss(version),
            };
            if is_news {
                self.tell(entry);
            }
        }
    }

    fn see(&self, object: Value) {
        let key = key_of(&object);
        self.with_entry(&key, |entry| entry.see(&Arc::new(object)));
    }

    fn miss(&self, object: &Value) {
        let version = version_of(object).unwrap_or_default();
        self.with_entry(&key_of(object), |entry| entry.miss(version));
    }

    /// Changes what is known of an object of interest, and tells whom it concerns if it is news.
    fn with_entry(&self, key: &(String, String), change: impl FnOnce(&mut Entry) -> bool) {
        let mut kinds = self.kinds.lock();
        let entry = kinds
            .get_mut(&self.kind)
            .and_then(|state| state.objects.get_mut(key));
        if let Some(entry) = entry
            && change(entry)
        {
            self.tell(entry);
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

    fn tell(&self, entry: &Entry) {
        entry
            .works
            .iter()
            .for_each(|work| self.queue.add(work.clone()));
    }

    fn tell_all(&self) {
        let kinds = self.kinds.lock();
        let objects = kinds.get(&self.kind).map(|state| &state.objects);
        objects
            .into_iter()
            .flat_map(HashMap::values)
            .for_each(|entry| self.tell(entry));
    }
}

fn key_of(object: &Value) -> (String, String) {
    let text = |field: &str| {
        object["metadata"][field]
            .as_str()
            .unwrap_or_default()
            .to_owned()
    };
    (text("namespace"), text("name"))
}

fn version_text(object: &Value, version: &mut String) {
    if let Some(text) = object["metadata"]["resourceVersion"].as_str() {
        text.clone_into(version);
    }
}
