//! A fleet that is never left alone: does its memory stay flat?
//!
//! A hundred members, on which workloads are created, changed and deleted for ten minutes. What is
//! kept of the past is limited: the history in bytes, and events, which tell of every pod, to a
//! minute instead of the hour that people would want. So memory grows in the beginning, and not after.

#![allow(clippy::print_stdout, reason = "the report is the purpose")]

#[path = "common/embedded.rs"]
mod embedded;

use std::time::Duration;

use embedded::{Embedded, now};
use http::{Method, Request};
use kube::Client;
use serde_json::{Value, json};

const MEMBERS: usize = 100;
const LASTS: Duration = Duration::from_mins(10);
const LOOKS_EVERY: Duration = Duration::from_secs(30);
/// Rounds a second, each of four requests.
const PAUSE: Duration = Duration::from_millis(50);

fn main() -> anyhow::Result<()> {
    tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()?
        .block_on(run())
}

async fn run() -> anyhow::Result<()> {
    let members = MEMBERS.to_string();
    let fleet = Embedded::start(&["up", "--clusters", &members, "--event-ttl", "1m"]).await?;
    let mut clients = Vec::new();
    for number in 1..=MEMBERS {
        clients.push(fleet.client(&format!("cluster{number}")).await?);
    }
    println!("| after | memory | requests | CPU of the fleet |");
    println!("|---|---|---|---|");
    let (began, first) = (now(), fleet.usage());
    let (mut round, mut looked) = (0_usize, Duration::ZERO);
    let mut ticks = tokio::time::interval(PAUSE);
    while began.elapsed() < LASTS {
        ticks.tick().await;
        churn(&clients, round).await?;
        round += 1;
        if began.elapsed() >= looked + LOOKS_EVERY {
            looked += LOOKS_EVERY;
            let usage = fleet.usage();
            println!(
                "| {} s | {} MB | {} | {:.1} s |",
                looked.as_secs(),
                usage.resident / 1_000_000,
                round * 4,
                usage.cpu_since(first).as_secs_f64()
            );
        }
    }
    Ok(())
}

/// Creates a workload, changes one that is a little older, deletes one that is older still.
async fn churn(clients: &[Client], round: usize) -> anyhow::Result<()> {
    let path = "/apis/apps/v1/namespaces/default/deployments";
    let client = |round: usize| &clients[round % clients.len()];
    let name = |round: usize| format!("{path}/web-{round}");
    send(client(round), Method::POST, path, Some(deployment(round))).await?;
    send(
        client(round),
        Method::GET,
        "/api/v1/namespaces/default/pods",
        None,
    )
    .await?;
    if let Some(older) = round.checked_sub(100) {
        let fewer = json!({"spec": {"replicas": 1}});
        send(client(older), Method::PATCH, &name(older), Some(fewer)).await?;
    }
    if let Some(oldest) = round.checked_sub(200) {
        send(client(oldest), Method::DELETE, &name(oldest), None).await?;
    }
    Ok(())
}

fn deployment(round: usize) -> Value {
    let labels = json!({"app": format!("web-{round}")});
    json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": format!("web-{round}")},
        "spec": {"replicas": 2, "selector": {"matchLabels": labels}, "template": {
            "metadata": {"labels": labels},
            "spec": {"containers": [{"name": "web", "image": "web:1"}]},
        }},
    })
}

async fn send(
    client: &Client,
    method: Method,
    path: &str,
    body: Option<Value>,
) -> anyhow::Result<()> {
    let kind = match method {
        Method::PATCH => "application/merge-patch+json",
        _ => "application/json",
    };
    let body = body.map(|body| body.to_string()).unwrap_or_default();
    let request = Request::builder()
        .method(method)
        .uri(path)
        .header("content-type", kind)
        .body(body.into_bytes())?;
    client.request_text(request).await?;
    Ok(())
}
