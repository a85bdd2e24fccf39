//! What applications cost: an embedded hub, its controllers and simulated workloads in this one process. A report, never a
//! verdict.
//!
//! `BELLWETHER_APPLICATIONS=200,3000` chooses how many there are in each run.

#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    clippy::disallowed_methods,
    missing_docs,
    reason = "a benchmark"
)]

use std::sync::Arc;
use std::time::Duration;

use bellwether_api::oam::Application;
use bellwether_apiserver::{HUB, Identity, ServerOptions};
use bellwether_controllers::workflow::WorkflowOptions;
use bellwether_controllers::{Hub, application, definition};
use bellwether_runtime::{Cache, Clock, ObjectKey, Selection};
use bellwether_simulator::Simulator;
use bellwether_testkit::{Counts, Embedded, Usage};
use futures::{StreamExt as _, stream};
use k8s_openapi::api::core::v1::Node;
use kube::api::{DeleteParams, Patch, PatchParams, PostParams};
use kube::{Api, Client};
use serde_json::{Value, json};
use tokio::time::Instant;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// How many requests of the bench are under way at a time.
const AT_ONCE: usize = 4;
/// How long a hub is watched that has nothing to do.
const QUIET: Duration = Duration::from_secs(10);
/// After which time the bench gives up.
const LONGEST_WAIT: Duration = Duration::from_mins(30);
/// After which time an application is shown that does not get on.
const STUCK: Duration = Duration::from_mins(1);
/// How often the bench asks whether it may go on.
const POLL: Duration = Duration::from_millis(2);
/// How many applications are changed, one after the other.
const CHANGES: usize = 20;

#[tokio::main]
async fn main() {
    let chosen = std::env::var("BELLWETHER_APPLICATIONS").unwrap_or_else(|_| "200".to_owned());
    println!("applications  what            time      CPU       requests  RSS");
    for count in chosen.split(',').filter_map(|count| count.parse().ok()) {
        Bed::start().await.measure(count).await;
    }
}

struct Bed {
    api: Api<Application>,
    applications: Cache<Application>,
    counts: Arc<Counts>,
    tasks: Vec<tokio::task::JoinHandle<()>>,
    _simulator: Simulator,
    began: Instant,
    before: Usage,
    sent: usize,
}

fn app(number: usize, image: &str) -> Application {
    let app = json!({
        "apiVersion": "core.oam.dev/v1beta1",
        "kind": "Application",
        "metadata": {"name": format!("app-{number}"), "namespace": "default"},
        "spec": {"components": [{
            "name": format!("web-{number}"),
            "type": "webservice",
            "properties": {"image": image},
            "traits": [{"type": "scaler", "properties": {"replicas": 1}}],
        }]},
    });
    serde_json::from_value(app).unwrap()
}

/// Lets the simulated node have as many pods as anybody wants.
async fn make_room(client: &Client) {
    let nodes: Api<Node> = Api::all(client.clone());
    let patch = Patch::Merge(json!({"status": {"allocatable": {"pods": "1000000"}}}));
    let name = format!("{HUB}-node");
    let parameters = PatchParams::default();
    nodes
        .patch_status(&name, &parameters, &patch)
        .await
        .unwrap();
}

impl Bed {
    async fn start() -> Self {
        let clock = Clock::system();
        let options = ServerOptions {
            admission: bellwether_controllers::registry::admission(),
            ..ServerOptions::default()
        };
        let embedded = Embedded::with_options(clock.clone(), options).await;
        embedded.define_kinds().await;
        let server = &embedded.server;
        let counts: Arc<Counts> = Arc::default();
        let service = server.service(HUB, Identity::administrator("controller"));
        let hub = Hub::new(Client::new(counts.of(service), "default"), clock.clone());
        let simulator = Simulator::start(server.clone(), clock.clone());
        simulator.add(HUB).await.unwrap();
        let tasks = vec![
            tokio::spawn(definition::run(hub.clone())),
            tokio::spawn(application::run(hub, WorkflowOptions::default())),
        ];
        let client = server.client(HUB, Identity::administrator("bench"));
        make_room(&client).await;
        let api: Api<Application> = Api::namespaced(client, "default");
        let applications = Cache::start(api.clone(), Selection::default(), |_| {});
        applications.ready().await;
        Self {
            api,
            applications,
            counts,
            tasks,
            _simulator: simulator,
            began: Instant::now(),
            before: Usage::own(),
            sent: 0,
        }
    }

    fn begin(&mut self) {
        self.sent = self.counts.with_events();
        self.before = Usage::own();
        self.began = Instant::now();
    }

    fn print(&self, count: usize, what: &str) {
        let now = Usage::own();
        println!(
            "{count:<14}{what:<16}{:<10.2?}{:<10.2?}{:<10}{} MiB",
            self.began.elapsed(),
            now.cpu_since(self.before),
            self.counts.with_events() - self.sent,
            now.resident / (1024 * 1024),
        );
    }

    /// Waits until something holds. It is asked often, so that it must not go through all applications.
    async fn until(&self, mut holds: impl FnMut(&Cache<Application>) -> bool) {
        let end = Instant::now() + LONGEST_WAIT;
        while !holds(&self.applications) {
            assert!(Instant::now() < end, "the bench gives up");
            tokio::time::sleep(POLL).await;
        }
    }

    /// Waits until applications run, one after the other.
    async fn until_running(&self, count: usize) {
        let (mut running, mut since) = (0, Instant::now());
        self.until(|all| {
            while running < count && all.get(&key(running)).is_some_and(|app| is_running(&app)) {
                (running, since) = (running + 1, Instant::now());
            }
            if since.elapsed() > STUCK {
                let app = all.get(&key(running));
                let status = app.and_then(|app| serde_json::to_string(&app.status).ok());
                println!(
                    "app-{running} does not get on: {}",
                    status.unwrap_or_default()
                );
                since = Instant::now();
            }
            running == count
        })
        .await;
    }

    async fn measure(mut self, count: usize) {
        self.print(count, "start");
        self.begin();
        let api = &self.api;
        stream::iter(0..count)
            .for_each_concurrent(AT_ONCE, |number| async move {
                let app = app(number, "nginx:1");
                api.create(&PostParams::default(), &app).await.unwrap();
            })
            .await;
        self.until_running(count).await;
        self.print(count, "create, running");
        tokio::time::sleep(Duration::from_secs(2)).await;
        self.begin();
        tokio::time::sleep(QUIET).await;
        self.print(count, "at rest");
        self.begin();
        for number in 0..CHANGES.min(count) {
            self.change(number * (count / CHANGES).max(1)).await;
        }
        self.print(count, &format!("{} changes", CHANGES.min(count)));
        self.begin();
        let api = &self.api;
        stream::iter(0..count)
            .for_each_concurrent(AT_ONCE, |number| async move {
                let name = format!("app-{number}");
                api.delete(&name, &DeleteParams::default()).await.unwrap();
            })
            .await;
        self.until(Cache::is_empty).await;
        self.print(count, "delete");
        for task in &self.tasks {
            task.abort();
        }
    }

    /// Changes the image of one application, and waits until it runs.
    async fn change(&self, number: usize) {
        let spec = serde_json::to_value(&app(number, "nginx:2").spec).unwrap();
        let patch: Patch<Value> = Patch::Merge(json!({"spec": spec}));
        let name = format!("app-{number}");
        let changed = self
            .api
            .patch(&name, &PatchParams::default(), &patch)
            .await
            .unwrap();
        self.until(|all| {
            all.get(&key(number)).is_some_and(|app| {
                app.metadata.generation == changed.metadata.generation && is_running(&app)
            })
        })
        .await;
    }
}

fn key(number: usize) -> ObjectKey {
    ObjectKey::new("default", &format!("app-{number}"))
}

fn is_running(app: &Application) -> bool {
    app.status.as_ref().is_some_and(|status| {
        status.phase == "running" && status.observed_generation == app.metadata.generation
    })
}
