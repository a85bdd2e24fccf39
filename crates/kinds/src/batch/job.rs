//! Jobs.

use jiff::Timestamp;
use k8s_openapi::api::batch::v1::Job;
use serde_json::Value;

use crate::columns::{
    AGE, CONTAINERS, IMAGES, NAME, SELECTOR, age, containers, human, label_selector, name, parse,
    words,
};
use crate::resource::{ALL, STATUS};
use crate::value::{at, has, int, list, text};
use crate::{Column, FieldSelector, Generation, Resource};

pub(crate) const RESOURCE: Resource = Resource {
    categories: ALL,
    subresources: &[STATUS],
    generation: Generation::Spec,
    field_selectors: &[FieldSelector {
        label: "status.successful",
        paths: &[&["status", "succeeded"]],
        absent: "0",
    }],
    columns: COLUMNS,
    row,
    ..Resource::namespaced::<Job>("batch", "v1", "Job", "jobs")
};

const COLUMNS: &[Column] = &[
    NAME,
    words("Status", "How far the job has got."),
    words("Completions", "Pods that succeeded, of those wanted."),
    words("Duration", "Time that the job took so far."),
    AGE,
    CONTAINERS,
    IMAGES,
    SELECTOR,
];

fn row(object: &Value, now: Timestamp) -> Vec<Value> {
    let [names, images] = containers(at(object, &["spec", "template", "spec"]));
    vec![
        name(object),
        status(object).into(),
        completions(object).into(),
        duration(object, now).into(),
        age(object, now),
        names,
        images,
        label_selector(at(object, &["spec", "selector"])),
    ]
}

fn status(object: &Value) -> &'static str {
    let holds = |kind: &str| {
        list(object, &["status", "conditions"])
            .iter()
            .any(|condition| {
                text(condition, &["type"]) == kind && text(condition, &["status"]) == "True"
            })
    };
    if holds("Complete") {
        "Complete"
    } else if holds("Failed") {
        "Failed"
    } else if has(object, &["metadata", "deletionTimestamp"]) {
        "Terminating"
    } else if holds("Suspended") {
        "Suspended"
    } else if holds("FailureTarget") {
        "FailureTarget"
    } else if holds("SuccessCriteriaMet") {
        "SuccessCriteriaMet"
    } else {
        "Running"
    }
}

fn completions(object: &Value) -> String {
    let succeeded = int(object, &["status", "succeeded"]);
    let parallelism = int(object, &["spec", "parallelism"]);
    match at(object, &["spec", "completions"]).as_i64() {
        Some(wanted) => format!("{succeeded}/{wanted}"),
        None if parallelism > 1 => format!("{succeeded}/1 of {parallelism}"),
        None => format!("{succeeded}/1"),
    }
}

fn duration(object: &Value, now: Timestamp) -> String {
    let Some(start) = parse(at(object, &["status", "startTime"])) else {
        return String::new();
    };
    let end = parse(at(object, &["status", "completionTime"])).unwrap_or(now);
    human(end.as_second() - start.as_second())
}
