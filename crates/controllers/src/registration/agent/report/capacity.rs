//! What all nodes of a member have together.

use std::collections::BTreeMap;
use std::sync::Arc;

use bellwether_api::meta::Quantity;
use bellwether_json::quantity::Quantity as Amount;
use k8s_openapi::api::core::v1::Node;
use k8s_openapi::apimachinery::pkg::api::resource::Quantity as Text;

/// Resources by name.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Resources {
    /// What there is.
    pub(super) capacity: BTreeMap<String, Quantity>,
    /// What can be used: of nodes that take work.
    pub(super) allocatable: BTreeMap<String, Quantity>,
}

impl Resources {
    pub(super) fn of(nodes: &[Arc<Node>]) -> Self {
        let mut capacity = BTreeMap::new();
        let mut allocatable = BTreeMap::new();
        for node in nodes {
            let Some(status) = &node.status else {
                continue;
            };
            let spec = node.spec.as_ref();
            let takes_work = !spec.and_then(|it| it.unschedulable).unwrap_or(false);
            add(&mut capacity, status.capacity.as_ref());
            if takes_work {
                add(&mut allocatable, status.allocatable.as_ref());
            }
        }
        Self {
            capacity: write(capacity),
            allocatable: write(allocatable),
        }
    }
}

fn add(sums: &mut BTreeMap<String, Amount>, amounts: Option<&BTreeMap<String, Text>>) {
    for (resource, amount) in amounts.into_iter().flatten() {
        let Ok(amount) = amount.0.parse::<Amount>() else {
            continue;
        };
        let sum = match sums.remove(resource) {
            Some(sum) => sum.add(&amount),
            None => amount,
        };
        sums.insert(resource.clone(), sum);
    }
}

fn write(sums: BTreeMap<String, Amount>) -> BTreeMap<String, Quantity> {
    let text = |(resource, sum): (String, Amount)| (resource, Quantity::Text(sum.to_string()));
    sums.into_iter().map(text).collect()
}
