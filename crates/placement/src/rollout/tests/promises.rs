//! What rollouts promise, over random histories: clusters join, leave, succeed, fail and recover
//! while time passes, and every answer is acted upon.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use proptest::prelude::*;

use crate::rollout::{
    ClusterStatus, Compat, Decision, Group, GroupKey, Input, Kind, MandatoryGroup, Status,
    Strategy, Threshold, decide,
};

const CLUSTERS: [&str; 9] = ["a", "b", "c", "d", "e", "f", "g", "h", "i"];

/// Something that happens between two decisions.
#[derive(Debug, Clone)]
enum Event {
    Passes(i64),
    Succeeds(usize),
    Fails(usize),
    Leaves(usize),
    Joins(usize, i64),
}

fn event() -> impl Generator<Value = Event> {
    let cluster = 0..CLUSTERS.len();
    prop_oneof![
        4 => (1_i64..50).prop_map(Event::Passes),
        6 => cluster.clone().prop_map(Event::Succeeds),
        2 => cluster.clone().prop_map(Event::Fails),
        1 => cluster.clone().prop_map(Event::Leaves),
        1 => (cluster, 0_i64..4).prop_map(|(cluster, group)| Event::Joins(cluster, group)),
    ]
}

use proptest::strategy::Strategy as Generator;

fn threshold() -> impl Generator<Value = Option<Threshold>> {
    prop_oneof![
        Just(None),
        (0_i64..12).prop_map(|number| Some(Threshold::Number(number))),
        (0_u8..=100).prop_map(|percentage| Some(Threshold::Text(format!("{percentage}%")))),
    ]
}

fn strategy() -> impl Generator<Value = Strategy> {
    let kind = prop_oneof![
        1 => Just(Kind::All),
        4 => Just(Kind::Progressive),
        4 => Just(Kind::ProgressivePerGroup),
    ];
    let deadline = prop_oneof![
        Just("None".to_owned()),
        (5_u8..90).prop_map(|s| format!("{s}s"))
    ];
    let soak = prop_oneof![Just(0_i64), 1_i64..60];
    let mandatory = prop::collection::vec(0_i64..4, 0..2);
    (kind, deadline, soak, threshold(), threshold(), mandatory).prop_map(
        |(kind, progress_deadline, soak, max_failures, max_concurrency, mandatory)| Strategy {
            kind,
            min_success_time: bellwether_json::duration::GoDuration::from_secs(soak),
            progress_deadline,
            max_failures,
            max_concurrency,
            mandatory_decision_groups: mandatory
                .into_iter()
                .map(|group_index| MandatoryGroup {
                    group_index,
                    ..MandatoryGroup::default()
                })
                .collect(),
        },
    )
}

/// A fleet that does what it is told.
struct World {
    strategy: Strategy,
    members: BTreeMap<&'static str, i64>,
    statuses: BTreeMap<Arc<str>, ClusterStatus>,
    now: Timestamp,
}

impl World {
    fn new(strategy: Strategy) -> Self {
        let members = CLUSTERS.iter().copied().zip([0, 0, 1, 1, 1, 2, 3, 3, 3]);
        Self {
            strategy,
            members: members.collect(),
            statuses: BTreeMap::new(),
            now: Timestamp::UNIX_EPOCH,
        }
    }

    fn groups(&self) -> Vec<Group> {
        let mut groups: BTreeMap<i64, Vec<&str>> = BTreeMap::new();
        for (cluster, group) in &self.members {
            groups.entry(*group).or_default().push(cluster);
        }
        let group = |(index, clusters)| Group::new("", index, clusters);
        groups.into_iter().map(group).collect()
    }

    fn ask(&self) -> Decision {
        let groups = self.groups();
        let existing: Vec<ClusterStatus> = self.statuses.values().cloned().collect();
        let input = Input::new(&self.strategy, &groups, &existing, self.now);
        let decision = decide(&input).unwrap();
        assert_eq!(decide(&input).unwrap(), decision, "same input, same answer");
        decision
    }

    fn set(&mut self, cluster: &str, status: Status) {
        let Some(group) = self.members.get(cluster) else {
            return;
        };
        let name = "".into();
        let group = GroupKey {
            name,
            index: *group,
        };
        let status = ClusterStatus::new(cluster, group, status, Some(self.now));
        self.statuses.insert(cluster.into(), status);
    }

    fn happens(&mut self, event: &Event) {
        let status = |world: &Self, cluster: &str| Some(world.statuses.get(cluster)?.status);
        match event {
            Event::Passes(seconds) => self.now += SignedDuration::from_secs(*seconds),
            Event::Succeeds(cluster) => {
                let cluster = CLUSTERS[*cluster];
                if matches!(
                    status(self, cluster),
                    Some(Status::Progressing | Status::Failed)
                ) {
                    self.set(cluster, Status::Succeeded);
                }
            }
            Event::Fails(cluster) => {
                let cluster = CLUSTERS[*cluster];
                if status(self, cluster) == Some(Status::Progressing) {
                    self.set(cluster, Status::Failed);
                }
            }
            Event::Leaves(cluster) => {
                self.members.remove(CLUSTERS[*cluster]);
            }
            Event::Joins(cluster, group) => {
                self.members.entry(CLUSTERS[*cluster]).or_insert(*group);
            }
        }
    }

    /// Acts on an answer.
    fn acts(&mut self, decision: &Decision) {
        for cluster in decision.starting().map(str::to_owned).collect::<Vec<_>>() {
            self.set(&cluster, Status::Progressing);
        }
        for entry in &decision.timed_out {
            self.statuses.insert(entry.cluster.clone(), entry.clone());
        }
        for entry in &decision.removed {
            self.statuses.remove(&entry.cluster);
        }
    }

    fn status(&self, cluster: &str) -> Option<Status> {
        Some(self.statuses.get(cluster)?.status)
    }

    fn is_mandatory(&self, group: i64) -> bool {
        let mandatory = &self.strategy.mandatory_decision_groups;
        self.strategy.kind != Kind::All && mandatory.iter().any(|it| it.group_index == group)
    }

    /// The number a threshold stands for, said once more in plain words.
    fn number(threshold: Option<&Threshold>, total: usize, unset: usize) -> usize {
        let number = match threshold {
            None => 0,
            Some(Threshold::Number(number)) => usize::try_from(*number).unwrap(),
            Some(Threshold::Text(text)) => {
                let percentage: usize = text.trim_end_matches('%').parse().unwrap();
                (percentage * total).div_ceil(100)
            }
        };
        if number == 0 {
            unset
        } else {
            number.min(total)
        }
    }

    /// The groups of clusters whose failures are counted together, and how many are tolerated.
    fn budgets(&self) -> Vec<(Vec<&'static str>, usize)> {
        let max_failures = self.strategy.max_failures.as_ref();
        let of = |keep: &dyn Fn(i64) -> bool| -> Vec<&'static str> {
            let kept = self.members.iter().filter(|(_, group)| keep(**group));
            kept.map(|(cluster, _)| *cluster).collect()
        };
        let mut budgets = Vec::new();
        if self.strategy.kind == Kind::All {
            return budgets;
        }
        for group in 0..4 {
            let clusters = of(&|it| it == group);
            if self.is_mandatory(group) {
                budgets.push((clusters, 0));
            } else if self.strategy.kind == Kind::ProgressivePerGroup {
                let tolerated = Self::number(max_failures, clusters.len(), 0);
                budgets.push((clusters, tolerated));
            }
        }
        if self.strategy.kind == Kind::Progressive {
            let clusters = of(&|_| true);
            let tolerated = Self::number(max_failures, clusters.len(), 0);
            budgets.push((clusters, tolerated));
        }
        budgets
    }

    fn is_breached(&self, decision: &Decision) -> bool {
        let late: BTreeSet<&str> = decision.timed_out.iter().map(|it| &*it.cluster).collect();
        let failed = |cluster: &&&str| {
            late.contains(**cluster) || self.status(cluster).is_some_and(Status::is_failure)
        };
        let exceeded = |(clusters, tolerated): &(Vec<&str>, usize)| {
            clusters.iter().filter(failed).count() > *tolerated
        };
        self.budgets().iter().any(exceeded)
    }

    fn is_soaking(&self, entry: &ClusterStatus) -> bool {
        let soak = self.strategy.min_success_time.to_signed();
        self.strategy.kind != Kind::All
            && entry.status == Status::Succeeded
            && entry
                .last_transition
                .is_some_and(|since| self.now < since + soak)
    }

    /// Every promise, about an answer that is not acted upon yet.
    fn check(&self, decision: &Decision) {
        let starting: Vec<&str> = decision.starting().collect();
        let answered: BTreeSet<&str> = decision.rollout.iter().map(|it| &*it.cluster).collect();
        let late: BTreeSet<&str> = decision.timed_out.iter().map(|it| &*it.cluster).collect();
        assert_eq!(
            decision.breached,
            self.is_breached(decision),
            "breach is reported"
        );
        if decision.breached {
            assert!(
                starting.is_empty(),
                "nothing new once the budget is breached"
            );
        }
        for cluster in &starting {
            assert!(self.status(cluster).is_none(), "{cluster} starts twice");
            assert!(
                self.members.contains_key(cluster),
                "{cluster} is in no group"
            );
        }
        for entry in self.statuses.values() {
            let is_member = self.members.contains_key(&*entry.cluster);
            let in_flight = matches!(entry.status, Status::Progressing | Status::Failed);
            if is_member && (in_flight || self.is_soaking(entry)) && !late.contains(&*entry.cluster)
            {
                assert!(
                    answered.contains(&*entry.cluster),
                    "{} is forgotten",
                    entry.cluster
                );
            }
        }
        assert_eq!(
            decision.reasons.len(),
            self.members.len(),
            "a reason per cluster"
        );
        self.check_order(decision, &starting);
        self.check_concurrency(decision, &starting);
    }

    /// Mandatory groups, and groups at all, finish before others start.
    fn check_order(&self, decision: &Decision, starting: &[&str]) {
        let unfinished = |cluster: &str| {
            let status = self.statuses.get(cluster);
            let late = decision.timed_out.iter().any(|it| &*it.cluster == cluster);
            !late
                && status.is_none_or(|entry| {
                    matches!(entry.status, Status::ToApply | Status::Progressing)
                        || self.is_soaking(entry)
                })
        };
        for cluster in starting {
            let group = self.members[cluster];
            let before = |other: i64| match self.strategy.kind {
                Kind::All => false,
                Kind::Progressive if self.is_mandatory(group) => {
                    self.is_mandatory(other) && other < group
                }
                Kind::Progressive => self.is_mandatory(other),
                Kind::ProgressivePerGroup => {
                    (!self.is_mandatory(other), other) < (!self.is_mandatory(group), group)
                }
            };
            for (other, other_group) in &self.members {
                if before(*other_group) {
                    assert!(
                        !unfinished(other),
                        "{cluster} starts before {other} is done"
                    );
                }
            }
        }
    }

    fn check_concurrency(&self, decision: &Decision, starting: &[&str]) {
        let in_others = |cluster: &&&str| !self.is_mandatory(self.members[**cluster]);
        if self.strategy.kind != Kind::Progressive || !starting.iter().any(|it| in_others(&it)) {
            return;
        }
        let others = self
            .members
            .values()
            .filter(|group| !self.is_mandatory(**group));
        let total = others.count();
        let size = Self::number(self.strategy.max_concurrency.as_ref(), total, total);
        let in_flight = decision.rollout.iter().filter(|it| !it.status.is_failure());
        assert!(in_flight.count() <= size, "more than {size} in flight");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn promises_hold_over_random_histories(
        strategy in strategy(),
        events in prop::collection::vec(event(), 0..60),
    ) {
        let mut world = World::new(strategy);
        let mut done = BTreeSet::new();
        for event in &events {
            let decision = world.ask();
            world.check(&decision);
            for cluster in decision.starting() {
                assert!(!done.contains(cluster), "{cluster} is done and starts again");
            }
            world.acts(&decision);
            world.happens(event);
            done.retain(|cluster: &String| world.members.contains_key(&**cluster));
            let is_done = |entry: &&ClusterStatus| {
                entry.status == Status::Succeeded && world.members.contains_key(&*entry.cluster)
            };
            done.extend(world.statuses.values().filter(is_done).map(|it| it.cluster.to_string()));
        }
    }

    #[test]
    fn a_healthy_fleet_is_always_finished(strategy in strategy()) {
        let mut world = World::new(strategy);
        for _ in 0..4 * CLUSTERS.len() {
            let decision = world.ask();
            world.check(&decision);
            world.acts(&decision);
            world.happens(&Event::Passes(2));
            (0..CLUSTERS.len()).for_each(|cluster| world.happens(&Event::Succeeds(cluster)));
            world.happens(&Event::Passes(60));
        }
        let is_done = |cluster: &&str| world.status(cluster) == Some(Status::Succeeded);
        assert!(CLUSTERS.iter().all(is_done));
    }

    #[test]
    fn within_the_budget_failures_stop_nobody_else(
        strategy in strategy(),
        failing in 0..CLUSTERS.len(),
    ) {
        let mut world = World::new(Strategy {
            max_failures: Some(Threshold::Number(1)),
            max_concurrency: Some(Threshold::Number(1)),
            mandatory_decision_groups: Vec::new(),
            ..strategy
        });
        for _ in 0..4 * CLUSTERS.len() {
            let decision = world.ask();
            world.check(&decision);
            world.acts(&decision);
            world.happens(&Event::Passes(2));
            world.happens(&Event::Fails(failing));
            for cluster in (0..CLUSTERS.len()).filter(|cluster| *cluster != failing) {
                world.happens(&Event::Succeeds(cluster));
            }
            world.happens(&Event::Passes(60));
        }
        let others = CLUSTERS.iter().filter(|cluster| **cluster != CLUSTERS[failing]);
        let is_done = |cluster: &str| world.status(cluster) == Some(Status::Succeeded);
        assert!(others.into_iter().all(|cluster| is_done(cluster)));
    }

    #[test]
    fn both_rules_agree_while_nothing_fails_or_joins(
        strategy in strategy(),
        succeeding in prop::collection::vec(0..CLUSTERS.len(), 0..30),
    ) {
        let mut world = World::new(Strategy { progress_deadline: String::new(), ..strategy });
        for cluster in succeeding {
            let decision = world.ask();
            let groups = world.groups();
            let existing: Vec<ClusterStatus> = world.statuses.values().cloned().collect();
            let input = Input::new(&world.strategy, &groups, &existing, world.now);
            let upstream = decide(&Input { compat: Compat::Upstream, ..input }).unwrap();
            assert_eq!(&decision.rollout, &upstream.rollout);
            assert_eq!(decision.recheck_after, upstream.recheck_after);
            world.acts(&decision);
            world.happens(&Event::Passes(7));
            world.happens(&Event::Succeeds(cluster));
        }
    }
}
