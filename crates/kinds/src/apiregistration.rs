//! The `apiregistration.k8s.io` group: APIServices, served as data; requests are not forwarded.

use bellwether_schema::{FieldError, FieldPath};
use jiff::Timestamp;
use k8s_openapi::kube_aggregator::pkg::apis::apiregistration::v1::APIService;
use serde_json::Value;

use crate::check::Errors;
use crate::columns::{AGE, NAME, age, name, words};
use crate::resource::{API_EXTENSIONS, STATUS};
use crate::value::{Fill, at, existing, int, list, text};
use crate::{Column, Resource};

pub(crate) const API_SERVICE: Resource = Resource {
    categories: API_EXTENSIONS,
    subresources: &[STATUS],
    unconditional_update: false,
    default,
    validate,
    columns: COLUMNS,
    row,
    ..Resource::cluster::<APIService>("apiregistration.k8s.io", "v1", "APIService", "apiservices")
};

fn default(object: &mut Value) {
    if let Some(service) = existing(object, &["spec", "service"]) {
        service.fill("port", 443);
    }
}

/// Bounds of priorities, inclusive.
const GROUP_PRIORITY: i64 = 20_000;
const VERSION_PRIORITY: i64 = 1_000;

fn validate(new: &Value, _old: Option<&Value>, errors: &mut Errors) {
    let spec = at(new, &["spec"]);
    let name = text(new, &["metadata", "name"]);
    let expected = format!("{}.{}", text(spec, &["version"]), text(spec, &["group"]));
    if name != expected {
        let path = FieldPath::new("metadata");
        let detail = format!("must be `spec.version+\".\"+spec.group`: {expected:?}");
        errors.push(FieldError::invalid(&path.child("name"), name, detail));
    }
    let path = FieldPath::new("spec");
    for (field, bound) in [
        ("groupPriorityMinimum", GROUP_PRIORITY),
        ("versionPriority", VERSION_PRIORITY),
    ] {
        let priority = int(spec, &[field]);
        if priority <= 0 || priority > bound {
            let detail = format!("must be positive and less than {bound}");
            errors.push(FieldError::invalid(&path.child(field), priority, detail));
        }
    }
}

const COLUMNS: &[Column] = &[
    NAME,
    words("Service", "Who answers requests of the group."),
    words("Available", "Whether it answers."),
    AGE,
];

fn row(object: &Value, now: Timestamp) -> Vec<Value> {
    let service = at(object, &["spec", "service"]);
    let shown = if service.is_null() {
        "Local".to_owned()
    } else {
        format!(
            "{}/{}",
            text(service, &["namespace"]),
            text(service, &["name"])
        )
    };
    let conditions = list(object, &["status", "conditions"]);
    let available = conditions
        .iter()
        .find(|condition| text(condition, &["type"]) == "Available");
    let available = match available {
        None => "Unknown".to_owned(),
        Some(condition) => match (text(condition, &["status"]), text(condition, &["reason"])) {
            ("True", _) => "True".to_owned(),
            (status, reason) => format!("{status} ({reason})"),
        },
    };
    vec![
        name(object),
        shown.into(),
        available.into(),
        age(object, now),
    ]
}
