//! Namespaces that the sets of a cluster want on it.
//!
//! The hub names them in the status of the cluster; the agent creates them, marks them as managed by
//! this hub, and says how that went. One that is not wanted any more stays, with the mark taken back.

use std::collections::{BTreeMap, BTreeSet};

use bellwether_api::cluster::names::{condition, label, reason};
use bellwether_api::cluster::{ClusterSetManagedNamespace, ManagedClusterStatus};
use bellwether_api::meta::{Condition, FALSE, TRUE, Time, set_condition};
use bellwether_runtime::{ClusterHandle, ensure, written_by};
use bellwether_work::record;
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::core::v1::Namespace;
use kube::Api;
use kube::api::{ListParams, Patch};
use serde_json::json;

use super::in_words;

/// How often it is checked that namespaces are there.
const CHECK_INTERVAL: SignedDuration = SignedDuration::from_mins(1);
/// How long the name of a label may be.
const LONGEST_NAME: usize = 63;

/// The namespaces of a cluster, as far as this agent has seen to them.
pub(super) struct Namespaces {
    member: ClusterHandle,
    /// The label that says that this hub manages a namespace.
    mark: String,
    /// How it went with those that were wanted last.
    known: BTreeMap<String, Result<(), String>>,
    check_at: Timestamp,
}

impl Namespaces {
    /// For the hub at an address.
    pub(super) fn new(member: ClusterHandle, address: &str) -> Self {
        let mut hash = record::hub_hash(address);
        hash.truncate(LONGEST_NAME);
        Self {
            member,
            mark: format!("{}{hash}", label::MANAGED_NAMESPACE_PREFIX),
            known: BTreeMap::new(),
            check_at: Timestamp::MIN,
        }
    }

    /// Brings the namespaces about that a status names, if it is time or they are others than
    /// before, and says in it how that went.
    pub(super) async fn see_to(&mut self, status: &mut ManagedClusterStatus, now: Timestamp) {
        let wanted: BTreeSet<String> = status
            .managed_namespaces
            .iter()
            .map(|it| it.name.clone())
            .collect();
        let is_same = wanted.iter().eq(self.known.keys());
        if !is_same || (self.check_at <= now && !wanted.is_empty()) {
            self.apply(&wanted).await;
            self.check_at = now.checked_add(CHECK_INTERVAL).unwrap_or(Timestamp::MAX);
        }
        for namespace in &mut status.managed_namespaces {
            self.set_condition(namespace, now);
        }
    }

    /// Takes back the mark of all namespaces: the cluster has been detached.
    pub(super) async fn let_go(&mut self) {
        self.release(&BTreeSet::new()).await;
    }

    async fn apply(&mut self, wanted: &BTreeSet<String>) {
        self.known.clear();
        let member = self.member.client();
        for name in wanted {
            let namespace = json!({
                "apiVersion": "v1", "kind": "Namespace",
                "metadata": {"name": name, "labels": {&self.mark: "true"}},
            });
            let done = ensure(&member, &namespace).await;
            let done = done.map(drop).map_err(|error| in_words(&error));
            self.known.insert(name.clone(), done);
        }
        self.release(wanted).await;
    }

    /// Takes back the mark of namespaces that are not wanted any more. What fails is tried again
    /// with the next change.
    async fn release(&self, wanted: &BTreeSet<String>) {
        let namespaces: Api<Namespace> = Api::all(self.member.client());
        let marked = ListParams::default().labels(&format!("{}=true", self.mark));
        let list = match namespaces.list_metadata(&marked).await {
            Ok(list) => list.items,
            Err(error) => {
                tracing::debug!(%error, "namespaces cannot be listed");
                return;
            }
        };
        let unwanted = list.iter().map(kube::ResourceExt::name_any);
        for name in unwanted.filter(|name| !wanted.contains(name)) {
            let patch = Patch::Merge(json!({"metadata": {"labels": {&self.mark: "false"}}}));
            if let Err(error) = namespaces.patch(&name, &written_by(), &patch).await {
                tracing::debug!(%error, name, "a namespace cannot be released");
            }
        }
    }

    fn set_condition(&self, namespace: &mut ClusterSetManagedNamespace, now: Timestamp) {
        let Some(done) = self.known.get(&namespace.name) else {
            return;
        };
        let (status, reason, message) = match done {
            Ok(()) => (
                TRUE,
                reason::NAMESPACE_APPLIED,
                "Namespace successfully applied and managed".to_owned(),
            ),
            Err(problem) => (
                FALSE,
                reason::NAMESPACE_APPLY_FAILED,
                format!("Failed to apply namespace: {problem}"),
            ),
        };
        let condition = Condition {
            type_: condition::NAMESPACE_AVAILABLE.to_owned(),
            status: status.to_owned(),
            reason: reason.to_owned(),
            message,
            last_transition_time: Time(now),
            observed_generation: None,
        };
        set_condition(&mut namespace.conditions, condition);
    }
}
