//! Two processes for one hub: one acts, and the other takes over when it dies, hangs or ends.

#![allow(clippy::unwrap_used, reason = "helpers of tests")]

use crate::fleet;

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::process::Command;

use fleet::{Background, Fleet};

const BELLWETHER: &str = env!("CARGO_BIN_EXE_bellwether");

/// A hub process for the server of a fleet.
fn hub(fleet: &Fleet, name: &str) -> Background {
    fleet.spawn(&format!(
        "{BELLWETHER} hub --leader-elect-lease-duration 2s --leader-elect-identity {name}"
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
fn get(address: &str, path: &str) -> String {
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
}
