//! The examples in `examples/work`, on members whose workloads are simulated.

#![allow(clippy::unwrap_used, clippy::needless_pass_by_value, reason = "tests")]

use crate::fleet;

use bellwether_agent::work::AgentOptions;
use bellwether_apiserver::HUB;
use bellwether_controllers::{Hub, cluster_set, placement, replica_set};
use bellwether_simulator::Simulator;
use fleet::*;
use serde_json::{Value, json};

const MEMBERS: [&str; 3] = ["cluster1", "cluster2", "cluster3"];

/// A fleet with a scheduler and with workloads that live; members have the labels that those of
/// `bellwether up` have.
async fn start() -> (Fleet, Simulator) {
    let fleet = Fleet::with(AgentOptions::default(), &MEMBERS).await;
    let simulator = Simulator::start(fleet.server.clone(), fleet.clock.clone());
    for member in MEMBERS {
        simulator.add(member).await.unwrap();
    }
    let client = fleet.controller_client(HUB);
    let hub = Hub::new(client, fleet.clock.clone());
    tokio::spawn(placement::run(hub.clone()));
    tokio::spawn(cluster_set::run(hub.clone()));
    tokio::spawn(replica_set::run(hub));
    let labels = [("emea", "dev"), ("amer", "staging"), ("apac", "prod")];
    for (member, (region, environment)) in MEMBERS.iter().zip(labels) {
        fleet.create(HUB, json!({"apiVersion": "cluster.open-cluster-management.io/v1", "kind": "ManagedCluster",
            "metadata": {"name": member, "labels": {"region": region, "environment": environment}},
            "spec": {"hubAcceptsClient": true}})).await;
    }
    let bind = json!({"apiVersion": "cluster.open-cluster-management.io/v1beta2", "kind": "ManagedClusterSetBinding",
        "metadata": {"name": "default", "namespace": "default"}, "spec": {"clusterSet": "default"}});
    for _ in 0..100 {
        if fleet.try_create(HUB, bind.clone()).await.is_ok() {
            break;
        }
        fleet.pass(50).await;
    }
    (fleet, simulator)
}

/// The objects of an example, which are created.
async fn apply(fleet: &Fleet, name: &str) -> Vec<Value> {
    let path = format!(
        "{}/../../examples/work/{name}.yaml",
        env!("CARGO_MANIFEST_DIR")
    );
    let text = std::fs::read_to_string(path).unwrap();
    let objects = bellwether_json::yaml::from_yaml(&text).unwrap();
    for object in &objects {
        match fleet.try_create(HUB, object.clone()).await {
            // Several examples bring along what lets them choose clusters.
            Err(kube::Error::Api(status)) if status.is_already_exists() => {}
            other => drop(other.unwrap()),
        }
    }
    objects
}

/// Waits for as long as workloads may take.
async fn patiently(fleet: &Fleet, work: &Value, name: &str, status: &str) -> Value {
    for _ in 0..120 {
        let seen = fleet.get(HUB, work).await.unwrap();
        if condition(&seen["status"], name)["status"] == status {
            return seen;
        }
        fleet.pass(1000).await;
    }
    panic!(
        "{name} is not {status}: {:#}",
        fleet.get(HUB, work).await.unwrap()["status"]
    );
}

#[tokio::test(start_paused = true)]
async fn a_job_runs_once() {
    let (fleet, _simulator) = start().await;
    let work = &apply(&fleet, "job-once").await[0];
    patiently(&fleet, work, "Complete", "True").await;
    fleet.delete(MEMBER, &job("greet")).await;
    fleet.pass(60_000).await;
    assert!(fleet.get(MEMBER, &job("greet")).await.is_none());
}

#[tokio::test(start_paused = true)]
async fn a_job_runs_once_and_goes() {
    let (fleet, _simulator) = start().await;
    let work = &apply(&fleet, "job-ttl").await[0];
    patiently(&fleet, work, "Complete", "True").await;
    fleet.pass(32_000).await;
    fleet.until_gone(HUB, work).await;
    assert!(fleet.get(MEMBER, &job("sweep")).await.is_none());
    assert!(
        fleet
            .get(MEMBER, &config_map("sweep-settings", ""))
            .await
            .is_none()
    );
}

#[tokio::test(start_paused = true)]
async fn conditions_of_a_custom_resource_come_from_expressions() {
    let (fleet, _simulator) = start().await;
    let work = &apply(&fleet, "custom-resource").await[0];
    let seen = patiently(&fleet, work, "Complete", "False").await;
    assert_eq!(condition(&seen["status"], "Applied")["status"], "True");
    let shearing = &work["spec"]["workload"]["manifests"][0];
    let part = json!({"shorn": 2, "conditions": []});
    fleet.merge_status(MEMBER, shearing, part).await;
    // The report may wait for the next tenth of a second, the shortest time between two.
    let is_counted = |work: Option<&Value>| {
        let counted = work.map(|work| manifest_condition(work, 0, "Counted"));
        counted.is_some_and(|it| it["message"] == "2 of 3 are shorn")
    };
    let seen = fleet.until(HUB, work, "sheep are counted", is_counted);
    let seen = seen.await.unwrap();
    let counted = manifest_condition(&seen, 0, "Counted");
    assert_eq!(
        (counted["reason"].as_str(), counted["status"].as_str()),
        (Some("CountNotReached"), Some("False"))
    );
    let all = json!({"shorn": 3, "conditions": [{"type": "Done", "status": "True"}]});
    fleet.merge_status(MEMBER, shearing, all).await;
    let seen = patiently(&fleet, work, "Complete", "True").await;
    assert_eq!(
        manifest_condition(&seen, 0, "Counted")["reason"],
        "CountReached"
    );
}

#[tokio::test(start_paused = true)]
async fn the_status_of_a_deployment_is_on_the_hub() {
    let (fleet, _simulator) = start().await;
    let work = &apply(&fleet, "deployment-status").await[0];
    fleet.pass(30_000).await;
    let seen = fleet.get(HUB, work).await.unwrap();
    let values = &seen["status"]["resourceStatus"]["manifests"][0]["statusFeedback"]["values"];
    let expected = json!([
        {"name": "ReadyReplicas", "fieldValue": {"type": "Integer", "integer": 2}},
        {"name": "Replicas", "fieldValue": {"type": "Integer", "integer": 2}},
        {"name": "AvailableReplicas", "fieldValue": {"type": "Integer", "integer": 2}},
        {"name": "isAvailable", "fieldValue": {"type": "String", "string": "True"}},
    ]);
    assert_eq!(values, &expected);
}

#[tokio::test(start_paused = true)]
async fn the_work_api_brings_status_home_too() {
    let (fleet, _simulator) = start().await;
    let work = &apply(&fleet, "work-api").await[1];
    fleet.pass(90_000).await;
    let seen = fleet.get(HUB, work).await.unwrap();
    let values = &seen["status"]["manifestConditions"][0]["statusSync"]["values"];
    let expected = json!([
        {"name": "isAvailable", "fieldValue": {"type": "String", "string": "True"}},
        {"name": "isReady", "fieldValue": {"type": "Boolean", "boolean": true}},
    ]);
    assert_eq!(values, &expected);
}

#[tokio::test(start_paused = true)]
async fn a_daemon_set_reaches_members_by_their_labels() {
    let (fleet, _simulator) = start().await;
    let set = &apply(&fleet, "daemonset-rollout").await[1];
    let seen = patiently(&fleet, set, "PlacementRolledOut", "True").await;
    assert_eq!(seen["status"]["summary"]["available"], 2);
    let logger = json!({"apiVersion": "apps/v1", "kind": "DaemonSet", "metadata": {"name": "logger", "namespace": "default"}});
    assert!(fleet.get("cluster2", &logger).await.is_some());
    assert!(fleet.get("cluster3", &logger).await.is_none());
}

#[tokio::test(start_paused = true)]
async fn a_progressive_rollout_stops_at_the_member_that_fails() {
    let (fleet, _simulator) = start().await;
    let set = &apply(&fleet, "progressive").await[1];
    fleet.pass(120_000).await;
    let seen = fleet.get(HUB, set).await.unwrap();
    let rolled_out = condition(&seen["status"], "PlacementRolledOut");
    assert_eq!(rolled_out["status"], "False");
    let message = rolled_out["message"].as_str().unwrap();
    let stopped = "each-in-turn: stopped, the rollout has 1 failure, 0 tolerated; \
                   1 of 3 clusters are done; cluster2 failed: Deployment bakery: ";
    assert!(message.starts_with(stopped), "{seen:#}");
    let first = fleet
        .get("cluster1", &deployment("bakery", 0))
        .await
        .unwrap();
    assert_eq!(
        first["spec"]["template"]["metadata"]["labels"]["region"],
        "emea"
    );
    assert!(
        fleet
            .get("cluster3", &deployment("bakery", 0))
            .await
            .is_none()
    );
}
