//! A hub and members in this process with agents between them, and a clock that leaps.

#![allow(
    dead_code,
    unreachable_pub,
    clippy::unwrap_used,
    clippy::needless_pass_by_value,
    clippy::similar_names,
    reason = "shared by tests, each of which uses what it needs"
)]

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use bellwether_apiserver::{ApiServer, HUB, Identity};
use bellwether_controllers::work_agent::{AgentOptions, WorkAgents};
use bellwether_runtime::Clock;
use bellwether_store::{Options, Store};
use http::Request;
use kube::Client;
use kube::client::Body;
use serde_json::{Value, json};
use tokio::task::JoinHandle;

/// When every test begins.
pub const START: &str = "2026-01-01T00:00:00Z";
/// The address of the hub, as agents know it.
pub const ADDRESS: &str = "https://hub.example:6443";
/// The member of most tests.
pub const MEMBER: &str = "cluster1";

/// Requests to a cluster, counted.
#[derive(Debug, Default)]
pub struct Counts {
    pub reads: AtomicUsize,
    pub writes: AtomicUsize,
    pub watches: AtomicUsize,
    pub events: AtomicUsize,
}

impl Counts {
    pub fn writes(&self) -> usize {
        self.writes.load(Ordering::SeqCst)
    }

    pub fn reads(&self) -> usize {
        self.reads.load(Ordering::SeqCst)
    }

    pub fn all(&self) -> usize {
        self.reads() + self.writes() + self.watches.load(Ordering::SeqCst)
    }
}

/// A client that counts what it sends.
#[derive(Clone)]
struct Counting<S> {
    inner: S,
    counts: Arc<Counts>,
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
        let counter = if uri.contains("watch=true") {
            &self.counts.watches
        } else if uri.contains("/events") {
            &self.counts.events
        } else if request.method() == http::Method::GET {
            &self.counts.reads
        } else {
            &self.counts.writes
        };
        counter.fetch_add(1, Ordering::SeqCst);
        self.inner.call(request)
    }
}

/// A hub, members, and agents.
pub struct Fleet {
    pub server: ApiServer,
    pub clock: Clock,
    pub agents: Option<WorkAgents>,
    task: Option<JoinHandle<()>>,
    pub hub_counts: Arc<Counts>,
    pub member_counts: Arc<Counts>,
    pub options: AgentOptions,
}

impl Fleet {
    /// A hub and one member with an agent. The runtime's time is to be paused.
    pub async fn start() -> Self {
        Self::with(AgentOptions::default(), &[MEMBER]).await
    }

    pub async fn with(options: AgentOptions, members: &[&str]) -> Self {
        let mut fleet = Self::without_agents(options, members).await;
        fleet.start_agents(members).await;
        fleet
    }

    pub async fn without_agents(options: AgentOptions, members: &[&str]) -> Self {
        let clock = Clock::of_runtime(START.parse().unwrap());
        let now = clock.clone();
        let store = Options::new(Arc::new(move || now.now()));
        let server = ApiServer::new(Store::in_memory(store), clock.clone());
        server.add_cluster(HUB).await.unwrap();
        for definition in bellwether_api::definitions() {
            server.ensure(HUB, definition).await.unwrap();
        }
        let fleet = Self {
            server,
            clock,
            agents: None,
            task: None,
            hub_counts: Arc::default(),
            member_counts: Arc::default(),
            options,
        };
        for member in members {
            fleet.server.add_cluster(member).await.unwrap();
            fleet
                .create(
                    HUB,
                    json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": member}}),
                )
                .await;
        }
        fleet
    }

    pub async fn start_agents(&mut self, members: &[&str]) {
        let hub = self.counting(HUB, &self.hub_counts);
        let agents =
            WorkAgents::start(hub, ADDRESS, None, self.clock.clone(), self.options.clone()).await;
        for member in members {
            agents.add_member(member, self.counting(member, &self.member_counts));
        }
        self.task = Some(tokio::spawn(agents.clone().run()));
        self.agents = Some(agents);
    }

    /// Ends the agents at once, whatever they are doing.
    pub fn kill_agents(&mut self) {
        if let Some(task) = self.task.take() {
            task.abort();
        }
        self.agents = None;
    }

    fn counting(&self, cluster: &str, counts: &Arc<Counts>) -> Client {
        let inner = self
            .server
            .service(cluster, Identity::administrator("agent"));
        let counts = Arc::clone(counts);
        Client::new(Counting { inner, counts }, "default")
    }

    pub fn client(&self, cluster: &str) -> Client {
        self.server.client(cluster, Identity::administrator("test"))
    }

    /// Sends an object of any kind; its status follows.
    pub async fn create(&self, cluster: &str, object: Value) -> Value {
        let created = self.try_create(cluster, object.clone()).await;
        created.unwrap_or_else(|error| panic!("{error}: {object}"))
    }

    pub async fn try_create(&self, cluster: &str, object: Value) -> Result<Value, kube::Error> {
        self.send(
            cluster,
            "POST",
            &collection(&object),
            Some(&object),
            "application/json",
        )
        .await
    }

    pub async fn get(&self, cluster: &str, object: &Value) -> Option<Value> {
        self.send(cluster, "GET", &path(object), None, "application/json")
            .await
            .ok()
    }

    pub async fn merge(&self, cluster: &str, object: &Value, patch: Value) -> Value {
        let kind = "application/merge-patch+json";
        self.send(cluster, "PATCH", &path(object), Some(&patch), kind)
            .await
            .unwrap()
    }

    pub async fn merge_status(&self, cluster: &str, object: &Value, status: Value) -> Value {
        let patch = json!({ "status": status });
        let kind = "application/merge-patch+json";
        let path = format!("{}/status", path(object));
        self.send(cluster, "PATCH", &path, Some(&patch), kind)
            .await
            .unwrap()
    }

    pub async fn delete(&self, cluster: &str, object: &Value) {
        self.send(cluster, "DELETE", &path(object), None, "application/json")
            .await
            .unwrap();
    }

    pub async fn list(&self, cluster: &str, path: &str) -> Vec<Value> {
        let list = self
            .send(cluster, "GET", path, None, "application/json")
            .await
            .unwrap();
        list["items"].as_array().cloned().unwrap_or_default()
    }

    pub async fn send(
        &self,
        cluster: &str,
        method: &str,
        path: &str,
        body: Option<&Value>,
        kind: &str,
    ) -> Result<Value, kube::Error> {
        let body = body
            .map(|body| body.to_string().into_bytes())
            .unwrap_or_default();
        let request = Request::builder()
            .method(method)
            .uri(path)
            .header("content-type", kind)
            .body(body)
            .unwrap();
        self.client(cluster).request(request).await
    }

    /// Waits until something is so, and returns what it was looked for in.
    pub async fn until(
        &self,
        cluster: &str,
        object: &Value,
        what: &str,
        holds: impl Fn(Option<&Value>) -> bool,
    ) -> Option<Value> {
        let mut last = None;
        for _ in 0..800 {
            last = self.get(cluster, object).await;
            if holds(last.as_ref()) {
                return last;
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        panic!(
            "in vain until {what}; at last: {}",
            last.map_or_else(String::new, |it| format!("{it:#}"))
        );
    }

    /// Waits until a work has a condition, and returns it.
    pub async fn until_condition(&self, work: &Value, name: &str, status: &str) -> Value {
        let found = self
            .until(HUB, work, &format!("{name} is {status}"), |work| {
                work.is_some_and(|work| condition(&work["status"], name)["status"] == status)
            })
            .await;
        found.unwrap()
    }

    /// Waits until a condition speaks of the present generation.
    pub async fn until_current(&self, work: &Value, name: &str, status: &str) -> Value {
        let found = self
            .until(
                HUB,
                work,
                &format!("{name} is {status} and current"),
                |work| {
                    work.is_some_and(|work| {
                        let found = condition(&work["status"], name);
                        found["status"] == status
                            && found["observedGeneration"] == work["metadata"]["generation"]
                    })
                },
            )
            .await;
        found.unwrap()
    }

    /// Waits until an object is gone.
    pub async fn until_gone(&self, cluster: &str, object: &Value) {
        self.until(cluster, object, "it is gone", |it| it.is_none())
            .await;
    }

    /// Lets time pass.
    pub async fn pass(&self, milliseconds: u64) {
        tokio::time::sleep(Duration::from_millis(milliseconds)).await;
    }
}

impl Drop for Fleet {
    fn drop(&mut self) {
        self.kill_agents();
    }
}

/// The condition of that type; null if there is none.
pub fn condition<'a>(status: &'a Value, name: &str) -> &'a Value {
    let list = status["conditions"].as_array();
    list.into_iter()
        .flatten()
        .find(|it| it["type"] == name)
        .unwrap_or(&Value::Null)
}

/// The condition of a manifest of a work.
pub fn manifest_condition<'a>(work: &'a Value, index: usize, name: &str) -> &'a Value {
    condition(&work["status"]["resourceStatus"]["manifests"][index], name)
}

fn collection(object: &Value) -> String {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let api_version = text(&object["apiVersion"]);
    let root = if api_version.contains('/') {
        "/apis"
    } else {
        "/api"
    };
    let kind = text(&object["kind"]).to_lowercase();
    let plural = if kind.ends_with('y') {
        format!("{}ies", &kind[..kind.len() - 1])
    } else if kind.ends_with('s') {
        format!("{kind}es")
    } else {
        format!("{kind}s")
    };
    match object["metadata"]["namespace"].as_str() {
        Some(namespace) => format!("{root}/{api_version}/namespaces/{namespace}/{plural}"),
        None => format!("{root}/{api_version}/{plural}"),
    }
}

fn path(object: &Value) -> String {
    format!(
        "{}/{}",
        collection(object),
        object["metadata"]["name"].as_str().unwrap()
    )
}

/// A ManifestWork for the member.
pub fn work(name: &str, manifests: Value) -> Value {
    json!({
        "apiVersion": "work.open-cluster-management.io/v1", "kind": "ManifestWork",
        "metadata": {"name": name, "namespace": MEMBER},
        "spec": {"workload": {"manifests": manifests}},
    })
}

/// A ManifestWork with more in its spec.
pub fn work_with(name: &str, manifests: Value, more: Value) -> Value {
    let mut object = work(name, manifests);
    for (key, value) in more.as_object().unwrap() {
        object["spec"][key] = value.clone();
    }
    object
}

pub fn config_map(name: &str, value: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"name": name, "namespace": "default"},
        "data": {"key": value},
    })
}

/// The record of a work on the member.
pub fn record(work: &str) -> Value {
    let name =
        bellwether_work::record::record_name(&bellwether_work::record::hub_hash(ADDRESS), work);
    json!({
        "apiVersion": "work.open-cluster-management.io/v1", "kind": "AppliedManifestWork",
        "metadata": {"name": name},
    })
}

pub fn job(name: &str) -> Value {
    json!({
        "apiVersion": "batch/v1", "kind": "Job",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"template": {"spec": {"restartPolicy": "Never",
            "containers": [{"name": "main", "image": "busybox"}]}}},
    })
}

pub fn deployment(name: &str, replicas: i64) -> Value {
    json!({
        "apiVersion": "apps/v1", "kind": "Deployment",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"replicas": replicas, "selector": {"matchLabels": {"app": name}},
            "template": {"metadata": {"labels": {"app": name}},
                "spec": {"containers": [{"name": "main", "image": "nginx"}]}}},
    })
}
