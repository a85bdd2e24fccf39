//! What a decision comes to: things to do, in order, and when to reconcile again.

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde_json::{Map, Value, json};

use crate::kind::{Kind, Object, Reference};

/// Everything that will be done, in order. An empty plan means that all is well.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Plan {
    pub(crate) actions: Vec<Action>,
    /// When to reconcile again, if nothing changes before.
    pub(crate) wake: Option<Timestamp>,
}

/// One thing to do.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Action {
    /// Writes a new object.
    Create(Box<Create>),
    /// Changes an object, or its status, by a merge patch.
    Patch {
        subject: Reference,
        part: Part,
        patch: Value,
    },
    /// Deletes an object; a pod with this grace period.
    Delete {
        subject: Reference,
        grace: Option<i64>,
    },
    /// Says on which node a pod goes.
    Bind { pod: Reference, node: String },
    /// Tells people.
    RecordEvent(Event),
}

/// A part of an object that is written on its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Part {
    Main,
    Status,
    Scale,
}

/// An object to be created, on whose behalf, and what its owner has to say about it.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Create {
    pub(crate) kind: Kind,
    pub(crate) namespace: String,
    pub(crate) object: Value,
    /// Who wants it: it gets an event if it cannot be created.
    pub(crate) owner: Option<Reference>,
    /// Told when it has been created; the name of the new object takes the place of `{}`.
    pub(crate) event: Option<Event>,
    /// Told when it could not be created; the reason takes the place of `{}`.
    pub(crate) failed: Option<Event>,
}

/// An event for people.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Event {
    pub(crate) subject: Reference,
    pub(crate) severity: Severity,
    pub(crate) reason: &'static str,
    pub(crate) message: String,
    pub(crate) source: Source,
    /// The part of the subject that it is about: `spec.containers{web}`.
    pub(crate) field_path: Option<String>,
}

/// Whether an event is good or bad news.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Severity {
    Normal,
    Warning,
}

/// The component that an event seems to come from, and its node.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Source {
    pub(crate) component: &'static str,
    pub(crate) node: Option<String>,
}

impl Source {
    pub(crate) fn component(component: &'static str) -> Self {
        Self {
            component,
            node: None,
        }
    }
}

impl Event {
    /// Good news of a component.
    pub(crate) fn normal(
        subject: Reference,
        component: &'static str,
        reason: &'static str,
        message: impl Into<String>,
    ) -> Self {
        Self {
            subject,
            severity: Severity::Normal,
            reason,
            message: message.into(),
            source: Source::component(component),
            field_path: None,
        }
    }

    /// Bad news of a component.
    pub(crate) fn warning(
        subject: Reference,
        component: &'static str,
        reason: &'static str,
        message: impl Into<String>,
    ) -> Self {
        Self {
            severity: Severity::Warning,
            ..Self::normal(subject, component, reason, message)
        }
    }
}

impl Plan {
    /// Creates an object.
    pub(crate) fn create<K: Object>(
        &mut self,
        object: &K,
        owner: Option<Reference>,
        event: Option<Event>,
        failed: Option<Event>,
    ) {
        let namespace = object.metadata().namespace.clone().unwrap_or_default();
        self.actions.push(Action::Create(Box::new(Create {
            kind: K::SORT,
            namespace,
            object: to_json(object),
            owner,
            event,
            failed,
        })));
    }

    /// Changes an object outside its status.
    pub(crate) fn patch<K: Object>(&mut self, object: &K, patch: Value) {
        self.actions.push(Action::Patch {
            subject: Reference::to(object),
            part: Part::Main,
            patch,
        });
    }

    /// Makes the status of an object what it should be; nothing if it is that already.
    pub(crate) fn status<K: Object, S: serde::Serialize>(&mut self, object: &K, old: &S, new: &S) {
        self.status_with(object, old, new, json!({}));
    }

    /// The same, for an object that is known only by its reference.
    pub(crate) fn status_of<S: serde::Serialize>(&mut self, subject: Reference, old: &S, new: &S) {
        self.write_status(subject, old, new, json!({}));
    }

    /// The same, with a change of metadata in the same write.
    pub(crate) fn status_with<K: Object, S: serde::Serialize>(
        &mut self,
        object: &K,
        old: &S,
        new: &S,
        metadata: Value,
    ) {
        self.write_status(Reference::to(object), old, new, metadata);
    }

    fn write_status<S: serde::Serialize>(
        &mut self,
        subject: Reference,
        old: &S,
        new: &S,
        metadata: Value,
    ) {
        let difference = difference(&to_json(old), &to_json(new));
        let mut patch = Map::new();
        if let Some(difference) = difference {
            patch.insert("status".to_owned(), difference);
        }
        if metadata
            .as_object()
            .is_some_and(|fields| !fields.is_empty())
        {
            patch.insert("metadata".to_owned(), metadata);
        }
        if !patch.is_empty() {
            self.actions.push(Action::Patch {
                subject,
                part: Part::Status,
                patch: Value::Object(patch),
            });
        }
    }

    /// Deletes an object.
    pub(crate) fn delete<K: Object>(&mut self, object: &K) {
        self.actions.push(Action::Delete {
            subject: Reference::to(object),
            grace: None,
        });
    }

    /// Tells people.
    pub(crate) fn record_event(&mut self, event: Event) {
        self.actions.push(Action::RecordEvent(event));
    }

    /// Looks again at that time, or before.
    pub(crate) fn wake_at(&mut self, time: Timestamp) {
        self.wake = Some(self.wake.map_or(time, |known| known.min(time)));
    }

    /// Makes an object a dependent of a controller.
    pub(crate) fn adopt<K: Object>(&mut self, object: &K, owner: &Reference) {
        let mut owners = owners(object.metadata());
        owners.push(to_json(&owner.controller()));
        self.patch(object, json!({"metadata": {"ownerReferences": owners}}));
    }

    /// Makes an object forget its controller.
    pub(crate) fn release<K: Object>(&mut self, object: &K, owner: &Reference) {
        let mut owners = owners(object.metadata());
        owners.retain(|found| found["uid"] != *owner.uid);
        self.patch(object, json!({"metadata": {"ownerReferences": owners}}));
    }
}

fn owners(metadata: &ObjectMeta) -> Vec<Value> {
    let owners = metadata.owner_references.as_deref().unwrap_or_default();
    owners.iter().map(to_json).collect()
}

/// A value of Kubernetes' types as JSON.
pub(crate) fn to_json<T: serde::Serialize>(value: &T) -> Value {
    // These types have string keys only, so there is nothing that JSON could not say.
    serde_json::to_value(value).unwrap_or_default()
}

/// The merge patch that turns one value into another; nothing if they are the same.
pub(crate) fn difference(old: &Value, new: &Value) -> Option<Value> {
    if old == new {
        return None;
    }
    let (Value::Object(old), Value::Object(new)) = (old, new) else {
        return Some(new.clone());
    };
    let mut patch = Map::new();
    for (key, value) in new {
        match old.get(key) {
            Some(before) => {
                if let Some(change) = difference(before, value) {
                    patch.insert(key.clone(), change);
                }
            }
            None => {
                patch.insert(key.clone(), value.clone());
            }
        }
    }
    for key in old.keys().filter(|key| !new.contains_key(*key)) {
        patch.insert(key.clone(), Value::Null);
    }
    Some(Value::Object(patch))
}

/// For the tests of decisions.
#[cfg(test)]
pub(crate) mod test {
    use serde_json::{Value, json};

    /// Applies a merge patch.
    pub(crate) fn merge(target: &mut Value, patch: &Value) {
        let Value::Object(patch) = patch else {
            *target = patch.clone();
            return;
        };
        if !target.is_object() {
            *target = json!({});
        }
        for (key, value) in patch {
            if value.is_null() {
                if let Some(fields) = target.as_object_mut() {
                    fields.remove(key);
                }
            } else {
                merge(&mut target[key], value);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(old: &Value, new: &Value, expected: Option<Value>) {
        assert_eq!(difference(old, new), expected);
    }

    #[test]
    fn a_difference_names_what_changed_and_what_went() {
        check(&json!({"a": 1}), &json!({"a": 1}), None);
        check(
            &json!({"a": 1, "gone": 2, "deep": {"x": 1, "y": 2}}),
            &json!({"a": 1, "new": [1], "deep": {"x": 1}}),
            Some(json!({"new": [1], "gone": null, "deep": {"y": null}})),
        );
        check(&json!(null), &json!({"a": 1}), Some(json!({"a": 1})));
        check(
            &json!({"l": [1, 2]}),
            &json!({"l": [1]}),
            Some(json!({"l": [1]})),
        );
    }
}
