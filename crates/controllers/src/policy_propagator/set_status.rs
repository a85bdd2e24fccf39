//! The status of sets of policies.
//!
//! What clusters report about the policies of a set is counted: a report that changes nothing of what the set says
//! costs a look into the counts, and no more.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use bellwether_api::policy::names::{POLICY_SET, reason};
use bellwether_api::policy::{GROUP, Policy, PolicySet, PolicySetPlacement, PolicySetStatus};
use bellwether_placement::rollout::Chosen;
use bellwether_policy::binding::is_rule;
use bellwether_policy::propagation::Replica;
use bellwether_policy::status::{Member, MemberState, SetObserved, SetTally};
use bellwether_runtime::{
    Cache, Change, Clock, Controller, EventDraft, Next, ObjectKey, Queue, Reconcile, Recorder,
    write_status,
};
use kube::Api;
use parking_lot::Mutex;
use serde_json::{Value, json};

use super::Sources;
use super::prepare::selected;
use super::replicas::{ReplicaEntry, Replicas};
use super::watches::placement_of;
use crate::hub::Hub;

/// How long a set rests while its policies report: they do so once for each cluster.
const REST: std::time::Duration = std::time::Duration::from_millis(500);

/// What is known of the sets and of their policies. Cheap to clone.
#[derive(Clone)]
pub(super) struct Sets(Arc<SetIndex>);

struct SetIndex {
    queue: Queue<ObjectKey>,
    replicas: Replicas,
    /// Which sets name a policy.
    sets: Mutex<HashMap<ObjectKey, BTreeSet<ObjectKey>>>,
    /// Policies, and whether they are disabled, as of a generation.
    policies: Mutex<HashMap<ObjectKey, (Option<i64>, bool)>>,
    /// The counts of sets; none for those that have to be counted again.
    tallies: Mutex<HashMap<ObjectKey, SetTally>>,
}

impl Sets {
    pub(super) fn new(clock: &Clock, replicas: &Replicas) -> Self {
        Self(Arc::new(SetIndex {
            queue: Queue::new(clock.clone()),
            replicas: replicas.clone(),
            sets: Mutex::default(),
            policies: Mutex::default(),
            tallies: Mutex::default(),
        }))
    }

    /// Takes note of a policy.
    pub(super) fn note(&self, key: &ObjectKey, root: &Policy) {
        let new = (root.metadata.generation, root.spec.disabled);
        let old = self.0.policies.lock().insert(key.clone(), new);
        if old != Some(new) {
            self.renew_of(key);
        }
    }

    /// Takes note that a policy is gone.
    pub(super) fn forget(&self, key: &ObjectKey) {
        if self.0.policies.lock().remove(key).is_some() {
            self.renew_of(key);
        }
    }

    /// Takes note of what a cluster reports.
    pub(super) fn report(&self, root: &ObjectKey, replica: &Replica, is_gone: bool) {
        let state = replica.report.compliant.as_ref().filter(|_| !is_gone);
        for set in self.of(root) {
            let is_news = match self.0.tallies.lock().get_mut(&set) {
                Some(tally) => tally.report(&root.name, &replica.cluster, state),
                None => true,
            };
            if is_news {
                self.0.queue.add(set);
            }
        }
    }

    /// The sets that name a policy.
    fn of(&self, policy: &ObjectKey) -> Vec<ObjectKey> {
        let sets = self.0.sets.lock();
        let of_policy = sets.get(policy).into_iter().flatten();
        of_policy.cloned().collect()
    }

    /// Counts a set again.
    fn renew(&self, set: ObjectKey) {
        self.0.tallies.lock().remove(&set);
        self.0.queue.add(set);
    }

    fn renew_of(&self, policy: &ObjectKey) {
        self.of(policy).into_iter().for_each(|set| self.renew(set));
    }

    /// Follows which policies a set names.
    fn set_changed(&self, change: &Change<'_, PolicySet>) {
        let policies = |set: Option<&Arc<PolicySet>>| -> Vec<ObjectKey> {
            let names = set.into_iter().flat_map(|set| &set.spec.policies);
            names
                .map(|name| ObjectKey::new(&change.key.namespace, name))
                .collect()
        };
        let mut sets = self.0.sets.lock();
        for policy in policies(change.old) {
            if let Some(of_policy) = sets.get_mut(&policy) {
                of_policy.remove(change.key);
                if of_policy.is_empty() {
                    sets.remove(&policy);
                }
            }
        }
        for policy in policies(change.new) {
            let of_policy = sets.entry(policy).or_default();
            of_policy.insert(change.key.clone());
        }
        drop(sets);
        self.renew(change.key.clone());
    }
}

/// Keeps the statuses of all sets true until it is dropped.
pub(super) async fn run(hub: Hub, sources: Sources, sets: Sets, copies: &Cache<ReplicaEntry>) {
    let known = sets.clone();
    sources
        .sets
        .subscribe(move |change| known.set_changed(&change));
    let renew_in = {
        let (all, known) = (sources.sets.clone(), sets.clone());
        move |namespace: &str| {
            for set in all.keys_in(namespace) {
                known.renew(set);
            }
        }
    };
    let renew = renew_in.clone();
    let bindings = &sources.bindings;
    bindings.subscribe(move |change| renew(&change.key.namespace));
    let renew = renew_in.clone();
    let rules = &sources.rules;
    rules.subscribe(move |change| renew(&change.key.namespace));
    let renew = renew_in.clone();
    sources.placements.subscribe(move |change| {
        if change.old.is_none() || change.new.is_none() {
            renew(&change.key.namespace);
        }
    });
    sources.decisions.subscribe(move |change| {
        let decision = change.new.or(change.old);
        if decision.is_some_and(|it| placement_of(it).is_some()) {
            renew_in(&change.key.namespace);
        }
    });
    Controller::with_queue("policy-set", sets.0.queue.clone(), &hub.metrics)
        .after(&sources.sets)
        .after(&sources.roots)
        .after(&sources.bindings)
        .after(&sources.rules)
        .after(&sources.placements)
        .after(&sources.decisions)
        .after(copies)
        .debounce(REST)
        .run(Arc::new(Statuses {
            events: hub.recorder(POLICY_SET),
            hub,
            sources,
            sets,
        }))
        .await;
}

struct Statuses {
    hub: Hub,
    sources: Sources,
    sets: Sets,
    events: Recorder,
}

impl Reconcile for Statuses {
    type Key = ObjectKey;
    type Error = kube::Error;

    async fn reconcile(&self, key: &ObjectKey) -> Result<Next, kube::Error> {
        let Some(set) = self.sources.sets.get(key) else {
            self.sets.0.tallies.lock().remove(key);
            return Ok(None);
        };
        let Some((status, missing)) = self.count(key, &set) else {
            // It goes on when all of its policies are known.
            return Ok(None);
        };
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
        if write_status(&api, &*set, &patch).await?.is_some() {
            self.record(key, &set, &missing);
        }
        Ok(None)
    }
}

impl Statuses {
    /// What a set reports, and which of its policies do not exist. Nothing if not all policies are known.
    fn count(&self, key: &ObjectKey, set: &PolicySet) -> Option<(PolicySetStatus, Vec<String>)> {
        // Reports that come in meanwhile wait, and are counted then.
        let mut tallies = self.sets.0.tallies.lock();
        if !tallies.contains_key(key) {
            let (placements, clusters) = self.placements(key);
            let mut members = Vec::with_capacity(set.spec.policies.len());
            for name in &set.spec.policies {
                let state = self.member(&ObjectKey::new(&key.namespace, name))?;
                members.push(Member { name, state });
            }
            let tally = SetTally::new(SetObserved {
                set,
                placements,
                clusters,
                members,
            });
            tallies.insert(key.clone(), tally);
        }
        let tally = tallies.get(key)?;
        let missing = tally.missing().map(str::to_owned).collect();
        Some((tally.status(), missing))
    }

    /// What is known of a policy; nothing if it exists, but was not looked at yet.
    fn member(&self, policy: &ObjectKey) -> Option<MemberState> {
        let Some(head) = self.sources.roots.get(policy) else {
            return Some(MemberState::Missing);
        };
        let known = self.sets.0.policies.lock().get(policy).copied();
        let (_, is_disabled) =
            known.filter(|(generation, _)| *generation >= head.metadata.generation)?;
        if is_disabled {
            return Some(MemberState::Disabled);
        }
        let replicas = self.sets.0.replicas.of(policy);
        let reports = replicas.values().filter(|it| !it.is_deleting);
        let reports = reports.filter_map(|it| {
            let state = it.report.compliant.clone()?;
            Some((Arc::clone(&it.cluster), state))
        });
        Some(MemberState::Reported(reports.collect()))
    }

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
            let chosen = found.iter().flat_map(Chosen::clusters);
            clusters.extend(chosen.map(ToOwned::to_owned));
        }
        (placements, clusters)
    }

    fn record(&self, key: &ObjectKey, set: &PolicySet, missing: &[String]) {
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
