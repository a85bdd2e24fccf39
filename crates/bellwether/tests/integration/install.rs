//! Installations: what the manifests grant, and that hub and agent do their whole job with it.

#![allow(clippy::unwrap_used, reason = "helpers of tests")]

use std::process::Command;

use bellwether_controllers::{registry, rights};
use bellwether_json::yaml::from_yaml;
use bellwether_testkit::{Assets, RealCluster, process};
use k8s_openapi::api::rbac::v1::PolicyRule;
use serde_json::{Value, json};

use crate::fleet::{self, Fleet};
use crate::leadership::get;
use crate::site::{
    Account, BELLWETHER, Pod, Real, Site, apply, bellwether, install, manifests, member,
};

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
    // Secrets are read in all namespaces, and written only where keys of clusters are; tokens are in one namespace.
    let secrets = expected
        .iter()
        .find(|rule| rule.resources == Some(vec!["secrets".to_owned()]));
    assert_eq!(secrets.unwrap().verbs, ["create", "get", "update"]);
    let system = objects.iter().find(|object| {
        object["kind"] == "Role" && object["metadata"]["namespace"] == rights::SYSTEM_NAMESPACE
    });
    let webhooks = rights::IN_SYSTEM_NAMESPACE
        .iter()
        .filter(|(name, _)| *name == rights::WEBHOOK_SERVER)
        .flat_map(|(_, needed)| registry::to_rules(needed));
    let expected = registry::merge(
        registry::system_rules(registry::HUB)
            .into_iter()
            .chain(webhooks),
    );
    assert_eq!(rules_of(system.unwrap()), expected);
    // Fewer controllers have fewer rights.
    let objects = manifests("install hub --set controllers={placement},webhooks.enabled=false");
    let role = find(&objects, "ClusterRole", "bellwether-hub-bellwether-system");
    let placement = registry::HUB.iter().find(|it| it.name == "placement");
    assert_eq!(rules_of(role), registry::merge(placement.unwrap().rules()));
    let in_system = |object: &Value| object["metadata"]["namespace"] == rights::SYSTEM_NAMESPACE;
    assert!(!objects.iter().any(in_system), "no Secret is needed");
    // As the documentation says: a hub for rollouts reads no Secret of others.
    let objects = manifests(
        "install hub --set controllers={registration,certificate-approval,cluster-set,placement,replica-set},execution.clusterRole=",
    );
    for role in objects.iter().filter(|it| it["kind"] == "ClusterRole") {
        let text = role["rules"].to_string();
        assert!(
            !text.contains("secrets") && !text.contains(r#""*""#),
            "{text}"
        );
    }
    let (succeeded, _, errors) = bellwether("install hub --set replicas=3");
    assert!(!succeeded && errors.contains("replicas"), "{errors}");
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
        let mut helm = Command::new("helm");
        process::run(helm.args(arguments.split(' ')).current_dir(fleet::root()))
    };
    if Command::new("helm").arg("version").output().is_err() {
        bellwether_testkit::skip("helm is not installed");
        return;
    }
    for set in [
        "",
        " --set mode=agent,agent.clusterName=edge1",
        " --set mode=agent,agent.clusterName=edge1,agent.bootstrapKubeconfig=secret,createDefinitions=false",
        " --set controllers={-placement},webhooks.enabled=false,replicaCount=1",
        " --set controllers={placement,workflow-run},applyOnceOnly=force,createDefinitions=false",
        " --set execution.readAll=false,networkPolicy.egress[0].ports[0].port=443",
        " --set execution.clusterRole=,execution.rules=null,execution.aggregationLabel=example.com/rights",
        " --set image.repository=registry.example/b,image.digest=sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855,imagePullSecrets={one,two}",
        " --set verbosity=2,extraArgs={--a=b},kubeApiQps=12,podAnnotations.note=x,priorityClassName=high",
        " --set serviceAccount.name=fleet,serviceAccount.annotations.note=x,networkPolicy.enabled=false",
        " -f examples/install/hub-values.yaml",
    ] {
        // Helm looks at the version of the API server, which it otherwise takes from its own build.
        let command = format!("template x deploy/chart -n fleet --kube-version 1.35.0{set}");
        let (succeeded, theirs, errors) = helm(&command);
        assert!(succeeded, "helm {command}: {errors}");
        let ours = manifests(&format!("helm {command}"));
        assert_eq!(ours, from_yaml(&theirs).unwrap(), "{command}");
    }
    // What is refused, is refused by both.
    for set in [
        "controllers={palcement}",
        "mode=agent",
        "replicaCount=many",
        "replicas=3",
        "networkPolicy.enable=false",
        "mode=spoke",
    ] {
        let command = format!("template x deploy/chart --kube-version 1.35.0 --set {set}");
        assert!(!helm(&command).0, "{set}");
        assert!(!bellwether(&format!("helm {command}")).0, "{set}");
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
    let find = |what: &str| {
        fleet
            .run(&format!("{BELLWETHER} get {what} --context cluster1"))
            .0
    };
    let budget = "poddisruptionbudget/bellwether-hub -n bellwether-system";
    let everything = "clusterrolebinding/bellwether-hub-bellwether-system-execution-cluster-admin";
    assert!(find(budget));
    let again = fleet.shell(&format!(
        "{BELLWETHER} install hub --context cluster1 --apply --replicas 1 --set execution.clusterRole=cluster-admin --timeout 60s"
    ));
    assert!(again.contains("1 of 1 processes are available"), "{again}");
    assert!(!find(budget), "one process has none");
    assert!(
        !find(&everything.replace("cluster-admin", "admin")),
        "it is not wanted any more"
    );
    assert!(find(everything));
    fleet.shell(&format!("{BELLWETHER} uninstall hub --context cluster1"));
    assert!(!find(everything), "whatever values it was made with");
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

/// A hub creates its webhooks again for as long as it runs: they go when its processes are gone.
#[test]
fn webhooks_of_a_hub_that_is_removed_stay_away() {
    let cluster = Fleet::only_server();
    let objects = manifests("install hub");
    // No kubelet runs the Deployment: the process is started by hand, and this is its pod.
    let labels = &find(&objects, "Deployment", "bellwether-hub")["spec"]["selector"]["matchLabels"];
    let pod = json!({"apiVersion": "v1", "kind": "Pod",
        "metadata": {"name": "hub", "namespace": "bellwether-system", "labels": labels},
        "spec": {"containers": [{"name": "hub", "image": "b:1"}]}});
    let parts = |object: &Value| {
        !object["kind"]
            .as_str()
            .unwrap()
            .ends_with("WebhookConfiguration")
    };
    let objects: Vec<Value> = objects.into_iter().filter(parts).chain([pod]).collect();
    let list = json!({"apiVersion": "v1", "kind": "List", "items": objects});
    let path = cluster.scratch().join("hub.json");
    std::fs::write(&path, list.to_string()).unwrap();
    cluster.shell(&format!(
        "{BELLWETHER} apply --server-side -f {}",
        path.display()
    ));
    let account = Account::of_hub(&cluster);
    let mut hub = Pod::start(
        &account,
        "hub --skip-definitions --webhook-listen 127.0.0.1:0 --webhook-secret bellwether-system/bellwether-hub-webhook",
    );
    hub.until("the hub is ready");
    let webhooks = "validatingwebhookconfiguration bellwether-hub";
    let removing = cluster.spawn(&format!("{BELLWETHER} uninstall hub --timeout 60s"));
    let deployment = "deployment bellwether-hub -n bellwether-system";
    cluster.until_field(deployment, ".spec.replicas", "0");
    assert!(
        cluster.run(&format!("{BELLWETHER} get {webhooks}")).0,
        "its process still runs"
    );
    assert!(hub.ends_when_asked());
    cluster.shell(&format!(
        "{BELLWETHER} delete pod hub -n bellwether-system --force"
    ));
    while !removing.line().starts_with("bellwether-hub is removed") {}
    cluster.until_gone(webhooks);
    cluster.until_gone("clusterrole bellwether-hub-bellwether-system");
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

/// A rollout by a placement.
pub(crate) fn roll_out(hub: &dyn Site, member: &dyn Site) {
    apply(hub, "examples/rollout/fleet.yaml");
    hub.shell(&format!(
        "{BELLWETHER} wait --for=condition=PlacementRolledOut --timeout=60s manifestworkreplicaset/shop"
    ));
    member.shell(&format!("{BELLWETHER} get deployment shop"));
}

/// A policy that is enforced. What it writes is not among what works usually have, so a role adds it.
pub(crate) fn enforce(hub: &dyn Site, member: &dyn Site) {
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
pub(crate) fn deliver(hub: &dyn Site, member: &dyn Site) {
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
    let account = Account::of_hub(&hub_cluster);
    let mut hub = Pod::start(
        &account,
        "hub --skip-definitions --metrics-listen 127.0.0.1:0",
    );
    hub.until_without_missing_rights("the hub is ready");
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
        "{BELLWETHER} delete -f examples/rollout/fleet.yaml --ignore-not-found --timeout=60s"
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
    let account = Account::of_hub(&cluster);
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

#[test]
fn a_hub_that_may_not_read_is_not_ready() {
    let cluster = Fleet::only_server();
    install(
        &cluster,
        "install hub --set execution.readAll=false",
        "hub.json",
    );
    let name = "bellwether-hub-bellwether-system";
    let whole = manifests("install hub --set execution.readAll=false");
    let mut less = find(&whole, "ClusterRole", name).clone();
    less["rules"]
        .as_array_mut()
        .unwrap()
        .retain(|rule| rule["resources"] != json!(["placements"]));
    let path = cluster.scratch().join("role.json");
    std::fs::write(&path, less.to_string()).unwrap();
    cluster.shell(&format!(
        "{BELLWETHER} apply --server-side -f {}",
        path.display()
    ));
    let account = Account::of_hub(&cluster);
    let mut hub = Pod::start(
        &account,
        "hub --skip-definitions --metrics-listen 127.0.0.1:0",
    );
    let lines = hub.until("metrics are at http://");
    let line = lines.last().unwrap();
    let address = line.trim_start_matches("metrics are at http://");
    let address = address.trim_end_matches("/metrics").to_owned();
    hub.until("may not list placements.cluster.open-cluster-management.io");
    let answer = get(&address, "/readyz");
    assert!(answer.starts_with("HTTP/1.1 503"), "{answer}");
    assert!(answer.contains("caches are not complete"), "{answer}");
    // It is ready as soon as it may.
    install(
        &cluster,
        "install hub --set execution.readAll=false",
        "hub.json",
    );
    hub.until("the hub is ready");
    assert!(get(&address, "/readyz").ends_with("ok: leading\n"));
    assert!(hub.ends_when_asked());
}

/// The manifests pass `kubectl apply --dry-run=server` of every version of the API server that is installed.
#[tokio::test(flavor = "multi_thread")]
async fn manifests_pass_real_api_servers() {
    match Assets::find_all() {
        Ok(all) => {
            for assets in all {
                pass_dry_run(&assets).await;
            }
        }
        Err(why) => bellwether_testkit::skip(why),
    }
}

async fn pass_dry_run(assets: &Assets) {
    let cluster = RealCluster::start(assets).await.unwrap();
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
    let Some(sites) = Real::start(2).await else {
        return;
    };
    let done = tokio::task::spawn_blocking(move || on_real_servers(&sites[0], &sites[1]));
    done.await.unwrap();
}

fn on_real_servers(hub: &Real, edge: &Real) {
    install(hub, "install hub", "hub.json");
    let account = Account::of_hub(hub);
    let first = Pod::start(&account, "hub --skip-definitions");
    first.until_without_missing_rights("the hub is ready");
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
