//! What policies cost on an embedded fleet: one update of a root policy until every cluster has evaluated it and
//! the hub says so, one change on one cluster, a change on all clusters at once, and nothing at all. The hub, its
//! controller, the members and their agents are this one process. A report, never a verdict.
//!
//! Words choose other numbers of members than 1,000, and then of policies than 50. What one change costs is measured
//! with fewer members and policies as well: it must not depend on either.

#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    missing_docs,
    reason = "a benchmark"
)]

use std::fs;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use bellwether_agent::policy::PolicyAgents;
use bellwether_api::cluster::ManagedCluster;
use bellwether_api::policy::{ComplianceState, PlacementBinding, Policy, RolloutStatus};
use bellwether_apiserver::{ApiServer, ClusterService, HUB, Identity};
use bellwether_controllers::{Hub, policy_propagator};
use bellwether_runtime::{Cache, Change, Clock, ControllerMetrics, ObjectKey, Selection};
use bellwether_testkit::{Embedded, Usage, place_all};
use futures::{StreamExt as _, stream};
use http::{Method, Request};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{DeleteParams, Patch, PatchParams, PostParams};
use kube::client::Body;
use kube::{Api, Client};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use tokio::sync::{Notify, oneshot};
use tokio::time::Instant;

/// What the program allocates with.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// How many requests are under way at a time.
const AT_ONCE: usize = 32;
/// How often one cluster changes, there and back.
const CHANGES: usize = 50;
/// How long idleness is measured.
const IDLE: Duration = Duration::from_secs(10);
/// What is under way has ended when a second costs no more than this.
const QUIET: Duration = Duration::from_millis(20);
/// Changes of one cluster are this far apart, so that none is gathered with the next.
const APART: Duration = Duration::from_millis(300);
/// The cluster that changes.
const ONE: &str = "c00000";
/// The thread of the controller of policies.
const CONTROLLER: &str = "controller";

#[tokio::main]
async fn main() {
    let chosen: Vec<usize> = std::env::args().filter_map(|it| it.parse().ok()).collect();
    let members = chosen.first().copied().unwrap_or(1000);
    let policies = chosen.get(1).copied().unwrap_or(50);
    println!("{members} members, {policies} policies");
    let started = Measured::begin(None);
    let bench = Bench::start(members).await;
    println!("members with their agents      {}", started.end(members));
    let first = Measured::begin(Some(&bench));
    bench.create(policies).await;
    println!(
        "first evaluation of all        {}",
        first.end(members * policies)
    );
    let rest = Measured::begin(Some(&bench));
    settle().await;
    println!(
        "  what follows, such as events {}",
        rest.end(members * policies)
    );

    let idle = Measured::begin(Some(&bench));
    tokio::time::sleep(IDLE).await;
    println!("nothing, for {IDLE:?}              {}", idle.end(1));

    let update = Measured::begin(Some(&bench));
    bench.update().await;
    println!("update of one policy           {}", update.end(members));
    settle().await;
    bench.change_all(members).await;
    bench.change_one_often(members, policies).await;
    drop(bench);
    for (members, policies) in [
        (10, 2),
        (100, 2),
        (members, 2),
        (10, policies),
        (100, policies),
    ] {
        let small = Bench::start(members).await;
        small.create(policies).await;
        settle().await;
        small.change_one_often(members, policies).await;
    }
}

fn stage(root: &Policy) -> Option<RolloutStatus> {
    root.status.as_ref()?.rollout_status.clone()
}

fn is_done(root: &Policy) -> bool {
    stage(root) == Some(RolloutStatus::Succeeded)
        && root.status_or_default().compliant == Some(ComplianceState::Compliant)
}

/// What something costs.
struct Measured {
    began: Instant,
    usage: Usage,
    controller: Duration,
    meter: Meter,
    before: Counts,
}

impl Measured {
    fn begin(bench: Option<&Bench>) -> Self {
        let meter = bench.map(|it| it.meter.clone()).unwrap_or_default();
        Self {
            began: Instant::now(),
            usage: Usage::own(),
            controller: time_of(CONTROLLER),
            before: meter.counts(),
            meter,
        }
    }

    fn end(self, count: usize) -> String {
        let now = Usage::own();
        let count = u32::try_from(count).unwrap();
        let all = now.cpu_since(self.usage);
        let controller = time_of(CONTROLLER).saturating_sub(self.controller);
        let counts = self.meter.counts();
        let requests = counts.requests - self.before.requests;
        let inside = counts.inside.saturating_sub(self.before.inside);
        let took = self.began.elapsed();
        let memory = now.resident / (1 << 20);
        format!(
            "{took:>8.1?}, CPU {all:>7.1?} ({:>7.1?} each), controller {controller:>7.1?} ({:>7.1?} each, {:>7.1?} of it in {requests} requests), {memory} MiB",
            all / count,
            controller / count,
            inside / count,
        )
    }
}

/// Waits until everything that is under way has ended: events, for example, are recorded after the fact.
async fn settle() {
    loop {
        let before = Usage::own();
        tokio::time::sleep(Duration::from_secs(1)).await;
        if Usage::own().cpu_since(before) <= QUIET {
            return;
        }
    }
}

/// Time on processors of the threads of that name.
fn time_of(name: &str) -> Duration {
    let threads = fs::read_dir("/proc/self/task").unwrap().flatten();
    let nanos = threads.map(|thread| {
        let read = |file: &str| fs::read_to_string(thread.path().join(file)).unwrap_or_default();
        let is_it = read("comm").trim() == name;
        let time = read("schedstat");
        let time = time.split(' ').next().and_then(|it| it.parse().ok());
        time.filter(|_| is_it).unwrap_or(0)
    });
    Duration::from_nanos(nanos.sum())
}

/// What the controller has sent.
#[derive(Clone, Copy)]
struct Counts {
    requests: u64,
    /// Statuses of the first policy.
    written: u64,
    /// Time inside of requests.
    inside: Duration,
}

/// Counts the requests of the controller, and how long the server computes for them.
#[derive(Clone, Default)]
struct Meter {
    requests: Arc<AtomicU64>,
    written: Arc<AtomicU64>,
    nanos: Arc<AtomicU64>,
    changed: Arc<Notify>,
}

impl Meter {
    fn counts(&self) -> Counts {
        Counts {
            requests: self.requests.load(Ordering::Relaxed),
            written: self.written.load(Ordering::Relaxed),
            inside: Duration::from_nanos(self.nanos.load(Ordering::Relaxed)),
        }
    }

    /// Waits for a further write of the first policy's status.
    async fn until_written(&self, since: u64) {
        while self.counts().written <= since {
            self.changed.notified().await;
        }
    }
}

/// A server that is metered.
#[derive(Clone)]
struct Metered {
    inner: ClusterService,
    meter: Meter,
}

type Answer = <ClusterService as tower::Service<Request<Body>>>::Future;

impl tower::Service<Request<Body>> for Metered {
    type Response = <ClusterService as tower::Service<Request<Body>>>::Response;
    type Error = <ClusterService as tower::Service<Request<Body>>>::Error;
    type Future = MeteredAnswer;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        tower::Service::<Request<Body>>::poll_ready(&mut self.inner, context)
    }

    fn call(&mut self, request: Request<Body>) -> MeteredAnswer {
        self.meter.requests.fetch_add(1, Ordering::Relaxed);
        let is_status = request.method() == Method::PATCH
            && request.uri().path().ends_with("/policies/policy-0/status");
        MeteredAnswer {
            inner: self.inner.call(request),
            meter: self.meter.clone(),
            is_status,
        }
    }
}

/// An answer whose making is measured.
struct MeteredAnswer {
    inner: Answer,
    meter: Meter,
    is_status: bool,
}

impl Future for MeteredAnswer {
    type Output = <Answer as Future>::Output;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let began = Instant::now();
        let answer = self.inner.as_mut().poll(context);
        let nanos = u64::try_from(began.elapsed().as_nanos()).unwrap_or(u64::MAX);
        self.meter.nanos.fetch_add(nanos, Ordering::Relaxed);
        if self.is_status && answer.is_ready() {
            self.meter.written.fetch_add(1, Ordering::Relaxed);
            self.meter.changed.notify_one();
        }
        answer
    }
}

/// A hub, and members with agents.
struct Bench {
    client: Client,
    server: ApiServer,
    meter: Meter,
    agents: tokio::task::JoinHandle<()>,
    /// Ends the controller when it is dropped.
    _end: oneshot::Sender<()>,
}

impl Drop for Bench {
    fn drop(&mut self) {
        self.agents.abort();
    }
}

/// Root policies as they change.
struct Roots {
    all: Cache<Policy>,
    changed: Arc<Notify>,
}

impl Roots {
    fn follow(client: &Client) -> Self {
        let changed: Arc<Notify> = Arc::default();
        let notify = Arc::clone(&changed);
        let on_change = move |_: Change<'_, Policy>| notify.notify_one();
        let selection = Selection::labels("!policy.open-cluster-management.io/root-policy");
        let all = Cache::start(Api::all(client.clone()), selection, on_change);
        Self { all, changed }
    }

    async fn until(&self, number: usize, holds: impl Fn(&Policy) -> bool) {
        let key = ObjectKey::new("default", &format!("policy-{number}"));
        while !self.all.get(&key).is_some_and(|it| holds(&it)) {
            self.changed.notified().await;
        }
    }
}

impl Bench {
    async fn start(size: usize) -> Self {
        let clock = Clock::system();
        let embedded = Embedded::fleet(clock.clone()).await;
        let (server, client) = (embedded.server.clone(), embedded.hub());
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
        let meter = Meter::default();
        let metered = Metered {
            inner: server.service(HUB, Identity::administrator("hub")),
            meter: meter.clone(),
        };
        let (end, ended) = oneshot::channel();
        run_controller(metered, clock, ended);
        Self {
            client,
            server,
            meter,
            agents: tokio::spawn(agents.run()),
            _end: end,
        }
    }

    /// Creates policies, and waits until all clusters comply with them.
    async fn create(&self, policies: usize) {
        let watched = Roots::follow(&self.client);
        let roots: Api<Policy> = Api::namespaced(self.client.clone(), "default");
        for number in 0..policies {
            create(&roots, policy(number, 1)).await;
        }
        for number in 0..policies {
            watched.until(number, is_done).await;
        }
    }

    /// Changes one policy, and waits until all clusters comply with it.
    async fn update(&self) {
        let watched = Roots::follow(&self.client);
        watched.all.ready().await;
        let patch = Patch::Merge(json!({"spec": policy(1, 2)["spec"]}));
        let roots: Api<Policy> = Api::namespaced(self.client.clone(), "default");
        let params = PatchParams::default();
        roots.patch("policy-1", &params, &patch).await.unwrap();
        watched.until(1, |it| !is_done(it)).await;
        watched.until(1, is_done).await;
    }

    /// Gives a cluster an object that it must not have, or takes it away.
    async fn change(&self, cluster: &str, is_there: bool) {
        let client = self
            .server
            .client(cluster, Identity::administrator("bench"));
        let objects: Api<ConfigMap> = Api::namespaced(client, "default");
        if is_there {
            create(&objects, json!({"metadata": {"name": "weed"}})).await;
        } else {
            let params = DeleteParams::default();
            objects.delete("weed", &params).await.unwrap();
        }
    }

    /// One cluster changes again and again, and each time the root policy says so.
    async fn change_one_often(&self, members: usize, policies: usize) {
        let measured = Measured::begin(Some(self));
        for number in 0..2 * CHANGES {
            let written = self.meter.counts().written;
            self.change(ONE, number % 2 == 0).await;
            self.meter.until_written(written).await;
            tokio::time::sleep(APART).await;
        }
        let text = measured.end(2 * CHANGES);
        println!("changes on 1 of {members:<5} x {policies:<3}    {text}");
        let roots: Api<Policy> = Api::namespaced(self.client.clone(), "default");
        assert!(is_done(&roots.get("policy-0").await.unwrap()));
    }

    /// All clusters change at once, there and back.
    async fn change_all(&self, members: usize) {
        let names: Vec<String> = (0..members).map(|it| format!("c{it:05}")).collect();
        let watched = Roots::follow(&self.client);
        let written = self.meter.counts().written;
        let measured = Measured::begin(Some(self));
        for (is_there, state) in [
            (true, ComplianceState::NonCompliant),
            (false, ComplianceState::Compliant),
        ] {
            stream::iter(&names)
                .map(|name| self.change(name, is_there))
                .buffer_unordered(AT_ONCE)
                .for_each(async |()| {})
                .await;
            let is_said = |root: &Policy| {
                let entries = root.status_or_default().status.clone();
                entries
                    .iter()
                    .all(|it| it.compliant.as_ref() == Some(&state))
            };
            watched.until(0, is_said).await;
        }
        let text = measured.end(2 * members);
        println!("changes on all at once         {text}");
        let written = self.meter.counts().written - written;
        println!(
            "  {written} writes of the status for {} changes",
            2 * members
        );
    }
}

/// Runs the controller in a thread of its own, which also does what the server does for its requests.
fn run_controller(metered: Metered, clock: Clock, ended: oneshot::Receiver<()>) {
    let work = move || {
        let mut builder = tokio::runtime::Builder::new_current_thread();
        let runtime = builder.enable_all().build().unwrap();
        runtime.block_on(async {
            let hub = Hub::new(Client::new(metered, "default"), clock);
            tokio::select! {
                () = policy_propagator::run(hub) => {}
                _ = ended => {}
            }
        });
    };
    std::thread::Builder::new()
        .name(CONTROLLER.to_owned())
        .spawn(work)
        .unwrap();
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
