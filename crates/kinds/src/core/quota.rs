//! ResourceQuotas and LimitRanges: served as data; nothing is counted or limited.

use jiff::Timestamp;
use k8s_openapi::api::core::v1::{LimitRange, ResourceQuota};
use serde_json::Value;

use crate::columns::{AGE, NAME, NAME_AND_CREATION, age, name, name_and_creation, words};
use crate::resource::STATUS;
use crate::value::{at, entries, items, object, text};
use crate::{Column, Resource};

pub(crate) const RESOURCE_QUOTA: Resource = Resource {
    short_names: &["quota"],
    subresources: &[STATUS],
    columns: COLUMNS,
    row,
    ..Resource::namespaced::<ResourceQuota>("", "v1", "ResourceQuota", "resourcequotas")
};

pub(crate) const LIMIT_RANGE: Resource = Resource {
    short_names: &["limits"],
    create_on_update: true,
    default: default_limits,
    columns: NAME_AND_CREATION,
    row: name_and_creation,
    ..Resource::namespaced::<LimitRange>("", "v1", "LimitRange", "limitranges")
};

/// Fills in limits and requests of containers from one another.
fn default_limits(object: &mut Value) {
    for item in items(object, &["spec", "limits"]) {
        if text(item, &["type"]) != "Container" {
            continue;
        }
        for (target, source) in [
            ("default", "max"),
            ("defaultRequest", "default"),
            ("defaultRequest", "min"),
        ] {
            let Value::Object(source) = at(item, &[source]).clone() else {
                continue;
            };
            let Some(target) = self::object(item, &[target]) else {
                continue;
            };
            for (name, quantity) in source {
                target.entry(name).or_insert(quantity);
            }
        }
    }
}

const COLUMNS: &[Column] = &[
    NAME,
    words("Request", "What is requested, of what may be."),
    words("Limit", "The sum of limits, of what may be."),
    AGE,
];

fn row(object: &Value, now: Timestamp) -> Vec<Value> {
    let used = at(object, &["status", "used"]);
    let (mut requests, mut limits) = (Vec::new(), Vec::new());
    for (resource, hard) in entries(object, &["status", "hard"]) {
        let used = match text(used, &[resource]) {
            "" => "0",
            used => used,
        };
        let shown = format!("{resource}: {used}/{}", hard.as_str().unwrap_or_default());
        if resource.starts_with("limits.") {
            limits.push(shown);
        } else {
            requests.push(shown);
        }
    }
    vec![
        name(object),
        requests.join(", ").into(),
        limits.join(", ").into(),
        age(object, now),
    ]
}
