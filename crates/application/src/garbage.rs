//! Objects that an application no longer has: which of them are deleted, in which order, and which stay.
//!
//! With `order: dependency`, an object goes when nothing is left of the components that depend on its component.

use std::collections::BTreeSet;

use bellwether_api::oam::names::label;
use bellwether_api::oam::{ApplicationComponent, ManagedResource};
use serde_json::{Value, json};

use crate::resource_policy::{GarbageCollectPolicy, Propagation};
use crate::tracker::{self, Identity};

/// Which components depend on which.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Dependencies {
    /// Pairs of a component and one that depends on it.
    pairs: BTreeSet<(String, String)>,
}

impl Dependencies {
    /// Those of some components: by `dependsOn`, and by values that one gets from another.
    pub fn of<'a>(components: impl IntoIterator<Item = &'a ApplicationComponent>) -> Self {
        let components: Vec<&ApplicationComponent> = components.into_iter().collect();
        let mut pairs = BTreeSet::new();
        for dependent in &components {
            for needed in &dependent.depends_on {
                pairs.insert((needed.clone(), dependent.name.clone()));
            }
            for input in &dependent.inputs {
                let givers = components.iter().filter(|giver| {
                    let mut outputs = giver.outputs.iter();
                    outputs.any(|output| output.name == input.from)
                });
                pairs.extend(givers.map(|giver| (giver.name.clone(), dependent.name.clone())));
            }
        }
        pairs.retain(|(needed, dependent)| needed != dependent);
        Self { pairs }
    }

    /// Those of the entries whose turn it is: nothing is left of what depends on them. If components depend on each other in
    /// a circle, it is the turn of all.
    pub fn turn<'a>(&self, left: &[&'a ManagedResource]) -> Vec<&'a ManagedResource> {
        let there: BTreeSet<&str> = left.iter().map(|entry| entry.component.as_str()).collect();
        let is_needed = |entry: &ManagedResource| {
            self.pairs.iter().any(|(needed, dependent)| {
                *needed == entry.component && there.contains(dependent.as_str())
            })
        };
        let free: Vec<_> = left
            .iter()
            .copied()
            .filter(|entry| !is_needed(entry))
            .collect();
        if free.is_empty() { left.to_vec() } else { free }
    }
}

/// The entries that are not deleted but left to nobody, by the rules of the policy.
pub fn orphans(policy: &GarbageCollectPolicy, entries: &[&ManagedResource]) -> BTreeSet<Identity> {
    let is_left = |entry: &&&ManagedResource| {
        policy.propagation(&selectable(entry)) == Some(Propagation::Orphan)
    };
    let left = entries.iter().filter(is_left);
    left.map(|entry| tracker::identity(entry)).collect()
}

/// An entry as selectors of policies look at it: the object that was applied, or what is known of it.
fn selectable(entry: &ManagedResource) -> Value {
    if let Some(raw) = &entry.raw {
        return raw.value();
    }
    let mut object = tracker::object(entry);
    let resource_type = if entry.resource_trait.is_empty() {
        label::WORKLOAD
    } else {
        label::TRAIT
    };
    object["metadata"]["labels"] = json!({
        label::COMPONENT: entry.component,
        label::TRAIT_TYPE: entry.resource_trait,
        label::RESOURCE_TYPE: resource_type,
    });
    object
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(component: &str) -> ManagedResource {
        ManagedResource {
            api_version: "v1".to_owned(),
            kind: "ConfigMap".to_owned(),
            name: format!("of-{component}"),
            component: component.to_owned(),
            ..ManagedResource::default()
        }
    }

    fn components(spec: Value) -> Vec<ApplicationComponent> {
        serde_json::from_value(spec).unwrap()
    }

    #[track_caller]
    fn check(spec: Value, left: &[&str], expected: &[&str]) {
        let dependencies = Dependencies::of(&components(spec));
        let entries: Vec<ManagedResource> = left.iter().map(|name| entry(name)).collect();
        let entries: Vec<&ManagedResource> = entries.iter().collect();
        let turn = dependencies.turn(&entries);
        let turn: Vec<&str> = turn.iter().map(|entry| entry.component.as_str()).collect();
        assert_eq!(turn, expected);
    }

    #[test]
    fn what_others_depend_on_goes_last() {
        let chain = json!([
            {"name": "db", "type": "worker", "outputs": [{"name": "address", "valueFrom": "output.x"}]},
            {"name": "api", "type": "worker", "inputs": [{"from": "address", "parameterKey": "y"}]},
            {"name": "web", "type": "worker", "dependsOn": ["api"]},
        ]);
        check(chain.clone(), &["db", "api", "web"], &["web"]);
        check(chain.clone(), &["db", "api"], &["api"]);
        check(chain, &["db"], &["db"]);
        check(json!([]), &["a", "b"], &["a", "b"]);
        let circle = json!([
            {"name": "a", "type": "worker", "dependsOn": ["b"]},
            {"name": "b", "type": "worker", "dependsOn": ["a"]},
        ]);
        check(circle, &["a", "b"], &["a", "b"]);
    }

    #[test]
    fn rules_say_what_stays() {
        let policy: GarbageCollectPolicy = serde_json::from_value(json!({"rules": [
            {"selector": {"componentNames": ["db"]}, "propagation": "orphan"},
            {"selector": {"oamTypes": ["WORKLOAD"]}, "propagation": "cascading"},
        ]}))
        .unwrap();
        let (db, web) = (entry("db"), entry("web"));
        let left = orphans(&policy, &[&db, &web]);
        assert_eq!(left, BTreeSet::from([tracker::identity(&db)]));
    }
}
