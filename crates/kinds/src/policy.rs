//! The `policy` group: PodDisruptionBudgets.

use jiff::Timestamp;
use k8s_openapi::api::policy::v1::PodDisruptionBudget;
use serde_json::Value;

use crate::columns::{AGE, NAME, age, column, name, number, words};
use crate::resource::STATUS;
use crate::value::at;
use crate::{Column, Generation, Resource};

pub(crate) const POD_DISRUPTION_BUDGET: Resource = Resource {
    short_names: &["pdb"],
    subresources: &[STATUS],
    generation: Generation::Spec,
    unconditional_update: false,
    columns: COLUMNS,
    row,
    ..Resource::namespaced::<PodDisruptionBudget>(
        "policy",
        "v1",
        "PodDisruptionBudget",
        "poddisruptionbudgets",
    )
};

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
