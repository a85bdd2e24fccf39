//! Which events are written, and how: the rules of client-go (tools/record/events_cache.go).
//!
//! The same event is counted instead of repeated. When ten events about an object differ in their
//! messages only, further ones share an event. A component that records too much about an object is
//! limited. Everything here is pure; [`Recorder`](super::Recorder) carries it out.

use std::collections::{BTreeSet, HashMap};
use std::hash::{BuildHasher as _, Hash as _, Hasher as _, RandomState};

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::core::v1::{Event, EventSource, ObjectReference};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, Time};
use serde_json::{Value, json};

use super::{EventDraft, EventType};

/// How many events are remembered for counting. Beyond that a repeated one is created again.
const REMEMBERED: usize = 4096;
/// The number of different messages from which on further ones share an event.
const SIMILAR: usize = 10;
/// How long messages count as similar after the last one.
const SIMILAR_WITHIN: SignedDuration = SignedDuration::from_mins(10);
/// How many events a component may record about an object at once.
const BURST: i32 = 25;
/// How long it takes until one more may be recorded.
const REFILL: SignedDuration = SignedDuration::from_mins(5);
/// The longest message, in characters; servers accept a little more in bytes.
const LONGEST_MESSAGE: usize = 1000;
/// The namespace of events about objects without one.
const NAMESPACE_OF_CLUSTER_SCOPED: &str = "default";

/// Something that happened to an object.
#[derive(Debug, Clone, Copy)]
pub struct Occurrence<'a> {
    /// The object.
    pub about: &'a ObjectReference,
    /// What happened.
    pub draft: &'a EventDraft,
    /// The component that records it.
    pub component: &'a str,
    /// The node of the component, if it has one.
    pub host: Option<&'a str>,
}

/// How an event is to be written.
#[derive(Debug, Clone, PartialEq)]
pub enum EventWrite {
    /// As a new object.
    Create(Box<Event>),
    /// As a merge patch of an object that was created before.
    Patch {
        /// Its name.
        name: String,
        /// The fields that change.
        patch: Value,
    },
}

/// Decides how events are written. It remembers those that were written.
#[derive(Debug, Default)]
pub struct Correlator {
    hasher: RandomState,
    written: HashMap<EventKey, Written>,
    /// Hashes of the messages of similar events, and when the last of them happened.
    similar: HashMap<EventKey, (BTreeSet<u32>, Timestamp)>,
    /// By object and component: from when on everything recorded so far would have been within the
    /// limit, had it been spread out.
    spent: HashMap<EventKey, Timestamp>,
    /// Makes names unique.
    number: u32,
}

/// Events that count as one. Hashes are enough: a collision would count an event once too often.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct EventKey {
    object: u64,
    event: u64,
}

#[derive(Debug)]
struct Written {
    name: String,
    count: i32,
    /// Whether it stands for similar events.
    is_shared: bool,
}

impl Correlator {
    /// Says how to write an event that happens now; `None` if the component recorded too much about
    /// the object.
    pub fn correlate(&mut self, event: &Occurrence<'_>, now: Timestamp) -> Option<EventWrite> {
        self.make_room();
        let (key, is_shared) = self.aggregate(event, now);
        if !self.is_within_limit(event, now) {
            return None;
        }
        let mut message: String = event.draft.message.chars().take(LONGEST_MESSAGE).collect();
        if is_shared {
            message.insert_str(0, "(combined from similar events): ");
        }
        if let Some(written) = self.written.get_mut(&key) {
            written.count = written.count.saturating_add(1);
            let mut patch = json!({"count": written.count, "lastTimestamp": Time(now)});
            if written.is_shared {
                patch["message"] = message.into();
            }
            let name = written.name.clone();
            return Some(EventWrite::Patch { name, patch });
        }
        self.number = self.number.wrapping_add(1);
        let name = name_of(event, self.number, now);
        let object = describe(event, name.clone(), message, now);
        let count = 1;
        self.written.insert(
            key,
            Written {
                name,
                count,
                is_shared,
            },
        );
        Some(EventWrite::Create(Box::new(object)))
    }

    /// Forgets an event whose object could not be written or is gone: the next one is created again.
    pub fn forget(&mut self, event: &Occurrence<'_>) {
        for key in [self.key(event, true), self.key(event, false)] {
            self.written.remove(&key);
        }
    }

    /// Forgets an object that is gone.
    pub fn forget_object(&mut self, uid: &str) {
        let object = self.hash_of_object(uid);
        self.written.retain(|key, _| key.object != object);
        self.similar.retain(|key, _| key.object != object);
        self.spent.retain(|key, _| key.object != object);
    }

    fn make_room(&mut self) {
        let sizes = [self.written.len(), self.similar.len(), self.spent.len()];
        if sizes.into_iter().any(|size| size >= REMEMBERED) {
            self.written.clear();
            self.similar.clear();
            self.spent.clear();
        }
    }

    /// What an event is counted as: itself, or one of many that are similar.
    fn aggregate(&mut self, event: &Occurrence<'_>, now: Timestamp) -> (EventKey, bool) {
        let shared = self.key(event, false);
        let (messages, last) = self.similar.entry(shared).or_default();
        if now.duration_since(*last) > SIMILAR_WITHIN {
            messages.clear();
        }
        *last = now;
        messages.insert(fnv32(event.draft.message.bytes()));
        if messages.len() < SIMILAR {
            return (self.key(event, true), false);
        }
        // There is always room for one more.
        messages.pop_first();
        (shared, true)
    }

    /// A bucket of tokens for each object and component.
    fn is_within_limit(&mut self, event: &Occurrence<'_>, now: Timestamp) -> bool {
        let key = EventKey {
            object: self.hash_of_object(event.about.uid.as_deref().unwrap_or_default()),
            event: self.hasher.hash_one((event.component, event.host)),
        };
        let full = now.saturating_sub(REFILL.saturating_mul(BURST));
        let full = full.unwrap_or(Timestamp::MIN);
        let spent = self.spent.entry(key).or_insert(full);
        let next = (*spent).max(full).saturating_add(REFILL).unwrap_or(now);
        if next > now {
            return false;
        }
        *spent = next;
        true
    }

    fn key(&self, event: &Occurrence<'_>, is_exact: bool) -> EventKey {
        let about = event.about;
        let mut hasher = self.hasher.build_hasher();
        (event.component, event.host).hash(&mut hasher);
        (&about.api_version, &about.kind).hash(&mut hasher);
        (&about.namespace, &about.name).hash(&mut hasher);
        (event.draft.event_type, &event.draft.reason).hash(&mut hasher);
        if is_exact {
            (&about.field_path, &event.draft.message).hash(&mut hasher);
        }
        EventKey {
            object: self.hash_of_object(about.uid.as_deref().unwrap_or_default()),
            event: hasher.finish(),
        }
    }

    fn hash_of_object(&self, uid: &str) -> u64 {
        self.hasher.hash_one(uid)
    }
}

/// Returns the namespace that events about an object are in.
pub fn event_namespace(about: &ObjectReference) -> &str {
    let namespace = about.namespace.as_deref();
    namespace
        .filter(|namespace| !namespace.is_empty())
        .unwrap_or(NAMESPACE_OF_CLUSTER_SCOPED)
}

/// As client-go names events: the object, and a number that nobody else has.
fn name_of(event: &Occurrence<'_>, number: u32, now: Timestamp) -> String {
    let object = event.about.name.as_deref().unwrap_or_default();
    let uid = event.about.uid.as_deref().unwrap_or_default();
    let salt = fnv32(event.component.bytes().chain(uid.bytes()));
    format!("{object}.{:x}{salt:08x}{number:x}", now.as_millisecond())
}

fn describe(event: &Occurrence<'_>, name: String, message: String, now: Timestamp) -> Event {
    let event_type = match event.draft.event_type {
        EventType::Normal => "Normal",
        EventType::Warning => "Warning",
    };
    Event {
        metadata: ObjectMeta {
            name: Some(name),
            namespace: Some(event_namespace(event.about).to_owned()),
            ..ObjectMeta::default()
        },
        involved_object: event.about.clone(),
        type_: Some(event_type.to_owned()),
        reason: Some(event.draft.reason.to_string()),
        message: Some(message),
        source: Some(EventSource {
            component: Some(event.component.to_owned()),
            host: event.host.map(ToOwned::to_owned),
        }),
        reporting_component: Some(event.component.to_owned()),
        reporting_instance: Some(event.host.unwrap_or_default().to_owned()),
        first_timestamp: Some(Time(now)),
        last_timestamp: Some(Time(now)),
        count: Some(1),
        ..Event::default()
    }
}

/// FNV-1a of 32 bits.
fn fnv32(bytes: impl IntoIterator<Item = u8>) -> u32 {
    bytes.into_iter().fold(0x811c_9dc5, |hash, byte| {
        (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(correlator: &mut Correlator, message: &str, now: Timestamp) -> Option<EventWrite> {
        with_occurrence(message, |event| correlator.correlate(event, now))
    }

    fn with_occurrence<T>(message: &str, run: impl FnOnce(&Occurrence<'_>) -> T) -> T {
        let about = ObjectReference {
            api_version: Some("v1".to_owned()),
            kind: Some("Pod".to_owned()),
            namespace: Some("a".to_owned()),
            name: Some("p".to_owned()),
            uid: Some("u".to_owned()),
            ..ObjectReference::default()
        };
        run(&Occurrence {
            about: &about,
            draft: &EventDraft::normal("Started", message),
            component: "kubelet",
            host: None,
        })
    }

    #[track_caller]
    fn created(write: Option<EventWrite>) -> Event {
        match write {
            Some(EventWrite::Create(event)) => *event,
            other => panic!("not a new event: {other:?}"),
        }
    }

    #[test]
    fn the_same_event_is_counted() {
        let mut correlator = Correlator::default();
        let now = Timestamp::UNIX_EPOCH;
        let event = created(record(&mut correlator, "Container started", now));
        let name = event.metadata.name.unwrap();
        let patch = json!({"count": 2, "lastTimestamp": "1970-01-01T00:00:00Z"});
        let again = record(&mut correlator, "Container started", now);
        let name_again = name.clone();
        assert_eq!(
            again,
            Some(EventWrite::Patch {
                name: name_again,
                patch
            })
        );
        with_occurrence("Container started", |event| correlator.forget(event));
        let event = created(record(&mut correlator, "Container started", now));
        assert_ne!(event.metadata.name, Some(name), "names are not used twice");
        correlator.forget_object("u");
        assert!(correlator.written.is_empty() && correlator.spent.is_empty());
    }

    #[test]
    fn many_similar_events_share_one() {
        let mut correlator = Correlator::default();
        let mut now = Timestamp::UNIX_EPOCH;
        for number in 0..9 {
            created(record(&mut correlator, &number.to_string(), now));
        }
        let shared = created(record(&mut correlator, "9", now));
        let message = "(combined from similar events): 9";
        assert_eq!(shared.message.as_deref(), Some(message));
        let Some(EventWrite::Patch { name, patch }) = record(&mut correlator, "10", now) else {
            panic!("it is shared");
        };
        assert_eq!(shared.metadata.name, Some(name));
        assert_eq!(
            (&patch["count"], &patch["message"]),
            (&json!(2), &json!("(combined from similar events): 10"))
        );
        now = now + SIMILAR_WITHIN + SignedDuration::from_secs(1);
        let alone = created(record(&mut correlator, "11", now));
        assert_eq!(alone.message.as_deref(), Some("11"));
    }

    #[test]
    fn a_component_that_records_too_much_about_an_object_is_limited() {
        let mut correlator = Correlator::default();
        let start = Timestamp::UNIX_EPOCH;
        let mut is_written = |minutes: i64| {
            let now = start + SignedDuration::from_mins(minutes);
            record(&mut correlator, "x", now).is_some()
        };
        assert_eq!((0..40).filter(|_| is_written(0)).count(), 25);
        assert!(!is_written(4));
        assert!(is_written(5));
        assert!(!is_written(6));
    }

    #[test]
    fn objects_without_a_namespace_have_their_events_in_default() {
        let check = |namespace: Option<&str>, expected: &str| {
            let about = ObjectReference {
                namespace: namespace.map(ToOwned::to_owned),
                ..ObjectReference::default()
            };
            assert_eq!(event_namespace(&about), expected);
        };
        check(None, "default");
        check(Some(""), "default");
        check(Some("shop"), "shop");
    }
}
