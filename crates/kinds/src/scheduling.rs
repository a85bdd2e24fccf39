//! The `scheduling.k8s.io` and `node.k8s.io` groups: PriorityClasses and RuntimeClasses.

use bellwether_schema::{FieldError, FieldPath};
use jiff::Timestamp;
use k8s_openapi::api::node::v1::RuntimeClass;
use k8s_openapi::api::scheduling::v1::PriorityClass;
use serde_json::Value;

use crate::check::{self, Errors};
use crate::columns::{AGE, NAME, age, cell, column, name, number, words};
use crate::core::pod;
use crate::selector::validate_labels;
use crate::value::{Fill, at, flag, has, int, text};
use crate::{Column, Generation, Resource};

pub(crate) const PRIORITY_CLASS: Resource = Resource {
    short_names: &["pc"],
    generation: Generation::Constant,
    default: default_priority,
    validate: validate_priority,
    columns: PRIORITY_COLUMNS,
    row: priority_row,
    ..Resource::cluster::<PriorityClass>(
        "scheduling.k8s.io",
        "v1",
        "PriorityClass",
        "priorityclasses",
    )
};

pub(crate) const RUNTIME_CLASS: Resource = Resource {
    unconditional_update: false,
    create_on_update: true,
    validate: validate_runtime,
    columns: &[NAME, words("Handler", "The runtime that is meant."), AGE],
    row: runtime_row,
    ..Resource::cluster::<RuntimeClass>("node.k8s.io", "v1", "RuntimeClass", "runtimeclasses")
};

fn default_priority(object: &mut Value) {
    if let Some(class) = object.as_object_mut() {
        class.fill("preemptionPolicy", "PreemptLowerPriority");
    }
}

/// The highest priority that users can give.
const HIGHEST: i64 = 1_000_000_000;
/// Classes that every cluster has, and their values.
const SYSTEM: &[(&str, i64)] = &[
    ("system-node-critical", 2_000_001_000),
    ("system-cluster-critical", 2_000_000_000),
];

fn validate_priority(new: &Value, old: Option<&Value>, errors: &mut Errors) {
    if let Some(old) = old {
        if int(new, &["value"]) != int(old, &["value"]) {
            let detail = "may not be changed in an update.";
            errors.push(FieldError::forbidden(&FieldPath::new("value"), detail));
        }
        let path = FieldPath::new("preemptionPolicy");
        check::immutable(errors, new, old, &["preemptionPolicy"], &path);
        return;
    }
    let name = text(new, &["metadata", "name"]);
    let value = int(new, &["value"]);
    if name.starts_with("system-") {
        let problem = match SYSTEM.iter().find(|(known, _)| *known == name) {
            None => format!("{name} is not a known system priority class"),
            Some((_, known)) if *known != value => {
                format!("value of {name} PriorityClass must be {known}")
            }
            Some(_) if flag(new, &["globalDefault"]) => {
                format!("globalDefault of {name} PriorityClass must be false")
            }
            Some(_) => String::new(),
        };
        if !problem.is_empty() {
            let path = FieldPath::new("metadata");
            let detail = format!(
                "priority class names with 'system-' prefix are reserved for system use only. error: {problem}"
            );
            errors.push(FieldError::forbidden(&path.child("name"), detail));
        }
    } else if value > HIGHEST {
        let detail = format!("maximum allowed value of a user defined priority is {HIGHEST}");
        errors.push(FieldError::forbidden(&FieldPath::new("value"), detail));
    }
    if has(new, &["preemptionPolicy"]) {
        let policy = text(new, &["preemptionPolicy"]);
        let path = FieldPath::new("preemptionPolicy");
        check::required_choice(errors, &path, policy, &["PreemptLowerPriority", "Never"]);
    }
}

fn validate_runtime(new: &Value, old: Option<&Value>, errors: &mut Errors) {
    let path = FieldPath::new("handler");
    if let Some(old) = old {
        check::immutable(errors, new, old, &["handler"], &path);
        return;
    }
    check::label(errors, &path, text(new, &["handler"]));
    let path = FieldPath::new("scheduling");
    let scheduling = at(new, &["scheduling"]);
    let selector = at(scheduling, &["nodeSelector"]);
    validate_labels(selector, &path.child("nodeSelector"), errors);
    pod::tolerations(scheduling, &path.child("tolerations"), errors);
}

const PRIORITY_COLUMNS: &[Column] = &[
    NAME,
    column("Value", "integer", "The higher, the more important."),
    column(
        "Global-Default",
        "boolean",
        "Whether pods without a class get it.",
    ),
    AGE,
    words("PreemptionPolicy", "Whether its pods may push others out."),
];

fn priority_row(object: &Value, now: Timestamp) -> Vec<Value> {
    vec![
        name(object),
        number(object, &["value"]),
        flag(object, &["globalDefault"]).into(),
        age(object, now),
        cell(object, &["preemptionPolicy"]),
    ]
}

fn runtime_row(object: &Value, now: Timestamp) -> Vec<Value> {
    vec![name(object), cell(object, &["handler"]), age(object, now)]
}
