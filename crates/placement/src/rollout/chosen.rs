//! What a placement has chosen, and whether all of its decisions have been seen.
//!
//! A placement keeps its decisions in several objects, which are written and seen one after the other. In
//! between, a group that goes first may look empty, so that the group behind it would be taken for the first.

use std::collections::HashSet;

use bellwether_api::cluster::names::annotation;
use bellwether_api::cluster::{Placement, PlacementDecision, PlacementStatus};

use super::reason::Hold;
use super::status::Group;
use super::strategy::Kind;

/// What a placement has chosen.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Chosen {
    /// The clusters, in their groups.
    pub groups: Vec<Group>,
    /// How many clusters the placement says that it has chosen.
    pub selected: i64,
    /// False while its decisions are not what its status says: some of them are still to be written or seen.
    pub is_settled: bool,
}

impl From<Vec<Group>> for Chosen {
    /// Takes these groups for all there are.
    fn from(groups: Vec<Group>) -> Self {
        Self {
            selected: count(&groups),
            groups,
            is_settled: true,
        }
    }
}

impl Chosen {
    /// Reads what a placement has chosen from its decisions, and compares it with its status.
    pub fn of<'a>(
        placement: &Placement,
        decisions: impl IntoIterator<Item = &'a PlacementDecision>,
    ) -> Self {
        let groups = Group::from_decisions(decisions);
        let status = placement.status.as_ref();
        Self {
            selected: status.map_or(count(&groups), |it| it.number_of_selected_clusters.into()),
            is_settled: is_written_by_others(placement)
                || status.is_some_and(|status| is_complete(&groups, status)),
            groups,
        }
    }

    /// Returns all clusters, group by group.
    pub fn clusters(&self) -> impl Iterator<Item = &str> {
        let clusters = self.groups.iter().flat_map(|group| &group.clusters);
        clusters.map(AsRef::as_ref)
    }

    /// Returns why nothing new may start: who goes first is not known before all decisions are. Where all
    /// clusters go at once, nobody goes first.
    pub fn hold(&self, kind: Kind) -> Option<Hold> {
        (!self.is_settled && kind != Kind::All).then_some(Hold::Unsettled)
    }
}

fn count(groups: &[Group]) -> i64 {
    let count: usize = groups.iter().map(|group| group.clusters.len()).sum();
    i64::try_from(count).unwrap_or(i64::MAX)
}

/// True if the scheduler leaves the placement to somebody who need not write its status.
fn is_written_by_others(placement: &Placement) -> bool {
    let annotations = placement.metadata.annotations.as_ref();
    let value = annotations.and_then(|it| it.get(annotation::SCHEDULING_DISABLED));
    value.is_some_and(|value| value == "true")
}

/// True if every cluster is in one group, and there are as many in each as the status says.
fn is_complete(groups: &[Group], status: &PlacementStatus) -> bool {
    let mut seen = HashSet::new();
    let mut clusters = groups.iter().flat_map(|group| &group.clusters);
    // A cluster that moves is in both groups for a while.
    if !clusters.all(|cluster| seen.insert(cluster)) {
        return false;
    }
    if count(groups) != i64::from(status.number_of_selected_clusters) {
        return false;
    }
    let written = |index: i64, name: &str| {
        let mut all = groups.iter();
        let found = all.find(|it| it.key.index == index && *it.key.name == *name);
        found.map_or(0, |it| it.clusters.len())
    };
    status.decision_groups.iter().all(|group| {
        let found = written(
            group.decision_group_index.into(),
            &group.decision_group_name,
        );
        i32::try_from(found) == Ok(group.clusters_count)
    })
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn placement(status: &Value) -> Placement {
        let group = |(index, count): (usize, &Value)| json!({"decisionGroupIndex": index, "decisionGroupName": "", "clusterCount": count});
        let groups = status["groups"].as_array().into_iter().flatten();
        let groups: Vec<Value> = groups.enumerate().map(group).collect();
        let status = status["selected"].as_i64().map(|selected| {
            json!({"numberOfSelectedClusters": selected, "decisionGroups": groups, "conditions": []})
        });
        serde_json::from_value(json!({"metadata": {"name": "p"}, "spec": {}, "status": status}))
            .unwrap()
    }

    fn decisions(groups: &[&[&str]]) -> Vec<PlacementDecision> {
        let object = |(index, clusters): (usize, &&[&str])| {
            let decisions = clusters.iter();
            let decisions = decisions.map(|it| json!({"clusterName": it, "reason": ""}));
            let labels = json!({"cluster.open-cluster-management.io/decision-group-index": index.to_string()});
            json!({"metadata": {"labels": labels}, "status": {"decisions": decisions.collect::<Vec<_>>()}})
        };
        let objects = groups.iter().enumerate().map(object);
        objects
            .map(|it| serde_json::from_value(it).unwrap())
            .collect()
    }

    #[test]
    fn decisions_are_settled_once_they_are_what_the_status_says() {
        let cases: [(Value, &[&[&str]], bool); 9] = [
            // The scheduler has not written its status yet.
            (json!({}), &[&[], &["b"]], false),
            (json!({"selected": 2}), &[&["a"], &["b"]], true),
            // The first object is still empty.
            (json!({"selected": 2}), &[&[], &["b"]], false),
            // They are written before the status.
            (json!({"selected": 0}), &[&["a"]], false),
            (json!({"selected": 0, "groups": [0]}), &[&[]], true),
            // A cluster moves to the first group.
            (json!({"selected": 3}), &[&["a", "b"], &["b"]], false),
            (
                json!({"selected": 3, "groups": [1, 2]}),
                &[&["a"], &["b", "c"]],
                true,
            ),
            (
                json!({"selected": 3, "groups": [1, 2]}),
                &[&["a", "b"], &["c"]],
                false,
            ),
            // A group without an object has no clusters.
            (json!({"selected": 1, "groups": [1, 0]}), &[&["a"]], true),
        ];
        for (status, groups, expected) in cases {
            let found = Chosen::of(&placement(&status), &decisions(groups));
            assert_eq!(found.is_settled, expected, "{status} {groups:?}");
            let hold = (!expected).then_some(Hold::Unsettled);
            assert_eq!(found.hold(Kind::ProgressivePerGroup), hold);
            assert_eq!(found.hold(Kind::All), None);
        }
    }

    #[test]
    fn decisions_of_others_are_taken_as_they_are() {
        let mut placement = placement(&json!({"selected": 7}));
        let disabled = (
            annotation::SCHEDULING_DISABLED.to_owned(),
            "true".to_owned(),
        );
        placement.metadata.annotations = Some([disabled].into());
        let found = Chosen::of(&placement, &decisions(&[&["a"]]));
        assert!(found.is_settled);
        assert_eq!(found.clusters().collect::<Vec<_>>(), ["a"]);
    }
}
