//! The `coordination.k8s.io` group: Leases.

use bellwether_schema::{FieldError, FieldPath};
use jiff::Timestamp;
use k8s_openapi::api::coordination::v1::Lease;
use serde_json::Value;

use crate::Resource;
use crate::check::{self, Errors};
use crate::columns::{AGE, NAME, age, cell, name, words};
use crate::value::{at, has, int, remove};

pub(crate) const LEASE: Resource = Resource {
    unconditional_update: false,
    create_on_update: true,
    prepare_create: |object, _| drop_election(object),
    prepare_update: |new, _| drop_election(new),
    validate,
    columns: &[NAME, words("Holder", "Who holds the lease."), AGE],
    row,
    ..Resource::namespaced::<Lease>("coordination.k8s.io", "v1", "Lease", "leases")
};

/// Fields of an election by the server, which is off by default.
fn drop_election(object: &mut Value) {
    for field in ["strategy", "preferredHolder"] {
        remove(object, &["spec"], field);
    }
}

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
}

fn row(object: &Value, now: Timestamp) -> Vec<Value> {
    vec![
        name(object),
        cell(object, &["spec", "holderIdentity"]),
        age(object, now),
    ]
}
