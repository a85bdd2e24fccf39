//! What works cost, as a report: applied, changed, removed, at rest, and status on its way home.
//!
//! Embedded clusters and agents share this process, which is measured as a whole, the load included.
//! With `KUBEBUILDER_ASSETS` set, the same load also goes to two real API servers; the agent is then
//! `bellwether agent`, a process of its own, and measured alone.
//!
//! `cargo bench -p bellwether --bench work -- embedded up fleet real` runs only the parts that are named;
//! `BELLWETHER_BENCH_MEMBERS` says how many members the fleet has. What is to be reached stands in
//! brackets.

#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    clippy::disallowed_methods,
    clippy::cast_precision_loss,
    reason = "a benchmark measures real time, and fails loudly"
)]

mod bed;
#[path = "../common/embedded.rs"]
mod binary;
mod progress;

use std::time::{Duration, Instant};

use bed::{Bed, Counted};
use bellwether_api::work::ManifestWork;
use bellwether_testkit::{Assets, Usage};
use binary::Embedded;
use futures::{StreamExt as _, stream};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{DeleteParams, Patch, PatchParams, PostParams};
use kube::{Api, Client};
use progress::Progress;
use serde_json::{Value, json};

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// How many works the member of (a) has.
const COUNT: usize = 500;
/// How many requests of the load are under way at a time.
const AT_ONCE: usize = 32;

fn config_map(name: &str, value: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": "default"},
        "data": {"key": value}})
}

fn work(name: &str, manifests: &Value) -> ManifestWork {
    let object =
        json!({"metadata": {"name": name}, "spec": {"workload": {"manifests": manifests}}});
    serde_json::from_value(object).unwrap()
}

/// A work whose object others may change, and whose value comes back.
fn work_with_feedback(name: &str) -> ManifestWork {
    let configs = json!([{"resourceIdentifier": {"resource": "configmaps", "name": "*", "namespace": "default"},
        "feedbackRules": [{"type": "JSONPaths", "jsonPaths": [{"name": "key", "path": ".data.key"}]}],
        "updateStrategy": {"type": "CreateOnly"}}]);
    let manifests = json!([config_map(name, "1")]);
    let object = json!({"metadata": {"name": name},
        "spec": {"workload": {"manifests": manifests}, "manifestConfigs": configs}});
    serde_json::from_value(object).unwrap()
}

async fn create(bed: &Bed, works: Vec<(String, ManifestWork)>) {
    create_on(&bed.hub, works).await;
}

async fn create_on(hub: &Client, works: Vec<(String, ManifestWork)>) {
    stream::iter(works)
        .for_each_concurrent(AT_ONCE, |(cluster, work)| async move {
            let api: Api<ManifestWork> = Api::namespaced(hub.clone(), &cluster);
            api.create(&PostParams::default(), &work).await.unwrap();
        })
        .await;
}

/// What something took: time, processors, memory, requests; beside what it may take.
struct Timer {
    name: String,
    start: Instant,
    agent: Usage,
    servers: Usage,
    counted: Counted,
}

impl Timer {
    async fn start(bed: &Bed, name: &str) -> Self {
        Self {
            name: name.to_owned(),
            agent: bed.agent_usage(),
            servers: bed.server_usage(),
            counted: bed.counted().await,
            start: Instant::now(),
        }
    }

    async fn stop(self, bed: &Bed, works: usize, target: &str) {
        let elapsed = self.start.elapsed();
        let cpu = bed.agent_usage().cpu_since(self.agent).as_secs_f64();
        let servers = bed.server_usage().cpu_since(self.servers).as_secs_f64();
        let counted = bed.counted().await;
        let each = |after: u64, before: u64| (after - before) as f64 / works.max(1) as f64;
        let whose = if bed.is_real() { "agent" } else { "all" };
        let beside = if bed.is_real() {
            format!("  {servers:>6.2} CPU s (servers)")
        } else {
            String::new()
        };
        println!(
            "{:<42} {:>8.2} s  {cpu:>6.2} CPU s ({whose}){beside}  {:>5.2} hub, {:>5.2} member requests each   [{target}]",
            format!("{}: {}", bed.name, self.name),
            elapsed.as_secs_f64(),
            each(counted.hub, self.counted.hub),
            each(counted.member, self.counted.member),
        );
    }
}

fn memory(bed: &Bed, when: &str, target: &str) {
    let mib = bed.agent_usage().resident / (1 << 20);
    let whose = if bed.is_real() { "the agent" } else { "all" };
    println!(
        "{}: memory of {whose} {when}: {mib} MiB   [{target}]",
        bed.name
    );
}

/// Many works for one member.
fn works_of_a_member() -> Vec<(String, ManifestWork)> {
    let named = |number: usize| {
        let name = format!("w{number}");
        let manifests = json!([config_map(&name, "1")]);
        ("cluster1".to_owned(), work(&name, &manifests))
    };
    (0..COUNT).map(named).collect()
}

/// (f): `up` as people run it, with data on disk and a client over TLS.
async fn up() {
    let fleet = Embedded::start(&["up", "--clusters", "1"]).await.unwrap();
    let hub = fleet.client("hub").await.unwrap();
    let progress = Progress::follow(hub.clone());
    let mib = |usage: Usage| usage.resident / (1 << 20);
    let before = fleet.usage();
    let start = Instant::now();
    create_on(&hub, works_of_a_member()).await;
    progress.until_applied(COUNT).await;
    let elapsed = start.elapsed().as_secs_f64();
    let after = fleet.usage();
    let cpu = after.cpu_since(before).as_secs_f64();
    println!(
        "up: (f) 500 works applied, on disk and over TLS: {elapsed:.2} s, {cpu:.2} CPU s; memory {} MiB before, {} MiB with them",
        mib(before),
        mib(after)
    );
}

/// (a), (d) and (e): many works on one member.
async fn many_works(bed: &Bed) {
    let all = works_of_a_member();
    let (applied, removed) = if bed.is_real() {
        ("1.4 CPU s, 2 hub, 3 member", "OCM: 33 s")
    } else {
        ("2 s, 2 CPU s", "2 s")
    };
    let timer = Timer::start(bed, "(a) 500 works applied").await;
    create(bed, all).await;
    bed.progress.until_applied(COUNT).await;
    timer.stop(bed, COUNT, applied).await;
    memory(
        bed,
        "with 500 works",
        if bed.is_real() { "21 MiB" } else { "-" },
    );
    at_rest(bed).await;
    let api: Api<ManifestWork> = Api::namespaced(bed.hub.clone(), "cluster1");
    let timer = Timer::start(bed, "(a) 500 works changed").await;
    stream::iter(0..COUNT)
        .for_each_concurrent(AT_ONCE, |number| {
            let api = api.clone();
            async move {
                let name = format!("w{number}");
                let patch = json!({"spec": {"workload": {"manifests": [config_map(&name, "2")]}}});
                let patch = Patch::Merge(patch);
                api.patch(&name, &PatchParams::default(), &patch)
                    .await
                    .unwrap();
            }
        })
        .await;
    bed.progress.until_applied(COUNT).await;
    timer.stop(bed, COUNT, "OCM: 20.7 s").await;
    let timer = Timer::start(bed, "(a) 500 works removed").await;
    stream::iter(0..COUNT)
        .for_each_concurrent(AT_ONCE, |number| {
            let api = api.clone();
            async move {
                let params = DeleteParams::default();
                api.delete(&format!("w{number}"), &params).await.unwrap();
            }
        })
        .await;
    bed.progress.until_gone().await;
    timer.stop(bed, COUNT, removed).await;
}

/// (b): many manifests in one work.
async fn large_work(bed: &Bed) {
    let manifests: Vec<Value> = (0..50)
        .map(|number| config_map(&format!("m{number}"), "1"))
        .collect();
    let timer = Timer::start(bed, "(b) 1 work of 50 manifests applied").await;
    let large = work("large", &json!(manifests));
    create(bed, vec![("cluster1".to_owned(), large)]).await;
    bed.progress.until_applied(1).await;
    timer.stop(bed, 1, "OCM: 0.77 s").await;
    let timer = Timer::start(bed, "(b) removed").await;
    let api: Api<ManifestWork> = Api::namespaced(bed.hub.clone(), "cluster1");
    api.delete("large", &DeleteParams::default()).await.unwrap();
    bed.progress.until_gone().await;
    timer.stop(bed, 1, "OCM: 6.2 s").await;
}

/// (d): what it costs while nothing changes.
async fn at_rest(bed: &Bed) {
    tokio::time::sleep(Duration::from_secs(2)).await;
    let timer = Timer::start(bed, "(d) 10 s at rest with 500 works").await;
    tokio::time::sleep(Duration::from_secs(10)).await;
    timer.stop(bed, 1, "no requests").await;
}

/// (e): from the answer to a write on the member until the hub shows it.
async fn status_latency(bed: &Bed) {
    const ROUNDS: usize = 200;
    let maps: Api<ConfigMap> = Api::namespaced(bed.member("cluster1").await, "default");
    create(
        bed,
        vec![("cluster1".to_owned(), work_with_feedback("told"))],
    )
    .await;
    bed.progress.until_applied(1).await;
    let mut latencies = Vec::new();
    for round in 0..ROUNDS {
        let value = format!("v{round}");
        let patch = Patch::Merge(json!({"data": {"key": value}}));
        maps.patch("told", &PatchParams::default(), &patch)
            .await
            .unwrap();
        let start = Instant::now();
        bed.progress.until_told("told", &value).await;
        latencies.push(start.elapsed());
    }
    latencies.sort();
    let at = |share: usize| latencies[ROUNDS * share / 100].as_secs_f64() * 1000.0;
    println!(
        "{}: (e) a change on the member shows on the hub after {:.1} ms (median), {:.1} ms (p99)   [100 ms at p99]",
        bed.name,
        at(50),
        at(99)
    );
    let api: Api<ManifestWork> = Api::namespaced(bed.hub.clone(), "cluster1");
    api.delete("told", &DeleteParams::default()).await.unwrap();
    bed.progress.until_gone().await;
}

/// (c): many members in one process.
async fn large_fleet(members: usize) {
    const EACH: usize = 10;
    let started = Instant::now();
    let bed = Bed::embedded(members).await;
    println!(
        "embedded: (c) {members} members with agents ready after {:.2} s",
        started.elapsed().as_secs_f64()
    );
    memory(&bed, "before any work", "-");
    let mut all = Vec::new();
    for number in 1..=members {
        for index in 0..EACH {
            let name = format!("w{index}");
            let manifests = json!([config_map(&name, "1")]);
            all.push((format!("cluster{number}"), work(&name, &manifests)));
        }
    }
    let timer = Timer::start(&bed, &format!("(c) {members} members x 10 works applied")).await;
    create(&bed, all).await;
    bed.progress.until_applied(members * EACH).await;
    timer.stop(&bed, members * EACH, "-").await;
    memory(&bed, "with all of them", "1.5 GB");
}

async fn on(bed: &Bed) {
    many_works(bed).await;
    large_work(bed).await;
    status_latency(bed).await;
}

/// Which parts are wanted: those that the command line names, or all.
fn is_wanted(part: &str) -> bool {
    let parts = ["embedded", "up", "fleet", "real"];
    let named: Vec<String> = std::env::args()
        .filter(|argument| parts.contains(&argument.as_str()))
        .collect();
    named.is_empty() || named.iter().any(|name| name == part)
}

fn main() {
    let members = std::env::var("BELLWETHER_BENCH_MEMBERS").ok();
    let members = members.and_then(|it| it.parse().ok()).unwrap_or(1000);
    let runtime = tokio::runtime::Runtime::new().unwrap();
    runtime.block_on(async {
        if is_wanted("embedded") {
            on(&Bed::embedded(1).await).await;
        }
        if is_wanted("up") {
            up().await;
        }
        if is_wanted("fleet") {
            large_fleet(members).await;
        }
        match Assets::find() {
            Ok(assets) if is_wanted("real") => on(&Bed::real(&assets).await).await,
            Ok(_) => {}
            Err(why) => println!("real: left out ({why})"),
        }
    });
}
