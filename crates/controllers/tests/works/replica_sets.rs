//! Replica sets of works over placements, with rollouts.

use crate::fleet::*;
use bellwether_apiserver::HUB;
use bellwether_controllers::{Hub, replica_set};
use serde_json::{Value, json};

const MEMBERS: [&str; 3] = ["cluster1", "cluster2", "cluster3"];

async fn start(fleet: &mut Fleet, decided: &[&str]) {
    fleet.add_members(&MEMBERS[1..]).await;
    let hub = Hub::start(fleet.client(HUB), fleet.clock.clone());
    fleet.run(replica_set::run(hub));
    for member in MEMBERS {
        fleet.create(HUB, json!({"apiVersion": "cluster.open-cluster-management.io/v1", "kind": "ManagedCluster",
            "metadata": {"name": member, "labels": {"region": format!("of-{member}")}}, "spec": {"hubAcceptsClient": true}})).await;
    }
    let placement = json!({"apiVersion": "cluster.open-cluster-management.io/v1beta1", "kind": "Placement",
        "metadata": {"name": "p", "namespace": "default"}, "spec": {}});
    fleet.create(HUB, placement.clone()).await;
    let count = i64::try_from(decided.len()).unwrap();
    fleet
        .merge_status(
            HUB,
            &placement,
            json!({"numberOfSelectedClusters": count, "conditions": []}),
        )
        .await;
    let decision = json!({"apiVersion": "cluster.open-cluster-management.io/v1beta1", "kind": "PlacementDecision",
        "metadata": {"name": "p-decision-1", "namespace": "default",
            "labels": {"cluster.open-cluster-management.io/placement": "p"}}});
    fleet.create(HUB, decision.clone()).await;
    let decisions: Vec<Value> = decided
        .iter()
        .map(|name| json!({"clusterName": name, "reason": ""}))
        .collect();
    fleet
        .merge_status(HUB, &decision, json!({"decisions": decisions}))
        .await;
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
    let ready = json!({"observedGeneration": 1, "replicas": 1, "updatedReplicas": 1, "readyReplicas": 1, "availableReplicas": 1});
    fleet
        .merge_status("cluster1", &deployment("web", 1), ready)
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
        "p: cluster3 does not start: the rollout has 1 failure, 0 tolerated"
    );
    assert_eq!(seen["status"]["summary"]["degraded"], 1);
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

crate::cases![
    a_set_reaches_all_clusters_and_says_so,
    a_progressive_rollout_waits_for_each_member_and_stops_where_one_fails,
    values_of_clusters_reach_their_members,
    works_that_are_done_stay_and_are_not_made_again,
];
