//! Root policies as last seen.
//!
//! The status of a root policy has an entry for each cluster, and changes with each report. This controller writes it,
//! and knows what it says: so only metadata is watched, and a whole policy is read when a plan asks for it. What a
//! report costs does not grow with what is said of other clusters.

use std::collections::HashMap;
use std::sync::Arc;

use bellwether_api::meta::ObjectMeta;
use bellwether_api::policy::Policy;
use bellwether_runtime::ObjectKey;
use kube::core::PartialObjectMeta;
use kube::{Api, Client};
use parking_lot::Mutex;

use super::replicas::is_newer;

/// What a cache keeps of a root policy.
pub(super) type RootHead = PartialObjectMeta<Policy>;

/// Root policies as the server answered last.
#[derive(Default)]
pub(super) struct Roots(Mutex<HashMap<ObjectKey, Arc<Policy>>>);

impl Roots {
    /// Returns a policy that is at least as new as what was seen of it; nothing if it is gone.
    pub(super) async fn read(
        &self,
        client: &Client,
        key: &ObjectKey,
        seen: &RootHead,
    ) -> Result<Option<Arc<Policy>>, kube::Error> {
        let known = self.0.lock().get(key).cloned();
        if let Some(known) = known.filter(|known| !is_newer_or_other(&seen.metadata, known)) {
            return Ok(Some(known));
        }
        let api: Api<Policy> = Api::namespaced(client.clone(), &key.namespace);
        let read = api.get_opt(&key.name).await?;
        Ok(read.map(|policy| self.keep(key, policy)))
    }

    /// Takes in what the server answered.
    pub(super) fn keep(&self, key: &ObjectKey, mut policy: Policy) -> Arc<Policy> {
        policy.metadata.managed_fields = None;
        let policy = Arc::new(policy);
        self.0.lock().insert(key.clone(), Arc::clone(&policy));
        policy
    }

    /// Forgets a policy: it is gone, or has been changed without an answer that says it all.
    pub(super) fn forget(&self, key: &ObjectKey) {
        self.0.lock().remove(key);
    }
}

/// True if what was seen is a later state than what is known, or another object.
fn is_newer_or_other(seen: &ObjectMeta, known: &Policy) -> bool {
    let is_same = seen.uid == known.metadata.uid
        && (seen.resource_version == known.metadata.resource_version
            || is_newer(&known.metadata, seen));
    !is_same
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_policy_is_known_until_something_newer_is_seen() {
        let policy = |uid: &str, version: &str| -> Policy {
            let policy = json!({
                "metadata": {"name": "a", "uid": uid, "resourceVersion": version},
                "spec": {"disabled": false, "policy-templates": []},
            });
            serde_json::from_value(policy).unwrap()
        };
        let known = policy("one", "10");
        let is_stale = |uid: &str, version: &str| {
            let seen = policy(uid, version).metadata;
            is_newer_or_other(&seen, &known)
        };
        assert!(!is_stale("one", "10"));
        assert!(!is_stale("one", "9"));
        assert!(is_stale("one", "11"));
        assert!(is_stale("two", "9"));
    }
}
