//! A fleet of fifty in one process, and a cluster of another process that joins it: the real binary,
//! its real commands, and the examples.

#![allow(clippy::unwrap_used, reason = "helpers of tests")]

mod fleet;

use fleet::{Fleet, Process};
use serde_json::Value;

const BELLWETHER: &str = env!("CARGO_BIN_EXE_bellwether");

/// Runs one of our own commands.
#[track_caller]
fn bellwether(fleet: &Fleet, command: &str) -> String {
    fleet.shell(&format!("{BELLWETHER} {command}"))
}

#[track_caller]
fn json(fleet: &Fleet, command: &str) -> Value {
    let text = bellwether(fleet, &format!("{command} -o json"));
    serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error}: {text}"))
}

/// Waits until a placement has got what it asks for.
#[track_caller]
fn satisfied(fleet: &Fleet, placement: &str) -> Value {
    let wait =
        format!("wait --for=condition=PlacementSatisfied --timeout=60s placement/{placement}");
    bellwether(fleet, &wait);
    json(fleet, &format!("get placement {placement}"))["status"].clone()
}

#[test]
fn fifty_members_join_and_are_chosen_from() {
    let mut fleet = Fleet::start_with(&["--clusters", "50"]);
    let list = json(&fleet, "cluster list");
    let items = list["items"].as_array().unwrap();
    assert_eq!(items.len(), 50);
    for item in items {
        let conditions = item["status"]["conditions"].as_array().unwrap();
        for kind in ["HubAcceptedManagedCluster", "ManagedClusterJoined"] {
            let is_said = |it: &&Value| it["type"] == kind && it["status"] == "True";
            assert!(
                conditions.iter().any(|it| is_said(&it)),
                "{kind}: {conditions:?}"
            );
        }
    }
    assert!(
        bellwether(&fleet, "cluster list -l region=emea")
            .lines()
            .count()
            > 10
    );
    examples(&fleet);
    // The hub forgets nothing, and members go on with the certificates that they have.
    let requests = |fleet: &Fleet| json(fleet, "get csr")["items"].as_array().unwrap().len();
    let before = requests(&fleet);
    fleet.kill_and_restart();
    assert_eq!(
        json(&fleet, "cluster list")["items"]
            .as_array()
            .unwrap()
            .len(),
        50
    );
    assert_eq!(requests(&fleet), before);
}

/// The examples of placements, on a fleet of fifty.
fn examples(fleet: &Fleet) {
    bellwether(fleet, "apply -f examples/placement/regions.yaml");
    assert_eq!(satisfied(fleet, "emea")["numberOfSelectedClusters"], 17);
    let why = json(fleet, "why cluster2 placement/emea");
    assert_eq!(why["chosen"], false);
    assert!(why["reason"].as_str().unwrap().contains("region"), "{why}");
    assert_eq!(json(fleet, "why cluster1 placement/emea")["chosen"], true);
    let unknown = fleet.fails(&format!("{BELLWETHER} why nobody placement/emea"));
    assert!(unknown.contains("there is no cluster nobody"), "{unknown}");

    bellwether(fleet, "apply -f examples/placement/canary-groups.yaml");
    let groups = satisfied(fleet, "canary")["decisionGroups"].clone();
    let names: Vec<_> = groups
        .as_array()
        .unwrap()
        .iter()
        .map(|it| &it["decisionGroupName"])
        .collect();
    assert_eq!(names[0], "canary");
    assert!(names.iter().any(|name| *name == "staging"));
    assert!(
        groups
            .as_array()
            .unwrap()
            .iter()
            .all(|it| it["clusterCount"].as_u64() <= Some(5))
    );

    bellwether(fleet, "apply -f examples/placement/tolerations.yaml");
    satisfied(fleet, "patient");
    let decisions = json(fleet, "get placementdecisions patient-decision-1");
    let chosen = decisions["status"]["decisions"].as_array().unwrap();
    let region = |it: &Value| {
        let name = it["clusterName"].as_str().unwrap();
        json(fleet, &format!("get managedcluster {name}"))["metadata"]["labels"]["region"].clone()
    };
    assert_eq!(chosen.len(), 2);
    assert_ne!(
        region(&chosen[0]),
        region(&chosen[1]),
        "spread over regions"
    );

    let plan = json(
        fleet,
        "plan -f examples/placement/rollout.yaml --duration 1m",
    );
    let plan = &plan["rehearsals"][0];
    assert_eq!(plan["complete"], true, "{plan}");
    assert_eq!(
        plan["waves"].as_array().unwrap().len(),
        groups.as_array().unwrap().len()
    );
    // Each group takes a minute, and is watched for five.
    assert_eq!(plan["waves"][1]["atSeconds"], 360);
    let fails = "plan -f examples/placement/rollout.yaml --duration 1m --fail cluster1";
    let stopped = json(fleet, fails);
    let stopped = &stopped["rehearsals"][0];
    assert_eq!(stopped["complete"], false);
    assert_eq!(stopped["waves"].as_array().unwrap().len(), 1, "{stopped}");
}

#[test]
fn a_failing_member_stops_a_progressive_rollout_until_it_recovers() {
    let fleet = Fleet::start_with(&["--clusters", "3"]);
    let cordon = |is_cordoned: bool| {
        let path = fleet.directory().join("node.yaml");
        let node = format!(
            "{{apiVersion: v1, kind: Node, metadata: {{name: cluster2-node}}, spec: {{unschedulable: {is_cordoned}}}}}"
        );
        std::fs::write(&path, node).unwrap();
        let apply = format!("apply --context cluster2 -f {}", path.display());
        bellwether(&fleet, &apply);
    };
    cordon(true);
    bellwether(&fleet, "apply -f examples/rollout/fleet.yaml");
    bellwether(
        &fleet,
        "wait --for=jsonpath={.status.summary.degraded}=1 --timeout=60s manifestworkreplicaset/shop",
    );
    let works = || -> Vec<String> {
        let works = json(&fleet, "get manifestworks -A");
        let works = works["items"].as_array().unwrap().iter();
        works
            .map(|it| it["metadata"]["namespace"].as_str().unwrap().to_owned())
            .collect()
    };
    assert_eq!(
        works(),
        ["cluster1", "cluster2"],
        "the third does not start"
    );
    let why = |cluster: &str| {
        let why = json(&fleet, &format!("why {cluster} mwrs/shop"));
        why["placements"][0]["reason"].as_str().unwrap().to_owned()
    };
    assert_eq!(why("cluster1"), "cluster1 is done");
    let failed = "cluster2 failed: the rollout has 1 failure, 0 tolerated";
    assert_eq!(why("cluster2"), failed);
    let held = "cluster3 does not start: the rollout has 1 failure, 0 tolerated";
    assert_eq!(why("cluster3"), held);
    let status = bellwether(&fleet, "status mwrs/shop");
    assert!(status.contains(held), "{status}");
    cordon(false);
    bellwether(
        &fleet,
        "wait --for=condition=PlacementRolledOut --timeout=60s manifestworkreplicaset/shop",
    );
    assert_eq!(works(), ["cluster1", "cluster2", "cluster3"]);
    works_as_trees(&fleet);
}

/// Works of both interfaces, and one that is not there.
fn works_as_trees(fleet: &Fleet) {
    for example in ["deployment-status", "work-api"] {
        bellwether(fleet, &format!("apply -f examples/work/{example}.yaml"));
    }
    let wait = |kind: &str, path: &str| {
        let wait = format!("wait --for=jsonpath={{{path}}} --timeout=60s -n cluster1 {kind}");
        bellwether(fleet, &wait);
    };
    let values = ".status.resourceStatus.manifests[0].statusFeedback.values";
    wait(
        "manifestwork/deployment-status",
        &format!("{values}[3].name"),
    );
    let values = ".status.manifestConditions[0].statusSync.values";
    wait(
        "works.multicluster.x-k8s.io/nginx",
        &format!("{values}[1].name"),
    );
    for (name, line) in [
        ("deployment-status", "ReadyReplicas = 2"),
        ("nginx", "isReady = true"),
    ] {
        let tree = bellwether(fleet, &format!("status work/{name} -n cluster1"));
        assert!(tree.contains(line), "{tree}");
    }
    let missing = fleet.fails(&format!("{BELLWETHER} status work/nobody -n cluster1"));
    assert!(
        missing.contains("there is no work nobody in namespace cluster1"),
        "{missing}"
    );
}

#[test]
fn a_cluster_of_another_process_joins_by_command() {
    let fleet = Fleet::start_with(&["--clusters", "1"]);
    let directory = tempfile::tempdir().unwrap();
    let path = |name: &str| directory.path().join(name).display().to_string();
    let data = path("edge");
    let _member = Process::start(
        &format!("apiserver --in-memory --listen 127.0.0.1:0 --data-dir {data}"),
        "API server ready",
    );
    let (member, bootstrap) = (path("edge/kubeconfig"), path("bootstrap.yaml"));
    bellwether(
        &fleet,
        &format!("token create --cluster-name edge --write {bootstrap}"),
    );
    bellwether(
        &fleet,
        &format!(
            "cluster join --cluster-name edge --hub-kubeconfig {bootstrap} --labels region=moon --kubeconfig {member}"
        ),
    );
    let agent = Process::start(
        &format!("agent --cluster-name edge --kubeconfig {member}"),
        "is ready",
    );
    bellwether(
        &fleet,
        "wait --for=condition=ManagedClusterConditionAvailable --timeout=60s managedcluster/edge",
    );
    let edge = json(&fleet, "get managedcluster edge");
    assert_eq!(edge["metadata"]["labels"]["region"], "moon");
    bellwether(&fleet, "cluster detach edge --timeout 60");
    let gone = fleet.fails(&format!("{BELLWETHER} get managedcluster edge"));
    assert!(gone.contains("not found"), "{gone}");
    drop(agent);
    let join_again = format!(
        "{BELLWETHER} cluster join --cluster-name edge --hub-kubeconfig {bootstrap} --kubeconfig {member}"
    );
    let refused = fleet.fails(&join_again);
    assert!(
        refused.contains("the hub does not know the token"),
        "{refused}"
    );
    // Without a promise it takes a person, and a token for one name opens no other door.
    bellwether(
        &fleet,
        &format!("token create --cluster-name another --write {bootstrap}"),
    );
    let refused = fleet.fails(&format!(
        "{BELLWETHER} cluster join --cluster-name other --hub-kubeconfig {bootstrap} --kubeconfig {member} --timeout 1"
    ));
    assert!(
        refused.contains("was not accepted within 1 seconds"),
        "{refused}"
    );
    bellwether(&fleet, "cluster accept other");
}

#[test]
fn an_agent_follows_its_kubeconfig_to_another_hub() {
    let hubs = [(); 2].map(|()| Fleet::start_with(&["--clusters", "1"]));
    let directory = tempfile::tempdir().unwrap();
    let path = |name: &str| directory.path().join(name).display().to_string();
    let _member = Process::start(
        &format!(
            "apiserver --in-memory --listen 127.0.0.1:0 --data-dir {}",
            path("edge")
        ),
        "API server ready",
    );
    let (member, bootstrap) = (path("edge/kubeconfig"), path("bootstrap.yaml"));
    let mut agent = None;
    for hub in &hubs {
        bellwether(
            hub,
            &format!("token create --cluster-name edge --write {bootstrap}"),
        );
        bellwether(
            hub,
            &format!(
                "cluster join --cluster-name edge --hub-kubeconfig {bootstrap} --kubeconfig {member}"
            ),
        );
        // It is the same agent for both.
        agent.get_or_insert_with(|| {
            let command = format!("agent --cluster-name edge --kubeconfig {member}");
            Process::start(&command, "is ready")
        });
        bellwether(
            hub,
            "wait --for=condition=ManagedClusterConditionAvailable --timeout=60s managedcluster/edge",
        );
    }
}
