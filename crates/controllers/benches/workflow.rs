//! What workflows cost on an embedded hub, in time and on processors; the hub and its controller are this one process.
//! A report, never a verdict. `BELLWETHER_BENCH_SCALE=0.01` makes everything smaller, for a first look.

#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    missing_docs,
    reason = "a benchmark"
)]

use std::sync::Arc;
use std::time::Duration;

use bellwether_api::workflow::{WorkflowHistory, WorkflowRun};
use bellwether_apiserver::{HUB, Identity};
use bellwether_controllers::workflow::WorkflowOptions;
use bellwether_controllers::{Hub, workflow_run};
use bellwether_runtime::{Cache, Clock, Selection};
use bellwether_testkit::{Counts, Embedded, Usage};
use futures::{StreamExt as _, stream};
use kube::api::{ListParams, PostParams};
use kube::{Api, Client};
use serde_json::{Value, json};
use tokio::time::Instant;

/// How many requests are under way at a time.
const AT_ONCE: usize = 32;
/// How long nothing happens while the cost of rest is measured.
const REST: Duration = Duration::from_secs(20);

struct Bench {
    client: Client,
    runs: Cache<WorkflowRun>,
    /// Requests of the controller so far.
    counts: Arc<Counts>,
    scale: f64,
}

#[tokio::main]
async fn main() {
    let bench = Bench::start().await;
    println!("workload                          time       CPU        requests   memory");
    let note = |number: usize| json!({"name": format!("s{number}"), "type": "print-message-in-status", "properties": {"message": "x"}});
    let steps = |count: usize| (0..count).map(note).collect::<Vec<Value>>();
    let by_step = "StepByStep";
    bench.measure("1 run, 1 step", 1, by_step, &steps(1)).await;
    bench
        .measure("1 run, 10 steps", 1, by_step, &steps(10))
        .await;
    let sequence = steps(100);
    bench
        .measure("1 run, 100 steps in sequence", 1, by_step, &sequence)
        .await;
    bench
        .measure("1 run, 100 steps as a graph", 1, "DAG", &sequence)
        .await;
    let sleep = |number: usize| json!({"name": format!("s{number}"), "type": "suspend", "properties": {"duration": "1s"}});
    let sleeps: Vec<Value> = (0..10).map(sleep).collect();
    bench
        .measure("1 run, 10 waits of 1s as a graph", 1, "DAG", &sleeps)
        .await;
    bench
        .measure("50 runs of 5 steps", 50, by_step, &steps(5))
        .await;
    let thousand = bench.scaled(1000);
    let name = "1,000 runs of 10 steps";
    bench.measure(name, thousand, by_step, &steps(10)).await;
    bench.step_times(name).await;
    let name = "1,000 runs of 10 writes";
    let writes: Vec<Value> = (0..10).map(write).collect();
    bench.measure(name, thousand, by_step, &writes).await;
    bench.step_times(name).await;
    let further = bench.scaled(10_000).saturating_sub(bench.runs.len());
    bench
        .measure("runs of 1 step up to 10,000", further, by_step, &steps(1))
        .await;
    bench.suspend(thousand).await;
    bench.rest().await;
}

/// A step that changes an object of its run.
fn write(number: usize) -> Value {
    let map = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"namespace": "default"},
        "data": {"step": number.to_string()}});
    json!({"name": format!("s{number}"), "type": "apply-object", "properties": {"value": map},
        "inputs": [{"from": "context.name", "parameterKey": "value.metadata.name"}]})
}

/// A name of a workload as part of the names of its runs.
fn prefix(name: &str) -> String {
    let plain = name.replace(|letter: char| !letter.is_ascii_alphanumeric(), "-");
    plain.to_lowercase()
}

fn print(name: &str, took: Duration, cpu: Duration, requests: usize) {
    let memory = Usage::own().resident / 1_048_576;
    println!(
        "{name:34}{:<10} {:<10} {requests:<10} {memory} MiB",
        format!("{took:.2?}"),
        format!("{cpu:.2?}")
    );
}

impl Bench {
    async fn start() -> Self {
        let clock = Clock::system();
        let embedded = Embedded::fleet(clock.clone()).await;
        let client = embedded.hub();
        let counts: Arc<Counts> = Arc::default();
        let controller = Identity::administrator("controller");
        let service = counts.of(embedded.server.service(HUB, controller));
        let hub = Hub::new(Client::new(service, "default"), clock);
        tokio::spawn(workflow_run::run(hub, WorkflowOptions::default()));
        let runs = Cache::start(Api::all(client.clone()), Selection::default(), |_| {});
        runs.ready().await;
        #[expect(
            clippy::disallowed_methods,
            reason = "how much a bench does is set outside"
        )]
        let scale = std::env::var("BELLWETHER_BENCH_SCALE").ok();
        Self {
            client,
            runs,
            counts,
            scale: scale.and_then(|text| text.parse().ok()).unwrap_or(1.0),
        }
    }

    #[allow(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        clippy::cast_precision_loss,
        reason = "a number of runs"
    )]
    fn scaled(&self, count: usize) -> usize {
        ((count as f64 * self.scale) as usize).max(1)
    }

    fn requests(&self) -> usize {
        self.counts.with_events()
    }

    async fn create(&self, name: &str, count: usize, mode: &str, steps: &[Value]) {
        let api: Api<WorkflowRun> = Api::namespaced(self.client.clone(), "default");
        let prefix = prefix(name);
        stream::iter(0..count)
            .for_each_concurrent(AT_ONCE, |number| {
                let run = json!({
                    "apiVersion": "core.oam.dev/v1alpha1",
                    "kind": "WorkflowRun",
                    "metadata": {"name": format!("{prefix}-{number}")},
                    "spec": {"mode": {"steps": mode}, "workflowSpec": {"steps": steps}},
                });
                let api = api.clone();
                async move {
                    let run = serde_json::from_value(run).unwrap();
                    api.create(&PostParams::default(), &run).await.unwrap();
                }
            })
            .await;
    }

    fn count(&self, is_counted: impl Fn(&WorkflowRun) -> bool) -> usize {
        let all = self.runs.list();
        all.iter().filter(|run| is_counted(run)).count()
    }

    fn finished(&self) -> usize {
        self.count(|run| run.status.as_ref().is_some_and(|status| status.finished))
    }

    async fn measure(&self, name: &str, count: usize, mode: &str, steps: &[Value]) {
        let already = self.finished();
        let (before, sent, began) = (Usage::own(), self.requests(), Instant::now());
        self.create(name, count, mode, steps).await;
        while self.finished() < already + count {
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
        let (took, cpu) = (began.elapsed(), Usage::own().cpu_since(before));
        print(name, took, cpu, self.requests() - sent);
    }

    /// How long each step of the runs of a workload took, from the end of the one before it, and the runs themselves.
    async fn step_times(&self, name: &str) {
        let api: Api<WorkflowHistory> = Api::namespaced(self.client.clone(), "default");
        let histories = api.list(&ListParams::default()).await.unwrap();
        let prefix = format!("workflowrun-{}", prefix(name));
        let mut times: Vec<Duration> = Vec::new();
        for history in histories {
            if !history
                .metadata
                .name
                .as_deref()
                .unwrap()
                .starts_with(&prefix)
            {
                continue;
            }
            let mut last = None;
            for entry in &history.entries {
                let time = entry.time.0;
                let is_step = entry.event == "StepChanged";
                if let (true, Some(last)) = (is_step, last) {
                    times.push(time.duration_since(last).unsigned_abs());
                }
                last = Some(time);
            }
        }
        times.sort();
        let at = |share: usize| times.get(times.len() * share / 100).copied();
        println!(
            "  of {} steps: median {:.2?}, p99 {:.2?}",
            times.len(),
            at(50).unwrap_or_default(),
            at(99).unwrap_or_default()
        );
    }

    async fn suspend(&self, count: usize) {
        let step = json!({"name": "hold", "type": "suspend"});
        let (before, sent, began) = (Usage::own(), self.requests(), Instant::now());
        self.create("suspended", count, "StepByStep", &[step]).await;
        let is_suspended =
            |run: &WorkflowRun| run.status.as_ref().is_some_and(|status| status.suspend);
        while self.count(is_suspended) < count {
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
        let (took, cpu) = (began.elapsed(), Usage::own().cpu_since(before));
        print(
            "1,000 runs are suspended",
            took,
            cpu,
            self.requests() - sent,
        );
    }

    /// What it costs that nothing happens.
    async fn rest(&self) {
        // Events may still be written.
        tokio::time::sleep(Duration::from_secs(2)).await;
        let (before, sent, began) = (Usage::own(), self.requests(), Instant::now());
        tokio::time::sleep(REST).await;
        let name = format!("rest, {} runs", self.runs.len());
        let cpu = Usage::own().cpu_since(before);
        print(&name, began.elapsed(), cpu, self.requests() - sent);
    }
}
