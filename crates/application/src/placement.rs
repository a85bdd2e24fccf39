//! Topology and replication policies: which clusters components go to, and in how many copies.

use std::collections::BTreeMap;

use bellwether_api::oam::names::LOCAL_CLUSTER;
use serde::Deserialize;

use crate::context::Target;
use crate::error::{Class, RenderError, Stage};
use crate::world::World;

/// The properties of a topology policy.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct TopologyPolicy {
    /// Names of clusters.
    #[serde(default)]
    pub clusters: Option<Vec<String>>,
    /// Labels of clusters.
    #[serde(default)]
    pub cluster_label_selector: Option<BTreeMap<String, String>>,
    /// The same, in old applications.
    #[serde(default)]
    pub cluster_selector: Option<BTreeMap<String, String>>,
    /// Whether it is right if no cluster has the labels.
    #[serde(default)]
    pub allow_empty: bool,
    /// Namespace instead of that of the application.
    #[serde(default)]
    pub namespace: String,
}

/// The properties of a replication policy.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ReplicationPolicy {
    /// A key for each copy.
    #[serde(default)]
    pub keys: Vec<String>,
    /// Names of the components; all if empty.
    #[serde(default)]
    pub selector: Vec<String>,
}

/// Where topologies place components; on the hub if there are none. No place is named twice.
pub fn targets(topologies: &[TopologyPolicy], world: &World) -> Result<Vec<Target>, RenderError> {
    let mut targets: Vec<Target> = Vec::new();
    let mut add = |cluster: &str, namespace: &str| {
        let target = Target {
            cluster: cluster.to_owned(),
            namespace: namespace.to_owned(),
            replica_key: String::new(),
        };
        if !targets.contains(&target) {
            targets.push(target);
        }
    };
    if topologies.is_empty() {
        add(LOCAL_CLUSTER, "");
    }
    for topology in topologies {
        let selector = topology
            .cluster_label_selector
            .as_ref()
            .or(topology.cluster_selector.as_ref());
        match (&topology.clusters, selector) {
            (Some(names), _) => {
                for name in names {
                    if !world.has_cluster(name) {
                        return Err(not_found(format!(
                            "topology: cluster {name} does not exist"
                        )));
                    }
                    add(name, &topology.namespace);
                }
            }
            (None, Some(selector)) => {
                let names = selected(selector, world);
                if names.is_empty() && !selector.is_empty() && !topology.allow_empty {
                    return Err(not_found(format!(
                        "topology: no cluster has the labels {selector:?}; set allowEmpty if that is right"
                    )));
                }
                // The hub has no labels to select it by, but belongs to all clusters.
                if selector.is_empty() {
                    add(LOCAL_CLUSTER, &topology.namespace);
                }
                for name in names {
                    add(name, &topology.namespace);
                }
            }
            (None, None) => add(LOCAL_CLUSTER, &topology.namespace),
        }
    }
    Ok(targets)
}

fn not_found(message: String) -> RenderError {
    RenderError::new(Stage::Deploy, Class::NotFound, message)
}

fn selected<'a>(selector: &BTreeMap<String, String>, world: &'a World) -> Vec<&'a str> {
    let has_labels = |labels: &BTreeMap<String, String>| {
        selector
            .iter()
            .all(|(key, value)| labels.get(key) == Some(value))
    };
    let clusters = world
        .clusters
        .iter()
        .filter(|cluster| has_labels(&cluster.labels));
    clusters.map(|cluster| cluster.name.as_str()).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::world::Cluster;

    fn world() -> World {
        let cluster = |name: &str, region: &str| Cluster {
            name: name.to_owned(),
            labels: BTreeMap::from([("region".to_owned(), region.to_owned())]),
            version: None,
        };
        World {
            clusters: std::sync::Arc::new(vec![
                cluster("east", "e"),
                cluster("west", "w"),
                cluster("wild", "w"),
            ]),
            ..World::default()
        }
    }

    #[track_caller]
    fn check(topologies: Value, expected: Result<&[(&str, &str)], &str>) {
        let topologies: Vec<TopologyPolicy> = serde_json::from_value(topologies).unwrap();
        match (targets(&topologies, &world()), expected) {
            (Ok(targets), Ok(expected)) => {
                let targets: Vec<_> = targets
                    .iter()
                    .map(|target| (target.cluster.as_str(), target.namespace.as_str()))
                    .collect();
                assert_eq!(targets, expected);
            }
            (Err(error), Err(expected)) => assert!(error.message.contains(expected), "{error}"),
            (found, expected) => panic!("got {found:?}, want {expected:?}"),
        }
    }

    #[test]
    fn components_go_where_topologies_say() {
        check(json!([]), Ok(&[("local", "")]));
        check(json!([{"namespace": "far"}]), Ok(&[("local", "far")]));
        check(
            json!([{"clusters": ["east", "east", "local"]}]),
            Ok(&[("east", ""), ("local", "")]),
        );
        check(
            json!([{"clusterLabelSelector": {"region": "w"}}]),
            Ok(&[("west", ""), ("wild", "")]),
        );
        check(
            json!([{"clusterLabelSelector": {}}]),
            Ok(&[("local", ""), ("east", ""), ("west", ""), ("wild", "")]),
        );
        check(
            json!([{"clusters": ["mars"]}]),
            Err("cluster mars does not exist"),
        );
        check(
            json!([{"clusterLabelSelector": {"region": "x"}}]),
            Err("no cluster has the labels"),
        );
        check(
            json!([{"clusterLabelSelector": {"region": "x"}, "allowEmpty": true}]),
            Ok(&[]),
        );
    }
}
