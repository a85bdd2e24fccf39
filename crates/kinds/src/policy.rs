//! The `policy` group: PodDisruptionBudgets.

use bellwether_schema::{FieldErrorKind, FieldPath};
use jiff::Timestamp;
use k8s_openapi::api::policy::v1::PodDisruptionBudget;
use serde_json::Value;

use crate::check::{self, Errors};
use crate::columns::{AGE, NAME, age, column, name, number, words};
use crate::resource::STATUS;
use crate::value::{at, has, text};
use crate::{Column, Generation, Resource, printed, selector};

pub(crate) const POD_DISRUPTION_BUDGET: Resource = Resource {
    short_names: &["pdb"],
    subresources: &[STATUS],
    generation: Generation::Spec,
    unconditional_update: false,
    validate,
    validate_part,
    columns: COLUMNS,
    row,
    ..Resource::namespaced::<PodDisruptionBudget>(
        "policy",
        "v1",
        "PodDisruptionBudget",
        "poddisruptionbudgets",
    )
};

fn validate(new: &Value, _old: Option<&Value>, errors: &mut Errors) {
    let path = FieldPath::new("spec");
    let spec = at(new, &["spec"]);
    let fields = ["minAvailable", "maxUnavailable"];
    if fields.iter().all(|field| has(spec, &[field])) {
        let detail = "minAvailable and maxUnavailable cannot be both set";
        let fields = [
            printed::pointer("MinAvailable", "minAvailable"),
            printed::pointer("Selector", "selector"),
            printed::pointer("MaxUnavailable", "maxUnavailable"),
            printed::pointer("UnhealthyPodEvictionPolicy", "unhealthyPodEvictionPolicy"),
        ];
        let value = printed::structure(spec, &fields);
        let kind = FieldErrorKind::Invalid;
        errors.push(printed::error(kind, &path, &value, detail));
    }
    for field in fields {
        if has(spec, &[field]) {
            check::count_or_percentage(errors, &path.child(field), at(spec, &[field]));
            check::at_most_all(errors, &path.child(field), at(spec, &[field]));
        }
    }
    selector::validate(at(spec, &["selector"]), &path.child("selector"), errors);
    if has(spec, &["unhealthyPodEvictionPolicy"]) {
        let policies = ["AlwaysAllow", "IfHealthyBudget"];
        let policy = text(spec, &["unhealthyPodEvictionPolicy"]);
        let path = path.child("unhealthyPodEvictionPolicy");
        check::supported(errors, &path, policy, &policies);
    }
}

fn validate_part(part: &str, new: &Value, _old: &Value, errors: &mut Errors) {
    if part != "status" {
        return;
    }
    let path = FieldPath::new("status");
    for field in [
        "disruptionsAllowed",
        "currentHealthy",
        "desiredHealthy",
        "expectedPods",
    ] {
        check::not_negative(errors, at(new, &["status"]), &path, field);
    }
}

const COLUMNS: &[Column] = &[
    NAME,
    words("Min Available", "Fewest pods that have to be available."),
    words("Max Unavailable", "Most pods that may be unavailable."),
    column(
        "Allowed Disruptions",
        "integer",
        "Pods that may be evicted now.",
    ),
    AGE,
];

fn row(object: &Value, now: Timestamp) -> Vec<Value> {
    let shown = |key: &str| match at(object, &["spec", key]) {
        Value::String(percentage) => percentage.clone(),
        Value::Number(count) => count.to_string(),
        _ => "N/A".to_owned(),
    };
    vec![
        name(object),
        shown("minAvailable").into(),
        shown("maxUnavailable").into(),
        number(object, &["status", "disruptionsAllowed"]),
        age(object, now),
    ]
}
