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
use bellwether_testkit::{Embedded, START, leaping_clock};
use jiff::Timestamp;
use kube::api::{Patch, PatchParams, PostParams};
use kube::core::DynamicObject;
use kube::discovery::ApiResource;
use kube::{Api, Client};
use serde_json::{Value, json};

/// How long a test waits for something, on the clock of the test.
const TEST_TIMEOUT: Duration = Duration::from_mins(15);

/// A cluster whose workloads are simulated.
pub struct TestCluster {
    pub client: Client,
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

    fn api(&self, kind: &str) -> Api<DynamicObject> {
        let (group, version, plural) = match kind {
            "Pod" => ("", "v1", "pods"),
            "Node" => ("", "v1", "nodes"),
            "Service" => ("", "v1", "services"),
            "Endpoints" => ("", "v1", "endpoints"),
            "Event" => ("", "v1", "events"),
            "Namespace" => ("", "v1", "namespaces"),
            "ConfigMap" => ("", "v1", "configmaps"),
            "PersistentVolumeClaim" => ("", "v1", "persistentvolumeclaims"),
            "PersistentVolume" => ("", "v1", "persistentvolumes"),
            "Deployment" => ("apps", "v1", "deployments"),
            "ReplicationController" => ("", "v1", "replicationcontrollers"),
            "ReplicaSet" => ("apps", "v1", "replicasets"),
            "StatefulSet" => ("apps", "v1", "statefulsets"),
            "DaemonSet" => ("apps", "v1", "daemonsets"),
            "ControllerRevision" => ("apps", "v1", "controllerrevisions"),
            "Job" => ("batch", "v1", "jobs"),
            "CronJob" => ("batch", "v1", "cronjobs"),
            "EndpointSlice" => ("discovery.k8s.io", "v1", "endpointslices"),
            "HorizontalPodAutoscaler" => ("autoscaling", "v2", "horizontalpodautoscalers"),
            "PodDisruptionBudget" => ("policy", "v1", "poddisruptionbudgets"),
            other => panic!("what is a {other}?"),
        };
        let api_version = if group.is_empty() {
            version.to_owned()
        } else {
            format!("{group}/{version}")
        };
        let resource = ApiResource {
            group: group.to_owned(),
            version: version.to_owned(),
            api_version,
            kind: kind.to_owned(),
            plural: plural.to_owned(),
        };
        if matches!(kind, "Node" | "Namespace" | "PersistentVolume") {
            Api::all_with(self.client.clone(), &resource)
        } else {
            Api::default_namespaced_with(self.client.clone(), &resource)
        }
    }

    /// Creates an object from what differs between objects of its kind.
    pub async fn create(&self, object: Value) {
        let kind = object["kind"].as_str().unwrap().to_owned();
        let object: DynamicObject = serde_json::from_value(object).unwrap();
        self.api(&kind)
            .create(&PostParams::default(), &object)
            .await
            .unwrap();
    }

    /// Changes an object by a merge patch.
    pub async fn patch(&self, kind: &str, name: &str, patch: Value) {
        self.api(kind)
            .patch(name, &PatchParams::default(), &Patch::Merge(patch))
            .await
            .unwrap();
    }

    /// Deletes an object.
    pub async fn delete(&self, kind: &str, name: &str) {
        self.api(kind)
            .delete(name, &kube::api::DeleteParams::default())
            .await
            .unwrap();
    }

    /// Evicts a pod; the status of the answer.
    pub async fn evict(&self, name: &str) -> Value {
        let body =
            json!({"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": name}});
        let request =
            http::Request::post(format!("/api/v1/namespaces/default/pods/{name}/eviction"))
                .header("content-type", "application/json")
                .body(body.to_string().into_bytes());
        match self.client.request_text(request.unwrap()).await {
            Ok(text) => serde_json::from_str(&text).unwrap(),
            Err(kube::Error::Api(status)) => serde_json::to_value(status).unwrap(),
            Err(error) => panic!("{error}"),
        }
    }

    /// An object, or null.
    pub async fn get(&self, kind: &str, name: &str) -> Value {
        let found = self.api(kind).get_opt(name).await.unwrap();
        found.map_or(Value::Null, |object| serde_json::to_value(object).unwrap())
    }

    /// All objects of a kind in the default namespace.
    pub async fn list(&self, kind: &str) -> Vec<Value> {
        let list = self
            .api(kind)
            .list(&kube::api::ListParams::default())
            .await
            .unwrap();
        let items = list.items.into_iter();
        items
            .map(|object| serde_json::to_value(object).unwrap())
            .collect()
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
