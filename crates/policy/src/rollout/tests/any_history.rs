//! What holds over any history: edits, reports in any order, clusters that come and go, strategies that change,
//! and a hub that is killed after any step.

use std::collections::BTreeSet;

use bellwether_api::policy::{ClusterCompliance, ComplianceState, RolloutStatus};
use proptest::prelude::*;
use serde_json::{Value, json};

use super::world::World;
use crate::propagation::{Evaluation, Fingerprint, Form, Replica};
use crate::rollout::Plan;

const CLUSTERS: [&str; 6] = ["a", "b", "c", "d", "e", "f"];

#[derive(Debug, Clone)]
enum Happening {
    /// A plan is made and carried out up to a step, after which the hub is killed.
    Reconcile(usize),
    Report(usize, ComplianceState),
    Edit(i64),
    Pass(i64),
    Toggle(usize),
    Concurrency(u8),
}

fn happenings() -> impl Strategy<Value = Vec<Happening>> {
    let state = prop_oneof![
        4 => Just(ComplianceState::Compliant),
        2 => Just(ComplianceState::NonCompliant),
        1 => Just(ComplianceState::Pending),
    ];
    let one = prop_oneof![
        6 => prop_oneof![3 => Just(99_usize), 1 => 0..12_usize].prop_map(Happening::Reconcile),
        6 => (0..CLUSTERS.len(), state).prop_map(|(cluster, state)| Happening::Report(cluster, state)),
        1 => (2..4_i64).prop_map(Happening::Edit),
        2 => (1..40_i64).prop_map(Happening::Pass),
        1 => (0..CLUSTERS.len()).prop_map(Happening::Toggle),
        1 => (1..4_u8).prop_map(Happening::Concurrency),
    ];
    proptest::collection::vec(one, 1..80)
}

fn strategy(concurrency: u8, failures: u8, soak: bool) -> Value {
    let soak = if soak { "20s" } else { "0s" };
    json!({"type": "Progressive", "progressive":
        {"maxConcurrency": concurrency, "maxFailures": failures, "minSuccessTime": soak}})
}

/// The clusters that have the present version as it is meant, and what they report about it.
fn released(world: &World) -> Vec<(&str, Evaluation)> {
    let version = world.version();
    let clusters = world.groups.iter().flat_map(|it| &it.clusters);
    let released = clusters.filter_map(|cluster| {
        let replica = Replica::of(world.replicas.get(cluster)?);
        // Without the strategy, which may have changed since.
        let is_released = replica.version == version.id;
        is_released.then(|| (&**cluster, replica.evaluation(world.now)))
    });
    released.collect()
}

/// Which versions clusters have reported about, and what.
type Reported = BTreeSet<(String, Fingerprint, &'static str)>;

/// True if a cluster has reported about the version that it has.
fn has_reported(world: &World, reported: &Reported, cluster: &str) -> bool {
    let version = world.version().id;
    let states = ["Compliant", "NonCompliant"];
    states
        .iter()
        .any(|state| reported.contains(&(cluster.to_owned(), version, state)))
}

/// True if the root policy says that a cluster was done.
fn is_done(world: &World, cluster: &str) -> bool {
    let status = world.root.status_or_default();
    let entry = status.status.iter().find(|it| it.cluster_name == cluster);
    entry.is_some_and(|it| it.rollout_status == Some(RolloutStatus::Succeeded))
}

fn check_releases(
    world: &World,
    plan: &Plan,
    reported: &Reported,
    (concurrency, failures): (u8, u8),
) {
    let starts = plan.write.iter().filter(|it| it.form == Form::Released);
    let known = released(world);
    let known_names: BTreeSet<&str> = known.iter().map(|(name, _)| *name).collect();
    let starts: Vec<&str> = starts
        .map(|it| &*it.cluster)
        .filter(|it| !known_names.contains(it))
        .collect();
    if starts.is_empty() {
        return;
    }
    let in_flight = known
        .iter()
        .filter(|(_, it)| matches!(it, Evaluation::Unknown | Evaluation::Pending))
        .filter(|(cluster, _)| !has_reported(world, reported, cluster))
        .count();
    assert!(
        in_flight + starts.len() <= usize::from(concurrency),
        "{starts:?} start while {known:?} have started: {}",
        world.outcome()
    );
    let failing = known
        .iter()
        .filter(|(cluster, it)| *it == Evaluation::NonCompliant && !is_done(world, cluster))
        .count();
    assert!(
        failing <= usize::from(failures),
        "{starts:?} start although {known:?}: {}",
        world.outcome()
    );
    for cluster in &starts {
        let replica = world.replicas.get(*cluster).map(Replica::of);
        let is_informed = replica.is_some_and(|it| world.version().is_spec_of(&it, Form::Informed));
        assert!(is_informed, "{cluster} starts without a copy that informs");
    }
}

/// Who starts does so after all clusters of earlier groups had the version as it is meant, and complied.
fn check_groups(world: &World, plan: &Plan, groups: &[&[&str]]) {
    let known = released(world);
    let complies = |cluster: &str| {
        let report = known.iter().find(|(name, _)| *name == cluster);
        report.is_some_and(|(_, it)| *it == Evaluation::Compliant) || is_done(world, cluster)
    };
    let is_new = |cluster: &str| {
        let replica = world.replicas.get(cluster).map(Replica::of);
        !replica.is_some_and(|it| world.version().is_spec_of(&it, Form::Released))
    };
    for write in plan.write.iter().filter(|it| it.form == Form::Released) {
        let cluster = &*write.cluster;
        let group = groups.iter().position(|it| it.contains(&cluster));
        let before = groups.iter().take(group.unwrap()).copied().flatten();
        for earlier in before {
            assert!(
                !is_new(cluster) || complies(earlier),
                "{cluster} starts before {earlier} complies: {}",
                world.outcome()
            );
        }
    }
}

/// What the root policy says is true of the clusters.
fn check_status(world: &World, reported: &Reported) {
    let status = world.root.status_or_default();
    let version = world.version();
    for entry in &status.status {
        let cluster = &entry.cluster_name;
        let replica = world.replicas.get(cluster.as_str()).map(Replica::of);
        let is_there =
            replica.is_some_and(|it| version.is_named_by(&it) && it.version == version.id);
        let is_said = entry.rollout_status == Some(RolloutStatus::Succeeded);
        if is_said {
            assert!(
                is_there,
                "{cluster} has another version: {}",
                world.outcome()
            );
            let complied = (cluster.clone(), version.id, "Compliant");
            assert!(
                reported.contains(&complied),
                "{cluster} never complied: {}",
                world.outcome()
            );
        }
    }
    if status.rollout_status == Some(RolloutStatus::Succeeded) {
        let has_ended = |it: &ClusterCompliance| {
            it.rollout_status
                .as_ref()
                .is_some_and(RolloutStatus::has_ended)
        };
        assert!(status.status.iter().all(has_ended), "{}", world.outcome());
    }
}

proptest! {
    #[test]
    fn no_history_releases_too_many_or_after_too_many_failures(
        happenings in happenings(),
        failures in 0..3_u8,
        soak: bool,
    ) {
        let mut concurrency = 1;
        let mut world = World::new("enforce", &strategy(concurrency, failures, soak), &[&CLUSTERS[..4]]);
        let mut reported = Reported::new();
        for happening in happenings {
            match happening {
                Happening::Reconcile(steps) => {
                    let plan = world.plan();
                    check_releases(&world, &plan, &reported, (concurrency, failures));
                    world.execute(&plan, steps);
                    if steps == 99 {
                        check_status(&world, &reported);
                    }
                }
                Happening::Report(cluster, state) => {
                    let name = CLUSTERS[cluster];
                    let word = match state {
                        ComplianceState::Compliant => "Compliant",
                        ComplianceState::NonCompliant => "NonCompliant",
                        _ => "Pending",
                    };
                    if let Some(replica) = world.replicas.get(name) {
                        let version = Replica::of(replica).version;
                        reported.insert((name.to_owned(), version, word));
                    }
                    world.report(name, state);
                }
                Happening::Edit(size) => world.edit(size),
                Happening::Pass(seconds) => world.pass(seconds),
                Happening::Toggle(cluster) => {
                    let clusters = &mut world.groups[0].clusters;
                    match clusters.iter().position(|it| **it == *CLUSTERS[cluster]) {
                        Some(place) => drop(clusters.remove(place)),
                        None => clusters.push(CLUSTERS[cluster].into()),
                    }
                }
                Happening::Concurrency(wanted) => {
                    concurrency = wanted;
                    world.set_strategy(&strategy(concurrency, failures, soak));
                }
            }
        }
    }

    #[test]
    fn no_history_releases_a_group_before_the_groups_before_it_comply(
        happenings in happenings(),
        soak: bool,
    ) {
        let soak = if soak { "20s" } else { "0s" };
        let strategy = json!({"type": "ProgressivePerGroup",
            "progressivePerGroup": {"minSuccessTime": soak}});
        let groups = [&CLUSTERS[..2], &CLUSTERS[2..4], &CLUSTERS[4..]];
        let mut world = World::new("enforce", &strategy, &groups);
        for happening in happenings {
            match happening {
                Happening::Reconcile(steps) => {
                    let plan = world.plan();
                    check_groups(&world, &plan, &groups);
                    world.execute(&plan, steps);
                }
                Happening::Report(cluster, state) => world.report(CLUSTERS[cluster], state),
                Happening::Edit(size) => world.edit(size),
                Happening::Pass(seconds) => world.pass(seconds),
                Happening::Toggle(_) | Happening::Concurrency(_) => {}
            }
        }
    }

    #[test]
    fn every_history_comes_to_the_same_end_once_all_clusters_comply(
        happenings in happenings(),
        soak: bool,
    ) {
        let mut world = World::new("enforce", &strategy(2, 0, soak), &[&CLUSTERS[..4]]);
        for happening in happenings {
            match happening {
                Happening::Reconcile(steps) => {
                    let plan = world.plan();
                    world.execute(&plan, steps);
                }
                Happening::Report(cluster, state) => world.report(CLUSTERS[cluster], state),
                Happening::Edit(size) => world.edit(size),
                Happening::Pass(seconds) => world.pass(seconds),
                Happening::Toggle(_) | Happening::Concurrency(_) => {}
            }
        }
        for _ in 0..20 {
            world.settle();
            for cluster in CLUSTERS {
                world.report(cluster, ComplianceState::Compliant);
            }
            world.pass(20);
        }
        world.settle();
        prop_assert_eq!(
            world.outcome(),
            "Succeeded: a Succeeded, b Succeeded, c Succeeded, d Succeeded"
        );
        for cluster in &CLUSTERS[..4] {
            prop_assert!(world.is_released(cluster));
        }
        prop_assert_eq!(world.plan().status, None);
    }
}
