//! Two processes for one hub: one acts, and the other takes over when it dies, hangs or ends.

#![allow(clippy::unwrap_used, reason = "helpers of tests")]

use crate::fleet;

use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::process::Command;
use std::sync::{Arc, Mutex};

use fleet::{Background, Fleet};

const BELLWETHER: &str = env!("CARGO_BIN_EXE_bellwether");

/// A hub process for the server of a fleet.
fn hub(fleet: &Fleet, name: &str) -> Background {
    fleet.spawn(&format!(
        "{BELLWETHER} hub --leader-elect-lease-duration 2s --leader-elect-identity {name} --workflow-http-allow loopback"
    ))
}

/// Waits until a process prints a line that begins so.
#[track_caller]
fn wait_for_line(process: &Background, beginning: &str) -> String {
    loop {
        let line = process.line();
        if line.starts_with(beginning) {
            return line;
        }
    }
}

fn signal(process: &Background, signal: &str) {
    let id = process.id().to_string();
    let sent = Command::new("kill").args([signal, &id]).status().unwrap();
    assert!(sent.success());
}

/// Creates a binding in a namespace of its own, and waits until the controllers have bound it.
#[track_caller]
fn a_binding_is_bound(fleet: &Fleet, name: &str) {
    let manifest = format!(
        r#"{{"apiVersion": "v1", "kind": "List", "items": [
            {{"apiVersion": "v1", "kind": "Namespace", "metadata": {{"name": "{name}"}}}},
            {{"apiVersion": "cluster.open-cluster-management.io/v1beta2",
              "kind": "ManagedClusterSetBinding",
              "metadata": {{"name": "global", "namespace": "{name}"}},
              "spec": {{"clusterSet": "global"}}}}]}}"#
    );
    let path = fleet.directory().join(format!("{name}.json"));
    std::fs::write(&path, manifest).unwrap();
    fleet.shell(&format!("{BELLWETHER} apply -f {}", path.display()));
    fleet.shell(&format!(
        "{BELLWETHER} wait --for=condition=Bound --timeout=30s managedclustersetbinding/global -n {name}"
    ));
}

/// What a server answers to a GET.
pub(crate) fn get(address: &str, path: &str) -> String {
    let mut stream = TcpStream::connect(address).unwrap();
    let request = format!("GET {path} HTTP/1.1\r\nhost: hub\r\nconnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}

#[test]
fn one_of_two_hubs_acts_and_the_other_takes_over() {
    let fleet = Fleet::only_server();
    let first = hub(&fleet, "first");
    wait_for_line(&first, "the hub is ready");
    let second = hub(&fleet, "second");
    let line = wait_for_line(&second, "standing by");
    assert!(line.starts_with("standing by: first_"), "{line}");
    a_binding_is_bound(&fleet, "led-by-first");

    // The leader hangs: the other takes over, and the first stands back when it goes on.
    signal(&first, "-STOP");
    wait_for_line(&second, "the hub is ready");
    a_binding_is_bound(&fleet, "led-by-second");
    signal(&first, "-CONT");
    wait_for_line(&first, "no longer leading");
    let line = wait_for_line(&first, "standing by");
    assert!(line.starts_with("standing by: second_"), "{line}");

    // The leader is killed.
    signal(&second, "-KILL");
    wait_for_line(&first, "the hub is ready");
    a_binding_is_bound(&fleet, "led-by-first-again");

    // The leader ends in order: the next one need not wait.
    let third = hub(&fleet, "third");
    wait_for_line(&third, "standing by");
    signal(&first, "-TERM");
    wait_for_line(&third, "the hub is ready");
    a_binding_is_bound(&fleet, "led-by-third");
}

#[test]
fn a_hub_says_how_it_is() {
    let fleet = Fleet::only_server();
    let hub = fleet.spawn(&format!(
        "{BELLWETHER} hub --metrics-listen 127.0.0.1:0 --log-format json"
    ));
    let line = wait_for_line(&hub, "metrics are at http://");
    let address = line.trim_start_matches("metrics are at http://");
    let address = address.trim_end_matches("/metrics");
    wait_for_line(&hub, "the hub is ready");
    a_binding_is_bound(&fleet, "counted");
    assert!(get(address, "/healthz").ends_with("\r\n\r\nok\n"));
    assert!(get(address, "/readyz").ends_with("\r\n\r\nok: leading\n"));
    let metrics = get(address, "/metrics");
    let reconciles = "bellwether_controller_reconciles_total{controller=\"cluster-set\"";
    assert!(metrics.contains(reconciles), "{metrics}");
    // One that stands by is ready as soon as its caches are.
    let other = fleet.spawn(&format!("{BELLWETHER} hub --metrics-listen 127.0.0.1:0"));
    let line = wait_for_line(&other, "metrics are at http://");
    let address = line.trim_start_matches("metrics are at http://");
    let address = address.trim_end_matches("/metrics");
    wait_for_line(&other, "standing by");
    assert!(get(address, "/readyz").ends_with("\r\n\r\nok: standing by\n"));
}

/// The address at which a process tells how it is.
fn diagnostics_of(process: &Background) -> String {
    let line = wait_for_line(process, "metrics are at http://");
    let address = line.trim_start_matches("metrics are at http://");
    address.trim_end_matches("/metrics").to_owned()
}

/// Waits until a process is not ready for a reason, and never says that it is.
#[track_caller]
fn is_unready_because(address: &str, why: &str) {
    for _ in 0..100 {
        let answer = get(address, "/readyz");
        assert!(answer.starts_with("HTTP/1.1 503"), "{answer}");
        if answer.contains(why) {
            return;
        }
        fleet::pause();
    }
    panic!("{why}: {}", get(address, "/readyz"));
}

/// The agent holds its lease, and works for nobody: it is not ready.
#[test]
fn an_agent_that_does_not_reach_its_hub_is_not_ready() {
    let member = Fleet::only_server();
    // Nobody listens there any more.
    let free = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = free.local_addr().unwrap();
    drop(free);
    let kubeconfig = format!(
        "{{apiVersion: v1, kind: Config, current-context: hub, contexts: [{{name: hub, context: {{cluster: hub, user: me}}}}],\n\
         clusters: [{{name: hub, cluster: {{server: 'https://{address}'}}}}], users: [{{name: me, user: {{token: t}}}}]}}"
    );
    let hub = member.directory().join("hub.yaml");
    std::fs::write(&hub, kubeconfig).unwrap();
    for (cluster, flag) in [("c1", "--hub-kubeconfig"), ("c2", "--bootstrap-kubeconfig")] {
        let agent = member.spawn(&format!(
            "{BELLWETHER} agent --cluster-name {cluster} --kubeconfig {} {flag} {} --metrics-listen 127.0.0.1:0",
            member.kubeconfig().display(),
            hub.display(),
        ));
        is_unready_because(&diagnostics_of(&agent), "waiting for the hub");
    }
}

#[test]
fn a_hub_that_stands_by_defines_nothing() {
    let fleet = Fleet::only_server();
    let lease = fleet.directory().join("lease.json");
    let text = r#"{"apiVersion": "coordination.k8s.io/v1", "kind": "Lease",
        "metadata": {"name": "bellwether-hub", "namespace": "kube-system"},
        "spec": {"holderIdentity": "somebody", "leaseDurationSeconds": 3600}}"#;
    std::fs::write(&lease, text).unwrap();
    fleet.shell(&format!("{BELLWETHER} apply -f {}", lease.display()));
    let second = hub(&fleet, "second");
    wait_for_line(&second, "standing by: somebody leads");
    let (_, definitions, _) = fleet.run(&format!("{BELLWETHER} get customresourcedefinitions"));
    assert!(!definitions.contains("placements"), "{definitions}");
    // The one that leads defines what is missing.
    fleet.shell(&format!(
        "{BELLWETHER} delete lease bellwether-hub -n kube-system"
    ));
    wait_for_line(&second, "the hub is ready");
    a_binding_is_bound(&fleet, "defined");
}

#[test]
fn a_hub_outlives_its_api_server() {
    let mut fleet = Fleet::only_server();
    let hub = fleet.spawn(&format!(
        "{BELLWETHER} hub --leader-elect-lease-duration 2s --metrics-listen 127.0.0.1:0"
    ));
    let address = diagnostics_of(&hub);
    wait_for_line(&hub, "the hub is ready");
    fleet.kill();
    wait_for_line(&hub, "no longer leading");
    wait_for_line(&hub, "cannot reach the hub at https://127.0.0.1:");
    is_unready_because(&address, "cannot reach the hub at https://127.0.0.1:");
}

/// A server that notes the key of every request that it gets.
pub(crate) fn ledger() -> (String, Arc<Mutex<Vec<String>>>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    let keys: Arc<Mutex<Vec<String>>> = Arc::default();
    let noted = Arc::clone(&keys);
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let mut buffer = [0; 4096];
            let length = stream.read(&mut buffer).unwrap_or_default();
            let text = String::from_utf8_lossy(&buffer[..length]).to_lowercase();
            let key = text
                .lines()
                .find_map(|line| line.strip_prefix("idempotency-key: "));
            noted
                .lock()
                .unwrap()
                .push(key.unwrap_or_default().to_owned());
            let _ = stream
                .write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\n{}");
        }
    });
    (address, keys)
}

/// A run that sends requests one after the other, with rests in between.
pub(crate) fn requests(address: &str, count: usize) -> String {
    let steps = (0..count).map(|number| {
        format!(
            r#"{{"name": "tell-{number}", "type": "request", "properties": {{"url": "{address}/", "method": "POST", "body": {{"n": {number}}}}}}},
               {{"name": "rest-{number}", "type": "suspend", "properties": {{"duration": "200ms"}}}}"#
        )
    });
    let steps: Vec<String> = steps.collect();
    format!(
        r#"{{"apiVersion": "core.oam.dev/v1alpha1", "kind": "WorkflowRun", "metadata": {{"name": "tour"}},
            "spec": {{"workflowSpec": {{"steps": [{}]}}}}}}"#,
        steps.join(",")
    )
}

#[test]
fn of_two_hubs_only_the_one_that_leads_carries_out_steps() {
    const REQUESTS: usize = 15;
    let (address, keys) = ledger();
    let fleet = Fleet::only_server();
    let first = hub(&fleet, "first");
    wait_for_line(&first, "the hub is ready");
    let second = hub(&fleet, "second");
    wait_for_line(&second, "standing by");
    let file = fleet.directory().join("tour.json");
    std::fs::write(&file, requests(&address, REQUESTS)).unwrap();
    fleet.shell(&format!("{BELLWETHER} apply -f {}", file.display()));
    let sent = || keys.lock().unwrap().len();
    while sent() < 2 {
        std::thread::yield_now();
    }
    // The leader is paused in the middle of the run, the other goes on, and the first comes back while it does.
    signal(&first, "-STOP");
    let before = sent();
    wait_for_line(&second, "the hub is ready");
    while sent() < before + 2 {
        std::thread::yield_now();
    }
    signal(&first, "-CONT");
    wait_for_line(&first, "no longer leading");
    // And the other way round.
    signal(&second, "-STOP");
    wait_for_line(&first, "the hub is ready");
    signal(&second, "-CONT");
    fleet.shell(&format!(
        "{BELLWETHER} wait --for=jsonpath={{.status.status}}=succeeded --timeout=60s workflowrun/tour"
    ));
    let keys = keys.lock().unwrap().clone();
    let distinct: std::collections::BTreeSet<&String> = keys.iter().collect();
    assert_eq!(distinct.len(), REQUESTS, "{keys:?}");
    // A request may have been under way when its hub was paused: then it is named.
    let history = fleet.shell(&format!("{BELLWETHER} workflow history tour"));
    let named = history.matches("may have been carried out before").count();
    assert!(
        keys.len() <= REQUESTS + named,
        "{} requests, {named} named: {history}",
        keys.len()
    );
}
