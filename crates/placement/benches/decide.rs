//! How long decisions take.

use bellwether_placement::rollout::{ClusterStatus, Group, Input, Status, Strategy, decide};
use jiff::{SignedDuration, Timestamp};

fn main() {
    divan::main();
}

/// Ten thousand clusters in a hundred groups, a third of them done.
fn fleet() -> (Vec<Group>, Vec<ClusterStatus>) {
    let name = |cluster: usize| format!("cluster{cluster}");
    let groups: Vec<Group> = (0..100_usize)
        .map(|group| {
            let clusters = (group * 100..group * 100 + 100).map(name);
            Group::new("", i64::try_from(group).unwrap_or(0), clusters)
        })
        .collect();
    let since = Timestamp::UNIX_EPOCH - SignedDuration::from_secs(60);
    let existing = groups
        .iter()
        .flat_map(|group| {
            let status = |cluster| {
                ClusterStatus::new(cluster, group.key.clone(), Status::Succeeded, Some(since))
            };
            group.clusters.iter().cloned().map(status)
        })
        .take(3333)
        .collect();
    (groups, existing)
}

#[divan::bench(args = ["All", "Progressive", "ProgressivePerGroup"])]
fn rollout_of_10000_clusters(bencher: divan::Bencher<'_, '_>, kind: &str) {
    let strategy = serde_json::json!({
        "type": kind, "maxConcurrency": "5%", "maxFailures": "2%", "minSuccessTimeSeconds": 30,
    });
    let strategy = Strategy::from_flat_json(&strategy).unwrap_or_default();
    let (groups, existing) = fleet();
    let input = Input::new(&strategy, &groups, &existing, Timestamp::UNIX_EPOCH);
    bencher.bench(|| decide(divan::black_box(&input)));
}

/// A fleet to choose from, and ten placements that choose by label, score and group.
mod placements {
    use std::collections::BTreeSet;
    use std::sync::Arc;

    use bellwether_placement::schedule::{
        Choices, Cluster, ClusterSet, Placement, ScoreBoard, View, affects, schedule,
    };
    use jiff::Timestamp;
    use serde_json::json;

    fn clusters(count: usize) -> Vec<Cluster> {
        let cluster = |index: usize| {
            let region = format!("region{}", index % 10);
            Cluster::from_json(Arc::new(json!({
                "metadata": {"name": format!("cluster{index}"), "labels": {"region": region}},
                "status": {
                    "capacity": {"cpu": "64"},
                    "allocatable": {"cpu": (index % 64).to_string()},
                },
            })))
        };
        (0..count).filter_map(cluster).collect()
    }

    fn placement(index: usize, predicate: &serde_json::Value) -> Placement {
        Placement::from_json(&json!({"metadata": {"name": format!("p{index}")}, "spec": {
            "predicates": [{"requiredClusterSelector": predicate}],
            "numberOfClusters": 50,
            "prioritizerPolicy": {"configurations": [
                {"scoreCoordinate": {"builtIn": "ResourceAllocatableCPU"}, "weight": 2}]},
            "decisionStrategy": {"groupStrategy": {"clustersPerDecisionGroup": 10}},
        }}))
    }

    fn everything() -> Vec<ClusterSet> {
        let everything = json!({"metadata": {"name": "global"}, "spec": {"clusterSelector":
            {"selectorType": "LabelSelector", "labelSelector": {}}}});
        vec![ClusterSet::from_json(&everything)]
    }

    /// One cluster moves to another region: which of the placements must be scheduled again?
    #[divan::bench(args = [100])]
    fn one_label_change(bencher: divan::Bencher<'_, '_>, count: usize) {
        let by_label = |index: usize| {
            let region = format!("region{index}");
            placement(
                index,
                &json!({"labelSelector": {"matchLabels": {"region": region}}}),
            )
        };
        let placements: Vec<Placement> = (0..count).map(by_label).collect();
        let sets = everything();
        let clusters = clusters(2);
        let (bindings, scores) = (["global".to_owned()].into(), ScoreBoard::default());
        let (decided, choices) = (BTreeSet::new(), Choices::default());
        bencher.bench(|| {
            let is_concerned = |placement: &&Placement| {
                let view = View {
                    placement,
                    bindings: &bindings,
                    sets: &sets,
                    clusters: &clusters,
                    candidates: None,
                    scores: &scores,
                    decided: &decided,
                    chosen_elsewhere: &choices.without([]),
                    now: Timestamp::UNIX_EPOCH,
                };
                affects(&view, clusters.first(), clusters.last())
            };
            placements.iter().filter(is_concerned).count()
        });
    }

    fn run(bencher: divan::Bencher<'_, '_>, count: usize, placements: &[Placement]) {
        let sets = everything();
        let clusters = clusters(count);
        bencher.bench(|| {
            for placement in placements {
                divan::black_box(schedule(&View {
                    placement,
                    bindings: &["global".to_owned()].into(),
                    sets: &sets,
                    clusters: &clusters,
                    candidates: None,
                    scores: &ScoreBoard::default(),
                    decided: &BTreeSet::new(),
                    chosen_elsewhere: &Choices::default().without([]),
                    now: Timestamp::UNIX_EPOCH,
                }));
            }
        });
    }

    #[divan::bench(args = [1000, 10_000])]
    fn ten_by_label(bencher: divan::Bencher<'_, '_>, count: usize) {
        let by_label = |index: usize| {
            let region = format!("region{index}");
            placement(
                index,
                &json!({"labelSelector": {"matchLabels": {"region": region}}}),
            )
        };
        run(bencher, count, &(0..10).map(by_label).collect::<Vec<_>>());
    }

    #[divan::bench(args = [10_000])]
    fn hundred_by_label(bencher: divan::Bencher<'_, '_>, count: usize) {
        let by_label = |index: usize| {
            let region = format!("region{}", index % 10);
            placement(
                index,
                &json!({"labelSelector": {"matchLabels": {"region": region}}}),
            )
        };
        run(bencher, count, &(0..100).map(by_label).collect::<Vec<_>>());
    }

    #[divan::bench(args = [1000])]
    fn ten_by_expression(bencher: divan::Bencher<'_, '_>, count: usize) {
        let by_expression = |index: usize| {
            let expression = format!("managedCluster.metadata.labels.region == 'region{index}'");
            placement(
                index,
                &json!({"celSelector": {"celExpressions": [expression]}}),
            )
        };
        run(
            bencher,
            count,
            &(0..10).map(by_expression).collect::<Vec<_>>(),
        );
    }
}
