//! A fleet of two real API servers, where `KUBEBUILDER_ASSETS` says where their programs are: one is
//! the hub, the other a member, and everything between them are our own commands.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "helpers of tests")]

use crate::fleet;

use std::path::Path;

use bellwether_testkit::{Assets, RealCluster, process};
use fleet::Process;
use serde_json::Value;

/// Runs one of our own commands on a cluster, and returns what it printed.
#[track_caller]
fn bellwether(kubeconfig: &Path, command: &str) -> String {
    let (succeeded, output, errors) = run(kubeconfig, command);
    assert!(succeeded, "{command}\n{output}{errors}");
    output
}

/// Runs a command that has to fail and returns what it complained.
#[track_caller]
fn fails(kubeconfig: &Path, command: &str) -> String {
    let (succeeded, output, errors) = run(kubeconfig, command);
    assert!(!succeeded, "{command} succeeded\n{output}");
    errors
}

fn run(kubeconfig: &Path, command: &str) -> (bool, String, String) {
    let mut bellwether = fleet::bellwether();
    process::run(
        bellwether
            .args(command.split(' '))
            .env("KUBECONFIG", kubeconfig),
    )
}

#[track_caller]
fn json(kubeconfig: &Path, command: &str) -> Value {
    let text = bellwether(kubeconfig, &format!("{command} -o json"));
    serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error}: {text}"))
}

#[tokio::test(flavor = "multi_thread")]
async fn two_real_api_servers_are_a_fleet() {
    let assets = match Assets::find() {
        Ok(assets) => assets,
        Err(why) => {
            bellwether_testkit::skip(why);
            return;
        }
    };
    let mut hub = RealCluster::start(&assets).await.unwrap();
    hub.start_controllers(&assets).unwrap();
    let mut member = RealCluster::start(&assets).await.unwrap();
    member.start_controllers(&assets).unwrap();
    let (hub, member) = (hub.kubeconfig(), member.kubeconfig());
    tokio::task::spawn_blocking(move || live(&hub, &member))
        .await
        .unwrap();
}

fn live(hub: &Path, member: &Path) {
    let directory = tempfile::tempdir().unwrap();
    let path = |name: &str| directory.path().join(name).display().to_string();
    let _hub = Process::start(
        &format!("hub --kubeconfig {}", hub.display()),
        "the hub is ready",
    );
    // One is promised to be let in; for the other, which is the hub itself, a person decides.
    let (promised, open) = (path("promised.yaml"), path("open.yaml"));
    bellwether(
        hub,
        &format!("token create --cluster-name edge --write {promised}"),
    );
    bellwether(hub, &format!("token create --write {open}"));
    let join = |cluster: &Path, name: &str, more: &str| {
        let kubeconfig = cluster.display();
        format!("cluster join --kubeconfig {kubeconfig} --cluster-name {name} {more}")
    };
    let edge = format!("--hub-kubeconfig {promised} --labels region=moon");
    bellwether(member, &join(member, "edge", &edge));
    let own = format!("--hub-kubeconfig {open} --labels region=earth --timeout 2 --context real");
    let refused = fails(hub, &join(hub, "self", &own));
    assert!(
        refused.contains("was not accepted within 2 seconds"),
        "{refused}"
    );
    bellwether(hub, "cluster accept self");
    let agent = |name: &str, kubeconfig: &Path| {
        let command = format!(
            "agent --cluster-name {name} --kubeconfig {}",
            kubeconfig.display()
        );
        Process::start(&command, "is ready")
    };
    let edge = agent("edge", member);
    let _own = agent("self", hub);
    for name in ["edge", "self"] {
        bellwether(
            hub,
            &format!(
                "wait --for=condition=ManagedClusterConditionAvailable --timeout=60s managedcluster/{name}"
            ),
        );
    }
    let lease = json(hub, "get lease managed-cluster-lease -n edge");
    assert!(lease["spec"]["renewTime"].is_string(), "{lease}");
    roll_out(hub, member);
    bellwether(hub, "cluster detach edge --timeout 60");
    assert!(edge.ends(), "an agent that was let go ends by itself");
    let gone = fails(member, "get configmap fleet-settings");
    assert!(
        gone.contains("not found"),
        "what it applied goes with it: {gone}"
    );
    let secrets = json(member, "get secrets -n open-cluster-management-agent");
    assert_eq!(
        secrets["items"],
        Value::Array(Vec::new()),
        "and its credentials"
    );
    let list = json(hub, "cluster list");
    assert_eq!(list["items"].as_array().unwrap().len(), 1, "{list}");
    // A server that shows roles otherwise than they were written would have them written forever.
    let events = json(hub, "get events -n default");
    let is_about_rights = |it: &Value| it["reason"] == "RightsRestored";
    let events = events["items"].as_array().unwrap();
    assert!(
        !events.iter().any(is_about_rights),
        "nobody touched any: {events:?}"
    );
}

/// A placement chooses both, and a rollout reaches one after the other.
fn roll_out(hub: &Path, member: &Path) {
    bellwether(hub, "apply -f crates/bellwether/testdata/real-fleet.yaml");
    bellwether(
        hub,
        "wait --for=condition=PlacementRolledOut --timeout=120s manifestworkreplicaset/settings",
    );
    let decisions = json(hub, "get placementdecision both-decision-1");
    let chosen = decisions["status"]["decisions"].as_array().unwrap();
    let names: Vec<_> = chosen.iter().map(|it| &it["clusterName"]).collect();
    assert_eq!(names, ["edge", "self"]);
    for cluster in [member, hub] {
        let map = json(cluster, "get configmap fleet-settings");
        assert_eq!(map["data"]["colour"], "green");
    }
    let why = bellwether(hub, "why edge placement/both");
    assert!(why.contains("is chosen"), "{why}");
    // A change that the first member cannot apply does not reach the second.
    bellwether(
        hub,
        "apply -f crates/bellwether/testdata/real-fleet-broken.yaml",
    );
    let works = json(hub, "get manifestworks -n edge");
    let work = works["items"][0]["metadata"]["name"].as_str().unwrap();
    let refused =
        format!("wait --for=condition=Applied=False --timeout=60s manifestwork/{work} -n edge");
    bellwether(hub, &refused);
    let map = json(hub, "get configmap fleet-settings");
    assert_eq!(map["data"]["colour"], "green");
    let held = json(hub, "why self mwrs/settings");
    let held = held["placements"][0]["reason"].as_str().unwrap();
    assert_eq!(
        held,
        "self does not start: the rollout has 1 failure, 0 tolerated"
    );
}
