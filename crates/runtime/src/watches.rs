//! What is known of delivered objects: one watch a kind, however many objects and keys there are.
//!
//! A watch begins when the first object of its kind is tracked. It keeps tracked objects only, and
//! enqueues the keys (works, policies, applications) that track an object when the object changes. What
//! this process writes itself is recorded at once, so that the watch event of an own write enqueues
//! nothing.
//!
//! Objects are kept as the text that the server sent, which takes a fraction of the memory of parsed
//! ones. A reconcile parses the objects that it needs.

mod follow;
mod others;

use std::collections::HashMap;
use std::fmt::{self, Debug};
use std::sync::Arc;
use std::time::Duration;

use bellwether_apply::{LiveState, ObjectId, ResourceType};
use jiff::Timestamp;
use parking_lot::Mutex;
use prometheus_client::metrics::gauge::Gauge;
use serde_json::Value;
use tokio::task::AbortHandle;

use crate::objects::{Objects, version_of};
use crate::queue::Queue;
use crate::supervise::spawn_vital;
use follow::{Follower, Listing};

/// How long after its watch began the first list of a kind is waited for.
const WATCH_START_TIMEOUT: Duration = Duration::from_secs(10);

/// Group and name of a kind; the version does not matter.
type Kind = (String, String);
/// Namespace and name of an object.
type Name = (String, String);
/// What all watches of a cluster know.
type Kinds<K> = Arc<Mutex<HashMap<Kind, KindState<K>>>>;

/// The watches of one cluster.
pub struct Watches<K> {
    objects: Objects,
    queue: Queue<K>,
    open: Gauge,
    kinds: Kinds<K>,
}

struct KindState<K> {
    objects: HashMap<Name, Entry<K>>,
    watch: Option<Watch>,
}

impl<K> Default for KindState<K> {
    fn default() -> Self {
        Self {
            objects: HashMap::new(),
            watch: None,
        }
    }
}

struct Watch {
    task: AbortHandle,
    open: Gauge,
    /// What the objects are called that it sees.
    resource: Arc<ResourceType>,
    /// Whether a list has been read since the watch last broke for good.
    is_current: bool,
    /// When it began, by the time that passes.
    began: Duration,
    /// Tells when a list was read, or refused.
    settled: tokio::sync::watch::Sender<bool>,
    /// Whether the server refuses to be watched, so that objects have to be read.
    is_refused: bool,
}

impl Drop for Watch {
    fn drop(&mut self) {
        self.task.abort();
        self.open.dec();
    }
}

/// What is kept of an object.
#[derive(Default)]
enum Snapshot {
    #[default]
    Unknown,
    Absent,
    Present(Box<str>),
}

struct Entry<K> {
    kept: Snapshot,
    /// The version after which it was seen to be absent, or which was written.
    version: u64,
    /// Keys that track it; one, nearly always.
    keys: Vec<K>,
}

impl<K> Default for Entry<K> {
    fn default() -> Self {
        Self {
            kept: Snapshot::Unknown,
            version: 0,
            keys: Vec::new(),
        }
    }
}

impl<K: Clone + Ord + Debug + Send + Sync + 'static> Watches<K> {
    /// The watches of a cluster; what changes is enqueued. The gauge has the number of open ones.
    pub fn new(objects: Objects, queue: Queue<K>, open: Gauge) -> Self {
        Self {
            objects,
            queue,
            open,
            kinds: Arc::default(),
        }
    }

    /// Has a key enqueued when an object changes.
    pub fn track(&self, id: &ObjectId, key: &K) {
        let mut kinds = self.kinds.lock();
        let entry = kinds
            .entry(kind_of(id))
            .or_default()
            .objects
            .entry(name_of(id))
            .or_default();
        if !entry.keys.contains(key) {
            entry.keys.reserve_exact(1);
            entry.keys.push(key.clone());
        }
    }

    /// Ends what [`track`](Self::track) began. The last one of a kind ends its watch.
    pub fn untrack(&self, id: &ObjectId, key: &K) {
        let mut kinds = self.kinds.lock();
        let Some(state) = kinds.get_mut(&kind_of(id)) else {
            return;
        };
        if let Some(entry) = state.objects.get_mut(&name_of(id)) {
            entry.keys.retain(|known| known != key);
            if entry.keys.is_empty() {
                state.objects.remove(&name_of(id));
            }
        }
        if state.objects.is_empty() {
            kinds.remove(&kind_of(id));
        }
    }

    /// Returns what is known of an object. Without a watch that is current, nothing is.
    pub fn known(&self, id: &ObjectId) -> LiveState {
        let kinds = self.kinds.lock();
        let Some(state) = kinds.get(&kind_of(id)) else {
            return LiveState::Unknown;
        };
        let Some(watch) = state.watch.as_ref().filter(|watch| watch.is_current) else {
            return LiveState::Unknown;
        };
        let kept = state.objects.get(&name_of(id)).map(|entry| &entry.kept);
        match kept {
            None | Some(Snapshot::Unknown) => LiveState::Unknown,
            Some(Snapshot::Absent) => LiveState::Absent,
            Some(Snapshot::Present(text)) => match parse(text, &watch.resource) {
                Some(object) => LiveState::Present(Arc::new(object)),
                None => LiveState::Unknown,
            },
        }
    }

    /// Returns true if objects of a kind have to be read, because the server refuses to be watched.
    pub fn is_refused(&self, id: &ObjectId) -> bool {
        let kinds = self.kinds.lock();
        let watch = kinds
            .get(&kind_of(id))
            .and_then(|state| state.watch.as_ref());
        watch.is_some_and(|watch| watch.is_refused)
    }

    /// Notes a state of an object that was written or read; later ones stay.
    pub fn note(&self, id: &ObjectId, object: &Value) {
        let version = version_of(object).unwrap_or_default();
        let text = object.to_string();
        let mut kinds = self.kinds.lock();
        if let Some(state) = kinds.get_mut(&kind_of(id)) {
            state.see(&name_of(id), version, &text);
        }
    }

    /// Notes that an object is gone.
    pub fn note_gone(&self, id: &ObjectId) {
        let mut kinds = self.kinds.lock();
        let entry = kinds
            .get_mut(&kind_of(id))
            .and_then(|state| state.objects.get_mut(&name_of(id)));
        if let Some(entry) = entry {
            entry.kept = Snapshot::Absent;
        }
    }

    /// Begins to watch a kind, unless it is being watched.
    pub fn ensure(&self, resource: &Arc<ResourceType>) {
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
            listing: Listing::default(),
        };
        self.open.inc();
        let name = format!("watch of {}", resource.plural);
        state.watch = Some(Watch {
            task: spawn_vital(name, follower.run()).abort_handle(),
            open: self.open.clone(),
            resource: Arc::clone(resource),
            is_current: false,
            began: self.queue.clock().monotonic(),
            settled: tokio::sync::watch::Sender::new(false),
            is_refused: false,
        });
    }

    /// Returns when to go on at the latest if a watch has yet to see what there is: reconcile again then, and hold no worker meanwhile. All
    /// keys that track objects of the kind are enqueued as soon as it has. Returns nothing if it has, or if it takes too long.
    pub fn settles_by(&self, id: &ObjectId) -> Option<Timestamp> {
        let (_, rest) = self.unsettled(id)?;
        self.queue.clock().now().checked_add(rest).ok()
    }

    /// Waits until a watch has seen everything that there was when it began, but no longer than a while from then on.
    pub async fn settled(&self, id: &ObjectId) {
        if let Some((mut settled, rest)) = self.unsettled(id) {
            // In vain means that objects are read one by one.
            let _ = tokio::time::timeout(rest, settled.wait_for(|settled| *settled)).await;
        }
    }

    /// What tells when a watch has seen everything, and how long to wait for that.
    fn unsettled(&self, id: &ObjectId) -> Option<(tokio::sync::watch::Receiver<bool>, Duration)> {
        let kinds = self.kinds.lock();
        let watch = kinds.get(&kind_of(id))?.watch.as_ref()?;
        let passed = self.queue.clock().monotonic().saturating_sub(watch.began);
        let rest = WATCH_START_TIMEOUT.saturating_sub(passed);
        let is_settled = *watch.settled.borrow();
        (!is_settled && !rest.is_zero()).then(|| (watch.settled.subscribe(), rest))
    }
}

impl<K> Debug for Watches<K> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Watches")
            .field("kinds", &self.kinds.lock().len())
            .finish_non_exhaustive()
    }
}

fn kind_of(id: &ObjectId) -> Kind {
    (id.group.clone(), id.resource.clone())
}

fn name_of(id: &ObjectId) -> Name {
    (id.namespace.clone(), id.name.clone())
}

/// The object of a text; items of lists may leave out what all of them are.
fn parse(text: &str, resource: &ResourceType) -> Option<Value> {
    let mut object: Value = serde_json::from_str(text).ok()?;
    if object.get("apiVersion").is_none() && object.is_object() {
        let group = &resource.group;
        let slash = if group.is_empty() { "" } else { "/" };
        object["apiVersion"] = format!("{group}{slash}{}", resource.version).into();
        object["kind"] = resource.kind.clone().into();
    }
    Some(object)
}

impl<K> KindState<K> {
    /// Takes a state of an object, unless nobody is interested or a later one is known. Returns what
    /// is known now if it is news.
    fn see(&mut self, name: &Name, version: u64, text: &str) -> Option<&Entry<K>> {
        let entry = self.objects.get_mut(name)?;
        if version <= entry.version && version != 0 {
            return None;
        }
        entry.version = version;
        entry.kept = Snapshot::Present(text.into());
        Some(entry)
    }

    /// Takes note that an object was not there at a version. Returns what is known now if it is news.
    fn miss(&mut self, name: &Name, version: u64) -> Option<&Entry<K>> {
        let entry = self.objects.get_mut(name)?;
        if version < entry.version && version != 0 {
            return None;
        }
        entry.version = entry.version.max(version);
        let before = std::mem::replace(&mut entry.kept, Snapshot::Absent);
        (!matches!(before, Snapshot::Absent)).then_some(entry)
    }
}
