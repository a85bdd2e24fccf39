//! Clusters, embedded or real, that something is installed on, and processes that have nothing but the account of a pod.
//! (A module of other tests, not a test.)

#![allow(
    clippy::unwrap_used,
    unreachable_pub,
    reason = "each test file uses its own part"
)]

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bellwether_json::yaml::from_yaml;
use bellwether_testkit::{Assets, RealCluster, process};
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Client, Config};
use serde_json::{Value, json};

use crate::fleet::{self, Fleet};

pub const BELLWETHER: &str = env!("CARGO_BIN_EXE_bellwether");

/// How often something is looked at until it is as it should be, five times a second.
const ATTEMPTS: usize = 600;

pub fn bellwether(arguments: &str) -> (bool, String, String) {
    process::run(fleet::bellwether().args(arguments.split(' ')))
}

/// The manifests that a command prints.
#[track_caller]
pub fn manifests(arguments: &str) -> Vec<Value> {
    let (succeeded, output, errors) = bellwether(arguments);
    assert!(succeeded, "{errors}");
    from_yaml(&output).unwrap()
}

/// A cluster that something is installed on.
pub trait Site {
    /// A kubeconfig of its administrator.
    fn kubeconfig(&self) -> PathBuf;

    /// A directory for files of the test.
    fn scratch(&self) -> PathBuf;

    /// The authority of its API server, in PEM.
    fn authority(&self) -> Vec<u8>;

    /// Runs a command of words separated by spaces as its administrator: whether it succeeded, what it printed, what it
    /// complained.
    fn run(&self, command: &str) -> (bool, String, String);

    /// Runs a command that has to succeed, and returns what it printed.
    #[track_caller]
    fn shell(&self, command: &str) -> String {
        let (succeeded, printed, errors) = self.run(command);
        assert!(succeeded, "{command}\n{printed}{errors}");
        printed
    }

    /// Waits until a field of an object has a value.
    #[track_caller]
    fn until_field(&self, object: &str, path: &str, expected: &str) {
        let command = format!("{BELLWETHER} get {object} -o jsonpath={{{path}}}");
        let mut last = (false, String::new(), String::new());
        for _ in 0..ATTEMPTS {
            last = self.run(&command);
            if last.0 && last.1.trim() == expected {
                return;
            }
            fleet::pause();
        }
        panic!("{command} is not {expected}: {last:?}");
    }

    /// Waits until an object is gone.
    #[track_caller]
    fn until_gone(&self, object: &str) {
        for _ in 0..ATTEMPTS {
            let (succeeded, _, errors) = self.run(&format!("{BELLWETHER} get {object}"));
            if !succeeded && errors.contains("not found") {
                return;
            }
            fleet::pause();
        }
        panic!("{object} is still there");
    }

    /// Applies objects.
    fn apply_objects(&self, name: &str, objects: &[Value]) {
        let list = json!({"apiVersion": "v1", "kind": "List", "items": objects});
        let path = self.scratch().join(name);
        std::fs::write(&path, list.to_string()).unwrap();
        self.shell(&format!("{BELLWETHER} apply -f {}", path.display()));
    }

    /// Reads objects.
    #[track_caller]
    fn objects(&self, what: &str) -> Vec<Value> {
        let text = self.shell(&format!("{BELLWETHER} get {what} -o json"));
        let read: Value = serde_json::from_str(&text).unwrap();
        match read.get("items") {
            Some(items) => items.as_array().unwrap().clone(),
            None => vec![read],
        }
    }
}

impl Site for Fleet {
    fn kubeconfig(&self) -> PathBuf {
        Self::kubeconfig(self)
    }

    fn scratch(&self) -> PathBuf {
        Self::scratch(self).to_owned()
    }

    fn authority(&self) -> Vec<u8> {
        let kubeconfig = Kubeconfig::read_from(Self::kubeconfig(self)).unwrap();
        let cluster = kubeconfig.clusters[0].cluster.as_ref().unwrap();
        let encoded = cluster.certificate_authority_data.as_deref();
        STANDARD.decode(encoded.unwrap()).unwrap()
    }

    fn run(&self, command: &str) -> (bool, String, String) {
        Self::run(self, command)
    }
}

/// A real API server.
pub struct Real {
    cluster: RealCluster,
    scratch: tempfile::TempDir,
}

impl Real {
    /// Starts several, each with the controllers of Kubernetes. Nothing, and a message, where there are no programs for that.
    pub async fn start(count: usize) -> Option<Vec<Self>> {
        let assets = match Assets::find() {
            Ok(assets) => assets,
            Err(why) => {
                bellwether_testkit::skip(why);
                return None;
            }
        };
        let mut sites = Vec::new();
        for _ in 0..count {
            let mut cluster = RealCluster::start(&assets).await.unwrap();
            cluster.start_controllers(&assets).unwrap();
            let scratch = tempfile::tempdir().unwrap();
            sites.push(Self { cluster, scratch });
        }
        Some(sites)
    }
}

impl Site for Real {
    fn kubeconfig(&self) -> PathBuf {
        self.cluster.kubeconfig()
    }

    fn scratch(&self) -> PathBuf {
        self.scratch.path().to_owned()
    }

    fn authority(&self) -> Vec<u8> {
        std::fs::read(self.cluster.server_certificate()).unwrap()
    }

    fn run(&self, command: &str) -> (bool, String, String) {
        let mut words = command.split(' ');
        let mut process = Command::new(words.next().unwrap());
        process
            .args(words)
            .current_dir(fleet::root())
            .env("KUBECONFIG", self.kubeconfig())
            .env("HOME", self.scratch.path());
        process::run(&mut process)
    }
}

/// A process that has nothing but the account of a pod.
pub struct Pod {
    process: Child,
    lines: mpsc::Receiver<String>,
}

impl Pod {
    pub fn start(account: &Account, arguments: &str) -> Self {
        Self::start_program(Path::new(BELLWETHER), account, arguments)
    }

    /// The same with another version of the binary.
    pub fn start_program(program: &Path, account: &Account, arguments: &str) -> Self {
        let mut process = Command::new(program)
            .args(arguments.split(' '))
            .args(["--leader-elect-resource-namespace", &account.namespace])
            .args(["--leader-elect-lease-duration", "2s"])
            .arg("--service-account-dir")
            .arg(&account.directory)
            .env_clear()
            .env("HOME", &account.directory)
            .env("KUBERNETES_SERVICE_HOST", &account.host)
            .env("KUBERNETES_SERVICE_PORT", &account.port)
            .current_dir(&account.directory)
            .stdout(Stdio::piped())
            .stderr(Stdio::inherit())
            .spawn()
            .unwrap();
        let lines = process::lines(&mut process);
        Self { process, lines }
    }

    /// Waits until it prints a line with a text, and returns all lines up to it.
    #[track_caller]
    pub fn until(&self, text: &str) -> Vec<String> {
        let mut seen = Vec::new();
        loop {
            let line = self.lines.recv_timeout(Duration::from_mins(1));
            let line = line
                .unwrap_or_else(|error| panic!("{error}: no line with {text:?} after {seen:#?}"));
            seen.push(line);
            if seen.last().is_some_and(|line| line.contains(text)) {
                return seen;
            }
        }
    }

    /// Waits until it prints a line with a text, and before it none about a right that is missing.
    #[track_caller]
    pub fn until_without_missing_rights(&self, text: &str) {
        let lines = self.until(text);
        let missing: Vec<&String> = lines.iter().filter(|it| it.contains("missing")).collect();
        assert!(missing.is_empty(), "{missing:?}");
    }

    /// Sends a signal, such as `-STOP`.
    pub fn signal(&self, signal: &str) {
        let id = self.process.id().to_string();
        let sent = Command::new("kill").args([signal, &id]).status().unwrap();
        assert!(sent.success());
    }

    /// SIGTERM: whether it ends by itself within the grace period.
    pub fn ends_when_asked(&mut self) -> bool {
        self.signal("-TERM");
        for _ in 0..50 {
            if let Some(status) = self.process.try_wait().unwrap() {
                return status.success();
            }
            fleet::pause();
        }
        false
    }
}

impl Drop for Pod {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// What the kubelet gives a pod: the files of its account, and where its cluster is.
#[derive(Clone)]
pub struct Account {
    pub directory: PathBuf,
    pub namespace: String,
    pub host: String,
    pub port: String,
}

impl Account {
    /// Makes the files for an account of a cluster.
    pub fn of(site: &dyn Site, namespace: &str, name: &str) -> Self {
        let directory = site.scratch().join(format!("account-{name}"));
        std::fs::create_dir_all(&directory).unwrap();
        let kubeconfig = Kubeconfig::read_from(site.kubeconfig()).unwrap();
        let cluster = kubeconfig.clusters[0].cluster.as_ref().unwrap();
        let server = cluster.server.as_deref().unwrap();
        let authority = server.trim_start_matches("https://").split('/').next();
        let (host, port) = authority.unwrap().rsplit_once(':').unwrap();
        let files = [
            ("ca.crt", site.authority()),
            ("namespace", namespace.as_bytes().to_vec()),
            (
                "token",
                token(kubeconfig.clone(), namespace, name).into_bytes(),
            ),
        ];
        for (file, content) in files {
            std::fs::write(directory.join(file), content).unwrap();
        }
        Self {
            namespace: namespace.to_owned(),
            host: host.to_owned(),
            port: port.to_owned(),
            directory,
        }
    }

    /// The account of a hub.
    pub fn of_hub(site: &dyn Site) -> Self {
        Self::of(site, "bellwether-system", "bellwether-hub")
    }
}

/// A token of an account, as the kubelet asks for one.
fn token(kubeconfig: Kubeconfig, namespace: &str, name: &str) -> String {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    let asked = async {
        let options = KubeConfigOptions::default();
        let config = Config::from_custom_kubeconfig(kubeconfig, &options).await;
        let client = Client::try_from(config.unwrap()).unwrap();
        let path = format!("/api/v1/namespaces/{namespace}/serviceaccounts/{name}/token");
        let body = json!({"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest",
            "spec": {"expirationSeconds": 3600, "audiences": []}});
        let request = http::Request::post(path)
            .header("content-type", "application/json")
            .body(serde_json::to_vec(&body).unwrap());
        let answer: Value = client.request(request.unwrap()).await.unwrap();
        answer["status"]["token"].as_str().unwrap().to_owned()
    };
    runtime.unwrap().block_on(asked)
}

/// Applies a file of the repository.
pub fn apply(site: &dyn Site, path: &str) {
    site.shell(&format!("{BELLWETHER} apply -f {path}"));
}

/// Applies manifests of an installation without what needs nodes or a network.
pub fn install(site: &dyn Site, arguments: &str, file: &str) {
    install_objects(site, manifests(arguments), file);
}

/// The same with manifests that another version of the binary prints.
pub fn install_by(program: &Path, site: &dyn Site, arguments: &str, file: &str) {
    let (succeeded, output, errors) =
        process::run(Command::new(program).args(arguments.split(' ')));
    assert!(succeeded, "{errors}");
    install_objects(site, from_yaml(&output).unwrap(), file);
}

fn install_objects(site: &dyn Site, mut objects: Vec<Value>, file: &str) {
    // Nobody serves the webhooks of a pod that does not run.
    objects.retain(|object| {
        let kind = object["kind"].as_str().unwrap();
        !kind.ends_with("WebhookConfiguration") && kind != "Deployment"
    });
    let list = json!({"apiVersion": "v1", "kind": "List", "items": objects});
    let path = site.scratch().join(file);
    std::fs::write(&path, list.to_string()).unwrap();
    site.shell(&format!(
        "{BELLWETHER} apply --server-side --force-conflicts -f {}",
        path.display()
    ));
}

/// Installs what the agent of a member needs to join a hub, and returns its account.
pub fn prepare_member(hub: &dyn Site, member: &dyn Site, name: &str) -> Account {
    prepare_member_by(Path::new(BELLWETHER), hub, member, name)
}

/// The same with manifests that another version of the binary prints.
pub fn prepare_member_by(program: &Path, hub: &dyn Site, member: &dyn Site, name: &str) -> Account {
    let bootstrap = hub.scratch().join(format!("{name}.bootstrap.yaml"));
    hub.shell(&format!(
        "{BELLWETHER} token create --cluster-name {name} --write {}",
        bootstrap.display()
    ));
    let arguments = format!(
        "install agent --cluster-name {name} --bootstrap-kubeconfig {}",
        bootstrap.display()
    );
    install_by(program, member, &arguments, "agent.json");
    Account::of(member, "open-cluster-management-agent", "bellwether-agent")
}

/// Waits until the hub finds a member available.
pub fn until_available(hub: &dyn Site, name: &str) {
    hub.shell(&format!(
        "{BELLWETHER} wait --for=condition=ManagedClusterConditionAvailable --timeout=60s managedcluster/{name}"
    ));
}

/// A member with the agent of an installation, which joins a hub.
pub fn member(hub: &dyn Site, member: &dyn Site) -> Pod {
    let account = prepare_member(hub, member, "edge1");
    let agent = Pod::start(&account, "agent --cluster-name edge1");
    agent.until_without_missing_rights("the agent of edge1 is ready");
    until_available(hub, "edge1");
    agent
}
