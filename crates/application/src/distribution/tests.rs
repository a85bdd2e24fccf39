use proptest::prelude::*;

use super::*;

fn clusters(list: &[(&str, &str)]) -> Vec<Cluster> {
    list.iter()
        .map(|(name, region)| Cluster {
            name: (*name).to_owned(),
            labels: [("region".to_owned(), (*region).to_owned())].into(),
            version: None,
        })
        .collect()
}

fn entry(region: &str, replicas: &str) -> DistributionPlacement {
    DistributionPlacement {
        cluster_selector: [("region".to_owned(), region.to_owned())].into(),
        replicas: Some(IntOrString::String(replicas.to_owned())),
        ..DistributionPlacement::default()
    }
}

const FLEET: [(&str, &str); 5] = [
    ("e2", "east"),
    ("e1", "east"),
    ("w1", "west"),
    ("e3", "east"),
    ("n1", "north"),
];

#[track_caller]
fn check(placement: &[(&str, &str)], total: i64, expected: &[(&str, i64)]) {
    let placement: Vec<_> = placement
        .iter()
        .map(|(region, share)| entry(region, share))
        .collect();
    let selected = select(&placement, &clusters(&FLEET)).unwrap();
    let expected: BTreeMap<String, i64> = expected
        .iter()
        .map(|(name, count)| ((*name).to_owned(), *count))
        .collect();
    assert_eq!(distribute(&selected, total), expected);
}

#[test]
fn shares_are_split_over_clusters() {
    check(
        &[("east", "70%"), ("west", "20%")],
        10,
        &[("e1", 3), ("e2", 2), ("e3", 2), ("w1", 2)],
    );
    check(&[("east", "100%")], 3, &[("e1", 1), ("e2", 1), ("e3", 1)]);
    // 3.5 and 1.5: the sum of both is 5, the larger remainder comes first, and of equal ones the first.
    check(
        &[("east", "70%"), ("west", "30%")],
        5,
        &[("e1", 2), ("e2", 1), ("e3", 1), ("w1", 1)],
    );
}

#[test]
fn counts_do_not_depend_on_what_there_is() {
    check(
        &[("east", "4"), ("west", "1")],
        1,
        &[("e1", 2), ("e2", 1), ("e3", 1), ("w1", 1)],
    );
    check(
        &[("east", "50%"), ("west", "3")],
        4,
        &[("e1", 1), ("e2", 1), ("w1", 3)],
    );
}

#[test]
fn clusters_without_replicas_get_nothing_unless_nobody_has_any() {
    check(&[("east", "70%"), ("west", "20%")], 1, &[("e1", 1)]);
    check(
        &[("east", "70%"), ("west", "0%")],
        0,
        &[("e1", 0), ("e2", 0), ("e3", 0), ("w1", 0)],
    );
}

#[test]
fn a_cluster_may_be_selected_more_than_once() {
    check(&[("west", "50%"), ("west", "50%")], 4, &[("w1", 4)]);
}

#[test]
fn what_is_left_over_is_named() {
    let left = |placement: &[(&str, &str)], total| {
        let placement: Vec<_> = placement
            .iter()
            .map(|(region, share)| entry(region, share))
            .collect();
        left_over(&select(&placement, &clusters(&FLEET)).unwrap(), total)
    };
    assert_eq!(
        left(&[("east", "70%"), ("west", "20%")], 10).as_deref(),
        Some("10% of replicas unassigned")
    );
    assert_eq!(left(&[("east", "70%"), ("west", "30%")], 10), None);
    assert_eq!(
        left(&[("east", "50%"), ("west", "2")], 10).as_deref(),
        Some("3 of 10 replicas unassigned")
    );
}

#[test]
fn placements_that_make_no_sense_are_refused() {
    let refused = |placement: &[DistributionPlacement]| {
        let error = select(placement, &clusters(&FLEET)).unwrap_err();
        (error.is_final(), error.to_string())
    };
    assert_eq!(
        refused(&[entry("east", "70%"), entry("west", "40%")]),
        (
            true,
            "placement asks for 110% of the replicas: shares must not exceed 100% together"
                .to_owned()
        )
    );
    assert_eq!(
        refused(&[entry("east", "many")]),
        (
            true,
            "placement[0].replicas: \"many\" is not a number or a percentage, such as 3 or \"70%\""
                .to_owned()
        )
    );
    assert_eq!(
        refused(&[entry("south", "10%")]),
        (false, "no cluster matches {region: south}".to_owned())
    );
    assert!(refused(&[]).0);
    assert!(refused(&[entry("east", "101%")]).0);
}

proptest! {
    #[test]
    fn shares_add_up_and_are_fair(
        shares in proptest::collection::vec(0u32..=40, 1..5),
        sizes in proptest::collection::vec(1usize..6, 5),
        total in 0i64..500,
    ) {
        let sum: u32 = shares.iter().sum();
        prop_assume!(sum <= 100);
        let selected: Vec<Selected> = shares.iter().zip(&sizes).enumerate().map(|(number, (share, size))| Selected {
            share: Share::Percent(*share),
            clusters: (0..*size).map(|index| format!("c{number}-{index}")).collect(),
            namespace: String::new(),
        }).collect();
        let amounts = amounts(&selected, total);
        let placed: i64 = amounts.iter().sum();
        prop_assert_eq!(placed, (total * i64::from(sum) + 50) / 100);
        prop_assert!(placed <= total);
        for (entry, amount) in selected.iter().zip(&amounts) {
            let Share::Percent(percent) = entry.share else { unreachable!() };
            let exact = total * i64::from(percent);
            prop_assert!((amount * 100 - exact).abs() < 100, "{} of {}", amount, exact);
        }
        let replicas = distribute(&selected, total);
        prop_assert_eq!(replicas.values().sum::<i64>(), placed);
        for (number, entry) in selected.iter().enumerate() {
            let own: Vec<i64> = entry.clusters.iter().map(|name| replicas.get(name).copied().unwrap_or(0)).collect();
            prop_assert!(own.is_sorted_by(|a, b| a >= b), "{:?} of {}", own, number);
            prop_assert!(own[0] - own[own.len() - 1] <= 1);
        }
    }

    #[test]
    fn the_order_of_clusters_changes_nothing(seed in 0usize..120) {
        let mut fleet = FLEET.to_vec();
        let mut seed = seed;
        for index in (1..fleet.len()).rev() {
            fleet.swap(index, seed % (index + 1));
            seed /= index + 1;
        }
        let placement = [entry("east", "70%"), entry("west", "20%")];
        let (one, other) = (select(&placement, &clusters(&FLEET)).unwrap(), select(&placement, &clusters(&fleet)).unwrap());
        prop_assert_eq!(distribute(&one, 17), distribute(&other, 17));
    }
}
