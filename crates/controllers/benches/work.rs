//! What works cost, as a report: applied, changed, removed, at rest, and status on its way home.
//!
//! Everything is embedded and in memory; with `KUBEBUILDER_ASSETS` set, the same load also goes to
//! two real API servers. CPU is that of this process, and in the real case of the agent alone.

#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    clippy::disallowed_methods,
    clippy::needless_pass_by_value,
    reason = "a benchmark measures real time, and fails loudly"
)]

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use bellwether_api::work::ManifestWork;
use bellwether_apiserver::{ApiServer, HUB, Identity};
use bellwether_controllers::work_agent::{AgentOptions, WorkAgents};
use bellwether_runtime::Clock;
use bellwether_store::{Options, Store};
use bellwether_testkit::{Assets, RealCluster, Usage};
use futures::{StreamExt as _, stream};
use http::Request;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{DeleteParams, ListParams, Patch, PatchParams, PostParams};
use kube::client::Body;
use kube::{Api, Client};
use serde_json::{Value, json};

/// Requests of agents: to the hub, and to members; watches and events are not counted.
#[derive(Debug, Default)]
struct Requests {
    hub: AtomicUsize,
    member: AtomicUsize,
}

#[derive(Clone)]
struct Counting<S> {
    inner: S,
    requests: Arc<Requests>,
    is_hub: bool,
}

impl<S: tower::Service<Request<Body>>> tower::Service<Request<Body>> for Counting<S> {
    type Response = S::Response;
    type Error = S::Error;
    type Future = S::Future;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, request: Request<Body>) -> S::Future {
        let uri = request.uri().to_string();
        if !uri.contains("watch=true") && !uri.contains("/events") {
            let counter = if self.is_hub {
                &self.requests.hub
            } else {
                &self.requests.member
            };
            counter.fetch_add(1, Ordering::Relaxed);
        }
        self.inner.call(request)
    }
}

/// A hub and members with agents, whatever they run on.
struct Bed {
    hub: Client,
    members: Vec<(String, Client)>,
    requests: Arc<Requests>,
    _agents: WorkAgents,
    task: tokio::task::JoinHandle<()>,
}

impl Drop for Bed {
    fn drop(&mut self) {
        self.task.abort();
    }
}

fn usage() -> Usage {
    Usage::of(std::process::id()).unwrap()
}

async fn embedded(members: usize) -> Bed {
    let clock = Clock::system();
    let now = clock.clone();
    let server = ApiServer::new(
        Store::in_memory(Options::new(Arc::new(move || now.now()))),
        clock.clone(),
    );
    server.add_cluster(HUB).await.unwrap();
    for definition in bellwether_api::definitions() {
        server.ensure(HUB, definition).await.unwrap();
    }
    let requests = Arc::new(Requests::default());
    let client = |cluster: &str, is_hub: bool| {
        let inner = server.service(cluster, Identity::administrator("agent"));
        let requests = Arc::clone(&requests);
        Client::new(
            Counting {
                inner,
                requests,
                is_hub,
            },
            "default",
        )
    };
    let agents = WorkAgents::start(
        client(HUB, true),
        "embedded",
        None,
        clock,
        AgentOptions::default(),
    )
    .await;
    let mut all = Vec::new();
    for number in 1..=members {
        let name = format!("cluster{number}");
        server.add_cluster(&name).await.unwrap();
        server
            .ensure(
                HUB,
                json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}),
            )
            .await
            .unwrap();
        agents.add_member(&name, client(&name, false));
        all.push((
            name.clone(),
            server.client(&name, Identity::administrator("bench")),
        ));
    }
    Bed {
        hub: server.client(HUB, Identity::administrator("bench")),
        members: all,
        requests,
        task: tokio::spawn(agents.clone().run()),
        _agents: agents,
    }
}

async fn real(hub: &RealCluster, member: &RealCluster) -> Bed {
    let clients = (hub.client().await.unwrap(), member.client().await.unwrap());
    let definitions: Api<kube::api::DynamicObject> = Api::all_with(
        clients.0.clone(),
        &kube::discovery::ApiResource::from_gvk(&kube::core::GroupVersionKind::gvk(
            "apiextensions.k8s.io",
            "v1",
            "CustomResourceDefinition",
        )),
    );
    for definition in bellwether_api::definitions() {
        let object = serde_json::from_value(definition).unwrap();
        definitions
            .create(&PostParams::default(), &object)
            .await
            .unwrap();
    }
    tokio::time::sleep(Duration::from_secs(3)).await;
    let namespaces: Api<k8s_openapi::api::core::v1::Namespace> = Api::all(clients.0.clone());
    let namespace = serde_json::from_value(json!({"metadata": {"name": "cluster1"}})).unwrap();
    namespaces
        .create(&PostParams::default(), &namespace)
        .await
        .unwrap();
    let requests = Arc::new(Requests::default());
    let counting = |client: Client, is_hub: bool| {
        let requests = Arc::clone(&requests);
        let inner = tower::service_fn(move |request: Request<Body>| {
            let client = client.clone();
            async move { client.send(request).await }
        });
        Client::new(
            Counting {
                inner,
                requests,
                is_hub,
            },
            "default",
        )
    };
    let agents = WorkAgents::start(
        counting(clients.0.clone(), true),
        "real",
        Some("cluster1"),
        Clock::system(),
        AgentOptions::default(),
    )
    .await;
    agents.add_member("cluster1", counting(clients.1.clone(), false));
    Bed {
        hub: clients.0,
        members: vec![("cluster1".to_owned(), clients.1)],
        requests,
        task: tokio::spawn(agents.clone().run()),
        _agents: agents,
    }
}

fn config_map(name: &str, value: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": "default"},
        "data": {"key": value}})
}

fn work(name: &str, manifests: Value) -> ManifestWork {
    let feedback = json!([{"resourceIdentifier": {"resource": "configmaps", "name": "*", "namespace": "default"},
        "feedbackRules": [{"type": "JSONPaths", "jsonPaths": [{"name": "key", "path": ".data.key"}]}],
        "updateStrategy": {"type": "CreateOnly"}}]);
    let object = json!({"metadata": {"name": name}, "spec": {"workload": {"manifests": manifests}, "manifestConfigs": feedback}});
    serde_json::from_value(object).unwrap()
}

impl Bed {
    async fn create(&self, works: Vec<(String, ManifestWork)>) {
        stream::iter(works)
            .for_each_concurrent(32, |(cluster, work)| async move {
                let api: Api<ManifestWork> = Api::namespaced(self.hub.clone(), &cluster);
                api.create(&PostParams::default(), &work).await.unwrap();
            })
            .await;
    }

    /// Waits until so many works are as they should be; everywhere.
    async fn until(&self, count: usize, is_it: impl Fn(&ManifestWork) -> bool) {
        let api: Api<ManifestWork> = Api::all(self.hub.clone());
        let end = Instant::now() + Duration::from_mins(5);
        loop {
            let works = api.list(&ListParams::default()).await.unwrap();
            if works.items.len() == count && works.items.iter().all(&is_it) {
                return;
            }
            assert!(Instant::now() < end, "no end of {count} works");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    fn counted(&self) -> (usize, usize) {
        let load = |counter: &AtomicUsize| counter.load(Ordering::Relaxed);
        (load(&self.requests.hub), load(&self.requests.member))
    }
}

fn is_applied(work: &ManifestWork) -> bool {
    let conditions = work
        .status
        .as_ref()
        .map_or(&[][..], |status| &status.conditions);
    conditions.iter().any(|it| {
        it.type_ == "Applied"
            && it.status == "True"
            && it.observed_generation == work.metadata.generation
    })
}

/// Prints what something took: time, CPU of this process, requests for each work.
struct Timer {
    name: String,
    start: Instant,
    usage: Usage,
    requests: (usize, usize),
}

impl Timer {
    fn start(name: &str, bed: &Bed) -> Self {
        Self {
            name: name.to_owned(),
            start: Instant::now(),
            usage: usage(),
            requests: bed.counted(),
        }
    }

    #[expect(clippy::cast_precision_loss, reason = "a report")]
    fn stop(self, bed: &Bed, works: usize) {
        let elapsed = self.start.elapsed();
        let cpu = usage().cpu_since(self.usage);
        let (hub, member) = bed.counted();
        println!(
            "{:<44} {:>8.2} s  {:>8.2} CPU s  {:>6.2} hub and {:>6.2} member requests a work",
            self.name,
            elapsed.as_secs_f64(),
            cpu.as_secs_f64(),
            (hub - self.requests.0) as f64 / works as f64,
            (member - self.requests.1) as f64 / works as f64,
        );
    }
}

async fn many_works(bed: &Bed, label: &str) {
    const COUNT: usize = 500;
    let all: Vec<_> = (0..COUNT)
        .map(|number| {
            let name = format!("w{number}");
            let manifests = json!([config_map(&name, "1")]);
            ("cluster1".to_owned(), work(&name, manifests))
        })
        .collect();
    let timer = Timer::start(&format!("{label}: (a) 500 works applied"), bed);
    bed.create(all).await;
    bed.until(COUNT, is_applied).await;
    timer.stop(bed, COUNT);
    at_rest(bed, label).await;
    status_latency(bed, label).await;
    let api: Api<ManifestWork> = Api::namespaced(bed.hub.clone(), "cluster1");
    let timer = Timer::start(&format!("{label}: 500 works changed"), bed);
    stream::iter(0..COUNT)
        .for_each_concurrent(32, |number| {
            let api = api.clone();
            async move {
                let name = format!("w{number}");
                let patch = json!({"spec": {"manifestConfigs": [], "workload": {"manifests": [config_map(&name, "2")]}}});
                api.patch(&name, &PatchParams::default(), &Patch::Merge(patch)).await.unwrap();
            }
        })
        .await;
    bed.until(COUNT, is_applied).await;
    timer.stop(bed, COUNT);
    let timer = Timer::start(&format!("{label}: 500 works removed"), bed);
    stream::iter(0..COUNT)
        .for_each_concurrent(32, |number| {
            let api = api.clone();
            async move {
                api.delete(&format!("w{number}"), &DeleteParams::default())
                    .await
                    .unwrap();
            }
        })
        .await;
    bed.until(0, is_applied).await;
    timer.stop(bed, COUNT);
}

async fn large_work(bed: &Bed, label: &str) {
    let manifests: Vec<Value> = (0..50)
        .map(|number| config_map(&format!("m{number}"), "1"))
        .collect();
    let timer = Timer::start(&format!("{label}: (b) 1 work of 50 manifests applied"), bed);
    bed.create(vec![(
        "cluster1".to_owned(),
        work("large", json!(manifests)),
    )])
    .await;
    bed.until(1, is_applied).await;
    timer.stop(bed, 1);
    let timer = Timer::start(&format!("{label}: (b) removed"), bed);
    let api: Api<ManifestWork> = Api::namespaced(bed.hub.clone(), "cluster1");
    api.delete("large", &DeleteParams::default()).await.unwrap();
    bed.until(0, is_applied).await;
    timer.stop(bed, 1);
}

async fn at_rest(bed: &Bed, label: &str) {
    tokio::time::sleep(Duration::from_secs(2)).await;
    let timer = Timer::start(&format!("{label}: (d) 10 s at rest with 500 works"), bed);
    let before = bed.counted();
    tokio::time::sleep(Duration::from_secs(10)).await;
    let after = bed.counted();
    timer.stop(bed, 1);
    println!(
        "{label}: (d) requests while at rest: {} hub, {} member",
        after.0 - before.0,
        after.1 - before.1
    );
}

/// From the answer to a write on the member until the hub shows it.
async fn status_latency(bed: &Bed, label: &str) {
    let (_, member) = &bed.members[0];
    let maps: Api<ConfigMap> = Api::namespaced(member.clone(), "default");
    let works: Api<ManifestWork> = Api::namespaced(bed.hub.clone(), "cluster1");
    let mut latencies = Vec::new();
    for round in 0..200 {
        let value = format!("v{round}");
        let patch = Patch::Merge(json!({"data": {"key": value}}));
        maps.patch("w7", &PatchParams::default(), &patch)
            .await
            .unwrap();
        let start = Instant::now();
        loop {
            let work = works.get("w7").await.unwrap();
            let text = serde_json::to_string(&work.status).unwrap();
            if text.contains(&format!("\"{value}\"")) {
                break;
            }
            assert!(
                start.elapsed() < Duration::from_secs(10),
                "the status does not come"
            );
            tokio::time::sleep(Duration::from_micros(500)).await;
        }
        latencies.push(start.elapsed());
    }
    latencies.sort();
    println!(
        "{label}: (e) a change on the member shows on the hub after {:.1} ms (median), {:.1} ms (p99)",
        latencies[100].as_secs_f64() * 1000.0,
        latencies[197].as_secs_f64() * 1000.0
    );
}

async fn large_fleet() {
    const MEMBERS: usize = 1000;
    const EACH: usize = 10;
    let started = Instant::now();
    let bed = embedded(MEMBERS).await;
    println!(
        "embedded: (c) 1000 members with agents ready after {:.2} s, {} MB",
        started.elapsed().as_secs_f64(),
        usage().resident / 1_000_000
    );
    let mut all = Vec::new();
    for (cluster, _) in &bed.members {
        for number in 0..EACH {
            let name = format!("w{number}");
            all.push((
                cluster.clone(),
                work(&name, json!([config_map(&name, "1")])),
            ));
        }
    }
    let timer = Timer::start("embedded: (c) 1000 members x 10 works applied", &bed);
    bed.create(all).await;
    bed.until(MEMBERS * EACH, is_applied).await;
    timer.stop(&bed, MEMBERS * EACH);
    println!(
        "embedded: (c) memory with all of them: {} MB",
        usage().resident / 1_000_000
    );
}

fn main() {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    runtime.block_on(async {
        let bed = embedded(1).await;
        many_works(&bed, "embedded").await;
        large_work(&bed, "embedded").await;
        drop(bed);
        large_fleet().await;
        match Assets::find() {
            Ok(assets) => {
                let (hub, member) = (
                    RealCluster::start(&assets).await.unwrap(),
                    RealCluster::start(&assets).await.unwrap(),
                );
                let bed = real(&hub, &member).await;
                many_works(&bed, "real").await;
                large_work(&bed, "real").await;
                println!(
                    "real: memory of this process: {} MB",
                    usage().resident / 1_000_000
                );
            }
            Err(why) => println!("real: left out ({why})"),
        }
    });
}
