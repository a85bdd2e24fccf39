//! Installations: what the manifests grant, and that hub and agent do their whole job with it.

#![allow(clippy::unwrap_used, reason = "helpers of tests")]

use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bellwether_controllers::{registry, rights};
use bellwether_json::yaml::from_yaml;
use bellwether_testkit::{Assets, RealCluster, process};
use k8s_openapi::api::rbac::v1::PolicyRule;
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Client, Config};
use serde_json::{Value, json};

use crate::fleet::{self, Fleet};

const BELLWETHER: &str = env!("CARGO_BIN_EXE_bellwether");

fn bellwether(arguments: &str) -> (bool, String, String) {
    process::run(fleet::bellwether().args(arguments.split(' ')))
}

/// The manifests that a command prints.
#[track_caller]
fn manifests(arguments: &str) -> Vec<Value> {
    let (succeeded, output, errors) = bellwether(arguments);
    assert!(succeeded, "{errors}");
    from_yaml(&output).unwrap()
}

fn find<'a>(objects: &'a [Value], kind: &str, name: &str) -> &'a Value {
    let is_it = |object: &&Value| object["kind"] == kind && object["metadata"]["name"] == name;
    let names: Vec<String> = objects
        .iter()
        .map(|object| format!("{} {}", object["kind"], object["metadata"]["name"]))
        .collect();
    let found = objects.iter().find(is_it);
    found.unwrap_or_else(|| panic!("no {kind} {name} in {names:#?}"))
}

/// The rules of a role, with verbs in order.
fn rules_of(role: &Value) -> Vec<PolicyRule> {
    registry::merge(serde_json::from_value::<Vec<PolicyRule>>(role["rules"].clone()).unwrap())
}

#[test]
fn a_hub_gets_the_rights_of_its_controllers_and_no_others() {
    let objects = manifests("install hub");
    assert_eq!(objects[0]["kind"], "Namespace");
    let definitions = objects
        .iter()
        .filter(|object| object["kind"] == "CustomResourceDefinition");
    assert_eq!(definitions.count(), bellwether_api::definitions().len());
    let role = find(&objects, "ClusterRole", "bellwether-hub-bellwether-system");
    let controllers = registry::HUB.iter().flat_map(registry::Entry::rules);
    let webhooks = registry::to_rules(rights::WEBHOOKS);
    let expected = registry::merge(controllers.chain(webhooks));
    assert_eq!(rules_of(role), expected);
    // Fewer controllers have fewer rights.
    let objects = manifests("install hub --set controllers={placement},webhooks.enabled=false");
    let role = find(&objects, "ClusterRole", "bellwether-hub-bellwether-system");
    let placement = registry::HUB.iter().find(|it| it.name == "placement");
    assert_eq!(rules_of(role), registry::merge(placement.unwrap().rules()));
    let (succeeded, _, errors) = bellwether("install hub --set controllers={palcement}");
    assert!(
        !succeeded && errors.contains("there is no controller"),
        "{errors}"
    );
}

#[test]
fn a_hub_is_installed_as_a_hub_should_be() {
    let objects = manifests(
        "install hub --namespace fleet --image registry.example/b:1 --replicas 3 --set applyOnceOnly=force",
    );
    let deployment = find(&objects, "Deployment", "bellwether-hub");
    assert_eq!(deployment["metadata"]["namespace"], "fleet");
    assert_eq!(deployment["spec"]["replicas"], 3);
    let pod = &deployment["spec"]["template"]["spec"];
    let container = &pod["containers"][0];
    assert_eq!(container["image"], "registry.example/b:1");
    let arguments: Vec<&str> = container["args"]
        .as_array()
        .unwrap()
        .iter()
        .filter_map(Value::as_str)
        .collect();
    for expected in [
        "hub",
        "--apply-once-only=force",
        "--skip-definitions",
        "--leader-elect-resource-namespace=fleet",
        "--webhook-service=fleet/bellwether-hub:443",
        "--kube-api-qps=0",
    ] {
        assert!(arguments.contains(&expected), "{arguments:?}");
    }
    assert_eq!(container["readinessProbe"]["httpGet"]["path"], "/readyz");
    assert_eq!(container["livenessProbe"]["httpGet"]["path"], "/livez");
    assert_eq!(pod["securityContext"]["runAsNonRoot"], true);
    let context = &container["securityContext"];
    assert_eq!(context["readOnlyRootFilesystem"], true);
    assert_eq!(context["capabilities"]["drop"], json!(["ALL"]));
    assert!(container["resources"]["limits"]["memory"].is_string());
    find(&objects, "PodDisruptionBudget", "bellwether-hub");
    find(&objects, "Service", "bellwether-hub");
    find(&objects, "NetworkPolicy", "bellwether-hub");
    find(&objects, "RoleBinding", "bellwether-hub");
    let webhooks = find(&objects, "ValidatingWebhookConfiguration", "bellwether-hub");
    let client = &webhooks["webhooks"][0]["clientConfig"];
    assert_eq!(client["service"]["namespace"], "fleet");
    assert!(client["caBundle"].is_null(), "the hub adds it");
    let single = manifests("install hub --replicas 1");
    assert!(!single.iter().any(|it| it["kind"] == "PodDisruptionBudget"));
}

#[test]
fn an_agent_needs_the_name_of_its_cluster() {
    let (succeeded, _, errors) = bellwether("install agent");
    assert!(!succeeded && errors.contains("--cluster-name"), "{errors}");
    let objects = manifests("install agent --cluster-name edge1");
    let definitions = objects
        .iter()
        .filter(|object| object["kind"] == "CustomResourceDefinition");
    let expected = bellwether_api::member_definitions().len();
    assert_eq!(definitions.count(), expected);
    let name = "bellwether-agent-open-cluster-management-agent";
    let role = find(&objects, "ClusterRole", name);
    let parts = rights::AGENT.iter();
    let parts = parts.flat_map(|part| registry::to_rules(part.rights));
    assert_eq!(rules_of(role), registry::merge(parts));
    let execution = find(&objects, "ClusterRole", &format!("{name}-execution"));
    let selectors = &execution["aggregationRule"]["clusterRoleSelectors"];
    let label = "open-cluster-management.io/aggregate-to-work";
    assert_eq!(selectors[0]["matchLabels"][label], "true");
}

#[test]
fn the_example_of_values_gives_a_small_role() {
    let objects = manifests("install hub -f examples/install/hub-values.yaml");
    let deployment = find(&objects, "Deployment", "bellwether-hub");
    let image = &deployment["spec"]["template"]["spec"]["containers"][0]["image"];
    let image = image.as_str().unwrap();
    assert!(
        image.contains("/platform/bellwether@sha256:e3b0"),
        "{image}"
    );
    let role = find(&objects, "ClusterRole", "bellwether-hub-bellwether-system");
    assert!(!role.to_string().contains(r#"["*"]"#), "{role}");
    let bound = |object: &&Value| object["roleRef"]["name"] == "admin";
    assert_eq!(objects.iter().find(bound), None);
    // The label of the example is the one that the role of an agent gathers.
    let example = fleet::root().join("examples/install/execution-role.yaml");
    let example = &from_yaml(&std::fs::read_to_string(example).unwrap()).unwrap()[0];
    let agent = manifests("install agent --cluster-name edge1");
    let name = "bellwether-agent-open-cluster-management-agent-execution";
    let gathers = &find(&agent, "ClusterRole", name)["aggregationRule"]["clusterRoleSelectors"];
    assert_eq!(gathers[0]["matchLabels"], example["metadata"]["labels"]);
}

/// What our own Helm renders is what Helm renders, where Helm is installed.
#[test]
fn helm_renders_the_chart_alike() {
    let helm = |arguments: &str| {
        let output = Command::new("helm")
            .args(arguments.split(' '))
            .current_dir(fleet::root())
            .output();
        output.ok().filter(|output| output.status.success())
    };
    if helm("version").is_none() {
        bellwether_testkit::skip("helm is not installed");
        return;
    }
    for set in [
        "",
        " --set mode=agent,agent.clusterName=edge1",
        " --set controllers={-placement},webhooks.enabled=false,replicaCount=1",
        " --set execution.readAll=false,networkPolicy.egress[0].ports[0].port=443",
    ] {
        let command = format!("template x deploy/chart -n fleet{set}");
        let output = helm(&command).unwrap_or_else(|| panic!("helm {command}"));
        let theirs = from_yaml(&String::from_utf8(output.stdout).unwrap()).unwrap();
        let ours = manifests(&format!("helm {command}"));
        assert_eq!(ours, theirs, "{command}");
    }
}

#[test]
fn an_installation_is_applied_waited_for_and_removed() {
    let fleet = Fleet::start_with(&["--clusters", "1"]);
    let output = fleet.shell(&format!(
        "{BELLWETHER} install hub --context cluster1 --apply --timeout 60s"
    ));
    assert!(
        output.contains("2 of 2 processes are available"),
        "{output}"
    );
    assert!(
        output.ends_with("bellwether-hub is installed\n"),
        "{output}"
    );
    let again = fleet.shell(&format!(
        "{BELLWETHER} install hub --context cluster1 --apply --replicas 1 --timeout 60s"
    ));
    assert!(again.contains("1 of 1 processes are available"), "{again}");
    fleet.shell(&format!("{BELLWETHER} uninstall hub --context cluster1"));
    for gone in [
        "deployment/bellwether-hub -n bellwether-system",
        "clusterrole/bellwether-hub-bellwether-system",
        "validatingwebhookconfiguration/bellwether-hub",
    ] {
        let errors = fleet.fails(&format!("{BELLWETHER} get {gone} --context cluster1"));
        assert!(errors.contains("not found"), "{errors}");
    }
    let stays = "crd/applications.core.oam.dev";
    fleet.shell(&format!("{BELLWETHER} get {stays} --context cluster1"));
}

/// A cluster that something is installed on.
trait Site {
    /// A kubeconfig of its administrator.
    fn kubeconfig(&self) -> PathBuf;

    /// A directory for files of the test.
    fn scratch(&self) -> PathBuf;

    /// The authority of its API server, in PEM.
    fn authority(&self) -> Vec<u8>;

    /// Runs a command of words separated by spaces as its administrator, and returns what it printed.
    fn shell(&self, command: &str) -> String;
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

    #[track_caller]
    fn shell(&self, command: &str) -> String {
        Self::shell(self, command)
    }
}

/// A real API server.
struct Real {
    cluster: RealCluster,
    scratch: tempfile::TempDir,
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

    #[track_caller]
    fn shell(&self, command: &str) -> String {
        let mut words = command.split(' ');
        let mut process = Command::new(words.next().unwrap());
        process
            .args(words)
            .current_dir(fleet::root())
            .env("KUBECONFIG", self.kubeconfig())
            .env("HOME", self.scratch.path());
        let (succeeded, printed, errors) = process::run(&mut process);
        assert!(succeeded, "{command}\n{printed}{errors}");
        printed
    }
}

/// A process that has nothing but the account of a pod.
struct Pod {
    process: Child,
    lines: mpsc::Receiver<String>,
}

impl Pod {
    fn start(account: &Account, arguments: &str) -> Self {
        let mut process = Command::new(BELLWETHER)
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
    fn until(&self, text: &str) -> Vec<String> {
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

    /// SIGTERM: whether it ends by itself within the grace period.
    fn ends_when_asked(&mut self) -> bool {
        let id = self.process.id().to_string();
        Command::new("kill").args(["-TERM", &id]).status().unwrap();
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
struct Account {
    directory: PathBuf,
    namespace: String,
    host: String,
    port: String,
}

impl Account {
    /// Makes the files for an account of a cluster.
    fn of(site: &dyn Site, namespace: &str, name: &str) -> Self {
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

/// The requests of an account that a server refused for lack of rights.
fn refused(fleet: &Fleet, account: &str) -> Vec<String> {
    let log = std::fs::read_to_string(fleet.directory().join("audit.log")).unwrap();
    let lines = log
        .lines()
        .filter_map(|line| serde_json::from_str(line).ok());
    lines
        .filter(|line: &Value| {
            line["responseStatus"]["code"] == 403
                && line["user"]["username"]
                    .as_str()
                    .is_some_and(|user| user.ends_with(account))
        })
        .map(|line| {
            format!(
                "{} {}: {}",
                line["verb"], line["requestURI"], line["responseStatus"]
            )
        })
        .collect()
}

fn apply(site: &dyn Site, path: &str) {
    site.shell(&format!("{BELLWETHER} apply -f {path}"));
}

/// Applies manifests of an installation without what needs nodes or a network.
fn install(site: &dyn Site, arguments: &str, file: &str) {
    let mut objects = manifests(arguments);
    // Nobody serves the webhooks of a pod that does not run.
    objects.retain(|object| {
        let kind = object["kind"].as_str().unwrap();
        !kind.ends_with("WebhookConfiguration") && kind != "Deployment"
    });
    let list = json!({"apiVersion": "v1", "kind": "List", "items": objects});
    let path = site.scratch().join(file);
    std::fs::write(&path, list.to_string()).unwrap();
    site.shell(&format!(
        "{BELLWETHER} apply --server-side -f {}",
        path.display()
    ));
}

/// A member with the agent of an installation, which joins a hub.
fn member(hub: &dyn Site, member: &dyn Site) -> Pod {
    let bootstrap = hub.scratch().join("bootstrap.yaml");
    hub.shell(&format!(
        "{BELLWETHER} token create --cluster-name edge1 --write {}",
        bootstrap.display()
    ));
    install(
        member,
        &format!(
            "install agent --cluster-name edge1 --bootstrap-kubeconfig {}",
            bootstrap.display()
        ),
        "agent.json",
    );
    let namespace = "open-cluster-management-agent";
    let account = Account::of(member, namespace, "bellwether-agent");
    let agent = Pod::start(&account, "agent --cluster-name edge1");
    let lines = agent.until("the agent of edge1 is ready");
    let missing: Vec<&String> = lines.iter().filter(|it| it.contains("missing")).collect();
    assert!(missing.is_empty(), "{missing:?}");
    hub.shell(&format!(
        "{BELLWETHER} wait --for=condition=ManagedClusterConditionAvailable --timeout=60s managedcluster/edge1"
    ));
    agent
}

/// A rollout by a placement.
fn roll_out(hub: &dyn Site, member: &dyn Site) {
    apply(hub, "examples/rollout/fleet.yaml");
    hub.shell(&format!(
        "{BELLWETHER} wait --for=condition=PlacementRolledOut --timeout=60s manifestworkreplicaset/shop"
    ));
    member.shell(&format!("{BELLWETHER} get deployment shop"));
}

/// A policy that is enforced. What it writes is not among what works usually have, so a role adds it.
fn enforce(hub: &dyn Site, member: &dyn Site) {
    let role = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole",
        "metadata": {"name": "limits",
            "labels": {"open-cluster-management.io/aggregate-to-work": "true"}},
        "rules": [{"apiGroups": [""], "resources": ["limitranges"],
            "verbs": ["create", "update", "patch", "delete"]}],
    });
    let path = member.scratch().join("limits.json");
    std::fs::write(&path, role.to_string()).unwrap();
    member.shell(&format!("{BELLWETHER} apply -f {}", path.display()));
    apply(hub, "examples/policy/enforce.yaml");
    hub.shell(&format!(
        "{BELLWETHER} wait --for=jsonpath={{.status.compliant}}=Compliant --timeout=60s policies.policy.open-cluster-management.io/enforce"
    ));
    member.shell(&format!("{BELLWETHER} get limitrange limits"));
}

/// An application on the member, and one on the hub.
fn deliver(hub: &dyn Site, member: &dyn Site) {
    apply(hub, "crates/bellwether/testdata/install/application.yaml");
    for name in ["front", "back"] {
        hub.shell(&format!(
            "{BELLWETHER} wait --for=jsonpath={{.status.status}}=running --timeout=60s application/{name}"
        ));
    }
    member.shell(&format!("{BELLWETHER} get deployment front"));
    hub.shell(&format!("{BELLWETHER} get deployment back"));
}

#[test]
fn hub_and_agent_do_their_whole_job_with_the_rights_of_their_accounts() {
    let hub_cluster = Fleet::only_server();
    install(&hub_cluster, "install hub", "hub.json");
    let account = Account::of(&hub_cluster, "bellwether-system", "bellwether-hub");
    let mut hub = Pod::start(
        &account,
        "hub --skip-definitions --metrics-listen 127.0.0.1:0",
    );
    let lines = hub.until("the hub is ready");
    let missing: Vec<&String> = lines.iter().filter(|it| it.contains("missing")).collect();
    assert!(missing.is_empty(), "{missing:?}");
    let member_cluster = Fleet::only_server();
    let agent = member(&hub_cluster, &member_cluster);

    roll_out(&hub_cluster, &member_cluster);
    enforce(&hub_cluster, &member_cluster);
    deliver(&hub_cluster, &member_cluster);
    // Everything goes again.
    hub_cluster.shell(&format!(
        "{BELLWETHER} delete application front back --timeout=60s"
    ));
    hub_cluster.shell(&format!(
        "{BELLWETHER} delete -f examples/policy/enforce.yaml --timeout=60s"
    ));
    hub_cluster.shell(&format!(
        "{BELLWETHER} delete -f examples/rollout/fleet.yaml --timeout=60s"
    ));
    hub_cluster.shell(&format!("{BELLWETHER} cluster detach edge1 --timeout 60"));
    assert_eq!(refused(&hub_cluster, ":bellwether-hub"), [""; 0]);
    assert_eq!(refused(&member_cluster, ":bellwether-agent"), [""; 0]);
    agent.until("was detached from its hub");
    assert!(hub.ends_when_asked(), "within the grace period");
    drop(agent);
}

#[test]
fn a_hub_names_the_right_that_it_lacks() {
    let cluster = Fleet::only_server();
    install(&cluster, "install hub", "hub.json");
    let account = Account::of(&cluster, "bellwether-system", "bellwether-hub");
    let path = cluster.scratch().join("role.json");
    let whole = manifests("install hub");
    let role = find(&whole, "ClusterRole", "bellwether-hub-bellwether-system");
    let mut less = role.clone();
    less["rules"]
        .as_array_mut()
        .unwrap()
        .retain(|rule| rule["resources"] != json!(["placements/status"]));
    std::fs::write(&path, less.to_string()).unwrap();
    cluster.shell(&format!(
        "{BELLWETHER} apply --server-side -f {}",
        path.display()
    ));
    let mut hub = Pod::start(&account, "hub --skip-definitions");
    hub.until(
        "a right is missing: placement may not patch placements.cluster.open-cluster-management.io/status",
    );
    assert!(hub.ends_when_asked());
}

/// The manifests pass a real API server, where one is installed.
#[tokio::test(flavor = "multi_thread")]
async fn manifests_pass_a_real_api_server() {
    let assets = match Assets::find() {
        Ok(assets) => assets,
        Err(why) => {
            bellwether_testkit::skip(why);
            return;
        }
    };
    let cluster = RealCluster::start(&assets).await.unwrap();
    let kubectl = assets.program("kubectl");
    let scratch = tempfile::tempdir().unwrap();
    for (name, arguments) in [
        ("hub", "install hub"),
        ("agent", "install agent --cluster-name edge1"),
    ] {
        let objects = manifests(arguments);
        // What is in a namespace cannot be tried without it.
        let parts = [
            ("namespace", &objects[..1], "none"),
            ("all", &objects[..], "server"),
        ];
        for (part, objects, dry_run) in parts {
            let list = json!({"apiVersion": "v1", "kind": "List", "items": objects});
            let path = scratch.path().join(format!("{name}-{part}.json"));
            std::fs::write(&path, list.to_string()).unwrap();
            let output = Command::new(&kubectl)
                .args(["apply", "--server-side", "--force-conflicts"])
                .arg(format!("--dry-run={dry_run}"))
                .arg("-f")
                .arg(&path)
                .env("KUBECONFIG", cluster.kubeconfig())
                .env("HOME", scratch.path())
                .output()
                .unwrap();
            let errors = String::from_utf8_lossy(&output.stderr);
            assert!(output.status.success(), "{name}: {errors}");
        }
    }
}

/// The same on real API servers, with two processes of the hub of which the one that leads is killed.
#[tokio::test(flavor = "multi_thread")]
async fn accounts_suffice_on_real_api_servers() {
    let assets = match Assets::find() {
        Ok(assets) => assets,
        Err(why) => {
            bellwether_testkit::skip(why);
            return;
        }
    };
    let mut sites = Vec::new();
    for _ in 0..2 {
        let mut cluster = RealCluster::start(&assets).await.unwrap();
        cluster.start_controllers(&assets).unwrap();
        let scratch = tempfile::tempdir().unwrap();
        sites.push(Real { cluster, scratch });
    }
    let done = tokio::task::spawn_blocking(move || on_real_servers(&sites[0], &sites[1]));
    done.await.unwrap();
}

fn on_real_servers(hub: &Real, edge: &Real) {
    install(hub, "install hub", "hub.json");
    let account = Account::of(hub, "bellwether-system", "bellwether-hub");
    let first = Pod::start(&account, "hub --skip-definitions");
    let lines = first.until("the hub is ready");
    let missing: Vec<&String> = lines.iter().filter(|it| it.contains("missing")).collect();
    assert!(missing.is_empty(), "{missing:?}");
    let mut second = Pod::start(&account, "hub --skip-definitions");
    second.until("standing by");
    let agent = member(hub, edge);
    apply(hub, "crates/bellwether/testdata/real-fleet.yaml");
    drop(first);
    second.until("the hub is ready");
    hub.shell(&format!(
        "{BELLWETHER} wait --for=condition=PlacementRolledOut --timeout=60s manifestworkreplicaset/settings"
    ));
    edge.shell(&format!("{BELLWETHER} get configmap fleet-settings"));
    enforce(hub, edge);
    hub.shell(&format!("{BELLWETHER} cluster detach edge1 --timeout 60"));
    agent.until("was detached from its hub");
    assert!(second.ends_when_asked(), "within the grace period");
}
