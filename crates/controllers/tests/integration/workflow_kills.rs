//! A hub that ends at any request, while it carries out random workflows: they come to the same end, and every request of
//! their steps takes effect once at a server that counts them.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use bellwether_api::workflow::{WorkflowHistory, WorkflowRun};
use bellwether_apiserver::{HUB, Identity};
use bellwether_controllers::workflow::providers::http::HostPattern;
use bellwether_controllers::workflow::{HttpPolicy, WorkflowOptions};
use bellwether_controllers::{Hub, workflow_run};
use bellwether_runtime::Clock;
use bellwether_testkit::Embedded;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{ListParams, PostParams};
use kube::{Api, Client};
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;

use crate::applications::kills::{Fate, Mortal};

/// How many workflows are carried out, unless `BELLWETHER_WORKFLOW_KILLS` says otherwise.
const RUNS: usize = 60;
/// How many of them are under way at a time.
const AT_ONCE: usize = 30;
/// How long workflows may take that are under way.
const LONGEST: Duration = Duration::from_mins(2);

/// What arrived at the server, by path: the key of every request.
#[derive(Debug, Default)]
struct Ledger {
    arrived: Mutex<BTreeMap<String, Vec<String>>>,
    /// How often requests to a path are not answered before one is.
    failing: Mutex<BTreeMap<String, usize>>,
}

impl Ledger {
    /// Serves requests until it is dropped; returns the address.
    async fn serve(self: &Arc<Self>) -> String {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = format!("http://{}", listener.local_addr().unwrap());
        let ledger = Arc::clone(self);
        tokio::spawn(async move {
            loop {
                let (stream, _) = listener.accept().await.unwrap();
                tokio::spawn(answer(Arc::clone(&ledger), stream));
            }
        });
        address
    }

    /// Notes a request; tells whether it is answered.
    fn note(&self, head: &str) -> bool {
        let path = head.split(' ').nth(1).unwrap_or_default().to_owned();
        let key = head.lines().find_map(|line| {
            let (name, value) = line.split_once(": ")?;
            name.eq_ignore_ascii_case("idempotency-key")
                .then(|| value.to_owned())
        });
        let mut arrived = self.arrived.lock();
        arrived
            .entry(path.clone())
            .or_default()
            .push(key.unwrap_or_default());
        match self.failing.lock().get_mut(&path) {
            Some(left) if *left > 0 => {
                *left -= 1;
                false
            }
            _ => true,
        }
    }
}

async fn answer(ledger: Arc<Ledger>, mut stream: TcpStream) {
    let mut head = Vec::new();
    let mut buffer = [0; 4096];
    while !head.windows(4).any(|end| end == b"\r\n\r\n") {
        match stream.read(&mut buffer).await {
            Ok(read) if read > 0 => head.extend_from_slice(&buffer[..read]),
            _ => return,
        }
    }
    if ledger.note(&String::from_utf8_lossy(&head)) {
        let text = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\n{}";
        // The sender may be gone.
        let _ = stream.write_all(text).await;
    }
}

/// A hub, the server that counts, and what is expected of it.
struct Story {
    embedded: Embedded,
    clock: Clock,
    client: Client,
    fate: Arc<Fate>,
    ledger: Arc<Ledger>,
    address: String,
    hub: Option<JoinHandle<()>>,
}

impl Story {
    async fn start(seed: u64) -> Self {
        let clock = Clock::system();
        let embedded = Embedded::fleet(clock.clone()).await;
        let ledger: Arc<Ledger> = Arc::default();
        let mut story = Self {
            client: embedded.hub(),
            address: ledger.serve().await,
            embedded,
            clock,
            fate: Fate::new(seed),
            ledger,
            hub: None,
        };
        story.restart();
        story
    }

    /// Ends the hub at once, whatever it is doing, and starts it again.
    fn restart(&mut self) {
        if let Some(hub) = self.hub.take() {
            hub.abort();
        }
        let identity = Identity::administrator("controller");
        let inner = self.embedded.server.service(HUB, identity);
        let fate = Arc::clone(&self.fate);
        let client = Client::new(Mortal { inner, fate }, "default");
        let options = WorkflowOptions {
            http: HttpPolicy {
                allowed: vec![HostPattern::Loopback],
            },
            ..WorkflowOptions::default()
        };
        let hub = Hub::new(client, self.clock.clone());
        self.hub = Some(tokio::spawn(workflow_run::run(hub, options)));
    }

    fn below(&self, sides: usize) -> usize {
        usize::try_from(self.fate.roll(sides as u64)).unwrap()
    }

    /// A random workflow; all its steps can succeed.
    fn any_run(&self, name: &str) -> Value {
        let count = 1 + self.below(6);
        let mut steps: Vec<Value> = Vec::new();
        for number in 0..count {
            let step = format!("s{number}");
            let path = format!("/{name}/{step}");
            let (kind, properties) = match self.below(6) {
                0 => ("print-message-in-status", json!({"message": step})),
                1 | 2 => {
                    self.ledger
                        .failing
                        .lock()
                        .insert(path.clone(), self.below(8) / 7);
                    (
                        "request",
                        json!({"url": format!("{}{path}", self.address), "method": "POST", "body": {"n": number}}),
                    )
                }
                3 | 4 => (
                    "apply-object",
                    json!({"value": {"apiVersion": "v1", "kind": "ConfigMap",
                    "metadata": {"name": format!("{name}-{step}"), "namespace": "default"}, "data": {"by": step}}}),
                ),
                _ => ("suspend", json!({"duration": "20ms"})),
            };
            let depends_on: Vec<String> = (0..number)
                .filter(|_| self.below(3) == 0)
                .map(|earlier| format!("s{earlier}"))
                .collect();
            steps.push(json!({"name": step, "type": kind, "properties": properties, "dependsOn": depends_on,
                "outputs": [{"name": format!("o{number}"), "valueFrom": "context.stepName"}]}));
        }
        let mode = ["StepByStep", "DAG"][self.below(2)];
        json!({"apiVersion": "core.oam.dev/v1alpha1", "kind": "WorkflowRun", "metadata": {"name": name},
            "spec": {"mode": {"steps": mode}, "workflowSpec": {"steps": steps}}})
    }

    async fn open(&self) -> usize {
        let runs: Api<WorkflowRun> = Api::namespaced(self.client.clone(), "default");
        let runs = runs.list(&ListParams::default()).await.unwrap();
        let is_open = |run: &&WorkflowRun| !run.status.as_ref().is_some_and(|it| it.finished);
        runs.iter().filter(is_open).count()
    }

    /// Carries workflows out while the hub is ended again and again; returns how often it was.
    async fn carry_out(&mut self, runs: &[Value]) -> usize {
        let api: Api<WorkflowRun> = Api::namespaced(self.client.clone(), "default");
        for run in runs {
            let run = serde_json::from_value(run.clone()).unwrap();
            api.create(&PostParams::default(), &run).await.unwrap();
        }
        let mut kills = 0;
        let until_done = async {
            while self.open().await > 0 {
                self.fate.next_end().await;
                self.restart();
                kills += 1;
            }
        };
        let done = tokio::time::timeout(LONGEST, until_done).await;
        assert!(done.is_ok(), "all workflows come to an end");
        kills
    }

    /// Checks how a workflow ended, and what its steps did.
    async fn check(&self, spec: &Value) {
        let name = spec["metadata"]["name"].as_str().unwrap();
        let runs: Api<WorkflowRun> = Api::namespaced(self.client.clone(), "default");
        let status = runs.get(name).await.unwrap().status.unwrap();
        assert_eq!(status.phase.unwrap().to_string(), "succeeded", "{name}");
        let histories: Api<WorkflowHistory> = Api::namespaced(self.client.clone(), "default");
        let history = histories.get(&format!("workflowrun-{name}")).await.unwrap();
        let named = history.entries.iter();
        let named = named
            .filter(|entry| entry.event == "ActionAmbiguous")
            .count();
        let maps: Api<ConfigMap> = Api::namespaced(self.client.clone(), "default");
        let context = maps.get(&format!("workflow-{name}-context")).await.unwrap();
        let vars = &context.data.unwrap()["vars"];
        let mut repeated = 0;
        for (number, step) in spec["spec"]["workflowSpec"]["steps"]
            .as_array()
            .unwrap()
            .iter()
            .enumerate()
        {
            let ended = history.entries.iter().filter(|entry| {
                entry.event == "StepChanged"
                    && entry.details["step"] == step["name"]
                    && entry.details["phase"] == "succeeded"
            });
            assert_eq!(ended.count(), 1, "{name} {step} ends once");
            assert!(
                vars.contains(&format!("\"o{number}\": {}", step["name"])),
                "{vars}"
            );
            match step["type"].as_str().unwrap() {
                "request" => {
                    let path = format!("/{name}/s{number}");
                    let keys = self.ledger.arrived.lock()[&path].clone();
                    let distinct: BTreeSet<&String> = keys.iter().collect();
                    assert_eq!(distinct.len(), 1, "{path}: an effect has one key: {keys:?}");
                    repeated += keys.len() - 1;
                }
                "apply-object" => {
                    let map = maps.get(&format!("{name}-s{number}")).await.unwrap();
                    assert_eq!(map.data.unwrap()["by"], format!("s{number}"));
                }
                _ => {}
            }
        }
        let failed = history.entries.iter();
        let failed = failed
            .filter(|entry| entry.event == "ActionDone" && entry.details.contains_key("error"))
            .count();
        assert!(
            repeated <= named + failed,
            "{name}: {repeated} requests came again, {named} are named, {failed} failed"
        );
    }
}

#[tokio::test]
async fn a_hub_that_ends_at_any_request_repeats_no_effect() {
    #[expect(
        clippy::disallowed_methods,
        reason = "how long to look for trouble is the caller's choice"
    )]
    let wanted = std::env::var("BELLWETHER_WORKFLOW_KILLS").ok();
    let wanted = wanted.map_or(RUNS, |wanted| wanted.parse().unwrap());
    let mut story = Story::start(18).await;
    let mut kills = 0;
    let runs: Vec<Value> = (0..wanted)
        .map(|number| story.any_run(&format!("r{number}")))
        .collect();
    for wave in runs.chunks(AT_ONCE) {
        kills += story.carry_out(wave).await;
        for run in wave {
            story.check(run).await;
        }
    }
    assert!(kills >= wanted / AT_ONCE, "the hub was ended {kills} times");
}
