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
