//! Which policies a change concerns.

use std::collections::HashMap;
use std::sync::Arc;

use bellwether_api::cluster::names::label as cluster_label;
use bellwether_api::cluster::{ManagedCluster, Placement, PlacementDecision};
use bellwether_api::meta::ObjectMeta;
use bellwether_api::policy::names::label;
use bellwether_api::policy::{GROUP, PlacementBinding, Policy, PolicySet};
use bellwether_policy::binding::is_rule;
use bellwether_runtime::{Cache, Change, ObjectKey, Selection};
use kube::Resource as _;
use parking_lot::Mutex;

use super::lookups::Lookups;
use super::replicas::{ReplicaEntry, Replicas};
use super::set_status::Sets;
use super::{Sources, Triggers};
use crate::hub::Hub;
use crate::replica_set::rest::{Rests, rests_until};

/// Follows all replicas. A change concerns their root policy; what no decision looks at concerns nobody.
pub(super) fn replicas(
    hub: &Hub,
    replicas: &Replicas,
    triggers: &Triggers,
    rests: &Rests,
    sets: &Sets,
) -> Cache<ReplicaEntry> {
    let (replicas, triggers, sets) = (replicas.clone(), triggers.clone(), sets.clone());
    let (rests, clock) = (Arc::clone(rests), hub.clock.clone());
    let path = Policy::url_path(&(), None);
    let selection = Selection::labels(label::ROOT_POLICY);
    let on_change = move |change: Change<'_, ReplicaEntry>| {
        match (change.old, change.new) {
            (_, Some(new)) => {
                if let Some(root) = &new.root {
                    replicas.put(root, &new.replica);
                    sets.report(root, &new.replica, new.replica.is_deleting);
                }
            }
            (Some(old), None) => {
                if let Some(root) = &old.root {
                    replicas.remove(root, &old.replica);
                    sets.report(root, &old.replica, true);
                }
            }
            (None, None) => {}
        }
        if let (Some(old), Some(new)) = (change.old, change.new)
            && old.replica.is_equivalent(&new.replica)
        {
            return;
        }
        let changed = change.new.or(change.old);
        let Some(key) = changed.and_then(|it| it.root.clone()) else {
            return;
        };
        match (change.old, change.new) {
            (Some(old), Some(new)) if old.replica.is_same_but_for_report(&new.replica) => {
                triggers.reports.add(&key, &new.replica.cluster);
            }
            _ => triggers.reports.add_change(&key),
        }
        match rests_until(&rests, &key, clock.now()) {
            Some(until) => triggers.queue.add_at(key, until),
            None => triggers.queue.add(key),
        }
    };
    Cache::follow(hub.client.clone(), path, selection, on_change)
}

/// Listens to everything that replicas are made of.
pub(super) fn sources(sources: &Sources, triggers: &Triggers, awaited: &Awaited) {
    let one = triggers.clone();
    sources.roots.subscribe(move |change| {
        if let (Some(old), Some(new)) = (change.old, change.new)
            && is_same_but_for_status(&old.metadata, &new.metadata)
        {
            return;
        }
        one.renew(change.key.clone());
    });
    let (one, sets) = (triggers.clone(), sources.sets.clone());
    sources.bindings.subscribe(move |change| {
        for binding in [change.old, change.new].into_iter().flatten() {
            renew_bound(&one, &sets, binding);
        }
    });
    let (one, awaited) = (triggers.clone(), awaited.clone());
    sources.sets.subscribe(move |change| {
        for set in [change.old, change.new].into_iter().flatten() {
            for policy in &set.spec.policies {
                one.renew(ObjectKey::new(&change.key.namespace, policy));
            }
        }
        for root in awaited.by(change.key) {
            one.renew(root);
        }
    });
    placements(sources, triggers);
}

/// Which policies wait for which sets. Cheap to clone.
#[derive(Clone, Default)]
pub(super) struct Awaited(Arc<Mutex<HashMap<ObjectKey, Vec<ObjectKey>>>>);

impl Awaited {
    /// Notes the sets that a policy waits for. To be called before they are read.
    pub(super) fn set(&self, root: &ObjectKey, sets: Vec<ObjectKey>) {
        let mut all = self.0.lock();
        if sets.is_empty() {
            all.remove(root);
        } else {
            all.insert(root.clone(), sets);
        }
    }

    /// The policies that wait for a set.
    fn by(&self, set: &ObjectKey) -> Vec<ObjectKey> {
        let all = self.0.lock();
        let waiting = all.iter().filter(|(_, sets)| sets.contains(set));
        waiting.map(|(root, _)| root.clone()).collect()
    }
}

/// True if only the status has changed, which is what this controller writes itself.
fn is_same_but_for_status(one: &ObjectMeta, other: &ObjectMeta) -> bool {
    one.uid == other.uid
        && one.generation.is_some()
        && one.generation == other.generation
        && one.labels == other.labels
        && one.annotations == other.annotations
        && one.deletion_timestamp == other.deletion_timestamp
}

/// A placement concerns the policies of the bindings that name it.
fn placements(sources: &Sources, triggers: &Triggers) {
    let concern = |for_rules: bool| {
        let (bindings, sets) = (sources.bindings.clone(), sources.sets.clone());
        let triggers = triggers.clone();
        move |namespace: &str, placement: &str| {
            for binding in bindings.in_namespace(namespace) {
                let reference = &binding.placement_ref;
                if reference.name == placement && is_rule(reference) == for_rules {
                    renew_bound(&triggers, &sets, &binding);
                }
            }
        }
    };
    let renew = concern(false);
    sources.placements.subscribe(move |change| {
        let is_same = match (change.old, change.new) {
            (Some(old), Some(new)) => says_the_same(old, new),
            _ => false,
        };
        if !is_same {
            renew(&change.key.namespace, &change.key.name);
        }
    });
    let renew = concern(false);
    sources.decisions.subscribe(move |change| {
        for decision in [change.old, change.new].into_iter().flatten() {
            if let Some(placement) = placement_of(decision) {
                renew(&change.key.namespace, placement);
            }
        }
    });
    let renew = concern(true);
    let rules = &sources.rules;
    rules.subscribe(move |change| renew(&change.key.namespace, &change.key.name));
}

/// True if two states of a placement expect the same decisions, which are other objects.
fn says_the_same(old: &Placement, new: &Placement) -> bool {
    let expected = |placement: &Placement| {
        let status = placement.status.as_ref();
        status.map(|it| (it.number_of_selected_clusters, it.decision_groups.clone()))
    };
    expected(old) == expected(new) && old.metadata.annotations == new.metadata.annotations
}

/// The placement that a decision belongs to.
pub(super) fn placement_of(decision: &PlacementDecision) -> Option<&str> {
    let labels = decision.metadata.labels.as_ref()?;
    labels.get(cluster_label::PLACEMENT).map(String::as_str)
}

fn renew_bound(triggers: &Triggers, sets: &Cache<PolicySet>, binding: &PlacementBinding) {
    let namespace = binding.metadata.namespace.as_deref().unwrap_or_default();
    for subject in binding.subjects.iter().filter(|it| it.api_group == GROUP) {
        let key = ObjectKey::new(namespace, &subject.name);
        match subject.kind.as_str() {
            "Policy" => triggers.renew(key),
            "PolicySet" => {
                let set = sets.get(&key);
                for policy in set.iter().flat_map(|set| &set.spec.policies) {
                    triggers.renew(ObjectKey::new(namespace, policy));
                }
            }
            _ => {}
        }
    }
}

/// Labels of clusters concern the policies whose hub templates read them.
pub(super) fn clusters(sources: &Sources, lookups: &Lookups) {
    let lookups = lookups.clone();
    sources.clusters.subscribe(move |change| {
        let labels = |cluster: Option<&Arc<ManagedCluster>>| {
            cluster.and_then(|it| it.metadata.labels.clone())
        };
        if labels(change.old) != labels(change.new) {
            lookups.cluster_changed();
        }
    });
}
