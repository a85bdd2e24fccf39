//! Events as the components of a cluster record them; `bellwether_runtime` decides how they are written.

use std::borrow::Cow;

use bellwether_runtime::{EventDraft, EventType, Occurrence};
use k8s_openapi::api::core::v1::ObjectReference;

use crate::plan::{Event, Severity};

/// Calls a function with an event in the form that the correlator takes.
pub(crate) fn as_occurrence<T>(event: &Event, run: impl FnOnce(&Occurrence<'_>) -> T) -> T {
    let subject = &event.subject;
    let namespace = &subject.key.namespace;
    let about = ObjectReference {
        api_version: Some(subject.kind.api_version()),
        kind: Some(subject.kind.names().kind.to_owned()),
        namespace: (!namespace.is_empty()).then(|| namespace.to_string()),
        name: Some(subject.key.name.to_string()),
        uid: Some(subject.uid.clone()),
        field_path: event.field_path.clone(),
        ..ObjectReference::default()
    };
    let draft = EventDraft {
        event_type: match event.severity {
            Severity::Normal => EventType::Normal,
            Severity::Warning => EventType::Warning,
        },
        reason: Cow::Borrowed(event.reason),
        message: event.message.clone(),
    };
    run(&Occurrence {
        about: &about,
        draft: &draft,
        component: event.source.component,
        host: event.source.node.as_deref(),
    })
}
