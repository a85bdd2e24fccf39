//! One trace for each decision about what the design of rollouts leaves open or says twice. A test is named after the
//! decision; those that need more than one are in `traces`, `times` and `beyond`.

use ComplianceState::{Compliant, NonCompliant, Pending};
use bellwether_api::meta::Time;
use bellwether_api::policy::names::annotation;
use bellwether_api::policy::{
    ComplianceHistory, ComplianceState, PolicyStatus, RemediationAction, RolloutStatus,
    TemplateDetails,
};
use bellwether_placement::rollout::Group;
use serde_json::json;

use super::traces::{check, one_by_one};
use super::world::World;

fn world(clusters: &[&str]) -> World {
    World::new("enforce", &one_by_one(), &[clusters])
}

fn rollout_status(world: &World, cluster: &str) -> Option<RolloutStatus> {
    world.replicas[cluster]
        .status
        .as_ref()?
        .rollout_status
        .clone()
}

fn hash(world: &World, cluster: &str) -> Option<String> {
    let annotations = world.replicas[cluster].metadata.annotations.as_ref();
    annotations.and_then(|it| it.get(annotation::ROLLOUT_HASH).cloned())
}

#[test]
fn a_policy_that_informs_has_succeeded_with_any_evaluated_state() {
    let mut world = World::new("inform", &one_by_one(), &[&["a"]]);
    world.settle();
    world.report("a", NonCompliant);
    check(&mut world, "Succeeded: a Succeeded");
}

#[test]
fn times_of_transitions_are_beside_the_statuses_of_root_and_replica() {
    let mut world = world(&["a"]);
    world.pass(7);
    world.settle();
    let root = world.root.status_or_default();
    let of_root = root.status[0].rollout_status_last_transition_time.clone();
    let of_replica = world.replicas["a"].status.clone().unwrap();
    let of_replica = of_replica.rollout_status_last_transition_time;
    assert_eq!(of_root.unwrap().0.as_second(), 7);
    assert_eq!(of_replica.unwrap().0.as_second(), 7);
}

#[test]
fn the_root_is_the_authority_and_the_replica_is_a_mailbox() {
    let mut world = world(&["a", "b"]);
    world.settle();
    // Only a cluster that is released says how it ended.
    world.report("b", Compliant);
    assert_eq!(rollout_status(&world, "b"), Some(RolloutStatus::ToApply));
    check(&mut world, "Progressing: a Progressing, b ToApply");
    // What somebody writes into the mailbox of a cluster that waits releases nobody.
    let status = world
        .replicas
        .get_mut("b")
        .unwrap()
        .status
        .as_mut()
        .unwrap();
    status.rollout_status = Some(RolloutStatus::Succeeded);
    check(&mut world, "Progressing: a Progressing, b ToApply");
    assert_eq!(world.enforcing(), ["a"]);
}

/// What an agent writes that knows nothing of rollouts: a state for each template, none for those without a report.
fn report_by_times(world: &mut World, cluster: &str, templates: &[Option<ComplianceState>]) {
    let entry = |state: &ComplianceState| ComplianceHistory {
        last_timestamp: Some(Time(world.now)),
        message: Some(format!("{}; x", state.as_str())),
        ..ComplianceHistory::default()
    };
    let details = templates.iter().map(|state| TemplateDetails {
        compliant: state.clone(),
        history: state.iter().map(entry).collect(),
        ..TemplateDetails::default()
    });
    let details: Vec<TemplateDetails> = details.collect();
    let has = |state| templates.contains(&Some(state));
    let compliant = match () {
        () if has(NonCompliant) => Some(NonCompliant),
        () if templates.contains(&None) => None,
        () => Some(Compliant),
    };
    world.replicas.get_mut(cluster).unwrap().status = Some(PolicyStatus {
        compliant,
        details,
        ..PolicyStatus::default()
    });
}

#[test]
fn agents_that_wipe_the_mailbox_are_believed_by_the_times_of_their_reports() {
    let mut world = world(&["a", "b"]);
    world.settle();
    world.pass(5);
    report_by_times(&mut world, "a", &[Some(Compliant)]);
    check(&mut world, "Progressing: a Succeeded, b Progressing");
}

#[test]
fn a_cluster_is_evaluated_when_all_its_templates_are() {
    let mut world = world(&["a", "b"]);
    let template = world.root.spec.policy_templates[0].clone();
    world.root.spec.policy_templates.push(template);
    world.settle();
    world.pass(5);
    report_by_times(&mut world, "a", &[Some(Compliant), None]);
    check(&mut world, "Progressing: a Progressing, b ToApply");
    world.pass(5);
    // A template that cannot be an object is reported as NonCompliant, which counts.
    report_by_times(&mut world, "a", &[Some(Compliant), Some(NonCompliant)]);
    check(&mut world, "Failed: a Failed, b ToApply");
    world.pass(5);
    report_by_times(&mut world, "a", &[Some(Compliant), Some(Compliant)]);
    check(&mut world, "Progressing: a Succeeded, b Progressing");
}

#[test]
fn a_report_about_another_generation_does_not_count() {
    let mut world = world(&["a", "b"]);
    world.settle();
    world.report("a", Compliant);
    let status = world
        .replicas
        .get_mut("a")
        .unwrap()
        .status
        .as_mut()
        .unwrap();
    status.observed_generation = Some(1);
    status.rollout_status = Some(RolloutStatus::Progressing);
    check(&mut world, "Progressing: a Progressing, b ToApply");
}

#[test]
fn a_new_version_is_what_a_cluster_gets_and_is_named_only_where_the_rollout_is_progressive() {
    let mut progressive = world(&["a", "b"]);
    progressive.settle();
    let before = (hash(&progressive, "a"), hash(&progressive, "b"));
    assert!(before.0.is_some() && before.0 == before.1);
    progressive.own.insert("b".into(), 9);
    progressive.settle();
    assert_eq!(hash(&progressive, "a"), before.0);
    assert_ne!(hash(&progressive, "b"), before.1);
    let mut at_once = World::new("enforce", &json!({"type": "All"}), &[&["a"]]);
    at_once.settle();
    assert_eq!(hash(&at_once, "a"), None);
}

#[test]
fn editing_only_the_strategy_restarts_nothing_and_counts_at_once() {
    let mut world = world(&["a", "b", "c"]);
    world.settle();
    world.report("a", Compliant);
    check(
        &mut world,
        "Progressing: a Succeeded, b Progressing, c ToApply",
    );
    let more = json!({"type": "Progressive", "progressive": {"maxConcurrency": 2}});
    world.set_strategy(&more);
    check(
        &mut world,
        "Progressing: a Succeeded, b Progressing, c Progressing",
    );
}

#[test]
fn switching_to_all_releases_every_cluster() {
    let mut world = world(&["a", "b", "c"]);
    world.settle();
    world.set_strategy(&json!({"type": "All"}));
    world.settle();
    assert_eq!(world.enforcing(), ["a", "b", "c"]);
}

#[test]
fn a_root_without_an_action_enforces_if_a_template_does_and_release_restores_what_it_had() {
    let mut world = world(&["a", "b"]);
    world.root.spec.remediation_action = None;
    let definition = &mut world.root.spec.policy_templates[0].object_definition;
    definition["spec"]["remediationAction"] = json!("enforce");
    check(&mut world, "Progressing: a Progressing, b ToApply");
    assert_eq!(world.replicas["a"].spec.remediation_action, None);
    let waiting = world.replicas["b"].spec.remediation_action.clone();
    assert_eq!(waiting, Some(RemediationAction::inform()));
}

#[test]
fn templates_that_cannot_be_demoted_do_not_wait() {
    for (kind, action) in [
        ("ConfigurationPolicy", "informonly"),
        ("ConfigurationPolicy", "InformOnly"),
        ("CertificatePolicy", "enforce"),
        ("ConstraintTemplate", "enforce"),
    ] {
        let mut world = world(&["a", "b"]);
        let definition = &mut world.root.spec.policy_templates[0].object_definition;
        definition["kind"] = json!(kind);
        definition["spec"]["remediationAction"] = json!(action);
        check(&mut world, "Progressing: a Progressing, b Progressing");
    }
}

#[test]
fn pending_stays_progressing_while_the_deadline_runs() {
    let strategy = json!({"type": "Progressive", "progressive": {"progressDeadline": "1m"}});
    let mut world = World::new("enforce", &strategy, &[&["a", "b"]]);
    world.settle();
    world.report("a", Pending);
    world.pass(59);
    check(&mut world, "Progressing: a Progressing, b ToApply");
    world.pass(1);
    world.settle();
    assert!(
        world.outcome().starts_with("Failed: a "),
        "{}",
        world.outcome()
    );
}

#[test]
fn not_compliant_is_failed_at_once_without_a_deadline_and_at_the_deadline_with_one() {
    let mut at_once = world(&["a", "b"]);
    at_once.settle();
    at_once.report("a", NonCompliant);
    check(&mut at_once, "Failed: a Failed, b ToApply");
    let strategy = json!({"type": "Progressive", "progressive": {"progressDeadline": "1m"}});
    let mut later = World::new("enforce", &strategy, &[&["a", "b"]]);
    later.settle();
    later.report("a", NonCompliant);
    check(&mut later, "Progressing: a Progressing, b ToApply");
    later.pass(60);
    check(&mut later, "Failed: a Failed, b ToApply");
}

#[test]
fn past_the_deadline_failed_stays_failed_and_time_out_is_for_those_that_said_nothing() {
    let strategy = json!({"type": "Progressive",
        "progressive": {"maxConcurrency": 2, "maxFailures": 2, "progressDeadline": "1m"}});
    let mut world = World::new("enforce", &strategy, &[&["a", "b"]]);
    world.settle();
    world.report("a", NonCompliant);
    world.pass(600);
    check(&mut world, "Succeeded: a Failed, b TimeOut");
}

#[test]
fn tolerated_failures_do_not_change_the_whole() {
    let strategy = json!({"type": "Progressive",
        "progressive": {"maxConcurrency": 3, "maxFailures": 1}});
    let mut world = World::new("enforce", &strategy, &[&["a", "b", "c"]]);
    world.settle();
    world.report("a", NonCompliant);
    world.report("b", Compliant);
    check(
        &mut world,
        "Progressing: a Failed, b Succeeded, c Progressing",
    );
    world.report("c", Compliant);
    check(&mut world, "Succeeded: a Failed, b Succeeded, c Succeeded");
}

#[test]
fn statuses_follow_compliance_until_the_whole_has_succeeded() {
    let mut world = world(&["a", "b"]);
    world.settle();
    world.report("a", Compliant);
    world.settle();
    world.report("a", NonCompliant);
    check(&mut world, "Failed: a Failed, b Progressing");
    world.report("a", Compliant);
    world.settle();
    world.report("b", Compliant);
    check(&mut world, "Succeeded: a Succeeded, b Succeeded");
    world.report("b", NonCompliant);
    check(&mut world, "Succeeded: a Succeeded, b Succeeded");
    assert_eq!(world.root.status_or_default().compliant, Some(NonCompliant));
}

#[test]
fn overrides_count_where_the_effective_strategy_is_all_and_are_ignored_otherwise() {
    let action = RemediationAction("Enforce".to_owned());
    // It informs, so that its strategy has no effect.
    let mut informs = World::new("inform", &one_by_one(), &[&["a", "b"]]);
    informs.overrides.insert("a".into(), action.clone());
    informs.settle();
    assert_eq!(informs.enforcing(), ["a"]);
    // Its templates enforce: clusters wait for their turn, override or not.
    let mut enforces = world(&["a", "b"]);
    enforces.root.spec.remediation_action = None;
    let definition = &mut enforces.root.spec.policy_templates[0].object_definition;
    definition["spec"]["remediationAction"] = json!("enforce");
    enforces.overrides.insert("b".into(), action);
    check(&mut enforces, "Progressing: a Progressing, b ToApply");
    let waiting = enforces.replicas["b"].spec.remediation_action.clone();
    assert_eq!(waiting, Some(RemediationAction::inform()));
    enforces.report("a", Compliant);
    check(&mut enforces, "Progressing: a Succeeded, b Progressing");
    assert_eq!(enforces.replicas["b"].spec.remediation_action, None);
}

#[test]
fn groups_go_by_their_index_and_a_cluster_in_two_of_them_belongs_to_the_first() {
    let strategy = json!({"type": "ProgressivePerGroup"});
    let mut world = World::new("enforce", &strategy, &[]);
    world.groups = vec![
        Group::new("", 0, ["c"]),
        Group::new("", 1, ["a"]),
        Group::new("", 2, ["b"]),
    ];
    check(
        &mut world,
        "Progressing: a ToApply, b ToApply, c Progressing",
    );
    world.report("c", Compliant);
    check(
        &mut world,
        "Progressing: a Progressing, b ToApply, c Succeeded",
    );
}

#[test]
fn demotion_turns_enforcement_off_on_clusters_that_are_not_reached_yet() {
    let mut world = world(&["a", "b"]);
    for cluster in ["a", "b"] {
        world.settle();
        world.report(cluster, Compliant);
    }
    check(&mut world, "Succeeded: a Succeeded, b Succeeded");
    world.edit(2);
    world.settle();
    assert_eq!(world.enforcing(), ["a"]);
}

#[test]
fn disabled_or_unbound_in_mid_rollout_is_a_fresh_start_afterwards() {
    let mut world = world(&["a", "b"]);
    world.settle();
    world.report("a", Compliant);
    check(&mut world, "Progressing: a Succeeded, b Progressing");
    world.root.spec.disabled = true;
    world.settle();
    assert!(world.replicas.is_empty());
    world.root.spec.disabled = false;
    check(&mut world, "Progressing: a Progressing, b ToApply");
    let groups = std::mem::take(&mut world.groups);
    world.settle();
    assert!(world.replicas.is_empty());
    world.groups = groups;
    check(&mut world, "Progressing: a Progressing, b ToApply");
}

#[test]
fn without_clusters_the_root_says_nothing_about_a_rollout() {
    let mut world = world(&[]);
    check(&mut world, "-: ");
}

#[test]
fn an_inform_copy_is_written_before_to_apply_and_before_any_release() {
    let mut world = world(&["a"]);
    let plan = world.plan();
    // Killed after the replica was written: nothing is said, and nobody is released.
    world.execute(&plan, 1);
    assert_eq!(world.outcome(), "-: ");
    assert_eq!(world.enforcing(), [""; 0]);
    let plan = world.plan();
    world.execute(&plan, usize::MAX);
    assert_eq!(world.outcome(), "Progressing: a ToApply");
    assert_eq!(world.enforcing(), [""; 0]);
    check(&mut world, "Progressing: a Progressing");
}

#[test]
fn an_invalid_strategy_releases_nobody_and_is_said_as_a_warning() {
    for settings in [
        json!({"progressDeadline": "soon"}),
        json!({"maxConcurrency": "x%"}),
    ] {
        let strategy = json!({"type": "Progressive", "progressive": settings});
        let mut world = World::new("enforce", &strategy, &[&["a"]]);
        check(&mut world, "Progressing: a ToApply");
        assert!(world.plan().problem.is_some());
        assert_eq!(world.enforcing(), [""; 0]);
    }
}
