//! Workflows from the command line: the example, approval, and a crash that repeats nothing.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::io::{Read as _, Write as _};
use std::net::TcpListener;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::fleet::{self, Fleet, pause};

const BELLWETHER: &str = env!("CARGO_BIN_EXE_bellwether");

fn until(fleet: &Fleet, run: &str, phase: &str) -> String {
    let mut status = String::new();
    for _ in 0..150 {
        status = fleet.shell(&format!("{BELLWETHER} workflow status {run}"));
        if status
            .lines()
            .next()
            .is_some_and(|line| line.contains(&format!(": {phase}")))
        {
            return status;
        }
        pause();
    }
    panic!("{run} is not {phase}: {status}");
}

#[test]
fn a_release_waits_for_approval_and_deploys() {
    let fleet = Fleet::start_with(&["--clusters", "0"]);
    let root = fleet::root();
    fleet.shell(&format!(
        "{BELLWETHER} apply -f {}/examples/workflow/release.yaml",
        root.display()
    ));
    let status = until(&fleet, "release", "suspending");
    assert!(
        status.contains("approve (suspend): suspending/Suspend"),
        "{status}"
    );
    assert!(status.contains("deploy the release?"), "{status}");
    let said = fleet.shell(&format!("{BELLWETHER} workflow resume release"));
    assert_eq!(said.trim(), "Successfully resume workflow: release");
    until(&fleet, "release", "succeeded");
    let image = fleet.shell(&format!("{BELLWETHER} get deployment release-web -o yaml"));
    assert!(image.contains("registry.example.org/shop:1.2.0"), "{image}");
    let history = fleet.shell(&format!("{BELLWETHER} workflow history release"));
    assert!(
        history.contains("resumed approve") || history.contains("resumed all steps"),
        "{history}"
    );
    let refused = fleet.fails(&format!("{BELLWETHER} workflow rollback release"));
    assert!(
        refused.contains("can not rollback a WorkflowRun"),
        "{refused}"
    );
}

/// A server that counts requests and answers each.
fn counter() -> (String, Arc<AtomicUsize>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    let count = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&count);
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let mut buffer = [0; 4096];
            let _ = stream.read(&mut buffer);
            counted.fetch_add(1, Ordering::SeqCst);
            let _ = stream
                .write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\n{}");
        }
    });
    (address, count)
}

#[test]
fn a_crash_in_the_middle_repeats_nothing() {
    let (address, count) = counter();
    let mut fleet = Fleet::start_with(&["--clusters", "0", "--workflow-http-allow", "loopback"]);
    let run = format!(
        r#"
apiVersion: core.oam.dev/v1alpha1
kind: WorkflowRun
metadata: {{name: once}}
spec:
  workflowSpec:
    steps:
    - name: tell
      type: request
      properties: {{url: "{address}/", method: POST, body: {{n: 1}}}}
    - name: hold
      type: suspend
      properties: {{duration: 3s}}
    - name: tell-again
      type: request
      properties: {{url: "{address}/", method: POST, body: {{n: 2}}}}
"#
    );
    let file = fleet.scratch().join("once.yaml");
    std::fs::write(&file, run).unwrap();
    fleet.shell(&format!("{BELLWETHER} apply -f {}", file.display()));
    until(&fleet, "once", "suspending");
    assert_eq!(count.load(Ordering::SeqCst), 1);
    fleet.kill_and_restart();
    until(&fleet, "once", "succeeded");
    assert_eq!(count.load(Ordering::SeqCst), 2);
    let replay = fleet.shell(&format!("{BELLWETHER} workflow replay once"));
    assert!(
        replay.contains("succeeded: tell=succeeded hold=succeeded tell-again=succeeded"),
        "{replay}"
    );
}
