//! The clusters that a policy in a file would go to.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use anyhow::Context as _;
use bellwether_api::policy::{PlacementBinding, PlacementRule, Policy, PolicySet};
use bellwether_placement::rollout::Chosen;
use bellwether_policy::binding::{Bindings, Bound, chosen_by_rule, is_rule, resolve};
use kube::Api;
use kube::api::ListParams;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::World;

/// Finds the clusters of a policy through the bindings of its namespace.
pub(super) async fn bound(world: &World<'_>, policy: &Policy) -> anyhow::Result<Bound> {
    let name = policy.metadata.name.as_deref().unwrap_or_default();
    let namespace = policy.metadata.namespace.as_deref().unwrap_or_default();
    let bindings: Vec<Arc<PlacementBinding>> = all(world, "PlacementBinding", namespace).await?;
    let sets: Vec<Arc<PolicySet>> = all(world, "PolicySet", namespace).await?;
    let rules: Vec<Arc<PlacementRule>> = all(world, "PlacementRule", namespace).await?;
    let set = |wanted: &str| {
        let mut sets = sets.iter();
        sets.find(|it| it.metadata.name.as_deref() == Some(wanted))
            .cloned()
    };
    // Placements are asked for once it is known which of them count.
    let named = std::cell::RefCell::new(BTreeSet::new());
    resolve(&Bindings {
        policy: name,
        bindings: &bindings,
        set: &set,
        selected: &|reference| {
            if !is_rule(reference) {
                named.borrow_mut().insert(reference.name.clone());
            }
            None
        },
    });
    let mut selected: HashMap<String, Chosen> = HashMap::new();
    for placement in named.into_inner() {
        let groups = super::groups(world, namespace, &placement).await?;
        selected.insert(placement, Chosen::from(groups));
    }
    let bound = resolve(&Bindings {
        policy: name,
        bindings: &bindings,
        set: &set,
        selected: &|reference| {
            if is_rule(reference) {
                let mut rules = rules.iter();
                let rule =
                    rules.find(|it| it.metadata.name.as_deref() == Some(&*reference.name))?;
                return Some(chosen_by_rule(rule));
            }
            selected.get(&reference.name).cloned()
        },
    });
    anyhow::ensure!(
        bound.clusters().next().is_some(),
        "policy/{name} goes to no cluster: no PlacementBinding in namespace {namespace}, neither in the files \
         nor on the hub, binds it to a placement that chooses one"
    );
    Ok(bound)
}

/// The names of the placements of a policy, in order.
pub(super) fn placements(bound: &Bound) -> String {
    let mut names: Vec<&str> = bound.groups.iter().map(|it| &*it.placement).collect();
    names.dedup();
    names.join(", ")
}

/// The objects of a kind in a namespace: those of the files, and those of the hub that the files do not have.
async fn all<K>(world: &World<'_>, kind: &str, namespace: &str) -> anyhow::Result<Vec<Arc<K>>>
where
    K: kube::Resource<DynamicType = (), Scope = k8s_openapi::NamespaceResourceScope>
        + Clone
        + DeserializeOwned
        + std::fmt::Debug,
{
    let is_meant =
        |object: &&Value| object["kind"] == *kind && object["metadata"]["namespace"] == *namespace;
    let mut found: Vec<Arc<K>> = Vec::new();
    for object in world.objects.iter().filter(is_meant) {
        let object: K = serde_json::from_value(object.clone())
            .with_context(|| format!("a {kind} cannot be read"))?;
        found.push(Arc::new(object));
    }
    let Some(client) = world.hub else {
        return Ok(found);
    };
    let api: Api<K> = Api::namespaced(client.clone(), namespace);
    for object in api.list(&ListParams::default()).await? {
        let is_known = |it: &Arc<K>| it.meta().name == object.meta().name;
        if !found.iter().any(is_known) {
            found.push(Arc::new(object));
        }
    }
    Ok(found)
}
