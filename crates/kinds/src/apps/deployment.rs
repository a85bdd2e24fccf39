//! Deployments.

use jiff::Timestamp;
use k8s_openapi::api::apps::v1::Deployment;
use serde_json::Value;

use crate::columns::{
    AGE, CONTAINERS, IMAGES, NAME, SELECTOR, age, containers, fraction, name, number, words,
};
use crate::core::pod;
use crate::resource::{ALL, SCALE, STATUS};
use crate::value::{Fill, at, empty, existing, int, restore_at, text};
use crate::{Column, Generation, Resource, selector};

/// The strategy that replaces pods little by little.
const ROLLING: &str = "RollingUpdate";

pub(crate) const RESOURCE: Resource = Resource {
    short_names: &["deploy"],
    categories: ALL,
    subresources: &[SCALE, STATUS],
    generation: Generation::SpecAndAnnotations,
    default,
    prepare_part,
    columns: COLUMNS,
    row,
    ..Resource::namespaced::<Deployment>("apps", "v1", "Deployment", "deployments")
};

fn default(object: &mut Value) {
    if let Some(spec) = existing(object, &["spec"]) {
        spec.fill("replicas", 1);
        spec.fill("revisionHistoryLimit", 10);
        spec.fill("progressDeadlineSeconds", 600);
    }
    if let Some(strategy) = existing(object, &["spec", "strategy"]) {
        strategy.fill_zero("type", ROLLING);
        if strategy.get("type") == Some(&ROLLING.into()) {
            strategy.fill("rollingUpdate", empty());
        }
    }
    let rolling = text(object, &["spec", "strategy", "type"]) == ROLLING;
    if let Some(update) = existing(object, &["spec", "strategy", "rollingUpdate"])
        && rolling
    {
        update.fill("maxUnavailable", "25%");
        update.fill("maxSurge", "25%");
    }
    pod::template(object, &["spec", "template"]);
}

/// Labels are copied to ReplicaSets: a status writer must not change them.
fn prepare_part(part: &str, new: &mut Value, old: &Value, _now: Timestamp) {
    if part == "status" {
        restore_at(new, old, &["metadata"], "labels");
    }
}

const COLUMNS: &[Column] = &[
    NAME,
    words("Ready", "Pods that are ready, of those wanted."),
    words("Up-to-date", "Pods that have the current template."),
    words("Available", "Pods that have been ready for long enough."),
    AGE,
    CONTAINERS,
    IMAGES,
    SELECTOR,
];

fn row(object: &Value, now: Timestamp) -> Vec<Value> {
    let [names, images] = containers(at(object, &["spec", "template", "spec"]));
    vec![
        name(object),
        fraction(
            int(object, &["status", "readyReplicas"]),
            int(object, &["spec", "replicas"]),
        ),
        number(object, &["status", "updatedReplicas"]),
        number(object, &["status", "availableReplicas"]),
        age(object, now),
        names,
        images,
        selector::format(at(object, &["spec", "selector"])).into(),
    ]
}
