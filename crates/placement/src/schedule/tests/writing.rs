//! Changes: which matter, and how their decisions are written.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use proptest::prelude::*;
use serde_json::{Value, json};

use super::world::World;
use crate::schedule::{
    Cluster, Decision, DecisionGroup, DecisionObject, MAX_DECISIONS_PER_OBJECT, Write, transition,
};

fn objects(groups: &[Vec<u16>]) -> Vec<DecisionObject> {
    let decision = |cluster: &u16| Decision {
        cluster: format!("c{cluster:04}").into(),
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

/// Up to four groups, some of them of several objects; no cluster in two groups.
fn groups() -> impl Strategy<Value = Vec<Vec<u16>>> {
    const CLUSTERS: u16 = 300;
    (1_u8..6).prop_flat_map(|groups| {
        let places = prop::collection::vec(0..groups, usize::from(CLUSTERS));
        places.prop_map(|places| {
            let is_in = |cluster: u16, group: u8| places[usize::from(cluster)] == group;
            let members = |group| (0..CLUSTERS).filter(|it| is_in(*it, group)).collect();
            (0..4).map(members).collect()
        })
    })
}

/// The objects on a server: what is written one by one, and looked at after each.
struct Server {
    objects: BTreeMap<String, DecisionObject>,
    staying: BTreeSet<Arc<str>>,
    /// The group of each cluster before and after.
    groups: [BTreeMap<Arc<str>, String>; 2],
}

fn group_of_each(objects: &[DecisionObject]) -> BTreeMap<Arc<str>, String> {
    let clusters = |object: &DecisionObject| {
        let group = object.labels[1].1.clone();
        let decisions = object.decisions.clone().into_iter();
        decisions.map(move |decision| (decision.cluster, group.clone()))
    };
    objects.iter().flat_map(clusters).collect()
}

impl Server {
    fn new(before: &[DecisionObject], after: &[DecisionObject]) -> Self {
        Self {
            objects: before
                .iter()
                .map(|it| (it.name.clone(), it.clone()))
                .collect(),
            staying: clusters(before)
                .intersection(&clusters(after))
                .cloned()
                .collect(),
            groups: [group_of_each(before), group_of_each(after)],
        }
    }

    /// Carries a write out, request by request.
    fn write(&mut self, write: Write) {
        match write {
            Write::Create(object) => {
                let name = object.name.clone();
                let empty = DecisionObject {
                    decisions: Vec::new(),
                    ..object.clone()
                };
                assert!(self.objects.insert(name, empty).is_none());
                self.check();
                self.objects.insert(object.name.clone(), object);
            }
            Write::Update(object) => {
                let before = self
                    .objects
                    .insert(object.name.clone(), object.clone())
                    .unwrap();
                assert_ne!(before, object);
                assert_eq!(before.labels, object.labels);
            }
            Write::Relabel(object) => {
                self.objects
                    .get_mut(&object.name)
                    .unwrap()
                    .decisions
                    .clear();
                self.check();
                self.objects.get_mut(&object.name).unwrap().labels = object.labels.clone();
                self.objects.insert(object.name.clone(), object);
            }
            Write::Delete(name) => assert!(self.objects.remove(&name).is_some()),
        }
        self.check();
    }

    fn check(&self) {
        assert!(self.staying.is_subset(&clusters(self.objects.values())));
        for object in self.objects.values() {
            assert!(
                object.decisions.len() <= MAX_DECISIONS_PER_OBJECT,
                "{}",
                object.name
            );
            for decision in &object.decisions {
                let group = Some(&object.labels[1].1);
                let allowed = self.groups.iter().map(|it| it.get(&decision.cluster));
                assert!(
                    allowed.into_iter().any(|it| it == group),
                    "{decision:?} in {object:?}"
                );
            }
        }
    }
}

fn check_transition(before: &[DecisionObject], after: &[DecisionObject], backwards: bool) -> usize {
    let mut server = Server::new(before, after);
    let mut count = 0;
    for mut step in transition(before, after) {
        count += step.len();
        if backwards {
            step.reverse();
        }
        for write in step {
            server.write(write);
        }
    }
    let mut written: Vec<_> = server.objects.into_values().collect();
    let mut wanted = after.to_vec();
    written.sort_by(|a, b| a.name.cmp(&b.name));
    wanted.sort_by(|a, b| a.name.cmp(&b.name));
    assert_eq!(written, wanted);
    count
}

#[test]
fn a_cluster_that_leaves_a_full_fleet_costs_one_write_an_object() {
    let all: Vec<u16> = (0..500).collect();
    let check = |before: &[u16], after: &[u16]| {
        let (before, after) = (objects(&[before.to_vec()]), objects(&[after.to_vec()]));
        assert_eq!(check_transition(&before, &after, false), 5);
    };
    check(&all, &all[1..]);
    check(&all[1..], &all);
}

#[test]
fn a_cluster_that_leaves_ten_thousand_takes_three_steps() {
    let all: Vec<u16> = (0..10_000).collect();
    let check = |before: &[u16], after: &[u16]| {
        let (before, after) = (objects(&[before.to_vec()]), objects(&[after.to_vec()]));
        assert_eq!(transition(&before, &after).len(), 3);
        // An object for those that move, which comes and goes.
        assert_eq!(check_transition(&before, &after, false), 102);
        assert_eq!(check_transition(&before, &after, true), 102);
    };
    check(&all, &all[1..]);
    check(&all[1..], &all);
}

#[test]
fn a_group_that_takes_the_place_of_another_shows_no_cluster_in_a_wrong_one() {
    let (first, second): (Vec<u16>, Vec<u16>) = ((0..150).collect(), (150..250).collect());
    let before = objects(&[first.clone(), second.clone()]);
    let after = objects(&[second, first]);
    check_transition(&before, &after, false);
    check_transition(&before, &after, true);
}

proptest! {
    #[test]
    fn no_cluster_vanishes_while_decisions_are_written(
        before in groups(), after in groups(), count in 0_usize..4, backwards in any::<bool>(),
    ) {
        check_transition(&objects(&before), &objects(&after[..=count]), backwards);
    }

    #[test]
    fn no_cluster_vanishes_from_a_large_group_that_shifts(
        came in prop::collection::btree_set(0_u16..800, 0..20),
        went in prop::collection::btree_set(0_u16..800, 0..20),
        backwards in any::<bool>(),
    ) {
        let all = |without: &BTreeSet<u16>| -> Vec<u16> {
            (0..800).filter(|it| !without.contains(it)).collect()
        };
        check_transition(&objects(&[all(&came)]), &objects(&[all(&went)]), backwards);
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
        let is_concerned = world.affects(Some(&read(&before)), Some(&read(&after)));
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
            world.affects(Some(before), Some(after)),
            expected,
            "{before:?} {after:?}"
        );
    };
    check(0, 1, false);
    check(2, 3, false);
    check(0, 2, true);
    check(2, 0, true);
    assert!(world.affects(None, Some(&world.clusters[0])));
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
