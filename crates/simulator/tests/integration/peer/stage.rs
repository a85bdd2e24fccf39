//! Two clusters on which the same things are done: one with a real controller manager, and one that
//! is simulated.

use std::time::Duration;

use bellwether_apiserver::{Clock, HUB};
use bellwether_simulator::Simulator;
use bellwether_testkit::objects::{collection, namespace as namespace_object};
use bellwether_testkit::{Assets, Embedded, JsonClient, RealCluster};
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Client, Config};
use serde_json::{Value, json};

use super::kubelet;
use super::picture::{Picture, differences};

/// How long the two may take to look the same.
const TEST_TIMEOUT: Duration = Duration::from_secs(75);
const PAUSE: Duration = Duration::from_millis(250);

/// The two clusters, and a namespace in each.
pub struct Stage {
    pub real: Client,
    pub ours: Client,
    pub namespace: String,
    _cluster: RealCluster,
    _simulator: Simulator,
    _kubelet: tokio::task::JoinHandle<()>,
}

impl Stage {
    /// Starts both; nothing, and the test counts as skipped, where there is no real one.
    pub async fn start(namespace: &str) -> Option<Self> {
        let assets = match Assets::find() {
            Ok(assets) => assets,
            Err(why) => {
                bellwether_testkit::skip(why);
                return None;
            }
        };
        let mut cluster = match RealCluster::start(&assets).await {
            Ok(cluster) => cluster,
            // Another process may have taken a port that was free a moment ago.
            Err(_) => RealCluster::start(&assets).await.unwrap(),
        };
        cluster.start_controllers(&assets).unwrap();
        let real = client(&cluster).await;
        let clock = Clock::system();
        let embedded = Embedded::start(clock.clone()).await;
        let ours = embedded.hub();
        let simulator = Simulator::start(embedded.server, clock);
        simulator.add(HUB).await.unwrap();
        let kubelet = tokio::spawn(kubelet::run(real.clone()));
        let stage = Self {
            real,
            ours,
            namespace: namespace.to_owned(),
            _cluster: cluster,
            _simulator: simulator,
            _kubelet: kubelet,
        };
        let body = namespace_object(namespace);
        stage.both("POST", "/api/v1/namespaces", &body).await;
        Some(stage)
    }

    /// Sends the same request to both; `{ns}` in its path is the namespace.
    #[track_caller]
    pub fn both<'a>(
        &'a self,
        method: &'a str,
        path: &'a str,
        body: &'a Value,
    ) -> impl Future<Output = [Value; 2]> + 'a {
        let path = path.replace("{ns}", &self.namespace);
        async move {
            let answers = [
                send(&self.real, method, &path, body).await,
                send(&self.ours, method, &path, body).await,
            ];
            let code = |answer: &Value| answer["code"].as_i64().unwrap_or(200);
            assert_eq!(
                code(&answers[0]),
                code(&answers[1]),
                "{method} {path}: {answers:#?}"
            );
            answers
        }
    }

    /// Creates an object on both.
    pub async fn create(&self, object: Value) {
        let mut placed = object.clone();
        if !["PersistentVolume", "StorageClass"].contains(&object["kind"].as_str().unwrap()) {
            placed["metadata"]["namespace"] = json!(self.namespace);
        }
        let path = collection(&placed);
        let answers = self.both("POST", &path, &object).await;
        assert_eq!(answers[0]["code"], Value::Null, "{}", answers[0]);
    }

    /// Changes an object on both.
    pub async fn patch(&self, path: &str, change: Value) {
        self.both("PATCH", path, &change).await;
    }

    /// Evicts the first ready pod of each; the answers have to be the same.
    pub async fn evict(&self, title: &str) {
        let mut answers = Vec::new();
        for client in [&self.real, &self.ours] {
            let path = format!("/api/v1/namespaces/{}/pods", self.namespace);
            let pods = list(client, &path).await;
            let is_there = |pod: &&Value| pod["metadata"]["deletionTimestamp"].is_null();
            let pod = pods.iter().find(is_there).unwrap();
            let name = pod["metadata"]["name"].as_str().unwrap();
            let body =
                json!({"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": name}});
            answers.push(send(client, "POST", &format!("{path}/{name}/eviction"), &body).await);
        }
        assert_eq!(answers[0], answers[1], "{title}");
    }

    /// Deletes all pods of both.
    pub async fn delete_pods(&self) {
        for client in [&self.real, &self.ours] {
            let path = format!("/api/v1/namespaces/{}/pods", self.namespace);
            for pod in list(client, &path).await {
                let name = pod["metadata"]["name"].as_str().unwrap();
                send(client, "DELETE", &format!("{path}/{name}"), &json!({})).await;
            }
        }
    }

    /// Waits until both look the same, and as `wanted` says.
    pub async fn agree(&self, title: &str, wanted: impl Fn(&Picture) -> bool) {
        self.until_same(title, wanted, true).await;
    }

    /// The same without events, which may be about objects that are gone, and whose names nobody
    /// knows any more.
    pub async fn agree_on_objects(&self, title: &str, wanted: impl Fn(&Picture) -> bool) {
        self.until_same(title, wanted, false).await;
    }

    async fn until_same(&self, title: &str, wanted: impl Fn(&Picture) -> bool, events: bool) {
        let start = tokio::time::Instant::now();
        loop {
            let mut real = Picture::of(&self.real, &self.namespace).await;
            let mut ours = Picture::of(&self.ours, &self.namespace).await;
            if !events {
                real.events.clear();
                ours.events.clear();
            }
            let found = differences(&real, &ours);
            if found.is_empty() && wanted(&real) {
                println!("{title}: {:.1?}", start.elapsed());
                return;
            }
            assert!(
                start.elapsed() < TEST_TIMEOUT,
                "{title}: {}\n{}",
                if found.is_empty() {
                    format!("not there yet: {real:#?}")
                } else {
                    "real and ours differ".to_owned()
                },
                found.join("\n")
            );
            tokio::time::sleep(PAUSE).await;
        }
    }
}

/// A client that shows every answer, also those after which others would try again.
async fn client(cluster: &RealCluster) -> Client {
    let kubeconfig = Kubeconfig::from_yaml(&cluster.kubeconfig_text()).unwrap();
    let options = KubeConfigOptions::default();
    let mut config = Config::from_custom_kubeconfig(kubeconfig, &options)
        .await
        .unwrap();
    config.default_retry = false;
    Client::try_from(config).unwrap()
}

/// Sends a request; the answer, or the status of the refusal.
pub async fn send(client: &Client, method: &str, path: &str, body: &Value) -> Value {
    let client = JsonClient::from(client.clone());
    client.answer(method, path, body).await
}

/// The items of a list.
pub async fn list(client: &Client, path: &str) -> Vec<Value> {
    let mut answer = send(client, "GET", path, &Value::Null).await;
    match answer["items"].take() {
        Value::Array(items) => items,
        _ => Vec::new(),
    }
}
