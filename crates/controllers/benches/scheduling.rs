//! How long the scheduler takes on an embedded hub in memory: all placements of a fleet, and one
//! label change, from the request to the decision that readers see. A report, never a verdict.

#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    missing_docs,
    reason = "a benchmark"
)]

use std::sync::Arc;
use std::time::Duration;

use bellwether_api::cluster::{ManagedCluster, Placement, PlacementDecision};
use bellwether_apiserver::{ApiServer, HUB, Identity};
use bellwether_controllers::{Hub, placement};
use bellwether_runtime::Clock;
use bellwether_store::{Options, Store};
use futures::{StreamExt as _, stream};
use kube::api::{Patch, PatchParams, PostParams, WatchEvent, WatchParams};
use kube::{Api, Client};
use serde_json::{Value, json};
use tokio::time::Instant;

/// How many label changes are measured.
const CHANGES: usize = 21;

#[tokio::main]
async fn main() {
    println!("clusters  placements  all settled  one label change (median, worst)");
    for (clusters, placements) in [(1000, 10), (1000, 100), (10_000, 10), (10_000, 100)] {
        measure(clusters, placements).await;
    }
}

async fn measure(clusters: usize, placements: usize) {
    let clock = Clock::system();
    let now = clock.clone();
    let options = Options::new(Arc::new(move || now.now()));
    let server = ApiServer::new(Store::in_memory(options), clock.clone());
    server.add_cluster(HUB).await.unwrap();
    for definition in bellwether_api::definitions() {
        server.ensure(HUB, definition).await.unwrap();
    }
    let client = server.client(HUB, Identity::administrator("bench"));
    create(&client, clusters, placements).await;
    let hub = Hub::start(client.clone(), clock);
    hub.ready().await;
    let started = Instant::now();
    let scheduler = tokio::spawn(placement::run(hub.clone()));
    let is_settled = |it: &Arc<Placement>| {
        it.status
            .as_ref()
            .is_some_and(|it| !it.conditions.is_empty())
    };
    while hub
        .placements
        .list()
        .iter()
        .filter(|it| is_settled(it))
        .count()
        < placements
    {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    let settled = started.elapsed();
    let mut changes = Vec::new();
    for number in 0..CHANGES {
        changes.push(change(&client, number, placements).await);
    }
    changes.sort();
    println!(
        "{clusters:>8}  {placements:>10}  {:>8.1} ms  {:>6.2} ms, {:.2} ms",
        millis(settled),
        millis(changes[CHANGES / 2]),
        millis(changes[CHANGES - 1]),
    );
    scheduler.abort();
}

fn millis(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1000.0
}

/// A hundred regions; each placement asks for one.
async fn create(client: &Client, clusters: usize, placements: usize) {
    let set = json!({"apiVersion": "cluster.open-cluster-management.io/v1beta2",
        "kind": "ManagedClusterSet", "metadata": {"name": "global"},
        "spec": {"clusterSelector": {"selectorType": "LabelSelector", "labelSelector": {}}}});
    let set = serde_json::from_value(set).unwrap();
    let sets: Api<bellwether_api::cluster::ManagedClusterSet> = Api::all(client.clone());
    sets.create(&PostParams::default(), &set).await.unwrap();
    let binding = json!({"metadata": {"name": "global"}, "spec": {"clusterSet": "global"}});
    let binding = serde_json::from_value(binding).unwrap();
    let bindings: Api<bellwether_api::cluster::ManagedClusterSetBinding> =
        Api::namespaced(client.clone(), "default");
    bindings
        .create(&PostParams::default(), &binding)
        .await
        .unwrap();
    let api: Api<ManagedCluster> = Api::all(client.clone());
    let cluster = |number: usize| {
        let region = format!("r{}", number % 100);
        read(&json!({"metadata": {"name": format!("c{number:05}"), "labels": {"region": region}}}))
    };
    let creating = stream::iter((0..clusters).map(cluster)).for_each_concurrent(32, |cluster| {
        let api = api.clone();
        async move {
            api.create(&PostParams::default(), &cluster).await.unwrap();
        }
    });
    creating.await;
    let api: Api<Placement> = Api::namespaced(client.clone(), "default");
    for number in 0..placements {
        let region = format!("r{}", number % 100);
        let selector = json!({"labelSelector": {"matchLabels": {"region": region}}});
        let placement = read(&json!({
            "metadata": {"name": format!("p{number}")},
            "spec": {"predicates": [{"requiredClusterSelector": selector}]},
        }));
        api.create(&PostParams::default(), &placement)
            .await
            .unwrap();
    }
}

fn read<K: serde::de::DeserializeOwned>(object: &Value) -> K {
    serde_json::from_value(object.clone()).unwrap()
}

/// Moves a cluster from one region to another: how long until both placements have been written.
async fn change(client: &Client, number: usize, placements: usize) -> Duration {
    let decisions: Api<PlacementDecision> = Api::namespaced(client.clone(), "default");
    let version = decisions
        .list_metadata(&kube::api::ListParams::default().limit(1))
        .await
        .unwrap();
    let version = version.metadata.resource_version.unwrap();
    let mut events = decisions
        .watch(&WatchParams::default(), &version)
        .await
        .unwrap()
        .boxed();
    let clusters: Api<ManagedCluster> = Api::all(client.clone());
    let name = format!("c{:05}", number * 100);
    let target = 1 + number % (placements - 1);
    let patch = json!({"metadata": {"labels": {"region": format!("r{target}")}}});
    let started = Instant::now();
    clusters
        .patch(&name, &PatchParams::default(), &Patch::Merge(patch))
        .await
        .unwrap();
    let mut left = 2;
    while left > 0 {
        if let Some(Ok(WatchEvent::Modified(_) | WatchEvent::Added(_))) = events.next().await {
            left -= 1;
        }
    }
    started.elapsed()
}
