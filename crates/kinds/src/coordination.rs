//! The `coordination.k8s.io` group: Leases.

use jiff::Timestamp;
use k8s_openapi::api::coordination::v1::Lease;
use serde_json::Value;

use crate::Resource;
use crate::columns::{AGE, NAME, age, cell, name, words};

pub(crate) const LEASE: Resource = Resource {
    unconditional_update: false,
    create_on_update: true,
    columns: &[NAME, words("Holder", "Who holds the lease."), AGE],
    row,
    ..Resource::namespaced::<Lease>("coordination.k8s.io", "v1", "Lease", "leases")
};

fn row(object: &Value, now: Timestamp) -> Vec<Value> {
    vec![
        name(object),
        cell(object, &["spec", "holderIdentity"]),
        age(object, now),
    ]
}
