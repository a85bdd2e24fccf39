//! One trace for each transition of a cluster, and for each question that a rollout has to have an answer to.

use ComplianceState::{Compliant, NonCompliant, Pending};
use bellwether_api::policy::names::annotation;
use bellwether_api::policy::{ComplianceState, RemediationAction, RolloutStatus};
use bellwether_placement::rollout::Group;
use serde_json::{Value, json};

use super::world::World;

pub(super) fn one_by_one() -> Value {
    json!({"type": "Progressive"})
}

fn progressive(settings: &Value) -> Value {
    json!({"type": "Progressive", "progressive": settings})
}

#[track_caller]
pub(super) fn check(world: &mut World, expected: &str) {
    world.settle();
    assert_eq!(world.outcome(), expected);
}

#[test]
fn the_first_pass_goes_everywhere_as_inform_and_then_one_cluster_at_a_time_enforces() {
    let mut world = World::new("enforce", &one_by_one(), &[&["a", "b", "c"]]);
    let first = world.plan();
    assert_eq!(first.write.len(), 3);
    world.execute(&first, usize::MAX);
    assert_eq!(world.enforcing(), [""; 0]);
    assert_eq!(
        world.outcome(),
        "Progressing: a ToApply, b ToApply, c ToApply"
    );
    check(
        &mut world,
        "Progressing: a Progressing, b ToApply, c ToApply",
    );
    assert_eq!(world.enforcing(), ["a"]);
    world.report("a", Compliant);
    check(
        &mut world,
        "Progressing: a Succeeded, b Progressing, c ToApply",
    );
    world.report("b", Compliant);
    check(
        &mut world,
        "Progressing: a Succeeded, b Succeeded, c Progressing",
    );
    world.report("c", Compliant);
    check(
        &mut world,
        "Succeeded: a Succeeded, b Succeeded, c Succeeded",
    );
    let replica = &world.replicas["c"];
    let status = replica.status.as_ref().unwrap();
    assert_eq!(status.rollout_status, Some(RolloutStatus::Succeeded));
}

#[test]
fn a_soak_a_failure_and_its_repair_follow_the_clock() {
    let strategy = progressive(&json!({"maxConcurrency": 1, "minSuccessTime": "30s"}));
    let mut world = World::new("enforce", &strategy, &[&["a", "b", "c"]]);
    check(
        &mut world,
        "Progressing: a Progressing, b ToApply, c ToApply",
    );
    world.pass(10);
    world.report("a", Compliant);
    check(&mut world, "Progressing: a Succeeded, b ToApply, c ToApply");
    assert_eq!(world.plan().wake_at.unwrap().as_second(), 40);
    world.pass(29);
    check(&mut world, "Progressing: a Succeeded, b ToApply, c ToApply");
    world.pass(1);
    check(
        &mut world,
        "Progressing: a Succeeded, b Progressing, c ToApply",
    );
    world.report("b", NonCompliant);
    check(&mut world, "Failed: a Succeeded, b Failed, c ToApply");
    world.pass(1000);
    check(&mut world, "Failed: a Succeeded, b Failed, c ToApply");
    assert_eq!(world.enforcing(), ["a", "b"]);
    world.report("b", Compliant);
    check(
        &mut world,
        "Progressing: a Succeeded, b Succeeded, c ToApply",
    );
    world.pass(30);
    check(
        &mut world,
        "Progressing: a Succeeded, b Succeeded, c Progressing",
    );
    world.report("c", Compliant);
    check(
        &mut world,
        "Progressing: a Succeeded, b Succeeded, c Succeeded",
    );
    world.pass(30);
    check(
        &mut world,
        "Succeeded: a Succeeded, b Succeeded, c Succeeded",
    );
}

#[test]
fn all_clusters_get_a_version_at_once_where_the_strategy_is_all_or_the_policy_informs() {
    let mut world = World::new("enforce", &json!({"type": "All"}), &[&["a", "b"]]);
    check(&mut world, "Progressing: a Progressing, b Progressing");
    assert_eq!(world.enforcing(), ["a", "b"]);
    let annotations = world.replicas["a"].metadata.annotations.as_ref().unwrap();
    assert!(!annotations.contains_key(annotation::ROLLOUT_HASH));
    world.report("a", Compliant);
    world.report("b", NonCompliant);
    check(&mut world, "Failed: a Succeeded, b Failed");
    world.report("b", Compliant);
    check(&mut world, "Succeeded: a Succeeded, b Succeeded");

    let mut world = World::new("inform", &one_by_one(), &[&["a", "b"]]);
    check(&mut world, "Progressing: a Progressing, b Progressing");
    world.report("a", NonCompliant);
    check(&mut world, "Progressing: a Succeeded, b Progressing");
    world.report("b", Pending);
    check(&mut world, "Progressing: a Succeeded, b Progressing");
    world.report("b", Compliant);
    check(&mut world, "Succeeded: a Succeeded, b Succeeded");
}

#[test]
fn a_new_version_of_a_policy_for_all_takes_back_what_was_true_before() {
    let mut world = World::new("enforce", &json!({"type": "All"}), &[&["a", "b"]]);
    world.settle();
    world.report("a", Compliant);
    world.report("b", Compliant);
    check(&mut world, "Succeeded: a Succeeded, b Succeeded");
    world.edit(2);
    let plan = world.plan();
    // Killed after the first two steps: one cluster has the new version.
    world.execute(&plan, 2);
    assert_eq!(world.outcome(), "Progressing: a Progressing, b Progressing");
    check(&mut world, "Progressing: a Progressing, b Progressing");
    world.report("a", NonCompliant);
    world.report("b", Compliant);
    check(&mut world, "Failed: a Failed, b Succeeded");
}

#[test]
fn drift_after_success_shows_in_compliance_alone() {
    let mut world = World::new("enforce", &one_by_one(), &[&["a"]]);
    world.settle();
    world.report("a", Compliant);
    check(&mut world, "Succeeded: a Succeeded");
    world.report("a", NonCompliant);
    check(&mut world, "Succeeded: a Succeeded");
    let status = world.root.status.clone().unwrap();
    assert_eq!(status.compliant, Some(NonCompliant));
}

#[test]
fn drift_in_mid_rollout_stops_it() {
    let mut world = World::new("enforce", &one_by_one(), &[&["a", "b", "c"]]);
    world.settle();
    world.report("a", Compliant);
    check(
        &mut world,
        "Progressing: a Succeeded, b Progressing, c ToApply",
    );
    world.report("a", NonCompliant);
    world.report("b", Compliant);
    check(&mut world, "Failed: a Failed, b Succeeded, c ToApply");
}

#[test]
fn an_edit_in_mid_rollout_takes_enforcement_back_and_begins_again() {
    let mut world = World::new("enforce", &one_by_one(), &[&["a", "b", "c"]]);
    world.settle();
    world.report("a", Compliant);
    check(
        &mut world,
        "Progressing: a Succeeded, b Progressing, c ToApply",
    );
    world.edit(2);
    let plan = world.plan();
    world.execute(&plan, usize::MAX);
    assert_eq!(world.enforcing(), [""; 0]);
    assert_eq!(
        world.outcome(),
        "Progressing: a ToApply, b ToApply, c ToApply"
    );
    check(
        &mut world,
        "Progressing: a Progressing, b ToApply, c ToApply",
    );
    // What was reported about the version before does not count.
    check(
        &mut world,
        "Progressing: a Progressing, b ToApply, c ToApply",
    );
}

#[test]
fn a_cluster_that_is_added_after_success_has_a_rollout_of_its_own() {
    let mut world = World::new("enforce", &one_by_one(), &[&["b", "c"]]);
    world.settle();
    for cluster in ["b", "c"] {
        world.pass(1);
        world.report(cluster, Compliant);
        world.settle();
    }
    assert_eq!(world.outcome(), "Succeeded: b Succeeded, c Succeeded");
    world.pass(1);
    world.groups[0].clusters.push("a".into());
    check(
        &mut world,
        "Progressing: a Progressing, b Succeeded, c Succeeded",
    );
    // Those that are done take no part in it.
    world.report("b", NonCompliant);
    check(
        &mut world,
        "Progressing: a Progressing, b Succeeded, c Succeeded",
    );
    world.report("a", Compliant);
    check(
        &mut world,
        "Succeeded: a Succeeded, b Succeeded, c Succeeded",
    );
}

#[test]
fn a_cluster_that_is_added_in_mid_rollout_takes_part_in_it() {
    let strategy = json!({"type": "ProgressivePerGroup"});
    let mut world = World::new("enforce", &strategy, &[&["a"], &["b"]]);
    world.settle();
    world.report("a", Compliant);
    check(&mut world, "Progressing: a Succeeded, b Progressing");
    // It belongs to a group that was done; what is on its way elsewhere goes on.
    world.groups[0].clusters.push("aa".into());
    check(
        &mut world,
        "Progressing: a Succeeded, aa Progressing, b Progressing",
    );
    world.groups.push(Group::new("", 2, ["c"]));
    world.report("b", Compliant);
    check(
        &mut world,
        "Progressing: a Succeeded, aa Progressing, b Succeeded, c ToApply",
    );
    world.report("aa", Compliant);
    check(
        &mut world,
        "Progressing: a Succeeded, aa Succeeded, b Succeeded, c Progressing",
    );
}

#[test]
fn a_cluster_that_leaves_loses_its_replica_and_starts_afresh_when_it_comes_back() {
    let mut world = World::new("enforce", &one_by_one(), &[&["a", "b"]]);
    world.settle();
    world.report("a", Compliant);
    check(&mut world, "Progressing: a Succeeded, b Progressing");
    world.groups[0].clusters.retain(|it| &**it != "b");
    check(&mut world, "Succeeded: a Succeeded");
    assert!(!world.replicas.contains_key("b"));
    world.pass(1);
    world.groups[0].clusters.push("b".into());
    check(&mut world, "Progressing: a Succeeded, b Progressing");
}

#[test]
fn a_disabled_policy_leaves_all_clusters_and_says_nothing_about_a_rollout() {
    let mut world = World::new("enforce", &one_by_one(), &[&["a", "b"]]);
    world.settle();
    world.root.spec.disabled = true;
    let notices = world.plan().notices;
    assert_eq!(notices[0].message, "Policy policies/limits was disabled");
    check(&mut world, "-: ");
    assert!(world.replicas.is_empty());
    world.root.spec.disabled = false;
    check(&mut world, "Progressing: a Progressing, b ToApply");
}

#[test]
fn groups_go_one_after_the_other_and_each_has_its_own_budget() {
    let strategy =
        json!({"type": "ProgressivePerGroup", "progressivePerGroup": {"maxFailures": "50%"}});
    let mut world = World::new("enforce", &strategy, &[&["a", "b"], &["c", "d"]]);
    check(
        &mut world,
        "Progressing: a Progressing, b Progressing, c ToApply, d ToApply",
    );
    world.report("a", NonCompliant);
    check(
        &mut world,
        "Progressing: a Failed, b Progressing, c ToApply, d ToApply",
    );
    world.report("b", Compliant);
    check(
        &mut world,
        "Progressing: a Failed, b Succeeded, c Progressing, d Progressing",
    );
    world.report("c", Compliant);
    world.report("d", Compliant);
    // What is tolerated shows with the cluster only.
    check(
        &mut world,
        "Succeeded: a Failed, b Succeeded, c Succeeded, d Succeeded",
    );
}

#[test]
fn mandatory_groups_finish_before_others_begin_and_tolerate_nothing() {
    let strategy = progressive(&json!({"maxConcurrency": 3, "maxFailures": 3,
        "mandatoryDecisionGroups": [{"groupIndex": 1}]}));
    let mut world = World::new("enforce", &strategy, &[&["a"], &["b"]]);
    check(&mut world, "Progressing: a ToApply, b Progressing");
    world.report("b", NonCompliant);
    check(&mut world, "Failed: a ToApply, b Failed");
    world.report("b", Compliant);
    check(&mut world, "Progressing: a Progressing, b Succeeded");
}

#[test]
fn a_cluster_that_reports_nothing_times_out_and_may_still_report_late() {
    let strategy = progressive(&json!({"progressDeadline": "1m", "maxFailures": 1}));
    let mut world = World::new("enforce", &strategy, &[&["a", "b"]]);
    check(&mut world, "Progressing: a Progressing, b ToApply");
    assert_eq!(world.plan().wake_at.unwrap().as_second(), 60);
    world.pass(60);
    check(&mut world, "Progressing: a TimeOut, b Progressing");
    let replica = world.replicas["a"].status.as_ref().unwrap();
    assert_eq!(replica.rollout_status, Some(RolloutStatus::TimeOut));
    world.report("b", Compliant);
    check(&mut world, "Succeeded: a TimeOut, b Succeeded");
    world.report("a", Compliant);
    check(&mut world, "Succeeded: a Succeeded, b Succeeded");
}

#[test]
fn with_a_deadline_a_cluster_that_does_not_comply_yet_is_in_progress_until_then() {
    let strategy = progressive(&json!({"progressDeadline": "1m"}));
    let mut world = World::new("enforce", &strategy, &[&["a", "b"]]);
    world.settle();
    world.report("a", NonCompliant);
    check(&mut world, "Progressing: a Progressing, b ToApply");
    // What the agent says meanwhile is left as it is.
    let replica = world.replicas["a"].status.as_ref().unwrap();
    assert_eq!(replica.rollout_status, Some(RolloutStatus::Failed));
    world.pass(60);
    check(&mut world, "Failed: a Failed, b ToApply");
    world.report("a", Compliant);
    check(&mut world, "Progressing: a Succeeded, b Progressing");
}

#[test]
fn a_cluster_that_waits_for_dependencies_is_in_progress() {
    let mut world = World::new("enforce", &one_by_one(), &[&["a", "b"]]);
    world.settle();
    world.report("a", Pending);
    check(&mut world, "Progressing: a Progressing, b ToApply");
}

#[test]
fn another_strategy_is_no_other_version() {
    let mut world = World::new("enforce", &one_by_one(), &[&["a", "b", "c"]]);
    world.settle();
    world.report("a", Compliant);
    check(
        &mut world,
        "Progressing: a Succeeded, b Progressing, c ToApply",
    );
    world.set_strategy(&progressive(&json!({"maxConcurrency": 2})));
    check(
        &mut world,
        "Progressing: a Succeeded, b Progressing, c Progressing",
    );
    world.set_strategy(&json!({"type": "All"}));
    check(
        &mut world,
        "Progressing: a Succeeded, b Progressing, c Progressing",
    );
    world.report("b", Compliant);
    world.report("c", Compliant);
    check(
        &mut world,
        "Succeeded: a Succeeded, b Succeeded, c Succeeded",
    );
    world.set_strategy(&one_by_one());
    check(
        &mut world,
        "Succeeded: a Succeeded, b Succeeded, c Succeeded",
    );
    assert_eq!(world.enforcing(), ["a", "b", "c"]);
    assert!(
        world.replicas["a"]
            .metadata
            .annotations
            .as_ref()
            .unwrap()
            .contains_key(annotation::ROLLOUT_HASH)
    );
}

#[test]
fn all_releases_everybody_who_waits() {
    let mut world = World::new("enforce", &one_by_one(), &[&["a", "b"]]);
    check(&mut world, "Progressing: a Progressing, b ToApply");
    world.set_strategy(&json!({"type": "All"}));
    check(&mut world, "Progressing: a Progressing, b Progressing");
    assert_eq!(world.enforcing(), ["a", "b"]);
}

#[test]
fn a_root_without_an_action_is_rolled_out_if_a_template_enforces_and_gets_nothing_back_but_that() {
    let mut world = World::new("enforce", &one_by_one(), &[&["a", "b"]]);
    world.root.spec.remediation_action = None;
    let template = &mut world.root.spec.policy_templates[0].object_definition;
    template["spec"]["remediationAction"] = json!("Enforce");
    check(&mut world, "Progressing: a Progressing, b ToApply");
    assert_eq!(world.replicas["a"].spec.remediation_action, None);
    assert_eq!(
        world.replicas["b"].spec.remediation_action,
        Some(RemediationAction::inform())
    );
    let template = &mut world.root.spec.policy_templates[0].object_definition;
    template["spec"]["remediationAction"] = json!("inform");
    check(&mut world, "Progressing: a Progressing, b Progressing");
}

#[test]
fn a_strategy_that_cannot_be_understood_releases_nobody() {
    let wrong = [
        (
            progressive(&json!({"maxConcurrency": "few"})),
            "'few' is an invalid maximum threshold value",
        ),
        (
            progressive(&json!({"progressDeadline": "soon"})),
            "invalid timeout format",
        ),
        (
            json!({"type": "Sideways"}),
            "incorrect rollout strategy type Sideways",
        ),
    ];
    for (strategy, expected) in wrong {
        let mut world = World::new("enforce", &strategy, &[&["a"]]);
        check(&mut world, "Progressing: a ToApply");
        assert_eq!(world.enforcing(), [""; 0]);
        let problem = world.plan().problem.unwrap();
        assert!(problem.contains(expected), "{problem}");
        world.set_strategy(&one_by_one());
        check(&mut world, "Progressing: a Progressing");
    }
}

#[test]
fn what_others_do_to_replicas_is_undone_without_releasing_anybody() {
    let mut world = World::new("enforce", &one_by_one(), &[&["a", "b"]]);
    world.settle();
    world.report("a", NonCompliant);
    check(&mut world, "Failed: a Failed, b ToApply");
    let waiting = world.replicas.get_mut("b").unwrap();
    waiting.spec.remediation_action = Some(RemediationAction("Enforce".to_owned()));
    waiting.metadata.labels.as_mut().unwrap().clear();
    check(&mut world, "Failed: a Failed, b ToApply");
    assert_eq!(world.enforcing(), ["a"]);
    world.replicas.remove("b");
    check(&mut world, "Failed: a Failed, b ToApply");
    let failed = world.replicas.get_mut("a").unwrap();
    failed
        .metadata
        .annotations
        .as_mut()
        .unwrap()
        .insert("x".into(), "y".into());
    check(&mut world, "Failed: a Failed, b ToApply");
    assert!(
        !world.replicas["a"]
            .metadata
            .annotations
            .as_ref()
            .unwrap()
            .contains_key("x")
    );
}

#[test]
fn a_replica_that_the_server_refuses_stops_nobody_beyond_the_budget() {
    let strategy = progressive(&json!({"maxFailures": 1}));
    let mut world = World::new("enforce", &strategy, &[&["a", "b"]]);
    world
        .refused
        .insert("a".into(), "namespaces \"a\" not found".to_owned());
    let plan = world.plan();
    assert_eq!(plan.write.len(), 2, "it is tried again");
    let b = plan
        .write
        .iter()
        .position(|it| &*it.cluster == "b")
        .unwrap();
    let mut only_b = plan.clone();
    only_b.write = vec![plan.write[b].clone()];
    world.execute(&only_b, usize::MAX);
    for _ in 0..3 {
        let mut plan = world.plan();
        plan.write.retain(|it| &*it.cluster == "b");
        world.execute(&plan, usize::MAX);
    }
    assert_eq!(world.outcome(), "Progressing: a ToApply, b Progressing");
}

#[test]
fn what_changes_for_one_cluster_is_rolled_out_to_that_cluster() {
    let mut world = World::new("enforce", &one_by_one(), &[&["a", "b", "c"]]);
    for cluster in ["a", "b", "c"] {
        world.settle();
        world.report(cluster, Compliant);
    }
    check(
        &mut world,
        "Succeeded: a Succeeded, b Succeeded, c Succeeded",
    );
    world.pass(1);
    world.own.insert("b".into(), 7);
    let plan = world.plan();
    let written: Vec<&str> = plan.write.iter().map(|it| &*it.cluster).collect();
    assert_eq!(written, ["b"]);
    check(
        &mut world,
        "Progressing: a Succeeded, b Progressing, c Succeeded",
    );
    world.report("b", Compliant);
    check(
        &mut world,
        "Succeeded: a Succeeded, b Succeeded, c Succeeded",
    );
}
