//! What placements cost on an embedded hub whose writes are durable, from the request to the decision
//! that readers see, in time and on processors; the hub, its controllers and the client are this one
//! process. A report, never a verdict.
//!
//! The load is the one that the placement controller of Open Cluster Management was measured with:
//! ten kinds of placements, of which two have to move when clusters are relabelled.

#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    missing_docs,
    reason = "a benchmark"
)]

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use bellwether_api::cluster::{ManagedCluster, Placement, PlacementDecision};
use bellwether_apiserver::{ApiServer, ServerOptions};
use bellwether_controllers::{Hub, cluster_set, placement};
use bellwether_runtime::Clock;
use bellwether_store::Store;
use bellwether_testkit::{Embedded, Usage, store_options};
use futures::{StreamExt as _, stream};
use kube::api::{Patch, PatchParams, PostParams};
use kube::{Api, Client, ResourceExt as _};
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::time::Instant;

/// How many label changes are measured.
const CHANGES: usize = 21;
/// Without changes for so long, everything is settled.
const QUIET: Duration = Duration::from_millis(300);
/// How many requests of the load are under way at a time.
const AT_ONCE: usize = 20;
/// Where the relabelled clusters are put and brought back from, so often.
const ROUNDS: usize = 5;

#[tokio::main]
async fn main() {
    println!(
        "The placement controller of Open Cluster Management, 1,000 clusters, 10 placements, on a real API server:"
    );
    println!("  settled 2.0 s (0.9 CPU s), 34 clusters relabelled 0.8 s (0.5 CPU s), 101 MiB");
    println!("  to reach: a tenth; one label change under 5 ms\n");
    // Cargo adds a flag of its own; a word chooses one of the two parts.
    let part = std::env::args().skip(1).find(|it| !it.starts_with('-'));
    let is_chosen = |name: &str| part.as_deref().is_none_or(|part| part == name);
    if is_chosen("load") {
        for (clusters, placements) in [(1000, 10), (10_000, 100)] {
            load(clusters, placements).await;
        }
    }
    if is_chosen("change") {
        println!(
            "\none label change that two placements mind, until both decisions have been written:"
        );
        for (clusters, others) in [(1000, 0), (1000, 100), (1000, 1000), (10_000, 100)] {
            for kept in [Cached::InMemory, Cached::OnDisk] {
                one_change(kept, clusters, others).await;
            }
        }
    }
}

/// Where a hub keeps its objects.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Cached {
    OnDisk,
    InMemory,
}

/// A hub, and everything that its scheduler needs.
struct Bench {
    server: ApiServer,
    client: Client,
    hub: Hub,
    seen: Arc<Mutex<Seen>>,
    _directory: tempfile::TempDir,
}

/// What a reader has seen, and when it last changed.
struct Seen {
    /// The clusters in each decision, with the placement it belongs to.
    decisions: HashMap<String, (String, Vec<String>)>,
    selected: HashMap<String, i32>,
    last: Instant,
    /// When a decision last changed.
    decided: Instant,
    events: usize,
}

impl Bench {
    async fn start(kept: Cached) -> Self {
        let clock = Clock::system();
        let directory = tempfile::tempdir().unwrap();
        let options = store_options(&clock);
        let store = match kept {
            Cached::OnDisk => Store::open(directory.path(), options).unwrap(),
            Cached::InMemory => Store::in_memory(options),
        };
        let embedded = Embedded::on(store, clock.clone(), ServerOptions::default()).await;
        embedded.define_kinds().await;
        let client = embedded.hub();
        let hub = Hub::new(client.clone(), clock);
        hub.ready().await;
        let seen = Arc::new(Mutex::new(Seen {
            decisions: HashMap::new(),
            selected: HashMap::new(),
            last: Instant::now(),
            decided: Instant::now(),
            events: 0,
        }));
        let bench = Self {
            server: embedded.server,
            client,
            hub,
            seen,
            _directory: directory,
        };
        bench.look();
        bench
    }

    fn look(&self) {
        let seen = Arc::clone(&self.seen);
        self.hub
            .cache::<PlacementDecision>()
            .subscribe(move |change| {
                let mut seen = seen.lock();
                seen.events += 1;
                let name = change.key.name.to_string();
                let Some(object) = change.new else {
                    seen.decisions.remove(&name);
                    seen.last = Instant::now();
                    return;
                };
                let label = &object.labels()["cluster.open-cluster-management.io/placement"];
                let decisions = object.status.iter().flat_map(|it| &it.decisions);
                let new = (
                    label.clone(),
                    decisions.map(|it| it.cluster_name.clone()).collect(),
                );
                if seen.decisions.get(&name) != Some(&new) {
                    seen.last = Instant::now();
                    seen.decided = seen.last;
                }
                seen.decisions.insert(name, new);
            });
        let seen = Arc::clone(&self.seen);
        self.hub.cache::<Placement>().subscribe(move |change| {
            let mut seen = seen.lock();
            seen.events += 1;
            let status = change.new.and_then(|it| it.status.as_ref());
            let selected = status.map_or(-1, |it| it.number_of_selected_clusters);
            if seen.selected.insert(change.key.name.to_string(), selected) != Some(selected) {
                seen.last = Instant::now();
            }
        });
    }

    /// Waits until every placement has what it asks for and nothing moves; when the last change was.
    async fn settled(&self, wanted: &HashMap<String, usize>) -> Instant {
        loop {
            tokio::time::sleep(Duration::from_millis(20)).await;
            let seen = self.seen.lock();
            if seen.last.elapsed() < QUIET {
                continue;
            }
            let mut counts: HashMap<&str, usize> = HashMap::new();
            for (placement, clusters) in seen.decisions.values() {
                *counts.entry(placement).or_default() += clusters.len();
            }
            let is_right = |(name, wanted): (&String, &usize)| {
                counts.get(name.as_str()) == Some(wanted)
                    && seen.selected.get(name).copied() == i32::try_from(*wanted).ok()
            };
            if wanted.iter().all(is_right) {
                return seen.last;
            }
        }
    }

    async fn create<K>(&self, api: Api<K>, objects: impl Iterator<Item = Value>)
    where
        K: kube::Resource
            + Clone
            + serde::Serialize
            + serde::de::DeserializeOwned
            + std::fmt::Debug,
    {
        let api = &api;
        stream::iter(objects)
            .for_each_concurrent(AT_ONCE, |object| async move {
                let object: K = serde_json::from_value(object).unwrap();
                api.create(&PostParams::default(), &object).await.unwrap();
            })
            .await;
    }

    async fn create_clusters(&self, count: usize) {
        let clusters: Api<ManagedCluster> = Api::all(self.client.clone());
        self.create(clusters.clone(), (0..count).map(cluster)).await;
        let clusters = &clusters;
        stream::iter(0..count)
            .for_each_concurrent(AT_ONCE, |number| async move {
                let patch = Patch::Merge(cluster_status(number));
                let params = PatchParams::default();
                clusters
                    .patch_status(&format!("mc-{number:05}"), &params, &patch)
                    .await
                    .unwrap();
            })
            .await;
    }

    async fn bind(&self) {
        let sets: Api<bellwether_api::cluster::ManagedClusterSet> = Api::all(self.client.clone());
        let set = json!({"metadata": {"name": "bench"}, "spec": {"clusterSelector":
            {"selectorType": "ExclusiveClusterSetLabel"}}});
        self.create(sets, [set].into_iter()).await;
        let bindings: Api<bellwether_api::cluster::ManagedClusterSetBinding> =
            Api::namespaced(self.client.clone(), "default");
        let binding = json!({"metadata": {"name": "bench"}, "spec": {"clusterSet": "bench"}});
        self.create(bindings, [binding].into_iter()).await;
    }

    async fn relabel(&self, clusters: &[usize], environment: &str) {
        let api: Api<ManagedCluster> = Api::all(self.client.clone());
        let patch = Patch::Merge(json!({"metadata": {"labels": {"env": environment}}}));
        let (api, patch) = (&api, &patch);
        stream::iter(clusters)
            .for_each_concurrent(AT_ONCE, |number| async move {
                let name = format!("mc-{number:05}");
                api.patch(&name, &PatchParams::default(), patch)
                    .await
                    .unwrap();
            })
            .await;
    }

    fn controllers(&self) -> tokio::task::JoinSet<()> {
        let mut controllers = tokio::task::JoinSet::new();
        controllers.spawn(cluster_set::run(self.hub.clone()));
        controllers.spawn(placement::run(self.hub.clone()));
        controllers
    }
}

const ENVIRONMENTS: [&str; 3] = ["dev", "stage", "prod"];
const PLATFORMS: [&str; 3] = ["aws", "gcp", "bare"];

fn cluster(number: usize) -> Value {
    json!({
        "metadata": {"name": format!("mc-{number:05}"), "labels": {
            "cluster.open-cluster-management.io/clusterset": "bench",
            "env": ENVIRONMENTS[number % 3], "region": format!("r{}", number % 10),
        }},
        "spec": {"hubAcceptsClient": true, "leaseDurationSeconds": 60},
    })
}

fn cluster_status(number: usize) -> Value {
    let condition = |kind: &str| {
        json!({"type": kind, "status": "True", "reason": "Bench", "message": "",
            "lastTransitionTime": "2026-01-01T00:00:00Z"})
    };
    json!({"status": {
        "conditions": [condition("HubAcceptedManagedCluster"), condition("ManagedClusterJoined"),
            condition("ManagedClusterConditionAvailable")],
        "version": {"kubernetes": "v1.35.4"},
        "capacity": {"cpu": (8 + number % 56).to_string(), "memory": format!("{}Gi", 32 + number % 97)},
        "allocatable": {"cpu": (4 + number % 53).to_string(), "memory": format!("{}Gi", 16 + number % 89)},
        "clusterClaims": [{"name": "platform", "value": PLATFORMS[number % 3]}],
    }})
}

/// Ten kinds of placement, again and again, and how many clusters each has to choose.
fn asked(number: usize, clusters: usize) -> (Value, usize) {
    let third = |remainder: usize| (0..clusters).filter(|it| it % 3 == remainder).count();
    let tenth = |remainder: usize| (0..clusters).filter(|it| it % 10 == remainder).count();
    let by_label = |key: &str, values: &[&str]| {
        json!({"predicates": [{"requiredClusterSelector": {"labelSelector": {"matchExpressions": [
            {"key": key, "operator": "In", "values": values}]}}}]})
    };
    let weighed = |prioritizer: &str, weight: i32| json!({"scoreCoordinate": {"builtIn": prioritizer}, "weight": weight});
    let (mut spec, wanted) = match number % 10 {
        0 => (json!({}), clusters),
        kind @ 1..=3 => (by_label("env", &[ENVIRONMENTS[kind - 1]]), third(kind - 1)),
        4 => (json!({"numberOfClusters": 10}), 10),
        5 => {
            let memory = [weighed("ResourceAllocatableMemory", 3)];
            let policy = json!({"configurations": memory});
            (
                json!({"numberOfClusters": 50, "prioritizerPolicy": policy}),
                50,
            )
        }
        6 => {
            let canary = json!({"groupName": "canary", "groupClusterSelector":
                {"labelSelector": {"matchLabels": {"region": "r0"}}}});
            let groups = json!({"clustersPerDecisionGroup": 50, "decisionGroups": [canary]});
            (
                json!({"decisionStrategy": {"groupStrategy": groups}}),
                clusters,
            )
        }
        7 => (by_label("region", &["r1", "r2"]), tenth(1) + tenth(2)),
        8 => {
            let claims = json!({"matchExpressions": [
                {"key": "platform", "operator": "In", "values": ["aws"]}]});
            let selector = json!({"claimSelector": claims});
            (
                json!({"predicates": [{"requiredClusterSelector": selector}]}),
                third(0),
            )
        }
        _ => {
            let policy = json!({"mode": "Exact",
                "configurations": [weighed("Steady", 2), weighed("Balance", 1)]});
            (
                json!({"numberOfClusters": 100, "prioritizerPolicy": policy}),
                100,
            )
        }
    };
    spec["clusterSets"] = json!(["bench"]);
    let name = format!("p-{number}");
    (
        json!({"metadata": {"name": name}, "spec": spec}),
        wanted.min(clusters),
    )
}

/// Time, and time on processors, of something.
struct Meter {
    began: Instant,
    usage: Usage,
}

impl Meter {
    fn start() -> Self {
        Self {
            began: Instant::now(),
            usage: Usage::of(std::process::id()).unwrap_or_default(),
        }
    }

    fn stop(&self, last: Instant) -> (Duration, Duration) {
        let usage = Usage::of(std::process::id()).unwrap_or_default();
        (last - self.began, usage.cpu_since(self.usage))
    }
}

fn memory() -> u64 {
    Usage::of(std::process::id()).unwrap_or_default().resident >> 20
}

/// Placements are created and settle; then every tenth cluster of one environment moves to another.
async fn load(clusters: usize, placements: usize) {
    let bench = Bench::start(Cached::OnDisk).await;
    bench.bind().await;
    bench.create_clusters(clusters).await;
    let _controllers = bench.controllers();
    tokio::time::sleep(QUIET).await;
    let before = memory();
    let mut wanted = HashMap::new();
    let mut objects = Vec::new();
    for number in 0..placements {
        let (object, count) = asked(number, clusters);
        wanted.insert(format!("p-{number}"), count);
        objects.push(object);
    }
    let api: Api<Placement> = Api::namespaced(bench.client.clone(), "default");
    let meter = Meter::start();
    bench.create(api, objects.into_iter()).await;
    let last = bench.settled(&wanted).await;
    let (time, cpu) = meter.stop(last);
    println!(
        "{clusters} clusters, {placements} placements: settled {:.3} s, {:.2} CPU s, {} events; {before} → {} MiB",
        time.as_secs_f64(),
        cpu.as_secs_f64(),
        std::mem::take(&mut bench.seen.lock().events),
        memory(),
    );
    let moved: Vec<usize> = (0..clusters).step_by(30).collect();
    let (mut times, mut total) = (Vec::new(), Duration::ZERO);
    for round in 0..ROUNDS {
        let (environment, sign) = if round % 2 == 0 {
            ("stage", 1)
        } else {
            ("dev", -1)
        };
        for (name, wanted) in &mut wanted {
            let kind = name
                .strip_prefix("p-")
                .and_then(|it| it.parse::<usize>().ok());
            let change = match kind.map(|it| it % 10) {
                Some(1) => -sign,
                Some(2) => sign,
                _ => 0,
            };
            *wanted = wanted.saturating_add_signed(change * moved.len().cast_signed());
        }
        let meter = Meter::start();
        bench.relabel(&moved, environment).await;
        let last = bench.settled(&wanted).await;
        let (time, cpu) = meter.stop(last);
        times.push(time);
        total += cpu;
    }
    times.sort();
    println!(
        "  {} clusters relabelled: settled {:.3} s (median of {ROUNDS}), {:.3} CPU s each, {} events each",
        moved.len(),
        times[ROUNDS / 2].as_secs_f64(),
        total.as_secs_f64() / f64::from(u32::try_from(ROUNDS).unwrap()),
        bench.seen.lock().events / ROUNDS,
    );
}

/// One cluster moves from one placement to another, while others ask for something else.
async fn one_change(kept: Cached, clusters: usize, others: usize) {
    let bench = Bench::start(kept).await;
    bench.bind().await;
    bench.create_clusters(clusters).await;
    let by = |name: String, key: &str, value: &str| {
        let selector = json!({"labelSelector": {"matchLabels": {key: value}}});
        json!({"metadata": {"name": name}, "spec": {
            "predicates": [{"requiredClusterSelector": selector}]}})
    };
    let minding = ["here", "there"].map(|place| by(place.to_owned(), "place", place));
    let other = |number: usize| {
        by(
            format!("o-{number}"),
            "region",
            &format!("r{}", number % 10),
        )
    };
    let api: Api<Placement> = Api::namespaced(bench.client.clone(), "default");
    bench
        .create(api, minding.into_iter().chain((0..others).map(other)))
        .await;
    let _controllers = bench.controllers();
    let mut wanted = HashMap::from([("here".to_owned(), 0), ("there".to_owned(), 0)]);
    for number in 0..others {
        let members = (0..clusters).filter(|it| it % 10 == number % 10).count();
        wanted.insert(format!("o-{number}"), members);
    }
    bench.settled(&wanted).await;
    let decisions: Api<PlacementDecision> = Api::namespaced(bench.client.clone(), "default");
    assert!(
        decisions
            .get_opt("here-decision-1")
            .await
            .unwrap()
            .is_some()
    );
    let (mut times, mut requests) = (Vec::new(), Vec::new());
    let meter = Meter::start();
    for number in 0..CHANGES {
        let place = if number % 2 == 0 { "here" } else { "there" };
        let (request, time) = change(&bench, place).await;
        requests.push(request);
        times.push(time);
        // The next one is a change of its own, not part of a burst.
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    let (_, cpu) = meter.stop(Instant::now());
    times.sort();
    requests.sort();
    let millis = |times: &[Duration], at: usize| times[at].as_secs_f64() * 1000.0;
    println!(
        "  {kept:?}, {clusters} clusters, {others} other placements: median {:.2} ms (the request was answered after {:.2} ms); worst {:.2} ms; {:.2} CPU ms each",
        millis(&times, CHANGES / 2),
        millis(&requests, CHANGES / 2),
        millis(&times, CHANGES - 1),
        cpu.as_secs_f64() * 1000.0 / f64::from(u32::try_from(CHANGES).unwrap()),
    );
    drop(bench.server);
}

/// Puts a cluster somewhere; how long the request took, and how long until both decisions show it.
async fn change(bench: &Bench, place: &str) -> (Duration, Duration) {
    let api: Api<ManagedCluster> = Api::all(bench.client.clone());
    let patch = Patch::Merge(json!({"metadata": {"labels": {"place": place}}}));
    let began = Instant::now();
    api.patch("mc-00000", &PatchParams::default(), &patch)
        .await
        .unwrap();
    let request = began.elapsed();
    loop {
        let is_written = {
            let seen = bench.seen.lock();
            let count = |of: &str| {
                let decision = seen.decisions.get(&format!("{of}-decision-1"));
                decision.map_or(0, |it| it.1.len())
            };
            let other = if place == "here" { "there" } else { "here" };
            count(place) == 1 && count(other) == 0
        };
        if is_written {
            return (request, bench.seen.lock().decided - began);
        }
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
}
