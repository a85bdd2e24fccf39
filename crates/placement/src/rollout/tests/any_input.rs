//! What every answer keeps to, whatever the question: statuses that no history would lead to, times
//! that are missing, names that occur twice, groups with gaps.

use std::collections::{BTreeMap, BTreeSet};

use jiff::{SignedDuration, Timestamp};
use proptest::prelude::*;
use proptest::strategy::Strategy as Generator;

use crate::rollout::{
    ClusterStatus, Decision, Group, GroupKey, Input, Kind, MandatoryGroup, Status, Strategy,
    Threshold, UnsetConcurrency, decide,
};

const STATUSES: [Status; 6] = [
    Status::ToApply,
    Status::Progressing,
    Status::Succeeded,
    Status::Failed,
    Status::TimeOut,
    Status::Skip,
];

/// Clusters in groups whose indexes have gaps and whose names repeat; one may be in two groups.
fn groups() -> impl Generator<Value = Vec<Group>> {
    let clusters = prop::collection::vec(0_u8..14, 0..6);
    let group = (0_i64..7, prop::option::of(0_u8..2), clusters);
    prop::collection::vec(group, 0..6).prop_map(|groups| {
        let mut indexes = BTreeSet::new();
        groups
            .into_iter()
            .filter(|(index, ..)| indexes.insert(*index))
            .map(|(index, name, clusters)| {
                let name = name.map(|name| format!("g{name}")).unwrap_or_default();
                let clusters = clusters.into_iter().map(|number| format!("c{number:02}"));
                Group::new(name.as_str(), index, clusters)
            })
            .collect()
    })
}

fn existing() -> impl Generator<Value = Vec<ClusterStatus>> {
    let entry = (0_u8..16, 0_usize..6, prop::option::of(0_i64..120));
    prop::collection::vec(entry, 0..12).prop_map(|entries| {
        entries
            .into_iter()
            .map(|(cluster, status, ago)| {
                let since = ago.map(|ago| Timestamp::UNIX_EPOCH - SignedDuration::from_secs(ago));
                let group = GroupKey {
                    name: "".into(),
                    index: 0,
                };
                ClusterStatus::new(format!("c{cluster:02}"), group, STATUSES[status], since)
            })
            .collect()
    })
}

fn threshold() -> impl Generator<Value = Option<Threshold>> {
    prop_oneof![
        Just(None),
        (0_i64..9).prop_map(|number| Some(Threshold::Number(number))),
        (0_u8..9).prop_map(|number| Some(Threshold::Text(number.to_string()))),
        (0_u8..=100).prop_map(|percentage| Some(Threshold::Text(format!("{percentage}%")))),
    ]
}

fn strategy() -> impl Generator<Value = Strategy> {
    let kind = prop_oneof![
        Just(Kind::All),
        Just(Kind::Progressive),
        Just(Kind::ProgressivePerGroup),
    ];
    let deadline = prop_oneof![
        Just("None"),
        Just(""),
        Just("60s"),
        Just("0s"),
        Just("1h30m")
    ];
    let mandatory = prop_oneof![
        (0_i64..7).prop_map(|group_index| MandatoryGroup {
            group_index,
            ..MandatoryGroup::default()
        }),
        (0_u8..3).prop_map(|name| MandatoryGroup {
            group_name: format!("g{name}"),
            group_index: 1,
        }),
    ];
    let mandatory = prop::collection::vec(mandatory, 0..3);
    let soak = prop_oneof![Just(0_i64), Just(60)];
    (kind, deadline, soak, threshold(), threshold(), mandatory).prop_map(
        |(kind, deadline, soak, max_failures, max_concurrency, mandatory_decision_groups)| {
            Strategy {
                kind,
                min_success_time: bellwether_json::duration::GoDuration::from_secs(soak),
                progress_deadline: deadline.to_owned(),
                max_failures,
                max_concurrency,
                mandatory_decision_groups,
            }
        },
    )
}

fn names<'a>(entries: impl IntoIterator<Item = &'a ClusterStatus>) -> Vec<&'a str> {
    entries.into_iter().map(|entry| &*entry.cluster).collect()
}

/// The first thing that is known of each cluster, which is what counts.
fn known(existing: &[ClusterStatus]) -> BTreeMap<&str, &ClusterStatus> {
    let mut known = BTreeMap::new();
    for entry in existing {
        known.entry(&*entry.cluster).or_insert(entry);
    }
    known
}

fn check(input: &Input<'_>, decision: &Decision) {
    let members: BTreeSet<&str> = input
        .groups
        .iter()
        .flat_map(|group| &group.clusters)
        .map(|cluster| &**cluster)
        .collect();
    let known = known(input.existing);
    let rollout = names(&decision.rollout);
    let timed_out = names(&decision.timed_out);
    let mut seen = BTreeSet::new();
    for cluster in rollout.iter().chain(&timed_out) {
        assert!(members.contains(cluster), "{cluster} is in no group");
        assert!(seen.insert(*cluster), "{cluster} is there twice");
    }
    let starting: Vec<&str> = decision.starting().collect();
    for cluster in &starting {
        let status = known.get(cluster).map(|entry| entry.status);
        assert!(
            matches!(status, None | Some(Status::ToApply)),
            "{cluster} starts though it is {status:?}"
        );
    }
    if decision.breached {
        assert_eq!(starting, Vec::<&str>::new(), "nothing new starts");
    }
    for entry in &decision.removed {
        assert!(!members.contains(&*entry.cluster));
    }
    let told: Vec<&str> = decision
        .reasons
        .iter()
        .map(|(cluster, _)| &**cluster)
        .collect();
    assert_eq!(
        told,
        members.into_iter().collect::<Vec<_>>(),
        "a reason each"
    );
    for (cluster, reason) in &decision.reasons {
        assert!(!reason.to_string().is_empty(), "{cluster}");
    }
    assert!(decision.recheck_after.is_none_or(|wait| wait.is_positive()));
    let takes_slot = |entry: &&ClusterStatus| !entry.status.is_failure();
    let in_flight = decision.rollout.iter().filter(takes_slot).count();
    if input.strategy.kind == Kind::Progressive
        && input.strategy.mandatory_decision_groups.is_empty()
        && !starting.is_empty()
        && let Some(Threshold::Number(size @ 1..)) = input.strategy.max_concurrency
    {
        let size = usize::try_from(size).unwrap();
        assert!(in_flight <= size, "more than {size} in flight");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1500))]

    #[test]
    fn every_answer_is_sound(
        strategy in strategy(), groups in groups(), existing in existing(), one in any::<bool>(),
    ) {
        let mut input = Input::new(&strategy, &groups, &existing, Timestamp::UNIX_EPOCH);
        if one {
            input.unset_concurrency = UnsetConcurrency::One;
        }
        let decision = decide(&input).unwrap();
        check(&input, &decision);
        prop_assert_eq!(decide(&input).unwrap(), decision);
    }

    #[test]
    fn the_order_of_what_is_known_changes_nothing_but_the_order_of_the_answer(
        strategy in strategy(), groups in groups(), existing in existing(),
    ) {
        // Of a cluster that is there twice the first counts, so there is to be one of each.
        let mut existing: Vec<ClusterStatus> = known(&existing).into_values().cloned().collect();
        let ask = |groups: &[Group], existing: &[ClusterStatus]| {
            let input = Input::new(&strategy, groups, existing, Timestamp::UNIX_EPOCH);
            decide(&input).unwrap()
        };
        let first = ask(&groups, &existing);
        existing.reverse();
        let mut turned = groups.clone();
        turned.reverse();
        let second = ask(&turned, &existing);
        let sorted = |entries: &[ClusterStatus]| -> BTreeSet<String> {
            names(entries).into_iter().map(str::to_owned).collect()
        };
        prop_assert_eq!(
            first.starting().collect::<Vec<_>>(), second.starting().collect::<Vec<_>>()
        );
        prop_assert_eq!(sorted(&first.rollout), sorted(&second.rollout));
        prop_assert_eq!(sorted(&first.timed_out), sorted(&second.timed_out));
        prop_assert_eq!(first.breached, second.breached);
        prop_assert_eq!(first.recheck_after, second.recheck_after);
    }

    #[test]
    fn a_cluster_that_is_done_is_never_asked_again(
        strategy in strategy(), groups in groups(), existing in existing(), came in groups(),
        gone in 0_u8..14,
    ) {
        let gone = format!("c{gone:02}");
        let mut changed = groups.clone();
        for group in &mut changed {
            group.clusters.retain(|cluster| **cluster != *gone);
        }
        let free = |group: &Group| changed.iter().all(|it| it.key.index != group.key.index);
        let came: Vec<Group> = came.into_iter().filter(|group| free(group)).collect();
        changed.extend(came);
        let input = Input::new(&strategy, &changed, &existing, Timestamp::UNIX_EPOCH);
        let decision = decide(&input).unwrap();
        check(&input, &decision);
        let known = known(&existing);
        for cluster in decision.starting() {
            let is_done = |entry: &&ClusterStatus| entry.status == Status::Succeeded;
            prop_assert!(!known.get(cluster).is_some_and(is_done), "{} starts again", cluster);
        }
    }
}
