//! What a rollout of a replica set costs on an embedded hub, in time and on processors, per member; the hub, its
//! controller and agents that answer at once are this one process. A report, never a verdict.
//!
//! Words choose other numbers of members than 100, 1,000 and 10,000.

#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    missing_docs,
    reason = "a benchmark"
)]

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use bellwether_api::meta::is_true;
use bellwether_api::work::{ManifestWork, ManifestWorkReplicaSet, WorkSummary};
use bellwether_controllers::{Hub, replica_set};
use bellwether_runtime::{Cache, Change, Clock, ObjectKey, Selection};
use bellwether_testkit::{Embedded, Usage, place_all};
use futures::{StreamExt as _, stream};
use kube::api::{Patch, PatchParams, PostParams};
use kube::{Api, Client, ResourceExt as _};
use serde_json::{Value, json};
use tokio::sync::mpsc;
use tokio::time::Instant;

/// How many requests are under way at a time.
const AT_ONCE: usize = 32;
/// How many reports of single works are measured.
const REPORTS: u32 = 20;
/// How long something is waited for.
const LONGEST_WAIT: Duration = Duration::from_mins(5);

#[tokio::main]
async fn main() {
    // Cargo adds a flag of its own.
    let chosen: Vec<usize> = std::env::args().filter_map(|it| it.parse().ok()).collect();
    let sizes = match chosen.as_slice() {
        [] => &[100, 1000, 10_000],
        chosen => chosen,
    };
    println!(
        "members   first rollout            change of the template   report of one work: all done   some soak, others wait   the next starts"
    );
    for size in sizes {
        run(*size).await;
    }
}

async fn run(size: usize) {
    let bench = Bench::start(size).await;
    let sets: Api<ManifestWorkReplicaSet> = Api::namespaced(bench.client.clone(), "default");
    let create = async || {
        let set = serde_json::from_value(replica_set_of("1")).unwrap();
        sets.create(&PostParams::default(), &set).await.unwrap();
    };
    let first = bench.measure(size, create).await;
    let tenth = json!({"maxConcurrency": "10%"});
    let second = bench
        .measure(size, async || bench.change("2", tenth).await)
        .await;
    let done = bench.report_failures().await;
    let soaking = json!({"maxConcurrency": "10%", "minSuccessTime": "1h"});
    bench.change("3", soaking).await;
    let tenth = i64::try_from(size / 10).unwrap();
    bench.until_written("3", size / 10).await;
    bench
        .until_summary(|it| it.updated == tenth && it.available == tenth)
        .await;
    let waiting = bench.report_failures().await;
    bench.is_answered.store(false, Ordering::Relaxed);
    bench.change("4", json!({ "maxConcurrency": 10 })).await;
    bench.until_written("4", 10).await;
    bench.until_summary(|it| it.updated == 10).await;
    let starting = bench.report_arrivals().await;
    println!("{size:>7}   {first}   {second}   {done}   {waiting}   {starting}");
}

/// What one of several reports costs.
async fn each(count: u32, reports: impl AsyncFnOnce()) -> String {
    let began = (Instant::now(), Usage::own());
    reports().await;
    let took = began.0.elapsed() / count;
    let cpu = Usage::own().cpu_since(began.1) / count;
    format!("{took:.1?}, {cpu:.1?} CPU")
}

/// A hub with works of agents that report at once.
struct Bench {
    client: Client,
    sets: Cache<ManifestWorkReplicaSet>,
    works: Cache<ManifestWork>,
    /// Agents report as soon as they see a work.
    is_answered: Arc<AtomicBool>,
    /// Runs the controller and the agents.
    _tasks: Vec<tokio::task::JoinHandle<()>>,
}

impl Bench {
    async fn start(size: usize) -> Self {
        let clock = Clock::system();
        let client = Embedded::fleet(clock.clone()).await.hub();
        let names: Vec<String> = (0..size).map(cluster_name).collect();
        place_all(&client, &names).await;
        let hub = Hub::new(client.clone(), clock);
        hub.ready().await;
        let is_answered = Arc::new(AtomicBool::new(true));
        let answers = Arc::clone(&is_answered);
        let (sender, mut written) = mpsc::unbounded_channel::<Arc<ManifestWork>>();
        let works = Cache::start(
            Api::all(client.clone()),
            Selection::default(),
            move |change: Change<'_, ManifestWork>| {
                let is_new = |work: &Arc<ManifestWork>| {
                    change
                        .old
                        .is_none_or(|old| old.metadata.generation != work.metadata.generation)
                };
                let is_answered = answers.load(Ordering::Relaxed);
                if let Some(work) = change.new.filter(|work| is_answered && is_new(work)) {
                    let _ = sender.send(Arc::clone(work));
                }
            },
        );
        let agent = client.clone();
        let agents = tokio::spawn(async move {
            let works = stream::poll_fn(move |context| written.poll_recv(context));
            let reports = works.map(|work| report(&agent, work, "False"));
            reports
                .buffer_unordered(AT_ONCE)
                .for_each(async |()| {})
                .await;
        });
        let sets = Cache::start(Api::all(client.clone()), Selection::default(), |_| {});
        Self {
            _tasks: vec![agents, tokio::spawn(replica_set::run(hub))],
            client,
            sets,
            works,
            is_answered,
        }
    }

    /// Changes the template, and how it is rolled out.
    async fn change(&self, version: &str, progressive: Value) {
        let sets: Api<ManifestWorkReplicaSet> = Api::namespaced(self.client.clone(), "default");
        let mut set = replica_set_of(version);
        set["spec"]["placementRefs"][0]["rolloutStrategy"]["progressive"] = progressive;
        let patch = Patch::Merge(json!({"spec": set["spec"]}));
        let changed = sets.patch("web", &PatchParams::default(), &patch).await;
        let generation = changed.unwrap().metadata.generation.unwrap();
        assert!(generation > 1);
    }

    /// Does something that starts a rollout, and returns what it cost until all clusters are done.
    async fn measure(&self, size: usize, start: impl AsyncFnOnce()) -> String {
        let began = (Instant::now(), Usage::own());
        start().await;
        let is_done = |set: &ManifestWorkReplicaSet| {
            let status = set.status.as_ref();
            status.is_some_and(|it| is_true(&it.conditions, "PlacementRolledOut"))
        };
        self.until(|set| !is_done(set)).await;
        self.until(is_done).await;
        let took = began.0.elapsed();
        let cpu = Usage::own().cpu_since(began.1);
        let each = cpu / u32::try_from(size).unwrap();
        format!("{took:>6.1?}, {each:>6.0?} CPU each")
    }

    /// The work of the cluster of that number, as it is now.
    fn work(&self, name: &str, number: usize) -> Arc<ManifestWork> {
        let key = ObjectKey::new(&cluster_name(number), name);
        self.works.get(&key).unwrap()
    }

    fn work_name(&self) -> String {
        self.works.list()[0].name_any()
    }

    /// The first work fails and recovers; the replica set says so each time.
    async fn report_failures(&self) -> String {
        let work = self.work(&self.work_name(), 0);
        each(2 * REPORTS, async || {
            for _ in 0..REPORTS {
                for (status, degraded) in [("True", 1), ("False", 0)] {
                    report(&self.client, Arc::clone(&work), status).await;
                    self.until_summary(|it| it.degraded == degraded).await;
                }
            }
        })
        .await
    }

    /// One work after the other arrives, and the next one is written.
    async fn report_arrivals(&self) -> String {
        let name = self.work_name();
        each(REPORTS, async || {
            for number in 0..REPORTS {
                let before = self.summary().updated;
                let work = self.work(&name, usize::try_from(number).unwrap());
                report(&self.client, work, "False").await;
                self.until_summary(|it| it.updated == before + 1).await;
            }
        })
        .await
    }

    /// Waits until so many works have this version of the template. The summary cannot tell: it may be that of the
    /// version before, with the same numbers.
    async fn until_written(&self, version: &str, count: usize) {
        let is_written = |work: &Arc<ManifestWork>| {
            let workload = work.spec.workload.as_ref();
            let first = workload.and_then(|workload| workload.manifests.first());
            first.is_some_and(|manifest| manifest["data"]["version"] == version)
        };
        let written = || self.works.list().iter().filter(|it| is_written(it)).count();
        self.until(|_| written() == count).await;
    }

    fn summary(&self) -> WorkSummary {
        let set = self.sets.get(&ObjectKey::new("default", "web")).unwrap();
        set.status.clone().unwrap_or_default().summary
    }

    #[track_caller]
    fn until_summary(&self, holds: impl Fn(&WorkSummary) -> bool) -> impl Future<Output = ()> {
        self.until(move |set| {
            let status = set.status.as_ref();
            status.is_some_and(|status| holds(&status.summary))
        })
    }

    /// Waits for something that is true of the replica set. What does not come true ends the benchmark, with the
    /// status that it has.
    #[track_caller]
    fn until(&self, holds: impl Fn(&ManifestWorkReplicaSet) -> bool) -> impl Future<Output = ()> {
        let caller = std::panic::Location::caller();
        let began = Instant::now();
        async move {
            let key = ObjectKey::new("default", "web");
            while !self.sets.get(&key).is_some_and(|set| holds(&set)) {
                assert!(
                    began.elapsed() < LONGEST_WAIT,
                    "{caller}: not after {LONGEST_WAIT:?}: {:#?}",
                    self.sets.get(&key).and_then(|set| set.status.clone())
                );
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
        }
    }
}

/// Writes what an agent says of a work that is there; `failing` says whether it fails.
async fn report(client: &Client, work: Arc<ManifestWork>, failing: &str) {
    // Soaks count from here.
    let now = Clock::system().now().to_string();
    let condition = |name: &str, status: &str| {
        json!({"type": name, "status": status, "reason": "Reported", "message": "",
            "observedGeneration": work.metadata.generation, "lastTransitionTime": now})
    };
    let status = json!({"conditions": [
        condition("Applied", "True"), condition("Available", "True"),
        condition("Progressing", failing), condition("Degraded", failing),
    ]});
    let namespace = work.namespace().unwrap();
    let works: Api<ManifestWork> = Api::namespaced(client.clone(), &namespace);
    let patch = Patch::Merge(json!({ "status": status }));
    let name = work.name_any();
    works
        .patch_status(&name, &PatchParams::default(), &patch)
        .await
        .unwrap();
}

fn cluster_name(number: usize) -> String {
    format!("c{number:05}")
}

/// A replica set of ten objects, a tenth of the fleet at a time.
fn replica_set_of(version: &str) -> Value {
    let manifest = |number: usize| {
        json!({"apiVersion": "v1", "kind": "ConfigMap",
            "metadata": {"name": format!("part-{number}"), "namespace": "default"},
            "data": {"version": version, "text": "x".repeat(300)}})
    };
    let manifests: Vec<Value> = (0..10).map(manifest).collect();
    let strategy = json!({"type": "Progressive", "progressive": {"maxConcurrency": "10%"}});
    json!({"metadata": {"name": "web"},
        "spec": {"placementRefs": [{"name": "all", "rolloutStrategy": strategy}],
            "manifestWorkTemplate": {"workload": {"manifests": manifests}}}})
}
