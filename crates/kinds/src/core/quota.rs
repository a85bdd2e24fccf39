//! ResourceQuotas and LimitRanges: what they look like. What they do to other objects is in `usage`
//! and `limit_range`.

use std::collections::HashSet;

use bellwether_schema::{FieldError, FieldPath};
use jiff::Timestamp;
use k8s_openapi::api::core::v1::{LimitRange, ResourceQuota};
use serde_json::Value;

use crate::check::{self, Errors};
use crate::columns::{AGE, NAME, NAME_AND_CREATION, age, name, name_and_creation, words};
use crate::core::pod::{resource_amount, resource_name};
use crate::resource::STATUS;
use crate::value::{at, entries, items, list, object, same, text, texts};
use crate::{Column, Resource};

pub(crate) const RESOURCE_QUOTA: Resource = Resource {
    short_names: &["quota"],
    returns_deleted: true,
    validate: validate_quota,
    subresources: &[STATUS],
    columns: COLUMNS,
    row,
    ..Resource::namespaced::<ResourceQuota>("", "v1", "ResourceQuota", "resourcequotas")
};

pub(crate) const LIMIT_RANGE: Resource = Resource {
    short_names: &["limits"],
    create_on_update: true,
    default: default_limits,
    validate: validate_limits,
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

/// Things without a domain in their name that can be counted.
const COUNTED: &[&str] = &[
    "cpu",
    "memory",
    "ephemeral-storage",
    "requests.cpu",
    "requests.memory",
    "requests.storage",
    "requests.ephemeral-storage",
    "limits.cpu",
    "limits.memory",
    "limits.ephemeral-storage",
    "pods",
    "resourcequotas",
    "services",
    "replicationcontrollers",
    "secrets",
    "persistentvolumeclaims",
    "configmaps",
    "services.nodeports",
    "services.loadbalancers",
];
const SCOPES: &[&str] = &[
    "Terminating",
    "NotTerminating",
    "BestEffort",
    "NotBestEffort",
    "PriorityClass",
    "CrossNamespacePodAffinity",
    "VolumeAttributesClass",
];

fn validate_quota(new: &Value, old: Option<&Value>, errors: &mut Errors) {
    let spec_path = FieldPath::new("spec");
    let path = spec_path.child("hard");
    for (name, amount) in entries(new, &["spec", "hard"]) {
        let path = path.key(name);
        let counts = name.starts_with("count/") || name.contains("hugepages-");
        resource_name(name, &path, errors);
        if !name.contains('/') && !counts && !COUNTED.contains(&name.as_str()) {
            let detail = "must be a standard resource for quota";
            errors.push(FieldError::invalid(&path, name.as_str(), detail));
        }
        resource_amount(name, amount, &path, errors);
    }
    let scopes: Vec<_> = texts(new, &["spec", "scopes"]).collect();
    let path = spec_path.child("scopes");
    let value = || at(new, &["spec", "scopes"]).clone();
    for scope in &scopes {
        if !SCOPES.contains(scope) {
            errors.push_with(|| FieldError::invalid(&path, value(), "unsupported scope"));
        }
    }
    for (one, other) in [
        ("BestEffort", "NotBestEffort"),
        ("Terminating", "NotTerminating"),
    ] {
        if scopes.contains(&one) && scopes.contains(&other) {
            errors.push(FieldError::invalid(&path, value(), "conflicting scopes"));
        }
    }
    if let Some(old) = old
        && !same(at(new, &["spec", "scopes"]), at(old, &["spec", "scopes"]))
    {
        errors.push(FieldError::invalid(&path, value(), crate::meta::IMMUTABLE));
    }
}

fn validate_limits(new: &Value, _old: Option<&Value>, errors: &mut Errors) {
    let path = FieldPath::new("spec");
    let path = path.child("limits");
    let limits = list(new, &["spec", "limits"]);
    let mut seen = HashSet::new();
    for (index, limit) in limits.iter().enumerate() {
        let path = path.index(index);
        let kind = text(limit, &["type"]);
        let known = ["Pod", "Container", "PersistentVolumeClaim"];
        if !kind.contains('/') && !known.contains(&kind) {
            let detail = "must be a standard limit type or fully qualified";
            errors.push(FieldError::invalid(&path.child("type"), kind, detail));
        }
        if !seen.insert(kind) {
            errors.push(FieldError::duplicate(&path.child("type"), kind));
        }
        if kind == "Pod" {
            for field in ["default", "defaultRequest"] {
                if entries(limit, &[field]).next().is_some() {
                    let detail = "may not be specified when `type` is 'Pod'";
                    errors.push(FieldError::forbidden(&path.child(field), detail));
                }
            }
        }
        let bounds_storage = ["min", "max"]
            .iter()
            .any(|bound| !at(limit, &[bound, "storage"]).is_null());
        if kind == "PersistentVolumeClaim" && !bounds_storage {
            let detail =
                "either minimum or maximum storage value is required, but neither was provided";
            errors.push(FieldError::required(&path.child("limits"), detail));
        }
        validate_order(limit, &path, errors);
    }
}

/// Checks that amounts do not contradict one another.
fn validate_order(limit: &Value, path: &FieldPath<'_>, errors: &mut Errors) {
    const LIMITS: &[Order] = &[
        Order::of("min", "min", ["min", "min value"], ["max", "max value"]),
        Order::of(
            "defaultRequest",
            "defaultRequest",
            ["min", "min value"],
            REQUEST,
        ),
        Order::of(
            "defaultRequest",
            "defaultRequest",
            REQUEST,
            ["max", "max value"],
        ),
        Order::of(
            "defaultRequest",
            "defaultRequest",
            REQUEST,
            ["default", "default limit value"],
        ),
        Order::of(
            "default",
            "min",
            ["min", "min value"],
            ["default", "default value"],
        ),
        Order::of(
            "default",
            "max",
            ["default", "default value"],
            ["max", "max value"],
        ),
    ];
    const REQUEST: [&str; 2] = ["defaultRequest", "default request value"];
    for order in LIMITS {
        let ([low, low_words], [high, high_words]) = (order.low, order.high);
        for (name, amount) in entries(limit, &[low]) {
            let other = at(limit, &[high, name]);
            let (Some(least), Some(most)) = (check::quantity(amount), check::quantity(other))
            else {
                continue;
            };
            if least > most {
                let detail = format!("{low_words} {least} is greater than {high_words} {most}");
                let path = path.child(order.blamed);
                let value = at(limit, &[order.shown, name]).clone();
                errors.push(FieldError::invalid(&path.key(name), value, detail));
            }
        }
    }
}

/// Two amounts of which one must not exceed the other, and what is said if it does.
struct Order {
    /// The field that is blamed.
    blamed: &'static str,
    /// The field whose value is shown.
    shown: &'static str,
    /// The field that has to be lower, and the word for it.
    low: [&'static str; 2],
    /// The field that has to be higher, and the word for it.
    high: [&'static str; 2],
}

impl Order {
    const fn of(
        blamed: &'static str,
        shown: &'static str,
        low: [&'static str; 2],
        high: [&'static str; 2],
    ) -> Self {
        Self {
            blamed,
            shown,
            low,
            high,
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
