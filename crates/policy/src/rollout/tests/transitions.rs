//! One trace for each transition of a cluster: from what, by which event, to what. A test is named so.

use ComplianceState::{Compliant, NonCompliant};
use bellwether_api::policy::names::annotation;
use bellwether_api::policy::{ComplianceState, RolloutStatus};
use serde_json::{Value, json};

use super::traces::{check, one_by_one};
use super::world::World;

fn all() -> Value {
    json!({"type": "All"})
}

/// Two clusters of which the first is released.
fn begun() -> World {
    let mut world = World::new("enforce", &one_by_one(), &[&["a", "b"]]);
    check(&mut world, "Progressing: a Progressing, b ToApply");
    world
}

fn hash(world: &World, cluster: &str) -> Option<String> {
    let annotations = world.replicas[cluster].metadata.annotations.as_ref();
    annotations.and_then(|it| it.get(annotation::ROLLOUT_HASH).cloned())
}

/// When a cluster became what it is, in seconds.
fn since(world: &World, cluster: &str) -> i64 {
    let status = world.root.status_or_default();
    let entry = status.status.iter().find(|it| it.cluster_name == cluster);
    let time = entry.unwrap().rollout_status_last_transition_time.clone();
    time.unwrap().0.as_second()
}

#[test]
fn not_placed_to_progressing_when_placed_with_all_or_inform() {
    for (action, strategy) in [
        ("enforce", all()),
        ("inform", one_by_one()),
        ("inform", all()),
    ] {
        let mut world = World::new(action, &strategy, &[&["a"]]);
        check(&mut world, "Progressing: a Progressing");
        let replica = &world.replicas["a"];
        assert_eq!(
            replica.spec.remediation_action,
            world.root.spec.remediation_action
        );
        assert_eq!(hash(&world, "a"), None);
    }
}

#[test]
fn not_placed_to_to_apply_when_placed_progressively() {
    let mut world = World::new("enforce", &one_by_one(), &[&["a"]]);
    let plan = world.plan();
    world.execute(&plan, usize::MAX);
    assert_eq!(world.outcome(), "Progressing: a ToApply");
    assert_eq!(world.enforcing(), [""; 0]);
    assert!(hash(&world, "a").is_some());
}

#[test]
fn any_to_to_apply_when_the_version_changes_progressively() {
    // From ToApply, Progressing, Succeeded and Failed.
    for state in [None, Some(Compliant), Some(NonCompliant)] {
        let mut world = begun();
        if let Some(state) = &state {
            world.report("a", state.clone());
            world.settle();
        }
        let before = hash(&world, "a");
        world.pass(60);
        world.edit(2);
        let plan = world.plan();
        world.execute(&plan, usize::MAX);
        assert_eq!(
            world.outcome(),
            "Progressing: a ToApply, b ToApply",
            "{state:?}"
        );
        assert_eq!(world.enforcing(), [""; 0]);
        assert_ne!(hash(&world, "a"), before);
        assert_eq!(since(&world, "a"), 60);
    }
}

#[test]
fn time_out_to_to_apply_when_the_version_changes_progressively() {
    let strategy = json!({"type": "Progressive", "progressive": {"progressDeadline": "10s"}});
    let mut world = World::new("enforce", &strategy, &[&["a"]]);
    world.settle();
    world.pass(10);
    check(&mut world, "Failed: a TimeOut");
    world.edit(2);
    let plan = world.plan();
    world.execute(&plan, usize::MAX);
    assert_eq!(world.outcome(), "Progressing: a ToApply");
}

#[test]
fn any_to_progressing_when_the_version_changes_with_all_or_inform() {
    for action in ["enforce", "inform"] {
        for state in [Compliant, NonCompliant] {
            let mut world = World::new(action, &all(), &[&["a"]]);
            world.settle();
            world.report("a", state);
            world.settle();
            world.edit(2);
            check(&mut world, "Progressing: a Progressing");
            let replica = &world.replicas["a"];
            assert_eq!(
                replica.spec.remediation_action,
                world.root.spec.remediation_action
            );
        }
    }
}

#[test]
fn to_apply_to_progressing_when_selected_and_after_the_replica_is_written() {
    let mut world = World::new("enforce", &one_by_one(), &[&["a"]]);
    let first = world.plan();
    world.execute(&first, usize::MAX);
    let release = world.plan();
    assert_eq!(release.write.len(), 1);
    // Killed after the replica was written: the root does not say so yet.
    world.execute(&release, 1);
    assert_eq!(world.enforcing(), ["a"]);
    assert_eq!(world.outcome(), "Progressing: a ToApply");
    check(&mut world, "Progressing: a Progressing");
    let status = world.replicas["a"].status.clone().unwrap();
    assert_eq!(status.rollout_status, Some(RolloutStatus::Progressing));
}

#[test]
fn progressing_to_succeeded_when_all_comply_and_the_soak_begins() {
    let strategy = json!({"type": "Progressive", "progressive": {"minSuccessTime": "30s"}});
    let mut world = World::new("enforce", &strategy, &[&["a"], &["b"]]);
    world.set_strategy(&json!({"type": "Progressive",
        "progressive": {"maxConcurrency": 1, "minSuccessTime": "30s"}}));
    world.settle();
    world.pass(5);
    world.report("a", Compliant);
    check(&mut world, "Progressing: a Succeeded, b ToApply");
    assert_eq!(world.plan().wake_at.unwrap().as_second(), 35);
}

#[test]
fn progressing_to_failed_when_evaluated_and_not_compliant() {
    let mut world = begun();
    world.report("a", NonCompliant);
    check(&mut world, "Failed: a Failed, b ToApply");
}

#[test]
fn progressing_to_succeeded_when_a_policy_that_informs_is_evaluated() {
    for state in [Compliant, NonCompliant] {
        let mut world = World::new("inform", &one_by_one(), &[&["a"]]);
        world.settle();
        world.report("a", state);
        check(&mut world, "Succeeded: a Succeeded");
    }
}

#[test]
fn progressing_to_time_out_when_nothing_is_evaluated_by_the_deadline() {
    let strategy = json!({"type": "Progressive", "progressive": {"progressDeadline": "1m"}});
    let mut world = World::new("enforce", &strategy, &[&["a", "b"]]);
    world.settle();
    world.pass(59);
    check(&mut world, "Progressing: a Progressing, b ToApply");
    world.pass(1);
    // It counts as a failure: nobody else is released.
    check(&mut world, "Failed: a TimeOut, b ToApply");
}

#[test]
fn failed_to_succeeded_when_compliant_and_the_slot_is_free_after_the_soak() {
    let strategy = json!({"type": "Progressive",
        "progressive": {"maxConcurrency": 1, "minSuccessTime": "30s"}});
    let mut world = World::new("enforce", &strategy, &[&["a", "b"]]);
    world.settle();
    world.report("a", NonCompliant);
    check(&mut world, "Failed: a Failed, b ToApply");
    world.pass(100);
    world.report("a", Compliant);
    check(&mut world, "Progressing: a Succeeded, b ToApply");
    world.pass(30);
    check(&mut world, "Progressing: a Succeeded, b Progressing");
}

#[test]
fn time_out_to_succeeded_or_failed_when_a_status_arrives_late() {
    let strategy = json!({"type": "Progressive", "progressive": {"progressDeadline": "1m"}});
    for (state, expected) in [
        (Compliant, "Progressing: a Succeeded, b Progressing"),
        (NonCompliant, "Failed: a Failed, b ToApply"),
    ] {
        let mut world = World::new("enforce", &strategy, &[&["a", "b"]]);
        world.settle();
        world.pass(60);
        check(&mut world, "Failed: a TimeOut, b ToApply");
        world.report("a", state);
        check(&mut world, expected);
    }
}

#[test]
fn succeeded_to_failed_when_not_compliant_while_the_whole_is_progressing() {
    let mut world = begun();
    world.report("a", Compliant);
    check(&mut world, "Progressing: a Succeeded, b Progressing");
    world.report("a", NonCompliant);
    check(&mut world, "Failed: a Failed, b Progressing");
}

#[test]
fn succeeded_stays_when_the_whole_has_succeeded() {
    let mut world = begun();
    world.report("a", Compliant);
    world.settle();
    world.report("b", Compliant);
    check(&mut world, "Succeeded: a Succeeded, b Succeeded");
    world.pass(10);
    world.report("a", NonCompliant);
    check(&mut world, "Succeeded: a Succeeded, b Succeeded");
    assert_eq!(since(&world, "a"), 0);
    world.edit(2);
    check(&mut world, "Progressing: a Progressing, b ToApply");
}

#[test]
fn any_to_nothing_when_a_cluster_is_not_selected_any_more_or_the_policy_is_disabled() {
    let mut world = begun();
    world.groups[0].clusters.retain(|it| &**it != "a");
    check(&mut world, "Progressing: b Progressing");
    assert!(!world.replicas.contains_key("a"));
    world.root.spec.disabled = true;
    check(&mut world, "-: ");
    assert!(world.replicas.is_empty());
}

#[test]
fn a_time_changes_with_its_value_only_and_the_end_of_a_soak_or_deadline_is_waited_for() {
    let strategy = json!({"type": "Progressive",
        "progressive": {"maxConcurrency": 1, "progressDeadline": "1m", "minSuccessTime": "20s"}});
    let mut world = World::new("enforce", &strategy, &[&["a", "b"]]);
    world.settle();
    assert_eq!(world.plan().wake_at.unwrap().as_second(), 60);
    world.pass(10);
    world.settle();
    assert_eq!(since(&world, "a"), 0);
    world.report("a", Compliant);
    world.settle();
    assert_eq!(since(&world, "a"), 10);
    assert_eq!(world.plan().wake_at.unwrap().as_second(), 30);
}
