//! Quotas are counted again when something that they count is deleted or ends.

use std::sync::Arc;

use crate::admission::quotas;
use crate::cluster::Cluster;
use crate::object::StoredObject;

/// Where quotas are kept.
pub(super) use crate::admission::quotas::PREFIX;

/// The quotas that have to be looked at after a change: what is created is counted before.
pub(super) fn affected(
    cluster: &Cluster,
    key: &Arc<str>,
    before: Option<&Arc<StoredObject>>,
    now: Option<&Arc<StoredObject>>,
) -> Vec<Arc<str>> {
    if key.starts_with(PREFIX) && now.is_some() {
        return vec![key.clone()];
    }
    let mut parts = key.split('/');
    let (Some(_), Some(plural), Some(namespace), Some(_), None) = (
        parts.next(),
        parts.next(),
        parts.next(),
        parts.next(),
        parts.next(),
    ) else {
        return Vec::new();
    };
    let Some(before) = before else {
        return Vec::new();
    };
    let quotas = quotas::keys_of(cluster, namespace);
    if quotas.is_empty() {
        return quotas;
    }
    let is_less = match (plural, now) {
        (_, None) | ("services" | "persistentvolumeclaims", _) => true,
        ("pods", Some(now)) => has_ended(now) && !has_ended(before),
        _ => false,
    };
    if is_less { quotas } else { Vec::new() }
}

fn has_ended(pod: &StoredObject) -> bool {
    pod.mentions("\"phase\":\"Succeeded\"") || pod.mentions("\"phase\":\"Failed\"")
}

/// Counts again.
pub(super) async fn finish(cluster: &Arc<Cluster>, key: &str) {
    quotas::recount(cluster, key).await;
}
