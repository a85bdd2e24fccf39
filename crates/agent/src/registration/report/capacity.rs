//! What all nodes of a member have together.

use std::collections::BTreeMap;
use std::sync::Arc;

use bellwether_api::meta::Quantity;
use bellwether_json::quantity::Quantity as Amount;
use bellwether_runtime::{CacheEntry, ObjectKey};
use serde::Deserialize;
use serde_json::value::RawValue;

/// Resources by name.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Resources {
    /// What there is.
    pub(super) capacity: BTreeMap<String, Quantity>,
    /// What can be used: of nodes that take work.
    pub(super) allocatable: BTreeMap<String, Quantity>,
}

/// What is kept of a node: its resources, in JSON as they came.
#[derive(Debug)]
pub(super) struct NodeResources {
    name: Box<str>,
    version: Box<str>,
    takes_work: bool,
    capacity: Box<str>,
    allocatable: Box<str>,
}

/// What is read of a node.
#[derive(Deserialize)]
struct Node<'a> {
    metadata: Metadata,
    #[serde(default)]
    spec: Spec,
    #[serde(borrow, default)]
    status: Status<'a>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Metadata {
    name: Box<str>,
    #[serde(default)]
    resource_version: Box<str>,
}

#[derive(Deserialize, Default)]
struct Spec {
    #[serde(default)]
    unschedulable: bool,
}

#[derive(Deserialize, Default)]
struct Status<'a> {
    #[serde(borrow, default)]
    capacity: Option<&'a RawValue>,
    #[serde(borrow, default)]
    allocatable: Option<&'a RawValue>,
}

impl CacheEntry for NodeResources {
    fn read(text: &str) -> Result<Self, serde_json::Error> {
        let node: Node<'_> = serde_json::from_str(text)?;
        let text = |raw: Option<&RawValue>| raw.map_or("", RawValue::get).into();
        Ok(Self {
            name: node.metadata.name,
            version: node.metadata.resource_version,
            takes_work: !node.spec.unschedulable,
            capacity: text(node.status.capacity),
            allocatable: text(node.status.allocatable),
        })
    }

    fn key(&self) -> ObjectKey {
        ObjectKey::cluster_scoped(&self.name)
    }

    fn is_same(&self, other: &Self) -> bool {
        self.name == other.name && self.version == other.version
    }
}

impl Resources {
    pub(super) fn of(nodes: &[Arc<NodeResources>]) -> Self {
        let mut capacity = BTreeMap::new();
        let mut allocatable = BTreeMap::new();
        for node in nodes {
            add(&mut capacity, &node.capacity);
            if node.takes_work {
                add(&mut allocatable, &node.allocatable);
            }
        }
        Self {
            capacity: write(capacity),
            allocatable: write(allocatable),
        }
    }
}

/// Adds resources in JSON; those that cannot be read are left out.
fn add(sums: &mut BTreeMap<String, Amount>, amounts: &str) {
    let amounts: BTreeMap<String, String> = serde_json::from_str(amounts).unwrap_or_default();
    for (resource, amount) in amounts {
        let Ok(amount) = amount.parse::<Amount>() else {
            continue;
        };
        let sum = match sums.remove(&resource) {
            Some(sum) => sum.add(&amount),
            None => amount,
        };
        sums.insert(resource, sum);
    }
}

fn write(sums: BTreeMap<String, Amount>) -> BTreeMap<String, Quantity> {
    let text = |(resource, sum): (String, Amount)| (resource, Quantity::Text(sum.to_string()));
    sums.into_iter().map(text).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn nodes_are_added_up_and_those_without_work_give_none() {
        let node = |name: &str, cpu: &str, unschedulable: bool| {
            let node = json!({
                "metadata": {"name": name, "resourceVersion": "1", "labels": {"a": "b"}},
                "spec": {"unschedulable": unschedulable, "podCIDR": "10.0.0.0/24"},
                "status": {"capacity": {"cpu": cpu, "odd": "many"}, "allocatable": {"cpu": cpu}},
            });
            Arc::new(NodeResources::read(&node.to_string()).unwrap())
        };
        let bare = NodeResources::read(r#"{"metadata": {"name": "bare"}}"#).unwrap();
        let nodes = [
            node("a", "1500m", false),
            node("b", "2", true),
            Arc::new(bare),
        ];
        let cpu =
            |amount: &str| BTreeMap::from([("cpu".to_owned(), Quantity::Text(amount.to_owned()))]);
        let expected = Resources {
            capacity: cpu("3500m"),
            allocatable: cpu("1500m"),
        };
        assert_eq!(Resources::of(&nodes), expected);
    }
}
