//! Replica sets of works over placements, with rollouts.

use crate::fleet::*;
use std::time::Duration;

use bellwether_apiserver::HUB;
use bellwether_controllers::{Hub, replica_set};
use serde_json::{Value, json};

const MEMBERS: [&str; 3] = ["cluster1", "cluster2", "cluster3"];

async fn start(fleet: &mut Fleet, decided: &[&str]) {
    fleet.add_members(&MEMBERS[1..]).await;
    let hub = Hub::new(fleet.controller_client(HUB), fleet.clock.clone());
    fleet.run(replica_set::run(hub));
    for member in MEMBERS {
        fleet.create(HUB, json!({"apiVersion": "cluster.open-cluster-management.io/v1", "kind": "ManagedCluster",
            "metadata": {"name": member, "labels": {"region": format!("of-{member}")}}, "spec": {"hubAcceptsClient": true}})).await;
    }
    place(fleet, "p", decided).await;
}

/// A placement that has chosen some clusters.
async fn place(fleet: &Fleet, name: &str, decided: &[&str]) {
    let placement = json!({"apiVersion": "cluster.open-cluster-management.io/v1beta1", "kind": "Placement",
        "metadata": {"name": name, "namespace": "default"}, "spec": {}});
    fleet.create(HUB, placement.clone()).await;
    let count = i64::try_from(decided.len()).unwrap();
    fleet
        .merge_status(
            HUB,
            &placement,
            json!({"numberOfSelectedClusters": count, "conditions": []}),
        )
        .await;
    choose(fleet, name, (0, ""), decided).await;
}

/// Has the placement `p` choose a group of clusters.
async fn decide(fleet: &Fleet, index: usize, group: &str, clusters: &[&str]) {
    choose(fleet, "p", (index, group), clusters).await;
}

/// Has a placement choose a group of clusters.
async fn choose(fleet: &Fleet, placement: &str, group: (usize, &str), clusters: &[&str]) {
    let (index, group) = group;
    let key = |name: &str| format!("cluster.open-cluster-management.io/{name}");
    let labels = json!({(key("placement")): placement, (key("decision-group-index")): index.to_string(),
        (key("decision-group-name")): group});
    let name = format!("{placement}-decision-{}", index + 1);
    let decision = json!({"apiVersion": "cluster.open-cluster-management.io/v1beta1", "kind": "PlacementDecision",
        "metadata": {"name": name, "namespace": "default", "labels": labels}});
    if fleet.get(HUB, &decision).await.is_none() {
        fleet.create(HUB, decision.clone()).await;
    }
    let decisions: Vec<Value> = clusters
        .iter()
        .map(|name| json!({"clusterName": name, "reason": ""}))
        .collect();
    fleet
        .merge_status(HUB, &decision, json!({"decisions": decisions}))
        .await;
}

/// What a controller of deployments says of one that serves.
fn ready() -> Value {
    json!({"observedGeneration": 1, "replicas": 1, "updatedReplicas": 1, "readyReplicas": 1, "availableReplicas": 1})
}

/// Waits until exactly these clusters have works.
async fn until_on(fleet: &Fleet, clusters: &[&str]) {
    for _ in 0..400 {
        if works(fleet).await == clusters {
            return;
        }
        tokio::time::sleep(Duration::from_millis(25)).await;
    }
    panic!("not {clusters:?} but {:?}", works(fleet).await);
}

/// Waits until the work of a cluster says that what it applied is no longer on its way.
async fn until_serving(fleet: &Fleet, cluster: &str) {
    let path =
        format!("/apis/work.open-cluster-management.io/v1/namespaces/{cluster}/manifestworks");
    for _ in 0..400 {
        let works = fleet.list(HUB, &path).await;
        let is_serving =
            |work: &Value| condition(&work["status"], "Progressing")["status"] == "False";
        if works.iter().any(is_serving) {
            return;
        }
        tokio::time::sleep(Duration::from_millis(25)).await;
    }
    panic!("{cluster} does not serve");
}

fn set(strategy: Value, manifests: Value) -> Value {
    json!({"apiVersion": "work.open-cluster-management.io/v1alpha1", "kind": "ManifestWorkReplicaSet",
        "metadata": {"name": "web", "namespace": "default"},
        "spec": {"placementRefs": [{"name": "p", "rolloutStrategy": strategy}],
            "manifestWorkTemplate": {"workload": {"manifests": manifests}}}})
}

async fn works(fleet: &Fleet) -> Vec<String> {
    let works = fleet
        .list(
            HUB,
            "/apis/work.open-cluster-management.io/v1/manifestworks",
        )
        .await;
    works
        .iter()
        .map(|work| work["metadata"]["namespace"].as_str().unwrap().to_owned())
        .collect()
}

async fn a_set_reaches_all_clusters_and_says_so(fleet: &mut Fleet) {
    start(fleet, &MEMBERS).await;
    let set = set(json!({"type": "All"}), json!([config_map("a", "1")]));
    fleet.create(HUB, set.clone()).await;
    let seen = fleet
        .until_condition(&set, "PlacementRolledOut", "True")
        .await;
    assert_eq!(seen["status"]["summary"]["total"], 3);
    assert_eq!(seen["status"]["summary"]["available"], 3);
    assert_eq!(
        condition(&seen["status"], "ManifestworkApplied")["reason"],
        "AsExpected"
    );
    for member in MEMBERS {
        assert!(fleet.get(member, &config_map("a", "")).await.is_some());
    }
    fleet.delete(HUB, &set).await;
    fleet.until_gone(HUB, &set).await;
    fleet.until_gone("cluster3", &config_map("a", "")).await;
}

async fn a_progressive_rollout_waits_for_each_member_and_stops_where_one_fails(fleet: &mut Fleet) {
    start(fleet, &MEMBERS).await;
    let strategy = json!({"type": "Progressive", "progressive": {"maxConcurrency": 1}});
    let set = set(strategy, json!([deployment("web", 1)]));
    fleet.create(HUB, set.clone()).await;
    fleet
        .until(
            "cluster1",
            &deployment("web", 1),
            "the first has it",
            |it| it.is_some(),
        )
        .await;
    fleet.pass(10_000).await;
    assert_eq!(works(fleet).await, ["cluster1"], "it is on its way");
    fleet
        .merge_status("cluster1", &deployment("web", 1), ready())
        .await;
    fleet
        .until(
            "cluster2",
            &deployment("web", 1),
            "the second has it",
            |it| it.is_some(),
        )
        .await;
    let stuck = json!({"observedGeneration": 1, "replicas": 1, "updatedReplicas": 1, "unavailableReplicas": 1, "conditions": [
        {"type": "Progressing", "status": "False", "reason": "ProgressDeadlineExceeded", "message": "timed out",
         "lastTransitionTime": "2026-01-01T00:00:00Z", "lastUpdateTime": "2026-01-01T00:00:00Z"}]});
    fleet
        .merge_status("cluster2", &deployment("web", 1), stuck)
        .await;
    fleet.pass(60_000).await;
    assert_eq!(works(fleet).await, ["cluster1", "cluster2"]);
    let seen = fleet.get(HUB, &set).await.unwrap();
    let rolled_out = condition(&seen["status"], "PlacementRolledOut");
    assert_eq!(rolled_out["status"], "False");
    assert_eq!(
        rolled_out["message"],
        "p: stopped, the rollout has 1 failure, 0 tolerated; 1 of 3 clusters are done; cluster2 failed: \
         Deployment web: 0 of 1 replicas are updated and available, timed out"
    );
    assert_eq!(seen["status"]["summary"]["degraded"], 1);
}

/// What events on the replica set say, in the order of their reasons.
async fn recorded(fleet: &Fleet) -> Vec<String> {
    let events = fleet.list(HUB, "/api/v1/namespaces/default/events").await;
    let mut texts: Vec<String> = events
        .iter()
        .filter(|event| event["involvedObject"]["kind"] == "ManifestWorkReplicaSet")
        .map(|event| {
            let text = |name: &str| event[name].as_str().unwrap().to_owned();
            format!("{}: {}", text("reason"), text("message"))
        })
        .collect();
    texts.sort();
    texts
}

async fn people_pause_and_resume_a_rollout_and_events_say_what_happens(fleet: &mut Fleet) {
    start(fleet, &MEMBERS).await;
    let strategy = json!({"type": "Progressive", "progressive": {"maxConcurrency": 1}});
    let mut paused = set(strategy, json!([config_map("a", "1")]));
    paused["metadata"]["annotations"] = json!({"work.bellwether.dev/rollout-paused": "true"});
    fleet.create(HUB, paused.clone()).await;
    fleet
        .until_condition(&paused, "PlacementRolledOut", "False")
        .await;
    fleet.pass(10_000).await;
    assert!(works(fleet).await.is_empty());
    let seen = fleet.get(HUB, &paused).await.unwrap();
    assert_eq!(
        condition(&seen["status"], "PlacementRolledOut")["message"],
        "the rollout is paused; p: 0 of 3 clusters are done"
    );
    assert_eq!(seen["status"]["summary"]["desiredTotal"], 3);
    let resume = json!({"metadata": {"annotations": {"work.bellwether.dev/rollout-paused": null}}});
    fleet.merge(HUB, &paused, resume).await;
    fleet
        .until_condition(&paused, "PlacementRolledOut", "True")
        .await;
    let is_complete = |events: &[String]| events.iter().any(|it| it.starts_with("RolloutComplete"));
    for _ in 0..400 {
        if is_complete(&recorded(fleet).await) {
            break;
        }
        fleet.pass(100).await;
    }
    let events = recorded(fleet).await;
    let complete = "RolloutComplete: p: 3 of 3 clusters are done".to_owned();
    let pause = "RolloutPaused: the rollout is paused: no further cluster starts".to_owned();
    for expected in [&complete, &pause] {
        let times = events.iter().filter(|it| *it == expected).count();
        assert_eq!(times, 1, "{expected}: {events:?}");
    }
    assert!(
        events.iter().any(|it| it.starts_with("ClustersStarted: ")),
        "{events:?}"
    );
}

async fn a_cluster_of_two_placements_has_one_work_and_keeps_its_objects(fleet: &mut Fleet) {
    start(fleet, &["cluster1", "cluster2"]).await;
    place(fleet, "q", &["cluster2", "cluster3"]).await;
    let mut set = set(json!({"type": "All"}), json!([config_map("a", "1")]));
    set["spec"]["placementRefs"] = json!([{"name": "p"}, {"name": "q"}]);
    fleet.create(HUB, set.clone()).await;
    let seen = fleet
        .until_condition(&set, "PlacementRolledOut", "True")
        .await;
    assert_eq!(works(fleet).await, MEMBERS);
    assert_eq!(
        condition(&seen["status"], "PlacementVerified")["message"],
        "3 clusters selected by 2 placements; q: the cluster cluster2 belongs to the placement p, which is \
         named before"
    );
    let made = fleet.until_there("cluster2", &config_map("a", "")).await;
    // A change of the template reaches it once.
    let changed = json!({"spec": {"manifestWorkTemplate": {"workload": {"manifests": [config_map("a", "2")]}}}});
    fleet.merge(HUB, &set, changed).await;
    let has_it = |it: Option<&Value>| it.is_some_and(|it| it["data"]["key"] == "2");
    fleet
        .until("cluster2", &config_map("a", ""), "it follows", has_it)
        .await;
    fleet.pass(60_000).await;
    let written = fleet.get("cluster2", &config_map("a", "")).await.unwrap();
    assert_eq!(written["metadata"]["uid"], made["metadata"]["uid"]);
    // The first placement gives it up, and the second takes over what is there.
    decide(fleet, 0, "", &["cluster1"]).await;
    fleet.pass(60_000).await;
    let after = fleet.get("cluster2", &config_map("a", "")).await.unwrap();
    assert_eq!(
        after["metadata"]["resourceVersion"],
        written["metadata"]["resourceVersion"]
    );
    assert_eq!(works(fleet).await, MEMBERS);
}

async fn a_job_that_fails_stops_a_rollout_although_it_is_complete(fleet: &mut Fleet) {
    start(fleet, &MEMBERS).await;
    let strategy = json!({"type": "Progressive",
        "progressive": {"maxConcurrency": 1, "maxFailures": 1}});
    let mut set = set(strategy, json!([job("once")]));
    set["spec"]["manifestWorkTemplate"]["manifestConfigs"] = json!([{
        "resourceIdentifier": {"group": "batch", "resource": "jobs", "name": "once", "namespace": "default"},
        "conditionRules": [{"type": "WellKnownCompletions"}]}]);
    fleet.create(HUB, set.clone()).await;
    let failed = json!({"failed": 1, "conditions": [
        {"type": "FailureTarget", "status": "True", "reason": "BackoffLimitExceeded", "message": "too often"},
        {"type": "Failed", "status": "True", "reason": "BackoffLimitExceeded", "message": "too often"}],
        "startTime": "2026-01-01T00:00:00Z"});
    // One failure is tolerated, and makes room. The second one stops the rollout.
    for cluster in &MEMBERS[..2] {
        fleet.until_there(cluster, &job("once")).await;
        fleet
            .merge_status(cluster, &job("once"), failed.clone())
            .await;
    }
    let has_stopped = |set: Option<&Value>| {
        let status = set.map(|set| set["status"].clone()).unwrap_or_default();
        let said = condition(&status, "PlacementRolledOut")["message"].as_str();
        said.is_some_and(|it| it.contains("the rollout has 2 failures, 1 tolerated"))
    };
    fleet.until(HUB, &set, "it stops", has_stopped).await;
    fleet.pass(60_000).await;
    assert_eq!(works(fleet).await, ["cluster1", "cluster2"]);
}

async fn values_of_clusters_reach_their_members(fleet: &mut Fleet) {
    start(fleet, &["cluster2"]).await;
    let mut set = set(
        json!({"type": "All"}),
        json!([config_map("a", "${cluster.labels.region}")]),
    );
    set["metadata"]["annotations"] = json!({"work.bellwether.dev/template-values": "cel"});
    fleet.create(HUB, set.clone()).await;
    let seen = fleet
        .until("cluster2", &config_map("a", ""), "it is there", |it| {
            it.is_some()
        })
        .await;
    assert_eq!(seen.unwrap()["data"]["key"], "of-cluster2");
    let cluster = json!({"apiVersion": "cluster.open-cluster-management.io/v1", "kind": "ManagedCluster",
        "metadata": {"name": "cluster2"}});
    let change = json!({"metadata": {"labels": {"region": "elsewhere"}}});
    fleet.merge(HUB, &cluster, change).await;
    let has_it = |it: Option<&Value>| it.is_some_and(|it| it["data"]["key"] == "elsewhere");
    fleet
        .until("cluster2", &config_map("a", ""), "it follows", has_it)
        .await;
}

async fn works_that_are_done_stay_and_are_not_made_again(fleet: &mut Fleet) {
    start(fleet, &["cluster1"]).await;
    let mut set = set(json!({"type": "All"}), json!([job("once")]));
    set["spec"]["manifestWorkTemplate"]["deleteOption"] = json!({"ttlSecondsAfterFinished": 5});
    set["spec"]["manifestWorkTemplate"]["manifestConfigs"] = json!([{
        "resourceIdentifier": {"group": "batch", "resource": "jobs", "name": "once", "namespace": "default"},
        "conditionRules": [{"type": "WellKnownCompletions"}]}]);
    fleet.create(HUB, set.clone()).await;
    fleet
        .until("cluster1", &job("once"), "it is there", |it| it.is_some())
        .await;
    fleet
        .merge_status("cluster1", &job("once"), job_done())
        .await;
    fleet
        .until_condition(&set, "PlacementRolledOut", "True")
        .await;
    fleet.delete("cluster1", &job("once")).await;
    fleet.pass(600_000).await;
    assert_eq!(works(fleet).await, ["cluster1"]);
    assert!(fleet.get("cluster1", &job("once")).await.is_none());
}

async fn groups_go_one_after_the_other_and_each_is_watched_for_a_while(fleet: &mut Fleet) {
    start(fleet, &["cluster1"]).await;
    decide(fleet, 0, "canary", &["cluster1"]).await;
    decide(fleet, 1, "rest", &["cluster2", "cluster3"]).await;
    let labels = json!({"metadata": {"labels": {"cluster.open-cluster-management.io/decision-group-name": "canary"}}});
    let first = json!({"apiVersion": "cluster.open-cluster-management.io/v1beta1", "kind": "PlacementDecision",
        "metadata": {"name": "p-decision-1", "namespace": "default"}});
    fleet.merge(HUB, &first, labels).await;
    let placement = json!({"apiVersion": "cluster.open-cluster-management.io/v1beta1", "kind": "Placement",
        "metadata": {"name": "p", "namespace": "default"}});
    fleet
        .merge_status(HUB, &placement, json!({"numberOfSelectedClusters": 3}))
        .await;
    let strategy = json!({"type": "ProgressivePerGroup", "progressivePerGroup": {
        "minSuccessTime": "5m", "progressDeadline": "10m", "maxFailures": 0}});
    let set = set(strategy, json!([deployment("web", 1)]));
    fleet.create(HUB, set.clone()).await;
    fleet.until_there("cluster1", &deployment("web", 1)).await;
    fleet.pass(60_000).await;
    assert_eq!(works(fleet).await, ["cluster1"], "it does not serve yet");
    fleet
        .merge_status("cluster1", &deployment("web", 1), ready())
        .await;
    // The time for which it is watched begins when the hub has heard that it serves.
    until_serving(fleet, "cluster1").await;
    fleet.pass(240_000).await;
    assert_eq!(works(fleet).await, ["cluster1"], "it is being watched");
    fleet.pass(90_000).await;
    until_on(fleet, &MEMBERS).await;
    for member in &MEMBERS[1..] {
        fleet.until_there(member, &deployment("web", 1)).await;
        fleet
            .merge_status(member, &deployment("web", 1), ready())
            .await;
    }
    let seen = fleet
        .until_condition(&set, "PlacementRolledOut", "True")
        .await;
    assert_eq!(seen["status"]["summary"]["available"], 3);
    let placed = &seen["status"]["placementSummary"][0];
    assert_eq!(
        placed["availableDecisionGroups"],
        "2 (3 / 3 clusters applied)"
    );
}

async fn a_group_that_takes_too_long_holds_the_others_up(fleet: &mut Fleet) {
    start(fleet, &["cluster1"]).await;
    decide(fleet, 1, "rest", &["cluster2", "cluster3"]).await;
    let placement = json!({"apiVersion": "cluster.open-cluster-management.io/v1beta1", "kind": "Placement",
        "metadata": {"name": "p", "namespace": "default"}});
    fleet
        .merge_status(HUB, &placement, json!({"numberOfSelectedClusters": 3}))
        .await;
    let strategy =
        json!({"type": "ProgressivePerGroup", "progressivePerGroup": {"progressDeadline": "10m"}});
    let set = set(strategy, json!([deployment("web", 1)]));
    fleet.create(HUB, set.clone()).await;
    fleet.until_there("cluster1", &deployment("web", 1)).await;
    fleet.pass(11 * 60_000).await;
    let is_told = |set: Option<&Value>| {
        set.is_some_and(|set| {
            let said = &condition(&set["status"], "PlacementRolledOut")["message"];
            said.as_str().is_some_and(|said| {
                said.starts_with("p: stopped, group 0 has 1 failure, 0 tolerated")
                    && said.contains("cluster1 timed out")
            })
        })
    };
    fleet.until(HUB, &set, "it is told", is_told).await;
    assert_eq!(works(fleet).await, ["cluster1"]);
}

async fn deletion_in_the_foreground_waits_for_the_works(fleet: &mut Fleet) {
    start(fleet, &["cluster1"]).await;
    let mut held = config_map("a", "1");
    held["metadata"]["finalizers"] = json!(["example.com/hold"]);
    let mut set = set(json!({"type": "All"}), json!([held]));
    set["spec"]["cascadeDeletionPolicy"] = json!("Foreground");
    fleet.create(HUB, set.clone()).await;
    fleet.until_there("cluster1", &held).await;
    fleet
        .until_condition(&set, "PlacementRolledOut", "True")
        .await;
    fleet.delete(HUB, &set).await;
    fleet.pass(60_000).await;
    assert!(
        fleet.get(HUB, &set).await.is_some(),
        "a work is still there"
    );
    let free = json!({"metadata": {"finalizers": null}});
    fleet.merge("cluster1", &held, free).await;
    fleet.until_gone(HUB, &set).await;
    assert_eq!(works(fleet).await, [""; 0]);
}

async fn deletion_in_the_background_does_not_wait(fleet: &mut Fleet) {
    start(fleet, &["cluster1"]).await;
    let mut held = config_map("a", "1");
    held["metadata"]["finalizers"] = json!(["example.com/hold"]);
    let set = set(json!({"type": "All"}), json!([held]));
    fleet.create(HUB, set.clone()).await;
    fleet.until_there("cluster1", &held).await;
    fleet.delete(HUB, &set).await;
    fleet.until_gone(HUB, &set).await;
    assert_eq!(works(fleet).await, ["cluster1"], "its work goes by itself");
    let free = json!({"metadata": {"finalizers": null}});
    fleet.merge("cluster1", &held, free).await;
    until_on(fleet, &[]).await;
}

async fn a_template_that_is_too_large_becomes_several_works(fleet: &mut Fleet) {
    start(fleet, &["cluster1"]).await;
    let text = "x".repeat(200_000);
    let names = ["a", "b", "c", "d"];
    let maps: Vec<Value> = names.iter().map(|name| config_map(name, &text)).collect();
    let set = set(json!({"type": "All"}), json!(maps));
    fleet.create(HUB, set.clone()).await;
    for name in names {
        fleet.until_there("cluster1", &config_map(name, "")).await;
    }
    assert_eq!(works(fleet).await, ["cluster1", "cluster1"]);
    let seen = fleet
        .until_condition(&set, "PlacementRolledOut", "True")
        .await;
    assert_eq!(seen["status"]["summary"]["total"], 1, "it is one cluster");
    fleet.delete(HUB, &set).await;
    until_on(fleet, &[]).await;
    assert!(fleet.get("cluster1", &config_map("d", "")).await.is_none());
}

async fn what_a_set_loses_is_taken_from_its_works_and_then_nothing_is_written(fleet: &mut Fleet) {
    start(fleet, &["cluster1"]).await;
    let mut map = config_map("a", "1");
    map["metadata"]["creationTimestamp"] = Value::Null;
    map["data"]["nothing"] = Value::Null;
    let mut set = set(json!({"type": "All"}), json!([map]));
    set["metadata"]["labels"] = json!({"team": "a"});
    set["spec"]["manifestWorkTemplate"]["deleteOption"] =
        json!({"propagationPolicy": "Foreground", "ttlSecondsAfterFinished": 5});
    fleet.create(HUB, set.clone()).await;
    fleet
        .until_condition(&set, "PlacementRolledOut", "True")
        .await;
    let change = json!({"metadata": {"labels": null}, "spec": {"manifestWorkTemplate":
        {"deleteOption": {"ttlSecondsAfterFinished": null}}}});
    fleet.merge(HUB, &set, change).await;
    let path = "/apis/work.open-cluster-management.io/v1/namespaces/cluster1/manifestworks";
    let mut work = Value::Null;
    for _ in 0..400 {
        work = fleet.list(HUB, path).await.remove(0);
        let option = &work["spec"]["deleteOption"];
        if option.get("ttlSecondsAfterFinished").is_none()
            && work["metadata"]["labels"].get("team").is_none()
        {
            break;
        }
        tokio::time::sleep(Duration::from_millis(25)).await;
    }
    assert_eq!(
        work["spec"]["deleteOption"],
        json!({"propagationPolicy": "Foreground"})
    );
    assert_eq!(work["metadata"]["labels"].get("team"), None);
    fleet
        .until_condition(&set, "PlacementRolledOut", "True")
        .await;
    fleet.pass(100).await;
    let rested = fleet.list(HUB, path).await.remove(0);
    fleet.pass(1_000).await;
    let later = fleet.list(HUB, path).await.remove(0);
    assert_eq!(rested["metadata"], later["metadata"]);
}

async fn a_cluster_without_a_value_is_told_and_holds_up_no_other(fleet: &mut Fleet) {
    start(fleet, &MEMBERS).await;
    let cluster = json!({"apiVersion": "cluster.open-cluster-management.io/v1", "kind": "ManagedCluster",
        "metadata": {"name": "cluster2"}});
    let label = |value: Value| json!({"metadata": {"labels": {"region": value}}});
    fleet.merge(HUB, &cluster, label(Value::Null)).await;
    let mut set = set(
        json!({"type": "All"}),
        json!([config_map("a", "${cluster.labels.region}")]),
    );
    set["metadata"]["annotations"] = json!({"work.bellwether.dev/template-values": "cel"});
    fleet.create(HUB, set.clone()).await;
    for member in ["cluster1", "cluster3"] {
        fleet.until_there(member, &config_map("a", "")).await;
    }
    let seen = fleet
        .until_condition(&set, "ManifestworkApplied", "False")
        .await;
    let why = "p: for cluster2: cluster.labels.region: no such key: region";
    assert_eq!(
        condition(&seen["status"], "ManifestworkApplied")["message"],
        why
    );
    fleet.merge(HUB, &cluster, label(json!("here"))).await;
    fleet.until_there("cluster2", &config_map("a", "")).await;
    fleet
        .until_condition(&set, "PlacementRolledOut", "True")
        .await;
}

async fn an_object_that_moves_between_works_is_not_made_again(fleet: &mut Fleet) {
    start(fleet, &["cluster1"]).await;
    let text = "x".repeat(200_000);
    let template = |names: &[&str]| {
        let maps: Vec<Value> = names.iter().map(|name| config_map(name, &text)).collect();
        json!({"spec": {"manifestWorkTemplate": {"workload": {"manifests": maps}}}})
    };
    let mut set = set(json!({"type": "All"}), json!([]));
    let small = template(&["b", "c"]);
    set["spec"]["manifestWorkTemplate"] = small["spec"]["manifestWorkTemplate"].clone();
    fleet.create(HUB, set.clone()).await;
    fleet
        .until_condition(&set, "PlacementRolledOut", "True")
        .await;
    let moving = config_map("c", "");
    let before = fleet.get("cluster1", &moving).await.unwrap();
    // The template outgrows its work, and c goes to a second one.
    fleet.merge(HUB, &set, template(&["a", "b", "c"])).await;
    until_on(fleet, &["cluster1", "cluster1"]).await;
    fleet.until_there("cluster1", &config_map("a", "")).await;
    fleet
        .until_condition(&set, "PlacementRolledOut", "True")
        .await;
    // And back again.
    fleet.merge(HUB, &set, small).await;
    until_on(fleet, &["cluster1"]).await;
    fleet.until_gone("cluster1", &config_map("a", "")).await;
    let after = fleet.get("cluster1", &moving).await.unwrap();
    assert_eq!(before["metadata"]["uid"], after["metadata"]["uid"]);
}

async fn a_work_that_the_hub_refuses_is_told_and_holds_up_no_other(fleet: &mut Fleet) {
    start(fleet, &["cluster1", "nowhere"]).await;
    let set = set(json!({"type": "All"}), json!([config_map("a", "x")]));
    fleet.create(HUB, set).await;
    fleet.until_there("cluster1", &config_map("a", "")).await;
    let why = "the work for nowhere cannot be written: namespaces \"nowhere\" not found";
    let is_told = |event: &Value| event["reason"] == "WorkRefused" && event["message"] == why;
    for _ in 0..400 {
        let events = fleet.list(HUB, "/api/v1/namespaces/default/events").await;
        if events.iter().any(is_told) {
            return;
        }
        tokio::time::sleep(Duration::from_millis(25)).await;
    }
    panic!("nobody is told");
}

crate::cases![
    a_work_that_the_hub_refuses_is_told_and_holds_up_no_other,
    an_object_that_moves_between_works_is_not_made_again,
    what_a_set_loses_is_taken_from_its_works_and_then_nothing_is_written,
    a_cluster_without_a_value_is_told_and_holds_up_no_other,
    a_set_reaches_all_clusters_and_says_so,
    a_progressive_rollout_waits_for_each_member_and_stops_where_one_fails,
    people_pause_and_resume_a_rollout_and_events_say_what_happens,
    a_cluster_of_two_placements_has_one_work_and_keeps_its_objects,
    a_job_that_fails_stops_a_rollout_although_it_is_complete,
    values_of_clusters_reach_their_members,
    works_that_are_done_stay_and_are_not_made_again,
    groups_go_one_after_the_other_and_each_is_watched_for_a_while,
    a_group_that_takes_too_long_holds_the_others_up,
    deletion_in_the_foreground_waits_for_the_works,
    deletion_in_the_background_does_not_wait,
    a_template_that_is_too_large_becomes_several_works,
];
