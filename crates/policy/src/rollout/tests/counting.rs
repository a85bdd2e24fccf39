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
        for (cluster, state) in reports {
            let state = [
                ComplianceState::Compliant,
                ComplianceState::NonCompliant,
                ComplianceState::Pending,
            ][state].clone();
            world.report(clusters[cluster], state);
            world.pass(1);
            let counted = tally.count(&[replica(&world, clusters[cluster])]).unwrap();
            world.root = patched(&world.root, &counted.patch);
            let plan = world.plan();
            prop_assert_eq!(plan.status, None);
            prop_assert!(plan.write.is_empty() && plan.mark.is_empty() && plan.wake_at.is_none());
        }
    }
}

#[test]
fn a_report_costs_the_same_for_two_clusters_and_for_many() {
    let names: Vec<String> = (0..300).map(|it| format!("c{it:03}")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let written = |clusters: &[&str]| {
        let mut world = rolled_out("enforce", clusters);
        let mut tally = tally(&world).unwrap();
        world.report("c001", ComplianceState::NonCompliant);
        let counted = tally.count(&[replica(&world, "c001")]).unwrap();
        counted.patch
    };
    let patch = written(&names);
    assert_eq!(
        json!(patch),
        json!([
            {"op": "test", "path": "/metadata/uid", "value": "root"},
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
    assert_eq!(counts.count(&[replica(&world, "a")]), None);
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
    assert_eq!(counts.count(&[replica(&world, "a")]), None);
    // A rollout is under way.
    world.edit(2);
    world.settle();
    assert_eq!(tally(&world), None);
}
