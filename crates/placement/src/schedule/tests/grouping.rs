//! Groups, and the objects decisions are written to.

use proptest::prelude::*;
use serde_json::{Value, json};

use super::world::World;
use crate::schedule::DecisionGroup;

fn groups(spec: &Value, clusters: &[&str]) -> Vec<DecisionGroup> {
    World::new(spec, clusters).schedule().groups.unwrap()
}

/// `name/index: clusters` of each group.
fn check(spec: &Value, clusters: &[&str], expected: &[&str]) {
    let actual: Vec<String> = groups(spec, clusters)
        .iter()
        .map(|group| {
            let clusters: Vec<&str> = group.decisions.iter().map(|it| &*it.cluster).collect();
            format!("{}/{}: {}", group.name, group.index, clusters.join(" "))
        })
        .collect();
    assert_eq!(actual, expected);
}

#[test]
fn named_groups_come_first_and_empty_ones_not_at_all() {
    let strategy = |size: Value| {
        json!({"decisionStrategy": {"groupStrategy": {"clustersPerDecisionGroup": size,
        "decisionGroups": [
            {"groupName": "none", "groupClusterSelector": {"labelSelector": {"matchLabels": {"x": "y"}}}},
            {"groupName": "canary", "groupClusterSelector": {"labelSelector": {"matchLabels": {"c": "1"}}}},
        ]}}})
    };
    let clusters = ["d", "a", "c10 c=1", "c2 c=1", "c1 c=1", "b"];
    check(
        &strategy(json!("100%")),
        &clusters,
        &["canary/0: c1 c10 c2", "/1: a b d"],
    );
    check(
        &strategy(json!(2)),
        &clusters,
        &["canary/0: c1 c10", "canary/1: c2", "/2: a b", "/3: d"],
    );
    // A third of six is two, and a percentage is rounded up.
    check(
        &strategy(json!("33%")),
        &clusters,
        &["canary/0: c1 c10", "canary/1: c2", "/2: a b", "/3: d"],
    );
    check(&strategy(json!("100%")), &[], &["/0: "]);
}

#[test]
fn early_spellings_are_understood_unless_ambiguous() {
    let early = json!({"decisionStrategy": {"groupStrategy": {"DecisionGroups": [
        {"groupName": "north", "clusterSelector": {"matchExpressions": [
            {"key": "north", "operator": "Exist"}]}}]}}});
    check(&early, &["a", "b north=1"], &["north/0: b", "/1: a"]);
    let group = json!([{"groupName": "north"}]);
    let both = json!({"decisionStrategy": {"groupStrategy": {
        "DecisionGroups": group, "decisionGroups": group}}});
    let outcome = World::new(&both, &["a"]).schedule();
    assert_eq!(
        outcome.misconfigured.message,
        "there are both decisionGroups and DecisionGroups"
    );
}

#[test]
fn objects_are_numbered_throughout_and_hold_a_hundred() {
    let names: Vec<String> = (0..260)
        .map(|i| {
            if i < 7 {
                format!("c{i:03} c=1")
            } else {
                format!("c{i:03}")
            }
        })
        .collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let spec = json!({"decisionStrategy": {"groupStrategy": {"clustersPerDecisionGroup": "120",
        "decisionGroups": [{"groupName": "canary",
            "groupClusterSelector": {"labelSelector": {"matchLabels": {"c": "1"}}}}]}}});
    let groups_of_names = groups(&spec, &names);
    let objects = DecisionGroup::objects("p", &groups_of_names);
    let actual: Vec<String> = objects
        .iter()
        .map(|object| {
            let [_, (_, index), (_, group)] = &object.labels;
            format!("{} {group}/{index} {}", object.name, object.decisions.len())
        })
        .collect();
    assert_eq!(
        actual,
        [
            "p-decision-1 canary/0 7",
            "p-decision-2 /1 100",
            "p-decision-3 /1 20",
            "p-decision-4 /2 100",
            "p-decision-5 /2 20",
            "p-decision-6 /3 13",
        ]
    );
    assert_eq!(
        objects[0].labels[0].0,
        "cluster.open-cluster-management.io/placement"
    );
    assert_eq!(
        objects[0].status()["decisions"][0],
        json!({"clusterName": "c000", "reason": "", "score": 100})
    );
    assert_eq!(
        serde_json::to_value(&DecisionGroup::status("p", &groups_of_names)[1]).unwrap(),
        json!({"decisionGroupIndex": 1, "decisionGroupName": "", "clusterCount": 120,
            "decisions": ["p-decision-2", "p-decision-3"]})
    );
    let nothing = DecisionGroup::objects("p", &groups(&spec, &[]));
    assert_eq!(nothing.len(), 1);
    assert_eq!(nothing[0].status(), json!({"decisions": []}));
}

#[test]
fn decisions_can_be_sorted_by_score() {
    let world = World::new(&json!({"sortBy": "Score"}), &["a", "b"]).decided(&["b"]);
    assert_eq!(world.chosen(), "b:200 a:100");
}

proptest! {
    #[test]
    fn every_chosen_cluster_is_in_exactly_one_group(
        labels in prop::collection::vec(0_u8..4, 0..40),
        size in 1_usize..12,
        number in 0_usize..40,
    ) {
        let names: Vec<String> =
            labels.iter().enumerate().map(|(i, label)| format!("c{i} g={label}")).collect();
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        let group = |value: u8| json!({"groupName": format!("g{value}"), "groupClusterSelector":
            {"labelSelector": {"matchLabels": {"g": value.to_string()}}}});
        let spec = json!({"numberOfClusters": number, "decisionStrategy": {"groupStrategy": {
            "clustersPerDecisionGroup": size, "decisionGroups": [group(2), group(0)]}}});
        let outcome = World::new(&spec, &names).schedule();
        let groups = outcome.groups.unwrap();
        let mut seen: Vec<&str> =
            groups.iter().flat_map(|it| &it.decisions).map(|it| &*it.cluster).collect();
        let count = seen.len();
        seen.sort_unstable();
        seen.dedup();
        prop_assert_eq!(seen.len(), count);
        prop_assert_eq!(count, labels.len().min(number));
        prop_assert_eq!(outcome.unscheduled, number - count);
        for (index, group) in groups.iter().enumerate() {
            prop_assert_eq!(group.index, index);
            prop_assert!(group.decisions.len() <= size.max(1) || size > count);
            prop_assert!(group.decisions.is_sorted_by_key(|it| it.cluster.clone()));
        }
    }
}
