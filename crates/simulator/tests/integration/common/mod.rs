//! A simulated cluster in this process, whose time passes as fast as it can. (A module of other
//! tests, not a test.)

#![allow(
    dead_code,
    unreachable_pub,
    reason = "each test file uses its own part"
)]
#![allow(
    clippy::unwrap_used,
    clippy::needless_pass_by_value,
    reason = "a test that cannot go on fails, and objects are written in place"
)]

use std::time::Duration;

use bellwether_apiserver::{ApiServer, Authority, Clock, HUB, ServerOptions};
use bellwether_simulator::Simulator;
use bellwether_testkit::objects::{collection, path};
use bellwether_testkit::{Embedded, JsonClient, START, leaping_clock};
use jiff::Timestamp;
use kube::Client;
use serde_json::{Value, json};

/// How long a test waits for something, on the clock of the test.
const TEST_TIMEOUT: Duration = Duration::from_mins(15);

/// A cluster whose workloads are simulated.
pub struct TestCluster {
    pub client: Client,
    objects: JsonClient,
    pub clock: Clock,
    pub server: ApiServer,
    simulator: Option<Simulator>,
}

impl TestCluster {
    /// A new cluster. The runtime of the test has to be paused.
    pub async fn start() -> Self {
        let clock = leaping_clock();
        let authority = Authority::generate(clock.now()).unwrap();
        let server_options = ServerOptions {
            authority: Some(authority.into()),
            ..ServerOptions::default()
        };
        let embedded = Embedded::with_options(clock.clone(), server_options).await;
        let mut cluster = Self {
            client: embedded.hub(),
            objects: embedded.hub().into(),
            clock,
            server: embedded.server,
            simulator: None,
        };
        cluster.restart().await;
        cluster
    }

    /// Ends the simulator and begins a new one, which knows nothing of what the old one knew.
    pub async fn restart(&mut self) {
        self.simulator = None;
        let simulator = Simulator::start(self.server.clone(), self.clock.clone());
        simulator.add(HUB).await.unwrap();
        self.simulator = Some(simulator);
    }

    /// Ends the simulator.
    pub fn stop(&mut self) {
        self.simulator = None;
    }

    /// An object of a kind, by name; in the default namespace, if its kind is namespaced.
    fn named(kind: &str, name: &str) -> Value {
        let api_version = match kind {
            "Pod"
            | "Node"
            | "Service"
            | "Endpoints"
            | "Event"
            | "Namespace"
            | "ConfigMap"
            | "PersistentVolumeClaim"
            | "PersistentVolume"
            | "ReplicationController" => "v1",
            "Deployment" | "ReplicaSet" | "StatefulSet" | "DaemonSet" | "ControllerRevision" => {
                "apps/v1"
            }
            "Job" | "CronJob" => "batch/v1",
            "EndpointSlice" => "discovery.k8s.io/v1",
            "HorizontalPodAutoscaler" => "autoscaling/v2",
            "PodDisruptionBudget" => "policy/v1",
            other => panic!("what is a {other}?"),
        };
        let is_namespaced = !matches!(kind, "Node" | "Namespace" | "PersistentVolume");
        let namespace = is_namespaced.then_some("default");
        json!({"apiVersion": api_version, "kind": kind,
            "metadata": {"name": name, "namespace": namespace}})
    }

    /// Creates an object, in the default namespace if its kind is namespaced.
    pub async fn create(&self, object: Value) {
        let kind = object["kind"].as_str().unwrap();
        let path = collection(&Self::named(kind, ""));
        self.objects.send("POST", &path, &object).await.unwrap();
    }

    /// Changes an object by a merge patch.
    pub async fn patch(&self, kind: &str, name: &str, patch: Value) {
        self.objects.merge(&Self::named(kind, name), &patch).await;
    }

    /// Deletes an object.
    pub async fn delete(&self, kind: &str, name: &str) {
        let path = path(&Self::named(kind, name));
        let deleted = self.objects.send("DELETE", &path, &Value::Null).await;
        deleted.unwrap();
    }

    /// Evicts a pod; the status of the answer.
    pub async fn evict(&self, name: &str) -> Value {
        let body =
            json!({"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": name}});
        let path = format!("/api/v1/namespaces/default/pods/{name}/eviction");
        self.objects.answer("POST", &path, &body).await
    }

    /// An object, or null.
    pub async fn get(&self, kind: &str, name: &str) -> Value {
        let found = self.objects.get(&Self::named(kind, name)).await;
        found.unwrap_or_default()
    }

    /// All objects of a kind in the default namespace.
    pub async fn list(&self, kind: &str) -> Vec<Value> {
        self.objects.list(&collection(&Self::named(kind, ""))).await
    }

    /// Waits until an object looks as wanted.
    #[track_caller]
    pub fn until<'a>(
        &'a self,
        kind: &'a str,
        name: &'a str,
        wanted: impl Fn(&Value) -> bool + 'a,
    ) -> impl Future<Output = Value> + 'a {
        let place = std::panic::Location::caller();
        async move {
            let start = self.clock.now();
            let mut step = Duration::from_millis(20);
            loop {
                let object = self.get(kind, name).await;
                if wanted(&object) {
                    return object;
                }
                assert!(
                    self.clock.now() < start + TEST_TIMEOUT,
                    "{place}: {kind} {name} did not get there: {object:#}"
                );
                self.pass(step).await;
                if self.clock.now() > start + Duration::from_secs(10) {
                    step = Duration::from_millis(500);
                }
            }
        }
    }

    /// Lets time pass.
    pub async fn pass(&self, duration: Duration) {
        tokio::time::sleep(duration).await;
    }

    /// The time that has passed since the test began.
    pub fn elapsed(&self) -> Duration {
        let start: Timestamp = START.parse().unwrap();
        Duration::try_from(self.clock.now().duration_since(start)).unwrap()
    }

    /// Reasons and messages of the events of an object, in the order in which they happened.
    pub async fn events(&self, kind: &str, name: &str) -> Vec<String> {
        let mut events = self.list("Event").await;
        events.retain(|event| {
            event["involvedObject"]["kind"] == *kind && event["involvedObject"]["name"] == *name
        });
        events.sort_by_key(|event| {
            event["metadata"]["resourceVersion"]
                .as_str()
                .unwrap()
                .parse::<u64>()
                .unwrap()
        });
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        events
            .iter()
            .map(|event| format!("{}: {}", text(&event["reason"]), text(&event["message"])))
            .collect()
    }
}

/// `reason` of a condition with that status; empty if there is none.
pub fn reason<'a>(object: &'a Value, kind: &str, status: &str) -> &'a str {
    let conditions = object["status"]["conditions"]
        .as_array()
        .into_iter()
        .flatten();
    let mut found =
        conditions.filter(|condition| condition["type"] == *kind && condition["status"] == *status);
    found
        .next()
        .and_then(|found| found["reason"].as_str())
        .unwrap_or_default()
}

/// A pod template with one container.
pub fn template(app: &str, annotations: Value) -> Value {
    json!({
        "metadata": {"labels": {"app": app}, "annotations": annotations},
        "spec": {"containers": [{"name": "main", "image": "registry.example/app:1"}]},
    })
}

/// A deployment with so many replicas.
pub fn deployment(name: &str, replicas: u32) -> Value {
    json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name},
        "spec": {
            "replicas": replicas, "selector": {"matchLabels": {"app": name}},
            "template": template(name, json!({})),
        },
    })
}

/// The names of objects, in their order.
pub fn names(objects: &[Value]) -> Vec<&str> {
    objects
        .iter()
        .filter_map(|object| object["metadata"]["name"].as_str())
        .collect()
}
