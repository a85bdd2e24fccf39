//! What a policy comes to for its clusters, kept until something changes that it is made of.

use std::collections::BTreeMap;
use std::sync::Arc;

use bellwether_api::policy::{PlacementSubject, Policy};
use bellwether_placement::rollout::Chosen;
use bellwether_policy::binding::{Bindings, Bound, chosen_by_rule, is_rule, resolve};
use bellwether_policy::propagation::{Blueprint, Version, awaited_sets};
use bellwether_policy::rollout::Mode;
use bellwether_runtime::ObjectKey;

use super::Propagator;
use super::watches::placement_of;

/// What a policy comes to for its clusters.
pub(super) struct Prepared {
    pub(super) blueprint: Blueprint,
    pub(super) bound: Bound,
    /// What clusters get that get something of their own.
    own: BTreeMap<Arc<str>, Arc<Version>>,
    /// What all others get.
    common: Arc<Version>,
}

impl Prepared {
    /// Returns what a cluster gets.
    pub(super) fn version(&self, cluster: &str) -> Arc<Version> {
        Arc::clone(self.own.get(cluster).unwrap_or(&self.common))
    }
}

impl Propagator {
    /// Returns what a policy comes to, made again if something changed.
    pub(super) async fn prepare(
        &self,
        key: &ObjectKey,
        root: &Policy,
    ) -> Result<Arc<Prepared>, kube::Error> {
        // Taken before anything is read: what changes meanwhile is read next time.
        let is_outdated = self.triggers.outdated.lock().remove(key) | self.lookups.is_due(key);
        let known = self.prepared.lock().get(key).cloned();
        if let Some(known) = known.filter(|_| !is_outdated) {
            return Ok(known);
        }
        let made = self.make(key, root).await;
        match made {
            Ok(prepared) => {
                let prepared = Arc::new(prepared);
                let mut all = self.prepared.lock();
                all.insert(key.clone(), Arc::clone(&prepared));
                Ok(prepared)
            }
            Err(error) => {
                self.triggers.outdated.lock().insert(key.clone());
                Err(error)
            }
        }
    }

    async fn make(&self, key: &ObjectKey, root: &Policy) -> Result<Prepared, kube::Error> {
        let sets = awaited_sets(root).into_iter();
        let sets = sets.map(|(namespace, name)| ObjectKey::new(namespace, name));
        self.awaited.set(key, sets.collect());
        let blueprint = Blueprint::new(root, &|namespace, name| {
            let set = self.sources.sets.get(&ObjectKey::new(namespace, name))?;
            Some(set.spec.policies.clone())
        });
        let bound = self.bound(key);
        let mode = Mode::of(root);
        let override_of = |cluster: &str| bound.override_of(cluster, &mode);
        let mut own = BTreeMap::new();
        if blueprint.has_hub_templates() && !root.spec.disabled {
            let replicas = self.replicas.of(key);
            self.lookups.begin(key);
            for cluster in bound.clusters() {
                let replica = replicas.get(cluster);
                let templates = self.lookups.resolve(key, &blueprint, cluster, replica);
                let version = blueprint.version(override_of(cluster), Some(templates.await?));
                own.insert(Arc::clone(cluster), Arc::new(version));
            }
            self.lookups.end();
        } else {
            // Few spellings of one override, shared by all clusters that have it.
            let mut shared: BTreeMap<&str, Arc<Version>> = BTreeMap::new();
            for cluster in bound.overrides.keys() {
                let Some(action) = override_of(cluster) else {
                    continue;
                };
                let version = shared
                    .entry(action.as_str())
                    .or_insert_with(|| Arc::new(blueprint.version(Some(action), None)));
                own.insert(Arc::clone(cluster), Arc::clone(version));
            }
        }
        Ok(Prepared {
            common: Arc::new(blueprint.version(None, None)),
            own,
            blueprint,
            bound,
        })
    }

    fn bound(&self, key: &ObjectKey) -> Bound {
        let namespace = &*key.namespace;
        resolve(&Bindings {
            policy: &key.name,
            bindings: &self.sources.bindings.in_namespace(namespace),
            set: &|name| self.sources.sets.get(&ObjectKey::new(namespace, name)),
            selected: &|reference| self.selected(namespace, reference),
        })
    }

    /// What a placement selects; nothing if it does not exist.
    pub(super) fn selected(&self, namespace: &str, reference: &PlacementSubject) -> Option<Chosen> {
        selected(&self.sources, namespace, reference)
    }
}

/// What a placement selects; nothing if it does not exist.
pub(super) fn selected(
    sources: &super::Sources,
    namespace: &str,
    reference: &PlacementSubject,
) -> Option<Chosen> {
    let key = ObjectKey::new(namespace, &reference.name);
    if is_rule(reference) {
        return sources.rules.get(&key).map(|rule| chosen_by_rule(&rule));
    }
    let placement = sources.placements.get(&key)?;
    let decisions = sources.decisions.in_namespace(namespace);
    let own = decisions.iter().map(AsRef::as_ref);
    let own = own.filter(|it| placement_of(it) == Some(reference.name.as_str()));
    Some(Chosen::of(&placement, own))
}
