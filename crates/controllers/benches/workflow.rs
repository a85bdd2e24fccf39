//! What workflows cost on an embedded hub, in time and on processors; the hub and its controller are this one process.
//! A report, never a verdict.

#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    missing_docs,
    reason = "a benchmark"
)]

use std::time::Duration;

use bellwether_api::workflow::WorkflowRun;
use bellwether_controllers::workflow::WorkflowOptions;
use bellwether_controllers::{Hub, workflow_run};
use bellwether_runtime::{Cache, Clock, Selection};
use bellwether_testkit::{Embedded, Usage};
use futures::{StreamExt as _, stream};
use kube::api::PostParams;
use kube::{Api, Client};
use serde_json::{Value, json};
use tokio::time::Instant;

/// How many requests are under way at a time.
const AT_ONCE: usize = 32;

#[tokio::main]
async fn main() {
    let (client, runs) = start().await;
    println!("workload                        time       CPU");
    let note = |number: usize| json!({"name": format!("s{number}"), "type": "print-message-in-status", "properties": {"message": "x"}});
    let steps = |count: usize| (0..count).map(note).collect::<Vec<Value>>();
    measure(&client, &runs, "1 run, 1 step", 1, "StepByStep", &steps(1)).await;
    measure(
        &client,
        &runs,
        "1 run, 100 steps in sequence",
        1,
        "StepByStep",
        &steps(100),
    )
    .await;
    measure(
        &client,
        &runs,
        "1 run, 100 steps as a graph",
        1,
        "DAG",
        &steps(100),
    )
    .await;
    let sleep = |number: usize| json!({"name": format!("s{number}"), "type": "suspend", "properties": {"duration": "1s"}});
    let sleeps: Vec<Value> = (0..10).map(sleep).collect();
    measure(
        &client,
        &runs,
        "1 run, 10 waits of 1s as a graph",
        1,
        "DAG",
        &sleeps,
    )
    .await;
    measure(
        &client,
        &runs,
        "50 runs of 5 steps",
        50,
        "StepByStep",
        &steps(5),
    )
    .await;
    measure(
        &client,
        &runs,
        "1,000 runs of 10 steps",
        1000,
        "StepByStep",
        &steps(10),
    )
    .await;
    let (before, began) = (usage(), Instant::now());
    tokio::time::sleep(Duration::from_secs(5)).await;
    println!(
        "idle, {} runs finished            {:.1?}   {:.1?}",
        runs.len(),
        began.elapsed(),
        usage().cpu_since(before)
    );
}

fn usage() -> Usage {
    Usage::of(std::process::id()).unwrap_or_default()
}

async fn start() -> (Client, Cache<WorkflowRun>) {
    let clock = Clock::system();
    let client = Embedded::fleet(clock.clone()).await.hub();
    let hub = Hub::new(client.clone(), clock);
    tokio::spawn(workflow_run::run(hub, WorkflowOptions::default()));
    let runs = Cache::start(Api::all(client.clone()), Selection::default(), |_| {});
    runs.ready().await;
    (client, runs)
}

async fn measure(
    client: &Client,
    runs: &Cache<WorkflowRun>,
    name: &str,
    count: usize,
    mode: &str,
    steps: &[Value],
) {
    let api: Api<WorkflowRun> = Api::namespaced(client.clone(), "default");
    let already = finished(runs);
    let (before, began) = (usage(), Instant::now());
    let numbers = stream::iter(0..count);
    numbers
        .for_each_concurrent(AT_ONCE, |number| {
            let prefix = name.replace(|letter: char| !letter.is_ascii_alphanumeric(), "-");
            let run = json!({
                "apiVersion": "core.oam.dev/v1alpha1",
                "kind": "WorkflowRun",
                "metadata": {"name": format!("{}-{number}", prefix.to_lowercase())},
                "spec": {"mode": {"steps": mode}, "workflowSpec": {"steps": steps}},
            });
            let api = api.clone();
            async move {
                let run = serde_json::from_value(run).unwrap();
                api.create(&PostParams::default(), &run).await.unwrap();
            }
        })
        .await;
    while finished(runs) < already + count {
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
    let (took, cpu) = (began.elapsed(), usage().cpu_since(before));
    println!("{name:32}{took:<8.1?}   {cpu:.1?}");
}

fn finished(runs: &Cache<WorkflowRun>) -> usize {
    let all = runs.list();
    all.iter()
        .filter(|run| run.status.as_ref().is_some_and(|status| status.finished))
        .count()
}
