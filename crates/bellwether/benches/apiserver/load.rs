//! The load: creates, lists, watches.

use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use futures::future::try_join_all;
use futures::{AsyncBufReadExt as _, StreamExt as _};
use http::{Method, Request};
use kube::Client;
use serde_json::{Value, json};
use tokio::sync::Barrier;

use crate::contender::Contender;
use crate::embedded::now;
use crate::report::median;

/// A kind of objects to be created.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Objects {
    pub(crate) plural: &'static str,
    path: &'static str,
    body: fn(&str) -> Value,
}

/// Config maps with a hundred bytes.
pub(crate) const CONFIG_MAPS: Objects = Objects {
    plural: "configmaps",
    path: "/api/v1/namespaces/default/configmaps",
    body: |name| {
        json!({
            "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "labels": {"load": "yes"}},
            "data": {"key": "x".repeat(100)},
        })
    },
};

/// Custom resources with a schema.
pub(crate) const SHEEP: Objects = Objects {
    plural: "custom resources",
    path: "/apis/bench.example.com/v1/namespaces/default/sheep",
    body: |name| {
        json!({
            "apiVersion": "bench.example.com/v1", "kind": "Sheep", "metadata": {"name": name},
            "spec": {"weight": 70, "colour": "white", "tags": [{"name": "a"}, {"name": "b"}]},
        })
    },
};

/// Defines the kind of the custom resources, and waits until it is served.
pub(crate) async fn define(contender: &Contender) -> anyhow::Result<()> {
    let text = |default: &str| json!({"type": "string", "default": default, "maxLength": 64});
    let schema = json!({"type": "object", "properties": {
        "spec": {"type": "object", "required": ["weight"], "properties": {
            "weight": {"type": "integer", "minimum": 1, "maximum": 500},
            "colour": text("white"),
            "mood": text("calm"),
            "tags": {"type": "array", "maxItems": 16, "x-kubernetes-list-type": "map",
                "x-kubernetes-list-map-keys": ["name"],
                "items": {"type": "object", "required": ["name"], "properties": {"name": {"type": "string"}}}},
        }, "x-kubernetes-validations": [{"rule": "self.weight > 10 || self.colour == 'black'"}]},
        "status": {"type": "object", "x-kubernetes-preserve-unknown-fields": true},
    }});
    let definition = json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "sheep.bench.example.com"},
        "spec": {"group": "bench.example.com", "scope": "Namespaced",
            "names": {"plural": "sheep", "singular": "sheep", "kind": "Sheep"},
            "versions": [{"name": "v1", "served": true, "storage": true,
                "subresources": {"status": {}}, "schema": {"openAPIV3Schema": schema}}]},
    });
    let client = contender.client().await?;
    let path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
    send(&client, Method::POST, path, definition.to_string()).await?;
    for _ in 0..100 {
        if send(&client, Method::GET, SHEEP.path, String::new())
            .await
            .is_ok()
        {
            return Ok(());
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    anyhow::bail!("the definition is not served")
}

/// What creating objects came to.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Creates {
    pub(crate) per_second: f64,
    /// Of the server, for one.
    pub(crate) cpu_milliseconds: f64,
}

/// Creates objects by so many clients, each with a connection of its own.
pub(crate) async fn create(
    contender: &Contender,
    kind: Objects,
    clients: usize,
    count: usize,
    prefix: &str,
) -> anyhow::Result<Creates> {
    let each = count / clients;
    let start = Arc::new(Barrier::new(clients + 1));
    let mut workers = Vec::new();
    for worker in 0..clients {
        let client = contender.client().await?;
        // The connection is there before the clock starts.
        send(&client, Method::GET, "/version", String::new()).await?;
        let (start, prefix) = (Arc::clone(&start), format!("{prefix}{worker}-"));
        workers.push(tokio::spawn(async move {
            start.wait().await;
            for number in 0..each {
                let body = (kind.body)(&format!("{prefix}{number}"));
                send(&client, Method::POST, kind.path, body.to_string()).await?;
            }
            anyhow::Ok(())
        }));
    }
    let before = contender.usage();
    start.wait().await;
    let began = now();
    for worker in try_join_all(workers).await? {
        worker?;
    }
    let time = began.elapsed();
    let spent = contender.usage().cpu_since(before);
    #[expect(clippy::cast_precision_loss, reason = "a few thousand")]
    let total = (each * clients) as f64;
    Ok(Creates {
        per_second: total / time.as_secs_f64(),
        cpu_milliseconds: spent.as_secs_f64() * 1000.0 / total,
    })
}

/// Makes the number of config maps up to at least so many.
pub(crate) async fn fill(contender: &Contender, wanted: usize) -> anyhow::Result<()> {
    let client = contender.client().await?;
    let path = format!("{}?limit=1", CONFIG_MAPS.path);
    let page = send(&client, Method::GET, &path, String::new()).await?;
    let page: Value = serde_json::from_str(&page)?;
    let there = page["metadata"]["remainingItemCount"].as_u64().unwrap_or(0) + 1;
    let missing = wanted.saturating_sub(usize::try_from(there)?);
    // Rounded up so that every client has the same share.
    let count = missing.div_ceil(50) * 50;
    create(contender, CONFIG_MAPS, 50, count, "fill-").await?;
    Ok(())
}

/// How a list is asked for.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Form {
    pub(crate) name: &'static str,
    accept: &'static str,
}

/// Whole objects, what `kubectl get` asks for, and what informers of metadata ask for.
pub(crate) const FORMS: [Form; 3] = [
    Form {
        name: "list",
        accept: "application/json",
    },
    Form {
        name: "table",
        accept: "application/json;as=Table;v=v1;g=meta.k8s.io",
    },
    Form {
        name: "metadata",
        accept: "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io",
    },
];

/// What a list came to.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Listed {
    pub(crate) milliseconds: f64,
    /// Of the server, for one.
    pub(crate) cpu_milliseconds: f64,
}

/// Lists all config maps several times, one after the other.
pub(crate) async fn list(contender: &Contender, form: Form, rounds: u32) -> anyhow::Result<Listed> {
    let client = contender.client().await?;
    let mut times = Vec::new();
    let before = contender.usage();
    for _ in 0..rounds {
        let began = now();
        let request = Request::get(CONFIG_MAPS.path).header("accept", form.accept);
        client.request_text(request.body(Vec::new())?).await?;
        times.push(began.elapsed().as_secs_f64() * 1000.0);
    }
    let spent = contender.usage().cpu_since(before);
    Ok(Listed {
        milliseconds: median(&times),
        cpu_milliseconds: spent.as_secs_f64() * 1000.0 / f64::from(rounds),
    })
}

/// How long it takes from sending a create until each watcher has the event, in milliseconds.
pub(crate) async fn fan_out(
    contender: &Contender,
    watchers: usize,
    events: usize,
) -> anyhow::Result<Vec<f64>> {
    const PAUSE: Duration = Duration::from_millis(10);
    let began = now();
    let ready = Arc::new(Barrier::new(watchers + 1));
    let mut tasks = Vec::new();
    for _ in 0..watchers {
        let client = contender.client().await?;
        tasks.push(tokio::spawn(follow(
            client,
            events,
            began,
            Arc::clone(&ready),
        )));
    }
    ready.wait().await;
    let writer = contender.client().await?;
    let mut ticks = tokio::time::interval(PAUSE);
    for number in 0..events {
        ticks.tick().await;
        let mut body = (CONFIG_MAPS.body)(&format!("fan-{number}"));
        body["metadata"]["labels"] = json!({"fan": "out"});
        body["data"] = json!({"sent": began.elapsed().as_secs_f64().to_string()});
        send(&writer, Method::POST, CONFIG_MAPS.path, body.to_string()).await?;
    }
    let mut latencies = Vec::new();
    for task in tasks {
        latencies.extend(task.await??);
    }
    Ok(latencies)
}

async fn follow(
    client: Client,
    events: usize,
    began: std::time::Instant,
    ready: Arc<Barrier>,
) -> anyhow::Result<Vec<f64>> {
    let path = format!("{}?watch=true&labelSelector=fan%3Dout", CONFIG_MAPS.path);
    let stream = client
        .request_stream(Request::get(path).body(Vec::new())?)
        .await?;
    ready.wait().await;
    let mut lines = stream.lines();
    let mut latencies = Vec::with_capacity(events);
    while latencies.len() < events {
        let line = lines.next().await.context("the watch has ended")??;
        let arrived = began.elapsed().as_secs_f64();
        let event: Value = serde_json::from_str(&line)?;
        let sent = event["object"]["data"]["sent"]
            .as_str()
            .context("not an event of ours")?;
        latencies.push((arrived - sent.parse::<f64>()?) * 1000.0);
    }
    Ok(latencies)
}

async fn send(client: &Client, method: Method, path: &str, body: String) -> anyhow::Result<String> {
    let request = Request::builder()
        .method(method)
        .uri(path)
        .header("content-type", "application/json")
        .body(body.into_bytes())?;
    Ok(client.request_text(request).await?)
}
