//! ControllerRevisions: past templates of DaemonSets and StatefulSets.

use bellwether_schema::{FieldError, FieldPath};
use jiff::Timestamp;
use k8s_openapi::api::apps::v1::ControllerRevision;
use serde_json::Value;

use crate::check::{self, Errors};
use crate::columns::{AGE, NAME, age, name, number, words};
use crate::value::{at, flag, list, text};
use crate::{Column, Resource};

pub(crate) const RESOURCE: Resource = Resource {
    validate,
    revalidates: true,
    columns: COLUMNS,
    row,
    ..Resource::namespaced::<ControllerRevision>(
        "apps",
        "v1",
        "ControllerRevision",
        "controllerrevisions",
    )
};

fn validate(new: &Value, old: Option<&Value>, errors: &mut Errors) {
    let path = FieldPath::new("data");
    check::not_negative(errors, new, &FieldPath::NIL, "revision");
    match old {
        Some(old) => check::immutable(errors, new, old, &["data"], &path),
        None if at(new, &["data"]).is_null() => {
            errors.push(FieldError::required(&path, "data is mandatory"));
        }
        None if !at(new, &["data"]).is_object() => {
            errors.push(FieldError::required(
                &path,
                "data must be a valid JSON object",
            ));
        }
        None => {}
    }
}

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
