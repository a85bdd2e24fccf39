//! StatefulSets.

use jiff::Timestamp;
use k8s_openapi::api::apps::v1::StatefulSet;
use serde_json::Value;

use crate::columns::{AGE, CONTAINERS, IMAGES, NAME, age, containers, fraction, name, words};
use crate::resource::{ALL, SCALE, STATUS};
use crate::value::{at, int};
use crate::{Column, Generation, Resource};

pub(crate) const RESOURCE: Resource = Resource {
    short_names: &["sts"],
    categories: ALL,
    subresources: &[SCALE, STATUS],
    generation: Generation::Spec,
    columns: COLUMNS,
    row,
    ..Resource::namespaced::<StatefulSet>("apps", "v1", "StatefulSet", "statefulsets")
};

const COLUMNS: &[Column] = &[
    NAME,
    words("Ready", "Pods that are ready, of those wanted."),
    AGE,
    CONTAINERS,
    IMAGES,
];

fn row(object: &Value, now: Timestamp) -> Vec<Value> {
    let [names, images] = containers(at(object, &["spec", "template", "spec"]));
    vec![
        name(object),
        fraction(
            int(object, &["status", "readyReplicas"]),
            int(object, &["spec", "replicas"]),
        ),
        age(object, now),
        names,
        images,
    ]
}
