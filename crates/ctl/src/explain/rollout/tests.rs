use bellwether_api::work::names::{annotation, finalizer};
use bellwether_placement::rollout::Group;
use bellwether_work::replica_set::plan;

use super::*;

const NOW: &str = "2026-01-01T12:00:00Z";

/// How far a member is with its work.
#[derive(Clone, Copy)]
enum State {
    /// It has been as it should be for so many seconds.
    Well(i64),
    /// It has been in progress for so many seconds.
    Moving(i64),
    /// It has failed for so many seconds.
    Failed(i64),
}

fn ago(seconds: i64) -> String {
    let now: Timestamp = NOW.parse().unwrap();
    format_time(now - jiff::SignedDuration::from_secs(seconds))
}

fn set(strategy: &Value) -> ManifestWorkReplicaSet {
    serde_json::from_value(json!({
        "metadata": {"name": "shop", "namespace": "default", "finalizers": [finalizer::REPLICA_SET]},
        "spec": {"placementRefs": [{"name": "everywhere", "rolloutStrategy": strategy}],
            "manifestWorkTemplate": {"workload": {"manifests": [{"apiVersion": "apps/v1",
                "kind": "Deployment", "metadata": {"name": "shop", "namespace": "default"}}]}}},
    }))
    .unwrap()
}

/// A rollout to groups of clusters, some of which have got somewhere.
fn snapshot(
    strategy: &Value,
    groups: &[(&str, &[&str])],
    states: &[(&str, State)],
) -> RolloutSnapshot {
    let groups: Vec<Group> = groups
        .iter()
        .zip(0..)
        .map(|((name, clusters), index)| Group::new(name, index, clusters.iter().copied()))
        .collect();
    let chosen = Chosen::from(groups);
    let mut snapshot = RolloutSnapshot {
        set: set(&json!({"type": "All"})),
        placements: BTreeMap::from([("everywhere".to_owned(), chosen)]),
        now: NOW.parse().unwrap(),
        ..RolloutSnapshot::default()
    };
    let observed = Observed {
        set: &snapshot.set,
        placements: &snapshot.placements,
        works: &[],
        cluster: &|_| None,
        now: snapshot.now,
    };
    let written = plan(&observed, &Programs::default()).write;
    snapshot.works = states
        .iter()
        .map(|(cluster, state)| {
            let of_cluster =
                |work: &&ManifestWork| work.metadata.namespace.as_deref() == Some(cluster);
            let work = written.iter().find(of_cluster).unwrap();
            Arc::new(reported(work, *state))
        })
        .collect();
    snapshot.set = set(strategy);
    snapshot
}

/// A work with the status of its member.
fn reported(work: &ManifestWork, state: State) -> ManifestWork {
    let (since, progressing, degraded) = match state {
        State::Well(since) => (since, "False", "False"),
        State::Moving(since) => (since, "True", "False"),
        State::Failed(since) => (since, "True", "True"),
    };
    let said = |name: &str, status: &str, message: &str| {
        json!({"type": name, "status": status, "reason": "R", "message": message,
            "observedGeneration": 1, "lastTransitionTime": ago(since)})
    };
    let conditions = json!([
        said("Applied", "True", ""),
        said("Available", "True", ""),
        said(
            "Progressing",
            progressing,
            "1 of 3 replicas are updated and available"
        ),
        said(
            "Degraded",
            degraded,
            "ReplicaSet \"shop-5\" has timed out progressing."
        ),
    ]);
    let mut value = serde_json::to_value(work).unwrap();
    value["metadata"]["name"] = json!("shopx7k2m");
    value["metadata"]["generation"] = json!(1);
    value["metadata"]["annotations"] = json!({(annotation::ROLLED_OUT_AT): ago(since.max(42))});
    let meta = json!({"ordinal": 0, "kind": "Deployment", "namespace": "default", "name": "shop"});
    value["status"] = json!({"conditions": conditions, "resourceStatus": {"manifests": [
        {"resourceMeta": meta, "conditions": conditions}]}});
    serde_json::from_value(value).unwrap()
}

#[track_caller]
fn check(snapshot: &RolloutSnapshot, expected: &str) {
    let text = Rollout::new(snapshot).status().render(false);
    assert_eq!(text, expected, "\n{text}");
}

fn per_group() -> Value {
    json!({"type": "ProgressivePerGroup", "progressivePerGroup": {"minSuccessTime": "30s"}})
}

const GROUPS: [(&str, &[&str]); 4] = [
    ("canary", &["cluster5"]),
    ("", &["cluster1", "cluster2"]),
    ("", &["cluster3", "cluster4"]),
    ("", &["cluster6"]),
];

#[test]
fn a_stopped_rollout_names_who_fails_and_why_and_what_to_do() {
    let states = [
        ("cluster5", State::Well(300)),
        ("cluster1", State::Well(200)),
        ("cluster2", State::Well(200)),
        ("cluster3", State::Well(12)),
        ("cluster4", State::Failed(30)),
    ];
    let snapshot = snapshot(&per_group(), &GROUPS, &states);
    check(
        &snapshot,
        "\
replica set default/shop   stopped   ProgressivePerGroup   3 of 6 clusters done, 1 failing, since 5m
  canary    cluster5   done
  group 1   cluster1   done
            cluster2   done
▸ group 2   cluster3   soaking, 18s left
            cluster4   failing: Deployment shop: 1 of 3 replicas are updated and available, ReplicaSet \"shop-5\" has timed out progressing (since 30s)
  group 3   cluster6   does not start
stops here: group 2 has 1 failure, 0 tolerated (maxFailures)
next: bellwether why cluster4 mwrs/shop · bellwether status work/shopx7k2m -n cluster4 · bellwether rollout retry|abort mwrs/shop
",
    );
}

#[test]
fn what_the_member_says_takes_the_place_of_what_its_workload_says() {
    let strategy = json!({"type": "All"});
    let states = [("cluster1", State::Failed(30))];
    let mut snapshot = snapshot(&strategy, &[("", &["cluster1"])], &states);
    let cause = Rollout::new(&snapshot).report.placements[0].groups[0].clusters[0].causes();
    let text = "pod shop-5-x: CrashLoopBackOff".to_owned();
    let cause = cause[0].clone();
    let trouble = Trouble { cause, text };
    snapshot
        .troubles
        .insert("cluster1".to_owned(), vec![trouble]);
    check(
        &snapshot,
        "\
replica set default/shop   rolling out   All   0 of 1 cluster done, 1 failing, since 42s
▸ everywhere   cluster1   failing: Deployment shop: 1 of 3 replicas are updated and available, pod shop-5-x: CrashLoopBackOff (since 30s)
next: bellwether why cluster1 mwrs/shop · bellwether status work/shopx7k2m -n cluster1 · bellwether status mwrs/shop -w
",
    );
    let why = Rollout::new(&snapshot)
        .why("cluster1")
        .unwrap()
        .render(false);
    assert_eq!(
        why,
        "\
cluster1 and mwrs/shop:
placement everywhere: cluster1 failed
on cluster1: Deployment shop: 1 of 3 replicas are updated and available, ReplicaSet \"shop-5\" has timed out progressing
on cluster1: pod shop-5-x: CrashLoopBackOff
next: bellwether status work/shopx7k2m -n cluster1 · bellwether describe deployment/shop -n default --context cluster1 · bellwether rollout retry mwrs/shop
"
    );
}

#[test]
fn a_rollout_on_its_way_says_who_is_next_and_until_when() {
    let strategy = json!({"type": "Progressive", "progressive":
        {"maxConcurrency": 1, "progressDeadline": "5m"}});
    let groups: [(&str, &[&str]); 1] = [("", &["a", "b", "c"])];
    let states = [("a", State::Well(100)), ("b", State::Moving(42))];
    check(
        &snapshot(&strategy, &groups, &states),
        "\
replica set default/shop   rolling out   Progressive   1 of 3 clusters done, since 100s
▸ everywhere   a   done
               b   in progress: Deployment shop: 1 of 3 replicas are updated and available (since 42s), times out in 4m18s
               c   waits for b
next: bellwether status mwrs/shop -w
",
    );
}

#[test]
fn a_paused_rollout_says_how_to_resume() {
    let strategy = json!({"type": "Progressive", "progressive": {"maxConcurrency": 1}});
    let groups: [(&str, &[&str]); 1] = [("", &["a", "b"])];
    let mut snapshot = snapshot(&strategy, &groups, &[("a", State::Well(100))]);
    let paused = (annotation::ROLLOUT_PAUSED.to_owned(), NOW.to_owned());
    snapshot.set.metadata.annotations = Some(BTreeMap::from([paused]));
    snapshot.set.metadata.namespace = Some("default".to_owned());
    check(
        &snapshot,
        "\
replica set default/shop   paused   Progressive   1 of 2 clusters done, since 100s
  everywhere   a   done
               b   waits: paused
the rollout is paused: no further cluster starts
next: bellwether rollout resume mwrs/shop
",
    );
}

#[test]
fn many_clusters_of_one_state_are_one_line() {
    let strategy = json!({"type": "Progressive", "progressive": {"maxConcurrency": 1}});
    let names: Vec<String> = (10..30).map(|number| format!("c{number}")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let states: Vec<(&str, State)> = names[..8]
        .iter()
        .map(|name| (*name, State::Well(100)))
        .collect();
    check(
        &snapshot(&strategy, &[("", &names)], &states),
        "\
replica set default/shop   rolling out   Progressive   8 of 20 clusters done, since 100s
  everywhere   c10 … c17   done (8 clusters)
               c18         starts now
               c19 … c29   waits for c18 (11 clusters)
next: bellwether status mwrs/shop -w
",
    );
}

#[test]
fn a_complete_rollout_has_nothing_to_add() {
    let snapshot = snapshot(
        &json!({"type": "All"}),
        &[("", &["a"])],
        &[("a", State::Well(100))],
    );
    check(
        &snapshot,
        "\
replica set default/shop   complete   All   1 of 1 cluster done
  everywhere   a   done
",
    );
    assert!(Rollout::new(&snapshot).is_complete());
    let why = Rollout::new(&snapshot).why_all().render(false);
    assert_eq!(
        why,
        "mwrs/shop   complete   1 of 1 cluster done\nall clusters are done\n"
    );
}

#[test]
fn a_missing_placement_and_an_empty_one_are_told() {
    let mut snapshot = snapshot(&json!({"type": "All"}), &[], &[]);
    check(
        &snapshot,
        "\
replica set default/shop   selects no cluster   All   0 of 0 clusters done
next: bellwether why placement/everywhere
",
    );
    snapshot.placements.clear();
    check(
        &snapshot,
        "\
replica set default/shop   selects no cluster   0 of 0 clusters done
there is no placement everywhere in namespace default
",
    );
}

#[test]
fn the_whole_rollout_is_explained_without_a_cluster() {
    let states = [
        ("cluster5", State::Well(300)),
        ("cluster1", State::Failed(30)),
    ];
    let snapshot = snapshot(&per_group(), &GROUPS, &states);
    let rollout = Rollout::new(&snapshot);
    assert_eq!(
        rollout.why_all().render(false),
        "\
mwrs/shop   stopped   1 of 6 clusters done, 1 failing, since 5m
stops here: group 1 has 1 failure, 0 tolerated (maxFailures)
cluster1: failing: Deployment shop: 1 of 3 replicas are updated and available, ReplicaSet \"shop-5\" has timed out progressing (since 30s)
cluster2, cluster3, cluster4, cluster6: each does not start: group 1 has 1 failure, 0 tolerated
next: bellwether why cluster1 mwrs/shop · bellwether status work/shopx7k2m -n cluster1 · bellwether rollout retry|abort mwrs/shop
"
    );
    let document = rollout.document();
    assert_eq!(document["stage"], "stopped");
    assert_eq!(document["clusters"]["failing"], 1);
    let failing = &document["placements"][0]["groups"][1]["clusters"][0];
    assert_eq!(failing["name"], "cluster1");
    assert_eq!(failing["state"], "failing");
    assert_eq!(failing["since"], ago(30));
}

#[test]
fn several_placements_have_a_heading_each() {
    let states = [("a", State::Well(100))];
    let mut snapshot = snapshot(&json!({"type": "All"}), &[("", &["a"])], &states);
    let more = json!({"name": "more", "rolloutStrategy": {"type": "All"}});
    let references = &mut snapshot.set.spec.placement_refs;
    references.push(serde_json::from_value(more).unwrap());
    let groups = vec![Group::new("first", 0, ["a"]), Group::new("", 1, ["b"])];
    let chosen = Chosen::from(groups);
    snapshot.placements.insert("more".to_owned(), chosen);
    check(
        &snapshot,
        "\
replica set default/shop   rolling out   1 of 2 clusters done, since 100s
placement everywhere   All   1 of 1 cluster done
  everywhere   a   done
placement more   All   0 of 1 cluster done
  group 1      b   starts now
more: the cluster a belongs to the placement everywhere, which is named before
next: bellwether status mwrs/shop -w
",
    );
}
