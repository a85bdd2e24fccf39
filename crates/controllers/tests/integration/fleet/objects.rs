//! Objects that cases are made of.

use serde_json::{Value, json};

use super::ADDRESS;

pub use bellwether_testkit::objects::*;

/// The record of a work on the member.
pub fn record(work: &str) -> Value {
    record_of(ADDRESS, work)
}

/// The record of a work of the hub at that address.
pub fn record_of(address: &str, work: &str) -> Value {
    let hash = bellwether_work::record::hub_hash(address);
    let name = bellwether_work::record::record_name(&hash, work);
    json!({
        "apiVersion": "work.open-cluster-management.io/v1", "kind": "AppliedManifestWork",
        "metadata": {"name": name},
    })
}
