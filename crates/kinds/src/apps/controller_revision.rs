//! ControllerRevisions: past templates of DaemonSets and StatefulSets.

use jiff::Timestamp;
use k8s_openapi::api::apps::v1::ControllerRevision;
use serde_json::Value;

use crate::columns::{AGE, NAME, age, name, number, words};
use crate::value::{flag, list, text};
use crate::{Column, Resource};

pub(crate) const RESOURCE: Resource = Resource {
    columns: COLUMNS,
    row,
    ..Resource::namespaced::<ControllerRevision>(
        "apps",
        "v1",
        "ControllerRevision",
        "controllerrevisions",
    )
};

const COLUMNS: &[Column] = &[
    NAME,
    words("Controller", "The object whose template this was."),
    words("Revision", "The number of the revision."),
    AGE,
];

fn row(object: &Value, now: Timestamp) -> Vec<Value> {
    vec![
        name(object),
        controller(object).into(),
        number(object, &["revision"]),
        age(object, now),
    ]
}

/// The controlling owner: `statefulset.apps/web`.
fn controller(object: &Value) -> String {
    let owners = list(object, &["metadata", "ownerReferences"]);
    let Some(owner) = owners.iter().find(|owner| flag(owner, &["controller"])) else {
        return "<none>".to_owned();
    };
    let kind = text(owner, &["kind"]).to_lowercase();
    let name = text(owner, &["name"]);
    match text(owner, &["apiVersion"]).split_once('/') {
        Some((group, _)) => format!("{kind}.{group}/{name}"),
        None => format!("{kind}/{name}"),
    }
}
