//! Events: what happened to an object, for people.
//!
//! Nobody waits for an event, and a lost event does no harm. [`Recorder`] writes events in the background,
//! as [`Correlator`] decides.

mod correlate;

use std::borrow::Cow;
use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::{Event, ObjectReference};
use kube::api::{Patch, PatchParams, PostParams};
use kube::{Api, Client, Resource};
use parking_lot::Mutex;
use tokio::sync::{mpsc, oneshot};

use crate::clock::Clock;
use crate::supervise::spawn_vital;

pub use correlate::{Correlator, EventWrite, Occurrence, event_namespace};

/// How many events wait to be written; further ones are lost, as client-go does it.
const QUEUED: usize = 1000;
/// How many namespaces are counted at once; when there are more, counting starts again.
const COUNTED_NAMESPACES: usize = 4096;

/// Whether something went as it should.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum EventType {
    /// It did.
    Normal,
    /// Somebody should have a look.
    Warning,
}

/// Something that happened, without the object it happened to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EventDraft {
    /// Whether it went as it should.
    pub event_type: EventType,
    /// One word for it.
    pub reason: Cow<'static, str>,
    /// A sentence about it.
    pub message: String,
}

impl EventDraft {
    /// Describes something that went as it should.
    pub fn normal(reason: impl Into<Cow<'static, str>>, message: impl Into<String>) -> Self {
        Self::new(EventType::Normal, reason, message)
    }

    /// Describes something that somebody should have a look at.
    pub fn warning(reason: impl Into<Cow<'static, str>>, message: impl Into<String>) -> Self {
        Self::new(EventType::Warning, reason, message)
    }

    /// Describes something that happened.
    pub fn new(
        event_type: EventType,
        reason: impl Into<Cow<'static, str>>,
        message: impl Into<String>,
    ) -> Self {
        Self {
            event_type,
            reason: reason.into(),
            message: message.into(),
        }
    }
}

/// A limit on Normal events of one namespace: a thousand clusters that join at once do not need three
/// thousand events.
#[derive(Debug, Clone, Copy)]
pub struct EventLimit {
    /// How many may be recorded at once.
    pub burst: f64,
    /// How many more per second.
    pub per_second: f64,
}

impl Default for EventLimit {
    fn default() -> Self {
        Self {
            burst: 100.0,
            per_second: 10.0,
        }
    }
}

/// Finds the client that may write events in a namespace.
type Clients = Arc<dyn Fn(&str) -> Client + Send + Sync>;

/// Records events. Cheap to clone; all clones count together.
#[derive(Clone)]
pub struct Recorder {
    shared: Arc<Shared>,
    queue: mpsc::Sender<Queued>,
}

/// What the writer of events does next.
enum Queued {
    /// Writes an event.
    Event(Box<ObjectReference>, EventDraft),
    /// Says that everything before is written.
    Mark(oneshot::Sender<()>),
}

struct Shared {
    clients: Clients,
    clock: Clock,
    component: &'static str,
    limit: EventLimit,
    correlator: Mutex<Correlator>,
    /// How many Normal events are left in each namespace, and when they were counted.
    left: Mutex<HashMap<String, (f64, Timestamp)>>,
}

impl Recorder {
    /// Creates a recorder for a component. Must be called within a tokio runtime.
    pub fn new(client: &Client, clock: &Clock, component: &'static str) -> Self {
        let client = client.clone();
        let clients = move |_: &str| client.clone();
        Self::with_clients(clients, clock, component, EventLimit::default())
    }

    /// Creates a recorder that writes with a client of each namespace. Must be called within a tokio
    /// runtime.
    pub fn with_clients(
        clients: impl Fn(&str) -> Client + Send + Sync + 'static,
        clock: &Clock,
        component: &'static str,
        limit: EventLimit,
    ) -> Self {
        let shared = Arc::new(Shared {
            clients: Arc::new(clients),
            clock: clock.clone(),
            component,
            limit,
            correlator: Mutex::default(),
            left: Mutex::default(),
        });
        let (queue, mut queued) = mpsc::channel::<Queued>(QUEUED);
        let writer = Arc::clone(&shared);
        drop(spawn_vital(format!("events of {component}"), async move {
            while let Some(next) = queued.recv().await {
                match next {
                    Queued::Event(about, draft) => writer.write(&about, &draft).await,
                    // Nobody may wait any more.
                    Queued::Mark(done) => drop(done.send(())),
                }
            }
        }));
        Self { shared, queue }
    }

    /// Records that something happened to an object.
    pub fn record<K: Resource<DynamicType = ()>>(&self, object: &K, draft: EventDraft) {
        self.record_about(object.object_ref(&()), draft);
    }

    /// Records that something happened to the object of a reference. The event is in the namespace of
    /// the reference.
    pub fn record_about(&self, about: ObjectReference, draft: EventDraft) {
        if draft.event_type == EventType::Normal && !self.shared.is_within_limit(&about) {
            return;
        }
        let queued = Queued::Event(Box::new(about), draft);
        if self.queue.try_send(queued).is_err() {
            tracing::debug!(
                component = self.shared.component,
                "event lost: too many wait"
            );
        }
    }
}

impl Recorder {
    /// Waits until everything that was recorded before is written, or lost: a process that ends afterwards loses nothing of it.
    pub async fn written(&self) {
        let (done, waiting) = oneshot::channel();
        if self.queue.send(Queued::Mark(done)).await.is_ok() {
            let _ = waiting.await;
        }
    }
}

impl Shared {
    fn is_within_limit(&self, about: &ObjectReference) -> bool {
        let now = self.clock.now();
        let mut all = self.left.lock();
        if all.len() >= COUNTED_NAMESPACES {
            all.clear();
        }
        let namespace = event_namespace(about).to_owned();
        let (left, counted) = all.entry(namespace).or_insert((self.limit.burst, now));
        let passed = now.duration_since(*counted).as_secs_f64().max(0.0);
        *left = (*left + passed * self.limit.per_second).min(self.limit.burst);
        *counted = now;
        let is_within = *left >= 1.0;
        if is_within {
            *left -= 1.0;
        }
        is_within
    }

    async fn write(&self, about: &ObjectReference, draft: &EventDraft) {
        let event = Occurrence {
            about,
            draft,
            component: self.component,
            host: None,
        };
        let namespace = event_namespace(about);
        let api: Api<Event> = Api::namespaced((self.clients)(namespace), namespace);
        // Twice at most: an event that is patched may have expired, and is created again then.
        for _ in 0..2 {
            let write = self.correlator.lock().correlate(&event, self.clock.now());
            let Some(write) = write else { return };
            let is_patch = matches!(write, EventWrite::Patch { .. });
            let written = match write {
                EventWrite::Create(object) => api.create(&PostParams::default(), &object).await,
                EventWrite::Patch { name, patch } => {
                    let params = PatchParams::default();
                    api.patch(&name, &params, &Patch::Merge(patch)).await
                }
            };
            let Err(error) = written else {
                tracing::info!(
                    kind = about.kind,
                    namespace = about.namespace,
                    name = about.name,
                    reason = %draft.reason,
                    message = draft.message,
                    "recorded an event"
                );
                return;
            };
            self.correlator.lock().forget(&event);
            let is_gone = matches!(&error, kube::Error::Api(status) if status.is_not_found());
            if !(is_patch && is_gone) {
                tracing::debug!(%error, reason = %draft.reason, "event lost");
                return;
            }
        }
    }
}

impl fmt::Debug for Recorder {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Recorder")
            .field("component", &self.shared.component)
            .finish_non_exhaustive()
    }
}
