//! What policies cost on an embedded fleet: one update of a root policy until every cluster has evaluated it and
//! the hub says so, one change on one cluster, and nothing at all. The hub, its controller, the members and their
//! agents are this one process. A report, never a verdict.
//!
//! Words choose other numbers of members than 1,000, and then of policies than 50. What one change costs is measured
//! with a tenth of the members as well, and with a tenth of the policies.

#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    missing_docs,
    reason = "a benchmark"
)]

use std::sync::Arc;
use std::time::Duration;

use bellwether_api::cluster::ManagedCluster;
use bellwether_api::policy::{ComplianceState, PlacementBinding, Policy, RolloutStatus};
use bellwether_apiserver::Identity;
use bellwether_controllers::policy_agent::PolicyAgents;
use bellwether_controllers::{Hub, policy_propagator};
use bellwether_runtime::{Cache, Change, Clock, ControllerMetrics, ObjectKey, Selection};
use bellwether_testkit::{Embedded, Usage, place_all};
use futures::{StreamExt as _, stream};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{DeleteParams, Patch, PatchParams, PostParams};
use kube::{Api, Client};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use tokio::sync::Notify;
use tokio::time::Instant;

/// How many requests are under way at a time.
const AT_ONCE: usize = 32;
/// How often one cluster changes.
const CHANGES: u32 = 20;
/// How long idleness is measured.
const IDLE: Duration = Duration::from_secs(10);
/// How long what is under way may take to end.
const SETTLE: Duration = Duration::from_secs(5);
/// The cluster that changes.
const ONE: &str = "c00000";

#[tokio::main]
async fn main() {
    let chosen: Vec<usize> = std::env::args().filter_map(|it| it.parse().ok()).collect();
    let members = chosen.first().copied().unwrap_or(1000);
    let policies = chosen.get(1).copied().unwrap_or(50);
    let started = Measured::begin();
    let bench = Bench::start(members).await;
    println!("{members} members, {policies} policies");
    println!("members with their agents   {}", started.end(members));
    let first = Measured::begin();
    bench.create(policies).await;
    println!(
        "first evaluation of all     {}",
        first.end(members * policies)
    );
    tokio::time::sleep(SETTLE).await;

    let idle = Measured::begin();
    tokio::time::sleep(IDLE).await;
    println!("nothing, for {IDLE:?}           {}", idle.end(1));

    let update = Measured::begin();
    let patch = Patch::Merge(json!({"spec": policy(1, 2)["spec"]}));
    let roots: Api<Policy> = Api::namespaced(bench.client.clone(), "default");
    let params = PatchParams::default();
    roots.patch("policy-1", &params, &patch).await.unwrap();
    let is_done = |it: &Policy| stage(it) == Some(RolloutStatus::Succeeded);
    bench.until(1, |it| !is_done(it)).await;
    bench.until(1, is_done).await;
    println!("update of one policy        {}", update.end(members));
    measure_changes(&bench, members, policies).await;
    drop(bench);
    for (members, policies) in [
        ((members / 10).max(1), policies),
        (members, (policies / 10).max(2)),
    ] {
        let small = Bench::start(members).await;
        small.create(policies).await;
        tokio::time::sleep(SETTLE).await;
        measure_changes(&small, members, policies).await;
    }
}

/// One cluster changes again and again.
async fn measure_changes(bench: &Bench, members: usize, policies: usize) {
    let changes = Measured::begin();
    for _ in 0..CHANGES {
        bench.change_one(true).await;
        bench.change_one(false).await;
    }
    println!(
        "changes on 1 of {members:<5} x {policies:<3} {}",
        changes.end(2 * CHANGES as usize)
    );
}

fn stage(root: &Policy) -> Option<RolloutStatus> {
    root.status.as_ref()?.rollout_status.clone()
}

/// What something costs.
struct Measured {
    began: Instant,
    usage: Usage,
}

impl Measured {
    fn begin() -> Self {
        Self {
            began: Instant::now(),
            usage: Usage::own(),
        }
    }

    fn end(self, count: usize) -> String {
        let now = Usage::own();
        let cpu = now.cpu_since(self.usage);
        let each = cpu / u32::try_from(count).unwrap();
        let took = self.began.elapsed();
        let memory = now.resident / (1 << 20);
        format!("{took:>8.1?}, {cpu:>8.1?} CPU, {each:>8.1?} CPU each, {memory} MiB")
    }
}

/// A hub, and members with agents.
struct Bench {
    client: Client,
    one: Client,
    roots: Cache<Policy>,
    changed: Arc<Notify>,
    tasks: Vec<tokio::task::JoinHandle<()>>,
}

impl Drop for Bench {
    fn drop(&mut self) {
        self.tasks.iter().for_each(tokio::task::JoinHandle::abort);
    }
}

impl Bench {
    async fn start(size: usize) -> Self {
        let clock = Clock::system();
        let embedded = Embedded::fleet(clock.clone()).await;
        let (server, client) = (&embedded.server, embedded.hub());
        let names: Vec<String> = (0..size).map(|number| format!("c{number:05}")).collect();
        place(&client, &names).await;
        let metrics = ControllerMetrics::default();
        let random = |bytes: &mut [u8]| bytes.fill(7);
        let agents = PolicyAgents::start(client.clone(), None, clock.clone(), random, metrics);
        for name in &names {
            server.add_cluster(name).await.unwrap();
            let member = server.service(name, Identity::administrator("agent"));
            agents.add_member(name, member.reach());
        }
        let hub = Hub::new(client.clone(), clock);
        let changed: Arc<Notify> = Arc::default();
        let notify = Arc::clone(&changed);
        let on_change = move |_: Change<'_, Policy>| notify.notify_one();
        let roots = Selection::labels("!policy.open-cluster-management.io/root-policy");
        Self {
            one: server.client(ONE, Identity::administrator("bench")),
            roots: Cache::start(Api::all(client.clone()), roots, on_change),
            tasks: vec![
                tokio::spawn(agents.run()),
                tokio::spawn(policy_propagator::run(hub)),
            ],
            client,
            changed,
        }
    }

    /// Creates policies, and waits until all clusters comply with them.
    async fn create(&self, policies: usize) {
        let roots: Api<Policy> = Api::namespaced(self.client.clone(), "default");
        for number in 0..policies {
            create(&roots, policy(number, 1)).await;
        }
        for number in 0..policies {
            let is_done = |it: &Policy| {
                stage(it) == Some(RolloutStatus::Succeeded)
                    && it.status_or_default().compliant == Some(ComplianceState::Compliant)
            };
            self.until(number, is_done).await;
        }
    }

    async fn until(&self, number: usize, holds: impl Fn(&Policy) -> bool) {
        let key = ObjectKey::new("default", &format!("policy-{number}"));
        while !self.roots.get(&key).is_some_and(|it| holds(&it)) {
            self.changed.notified().await;
        }
    }

    /// One cluster gets an object that it must not have, or loses it, and the root policy says so.
    async fn change_one(&self, is_there: bool) {
        let objects: Api<ConfigMap> = Api::namespaced(self.one.clone(), "default");
        let state = if is_there {
            create(&objects, json!({"metadata": {"name": "weed"}})).await;
            ComplianceState::NonCompliant
        } else {
            let params = DeleteParams::default();
            objects.delete("weed", &params).await.unwrap();
            ComplianceState::Compliant
        };
        let is_said = |root: &Policy| {
            let status = root.status_or_default();
            status.status.first().and_then(|it| it.compliant.clone()) == Some(state.clone())
        };
        self.until(0, is_said).await;
    }
}

async fn create<K>(api: &Api<K>, object: Value)
where
    K: Serialize + DeserializeOwned + Clone + std::fmt::Debug,
{
    let object = serde_json::from_value(object).unwrap();
    api.create(&PostParams::default(), &object).await.unwrap();
}

/// Clusters, and a placement that has chosen all of them for all policies.
async fn place(client: &Client, names: &[String]) {
    place_all(client, names).await;
    let clusters: Api<ManagedCluster> = Api::all(client.clone());
    stream::iter(names)
        .for_each_concurrent(AT_ONCE, async |name| {
            create(&clusters, json!({"metadata": {"name": name}, "spec": {}})).await;
        })
        .await;
    let group = "policy.open-cluster-management.io";
    let subject =
        |number| json!({"apiGroup": group, "kind": "Policy", "name": format!("policy-{number}")});
    let subjects: Vec<Value> = (0..1000).map(subject).collect();
    let bindings: Api<PlacementBinding> = Api::namespaced(client.clone(), "default");
    let reference = json!({"apiGroup": "cluster.open-cluster-management.io", "kind": "Placement", "name": "all"});
    let binding =
        json!({"metadata": {"name": "all"}, "placementRef": reference, "subjects": subjects});
    create(&bindings, binding).await;
}

/// A policy with one template of one object. The first only looks, at an object that must not be there.
fn policy(number: usize, version: usize) -> Value {
    let (action, compliance, name) = match number {
        0 => ("inform", "mustnothave", "weed".to_owned()),
        _ => ("enforce", "musthave", format!("part-{number}")),
    };
    json!({"metadata": {"name": format!("policy-{number}")}, "spec": {
        "disabled": false, "remediationAction": action,
        "policy-templates": [{"objectDefinition": {
            "apiVersion": "policy.open-cluster-management.io/v1", "kind": "ConfigurationPolicy",
            "metadata": {"name": format!("part-{number}")},
            "spec": {"remediationAction": action, "severity": "low", "object-templates": [
                {"complianceType": compliance, "objectDefinition": {"apiVersion": "v1", "kind": "ConfigMap",
                    "metadata": {"name": name, "namespace": "default"},
                    "data": {"version": version.to_string(), "text": "x".repeat(300)}}},
            ]},
        }}],
    }})
}
