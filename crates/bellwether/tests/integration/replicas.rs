//! Two processes of a hub with the accounts of an installation, of which the one that leads is killed, paused and cut off
//! while a rollout, a policy and a workflow are under way: nothing is done twice, and the end is the same.

#![allow(clippy::unwrap_used, reason = "helpers of tests")]

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};

use crate::fleet::{self, Fleet};
use crate::leadership::{ledger, requests};
use crate::site::{Account, BELLWETHER, Pod, Real, Site, install, prepare_member, until_available};
use crate::wire::Wire;

/// Requests of the workflow of each round.
pub(crate) const REQUESTS: usize = 6;

/// What happens to the process that leads.
#[derive(Debug, Clone, Copy)]
enum Fault {
    Kill,
    Pause,
    CutOff,
}

/// A process of the hub, and its connection to the API server.
struct Replica {
    account: Account,
    wire: Wire,
    pod: Pod,
}

impl Replica {
    fn start(account: &Account) -> Self {
        let wire = Wire::to(&account.port);
        let account = Account {
            port: wire.port.clone(),
            ..account.clone()
        };
        let pod = Self::pod(&account);
        Self { account, wire, pod }
    }

    fn pod(account: &Account) -> Pod {
        Pod::start(
            account,
            "hub --skip-definitions --workflow-http-allow loopback",
        )
    }

    fn suffer(&mut self, fault: Fault) {
        match fault {
            Fault::Kill => self.pod.signal("-KILL"),
            Fault::Pause => self.pod.signal("-STOP"),
            Fault::CutOff => self.wire.cut(),
        }
    }

    /// Makes it stand by again.
    fn recover(&mut self, fault: Fault) {
        match fault {
            Fault::Kill => self.pod = Self::pod(&self.account),
            Fault::Pause => {
                self.pod.signal("-CONT");
                self.pod.until("no longer leading");
            }
            Fault::CutOff => {
                self.wire.mend();
                self.pod.until("no longer leading");
            }
        }
        self.pod.until("standing by");
    }
}

/// What is to be done in a round: a rollout and a policy with the number of the round in what they deliver, and a workflow.
pub(crate) fn orders(round: usize, address: &str) -> Vec<Value> {
    let config_map = |name: &str| {
        json!({"apiVersion": "v1", "kind": "ConfigMap",
            "metadata": {"name": name, "namespace": "default"},
            "data": {"round": round.to_string()}})
    };
    let cluster_group = "cluster.open-cluster-management.io";
    let policy_group = "policy.open-cluster-management.io";
    let named = |name: &str| json!({"name": name, "namespace": "default"});
    let policy = json!({"apiVersion": format!("{policy_group}/v1"), "kind": "ConfigurationPolicy",
        "metadata": {"name": "kept"},
        "spec": {"remediationAction": "enforce", "severity": "low", "object-templates": [
            {"complianceType": "musthave", "objectDefinition": config_map("kept")}]}});
    let mut workflow: Value = serde_json::from_str(&requests(address, REQUESTS)).unwrap();
    workflow["metadata"]["name"] = format!("tour-{round}").into();
    vec![
        json!({"apiVersion": format!("{cluster_group}/v1beta2"), "kind": "ManagedClusterSetBinding",
            "metadata": named("global"), "spec": {"clusterSet": "global"}}),
        json!({"apiVersion": format!("{cluster_group}/v1beta1"), "kind": "Placement",
            "metadata": named("everywhere"), "spec": {"clusterSets": ["global"]}}),
        json!({"apiVersion": "work.open-cluster-management.io/v1alpha1", "kind": "ManifestWorkReplicaSet",
            "metadata": named("rolled"),
            "spec": {
                "placementRefs": [{"name": "everywhere", "rolloutStrategy": {
                    "type": "Progressive", "progressive": {"maxConcurrency": 1, "minSuccessTime": "1s"}}}],
                "manifestWorkTemplate": {"workload": {"manifests": [config_map("rolled")]}}}}),
        json!({"apiVersion": format!("{policy_group}/v1"), "kind": "Policy", "metadata": named("kept"),
            "spec": {"disabled": false, "remediationAction": "enforce",
                "policy-templates": [{"objectDefinition": policy}]}}),
        json!({"apiVersion": format!("{policy_group}/v1"), "kind": "PlacementBinding",
            "metadata": named("kept"),
            "placementRef": {"apiGroup": cluster_group, "kind": "Placement", "name": "everywhere"},
            "subjects": [{"apiGroup": policy_group, "kind": "Policy", "name": "kept"}]}),
        workflow,
    ]
}

/// Waits until everything of a round is done.
pub(crate) fn until_done(hub: &dyn Site, members: &[&dyn Site], round: usize) {
    for member in members {
        for name in ["rolled", "kept"] {
            member.until_field(
                &format!("configmap {name}"),
                ".data.round",
                &round.to_string(),
            );
        }
    }
    let run = format!("workflowrun tour-{round}");
    hub.until_field(&run, ".status.status", "succeeded");
    let everywhere = members.len().to_string();
    hub.until_field("mwrs rolled", ".status.summary.available", &everywhere);
    let policy = "policies.policy.open-cluster-management.io kept";
    hub.until_field(policy, ".status.compliant", "Compliant");
}

/// The requests that a workflow sent.
pub(crate) struct Sent(pub(crate) Arc<Mutex<Vec<String>>>);

impl Sent {
    pub(crate) fn count(&self) -> usize {
        self.0.lock().unwrap().len()
    }

    pub(crate) fn until(&self, count: usize) {
        while self.count() < count {
            fleet::pause();
        }
    }
}

/// Runs everything on a hub and its members.
fn run(hub: &dyn Site, members: &[&dyn Site]) {
    let (address, keys) = ledger();
    let sent = Sent(keys);
    install(hub, "install hub", "hub.json");
    let account = Account::of_hub(hub);
    let mut leader = Replica::start(&account);
    leader.pod.until_without_missing_rights("the hub is ready");
    let mut other = Replica::start(&account);
    other.pod.until("standing by");
    let mut agents = Vec::new();
    for (number, member) in (1..).zip(members) {
        let name = format!("edge{number}");
        let account = prepare_member(hub, *member, &name);
        let agent = Pod::start(&account, &format!("agent --cluster-name {name}"));
        agent.until_without_missing_rights("is ready");
        until_available(hub, &name);
        agents.push(agent);
    }
    let faults = [Fault::Kill, Fault::Pause, Fault::CutOff];
    for (round, fault) in (1..).zip(faults) {
        hub.apply_objects("orders.json", &orders(round, &address));
        sent.until((round - 1) * REQUESTS + 2);
        leader.suffer(fault);
        other.pod.until("the hub is ready");
        if matches!(fault, Fault::Kill) {
            until_done(hub, members, round);
            leader.recover(fault);
        } else {
            // It comes back while the other one acts.
            leader.recover(fault);
            until_done(hub, members, round);
        }
        std::mem::swap(&mut leader, &mut other);
    }
    check(hub, members.len(), faults.len(), &sent);
    assert!(leader.pod.ends_when_asked() && other.pod.ends_when_asked());
}

/// Everything was done once.
pub(crate) fn check(hub: &dyn Site, members: usize, rounds: usize, sent: &Sent) {
    let works = hub.objects(
        "manifestworks -A -l work.open-cluster-management.io/manifestworkreplicaset=default.rolled",
    );
    assert_eq!(works.len(), members);
    let policies = hub.objects("policies.policy.open-cluster-management.io -A");
    let is_replicated = |it: &&Value| it["metadata"]["name"] == "default.kept";
    let policies: Vec<&Value> = policies.iter().filter(is_replicated).collect();
    assert_eq!(policies.len(), members);
    for object in works.iter().chain(policies) {
        // The server counts changes of a spec: one for each round.
        let metadata = &object["metadata"];
        assert_eq!(metadata["generation"], rounds, "{metadata}");
    }
    let keys = sent.0.lock().unwrap().clone();
    let distinct: BTreeSet<&String> = keys.iter().collect();
    assert_eq!(distinct.len(), rounds * REQUESTS, "{keys:?}");
    // A request may have been under way when its process was interrupted: then the history names it.
    let histories = (1..=rounds).map(|round| {
        hub.shell(&format!("{BELLWETHER} workflow history tour-{round}"))
            .matches("may have been carried out before")
            .count()
    });
    let named: usize = histories.sum();
    let count = keys.len();
    assert!(
        count <= distinct.len() + named,
        "{count} requests, {named} named"
    );
}

#[test]
fn nothing_is_done_twice_while_leaders_are_killed_paused_and_cut_off() {
    let hub = Fleet::only_server();
    let members = [Fleet::only_server(), Fleet::only_server()];
    run(&hub, &[&members[0], &members[1]]);
}

/// The same on real API servers, where they are installed.
#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_done_twice_on_real_api_servers() {
    let Some(sites) = Real::start(3).await else {
        return;
    };
    let done = tokio::task::spawn_blocking(move || {
        run(&sites[0], &[&sites[1], &sites[2]]);
        sites
    });
    // Servers end outside of the runtime's own threads.
    drop(done.await.unwrap());
}
