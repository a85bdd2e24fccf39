//! What else touches a rollout: agents of others, events, pauses, kinds of templates, and dependencies.

use ComplianceState::{Compliant, NonCompliant, Pending};
use bellwether_api::meta::Time;
use bellwether_api::policy::names::annotation;
use bellwether_api::policy::{ComplianceHistory, ComplianceState, PolicyStatus, TemplateDetails};
use serde_json::json;

use super::traces::{check, one_by_one};
use super::world::World;

/// An agent of others: it knows neither generations nor rollouts, and removes what it does not know.
fn report_by_times(world: &mut World, cluster: &str, state: ComplianceState) {
    let history = ComplianceHistory {
        last_timestamp: Some(Time(world.now)),
        ..ComplianceHistory::default()
    };
    let details = TemplateDetails {
        compliant: Some(state.clone()),
        history: vec![history],
        ..TemplateDetails::default()
    };
    world.replicas.get_mut(cluster).unwrap().status = Some(PolicyStatus {
        compliant: Some(state),
        details: vec![details],
        ..PolicyStatus::default()
    });
}

#[test]
fn agents_that_know_nothing_of_rollouts_are_believed_by_the_times_of_their_reports() {
    let mut world = World::new("enforce", &one_by_one(), &[&["a", "b"]]);
    let first = world.plan();
    world.execute(&first, usize::MAX);
    world.pass(5);
    report_by_times(&mut world, "a", Compliant);
    world.pass(5);
    // It was about the copy that only informs.
    check(&mut world, "Progressing: a Progressing, b ToApply");
    world.pass(5);
    report_by_times(&mut world, "a", Compliant);
    let plan = world.plan();
    world.execute(&plan, usize::MAX);
    check(&mut world, "Progressing: a Succeeded, b Progressing");
    world.pass(5);
    report_by_times(&mut world, "b", NonCompliant);
    check(&mut world, "Failed: a Succeeded, b Failed");
}

#[test]
fn events_say_what_happens_to_the_rollout() {
    let mut world = World::new("enforce", &one_by_one(), &[&["a", "b"]]);
    let mut messages = Vec::new();
    let mut settle = |world: &mut World| {
        for _ in 0..5 {
            let plan = world.plan();
            messages.extend(plan.notices.iter().map(|it| it.message.clone()));
            world.execute(&plan, usize::MAX);
        }
    };
    settle(&mut world);
    world.report("a", NonCompliant);
    settle(&mut world);
    world.report("a", Compliant);
    settle(&mut world);
    world.report("b", Compliant);
    settle(&mut world);
    assert_eq!(
        messages,
        [
            "the rollout to 2 clusters begins",
            "the rollout stopped: the rollout has 1 failure, 0 tolerated; a does not comply",
            "the rollout goes on",
            "the rollout to 2 clusters is complete",
        ]
    );
}

#[test]
fn a_paused_rollout_releases_nobody_and_goes_on_when_it_is_resumed() {
    let mut world = World::new("enforce", &one_by_one(), &[&["a", "b"]]);
    check(&mut world, "Progressing: a Progressing, b ToApply");
    let paused = (annotation::ROLLOUT_PAUSED.to_owned(), "now".to_owned());
    world.root.metadata.annotations = Some([paused].into());
    world.report("a", Compliant);
    check(&mut world, "Progressing: a Succeeded, b ToApply");
    let plan = world.plan();
    assert_eq!((plan.wake_at, plan.problem), (None, None));
    // It is not copied: that would be a write to every cluster.
    let copied = world.replicas["a"].metadata.annotations.as_ref().unwrap();
    assert!(!copied.contains_key(annotation::ROLLOUT_PAUSED));
    world.root.metadata.annotations = None;
    check(&mut world, "Progressing: a Succeeded, b Progressing");
}

#[test]
fn nobody_is_released_before_all_decisions_of_the_placement_are_there() {
    let strategy = json!({"type": "ProgressivePerGroup"});
    let mut world = World::new("enforce", &strategy, &[&["canary"], &["b", "c"]]);
    // The decisions of the first group come last.
    let canary = std::mem::take(&mut world.groups[0].clusters);
    world.is_unsettled = true;
    check(&mut world, "Progressing: b ToApply, c ToApply");
    assert_eq!(world.enforcing(), [""; 0]);
    let plan = world.plan();
    assert_eq!((plan.wake_at, plan.problem), (None, None));
    world.groups[0].clusters = canary;
    check(
        &mut world,
        "Progressing: b ToApply, c ToApply, canary ToApply",
    );
    world.is_unsettled = false;
    check(
        &mut world,
        "Progressing: b ToApply, c ToApply, canary Progressing",
    );
    // A cluster joins the canaries while the others enforce: they go on, and nobody new is released.
    world.report("canary", Compliant);
    check(
        &mut world,
        "Progressing: b Progressing, c Progressing, canary Succeeded",
    );
    world.is_unsettled = true;
    world.groups[1].clusters.push("d".into());
    world.report("b", Compliant);
    check(
        &mut world,
        "Progressing: b Succeeded, c Progressing, canary Succeeded, d ToApply",
    );
    let joined = world.groups[1].clusters.pop().unwrap();
    world.groups[0].clusters.push(joined);
    world.is_unsettled = false;
    check(
        &mut world,
        "Progressing: b Succeeded, c Progressing, canary Succeeded, d Progressing",
    );
}

#[test]
fn a_policy_for_all_clusters_at_once_does_not_wait_for_decisions() {
    let mut world = World::new("enforce", &json!({"type": "All"}), &[&["a"]]);
    world.is_unsettled = true;
    check(&mut world, "Progressing: a Progressing");
    assert_eq!(world.enforcing(), ["a"]);
}

/// A policy whose templates are these kinds.
fn of_kinds(kinds: &[&str]) -> World {
    let mut world = World::new("enforce", &one_by_one(), &[&["a", "b"]]);
    let template = world.root.spec.policy_templates[0].clone();
    let templates = kinds.iter().map(|kind| {
        let mut template = template.clone();
        template.object_definition["kind"] = json!(kind);
        template
    });
    world.root.spec.policy_templates = templates.collect();
    world
}

#[test]
fn a_policy_of_templates_that_change_nothing_goes_everywhere_at_once() {
    let check = |kinds: &[&str], expected: &str| {
        let mut world = of_kinds(kinds);
        world.settle();
        assert_eq!(world.outcome(), expected, "{kinds:?}");
    };
    check(
        &["CertificatePolicy"],
        "Progressing: a Progressing, b Progressing",
    );
    check(
        &["ConstraintTemplate", "CertificatePolicy"],
        "Progressing: a Progressing, b Progressing",
    );
    check(
        &["CertificatePolicy", "ConfigurationPolicy"],
        "Progressing: a Progressing, b ToApply",
    );
    check(&["OperatorPolicy"], "Progressing: a Progressing, b ToApply");
}

#[test]
fn what_depends_on_a_policy_in_rollout_sees_what_its_cluster_found() {
    let mut upper = World::new("enforce", &one_by_one(), &[&["a", "b"]]);
    let dependency = json!({"apiVersion": "policy.open-cluster-management.io/v1", "kind": "Policy",
        "name": "base", "compliance": "Compliant"});
    upper.root.spec.dependencies = vec![serde_json::from_value(dependency).unwrap()];
    upper.settle();
    // Both forms of the copy have the dependency by the name that it has on clusters.
    for cluster in ["a", "b"] {
        let dependency = &upper.replicas[cluster].spec.dependencies[0];
        assert_eq!(dependency.name, "policies.base");
    }
    // While the other policy does not comply there, this one waits, and its rollout with it.
    upper.report("a", Pending);
    check(&mut upper, "Progressing: a Progressing, b ToApply");
    upper.report("a", Compliant);
    check(&mut upper, "Progressing: a Succeeded, b Progressing");
}
