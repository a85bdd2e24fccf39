//! What steps of WorkflowRuns do to servers outside: what is sent once, what is recorded, how it is encrypted.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use bellwether_api::workflow::{WorkflowHistory, WorkflowRun, WorkflowRunStatus};
use bellwether_controllers::workflow::providers::http::HostPattern;
use bellwether_controllers::workflow::{HttpPolicy, WorkflowOptions};
use bellwether_controllers::{Hub, workflow_run};
use bellwether_runtime::Clock;
use bellwether_testkit::{Embedded, JsonClient};
use kube::{Api, Client};
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;

/// The size of the answers of the server.
const LARGE: usize = 400_000;
/// The longest that a test waits.
const LONGEST: Duration = Duration::from_mins(1);

/// A hub that carries out runs, and a server with large answers that counts requests by path.
struct Story {
    _embedded: Embedded,
    client: Client,
    address: String,
    arrived: Arc<Mutex<BTreeMap<String, usize>>>,
    _hub: JoinHandle<()>,
}

impl Story {
    async fn start() -> Self {
        let clock = Clock::system();
        let embedded = Embedded::fleet(clock.clone()).await;
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = format!("http://{}", listener.local_addr().unwrap());
        let arrived: Arc<Mutex<BTreeMap<String, usize>>> = Arc::default();
        let counted = Arc::clone(&arrived);
        tokio::spawn(async move {
            loop {
                let (stream, _) = listener.accept().await.unwrap();
                tokio::spawn(answer(Arc::clone(&counted), stream));
            }
        });
        let options = WorkflowOptions {
            http: HttpPolicy {
                allowed: vec![HostPattern::Loopback],
            },
            ..WorkflowOptions::default()
        };
        let hub = Hub::new(embedded.hub(), clock);
        Self {
            client: embedded.hub(),
            _embedded: embedded,
            address,
            arrived,
            _hub: tokio::spawn(workflow_run::run(hub, options)),
        }
    }

    async fn create(&self, object: Value) {
        JsonClient::from(self.client.clone()).create(&object).await;
    }

    /// Carries out a run to its end.
    async fn carry_out(&self, name: &str, steps: Value) -> WorkflowRunStatus {
        self.create(
            json!({"apiVersion": "core.oam.dev/v1alpha1", "kind": "WorkflowRun",
            "metadata": {"name": name, "namespace": "default"}, "spec": {"workflowSpec": {"steps": steps}}}),
        )
        .await;
        let runs: Api<WorkflowRun> = Api::namespaced(self.client.clone(), "default");
        let ended = async {
            loop {
                let status = runs.get(name).await.unwrap().status;
                if let Some(status) = status.filter(|status| status.finished) {
                    return status;
                }
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        };
        tokio::time::timeout(LONGEST, ended).await.unwrap()
    }
}

async fn answer(arrived: Arc<Mutex<BTreeMap<String, usize>>>, mut stream: TcpStream) {
    let mut head = Vec::new();
    let mut buffer = [0; 4096];
    while !head.windows(4).any(|end| end == b"\r\n\r\n") {
        match stream.read(&mut buffer).await {
            Ok(read) if read > 0 => head.extend_from_slice(&buffer[..read]),
            _ => return,
        }
    }
    let head = String::from_utf8_lossy(&head);
    let path = head.split(' ').nth(1).unwrap_or_default().to_owned();
    *arrived.lock().entry(path).or_default() += 1;
    let body = json!({"text": "x".repeat(LARGE)}).to_string();
    let length = body.len();
    let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n");
    // The sender may be gone.
    let _ = stream.write_all(head.as_bytes()).await;
    let _ = stream.write_all(body.as_bytes()).await;
}

#[tokio::test]
async fn results_of_finished_steps_are_not_kept() {
    let story = Story::start().await;
    let steps: Vec<Value> = (0..5)
        .map(|number| {
            let url = format!("{}/{number}", story.address);
            json!({"name": format!("s{number}"), "type": "request", "properties": {"url": url, "method": "POST"}})
        })
        .collect();
    let status = story.carry_out("r", json!(steps)).await;
    assert_eq!(status.phase.unwrap().to_string(), "succeeded");
    let arrived = story.arrived.lock().clone();
    assert_eq!(arrived.len(), 5);
    assert!(arrived.values().all(|count| *count == 1), "{arrived:?}");
    let histories: Api<WorkflowHistory> = Api::namespaced(story.client.clone(), "default");
    let history = histories.get("workflowrun-r").await.unwrap();
    let size = serde_json::to_string(&history).unwrap().len();
    assert!(size < LARGE / 10, "{size} bytes");
}

#[tokio::test]
async fn a_step_whose_results_do_not_fit_fails_and_sends_nothing_again() {
    let story = Story::start().await;
    let calls: Vec<String> = (0..5)
        .map(|number| {
            format!(
                r#"call{number}: http.#HTTPDo & {{$params: {{method: "POST", url: "{}/{number}"}}}} @step({number})
"#,
                story.address
            )
        })
        .collect();
    let calls = calls.concat();
    let template = format!(
        r#"import ("vela/http", "vela/builtin")
{calls}
wait: builtin.#ConditionalWait & {{$params: continue: false}} @step(9)
parameter: {{}}"#
    );
    story
        .create(
            json!({"apiVersion": "core.oam.dev/v1beta1", "kind": "WorkflowStepDefinition",
            "metadata": {"name": "many", "namespace": "default"},
            "spec": {"schematic": {"cue": {"template": template}}}}),
        )
        .await;
    let steps = json!([{"name": "a", "type": "many"}, {"name": "b", "type": "print-message-in-status",
        "if": "always", "properties": {"message": "after"}}]);
    let status = story.carry_out("r", steps).await;
    assert_eq!(status.phase.unwrap().to_string(), "failed");
    let step = &status.steps[0].status;
    assert!(step.message.contains("too large"), "{}", step.message);
    assert_eq!(status.steps[1].status.message, "after");
    let arrived = story.arrived.lock().clone();
    assert!(arrived.len() > 1, "{arrived:?}");
    assert!(arrived.values().all(|count| *count == 1), "{arrived:?}");
}
