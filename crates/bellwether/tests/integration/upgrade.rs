//! This version beside an earlier one, whose binary `BELLWETHER_OLD_BINARY` names: agents and hubs of both, a hub that is
//! replaced in the middle of a rollout, a data directory.

#![allow(clippy::unwrap_used, reason = "helpers of tests")]

use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::fleet::{self, Fleet};
use crate::install::{deliver, enforce, roll_out};
use crate::leadership::ledger;
use crate::replicas::{REQUESTS, Sent, check, orders, until_done};
use crate::site::{
    Account, BELLWETHER, Pod, Real, Site, install_by, prepare_member_by, until_available,
};

/// The binary of an earlier version; nothing, and a message, where there is none.
fn old_binary() -> Option<PathBuf> {
    let path = std::env::var_os("BELLWETHER_OLD_BINARY");
    if path.is_none() {
        bellwether_testkit::skip(
            "BELLWETHER_OLD_BINARY does not name a binary of an earlier version",
        );
    }
    path.map(PathBuf::from)
}

/// Starts a hub of one version and an agent of the other, and lets them do everything.
fn work_together(hub_program: &Path, agent_program: &Path) {
    let (hub_cluster, member_cluster) = (Fleet::only_server(), Fleet::only_server());
    install_by(hub_program, &hub_cluster, "install hub", "hub.json");
    let account = Account::of_hub(&hub_cluster);
    let mut hub = Pod::start_program(hub_program, &account, "hub --skip-definitions");
    hub.until("the hub is ready");
    let account = prepare_member_by(agent_program, &hub_cluster, &member_cluster, "edge1");
    let agent = Pod::start_program(agent_program, &account, "agent --cluster-name edge1");
    agent.until("the agent of edge1 is ready");
    until_available(&hub_cluster, "edge1");
    roll_out(&hub_cluster, &member_cluster);
    enforce(&hub_cluster, &member_cluster);
    deliver(&hub_cluster, &member_cluster);
    for what in [
        "application front back",
        "-f examples/policy/enforce.yaml",
        "-f examples/rollout/fleet.yaml",
    ] {
        hub_cluster.shell(&format!("{BELLWETHER} delete {what} --timeout=60s"));
    }
    hub_cluster.shell(&format!("{BELLWETHER} cluster detach edge1 --timeout 60"));
    agent.until("was detached from its hub");
    assert!(hub.ends_when_asked());
}

#[test]
fn a_hub_works_with_an_older_agent() {
    if let Some(old) = old_binary() {
        work_together(Path::new(BELLWETHER), &old);
    }
}

#[test]
fn an_agent_works_with_an_older_hub() {
    if let Some(old) = old_binary() {
        work_together(&old, Path::new(BELLWETHER));
    }
}

/// Replaces a hub and its agents while a rollout, a policy and a workflow are under way.
fn replace(old: &Path, hub: &dyn Site, members: &[&dyn Site]) {
    const HUB: &str = "hub --skip-definitions --workflow-http-allow loopback";
    let new = Path::new(BELLWETHER);
    let (address, keys) = ledger();
    let sent = Sent(keys);
    install_by(old, hub, "install hub", "hub.json");
    let mut before = Pod::start_program(old, &Account::of_hub(hub), HUB);
    before.until("the hub is ready");
    let names: Vec<String> = (1..=members.len()).map(|it| format!("edge{it}")).collect();
    let mut agents = Vec::new();
    for (name, member) in names.iter().zip(members) {
        let account = prepare_member_by(old, hub, *member, name);
        let arguments = format!("agent --cluster-name {name}");
        let agent = Pod::start_program(old, &account, &arguments);
        agent.until("is ready");
        until_available(hub, name);
        agents.push((agent, account, arguments));
    }
    // As the Deployment does it: definitions and roles, a process that stands by, then the end of the one before.
    hub.apply_objects("orders.json", &orders(1, &address));
    install_by(new, hub, "install hub", "hub.json");
    let mut after = Pod::start_program(new, &Account::of_hub(hub), HUB);
    after.until("standing by");
    sent.until(2);
    assert!(before.ends_when_asked());
    after.until_without_missing_rights("the hub is ready");
    until_done(hub, members, 1);
    // The agents, one after the other, while the next rollout is under way.
    hub.apply_objects("orders.json", &orders(2, &address));
    sent.until(REQUESTS + 1);
    for ((agent, account, arguments), member) in agents.iter_mut().zip(members) {
        assert!(agent.ends_when_asked());
        install_by(new, *member, &format!("install {arguments}"), "agent.json");
        *agent = Pod::start_program(new, account, arguments);
        agent.until_without_missing_rights("is ready");
    }
    until_done(hub, members, 2);
    check(hub, members.len(), 2, &sent);
    assert!(after.ends_when_asked());
}

#[test]
fn a_hub_and_its_agents_are_replaced_in_the_middle_of_a_rollout() {
    if let Some(old) = old_binary() {
        let sites = [(); 3].map(|()| Fleet::only_server());
        replace(&old, &sites[0], &[&sites[1], &sites[2]]);
    }
}

/// The same on real API servers, where they are installed.
#[tokio::test(flavor = "multi_thread")]
async fn a_hub_is_replaced_on_real_api_servers() {
    let Some(old) = old_binary() else { return };
    let Some(sites) = Real::start(3).await else {
        return;
    };
    let done = tokio::task::spawn_blocking(move || {
        replace(&old, &sites[0], &[&sites[1], &sites[2]]);
        sites
    });
    drop(done.await.unwrap());
}

#[test]
fn the_data_directory_of_an_older_binary_is_carried_on_in_the_middle_of_a_rollout() {
    let Some(old) = old_binary() else { return };
    let data = tempfile::tempdir().unwrap();
    let mut process = Command::new(&old)
        .args(["up", "--clusters", "3", "--listen", "127.0.0.1:0"])
        .arg("--data-dir")
        .arg(data.path())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(process.stdout.take().unwrap()).lines();
    let is_up = lines
        .by_ref()
        .map_while(Result::ok)
        .any(|line| line.contains("Everything is up"));
    assert!(is_up);
    std::thread::spawn(move || lines.for_each(drop));
    let before = |arguments: &str| {
        let mut command = fleet::bellwether();
        command.env("KUBECONFIG", data.path().join("kubeconfig"));
        bellwether_testkit::process::run(command.args(arguments.split(' ')))
    };
    let applied = before("apply -f examples/rollout/fleet.yaml");
    assert!(applied.0, "{applied:?}");
    let uid_of = "get deployment shop --context cluster1 -o jsonpath={.metadata.uid}";
    let uid = loop {
        let (succeeded, printed, _) = before(uid_of);
        if succeeded {
            break printed;
        }
        fleet::pause();
    };
    process.kill().unwrap();
    process.wait().unwrap();

    let fleet = Fleet::start_in(data.path(), &[]);
    fleet.shell(&format!(
        "{BELLWETHER} wait --for=condition=PlacementRolledOut --timeout=60s manifestworkreplicaset/shop"
    ));
    assert_eq!(fleet.shell(&format!("{BELLWETHER} {uid_of}")), uid);
    for cluster in ["cluster2", "cluster3"] {
        fleet.shell(&format!(
            "{BELLWETHER} get deployment shop --context {cluster}"
        ));
    }
}
