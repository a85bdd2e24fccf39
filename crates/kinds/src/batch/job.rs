//! Jobs.

mod validate;

use jiff::Timestamp;
use k8s_openapi::api::batch::v1::Job;
use serde_json::{Map, Value};

use crate::columns::{
    AGE, CONTAINERS, IMAGES, NAME, SELECTOR, age, containers, human, label_selector, name, parse,
    words,
};
use crate::core::pod;
use crate::resource::{ALL, STATUS};
use crate::value::{Fill, at, existing, flag, has, int, is_zero, items, list, object, text};
use crate::{Column, Creation, FieldSelector, Generation, Resource};

pub(crate) const RESOURCE: Resource = Resource {
    categories: ALL,
    subresources: &[STATUS],
    generation: Generation::Spec,
    field_selectors: &[FieldSelector {
        label: "status.successful",
        paths: &[&["status", "succeeded"]],
        absent: "0",
    }],
    default,
    prepare_create,
    prepare_update: |new, _| inherit_labels(new),
    validate: validate::job,
    validate_part: validate::part,
    columns: COLUMNS,
    row,
    ..Resource::namespaced::<Job>("batch", "v1", "Job", "jobs")
};

fn default(object: &mut Value) {
    if let Some(spec) = existing(object, &["spec"]) {
        default_spec(spec);
    }
    for rule in items(object, &["spec", "podFailurePolicy", "rules"]) {
        for pattern in items(rule, &["onPodConditions"]) {
            if let Some(pattern) = pattern.as_object_mut() {
                pattern.fill_zero("status", "True");
            }
        }
    }
    pod::template(object, &["spec", "template"]);
}

fn default_spec(spec: &mut Map<String, Value>) {
    let given = |name: &str| spec.get(name).is_some_and(|value| !value.is_null());
    let one_run = !given("completions") && !given("parallelism");
    let retries = if given("backoffLimitPerIndex") {
        i64::from(i32::MAX)
    } else {
        6
    };
    // A policy about failed pods has to see them fail before they are replaced.
    let replacement = if given("podFailurePolicy") {
        "Failed"
    } else {
        "TerminatingOrFailed"
    };
    if one_run {
        spec.insert("completions".to_owned(), 1.into());
    }
    spec.fill("parallelism", 1);
    spec.fill("backoffLimit", retries);
    spec.fill("completionMode", "NonIndexed");
    spec.fill("suspend", false);
    spec.fill("podReplacementPolicy", replacement);
    spec.fill("manualSelector", false);
}

/// Gives the pods labels that no other job's pods have, and selects them.
fn prepare_create(object: &mut Value, creation: &Creation<'_>) {
    if !flag(object, &["spec", "manualSelector"]) {
        generate_selector(object, creation.uid);
    }
    inherit_labels(object);
}

/// A job without labels has those of its pods.
fn inherit_labels(object: &mut Value) {
    let labels = at(object, &["spec", "template", "metadata", "labels"]).clone();
    if !is_zero(&labels)
        && let Some(metadata) = existing(object, &["metadata"])
    {
        metadata.fill_zero("labels", labels);
    }
}

fn generate_selector(object: &mut Value, uid: &str) {
    let name = text(object, &["metadata", "name"]).to_owned();
    if let Some(labels) = self::object(object, &["spec", "template", "metadata", "labels"]) {
        for (key, value) in [
            ("job-name", name.as_str()),
            (JOB_NAME, name.as_str()),
            ("controller-uid", uid),
            (CONTROLLER_UID, uid),
        ] {
            labels.entry(key).or_insert_with(|| value.into());
        }
    }
    if let Some(labels) = self::object(object, &["spec", "selector", "matchLabels"]) {
        labels.entry(CONTROLLER_UID).or_insert_with(|| uid.into());
    }
}

/// The label of a job's pods that names the job.
const JOB_NAME: &str = "batch.kubernetes.io/job-name";
/// The label of a job's pods that tells them from those of any other job.
const CONTROLLER_UID: &str = "batch.kubernetes.io/controller-uid";

pub(crate) use validate::template as validate_template;

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
