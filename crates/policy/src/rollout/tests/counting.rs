//! Counting reports comes to the same as planning, and touches only the clusters that report.

use std::collections::BTreeMap;
use std::sync::Arc;

use bellwether_api::policy::{ComplianceState, Policy};
use bellwether_patch::json_patch::JsonPatch;
use proptest::prelude::*;
use serde_json::{Value, json};

use super::world::World;
use crate::propagation::Replica;
use crate::rollout::Tally;

/// A world whose rollout is complete.
fn rolled_out(action: &str, clusters: &[&str]) -> World {
    let strategy = json!({"type": "ProgressivePerGroup"});
    let mut world = World::new(action, &strategy, &[clusters]);
    world.root.metadata.uid = Some("root".to_owned());
    for _ in 0..3 {
        world.settle();
        for cluster in clusters {
            world.report(cluster, ComplianceState::Compliant);
        }
        world.pass(1);
    }
    world.settle();
    world
}

/// A world whose clusters get versions at once, and have got one. Some have reported.
fn at_once(action: &str, clusters: &[&str], reports: &[(&str, ComplianceState)]) -> World {
    let mut world = World::new(action, &json!({"type": "All"}), &[clusters]);
    world.root.metadata.uid = Some("root".to_owned());
    world.settle();
    world.pass(1);
    for (cluster, state) in reports {
        world.report(cluster, state.clone());
    }
    world.settle();
    world
}

fn tally(world: &World) -> Option<Tally> {
    let replicas = world.replicas.iter();
    let replicas = replicas.map(|(name, it)| (Arc::clone(name), Arc::new(Replica::of(it))));
    let replicas: BTreeMap<_, _> = replicas.collect();
    Tally::new(&world.root, &replicas)
}

fn replica(world: &World, cluster: &str) -> Arc<Replica> {
    Arc::new(Replica::of(&world.replicas[cluster]))
}

/// Applies a patch as a server would.
fn patched(root: &Policy, patch: &[Value]) -> Policy {
    let patch = JsonPatch::parse(&json!(patch)).unwrap();
    let written = patch.apply(json!(root)).unwrap();
    serde_json::from_value(written).unwrap()
}

proptest! {
    #[test]
    fn a_count_says_what_a_plan_would_say(
        action in prop_oneof![Just("enforce"), Just("inform")],
        reports in proptest::collection::vec((0..3_usize, 0..3_usize), 1..12),
    ) {
        let clusters = ["a", "b", "c"];
        let mut world = rolled_out(action, &clusters);
        let mut tally = tally(&world).unwrap();
        for (cluster, found) in reports {
            world.report(clusters[cluster], state(found));
            world.pass(1);
            let counted = tally.count(&[replica(&world, clusters[cluster])], world.now).unwrap();
            world.root = patched(&world.root, &counted.patch);
            let plan = world.plan();
            prop_assert_eq!(plan.status, None);
            prop_assert!(plan.write.is_empty() && plan.mark.is_empty() && plan.wake_at.is_none());
        }
    }
}

fn state(number: usize) -> ComplianceState {
    let states = [
        ComplianceState::Compliant,
        ComplianceState::NonCompliant,
        ComplianceState::Pending,
    ];
    states[number].clone()
}

proptest! {
    #[test]
    fn a_count_says_what_a_plan_would_say_where_versions_come_at_once(
        action in prop_oneof![Just("enforce"), Just("inform")],
        first in proptest::collection::vec((0..3_usize, 0..3_usize), 0..3),
        reports in proptest::collection::vec((0..3_usize, 0..3_usize, any::<bool>()), 1..16),
    ) {
        let clusters = ["a", "b", "c"];
        let first: Vec<_> = first.into_iter().map(|(cluster, found)| (clusters[cluster], state(found))).collect();
        let mut world = at_once(action, &clusters, &first);
        let mut tally = tally(&world).unwrap();
        let mut gathered = Vec::new();
        for (cluster, found, is_last) in reports {
            world.report(clusters[cluster], state(found));
            gathered.push(clusters[cluster]);
            world.pass(1);
            if !is_last {
                continue;
            }
            let replicas: Vec<_> = gathered.drain(..).map(|it| replica(&world, it)).collect();
            let planned = world.plan();
            let counted = tally.count(&replicas, world.now).unwrap();
            let counted = patched(&world.root, &counted.patch).status;
            prop_assert_eq!(&planned.status.or_else(|| world.root.status.clone()), &counted);
            prop_assert!(planned.write.is_empty() && planned.mark.is_empty() && planned.wake_at.is_none());
            world.root.status = counted;
        }
    }
}

#[test]
fn a_failure_and_its_repair_are_counted() {
    use ComplianceState::{Compliant, NonCompliant};
    let mut world = at_once("enforce", &["a", "b"], &[("a", Compliant)]);
    assert_eq!(world.outcome(), "Progressing: a Succeeded, b Progressing");
    let mut counts = tally(&world).unwrap();
    for (found, outcome) in [
        (NonCompliant, "Failed: a Succeeded, b Failed"),
        (Compliant, "Succeeded: a Succeeded, b Succeeded"),
        // What happens after a rollout is drift.
        (NonCompliant, "Succeeded: a Succeeded, b Succeeded"),
    ] {
        world.pass(1);
        world.report("b", found);
        let counted = counts.count(&[replica(&world, "b")], world.now).unwrap();
        world.root = patched(&world.root, &counted.patch);
        assert_eq!(world.outcome(), outcome);
        assert_eq!(world.plan().status, None);
    }
    assert_eq!(world.root.status_or_default().compliant, Some(NonCompliant));
}

#[test]
fn a_report_costs_the_same_for_two_clusters_and_for_many() {
    let names: Vec<String> = (0..300).map(|it| format!("c{it:03}")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let written = |clusters: &[&str]| {
        let mut world = rolled_out("enforce", clusters);
        let mut tally = tally(&world).unwrap();
        world.report("c001", ComplianceState::NonCompliant);
        let counted = tally.count(&[replica(&world, "c001")], world.now).unwrap();
        counted.patch
    };
    let patch = written(&names);
    assert_eq!(
        json!(patch),
        json!([
            {"op": "test", "path": "/metadata/uid", "value": "root"},
            {"op": "test", "path": "/metadata/generation", "value": 1},
            {"op": "test", "path": "/status/status/1/clustername", "value": "c001"},
            {"op": "add", "path": "/status/status/1/compliant", "value": "NonCompliant"},
            {"op": "add", "path": "/status/compliant", "value": "NonCompliant"},
        ])
    );
    assert_eq!(patch, written(&names[..2]));
}

#[test]
fn what_may_change_how_far_a_cluster_is_has_to_be_planned() {
    let mut world = rolled_out("enforce", &["a", "b"]);
    let mut counts = tally(&world).unwrap();
    // Somebody changed a replica.
    let other = world.replicas.get_mut("a").unwrap();
    other.metadata.labels.as_mut().unwrap().clear();
    assert_eq!(counts.count(&[replica(&world, "a")], world.now), None);
    // An agent removed what it does not know.
    let mut world = rolled_out("enforce", &["a", "b"]);
    let mut counts = tally(&world).unwrap();
    let status = world
        .replicas
        .get_mut("a")
        .unwrap()
        .status
        .as_mut()
        .unwrap();
    status.rollout_status = None;
    assert_eq!(counts.count(&[replica(&world, "a")], world.now), None);
    // A rollout is under way.
    world.edit(2);
    world.settle();
    assert_eq!(tally(&world), None);
}
