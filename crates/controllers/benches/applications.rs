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
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use bellwether_api::oam::Application;
use bellwether_apiserver::{ApiServer, ClusterService, HUB, Identity, ServerOptions};
use bellwether_controllers::workflow::WorkflowOptions;
use bellwether_controllers::{Hub, application, definition};
use bellwether_runtime::{Cache, Clock, ObjectKey, Selection};
use bellwether_simulator::Simulator;
use bellwether_store::{Options, Store};
use bellwether_testkit::Usage;
use futures::{StreamExt as _, stream};
use http::Request;
use k8s_openapi::api::core::v1::Node;
use kube::api::{DeleteParams, Patch, PatchParams, PostParams};
use kube::client::Body;
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
const PATIENCE: Duration = Duration::from_mins(30);
/// After which time an application is shown that does not get on.
const STUCK: Duration = Duration::from_secs(60);
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

/// The hub's way to its server, with what it sends.
#[derive(Clone)]
struct Counting {
    inner: ClusterService,
    requests: Arc<AtomicUsize>,
}

impl tower::Service<Request<Body>> for Counting {
    type Response = <ClusterService as tower::Service<Request<Body>>>::Response;
    type Error = <ClusterService as tower::Service<Request<Body>>>::Error;
    type Future = <ClusterService as tower::Service<Request<Body>>>::Future;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        tower::Service::<Request<Body>>::poll_ready(&mut self.inner, context)
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        self.requests.fetch_add(1, Ordering::Relaxed);
        self.inner.call(request)
    }
}

struct Bed {
    api: Api<Application>,
    applications: Cache<Application>,
    requests: Arc<AtomicUsize>,
    tasks: Vec<tokio::task::JoinHandle<()>>,
    _simulator: Simulator,
    began: Instant,
    before: Usage,
    sent: usize,
}

fn usage() -> Usage {
    Usage::of(std::process::id()).unwrap_or_default()
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
        let now = clock.clone();
        let store = Store::in_memory(Options::new(Arc::new(move || now.now())));
        let options = ServerOptions {
            admission: bellwether_controllers::registry::admission(),
            ..ServerOptions::default()
        };
        let server = ApiServer::with_options(store, clock.clone(), options);
        server.add_cluster(HUB).await.unwrap();
        for definition in bellwether_api::definitions() {
            server.ensure(HUB, definition).await.unwrap();
        }
        let requests: Arc<AtomicUsize> = Arc::default();
        let counting = Counting {
            inner: server.service(HUB, Identity::administrator("controller")),
            requests: Arc::clone(&requests),
        };
        let hub = Hub::new(Client::new(counting, "default"), clock.clone());
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
            requests,
            tasks,
            _simulator: simulator,
            began: Instant::now(),
            before: usage(),
            sent: 0,
        }
    }

    fn begin(&mut self) {
        self.sent = self.requests.load(Ordering::Relaxed);
        self.before = usage();
        self.began = Instant::now();
    }

    fn tell(&self, count: usize, what: &str) {
        let now = usage();
        println!(
            "{count:<14}{what:<16}{:<10.2?}{:<10.2?}{:<10}{} MiB",
            self.began.elapsed(),
            now.cpu_since(self.before),
            self.requests.load(Ordering::Relaxed) - self.sent,
            now.resident / (1024 * 1024),
        );
    }

    /// Waits until something holds. It is asked often, so that it must not go through all applications.
    async fn until(&self, mut holds: impl FnMut(&Cache<Application>) -> bool) {
        let end = Instant::now() + PATIENCE;
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
        self.tell(count, "start");
        self.begin();
        let api = &self.api;
        stream::iter(0..count)
            .for_each_concurrent(AT_ONCE, |number| async move {
                let app = app(number, "nginx:1");
                api.create(&PostParams::default(), &app).await.unwrap();
            })
            .await;
        self.until_running(count).await;
        self.tell(count, "create, running");
        tokio::time::sleep(Duration::from_secs(2)).await;
        self.begin();
        tokio::time::sleep(QUIET).await;
        self.tell(count, "at rest");
        self.begin();
        for number in 0..CHANGES.min(count) {
            self.change(number * (count / CHANGES).max(1)).await;
        }
        self.tell(count, &format!("{} changes", CHANGES.min(count)));
        self.begin();
        let api = &self.api;
        stream::iter(0..count)
            .for_each_concurrent(AT_ONCE, |number| async move {
                let name = format!("app-{number}");
                api.delete(&name, &DeleteParams::default()).await.unwrap();
            })
            .await;
        self.until(Cache::is_empty).await;
        self.tell(count, "delete");
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
