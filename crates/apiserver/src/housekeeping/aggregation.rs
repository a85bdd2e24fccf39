//! Aggregated ClusterRoles: their rules are those of the roles that their selectors find.

use std::collections::{BTreeSet, HashSet};
use std::sync::Arc;

use bellwether_json::label::LabelSelector;
use bellwether_store::{Entry, Range};
use serde_json::Value;

use crate::cluster::Cluster;
use crate::context::RequestContext;
use crate::housekeeping::rewrite::rewrite;
use crate::object::StoredObject;

const CONTROLLER: &str = "clusterrole-aggregation-controller";
const PREFIX: &str = "rbac.authorization.k8s.io/clusterroles/";

/// The roles that are put together from others.
#[derive(Debug, Default)]
pub(super) struct Aggregation {
    aggregated: BTreeSet<Arc<str>>,
}

impl Aggregation {
    /// Takes in a change and adds to `todo` what it affects.
    pub(super) fn observe(
        &mut self,
        key: &Arc<str>,
        now: Option<&StoredObject>,
        todo: &mut BTreeSet<Arc<str>>,
    ) {
        if !key.starts_with(PREFIX) {
            return;
        }
        if now.is_some_and(is_aggregated) {
            self.aggregated.insert(key.clone());
        } else {
            self.aggregated.remove(key);
        }
        todo.extend(self.aggregated.iter().cloned());
    }
}

fn is_aggregated(role: &StoredObject) -> bool {
    role.mentions("\"aggregationRule\"")
}

/// Whether this is for [`finish`].
pub(super) fn is_relevant(key: &str) -> bool {
    key.starts_with(PREFIX)
}

/// Puts a role together again, if it is one of those and something has changed.
pub(super) async fn finish(cluster: &Arc<Cluster>, key: &str) {
    let Some(entry) = cluster
        .keyspace()
        .get(key)
        .filter(|entry| is_aggregated(&entry.value) && !entry.value.is_deleting())
    else {
        return;
    };
    let role = entry.value.to_untyped_value();
    if !role["aggregationRule"].is_object() {
        return;
    }
    let Ok(page) = cluster.keyspace().range(Range::prefix(PREFIX)) else {
        return;
    };
    let rules = gather(&role["aggregationRule"], key, &page.entries);
    if role["rules"].as_array().map_or(&[][..], Vec::as_slice) == rules {
        return;
    }
    let resources = cluster.resources();
    let Some(resource) = resources.of_key(key) else {
        return;
    };
    let cx = RequestContext::internal(cluster, resource, key, CONTROLLER);
    let result = rewrite(&cx, |role| role["rules"] = rules.clone().into()).await;
    if let Err(error) = result
        && error.reason != "NotFound"
    {
        tracing::warn!(cluster = cluster.name(), key, %error, "cannot aggregate a role");
    }
}

/// The rules of all roles but `own` that a selector finds: selector by selector, role by role in the
/// order of their names, each rule once.
fn gather(aggregation: &Value, own: &str, candidates: &[Entry<StoredObject>]) -> Vec<Value> {
    let mut rules: Vec<Value> = Vec::new();
    let mut known = HashSet::new();
    let selectors = aggregation["clusterRoleSelectors"].as_array();
    for selector in selectors.into_iter().flatten() {
        let Ok(selector) = LabelSelector::from_object(Some(selector)) else {
            continue;
        };
        let found = candidates
            .iter()
            .filter(|entry| *entry.key != *own && selector.matches(&*entry.value));
        for entry in found {
            let role = entry.value.to_untyped_value();
            for rule in role["rules"].as_array().into_iter().flatten() {
                if known.insert(rule.to_string()) {
                    rules.push(rule.clone());
                }
            }
        }
    }
    rules
}
