//! Silence: what the hub makes of members that stop renewing their leases, and of its own absence.

use std::sync::Arc;
use std::time::Duration;

use bellwether_api::cluster::{ManagedCluster, ManagedClusterSet};
use bellwether_api::meta::condition;
use bellwether_controllers::registration::clusters::Options;
use bellwether_runtime::{Clock, MetricsRegistry};
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::core::v1::Event;
use kube::api::ListParams;
use kube::{Api, ResourceExt as _};
use parking_lot::Mutex;
use serde_json::json;

use super::{AVAILABLE, taints};
use crate::common::{Member, Running, START, World};

const UNREACHABLE: &str = "cluster.open-cluster-management.io/unreachable";

/// Members `c1`, `c2`, … that have joined.
async fn members(world: &World, count: usize) -> Vec<(Member, Running)> {
    let mut members = Vec::new();
    for number in 1..=count {
        let name = format!("c{number}");
        let token = world.token(Some(&name)).await;
        let member = world.member(&name, &token).await;
        let running = member.start();
        world.until_condition(&name, AVAILABLE, "True").await;
        members.push((member, running));
    }
    members
}

/// Who is tainted as unreachable.
async fn unreachable(world: &World) -> Vec<String> {
    let clusters: Api<ManagedCluster> = Api::all(world.client.clone());
    let list = clusters.list(&ListParams::default()).await.unwrap().items;
    let is_tainted = |cluster: &&ManagedCluster| taints(cluster).contains(&UNREACHABLE);
    list.iter()
        .filter(is_tainted)
        .map(ManagedCluster::name_any)
        .collect()
}

/// What the set of all clusters says about a loss of heartbeats.
async fn loss(world: &World) -> Option<(String, String)> {
    let sets: Api<ManagedClusterSet> = Api::all(world.client.clone());
    let status = sets.get("global").await.unwrap().status?;
    let said = condition(&status.conditions, "HeartbeatLoss")?;
    Some((said.status.clone(), said.message.clone()))
}

#[tokio::test(start_paused = true)]
async fn a_hub_that_was_away_gives_nobody_up() {
    let world = World::start().await;
    world.bind_default().await;
    let controllers = world.control(&[]);
    let members = members(&world, 2).await;
    world.place("all", json!({})).await;
    world.until_chosen("all", &["c1", "c2"]).await;
    // Hub and members lose each other for an hour.
    for task in controllers {
        task.abort();
    }
    for (_, running) in &members {
        running.task.abort();
    }
    world.pass(3600).await;
    let _controllers = world.control(&[]);
    // Agents take a while to come back, and people change clusters meanwhile.
    for number in 0..28 {
        world.pass(10).await;
        for name in ["c1", "c2"] {
            let cluster = json!({"apiVersion": "cluster.open-cluster-management.io/v1",
                "kind": "ManagedCluster", "metadata": {"name": name}});
            let labels = json!({"metadata": {"labels": {"touched": number.to_string()}}});
            world.merge(&cluster, labels).await;
        }
        assert_eq!(unreachable(&world).await, [""; 0]);
        assert_eq!(world.chosen("all").await, ["c1", "c2"]);
    }
    let _running: Vec<Running> = members.iter().map(|(member, _)| member.start()).collect();
    world.pass(600).await;
    assert_eq!(unreachable(&world).await, [""; 0]);
    assert_eq!(world.chosen("all").await, ["c1", "c2"]);
    for name in ["c1", "c2"] {
        world.until_condition(name, AVAILABLE, "True").await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_hub_that_comes_back_misses_who_stays_away() {
    let world = World::start().await;
    let controllers = world.control(&[]);
    let members = members(&world, 1).await;
    for task in controllers {
        task.abort();
    }
    members[0].1.task.abort();
    world.pass(3600).await;
    let _controllers = world.control(&[]);
    world.pass(299).await;
    assert_eq!(unreachable(&world).await, [""; 0]);
    world.pass(5).await;
    assert_eq!(unreachable(&world).await, ["c1"]);
}

#[tokio::test(start_paused = true)]
async fn a_jump_of_the_time_of_day_gives_nobody_up() {
    let start: Timestamp = START.parse().unwrap();
    let ahead: Arc<Mutex<SignedDuration>> = Arc::default();
    let (steady, shown) = (Clock::of_runtime(start), Arc::clone(&ahead));
    let clock = Clock::new(move || steady.now() + *shown.lock());
    let mut world = World::with_clock(clock).await;
    let _controllers = world.control(&[]);
    // The members' clocks are right.
    world.clock = Clock::of_runtime(start);
    let _members = members(&world, 2).await;
    for hours in [1, 48, -48] {
        *ahead.lock() = SignedDuration::from_hours(hours);
        world.pass(1000).await;
        assert_eq!(unreachable(&world).await, [""; 0], "{hours}");
        let cluster = world.managed_cluster("c1").await;
        let available =
            condition(&cluster.status.unwrap().conditions, AVAILABLE).map(|it| it.status.clone());
        assert_eq!(available.as_deref(), Some("True"), "{hours}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_loss_of_most_members_at_once_is_taken_for_the_hubs_own_fault() {
    let world = World::start().await;
    world.bind_default().await;
    let (options, registry) = (Options::default(), MetricsRegistry::default());
    options.metrics.register(&registry);
    let is_counted = |line: &str| registry.render().lines().any(|it| it == line);
    let controllers = world.control_with(options, &[]);
    let members = members(&world, 5).await;
    assert!(is_counted("bellwether_registration_heartbeat_loss 0"));
    world.place("all", json!({})).await;
    let all = ["c1", "c2", "c3", "c4", "c5"];
    world.until_chosen("all", &all).await;
    for (_, running) in &members[1..] {
        running.task.abort();
    }
    world.pass(1200).await;
    world.until_condition("c5", AVAILABLE, "Unknown").await;
    assert_eq!(unreachable(&world).await, [""; 0]);
    assert_eq!(world.chosen("all").await, all);
    let (status, message) = loss(&world).await.unwrap();
    assert_eq!(status, "True");
    assert!(
        message.starts_with("4 of 5 clusters stopped renewing"),
        "{message}"
    );
    assert!(is_counted("bellwether_registration_heartbeat_loss 1"));
    assert!(is_counted(
        "bellwether_registration_clusters{heartbeat=\"late\"} 4"
    ));
    let events: Api<Event> = Api::namespaced(world.client.clone(), "default");
    let reasons = async || -> Vec<String> {
        let mut list = events.list(&ListParams::default()).await.unwrap().items;
        list.retain(|it| it.involved_object.kind.as_deref() == Some("ManagedClusterSet"));
        list.into_iter().filter_map(|it| it.reason).collect()
    };
    assert_eq!(reasons().await, ["HeartbeatLoss"]);
    // A hub that starts meanwhile does not know that they are back, and gives nobody up either.
    for task in controllers {
        task.abort();
    }
    let _controllers = world.control(&[]);
    world.pass(200).await;
    assert_eq!(loss(&world).await.unwrap().0, "True");
    world.pass(1000).await;
    assert_eq!(loss(&world).await.unwrap().0, "True");
    assert_eq!(unreachable(&world).await, [""; 0]);
    assert_eq!(reasons().await, ["HeartbeatLoss"]);
    // Two of them come back. The others get the time to do so as well, and are given up after it.
    let _running: Vec<Running> = members[1..3].iter().map(|(it, _)| it.start()).collect();
    world.until_condition("c2", AVAILABLE, "True").await;
    world.until_condition("c3", AVAILABLE, "True").await;
    world.pass(250).await;
    assert_eq!(unreachable(&world).await, [""; 0]);
    assert_eq!(loss(&world).await.unwrap().0, "False");
    world.pass(100).await;
    assert_eq!(unreachable(&world).await, ["c4", "c5"]);
    let mut told = reasons().await;
    told.sort();
    assert_eq!(told, ["HeartbeatLoss", "HeartbeatsBack"]);
}

#[tokio::test(start_paused = true)]
async fn a_shorter_lease_duration_is_followed_at_once_and_nobody_is_given_up() {
    let world = World::start().await;
    let _controllers = world.control(&[]);
    let token = world.token(Some("c1")).await;
    let member = world.member("c1", &token).await;
    let running = member.start();
    world.until_condition("c1", AVAILABLE, "True").await;
    let cluster = json!({"apiVersion": "cluster.open-cluster-management.io/v1",
        "kind": "ManagedCluster", "metadata": {"name": "c1"}});
    for seconds in [3600, 1, 60, 2] {
        let change = json!({"spec": {"leaseDurationSeconds": seconds}});
        world.merge(&cluster, change).await;
        for _ in 0..40 {
            tokio::time::sleep(Duration::from_millis(500)).await;
            assert_eq!(unreachable(&world).await, [""; 0], "{seconds}");
        }
        world.until_condition("c1", AVAILABLE, "True").await;
    }
    // It counts, too: ten seconds without a renewal are enough now.
    running.stop().await;
    world.pass(12).await;
    assert_eq!(unreachable(&world).await, ["c1"]);
}
