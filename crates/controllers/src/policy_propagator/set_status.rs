//! The status of sets of policies.

use std::collections::BTreeSet;
use std::sync::Arc;

use bellwether_api::policy::names::{POLICY_SET, reason};
use bellwether_api::policy::{GROUP, PolicySet, PolicySetPlacement};
use bellwether_policy::binding::is_rule;
use bellwether_policy::status::{Member, SetObserved, set_status};
use bellwether_runtime::{
    Change, Controller, EventDraft, Next, ObjectKey, Reconcile, Recorder, write_status,
};
use kube::Api;
use serde_json::{Value, json};

use super::Sources;
use super::prepare::selected;
use super::watches::placement_of;
use crate::hub::Hub;

/// How long a set rests while its policies report: they do so once for each cluster.
const REST: std::time::Duration = std::time::Duration::from_millis(500);

/// Keeps the statuses of all sets true until it is dropped.
pub(super) async fn run(hub: Hub, sources: Sources) {
    let sets = sources.sets.clone();
    let of_namespace = move |namespace: &str| sets.keys_in(namespace);
    let (of_roots, of_bindings) = (of_namespace.clone(), of_namespace.clone());
    let (of_decisions, of_rules) = (of_namespace.clone(), of_namespace);
    let roots = sources.roots.clone();
    let sets = sources.sets.clone();
    Controller::new("policy-set", &hub.clock, &hub.metrics)
        .on(&sources.sets, |change| [change.key.clone()])
        .on(&roots, move |change| {
            let policy = &*change.key.name;
            let mut keys = of_roots(&change.key.namespace);
            keys.retain(|key| {
                let set = sets.get(key);
                set.is_some_and(|set| set.spec.policies.iter().any(|it| it == policy))
            });
            keys
        })
        .on(&sources.bindings, move |change| {
            of_bindings(&change.key.namespace)
        })
        .on(&sources.rules, move |change| {
            of_rules(&change.key.namespace)
        })
        .on(&sources.decisions, move |change: &Change<'_, _>| {
            let is_placed = change
                .new
                .or(change.old)
                .is_some_and(|it| placement_of(it).is_some());
            if is_placed {
                of_decisions(&change.key.namespace)
            } else {
                Vec::new()
            }
        })
        .debounce(REST)
        .run(Arc::new(Sets {
            events: hub.recorder(POLICY_SET),
            hub,
            sources,
        }))
        .await;
}

struct Sets {
    hub: Hub,
    sources: Sources,
    events: Recorder,
}

impl Reconcile for Sets {
    type Key = ObjectKey;
    type Error = kube::Error;

    async fn reconcile(&self, key: &ObjectKey) -> Result<Next, kube::Error> {
        let Some(set) = self.sources.sets.get(key) else {
            return Ok(None);
        };
        let (placements, clusters) = self.placements(key);
        let policies: Vec<_> = set
            .spec
            .policies
            .iter()
            .map(|name| {
                let policy = self
                    .sources
                    .roots
                    .get(&ObjectKey::new(&key.namespace, name));
                (name.as_str(), policy.and_then(|it| it.policy()))
            })
            .collect();
        let status = set_status(&SetObserved {
            set: &set,
            placements,
            clusters,
            members: policies
                .iter()
                .map(|(name, policy)| Member {
                    name,
                    policy: policy.as_deref(),
                })
                .collect(),
        });
        if set.status.as_ref() == Some(&status) {
            return Ok(None);
        }
        let mut patch = json!(status);
        for field in ["placement", "compliant", "statusMessage", "exclusions"] {
            // What a merge patch does not name would stay.
            if patch.get(field).is_none() {
                patch[field] = Value::Null;
            }
        }
        let api: Api<PolicySet> = Api::namespaced(self.hub.client.clone(), &key.namespace);
        if write_status(&api, &*set, &patch).await?.is_none() {
            return Ok(None);
        }
        self.record(
            key,
            &set,
            &policies
                .iter()
                .filter(|it| it.1.is_none())
                .map(|it| it.0)
                .collect::<Vec<_>>(),
        );
        Ok(None)
    }
}

impl Sets {
    /// The bindings of a set, and the clusters that they select.
    fn placements(&self, key: &ObjectKey) -> (Vec<PolicySetPlacement>, BTreeSet<String>) {
        let mut placements = Vec::new();
        let mut clusters = BTreeSet::new();
        for binding in self.sources.bindings.in_namespace(&key.namespace) {
            let is_it = |subject: &bellwether_api::policy::PolicySubject| {
                subject.api_group == GROUP
                    && subject.kind == "PolicySet"
                    && subject.name == *key.name
            };
            if !binding.subjects.iter().any(is_it) {
                continue;
            }
            let reference = &binding.placement_ref;
            let found = selected(&self.sources, &key.namespace, reference);
            let name = found.is_some().then(|| reference.name.clone());
            let is_rule = is_rule(reference);
            placements.push(PolicySetPlacement {
                placement_binding: binding.metadata.name.clone(),
                placement: name.clone().filter(|_| !is_rule),
                placement_rule: name.filter(|_| is_rule),
                ..PolicySetPlacement::default()
            });
            let groups = found.into_iter().flatten();
            clusters.extend(groups.flat_map(|it| it.clusters).map(|it| it.to_string()));
        }
        (placements, clusters)
    }

    fn record(&self, key: &ObjectKey, set: &PolicySet, missing: &[&str]) {
        for policy in missing {
            let message = format!(
                "Policy {policy} is in PolicySet {} but could not be found in namespace {}",
                key.name, key.namespace
            );
            self.events
                .record(set, EventDraft::warning(reason::POLICY_NOT_FOUND, message));
        }
    }
}
