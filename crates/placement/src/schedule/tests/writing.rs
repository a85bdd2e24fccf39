//! Changes: which matter, and how their decisions are written.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use proptest::prelude::*;
use serde_json::{Value, json};

use super::world::World;
use crate::schedule::{Cluster, Decision, DecisionGroup, DecisionObject, Write, transition};

fn objects(groups: &[Vec<u8>]) -> Vec<DecisionObject> {
    let decision = |cluster: &u8| Decision {
        cluster: format!("c{cluster}").into(),
        score: 0,
    };
    let groups: Vec<DecisionGroup> = groups
        .iter()
        .enumerate()
        .map(|(index, clusters)| DecisionGroup {
            name: String::new(),
            index,
            decisions: clusters.iter().map(decision).collect(),
        })
        .collect();
    DecisionGroup::objects("p", &groups)
}

fn clusters<'a>(objects: impl IntoIterator<Item = &'a DecisionObject>) -> BTreeSet<Arc<str>> {
    let decisions = objects.into_iter().flat_map(|object| &object.decisions);
    decisions.map(|decision| decision.cluster.clone()).collect()
}

/// Up to four groups, no cluster in two of them.
fn groups() -> impl Strategy<Value = Vec<Vec<u8>>> {
    prop::collection::vec(0_u8..5, 12).prop_map(|places| {
        (0..4)
            .map(|group| {
                (0..12)
                    .filter(|it| places[usize::from(*it)] == group)
                    .collect()
            })
            .collect()
    })
}

proptest! {
    #[test]
    fn no_cluster_vanishes_while_decisions_are_written(
        before in groups(), after in groups(), count in 0_usize..4,
    ) {
        let (before, after) = (objects(&before), objects(&after[..=count]));
        let staying: BTreeSet<Arc<str>> =
            clusters(&before).intersection(&clusters(&after)).cloned().collect();
        let mut server: BTreeMap<String, DecisionObject> =
            before.iter().map(|it| (it.name.clone(), it.clone())).collect();
        for write in transition(&before, &after) {
            match write {
                Write::Create(object) => {
                    prop_assert!(server.insert(object.name.clone(), object).is_none());
                }
                Write::Update(object) => {
                    prop_assert_ne!(server.insert(object.name.clone(), object.clone()), Some(object));
                }
                Write::Delete(name) => prop_assert!(server.remove(&name).is_some()),
            }
            prop_assert!(staying.is_subset(&clusters(server.values())));
        }
        prop_assert_eq!(server.into_values().collect::<Vec<_>>(), after);
    }

    #[test]
    fn what_does_not_concern_a_placement_does_not_change_its_decision(
        before in cluster(), after in cluster(), strict in any::<bool>(),
    ) {
        let when = if strict { "DoNotSchedule" } else { "ScheduleAnyway" };
        let spec = json!({
            "predicates": [{"requiredClusterSelector": {
                "labelSelector": {"matchLabels": {"env": "1"}}}}],
            "numberOfClusters": 2,
            "prioritizerPolicy": {"configurations": [
                {"scoreCoordinate": {"builtIn": "ResourceAllocatableCPU"}}]},
            "spreadPolicy": {"spreadConstraints": [
                {"topologyKey": "zone", "whenUnsatisfiable": when}]},
            "decisionStrategy": {"groupStrategy": {"decisionGroups": [{"groupName": "first",
                "groupClusterSelector": {"labelSelector": {"matchLabels": {"first": "1"}}}}]}},
        });
        let mut world = World::new(&spec, &["a env=1 zone=0", "b env=1 zone=1"]);
        let read = |object: &Value| Cluster::from_json(Arc::new(object.clone())).unwrap();
        let is_concerned = world.concerns(Some(&read(&before)), Some(&read(&after)));
        world.add(before);
        let first = world.schedule();
        world.clusters.pop();
        world.add(after);
        if !is_concerned {
            prop_assert_eq!(first, world.schedule());
        }
    }
}

fn cluster() -> impl Strategy<Value = Value> {
    (0_u8..2, 0_u8..3, 0_u8..2, 0_u8..3, any::<bool>()).prop_map(|(env, zone, first, cpu, taint)| {
        let taints = if taint { json!([{"key": "t", "effect": "NoSelect"}]) } else { json!([]) };
        json!({
            "metadata": {"name": "ab", "labels": {"env": env.to_string(), "zone": zone.to_string(),
                "first": first.to_string(), "noise": cpu.to_string()}},
            "spec": {"taints": taints},
            "status": {"capacity": {"cpu": "4"}, "allocatable": {"cpu": cpu.to_string()}},
        })
    })
}

#[test]
fn labels_that_nobody_asks_for_concern_nobody() {
    let spec = json!({"predicates": [{"requiredClusterSelector":
        {"labelSelector": {"matchLabels": {"env": "dev"}}}}]});
    let world = World::new(
        &spec,
        &["a env=dev", "b env=dev x=1", "c env=prod", "d env=prod x=1"],
    );
    let check = |before: usize, after: usize, expected: bool| {
        let (before, after) = (&world.clusters[before], &world.clusters[after]);
        assert_eq!(
            world.concerns(Some(before), Some(after)),
            expected,
            "{before:?} {after:?}"
        );
    };
    check(0, 1, false);
    check(2, 3, false);
    check(0, 2, true);
    check(2, 0, true);
    assert!(world.concerns(None, Some(&world.clusters[0])));
}

#[test]
fn decision_objects_are_read_as_they_are_written() {
    let object = objects(&[vec![1, 2]]).remove(0);
    let labels: serde_json::Map<String, Value> = object
        .labels
        .iter()
        .map(|(name, value)| ((*name).to_owned(), json!(value)))
        .collect();
    let json =
        json!({"metadata": {"name": object.name, "labels": labels}, "status": object.status()});
    assert_eq!(DecisionObject::from_json(&json), object);
}
