//! Workflows from the command line: the example, approval, and a crash that repeats nothing.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

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
    let example = fleet::root().join("examples/workflow/crash.yaml");
    let run = std::fs::read_to_string(example).unwrap();
    let run = run.replace("http://127.0.0.1:8090", &address);
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

#[test]
fn an_application_goes_to_production_when_it_is_resumed() {
    let fleet = Fleet::start_with(&["--clusters", "0"]);
    let example = fleet::root().join("examples/workflow/application.yaml");
    fleet.shell(&format!("{BELLWETHER} apply -f {}", example.display()));
    let status = until(&fleet, "checkout", "suspending");
    assert!(status.starts_with("Application checkout"), "{status}");
    assert!(status.contains("does staging look right?"), "{status}");
    let get = |namespace: &str| format!("{BELLWETHER} get configmap settings -n {namespace}");
    fleet.shell(&get("staging"));
    fleet.fails(&get("production"));
    let said = fleet.shell(&format!("{BELLWETHER} workflow resume checkout"));
    assert_eq!(said.trim(), "Successfully resume workflow: checkout");
    until(&fleet, "checkout", "succeeded");
    fleet.shell(&get("production"));
    let list = fleet.shell(&format!("{BELLWETHER} workflow list"));
    assert!(list.contains("Application   checkout"), "{list}");
    let refused = fleet.fails(&format!("{BELLWETHER} workflow suspend checkout"));
    assert!(
        refused.contains("not allowed because application checkout is running"),
        "{refused}"
    );
}

/// Sends a request, and returns the first line of the answer.
fn post(url: &str, body: &str) -> String {
    let rest = url.strip_prefix("http://").unwrap();
    let (address, path) = rest.split_once('/').unwrap();
    let mut stream = TcpStream::connect(address).unwrap();
    let length = body.len();
    let request = format!(
        "POST /{path} HTTP/1.1\r\nhost: {address}\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n{body}"
    );
    stream.write_all(request.as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer.lines().next().unwrap_or_default().to_owned()
}

#[test]
fn anyone_with_the_address_approves_over_http() {
    let port = TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap();
    let listen = port.to_string();
    let fleet = Fleet::start_with(&["--clusters", "0", "--resume-listen", &listen]);
    let example = fleet::root().join("examples/workflow/approval.yaml");
    fleet.shell(&format!("{BELLWETHER} apply -f {}", example.display()));
    until(&fleet, "approval", "suspending");
    let data = |name: &str, field: &str| {
        let path = format!("jsonpath={{.data.{field}}}");
        fleet.shell(&format!("{BELLWETHER} get configmap {name} -o {path}"))
    };
    let url = data("approval", "url");
    let answer = post(url.trim(), r#"{"user": "ann"}"#);
    assert!(answer.contains("200"), "{answer}");
    until(&fleet, "approval", "succeeded");
    assert_eq!(data("approved", "by").trim(), "ann");
    let again = post(url.trim(), "");
    assert!(again.contains("410"), "{again}");
    let history = fleet.shell(&format!("{BELLWETHER} workflow history approval"));
    assert!(history.contains("resumed approve (Token)"), "{history}");
    let token = url.trim().rsplit('/').next().unwrap();
    let run = fleet.shell(&format!("{BELLWETHER} get workflowrun approval -o yaml"));
    assert!(!run.contains(token) && !history.contains(token));
}

/// A server that keeps what it is sent.
fn recorder() -> (String, Arc<Mutex<Vec<String>>>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    let requests: Arc<Mutex<Vec<String>>> = Arc::default();
    let kept = Arc::clone(&requests);
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let mut buffer = [0; 4096];
            let length = stream.read(&mut buffer).unwrap_or_default();
            let text = String::from_utf8_lossy(&buffer[..length]).into_owned();
            kept.lock().unwrap().push(text);
            let _ = stream
                .write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\n{}");
        }
    });
    (address, requests)
}

#[test]
fn secrets_are_sent_and_written_nowhere() {
    let (address, requests) = recorder();
    let fleet = Fleet::start_with(&["--clusters", "0", "--workflow-http-allow", "loopback"]);
    let objects = format!(
        r#"
apiVersion: v1
kind: Secret
metadata: {{name: door}}
stringData: {{key: open-sesame, url: "http://127.0.0.1:1/hush-hush"}}
---
apiVersion: v1
kind: Secret
metadata: {{name: settings}}
stringData: {{input-properties: '{{"word": "mum-is-the-word"}}'}}
---
apiVersion: core.oam.dev/v1beta1
kind: WorkflowStepDefinition
metadata: {{name: gossip}}
spec:
  schematic:
    cue:
      template: |
        import ("vela/kube", "vela/config", "vela/builtin", "encoding/json")
        list: kube.#List & {{$params: {{resource: {{apiVersion: "v1", kind: "Secret"}}, filter: namespace: "default"}}}} @step(1)
        read: config.#ReadConfig & {{$params: {{name: "settings", namespace: "default"}}}} @step(2)
        fail: builtin.#Fail & {{$params: message: "gossip: \(json.Marshal([for item in list.$returns.values.items {{item.data}}])) \(read.$returns.config.word)"}} @step(3)
        parameter: {{}}
---
apiVersion: core.oam.dev/v1alpha1
kind: WorkflowRun
metadata: {{name: quiet, annotations: {{workflowrun.oam.dev/debug: "true"}}}}
spec:
  mode: {{steps: DAG}}
  workflowSpec:
    steps:
    - name: tell
      type: request
      properties:
        url: "{address}/"
        method: POST
        headersFromSecret: [{{header: Authorization, secret: door, key: key}}]
    - name: refused
      type: request
      properties: {{url: "http://169.254.169.254/latest/meta-data", method: GET}}
    - {{name: gossip, type: gossip, dependsOn: [tell]}}
    - name: shout
      type: notification
      properties: {{slack: {{url: {{secretRef: {{name: door, key: url}}}}, message: {{text: hi}}}}}}
"#
    );
    let file = fleet.scratch().join("quiet.yaml");
    std::fs::write(&file, objects).unwrap();
    fleet.shell(&format!("{BELLWETHER} apply -f {}", file.display()));
    let message = "-o jsonpath={.status.steps[*].message}";
    let mut told = String::new();
    for _ in 0..600 {
        told = fleet.shell(&format!("{BELLWETHER} get workflowrun quiet {message}"));
        if told.contains("169.254.169.254")
            && told.contains("(redacted)")
            && told.contains("gossip")
        {
            break;
        }
    }
    assert!(
        told.contains("169.254.169.254") && told.contains("(redacted)") && told.contains("gossip"),
        "{told}"
    );
    let sent = requests.lock().unwrap().join("\n");
    assert!(sent.contains("open-sesame"), "{sent}");
    for command in [
        "get workflowruns,workflowhistories,configmaps,events -o yaml",
        "workflow history quiet",
        "workflow replay quiet",
        "workflow status quiet",
    ] {
        let shown = fleet.shell(&format!("{BELLWETHER} {command}"));
        // Values as they are, and encoded as lists of Secrets have them.
        for secret in [
            "open-sesame",
            "b3Blbi1zZXNhbWU",
            "hush-hush",
            "mum-is-the-word",
        ] {
            assert!(!shown.contains(secret), "{command}: {shown}");
        }
    }
}

/// Version `version` of an application that announces itself, and waits for approval.
fn announced(address: &str, version: u32) -> String {
    format!(
        r#"
apiVersion: core.oam.dev/v1beta1
kind: Application
metadata: {{name: shop, annotations: {{app.oam.dev/publishVersion: "{version}"}}}}
spec:
  components:
  - name: settings
    type: k8s-objects
    properties: {{objects: [{{apiVersion: v1, kind: ConfigMap, metadata: {{name: settings}}, data: {{version: "{version}"}}}}]}}
  workflow:
    steps:
    - {{name: go, type: apply-component, properties: {{component: settings}}}}
    - name: announce
      type: request
      properties: {{url: "{address}/announce/{version}", method: POST}}
      onRollback: {{type: request, properties: {{url: "{address}/withdraw/{version}", method: DELETE}}}}
    - {{name: ok, type: suspend}}
"#
    )
}

#[test]
fn going_back_by_command_makes_good_for_what_was_done() {
    let (address, requests) = recorder();
    let fleet = Fleet::start_with(&["--clusters", "0", "--workflow-http-allow", "loopback"]);
    let file = fleet.scratch().join("shop.yaml");
    let deliver = |version: u32| {
        std::fs::write(&file, announced(&address, version)).unwrap();
        fleet.shell(&format!("{BELLWETHER} apply -f {}", file.display()));
        fleet.shell(&format!(
            "{BELLWETHER} wait --for=jsonpath={{.status.latestRevision.name}}=shop-v{version} application/shop"
        ));
        until(&fleet, "shop", "suspending");
    };
    deliver(1);
    fleet.shell(&format!("{BELLWETHER} workflow resume shop"));
    until(&fleet, "shop", "succeeded");
    deliver(2);
    fleet.shell(&format!("{BELLWETHER} workflow rollback shop"));
    until(&fleet, "shop", "succeeded");
    fleet.shell(&format!(
        "{BELLWETHER} wait --for=jsonpath={{.data.version}}=1 configmap/settings"
    ));
    let sent = requests.lock().unwrap().clone();
    let sent: Vec<&str> = sent.iter().filter_map(|it| it.lines().next()).collect();
    let expected = [
        "POST /announce/1 HTTP/1.1",
        "POST /announce/2 HTTP/1.1",
        "DELETE /withdraw/2 HTTP/1.1",
    ];
    assert_eq!(sent, expected);
    let history = fleet.shell(&format!("{BELLWETHER} workflow history shop"));
    for part in [
        "step announce-on-rollback is succeeded",
        "back to 1, which was delivered before",
    ] {
        assert!(history.contains(part), "{history}");
    }
}

#[test]
fn a_configuration_is_made_only_of_values_that_its_template_takes() {
    let (address, _requests) = recorder();
    let fleet = Fleet::start_with(&["--clusters", "0", "--workflow-http-allow", "loopback"]);
    let run = |name: &str, port: u32| {
        format!(
            r#"
---
apiVersion: core.oam.dev/v1alpha1
kind: WorkflowRun
metadata: {{name: {name}}}
spec:
  workflowSpec:
    steps:
    - name: make
      type: create-config
      retry: {{times: 0}}
      properties: {{name: {name}, template: registry, config: {{address: "{address}", port: {port}}}}}
"#
        )
    };
    let template = r#"
apiVersion: v1
kind: ConfigMap
metadata: {name: config-template-registry, namespace: vela-system}
data:
  template: |
    import "vela/http"
    template: {
      parameter: {address: string, port: int}
      ask: http.#HTTPGet & {$params: url: parameter.address}
      validation: $returns: {
        result: ask.$returns.statusCode == 200 && parameter.port > 1024
        message: "port \(parameter.port) will not do"
      }
      output: {apiVersion: "v1", kind: "Secret", stringData: address: parameter.address}
    }
"#;
    let file = fleet.scratch().join("configurations.yaml");
    std::fs::write(
        &file,
        format!("{template}{}{}", run("good", 5000), run("bad", 80)),
    )
    .unwrap();
    fleet.shell(&format!("{BELLWETHER} apply -f {}", file.display()));
    until(&fleet, "good", "succeeded");
    let status = until(&fleet, "bad", "failed");
    assert!(
        status.contains("the values are not valid: port 80 will not do"),
        "{status}"
    );
    fleet.shell(&format!("{BELLWETHER} get secret good"));
    fleet.fails(&format!("{BELLWETHER} get secret bad"));
}
