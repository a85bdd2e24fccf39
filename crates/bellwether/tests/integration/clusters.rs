//! A fleet of fifty in one process, and a cluster of another process that joins it: the real binary,
//! its real commands, and the examples.

#![allow(clippy::unwrap_used, reason = "helpers of tests")]

use crate::fleet;

use std::time::Duration;

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
    for expected in [
        "replica set default/shop   stopped   Progressive   1 of 3 clusters done, 1 failing, since",
        "▸ everywhere   cluster1   done\n",
        "cluster2   failing: Deployment shop: 0 of 2 replicas are updated and available, pod shop-",
        "and 1 more: Unschedulable: 0/1 nodes are available",
        "cluster3   does not start\n",
        "stops here: the rollout has 1 failure, 0 tolerated (maxFailures)\n",
        "next: bellwether why cluster2 mwrs/shop · bellwether status work/shop",
    ] {
        assert!(status.contains(expected), "{expected}: {status}");
    }
    let why = bellwether(&fleet, "why cluster2 mwrs/shop");
    assert!(why.contains("on cluster2: pod shop-"), "{why}");
    let describe = "bellwether describe deployment/shop -n default --context cluster2";
    assert!(why.contains(describe), "{why}");
    let all = bellwether(&fleet, "why replicaset/shop");
    assert!(all.contains("cluster3 does not start"), "{all}");
    let reasons = ["ClustersStarted", "ClustersFailing", "RolloutStopped"];
    // Events of one second are gathered.
    let are_recorded = || {
        let events = bellwether(&fleet, "get events");
        reasons.iter().all(|reason| events.contains(reason))
    };
    let is_in_time = (0..100).any(|_| {
        are_recorded() || {
            fleet::pause();
            false
        }
    });
    assert!(is_in_time, "{}", bellwether(&fleet, "get events"));
    control(&fleet);
    cordon(false);
    bellwether(
        &fleet,
        "wait --for=condition=PlacementRolledOut --timeout=60s manifestworkreplicaset/shop",
    );
    assert_eq!(works(), ["cluster1", "cluster2", "cluster3"]);
    works_as_trees(&fleet);
}

/// A stopped rollout is aborted, resumed and retried.
fn control(fleet: &Fleet) {
    bellwether(fleet, "rollout abort mwrs/shop");
    let wait = "wait --for=jsonpath={.metadata.annotations.work\\.bellwether\\.dev/rollout-aborted} mwrs/shop";
    bellwether(fleet, wait);
    let status = bellwether(fleet, "status mwrs/shop");
    assert!(status.contains("shop   aborted"), "{status}");
    assert!(
        status.contains("next: bellwether why cluster2 mwrs/shop"),
        "{status}"
    );
    let resumed = bellwether(fleet, "rollout resume mwrs/shop");
    assert_eq!(resumed, "mwrs/shop resumed\n");
    let again = fleet.fails(&format!("{BELLWETHER} rollout resume mwrs/shop"));
    assert_eq!(again, "error: mwrs/shop is neither paused nor aborted\n");
    bellwether(fleet, "rollout retry mwrs/shop");
    let unknown = fleet.fails(&format!("{BELLWETHER} status mwrs/shpo"));
    assert_eq!(
        unknown,
        "error: there is no replica set shpo in namespace default; did you mean shop?\n"
    );
    let unknown = fleet.fails(&format!("{BELLWETHER} why clutser2 mwrs/shop"));
    assert!(unknown.contains("did you mean cluster2?"), "{unknown}");
    let json = json(fleet, "status mwrs/shop");
    assert_eq!(json["clusters"]["total"], 3, "{json}");
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
    // It removes its credentials first: with them a cluster needs no token.
    agent.ends();
    let join_again = format!(
        "{BELLWETHER} cluster join --cluster-name edge --hub-kubeconfig {bootstrap} --kubeconfig {member}"
    );
    let refused = fleet.fails(&join_again);
    assert!(
        refused.contains("the hub does not know the token"),
        "{refused}"
    );
    // A token for one name is good for no other.
    bellwether(
        &fleet,
        &format!("token create --cluster-name another --labels region=moon --write {bootstrap}"),
    );
    let other = format!(
        "{BELLWETHER} cluster join --cluster-name other --hub-kubeconfig {bootstrap} --kubeconfig {member} --timeout 1"
    );
    let refused = fleet.fails(&other);
    assert!(
        refused.contains("may ask for certificates of the cluster another only"),
        "{refused}"
    );
    let tokens = json(&fleet, "token list");
    let token = &tokens["items"][0];
    assert_eq!(token["clusterName"], "another", "{tokens}");
    assert_eq!(token["labels"]["region"], "moon");
    let id = token["id"].as_str().unwrap();
    bellwether(&fleet, &format!("token delete {id}"));
    assert_eq!(json(&fleet, "token list")["items"], serde_json::json!([]));
    // Without a promise it takes a person.
    bellwether(&fleet, &format!("token create --write {bootstrap}"));
    let refused = fleet.fails(&other);
    assert!(
        refused.contains("was not accepted within 1 seconds"),
        "{refused}"
    );
    let list = bellwether(&fleet, "cluster list");
    let line = list.lines().find(|line| line.starts_with("other"));
    assert!(line.is_some_and(|line| line.contains("pending")), "{list}");
    bellwether(&fleet, "cluster accept other");
    bellwether(&fleet, "cluster label other tier=canary");
    let again = fleet.fails(&format!("{BELLWETHER} cluster label other tier=prod"));
    assert!(again.contains("--overwrite"), "{again}");
    bellwether(&fleet, "cluster taint other maintenance=soon:NoSelectIfNew");
    let other = json(&fleet, "get managedcluster other");
    assert_eq!(other["metadata"]["labels"]["tier"], "canary");
    let taints = other["spec"]["taints"].as_array().unwrap();
    assert!(
        taints.iter().any(|it| it["key"] == "maintenance"),
        "{taints:?}"
    );
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

/// The names of all contexts of a fleet's kubeconfig.
fn contexts(fleet: &Fleet) -> Vec<String> {
    let text = std::fs::read_to_string(fleet.kubeconfig()).unwrap();
    let config = bellwether_json::yaml::value_from_yaml(&text).unwrap();
    let contexts = config["contexts"].as_array().unwrap().iter();
    contexts
        .map(|it| it["name"].as_str().unwrap().to_owned())
        .collect()
}

fn members(fleet: &Fleet) -> Vec<String> {
    let list = json(fleet, "cluster list");
    let items = list["items"].as_array().unwrap().iter();
    items
        .map(|it| it["metadata"]["name"].as_str().unwrap().to_owned())
        .collect()
}

#[test]
fn what_the_data_directory_has_runs_and_a_detached_member_stays_detached() {
    let mut fleet = Fleet::start_with(&["--clusters", "4"]);
    // Detached, its agent has ended: a work in its namespace is nobody's.
    bellwether(&fleet, "cluster detach cluster2 --timeout 60");
    let path = fleet.directory().join("work.yaml");
    let works = ["cluster1", "cluster2"].map(|name| {
        format!(
            "---\napiVersion: work.open-cluster-management.io/v1\nkind: ManifestWork\nmetadata: {{name: late, namespace: {name}}}\nspec: {{workload: {{manifests: [{{apiVersion: v1, kind: ConfigMap, metadata: {{name: late, namespace: default}}}}]}}}}\n"
        )
    });
    // That of the detached member comes first.
    std::fs::write(&path, format!("{}{}", works[1], works[0])).unwrap();
    bellwether(&fleet, &format!("apply -f {}", path.display()));
    bellwether(
        &fleet,
        "wait --for=condition=Applied --timeout=60s -n cluster1 manifestwork/late",
    );
    let ignored = json(&fleet, "get manifestwork late -n cluster2");
    assert_eq!(ignored["status"]["conditions"], Value::Null, "{ignored}");
    let absent = "get configmap late -n default --context cluster2";
    fleet.fails(&format!("{BELLWETHER} {absent}"));

    fleet.set_arguments(&[]);
    fleet.kill_and_restart();
    assert_eq!(members(&fleet), ["cluster1", "cluster3", "cluster4"]);
    let all = ["cluster1", "cluster2", "cluster3", "cluster4", "hub"];
    assert_eq!(contexts(&fleet), all);
    // Asking for as many as there are changes nothing.
    fleet.set_arguments(&["--clusters", "4"]);
    fleet.kill_and_restart();
    assert_eq!(members(&fleet), ["cluster1", "cluster3", "cluster4"]);
    // What runs with it is kept by the server alone as well.
    fleet.kill();
    let data = fleet.directory().display();
    let server = Process::start(
        &format!("apiserver --listen 127.0.0.1:0 --data-dir {data}"),
        "API server ready",
    );
    assert_eq!(contexts(&fleet), all);
    let refused = fleet.fails(&format!(
        "{BELLWETHER} up --listen 127.0.0.1:0 --data-dir {data}"
    ));
    assert!(refused.contains("another bellwether runs"), "{refused}");
    drop(server);
    let refused = fleet.fails(&format!(
        "{BELLWETHER} up --clusters 1 --listen 127.0.0.1:0 --data-dir {data}"
    ));
    assert!(refused.contains("add --remove"), "{refused}");
    fleet.set_arguments(&["--clusters", "1", "--remove"]);
    fleet.restart();
    assert_eq!(members(&fleet), ["cluster1"]);
    assert_eq!(contexts(&fleet), ["cluster1", "hub"]);
    // A member of that name is a new one.
    fleet.set_arguments(&["--clusters", "2"]);
    fleet.kill_and_restart();
    assert_eq!(members(&fleet), ["cluster1", "cluster2"]);
}

#[test]
fn a_detached_member_joins_again_by_command() {
    let mut fleet = Fleet::start_with(&["--clusters", "1"]);
    bellwether(&fleet, "cluster detach cluster1 --timeout 60");
    let bootstrap = fleet.directory().join("bootstrap.yaml");
    let bootstrap = bootstrap.display();
    bellwether(
        &fleet,
        &format!("token create --cluster-name cluster1 --write {bootstrap}"),
    );
    bellwether(
        &fleet,
        &format!(
            "cluster join --cluster-name cluster1 --hub-kubeconfig {bootstrap} --context cluster1"
        ),
    );
    fleet.kill_and_restart();
    bellwether(
        &fleet,
        "wait --for=condition=ManagedClusterConditionAvailable --timeout=60s managedcluster/cluster1",
    );
    // An authority that is lost is not replaced silently. Without it, members join again.
    fleet.kill();
    let data = fleet.directory().to_owned();
    std::fs::remove_file(data.join("ca.key")).unwrap();
    let refused = fleet.fails(&format!(
        "{BELLWETHER} up --listen 127.0.0.1:0 --data-dir {}",
        data.display()
    ));
    assert!(refused.contains("ca.key is missing"), "{refused}");
    std::fs::remove_file(data.join("ca.crt")).unwrap();
    fleet.restart();
    let has_asked = || json(&fleet, "get csr")["items"].as_array().unwrap().len() > 1;
    assert!(soon(has_asked), "it does not join again");
}

/// A small disk, which ends with the test; nothing where that is not allowed.
struct SmallDisk(tempfile::TempDir);

impl SmallDisk {
    fn mount() -> Option<Self> {
        let directory = tempfile::tempdir().unwrap();
        let mounted = std::process::Command::new("mount")
            .args(["-t", "tmpfs", "-o", "size=24m", "tmpfs"])
            .arg(directory.path())
            .output();
        let is_mounted = mounted.is_ok_and(|output| output.status.success());
        is_mounted.then_some(Self(directory))
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        let _ = std::process::Command::new("umount")
            .arg("--lazy")
            .arg(self.0.path())
            .output();
    }
}

#[test]
fn a_full_disk_is_said_and_the_hub_recovers_by_itself() {
    let Some(disk) = SmallDisk::mount() else {
        bellwether_testkit::skip("only root may mount a small disk");
        return;
    };
    let mut fleet = Fleet::start_in(disk.0.path(), &["--clusters", "0"]);
    let namespace = |fleet: &Fleet, name: &str| {
        let path = fleet.scratch().join(format!("{name}.yaml"));
        let text = format!("{{apiVersion: v1, kind: Namespace, metadata: {{name: {name}}}}}");
        std::fs::write(&path, text).unwrap();
        format!("{BELLWETHER} apply -f {}", path.display())
    };
    fleet.shell(&namespace(&fleet, "before"));
    let filler = disk.0.path().join("filler");
    let full = "no space left on the disk of the data directory";
    fill(&filler);
    // There may be room within what the store has taken already.
    let large = fleet.scratch().join("large.yaml");
    let data = "x".repeat(900_000);
    let mut refused = String::new();
    for number in 0..40 {
        let map = format!(
            "apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: m{number}}}\ndata: {{a: {data}}}\n"
        );
        std::fs::write(&large, map).unwrap();
        let apply = format!("{BELLWETHER} apply --server-side -f {}", large.display());
        let (succeeded, _, errors) = fleet.run(&apply);
        if !succeeded {
            refused = errors;
            break;
        }
    }
    assert!(refused.contains(full), "{refused}");
    let unready = get(&fleet, "/readyz").unwrap_err();
    assert!(unready.contains(full), "{unready}");
    get(&fleet, "/livez").unwrap();
    fleet.shell(&format!("{BELLWETHER} get namespace before"));
    std::fs::remove_file(&filler).unwrap();
    let is_ready = || get(&fleet, "/readyz").is_ok();
    assert!(soon(is_ready), "it does not recover");
    fleet.shell(&namespace(&fleet, "after"));
    fleet.kill_and_restart();
    for name in ["before", "after"] {
        fleet.shell(&format!("{BELLWETHER} get namespace {name}"));
    }
}

/// Gets a path of the hub.
fn get(fleet: &Fleet, path: &str) -> Result<String, String> {
    block_on(async {
        let client = fleet.client().await;
        let request = http::Request::get(path).body(Vec::new()).unwrap();
        let answer = client.request_text(request).await;
        answer.map_err(|error| error.to_string())
    })
}

/// Waits until something is so.
fn soon(is_so: impl Fn() -> bool) -> bool {
    (0..200).any(|_| {
        is_so() || {
            block_on(async { tokio::time::sleep(Duration::from_millis(100)).await });
            false
        }
    })
}

fn block_on<T>(future: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(future)
}

/// Writes a file that takes all the space there is.
fn fill(path: &std::path::Path) {
    use std::io::Write as _;
    let mut file = std::fs::File::create(path).unwrap();
    let piece = vec![0; 4096];
    while file.write_all(&piece).is_ok() {}
}
