//! Events as people see them: the same news is told once, and counted.

use std::collections::HashMap;

use bellwether_json::time::format_time;
use jiff::Timestamp;
use serde_json::{Value, json};

use crate::hash::fnv32;
use crate::plan::{Event, Severity};

/// How many events are remembered for counting. Beyond that a repeated one is told anew.
const REMEMBERED: usize = 4096;

/// What has been told of a cluster.
#[derive(Debug, Default)]
pub(crate) struct Recorder {
    /// Name and count of events.
    told: HashMap<Event, (String, u32)>,
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
    /// How to write an event that happens now.
    pub(crate) fn write(&mut self, event: &Event, now: Timestamp) -> Writing {
        if let Some((name, count)) = self.told.get_mut(event) {
            *count = count.saturating_add(1);
            let patch = json!({"count": *count, "lastTimestamp": format_time(now)});
            return Writing::Again(name.clone(), patch);
        }
        if self.told.len() >= REMEMBERED {
            self.told.clear();
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
        let written = describe(event, &name, now);
        self.told.insert(event.clone(), (name, 1));
        Writing::New(written)
    }

    /// The object of an event is gone: the next time it is new.
    pub(crate) fn forget(&mut self, event: &Event) {
        self.told.remove(event);
    }

    /// Nothing more will happen to an object.
    pub(crate) fn forget_subject(&mut self, uid: &str) {
        self.told.retain(|event, _| event.subject.uid != uid);
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
    use crate::kind::{Kind, Reference};
    use bellwether_runtime::ObjectKey;

    #[test]
    fn the_same_news_is_counted() {
        let mut recorder = Recorder::default();
        let subject = Reference {
            kind: Kind::Pod,
            key: ObjectKey::new("a", "p"),
            uid: "u".to_owned(),
        };
        let event = Event::normal(subject, "kubelet", "Started", "Container started");
        let now = Timestamp::UNIX_EPOCH;
        let Writing::New(object) = recorder.write(&event, now) else {
            panic!("it is new");
        };
        let name = object["metadata"]["name"].as_str().unwrap().to_owned();
        let again = recorder.write(&event, now);
        let patch = json!({"count": 2, "lastTimestamp": "1970-01-01T00:00:00Z"});
        assert_eq!(again, Writing::Again(name.clone(), patch));
        recorder.forget(&event);
        let Writing::New(object) = recorder.write(&event, now) else {
            panic!("it is new again");
        };
        assert_ne!(object["metadata"]["name"], name, "names are not used twice");
        recorder.forget_subject("u");
        assert!(recorder.told.is_empty());
    }
}
