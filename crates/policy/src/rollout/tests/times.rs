//! The times of transitions, and what becomes of clusters whose deadline has passed.

use ComplianceState::{Compliant, NonCompliant};
use bellwether_api::policy::{ComplianceState, RolloutStatus};
use serde_json::json;

use super::world::World;

/// When the root policy says that a cluster became what it is, in seconds.
fn since(world: &World, cluster: &str) -> i64 {
    let status = world.root.status_or_default();
    let entry = status.status.iter().find(|it| it.cluster_name == cluster);
    let time = entry.unwrap().rollout_status_last_transition_time.clone();
    time.unwrap().0.as_second()
}

/// The same of the replica.
fn replica_since(world: &World, cluster: &str) -> (Option<RolloutStatus>, i64) {
    let status = world.replicas[cluster].status.clone().unwrap();
    let time = status.rollout_status_last_transition_time.unwrap();
    (status.rollout_status, time.0.as_second())
}

#[test]
fn a_transition_has_its_time_on_the_root_and_on_the_replica_until_the_next_one() {
    let mut world = World::new("enforce", &json!({"type": "Progressive"}), &[&["a", "b"]]);
    world.pass(5);
    world.settle();
    assert_eq!((since(&world, "a"), since(&world, "b")), (5, 5));
    let progressing = Some(RolloutStatus::Progressing);
    assert_eq!(replica_since(&world, "a"), (progressing, 5));
    assert_eq!(
        replica_since(&world, "b"),
        (Some(RolloutStatus::ToApply), 5)
    );
    world.pass(5);
    world.settle();
    assert_eq!(since(&world, "a"), 5, "nothing has changed");
    world.report("a", Compliant);
    world.pass(5);
    world.settle();
    assert_eq!((since(&world, "a"), since(&world, "b")), (15, 15));
    world.pass(5);
    // What is reported again is no transition.
    world.report("a", Compliant);
    world.settle();
    assert_eq!((since(&world, "a"), since(&world, "b")), (15, 15));
    let whole = world.root.status_or_default();
    let stage = whole.rollout_status_last_transition_time.clone();
    assert_eq!(stage.unwrap().0.as_second(), 5);
    assert_eq!(whole.rollout_start_time.clone().unwrap().0.as_second(), 5);
}

#[test]
fn after_the_deadline_a_cluster_that_reported_has_failed_and_one_that_did_not_is_late() {
    let strategy = json!({"type": "Progressive",
        "progressive": {"maxConcurrency": 2, "progressDeadline": "1m", "maxFailures": 1}});
    let mut world = World::new("enforce", &strategy, &[&["a", "b", "c"]]);
    world.settle();
    world.report("a", NonCompliant);
    world.pass(60);
    world.settle();
    // Both count: two failures are one too many.
    assert_eq!(world.outcome(), "Failed: a Failed, b TimeOut, c ToApply");
    world.pass(600);
    world.settle();
    assert_eq!(world.outcome(), "Failed: a Failed, b TimeOut, c ToApply");
    assert_eq!((since(&world, "a"), since(&world, "b")), (60, 60));
    // What comes late still counts.
    world.report("b", NonCompliant);
    world.settle();
    assert_eq!(world.outcome(), "Failed: a Failed, b Failed, c ToApply");
    world.report("b", Compliant);
    world.settle();
    assert_eq!(
        world.outcome(),
        "Progressing: a Failed, b Succeeded, c Progressing"
    );
}
