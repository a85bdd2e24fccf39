//! Deployments.

use jiff::Timestamp;
use k8s_openapi::api::apps::v1::Deployment;
use serde_json::Value;

use crate::columns::{
    AGE, CONTAINERS, IMAGES, NAME, SELECTOR, age, containers, fraction, name, number, words,
};
use crate::resource::{ALL, SCALE, STATUS};
use crate::value::{at, int};
use crate::{Column, Generation, Resource, selector};

pub(crate) const RESOURCE: Resource = Resource {
    short_names: &["deploy"],
    categories: ALL,
    subresources: &[SCALE, STATUS],
    generation: Generation::SpecAndAnnotations,
    columns: COLUMNS,
    row,
    ..Resource::namespaced::<Deployment>("apps", "v1", "Deployment", "deployments")
};

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
