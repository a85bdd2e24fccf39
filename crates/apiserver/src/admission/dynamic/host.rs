//! What webhooks and policies ask about the cluster.

use std::sync::Arc;

use bellwether_admission::{Host, Target};
use bellwether_cel::{AccessCheck, AccessDecision, Authorizer};
use bellwether_store::Range;
use serde_json::Value;

use crate::access::{Attributes, Identity, account_groups, user_name};
use crate::cluster::Cluster;
use crate::context::RequestContext;
use crate::resource::Resource;

/// Answers from the cluster that a request is for.
#[derive(Debug, Clone, Copy)]
pub(super) struct ClusterHost<'a>(pub(super) &'a RequestContext);

impl ClusterHost<'_> {
    /// The resource that a target names.
    pub(super) fn resource(self, target: &Target) -> Option<Arc<Resource>> {
        let resources = self.0.cluster.resources();
        let found = resources.find(&target.group, &target.version, &target.resource);
        found.cloned()
    }

    /// An object that is seen as `target`, in the version of the request.
    pub(super) fn convert_back(self, object: &Value, target: &Target) -> Value {
        match self.resource(target) {
            Some(from) => between(object, &from, &self.0.resource),
            None => object.clone(),
        }
    }

    fn of_kind(self, api_version: &str, kind: &str) -> Option<Arc<Resource>> {
        let resources = self.0.cluster.resources();
        let mut all = resources.iter();
        let is_it = |it: &&Arc<Resource>| *it.api_version == *api_version && *it.kind == *kind;
        all.find(is_it).cloned()
    }
}

/// An object in another version of its resource.
fn between(object: &Value, from: &Resource, to: &Resource) -> Value {
    let mut object = object.clone();
    from.to_storage(&mut object);
    to.convert_from_storage(&mut object);
    object["apiVersion"] = (*to.api_version).into();
    object["kind"] = (*to.kind).into();
    object
}

impl Host for ClusterHost<'_> {
    fn namespace(&self, name: &str) -> Option<Value> {
        self.object("v1", "Namespace", "", name)
    }

    fn convert(&self, object: &Value, target: &Target) -> Value {
        match self.resource(target) {
            Some(to) => between(object, &self.0.resource, &to),
            None => object.clone(),
        }
    }

    fn is_namespaced(&self, api_version: &str, kind: &str) -> Option<bool> {
        Some(self.of_kind(api_version, kind)?.namespaced)
    }

    fn object(&self, api_version: &str, kind: &str, namespace: &str, name: &str) -> Option<Value> {
        let resource = self.of_kind(api_version, kind)?;
        let namespace = resource.namespaced.then_some(namespace);
        let key = resource.key(namespace, name);
        let entry = self.0.cluster.keyspace().get(&key)?;
        Some(resource.read(&entry.value))
    }

    fn objects(&self, api_version: &str, kind: &str, namespace: &str) -> Vec<Value> {
        let Some(resource) = self.of_kind(api_version, kind) else {
            return Vec::new();
        };
        let namespace = Some(namespace).filter(|it| !it.is_empty());
        let prefix = resource.collection_prefix(namespace);
        let page = self.0.cluster.keyspace().range(Range::prefix(&prefix));
        let entries = page.map(|page| page.entries).unwrap_or_default();
        entries
            .iter()
            .map(|entry| resource.read(&entry.value))
            .collect()
    }
}

impl Authorizer for ClusterHost<'_> {
    fn authorize(&self, check: &AccessCheck<'_>) -> AccessDecision {
        let account;
        let identity = match check.account {
            None => &self.0.identity,
            Some((namespace, name)) => {
                account = Identity {
                    user: user_name(namespace, name),
                    groups: account_groups(namespace).into(),
                    ..Identity::default()
                };
                &account
            }
        };
        // Roles say nothing about selectors.
        let decision = self.0.cluster.authorizer().decide(
            identity,
            &Attributes {
                verb: check.verb,
                group: check.group,
                resource: check.resource,
                subresource: check.subresource,
                name: check.name,
                namespace: check.namespace,
                path: check.path,
            },
        );
        AccessDecision {
            allowed: decision.allowed,
            reason: decision.reason,
            error: None,
        }
    }
}

/// A stored object of a cluster by the beginning of its key.
pub(super) fn stored_in(
    cluster: &Cluster,
    prefix: &str,
    namespace: &str,
    name: &str,
) -> Option<Value> {
    let entry = cluster
        .keyspace()
        .get(&format!("{prefix}/{namespace}/{name}"))?;
    Some(entry.value.to_untyped_value())
}
