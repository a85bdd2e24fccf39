//! Events, in the core group and in `events.k8s.io`, over one storage.

use bellwether_schema::{FieldError, FieldPath};
use jiff::Timestamp;
use k8s_openapi::api::{core, events};
use serde_json::Value;

use crate::check::{self, Errors};
use crate::columns::{cell, since, wide, words};
use crate::resource::Storage;
use crate::value::{Fill, at, has, int, is_zero, text};
use crate::{Column, FieldSelector, Resource};

/// Events of the core group, in which they are stored.
pub(crate) const CORE: Resource = Resource {
    short_names: &["ev"],
    create_on_update: true,
    field_selectors: CORE_SELECTORS,
    validate: validate_core,
    columns: COLUMNS,
    row,
    ..Resource::namespaced::<core::v1::Event>("", "v1", "Event", "events")
};

/// The same events under newer names.
pub(crate) const EVENTS: Resource = Resource {
    short_names: &["ev"],
    create_on_update: true,
    storage: Storage {
        group: "",
        version: "v1",
    },
    field_selectors: EVENTS_SELECTORS,
    to_storage,
    from_storage,
    validate: validate_new,
    columns: COLUMNS,
    row,
    ..Resource::namespaced::<events::v1::Event>("events.k8s.io", "v1", "Event", "events")
};

/// Names of fields in `events.k8s.io`, and in the core group.
const RENAMED: &[(&str, &str)] = &[
    ("regarding", "involvedObject"),
    ("note", "message"),
    ("reportingController", "reportingComponent"),
    ("deprecatedSource", "source"),
    ("deprecatedFirstTimestamp", "firstTimestamp"),
    ("deprecatedLastTimestamp", "lastTimestamp"),
    ("deprecatedCount", "count"),
];

fn to_storage(object: &mut Value) {
    rename(object, "v1", RENAMED.iter().map(|(new, old)| (*new, *old)));
    if let Some(event) = object.as_object_mut() {
        // The core group always writes these two.
        event.fill("reportingComponent", "");
        event.fill("reportingInstance", "");
    }
}

fn from_storage(object: &mut Value) {
    let names = RENAMED.iter().map(|(new, old)| (*old, *new));
    rename(object, "events.k8s.io/v1", names);
    if let Some(event) = object.as_object_mut() {
        for name in [
            "note",
            "reportingController",
            "reportingInstance",
            "deprecatedCount",
        ] {
            if event.get(name).is_some_and(is_zero) {
                event.remove(name);
            }
        }
    }
}

fn rename<'a>(object: &mut Value, version: &str, names: impl Iterator<Item = (&'a str, &'a str)>) {
    let Some(event) = object.as_object_mut() else {
        return;
    };
    for (from, to) in names {
        if let Some(value) = event.remove(from) {
            event.insert(to.to_owned(), value);
        }
    }
    if event.contains_key("apiVersion") {
        event.insert("apiVersion".to_owned(), version.into());
    }
}

fn validate_core(new: &Value, _old: Option<&Value>, errors: &mut Errors) {
    validate_common(new, "reportingComponent", errors);
}

/// Checks an event that came through `events.k8s.io`, whose rules are stricter.
fn validate_new(new: &Value, old: Option<&Value>, errors: &mut Errors) {
    validate_common(new, "reportingController", errors);
    if let Some(old) = old {
        for field in FIXED {
            check::immutable(errors, new, old, &[field], &FieldPath::new(field));
        }
        return;
    }
    let series = at(new, &["series"]);
    if series.is_object() {
        if int(series, &["count"]) < 2 {
            let path = FieldPath::new("series.count");
            errors.push(FieldError::invalid(&path, "", "should be at least 2"));
        }
        if !has(series, &["lastObservedTime"]) {
            errors.push(FieldError::required(
                &FieldPath::new("series.lastObservedTime"),
                "",
            ));
        }
    }
    if !has(new, &["eventTime"]) {
        errors.push(FieldError::required(&FieldPath::new("eventTime"), ""));
    }
    let kind = text(new, &["type"]);
    if !matches!(kind, "Normal" | "Warning") {
        let detail = format!("has invalid value: {kind}");
        errors.push(FieldError::invalid(&FieldPath::new("type"), "", detail));
    }
    for field in ["firstTimestamp", "lastTimestamp", "count", "source"] {
        if !is_zero(at(new, &[field])) {
            errors.push(FieldError::invalid(
                &FieldPath::new(field),
                "",
                "needs to be unset",
            ));
        }
    }
}

/// What does not change about an event.
const FIXED: &[&str] = &[
    "involvedObject",
    "reason",
    "message",
    "source",
    "firstTimestamp",
    "lastTimestamp",
    "count",
    "type",
    "eventTime",
    "action",
    "related",
    "reportingComponent",
    "reportingInstance",
];

fn validate_common(new: &Value, controller_field: &str, errors: &mut Errors) {
    let namespace = text(new, &["metadata", "namespace"]);
    let involved = text(new, &["involvedObject", "namespace"]);
    let timed = has(new, &["eventTime"]);
    let fits = match (timed, involved) {
        (false, "") => matches!(namespace, "" | "default"),
        (false, _) => involved == namespace,
        (true, "") => matches!(namespace, "default" | "kube-system"),
        (true, _) => true,
    };
    if !fits {
        let path = FieldPath::new("involvedObject");
        let detail = "does not match event.namespace";
        errors.push(FieldError::invalid(
            &path.child("namespace"),
            involved,
            detail,
        ));
    }
    if timed {
        let controller = text(new, &["reportingComponent"]);
        let path = FieldPath::new(controller_field);
        if controller.is_empty() {
            errors.push(FieldError::required(&path, ""));
        }
        check::qualified_name(errors, &path, controller);
        for (field, longest) in [("reportingInstance", 128), ("action", 128), ("reason", 128)] {
            let path = FieldPath::new(field);
            let found = text(new, &[field]);
            if found.is_empty() {
                errors.push(FieldError::required(&path, ""));
            }
            too_many_characters(found, longest, &path, errors);
        }
        let path = FieldPath::new("message");
        too_many_characters(text(new, &["message"]), 1024, &path, errors);
    }
    check::subdomain(errors, &FieldPath::new("namespace"), namespace);
}

fn too_many_characters(found: &str, longest: usize, path: &FieldPath<'_>, errors: &mut Errors) {
    if found.len() > longest {
        let detail = format!("can have at most {longest} characters");
        errors.push(FieldError::invalid(path, "", detail));
    }
}

macro_rules! involved {
    ($prefix:literal, $($field:literal),+) => {
        &[
            $(FieldSelector {
                label: concat!($prefix, ".", $field),
                paths: &[&["involvedObject", $field]],
                absent: "",
            },)+
            FieldSelector {
                label: "reason",
                paths: &[&["reason"]],
                absent: "",
            },
            FieldSelector {
                label: "type",
                paths: &[&["type"]],
                absent: "",
            },
            FieldSelector {
                label: "reportingComponent",
                paths: &[&["reportingComponent"]],
                absent: "",
            },
            FieldSelector {
                label: "reportingController",
                paths: &[&["reportingComponent"]],
                absent: "",
            },
            FieldSelector {
                label: "source",
                paths: &[&["source", "component"], &["reportingComponent"]],
                absent: "",
            },
        ]
    };
}

/// Selectors read objects as they are stored, whatever version the request is in.
const CORE_SELECTORS: &[FieldSelector] = involved!(
    "involvedObject",
    "kind",
    "namespace",
    "name",
    "uid",
    "apiVersion",
    "resourceVersion",
    "fieldPath"
);

const EVENTS_SELECTORS: &[FieldSelector] = involved!(
    "regarding",
    "kind",
    "namespace",
    "name",
    "uid",
    "apiVersion",
    "resourceVersion",
    "fieldPath"
);

const COLUMNS: &[Column] = &[
    words("Last Seen", "Time since it happened last."),
    words("Type", "Normal or Warning."),
    words("Reason", "What happened, in one word."),
    words("Object", "What it happened to."),
    wide("Subobject", "The part of the object."),
    wide("Source", "Who reports it."),
    words("Message", "What happened."),
    wide("First Seen", "Time since it happened first."),
    wide("Count", "How often it happened."),
    Column {
        format: "name",
        ..wide("Name", "Name of the event.")
    },
];

/// Cells of an event as it is stored.
fn row(object: &Value, now: Timestamp) -> Vec<Value> {
    let first = if has(object, &["firstTimestamp"]) {
        since(at(object, &["firstTimestamp"]), now)
    } else {
        since(at(object, &["eventTime"]), now)
    };
    let series = at(object, &["series"]);
    let (last, count) = if series.is_object() {
        let last = since(at(series, &["lastObservedTime"]), now);
        (last, int(series, &["count"]))
    } else if has(object, &["lastTimestamp"]) {
        let last = since(at(object, &["lastTimestamp"]), now);
        (last, int(object, &["count"]).max(1))
    } else {
        (first.clone(), int(object, &["count"]).max(1))
    };
    let involved = at(object, &["involvedObject"]);
    let kind = text(involved, &["kind"]).to_lowercase();
    let target = match text(involved, &["name"]) {
        "" => kind,
        name => format!("{kind}/{name}"),
    };
    vec![
        last.into(),
        cell(object, &["type"]),
        cell(object, &["reason"]),
        target.into(),
        cell(involved, &["fieldPath"]),
        source(object).into(),
        text(object, &["message"]).trim().into(),
        first.into(),
        count.into(),
        cell(object, &["metadata", "name"]),
    ]
}

fn source(object: &Value) -> String {
    let first = |one: &[&str], other: &str| match text(object, one) {
        "" => text(object, &[other]).to_owned(),
        found => found.to_owned(),
    };
    let component = first(&["source", "component"], "reportingComponent");
    let instance = first(&["source", "host"], "reportingInstance");
    if instance.is_empty() {
        component
    } else {
        format!("{component}, {instance}")
    }
}
