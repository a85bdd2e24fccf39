//! How far clusters are, and the groups they are in.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use bellwether_api::cluster::PlacementDecision;
use bellwether_api::cluster::names::label;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

/// How far a cluster is with the version being rolled out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Status {
    /// It has not started.
    ToApply,
    /// It is on its way.
    Progressing,
    /// It arrived, and may have to soak.
    Succeeded,
    /// It failed, and may recover until its deadline.
    Failed,
    /// It did not arrive in time.
    TimeOut,
    /// It is passed over.
    Skip,
}

impl Status {
    /// Whether it counts against the tolerated failures.
    pub fn is_failure(self) -> bool {
        matches!(self, Self::Failed | Self::TimeOut)
    }
}

/// Which decision group: its name, which may be empty or shared, and its index.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct GroupKey {
    /// The name, often empty.
    pub name: Arc<str>,
    /// The place in the order of groups.
    pub index: i64,
}

impl fmt::Display for GroupKey {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.name.is_empty() {
            write!(formatter, "group {}", self.index)
        } else {
            write!(formatter, "group {}", self.name)
        }
    }
}

/// A decision group and its clusters, in any order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Group {
    /// Which one.
    pub key: GroupKey,
    /// Its clusters.
    pub clusters: Vec<Arc<str>>,
}

impl Group {
    /// A group of these clusters.
    pub fn new<N: Into<Arc<str>>>(
        name: &str,
        index: i64,
        clusters: impl IntoIterator<Item = N>,
    ) -> Self {
        let name = name.into();
        Self {
            key: GroupKey { name, index },
            clusters: clusters.into_iter().map(Into::into).collect(),
        }
    }
}

impl Group {
    /// The groups that `PlacementDecision` objects describe by their labels, in order. Objects
    /// without labels, as others than Bellwether may write them, are group 0.
    pub fn from_decisions<'a>(
        decisions: impl IntoIterator<Item = &'a PlacementDecision>,
    ) -> Vec<Self> {
        let mut groups: BTreeMap<(i64, Arc<str>), Vec<Arc<str>>> = BTreeMap::new();
        for object in decisions {
            let labels = object.metadata.labels.as_ref();
            let read = |name: &str| labels.and_then(|labels| labels.get(name));
            let index = read(label::DECISION_GROUP_INDEX);
            let index = index.and_then(|index| index.parse().ok()).unwrap_or(0);
            let name = read(label::DECISION_GROUP_NAME);
            let name = name.map_or("", String::as_str).into();
            let clusters = groups.entry((index, name)).or_default();
            let decisions = object.status.iter().flat_map(|status| &status.decisions);
            clusters.extend(decisions.map(|it| it.cluster_name.as_str().into()));
        }
        let group = |((index, name), clusters)| Self {
            key: GroupKey { name, index },
            clusters,
        };
        groups.into_iter().map(group).collect()
    }
}

/// How far one cluster is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClusterStatus {
    /// Which cluster.
    pub cluster: Arc<str>,
    /// The group it is, or was, in.
    pub group: GroupKey,
    /// How far it is.
    pub status: Status,
    /// Since when, if that is known; otherwise it counts as since now.
    pub last_transition: Option<Timestamp>,
    /// When to reconcile again, in answers: the end of the soak, or the deadline.
    pub recheck: Option<Timestamp>,
}

impl ClusterStatus {
    /// A cluster that has been in `status` since `last_transition`.
    pub fn new(
        cluster: impl Into<Arc<str>>,
        group: GroupKey,
        status: Status,
        last_transition: Option<Timestamp>,
    ) -> Self {
        Self {
            cluster: cluster.into(),
            group,
            status,
            last_transition,
            recheck: None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    #[test]
    fn groups_are_read_from_the_labels_of_decisions() {
        let object = |labels: Value, clusters: &[&str]| {
            let decisions: Vec<Value> = clusters
                .iter()
                .map(|cluster| json!({"clusterName": cluster, "reason": ""}))
                .collect();
            json!({"metadata": {"labels": labels}, "status": {"decisions": decisions}})
        };
        let labels = |name: &str, index: &str| {
            json!({
                "cluster.open-cluster-management.io/decision-group-name": name,
                "cluster.open-cluster-management.io/decision-group-index": index,
            })
        };
        let objects = [
            object(labels("", "10"), &["d"]),
            object(labels("canary", "2"), &["a"]),
            object(labels("canary", "2"), &["b"]),
            object(json!({}), &["c"]),
        ];
        let objects: Vec<PlacementDecision> = objects
            .into_iter()
            .map(|object| serde_json::from_value(object).unwrap())
            .collect();
        let expected = [
            Group::new("", 0, ["c"]),
            Group::new("canary", 2, ["a", "b"]),
            Group::new("", 10, ["d"]),
        ];
        assert_eq!(Group::from_decisions(&objects), expected);
    }
}
