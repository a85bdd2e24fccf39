//! What a hub costs as a process of its own: `bellwether hub` beside `bellwether apiserver --in-memory`, with applications
//! of a webservice and a scaler. A report, never a verdict.
//!
//! `BELLWETHER_APPLICATIONS=200,3000` chooses how many there are in each run, `BELLWETHER_PROGRAM` another program than the
//! one that was built.

#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    clippy::disallowed_methods,
    missing_docs,
    reason = "a benchmark"
)]

use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use bellwether_api::oam::Application;
use bellwether_runtime::{Cache, ObjectKey, Selection};
use bellwether_testkit::Usage;
use futures::{StreamExt as _, stream};
use k8s_openapi::api::core::v1::Node;
use kube::api::{ListParams, Patch, PatchParams, PostParams};
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Api, Client, Config};
use serde_json::json;
use tokio::time::{Instant, sleep};

/// How many requests of the bench are under way at a time.
const AT_ONCE: usize = 4;
/// How long a hub is watched that has nothing to do.
const QUIET: Duration = Duration::from_secs(10);
/// How often the bench asks whether it may go on.
const POLL: Duration = Duration::from_millis(50);
/// After which time the bench gives up.
const LONGEST_WAIT: Duration = Duration::from_hours(1);

#[tokio::main]
async fn main() {
    let chosen = std::env::var("BELLWETHER_APPLICATIONS").unwrap_or_else(|_| "200".to_owned());
    println!("applications  what              time        CPU of the hub  RSS of the hub");
    for count in chosen.split(',').filter_map(|count| count.parse().ok()) {
        Bed::start().await.measure(count).await;
    }
}

/// A process that ends with the bench.
struct Process(Child);

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn start(arguments: &[&str]) -> Process {
    let program = std::env::var("BELLWETHER_PROGRAM");
    let program = program.unwrap_or_else(|_| env!("CARGO_BIN_EXE_bellwether").to_owned());
    let mut command = Command::new(program);
    command.args(arguments).stdin(Stdio::null());
    command.stdout(Stdio::null()).stderr(Stdio::null());
    Process(command.spawn().unwrap())
}

struct Bed {
    hub: Process,
    _server: Process,
    folder: PathBuf,
    client: Client,
    began: Instant,
    before: Usage,
}

impl Drop for Bed {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

async fn until<T>(mut attempt: impl AsyncFnMut() -> Option<T>) -> T {
    let end = Instant::now() + LONGEST_WAIT;
    loop {
        if let Some(found) = attempt().await {
            return found;
        }
        assert!(Instant::now() < end, "the bench gives up");
        sleep(POLL).await;
    }
}

impl Bed {
    async fn start() -> Self {
        let folder = std::env::temp_dir().join(format!("bellwether-hub-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let data = folder.display().to_string();
        let server = start(&[
            "apiserver",
            "--in-memory",
            "--data-dir",
            &data,
            "--listen",
            "127.0.0.1:0",
        ]);
        let kubeconfig = folder.join("kubeconfig");
        let client = until(async || {
            let file = Kubeconfig::read_from(&kubeconfig).ok()?;
            let options = KubeConfigOptions::default();
            let config = Config::from_custom_kubeconfig(file, &options).await.ok()?;
            Client::try_from(config).ok()
        })
        .await;
        let nodes: Api<Node> = Api::all(client.clone());
        // The simulated node has room for 512 pods otherwise.
        until(async || {
            let node = nodes.list(&ListParams::default()).await.ok()?.items.pop()?;
            let patch = Patch::Merge(json!({"status": {"allocatable": {"pods": "1000000"}}}));
            let patched = nodes
                .patch_status(&node.metadata.name?, &PatchParams::default(), &patch)
                .await;
            patched.ok()
        })
        .await;
        let hub = start(&["hub", "--kubeconfig", &kubeconfig.display().to_string()]);
        let applications: Api<Application> = Api::default_namespaced(client.clone());
        until(async || applications.list(&ListParams::default()).await.ok()).await;
        sleep(Duration::from_secs(3)).await;
        Self {
            hub,
            _server: server,
            folder,
            client,
            began: Instant::now(),
            before: Usage::default(),
        }
    }

    fn usage(&self) -> Usage {
        Usage::of(self.hub.0.id()).unwrap()
    }

    fn begin(&mut self) {
        (self.began, self.before) = (Instant::now(), self.usage());
    }

    fn print(&self, count: usize, what: &str) {
        let now = self.usage();
        println!(
            "{count:<14}{what:<18}{:<12.2?}{:<16.2?}{} MiB",
            self.began.elapsed(),
            now.cpu_since(self.before),
            now.resident / (1024 * 1024),
        );
    }

    async fn measure(mut self, count: usize) {
        self.print(count, "start");
        let api: Api<Application> = Api::default_namespaced(self.client.clone());
        let applications = Cache::start(api.clone(), Selection::default(), |_| {});
        applications.ready().await;
        self.begin();
        let created = &api;
        stream::iter(0..count)
            .for_each_concurrent(AT_ONCE, |number| async move {
                let app = app(number);
                created.create(&PostParams::default(), &app).await.unwrap();
            })
            .await;
        let mut running = 0;
        until(async || {
            let is_running = |number: usize| {
                let key = ObjectKey::new("default", &format!("app-{number}"));
                let status = applications.get(&key).and_then(|app| app.status.clone());
                status.is_some_and(|status| status.phase == "running")
            };
            while running < count && is_running(running) {
                running += 1;
            }
            (running == count).then_some(())
        })
        .await;
        self.print(count, "create, running");
        sleep(Duration::from_secs(2)).await;
        self.begin();
        sleep(QUIET).await;
        self.print(count, "at rest");
    }
}

fn app(number: usize) -> Application {
    let app = json!({
        "apiVersion": "core.oam.dev/v1beta1",
        "kind": "Application",
        "metadata": {"name": format!("app-{number}"), "namespace": "default"},
        "spec": {"components": [{
            "name": format!("web-{number}"),
            "type": "webservice",
            "properties": {"image": "nginx:1"},
            "traits": [{"type": "scaler", "properties": {"replicas": 1}}],
        }]},
    });
    serde_json::from_value(app).unwrap()
}
