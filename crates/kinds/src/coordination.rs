//! The `coordination.k8s.io` group: Leases.

use bellwether_schema::{FieldError, FieldPath};
use jiff::Timestamp;
use k8s_openapi::api::coordination::v1::Lease;
use serde_json::Value;

use crate::Resource;
use crate::check::{self, Errors};
use crate::columns::{AGE, NAME, age, cell, name, words};
use crate::value::{at, has, int, text};

pub(crate) const LEASE: Resource = Resource {
    unconditional_update: false,
    create_on_update: true,
    validate,
    columns: &[NAME, words("Holder", "Who holds the lease."), AGE],
    row,
    ..Resource::namespaced::<Lease>("coordination.k8s.io", "v1", "Lease", "leases")
};

fn validate(new: &Value, _old: Option<&Value>, errors: &mut Errors) {
    let path = FieldPath::new("spec");
    let spec = at(new, &["spec"]);
    let seconds = int(spec, &["leaseDurationSeconds"]);
    if has(spec, &["leaseDurationSeconds"]) && seconds <= 0 {
        let path = path.child("leaseDurationSeconds");
        errors.push(FieldError::invalid(
            &path,
            seconds,
            "must be greater than 0",
        ));
    }
    check::not_negative(errors, spec, &path, "leaseTransitions");
    let strategy = text(spec, &["strategy"]);
    if !text(spec, &["preferredHolder"]).is_empty() && strategy.is_empty() {
        let detail = "may only be specified if `strategy` is defined";
        errors.push(FieldError::forbidden(
            &path.child("preferredHolder"),
            detail,
        ));
    }
}

fn row(object: &Value, now: Timestamp) -> Vec<Value> {
    vec![
        name(object),
        cell(object, &["spec", "holderIdentity"]),
        age(object, now),
    ]
}
