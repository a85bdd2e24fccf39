//! DaemonSets.

use jiff::Timestamp;
use k8s_openapi::api::apps::v1::DaemonSet;
use serde_json::Value;

use crate::columns::{
    AGE, CONTAINERS, IMAGES, NAME, SELECTOR, age, column, containers, label_selector, labels, name,
    number, words,
};
use crate::resource::{ALL, STATUS};
use crate::value::at;
use crate::{Column, Generation, Resource};

pub(crate) const RESOURCE: Resource = Resource {
    short_names: &["ds"],
    categories: ALL,
    subresources: &[STATUS],
    generation: Generation::Spec,
    columns: COLUMNS,
    row,
    ..Resource::namespaced::<DaemonSet>("apps", "v1", "DaemonSet", "daemonsets")
};

const COLUMNS: &[Column] = &[
    NAME,
    column("Desired", "integer", "Nodes that should run the pod."),
    column("Current", "integer", "Nodes that run the pod."),
    column("Ready", "integer", "Nodes whose pod is ready."),
    column(
        "Up-to-date",
        "integer",
        "Nodes whose pod has the current template.",
    ),
    column(
        "Available",
        "integer",
        "Nodes whose pod has been ready for long enough.",
    ),
    words(
        "Node Selector",
        "Labels of the nodes that should run the pod.",
    ),
    AGE,
    CONTAINERS,
    IMAGES,
    SELECTOR,
];

fn row(object: &Value, now: Timestamp) -> Vec<Value> {
    let pod_spec = at(object, &["spec", "template", "spec"]);
    let [names, images] = containers(pod_spec);
    vec![
        name(object),
        number(object, &["status", "desiredNumberScheduled"]),
        number(object, &["status", "currentNumberScheduled"]),
        number(object, &["status", "numberReady"]),
        number(object, &["status", "updatedNumberScheduled"]),
        number(object, &["status", "numberAvailable"]),
        labels(at(pod_spec, &["nodeSelector"])),
        age(object, now),
        names,
        images,
        label_selector(at(object, &["spec", "selector"])),
    ]
}
