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
use bellwether_runtime::{Cache, Clock, Selection};
use bellwether_simulator::Simulator;
use bellwether_testkit::{Counts, Embedded, Usage};
use futures::{StreamExt as _, stream};
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
const LONGEST_WAIT: Duration = Duration::from_mins(15);

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

    async fn until(&self, holds: impl Fn(&Cache<Application>) -> bool) {
        let end = Instant::now() + LONGEST_WAIT;
        while !holds(&self.applications) {
            assert!(Instant::now() < end, "the bench gives up");
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }

    async fn measure(mut self, count: usize) {
        self.begin();
        let api = &self.api;
        stream::iter(0..count)
            .for_each_concurrent(AT_ONCE, |number| async move {
                let app = app(number, "nginx:1");
                api.create(&PostParams::default(), &app).await.unwrap();
            })
            .await;
        self.until(|all| {
            let all = all.list();
            all.len() == count && all.iter().all(|app| is_running(app))
        })
        .await;
        self.print(count, "create, running");
        tokio::time::sleep(Duration::from_secs(2)).await;
        self.begin();
        tokio::time::sleep(QUIET).await;
        self.print(count, "at rest");
        self.begin();
        self.change(count / 2).await;
        self.print(count, "one change");
        self.begin();
        let api = &self.api;
        stream::iter(0..count)
            .for_each_concurrent(AT_ONCE, |number| async move {
                let name = format!("app-{number}");
                api.delete(&name, &DeleteParams::default()).await.unwrap();
            })
            .await;
        self.until(|all| all.list().is_empty()).await;
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
            let all = all.list();
            let found = all
                .iter()
                .find(|app| app.metadata.name == changed.metadata.name);
            found.is_some_and(|app| {
                app.metadata.generation == changed.metadata.generation && is_running(app)
            })
        })
        .await;
    }
}

fn is_running(app: &Application) -> bool {
    app.status.as_ref().is_some_and(|status| {
        status.phase == "running" && status.observed_generation == app.metadata.generation
    })
}
