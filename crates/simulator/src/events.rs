//! Events as people see them: the same news is told once, and counted.
//!
//! All rules are those of client-go (tools/record/events_cache.go): when ten different things of one
//! sort have been said about an object, further ones share an event; and who says too much about an
//! object is not listened to for a while.

use std::collections::{BTreeSet, HashMap};

use bellwether_json::time::format_time;
use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use crate::hash::fnv32;
use crate::kind::Reference;
use crate::plan::{Event, Severity, Source};

/// How many events are remembered for counting. Beyond that a repeated one is told again.
const REMEMBERED: usize = 4096;
/// From so many different messages on, further ones share an event.
const SIMILAR: usize = 10;
/// How long messages count as similar after the last one.
const SIMILAR_WITHIN: SignedDuration = SignedDuration::from_mins(10);
/// How many events a component may write about an object at once.
const BURST: i64 = 25;
/// How long it takes until one more may be written.
const REFILL: SignedDuration = SignedDuration::from_mins(5);

/// What has been told of a cluster.
#[derive(Debug, Default)]
pub(crate) struct Recorder {
    /// Name and count of events. Those that stand for similar ones have no message.
    told: HashMap<Event, (String, u32)>,
    /// The messages of events that have everything else in common, by their hashes, and when the last
    /// one was.
    similar: HashMap<Event, (BTreeSet<u32>, Timestamp)>,
    /// From when on a component could have written all that it has written about an object, had it
    /// not done so at once.
    spent: HashMap<(Source, Reference), Timestamp>,
    /// Makes names unique.
    number: u32,
}

/// How an event is to be written.
#[derive(Debug, PartialEq)]
pub(crate) enum Writing {
    /// As a new object.
    New(Value),
    /// As a change of the object of that name.
    Again(String, Value),
}

impl Recorder {
    /// How to write an event that happens now; nothing if too much has been said already.
    pub(crate) fn write(&mut self, event: &Event, now: Timestamp) -> Option<Writing> {
        for size in [self.told.len(), self.similar.len(), self.spent.len()] {
            if size >= REMEMBERED {
                self.told.clear();
                self.similar.clear();
                self.spent.clear();
            }
        }
        let key = self.key_for(event, now);
        if !self.may_speak(event, now) {
            return None;
        }
        let combined = key != *event;
        let message = if combined {
            format!("(combined from similar events): {}", event.message)
        } else {
            event.message.clone()
        };
        if let Some((name, count)) = self.told.get_mut(&key) {
            *count = count.saturating_add(1);
            let mut patch = json!({"count": *count, "lastTimestamp": format_time(now)});
            if combined {
                patch["message"] = message.into();
            }
            return Some(Writing::Again(name.clone(), patch));
        }
        self.number = self.number.wrapping_add(1);
        let object = &event.subject.key.name;
        // As client-go does: the object, and a number that nobody else has.
        let salt = fnv32(event.subject.uid.bytes());
        let name = format!(
            "{object}.{:x}{salt:08x}{:x}",
            now.as_millisecond(),
            self.number
        );
        let told = Event {
            message,
            ..event.clone()
        };
        let written = describe(&told, &name, now);
        self.told.insert(key, (name, 1));
        Some(Writing::New(written))
    }

    /// What an event is counted as: itself, or one of many.
    fn key_for(&mut self, event: &Event, now: Timestamp) -> Event {
        let sort = sort_of(event);
        let (messages, last) = self.similar.entry(sort.clone()).or_default();
        if now.duration_since(*last) > SIMILAR_WITHIN {
            messages.clear();
        }
        *last = now;
        messages.insert(fnv32(event.message.bytes()));
        if messages.len() < SIMILAR {
            return event.clone();
        }
        // There is always room for one more.
        messages.pop_first();
        sort
    }

    /// Whether a component may say one more thing about an object.
    fn may_speak(&mut self, event: &Event, now: Timestamp) -> bool {
        let key = (event.source.clone(), event.subject.clone());
        let full = now.saturating_sub(REFILL.saturating_mul(i32::try_from(BURST).unwrap_or(0)));
        let full = full.unwrap_or(Timestamp::MIN);
        let spent = self.spent.entry(key).or_insert(full);
        let next = (*spent).max(full).saturating_add(REFILL).unwrap_or(now);
        if next > now {
            return false;
        }
        *spent = next;
        true
    }

    /// The object of an event is gone: the next time it is new.
    pub(crate) fn forget(&mut self, event: &Event) {
        self.told.remove(event);
        self.told.remove(&sort_of(event));
    }

    /// Nothing more will happen to an object.
    pub(crate) fn forget_subject(&mut self, uid: &str) {
        self.told.retain(|event, _| event.subject.uid != uid);
        self.similar.retain(|event, _| event.subject.uid != uid);
        self.spent.retain(|(_, subject), _| subject.uid != uid);
    }
}

/// What similar events have in common.
fn sort_of(event: &Event) -> Event {
    Event {
        message: String::new(),
        field_path: None,
        ..event.clone()
    }
}

/// The namespace that events of an object are in.
pub(crate) fn namespace(event: &Event) -> &str {
    match &*event.subject.key.namespace {
        "" => "default",
        namespace => namespace,
    }
}

fn describe(event: &Event, name: &str, now: Timestamp) -> Value {
    let subject = &event.subject;
    let time = format_time(now);
    let mut involved = json!({
        "apiVersion": subject.kind.api_version(), "kind": subject.kind.names().kind,
        "name": &*subject.key.name, "uid": subject.uid,
    });
    if !subject.key.namespace.is_empty() {
        involved["namespace"] = (&*subject.key.namespace).into();
    }
    if let Some(path) = &event.field_path {
        involved["fieldPath"] = path.as_str().into();
    }
    let mut source = json!({"component": event.source.component});
    if let Some(node) = &event.source.node {
        source["host"] = node.as_str().into();
    }
    json!({
        "apiVersion": "v1", "kind": "Event",
        "metadata": {"name": name, "namespace": namespace(event)},
        "involvedObject": involved,
        "type": match event.severity {
            Severity::Normal => "Normal",
            Severity::Warning => "Warning",
        },
        "reason": event.reason, "message": event.message,
        "source": source,
        "reportingComponent": event.source.component,
        "reportingInstance": event.source.node.as_deref().unwrap_or_default(),
        "firstTimestamp": time, "lastTimestamp": time, "count": 1,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kind::Kind;
    use bellwether_runtime::ObjectKey;

    fn event(message: &str) -> Event {
        let subject = Reference {
            kind: Kind::Pod,
            key: ObjectKey::new("a", "p"),
            uid: "u".to_owned(),
        };
        Event::normal(subject, "kubelet", "Started", message)
    }

    #[test]
    fn the_same_news_is_counted() {
        let mut recorder = Recorder::default();
        let event = event("Container started");
        let now = Timestamp::UNIX_EPOCH;
        let Some(Writing::New(object)) = recorder.write(&event, now) else {
            panic!("it is new");
        };
        let name = object["metadata"]["name"].as_str().unwrap().to_owned();
        let again = recorder.write(&event, now);
        let patch = json!({"count": 2, "lastTimestamp": "1970-01-01T00:00:00Z"});
        assert_eq!(again, Some(Writing::Again(name.clone(), patch)));
        recorder.forget(&event);
        let Some(Writing::New(object)) = recorder.write(&event, now) else {
            panic!("it is new again");
        };
        assert_ne!(object["metadata"]["name"], name, "names are not used twice");
        recorder.forget_subject("u");
        assert!(recorder.told.is_empty());
    }

    #[test]
    fn many_similar_news_share_an_event() {
        let mut recorder = Recorder::default();
        let mut now = Timestamp::UNIX_EPOCH;
        for number in 0..9 {
            let written = recorder.write(&event(&number.to_string()), now);
            assert!(matches!(written, Some(Writing::New(_))), "{number}");
        }
        let Some(Writing::New(shared)) = recorder.write(&event("9"), now) else {
            panic!("it is the first that is shared");
        };
        assert_eq!(shared["message"], "(combined from similar events): 9");
        let Some(Writing::Again(name, patch)) = recorder.write(&event("10"), now) else {
            panic!("it is shared");
        };
        assert_eq!(shared["metadata"]["name"], name);
        assert_eq!(
            (&patch["count"], &patch["message"]),
            (&json!(2), &json!("(combined from similar events): 10"))
        );
        now = now + SIMILAR_WITHIN + SignedDuration::from_secs(1);
        let Some(Writing::New(alone)) = recorder.write(&event("11"), now) else {
            panic!("it is new");
        };
        assert_eq!(alone["message"], "11");
    }

    #[test]
    fn who_says_too_much_is_not_heard() {
        let mut recorder = Recorder::default();
        let start = Timestamp::UNIX_EPOCH;
        let heard =
            |recorder: &mut Recorder, now: Timestamp| recorder.write(&event("x"), now).is_some();
        assert_eq!((0..40).filter(|_| heard(&mut recorder, start)).count(), 25);
        assert!(!heard(&mut recorder, start + SignedDuration::from_mins(4)));
        assert!(heard(&mut recorder, start + SignedDuration::from_mins(5)));
        assert!(!heard(&mut recorder, start + SignedDuration::from_mins(6)));
    }
}
