//! What policies cost on an embedded hub: one update of a root policy until every replica has it and its status
//! is back, one report of one cluster, and nothing at all. The hub, its controller and agents that answer at once
//! are this one process. A report, never a verdict.
//!
//! Words choose other numbers of members than 1,000, and then of policies than 50.

#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    missing_docs,
    reason = "a benchmark"
)]

use std::sync::Arc;
use std::time::Duration;

use bellwether_api::cluster::{ManagedCluster, Placement, PlacementDecision};
use bellwether_api::policy::{ComplianceState, PlacementBinding, Policy, RolloutStatus};
use bellwether_apiserver::{ApiServer, HUB, Identity};
use bellwether_controllers::{Hub, policy_propagator};
use bellwether_runtime::{Cache, Change, Clock, ObjectKey, Selection};
use bellwether_store::{Options, Store};
use bellwether_testkit::Usage;
use futures::{StreamExt as _, stream};
use k8s_openapi::api::core::v1::Namespace;
use kube::api::{Patch, PatchParams, PostParams};
use kube::{Api, Client};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use tokio::sync::mpsc;
use tokio::time::Instant;

/// How many requests are under way at a time.
const AT_ONCE: usize = 32;
/// How many reports of single clusters are measured.
const REPORTS: u32 = 20;
/// How many clusters a decision names at most.
const PER_DECISION: usize = 100;
/// How long idleness is measured.
const IDLE: Duration = Duration::from_secs(10);

#[tokio::main]
async fn main() {
    let chosen: Vec<usize> = std::env::args().filter_map(|it| it.parse().ok()).collect();
    let members = chosen.first().copied().unwrap_or(1000);
    let policies = chosen.get(1).copied().unwrap_or(50);
    let bench = Bench::start(members).await;
    let first = Measured::begin();
    let roots: Api<Policy> = Api::namespaced(bench.client.clone(), "default");
    for number in 0..policies {
        let root = serde_json::from_value(policy(number, 1)).unwrap();
        roots.create(&PostParams::default(), &root).await.unwrap();
    }
    for number in 0..policies {
        bench
            .until(number, |it| stage(it) == Some(RolloutStatus::Succeeded))
            .await;
    }
    println!("{members} members, {policies} policies");
    println!(
        "first propagation of all    {}",
        first.end(members * policies)
    );
    tokio::time::sleep(Duration::from_secs(2)).await;

    let idle = Measured::begin();
    tokio::time::sleep(IDLE).await;
    println!("nothing, for {IDLE:?}           {}", idle.end(1));

    let update = Measured::begin();
    let patch = Patch::Merge(json!({"spec": policy(0, 2)["spec"]}));
    let changed = roots
        .patch("policy-0", &PatchParams::default(), &patch)
        .await;
    changed.unwrap();
    bench
        .until(0, |it| stage(it) != Some(RolloutStatus::Succeeded))
        .await;
    bench
        .until(0, |it| stage(it) == Some(RolloutStatus::Succeeded))
        .await;
    println!("update of one policy        {}", update.end(members));

    let reports = Measured::begin();
    for _ in 0..REPORTS {
        for state in [ComplianceState::NonCompliant, ComplianceState::Compliant] {
            bench.report_one(&state).await;
        }
    }
    println!(
        "reports of one cluster      {}",
        reports.end(2 * REPORTS as usize)
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
            usage: usage(),
        }
    }

    fn end(self, count: usize) -> String {
        let now = usage();
        let cpu = now.cpu_since(self.usage);
        let each = cpu / u32::try_from(count).unwrap();
        let took = self.began.elapsed();
        let memory = now.resident / (1 << 20);
        format!("{took:>8.1?}, {cpu:>8.1?} CPU, {each:>8.1?} CPU each, {memory} MiB")
    }
}

fn usage() -> Usage {
    Usage::of(std::process::id()).unwrap_or_default()
}

/// A hub with agents that report at once.
struct Bench {
    client: Client,
    roots: Cache<Policy>,
    _tasks: Vec<tokio::task::JoinHandle<()>>,
    _replicas: Cache<Policy>,
}

impl Bench {
    async fn start(size: usize) -> Self {
        let clock = Clock::system();
        let now = clock.clone();
        let store = Store::in_memory(Options::new(Arc::new(move || now.now())));
        let server = ApiServer::new(store, clock.clone());
        server.add_cluster(HUB).await.unwrap();
        for definition in bellwether_api::definitions() {
            server.ensure(HUB, definition).await.unwrap();
        }
        let client = server.client(HUB, Identity::administrator("bench"));
        place(&client, size).await;
        let hub = Hub::new(client.clone(), clock);
        let (sender, mut written) = mpsc::unbounded_channel::<Arc<Policy>>();
        let root = "policy.open-cluster-management.io/root-policy";
        let replicas = Cache::start(
            Api::all(client.clone()),
            Selection::labels(root),
            move |change: Change<'_, Policy>| {
                let is_asked = |it: &Arc<Policy>| {
                    let status = it.status_or_default();
                    status.observed_generation != it.metadata.generation
                        || status.rollout_status == Some(RolloutStatus::Progressing)
                };
                if let Some(replica) = change.new.filter(|it| is_asked(it)) {
                    let _ = sender.send(Arc::clone(replica));
                }
            },
        );
        let agent = client.clone();
        let agents = tokio::spawn(async move {
            let replicas = stream::poll_fn(move |context| written.poll_recv(context));
            let reports = replicas.map(|it| report(&agent, it, ComplianceState::Compliant));
            reports
                .buffer_unordered(AT_ONCE)
                .for_each(async |()| {})
                .await;
        });
        let not_replicas = Selection::labels(&format!("!{root}"));
        let roots = Cache::start(Api::all(client.clone()), not_replicas, |_| {});
        Self {
            _tasks: vec![agents, tokio::spawn(policy_propagator::run(hub))],
            client,
            roots,
            _replicas: replicas,
        }
    }

    async fn until(&self, number: usize, holds: impl Fn(&Policy) -> bool) {
        let key = ObjectKey::new("default", &format!("policy-{number}"));
        while !self.roots.get(&key).is_some_and(|it| holds(&it)) {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    }

    /// One cluster reports something else, and the root policy says so.
    async fn report_one(&self, state: &ComplianceState) {
        let replicas: Api<Policy> = Api::namespaced(self.client.clone(), "c00000");
        let replica = replicas.get("default.policy-0").await.unwrap();
        report(&self.client, Arc::new(replica), state.clone()).await;
        let is_said = |root: &Policy| {
            let status = root.status_or_default();
            status.status.first().and_then(|it| it.compliant.clone()) == Some(state.clone())
        };
        self.until(0, is_said).await;
    }
}

/// Writes what an agent says of a replica.
async fn report(client: &Client, replica: Arc<Policy>, state: ComplianceState) {
    let cluster = replica.metadata.namespace.clone().unwrap();
    let mut status = json!({
        "compliant": state, "observedGeneration": replica.metadata.generation,
        "details": [{"templateMeta": {"name": "part"}, "compliant": state,
            "history": [{"message": format!("{state}; notification - configmaps [part] found as specified")}]}],
    });
    let is_released = replica.status_or_default().rollout_status.is_some();
    if is_released {
        status["rolloutStatus"] = json!("Succeeded");
    }
    let replicas: Api<Policy> = Api::namespaced(client.clone(), &cluster);
    let patch = Patch::Merge(json!({ "status": status }));
    let name = replica.metadata.name.clone().unwrap();
    let written = replicas
        .patch_status(&name, &PatchParams::default(), &patch)
        .await;
    written.unwrap();
}

async fn create<K>(api: &Api<K>, object: Value)
where
    K: Serialize + DeserializeOwned + Clone + std::fmt::Debug,
{
    let object = serde_json::from_value(object).unwrap();
    api.create(&PostParams::default(), &object).await.unwrap();
}

/// Clusters, and a placement that has chosen all of them for all policies.
async fn place(client: &Client, size: usize) {
    let names: Vec<String> = (0..size).map(|number| format!("c{number:05}")).collect();
    let namespaces: Api<Namespace> = Api::all(client.clone());
    let clusters: Api<ManagedCluster> = Api::all(client.clone());
    stream::iter(&names)
        .map(async |name| {
            create(&namespaces, json!({"metadata": {"name": name}})).await;
            create(&clusters, json!({"metadata": {"name": name}, "spec": {}})).await;
        })
        .buffer_unordered(AT_ONCE)
        .for_each(async |()| {})
        .await;
    let placements: Api<Placement> = Api::namespaced(client.clone(), "default");
    create(
        &placements,
        json!({"metadata": {"name": "all"}, "spec": {}}),
    )
    .await;
    let decisions: Api<PlacementDecision> = Api::namespaced(client.clone(), "default");
    for (number, names) in names.chunks(PER_DECISION).enumerate() {
        let name = format!("all-decision-{}", number + 1);
        let label = "cluster.open-cluster-management.io/placement";
        create(
            &decisions,
            json!({"metadata": {"name": name, "labels": {(label): "all"}}}),
        )
        .await;
        let chosen = |name: &String| json!({"clusterName": name, "reason": ""});
        let chosen: Vec<Value> = names.iter().map(chosen).collect();
        let status = Patch::Merge(json!({"status": {"decisions": chosen}}));
        let params = PatchParams::default();
        decisions
            .patch_status(&name, &params, &status)
            .await
            .unwrap();
    }
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

/// A policy with one template of one object.
fn policy(number: usize, version: usize) -> Value {
    json!({"metadata": {"name": format!("policy-{number}")}, "spec": {
        "disabled": false, "remediationAction": "enforce",
        "policy-templates": [{"objectDefinition": {
            "apiVersion": "policy.open-cluster-management.io/v1", "kind": "ConfigurationPolicy",
            "metadata": {"name": format!("part-{number}")},
            "spec": {"remediationAction": "enforce", "severity": "low", "object-templates": [
                {"complianceType": "musthave", "objectDefinition": {"apiVersion": "v1", "kind": "ConfigMap",
                    "metadata": {"name": format!("part-{number}"), "namespace": "default"},
                    "data": {"version": version.to_string(), "text": "x".repeat(300)}}},
            ]},
        }}],
    }})
}
