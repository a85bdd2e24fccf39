//! A hub and members with agents between them, on which every case of works runs.
//!
//! There are two beds. Embedded clusters live in this process, under a runtime whose time is paused
//! and leaps. Real ones are two kube-apiservers, the hub and `cluster1`; their time cannot be
//! paused, so the clock of the agents is set forward instead. Further members are always embedded.

#![allow(
    dead_code,
    unreachable_pub,
    clippy::unwrap_used,
    clippy::needless_pass_by_value,
    clippy::similar_names,
    reason = "shared by tests, each of which uses what it needs"
)]

pub mod objects;
pub mod real;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use bellwether_api::definition;
use bellwether_api::multicluster::{Work, WorkManifestConfig};
use bellwether_api::work::ManifestWork;
use bellwether_apiserver::{ApiServer, HUB, Identity, ServerOptions};
use bellwether_controllers::work_agent::{AgentOptions, WorkAgents};
use bellwether_runtime::{Clock, Forward};
use bellwether_testkit::{Embedded, Writes, leaping_clock};
use http::Request;
use kube::Client;
use kube::client::Body;
use serde_json::{Value, json};
use tokio::task::JoinHandle;

pub use objects::*;
use real::RealPair;

/// The address of the hub, as agents know it.
pub const ADDRESS: &str = "https://hub.example:6443";
/// The member of most tests.
pub const MEMBER: &str = "cluster1";

/// A case: it runs on any bed.
pub type Case = for<'a> fn(&'a mut Fleet) -> std::pin::Pin<Box<dyn Future<Output = ()> + 'a>>;

/// Makes a test on embedded clusters of each case, and a list of all of them for other beds.
#[macro_export]
macro_rules! cases {
    ($($name:ident),* $(,)?) => {
        mod embedded {
            $(
                #[tokio::test(start_paused = true)]
                async fn $name() {
                    super::$name(&mut $crate::fleet::Fleet::embedded().await).await;
                }
            )*
        }

        pub(crate) const ALL: &[(&str, $crate::fleet::Case)] = &[
            $((stringify!($name), |fleet| Box::pin($name(fleet))),)*
        ];
    };
}

/// Requests to a cluster, counted.
#[derive(Debug, Default)]
pub struct Counts {
    pub reads: AtomicUsize,
    pub writes: AtomicUsize,
    pub watches: AtomicUsize,
    pub events: AtomicUsize,
    /// Whether lists and watches of ConfigMaps are sent in the name of somebody who may nothing.
    pub lists_are_refused: AtomicBool,
    /// Whether nobody can create birds: their kind is defined, but not served yet.
    pub birds_are_unserved: AtomicBool,
}

impl Counts {
    pub fn writes(&self) -> usize {
        self.writes.load(Ordering::SeqCst)
    }

    pub fn reads(&self) -> usize {
        self.reads.load(Ordering::SeqCst)
    }

    pub fn all(&self) -> usize {
        self.reads() + self.writes() + self.watches.load(Ordering::SeqCst)
    }
}

/// A client that counts what it sends.
#[derive(Clone)]
struct Counting<S> {
    inner: S,
    counts: Arc<Counts>,
}

impl<S: tower::Service<Request<Body>>> tower::Service<Request<Body>> for Counting<S> {
    type Response = S::Response;
    type Error = S::Error;
    type Future = S::Future;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, mut request: Request<Body>) -> S::Future {
        let is_list = request.uri().path().ends_with("/configmaps");
        if is_list
            && request.method() == http::Method::GET
            && self.counts.lists_are_refused.load(Ordering::SeqCst)
        {
            let nobody = http::HeaderValue::from_static("nobody");
            request.headers_mut().insert("Impersonate-User", nobody);
        }
        if request.method() == http::Method::POST
            && request.uri().path().ends_with("/birds")
            && self.counts.birds_are_unserved.load(Ordering::SeqCst)
        {
            *request.uri_mut() = http::Uri::from_static("/apis/zoo.example/v0/birds");
        }
        let uri = request.uri().to_string();
        let counter = if uri.contains("watch=true") {
            &self.counts.watches
        } else if uri.contains("/events") {
            &self.counts.events
        } else if request.method() == http::Method::GET {
            &self.counts.reads
        } else {
            &self.counts.writes
        };
        counter.fetch_add(1, Ordering::SeqCst);
        self.inner.call(request)
    }
}

/// A hub, members, and agents.
pub struct Fleet {
    /// The embedded clusters: all of them, or those that are not real.
    pub server: ApiServer,
    pub clock: Clock,
    pub agents: Option<WorkAgents>,
    pub hub_counts: Arc<Counts>,
    pub member_counts: Arc<Counts>,
    pub options: AgentOptions,
    /// What controllers and agents write: no two of them may fight.
    pub writes: Writes,
    /// As whom agents speak to embedded clusters.
    pub hub_identity: Identity,
    pub member_identity: Identity,
    real: Option<(Arc<RealPair>, Forward)>,
    tasks: Vec<JoinHandle<()>>,
}

impl Fleet {
    /// Embedded clusters, with an agent for one member. The runtime's time is to be paused.
    pub async fn embedded() -> Self {
        Self::with(AgentOptions::default(), &[MEMBER]).await
    }

    /// The same on two real API servers, in which nothing of other cases is left.
    pub async fn on_real_servers(pair: &Arc<RealPair>) -> Self {
        #[expect(
            clippy::disallowed_methods,
            reason = "servers go by the time of the machine"
        )]
        let now = jiff::Timestamp::now;
        let (clock, forward) = Clock::new(now).adjustable();
        let real = Some((Arc::clone(pair), forward));
        let mut fleet = Self::bare(AgentOptions::default(), clock, real).await;
        fleet.add_member(MEMBER).await;
        fleet.start_agents(&[MEMBER]).await;
        fleet
    }

    pub async fn with(options: AgentOptions, members: &[&str]) -> Self {
        let mut fleet = Self::without_agents(options, members).await;
        fleet.start_agents(members).await;
        fleet
    }

    /// Embedded clusters, of whose works nobody takes care yet.
    pub async fn without_agents(options: AgentOptions, members: &[&str]) -> Self {
        Self::with_kinds(options, members, bellwether_api::definitions()).await
    }

    /// The same with no kinds but those of works, for tests that start thousands of fleets.
    pub async fn of_works(options: AgentOptions, members: &[&str]) -> Self {
        let kinds = [
            definition::<ManifestWork>(),
            definition::<Work>(),
            definition::<WorkManifestConfig>(),
        ];
        Self::with_kinds(options, members, kinds).await
    }

    async fn with_kinds(
        options: AgentOptions,
        members: &[&str],
        definitions: impl IntoIterator<Item = Value>,
    ) -> Self {
        let fleet = Self::bare(options, leaping_clock(), None).await;
        for definition in definitions {
            fleet.server.ensure(HUB, definition).await.unwrap();
        }
        for member in members {
            fleet.add_member(member).await;
        }
        fleet
    }

    async fn bare(
        options: AgentOptions,
        clock: Clock,
        real: Option<(Arc<RealPair>, Forward)>,
    ) -> Self {
        let server_options = ServerOptions {
            admission: bellwether_controllers::registry::admission(),
            ..ServerOptions::default()
        };
        let embedded = Embedded::with_options(clock.clone(), server_options).await;
        Self {
            server: embedded.server,
            clock,
            agents: None,
            hub_counts: Arc::default(),
            member_counts: Arc::default(),
            options,
            writes: Writes::default(),
            hub_identity: Identity::administrator("agent"),
            member_identity: Identity::administrator("agent"),
            real,
            tasks: Vec::new(),
        }
    }

    /// Whether hub and first member are real.
    pub fn is_real(&self) -> bool {
        self.real.is_some()
    }

    async fn add_member(&self, member: &str) {
        if self.real_client(member).is_none() {
            self.server.add_cluster(member).await.unwrap();
        }
        let namespace =
            json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": member}});
        match self.try_create(HUB, namespace).await {
            Err(kube::Error::Api(status)) if status.is_already_exists() => {}
            other => drop(other.unwrap()),
        }
    }

    /// Adds members, whose agents begin at once.
    pub async fn add_members(&mut self, members: &[&str]) {
        for member in members {
            self.add_member(member).await;
            let client = self.counting(member, &self.member_counts);
            self.agents.as_ref().unwrap().add_member(member, client);
        }
    }

    pub async fn start_agents(&mut self, members: &[&str]) {
        let agents = self.agents_of(ADDRESS, members).await;
        self.agents = Some(agents);
    }

    /// Agents of a hub of that address, which is this one.
    pub async fn agents_of(&mut self, address: &str, members: &[&str]) -> WorkAgents {
        let hub = self.counting(HUB, &self.hub_counts);
        let (clock, options) = (self.clock.clone(), self.options.clone());
        let agents = WorkAgents::start(hub, address, None, clock, options).await;
        for member in members {
            agents.add_member(member, self.counting(member, &self.member_counts));
        }
        self.run(agents.clone().run());
        agents
    }

    /// Runs something until the agents are killed.
    pub fn run(&mut self, task: impl Future<Output = ()> + Send + 'static) {
        self.tasks.push(tokio::spawn(task));
    }

    /// Ends the agents at once, whatever they are doing.
    pub fn kill_agents(&mut self) {
        for task in self.tasks.drain(..) {
            task.abort();
        }
        self.agents = None;
    }

    fn real_client(&self, cluster: &str) -> Option<Client> {
        let (pair, _) = self.real.as_ref()?;
        match cluster {
            HUB => Some(pair.hub.clone()),
            MEMBER => Some(pair.member.clone()),
            _ => None,
        }
    }

    /// A client for controllers and agents, whose requests are counted.
    pub fn counting(&self, cluster: &str, counts: &Arc<Counts>) -> Client {
        let counts = Arc::clone(counts);
        if let Some(client) = self.real_client(cluster) {
            let inner = tower::service_fn(move |request: Request<Body>| {
                let client = client.clone();
                async move { client.send(request).await }
            });
            let inner = self.writes.of_controllers(cluster, inner);
            return Client::new(Counting { inner, counts }, "default");
        }
        let identity = if cluster == HUB {
            &self.hub_identity
        } else {
            &self.member_identity
        };
        let inner = self.server.service(cluster, identity.clone());
        let inner = self.writes.of_controllers(cluster, inner);
        Client::new(Counting { inner, counts }, "default")
    }

    /// A client for controllers of the hub, and for agents whose requests nobody counts.
    pub fn controller_client(&self, cluster: &str) -> Client {
        self.counting(cluster, &Arc::default())
    }

    /// A client of the test itself; what it writes by other means than [`send`](Self::send) has to be
    /// noted as a change from outside.
    pub fn client(&self, cluster: &str) -> Client {
        self.real_client(cluster)
            .unwrap_or_else(|| self.server.client(cluster, Identity::administrator("test")))
    }

    /// Sends an object of any kind; its status follows.
    pub async fn create(&self, cluster: &str, object: Value) -> Value {
        let created = self.try_create(cluster, object.clone()).await;
        created.unwrap_or_else(|error| panic!("{error}: {object}"))
    }

    pub async fn try_create(&self, cluster: &str, object: Value) -> Result<Value, kube::Error> {
        self.send(
            cluster,
            "POST",
            &collection(&object),
            Some(&object),
            "application/json",
        )
        .await
    }

    /// The whole answer of an embedded cluster to an object that is sent, with its headers.
    pub async fn answer_to_create(&self, cluster: &str, object: &Value) -> http::Response<Body> {
        let request = Request::builder()
            .method("POST")
            .uri(collection(object))
            .header("content-type", "application/json")
            .body(Body::from(object.to_string().into_bytes()))
            .unwrap();
        self.client(cluster).send(request).await.unwrap()
    }

    pub async fn get(&self, cluster: &str, object: &Value) -> Option<Value> {
        self.send(cluster, "GET", &path(object), None, "application/json")
            .await
            .ok()
    }

    pub async fn merge(&self, cluster: &str, object: &Value, patch: Value) -> Value {
        let kind = "application/merge-patch+json";
        self.send(cluster, "PATCH", &path(object), Some(&patch), kind)
            .await
            .unwrap()
    }

    pub async fn merge_status(&self, cluster: &str, object: &Value, status: Value) -> Value {
        let patch = json!({ "status": status });
        let kind = "application/merge-patch+json";
        let path = format!("{}/status", path(object));
        self.send(cluster, "PATCH", &path, Some(&patch), kind)
            .await
            .unwrap()
    }

    pub async fn delete(&self, cluster: &str, object: &Value) {
        // Nobody runs pods here whose end could be waited for, and nobody collects garbage.
        let options = json!({"gracePeriodSeconds": 0, "propagationPolicy": "Background"});
        let kind = "application/json";
        self.send(cluster, "DELETE", &path(object), Some(&options), kind)
            .await
            .unwrap();
    }

    pub async fn list(&self, cluster: &str, path: &str) -> Vec<Value> {
        let list = self
            .send(cluster, "GET", path, None, "application/json")
            .await
            .unwrap();
        list["items"].as_array().cloned().unwrap_or_default()
    }

    pub async fn send(
        &self,
        cluster: &str,
        method: &str,
        path: &str,
        body: Option<&Value>,
        kind: &str,
    ) -> Result<Value, kube::Error> {
        let body = body
            .map(|body| body.to_string().into_bytes())
            .unwrap_or_default();
        let request = Request::builder()
            .method(method)
            .uri(path)
            .header("content-type", kind)
            .body(body)
            .unwrap();
        if method != "GET" {
            self.writes.change_from_outside();
        }
        self.client(cluster).request(request).await
    }

    /// Waits until something is so, and returns what it was looked for in.
    pub async fn until(
        &self,
        cluster: &str,
        object: &Value,
        what: &str,
        holds: impl Fn(Option<&Value>) -> bool,
    ) -> Option<Value> {
        // Servers of their own take their time; where time leaps, patience costs nothing.
        let (rounds, pause) = if self.is_real() { (1200, 25) } else { (800, 5) };
        let mut last = None;
        for _ in 0..rounds {
            last = self.get(cluster, object).await;
            if holds(last.as_ref()) {
                return last;
            }
            tokio::time::sleep(Duration::from_millis(pause)).await;
        }
        panic!(
            "timed out waiting until {what}; last state: {}",
            last.map_or_else(String::new, |it| format!("{it:#}"))
        );
    }

    /// Waits until a work has a condition, and returns it.
    pub async fn until_condition(&self, work: &Value, name: &str, status: &str) -> Value {
        let found = self
            .until(HUB, work, &format!("{name} is {status}"), |work| {
                work.is_some_and(|work| condition(&work["status"], name)["status"] == status)
            })
            .await;
        found.unwrap()
    }

    /// Waits until a condition speaks of the present generation.
    pub async fn until_current(&self, work: &Value, name: &str, status: &str) -> Value {
        let what = format!("{name} is {status} and current");
        let is_current = |work: Option<&Value>| {
            work.is_some_and(|work| {
                let found = condition(&work["status"], name);
                found["status"] == status
                    && found["observedGeneration"] == work["metadata"]["generation"]
            })
        };
        self.until(HUB, work, &what, is_current).await.unwrap()
    }

    /// Waits until an object is there, and returns it.
    pub async fn until_there(&self, cluster: &str, object: &Value) -> Value {
        let found = self
            .until(cluster, object, "it is there", |it| it.is_some())
            .await;
        found.unwrap()
    }

    /// Waits until an object is gone.
    pub async fn until_gone(&self, cluster: &str, object: &Value) {
        self.until(cluster, object, "it is gone", |it| it.is_none())
            .await;
    }

    /// Lets time pass, and everybody do what they want to do by then.
    pub async fn pass(&self, milliseconds: u64) {
        let span = Duration::from_millis(milliseconds);
        match &self.real {
            None => tokio::time::sleep(span).await,
            Some((_, forward)) => {
                forward.by(span);
                real::settle(self.agents.as_ref()).await;
            }
        }
    }
}

impl Drop for Fleet {
    fn drop(&mut self) {
        self.kill_agents();
        if !std::thread::panicking() {
            self.writes.assert_no_fight();
        }
    }
}
