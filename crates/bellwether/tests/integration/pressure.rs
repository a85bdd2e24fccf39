//! A hub under pressure, as the binary that people run: requests that take much work hold up nobody, and a
//! loss of heartbeats is shown.

#![allow(clippy::unwrap_used, reason = "helpers of tests")]

use crate::fleet;

use std::time::Duration;

use fleet::Fleet;
use http::Request;
use serde_json::{Value, json};

const BELLWETHER: &str = env!("CARGO_BIN_EXE_bellwether");
/// How long an answer may take while others ask for much. Nobody was answered for minutes once.
const SOON: Duration = Duration::from_secs(10);

/// Sends a pod with many containers, again and again. All of them have one name, or each has its own.
async fn send_pods(client: kube::Client, distinct: bool) {
    let name = |number: usize| {
        if distinct {
            format!("c{number}")
        } else {
            "c".to_owned()
        }
    };
    let containers: Value = (0..60_000)
        .map(|number| json!({"name": name(number)}))
        .collect();
    let pod = json!({"metadata": {"name": "p"}, "spec": {"containers": containers}});
    let body = pod.to_string().into_bytes();
    loop {
        let request = Request::post("/api/v1/namespaces/default/pods")
            .header("content-type", "application/json")
            .body(body.clone());
        // It is refused, or interrupted when the hub ends.
        let _ = client.request::<Value>(request.unwrap()).await;
        // A client whose runtime ends fails at once, without waiting for anything: it could not be ended.
        tokio::task::yield_now().await;
    }
}

#[test]
fn requests_that_take_much_work_hold_up_nobody_and_not_the_end() {
    let mut fleet = Fleet::start_with(&["--clusters", "1"]);
    let runtime = tokio::runtime::Runtime::new().unwrap();
    runtime.block_on(async {
        for distinct in [true, false, true, false] {
            tokio::spawn(send_pods(fleet.client().await, distinct));
        }
        let client = fleet.client().await;
        for path in ["/readyz", "/api/v1/namespaces", "/apis"].repeat(5) {
            let request = Request::get(path).body(Vec::new()).unwrap();
            let answer = tokio::time::timeout(SOON, client.request_text(request)).await;
            answer.expect("an answer in time").unwrap();
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        assert!(fleet.ends_when_asked(SOON), "SIGTERM is not heeded");
    });
}

/// A placement whose expression takes ten million steps.
fn expensive(number: usize) -> String {
    let digits = "[0, 1, 2, 3, 4, 5, 6, 7, 8, 9]";
    let loops = ('a'..='g').map(|name| format!("{digits}.all({name}, "));
    let loops = loops.collect::<Vec<_>>().concat();
    let expression = format!("{loops}a + g >= 0{}", ")".repeat(7));
    let predicate =
        json!({"requiredClusterSelector": {"celSelector": {"celExpressions": [expression]}}});
    placement(
        &format!("expensive{number}"),
        &json!({"predicates": [predicate]}),
    )
}

fn placement(name: &str, spec: &Value) -> String {
    let object = json!({
        "apiVersion": "cluster.open-cluster-management.io/v1beta1", "kind": "Placement",
        "metadata": {"name": name, "namespace": "default"}, "spec": spec,
    });
    format!("{object}\n---\n")
}

#[test]
fn a_cheap_placement_does_not_wait_for_expensive_ones() {
    let fleet = Fleet::start_with(&["--clusters", "3"]);
    let write = |name: &str, text: String| {
        let path = fleet.scratch().join(name);
        std::fs::write(&path, text).unwrap();
        path.display().to_string()
    };
    fleet.shell(&format!(
        "{BELLWETHER} apply -f examples/placement/regions.yaml"
    ));
    let many = write("many.yaml", (0..30).map(expensive).collect());
    fleet.shell(&format!("{BELLWETHER} apply -f {many}"));
    let cheap = write("cheap.yaml", placement("cheap", &json!({})));
    fleet.shell(&format!("{BELLWETHER} apply -f {cheap}"));
    let wait = "wait --for=condition=PlacementSatisfied --timeout=10s placement/cheap";
    fleet.shell(&format!("{BELLWETHER} {wait}"));
    let wait = "wait --for=condition=PlacementMisconfigured --timeout=60s placement/expensive0";
    fleet.shell(&format!("{BELLWETHER} {wait}"));
    let shown = fleet.shell(&format!("{BELLWETHER} get placement expensive0 -o yaml"));
    assert!(
        shown.contains("exceeds the CEL evaluation budget"),
        "{shown}"
    );
    assert!(!shown.contains("NoManagedClusterMatched"), "{shown}");
}

#[test]
fn a_loss_of_heartbeats_is_shown_with_the_clusters() {
    let fleet = Fleet::start_with(&["--clusters", "1"]);
    let list = format!("{BELLWETHER} cluster list");
    let (_, _, warnings) = fleet.run(&list);
    assert_eq!(warnings, "");
    let runtime = tokio::runtime::Runtime::new().unwrap();
    runtime.block_on(async {
        let client = fleet.client().await;
        let condition = json!({"type": "HeartbeatLoss", "status": "True", "reason": "TooManyClustersSilent",
            "message": "4 of 5 clusters stopped renewing.", "lastTransitionTime": "2026-01-01T00:00:00Z"});
        let body = json!({"status": {"conditions": [condition]}}).to_string();
        let path = "/apis/cluster.open-cluster-management.io/v1beta2/managedclustersets/global/status";
        let request = Request::patch(path).header("content-type", "application/merge-patch+json");
        let request = request.body(body.into_bytes()).unwrap();
        client.request::<Value>(request).await.unwrap();
        let metrics = Request::get("/metrics").body(Vec::new()).unwrap();
        let metrics = client.request_text(metrics).await.unwrap();
        assert!(metrics.contains("\nbellwether_registration_heartbeat_loss 0\n"), "{metrics}");
    });
    let (_, listed, warnings) = fleet.run(&list);
    assert!(listed.contains("cluster1"), "{listed}");
    assert_eq!(
        warnings,
        "warning: 4 of 5 clusters stopped renewing. (since 2026-01-01T00:00:00Z)\n"
    );
}
