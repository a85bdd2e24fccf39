//! Events: what happened to an object, for people.
//!
//! Nobody waits for an event, and one that is lost is no harm. What happens to one object for one
//! reason within a second is one event, which says how often: a fleet that is relabelled does not
//! flood its hub.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use bellwether_runtime::Clock;
use jiff::Timestamp;
use k8s_openapi::api::core::v1::{Event, EventSource, ObjectReference};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::api::{ObjectMeta, PostParams};
use kube::{Api, Client, Resource};
use parking_lot::Mutex;

/// How long happenings are gathered.
const GATHER: Duration = Duration::from_secs(1);
/// How many events about what went well may be written at once; after that, so many a second. A
/// thousand clusters that join at once do not need three thousand of them.
const BURST: f64 = 100.0;
const PER_SECOND: f64 = 10.0;
/// What servers take as a message at most.
const LONGEST: usize = 1000;
/// Where events about objects without a namespace are, as those about nodes are.
const NAMESPACE_OF_CLUSTER_SCOPED: &str = "default";

/// Whether something went as it should.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum EventType {
    /// It did.
    Normal,
    /// Somebody should have a look.
    Warning,
}

/// Something that happened.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct EventDraft {
    pub(crate) tone: EventType,
    /// One word for it.
    pub(crate) reason: &'static str,
    /// A sentence about it.
    pub(crate) message: String,
}

/// Writes events. Cheap to clone; all clones gather together.
#[derive(Clone)]
pub(crate) struct Recorder {
    client: Client,
    clock: Clock,
    component: &'static str,
    gathered: Arc<Mutex<HashMap<Topic, Gathered>>>,
    /// How many may be written, and when this was counted.
    tokens: Arc<Mutex<(f64, Timestamp)>>,
}

/// What is gathered into one event: an object, by its uid, and a reason.
type Topic = (String, &'static str);

#[derive(Debug)]
struct Gathered {
    last: EventDraft,
    since: Timestamp,
    count: i32,
}

impl Recorder {
    /// For a controller of that name.
    pub(crate) fn new(client: &Client, clock: &Clock, component: &'static str) -> Self {
        Self {
            client: client.clone(),
            clock: clock.clone(),
            component,
            gathered: Arc::default(),
            tokens: Arc::new(Mutex::new((BURST, clock.now()))),
        }
    }

    fn take_token(&self) -> bool {
        let now = self.clock.now();
        let mut tokens = self.tokens.lock();
        let passed = now.duration_since(tokens.1).as_secs_f64().max(0.0);
        let left = (tokens.0 + passed * PER_SECOND).min(BURST);
        let is_taken = left >= 1.0;
        *tokens = (if is_taken { left - 1.0 } else { left }, now);
        is_taken
    }

    /// Tells that something happened to an object.
    pub(crate) fn tell<K: Resource<DynamicType = ()>>(&self, object: &K, happening: EventDraft) {
        self.tell_about(object.object_ref(&()), happening);
    }

    /// Tells that something happened to the object of a reference, whose namespace the event is in.
    pub(crate) fn tell_about(&self, reference: ObjectReference, happening: EventDraft) {
        let topic = (reference.uid.clone().unwrap_or_default(), happening.reason);
        {
            let mut gathered = self.gathered.lock();
            if let Some(known) = gathered.get_mut(&topic) {
                known.last = happening;
                known.count = known.count.saturating_add(1);
                return;
            }
            if happening.tone == EventType::Normal && !self.take_token() {
                return;
            }
            let first = Gathered {
                last: happening,
                since: self.clock.now(),
                count: 1,
            };
            gathered.insert(topic.clone(), first);
        }
        let recorder = self.clone();
        tokio::spawn(async move {
            tokio::time::sleep(GATHER).await;
            let gathered = recorder.gathered.lock().remove(&topic);
            if let Some(gathered) = gathered {
                recorder.write(reference, gathered).await;
            }
        });
    }

    async fn write(&self, reference: ObjectReference, gathered: Gathered) {
        let namespace = reference.namespace.as_deref();
        let namespace = namespace.unwrap_or(NAMESPACE_OF_CLUSTER_SCOPED);
        let api: Api<Event> = Api::namespaced(self.client.clone(), namespace);
        let event = self.event(namespace, &reference, &gathered);
        if let Err(error) = api.create(&PostParams::default(), &event).await {
            tracing::debug!(%error, "event lost");
        }
    }

    fn event(&self, namespace: &str, about: &ObjectReference, gathered: &Gathered) -> Event {
        let name = about.name.as_deref().unwrap_or_default();
        let tone = match gathered.last.tone {
            EventType::Normal => "Normal",
            EventType::Warning => "Warning",
        };
        Event {
            metadata: ObjectMeta {
                generate_name: Some(format!("{name}-")),
                namespace: Some(namespace.to_owned()),
                ..ObjectMeta::default()
            },
            involved_object: about.clone(),
            type_: Some(tone.to_owned()),
            reason: Some(gathered.last.reason.to_owned()),
            message: Some(gathered.last.message.chars().take(LONGEST).collect()),
            source: Some(EventSource {
                component: Some(self.component.to_owned()),
                ..EventSource::default()
            }),
            count: Some(gathered.count),
            first_timestamp: Some(Time(gathered.since)),
            last_timestamp: Some(Time(self.clock.now())),
            ..Event::default()
        }
    }
}
