//! PodTemplates.

use bellwether_schema::FieldPath;
use jiff::Timestamp;
use k8s_openapi::api::core::v1::PodTemplate;
use serde_json::Value;

use crate::columns::{NAME, containers, labels, name, words};
use crate::core::pod;
use crate::value::at;
use crate::{Column, Generation, Resource};

pub(crate) const RESOURCE: Resource = Resource {
    generation: Generation::Spec,
    returns_deleted: true,
    validate: |new, _, errors| {
        let path = FieldPath::new("template");
        pod::validate_template(at(new, &["template"]), &path, errors);
    },
    default: |object| pod::template(object, &["template"]),
    columns: COLUMNS,
    row,
    ..Resource::namespaced::<PodTemplate>("", "v1", "PodTemplate", "podtemplates")
};

const COLUMNS: &[Column] = &[
    NAME,
    words("Containers", "Names of the containers."),
    words("Images", "Images of the containers."),
    words("Pod Labels", "Labels of the pods."),
];

fn row(object: &Value, _now: Timestamp) -> Vec<Value> {
    let [names, images] = containers(at(object, &["template", "spec"]));
    let pod_labels = labels(at(object, &["template", "metadata", "labels"]));
    vec![name(object), names, images, pod_labels]
}
