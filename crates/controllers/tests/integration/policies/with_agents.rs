//! The hub and the agents of its members together: what members really do while a policy is rolled out.
//! `BELLWETHER_POLICY_MEMBERS` says how many members a fleet has whose hub and agents are killed.

use std::pin::Pin;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::task::{Context, Poll};

use bellwether_agent::policy::PolicyAgents;
use bellwether_apiserver::{ClusterService, Identity};
use bellwether_runtime::ControllerMetrics;
use bytes::Bytes;
use http::{Method, Request, Response};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt as _, Full};
use kube::Client;
use kube::client::Body;
use tower::Service as _;

use super::*;
use crate::work_faults::Dice;

/// The version that a replica names.
const HASH: &str = "policy.open-cluster-management.io/rollout-hash";
/// How often hub or agents are ended in the middle of something.
const KILLS: usize = 200;

/// The object that the policy wants on every member.
pub(super) fn banner(text: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"name": "banner", "namespace": "default"}, "data": {"text": text}})
}

/// A policy that wants the banner, enforced group by group.
pub(super) fn banner_policy(text: &str) -> Value {
    let mut policy = policy("banner", json!({"type": "ProgressivePerGroup"}));
    policy["spec"]["policy-templates"][0]["objectDefinition"]["spec"] = json!({
        "remediationAction": "inform", "severity": "low",
        "object-templates": [{"complianceType": "musthave", "objectDefinition": banner(text)}],
    });
    policy
}

/// The text of the banner that a replica wants.
fn text_of(replica: &Policy) -> String {
    let definition = &replica.spec.policy_templates[0].object_definition;
    let banner = &definition["spec"]["object-templates"][0]["objectDefinition"];
    banner["data"]["text"]
        .as_str()
        .unwrap_or_default()
        .to_owned()
}

fn is_enforced(replica: &Policy) -> bool {
    let action = replica.spec.remediation_action.as_ref();
    action.is_some_and(RemediationAction::is_enforce)
}

/// Which of the two a client belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Side {
    Hub,
    Agents,
}

/// Makes the clients of hub and agents.
type Clients = Box<dyn Fn(&Fleet, Side, &str) -> Client>;

/// A hub and members with their agents.
struct Together {
    fleet: Fleet,
    members: Vec<String>,
    clients: Clients,
    hub: JoinHandle<()>,
    agents: JoinHandle<()>,
}

impl Together {
    /// A canary group of that size, and groups of the same size as given of all others.
    async fn start(size: usize, canaries: usize, per_group: usize, clients: Clients) -> Self {
        let members: Vec<String> = (1..=size).map(|it| format!("cluster{it:02}")).collect();
        let names: Vec<&str> = members.iter().map(String::as_str).collect();
        let fleet = Fleet::without_agents(AgentOptions::default(), &names).await;
        furnish(
            &fleet,
            &names,
            |index| json!({"canary": if index < canaries { "true" } else { "false" }}),
        )
        .await;
        fleet
            .create(HUB, placement_of("all", canary_groups(per_group)))
            .await;
        fleet.create(HUB, binding("all", "all", "banner")).await;
        let mut together = Self {
            hub: tokio::spawn(std::future::ready(())),
            agents: tokio::spawn(std::future::ready(())),
            fleet,
            members,
            clients,
        };
        together.restart(Side::Hub);
        together.restart(Side::Agents);
        together
    }

    /// Ends one side at once, whatever it is doing, and starts it again.
    fn restart(&mut self, side: Side) {
        self.fleet.writes.change_from_outside();
        let client = |cluster: &str| (self.clients)(&self.fleet, side, cluster);
        match side {
            Side::Hub => {
                self.hub.abort();
                let hub = Hub::new(client(HUB), self.fleet.clock.clone());
                self.hub = tokio::spawn(policy_propagator::run(hub));
            }
            Side::Agents => {
                self.agents.abort();
                let (clock, metrics) = (self.fleet.clock.clone(), ControllerMetrics::default());
                let random = |bytes: &mut [u8]| bytes.fill(7);
                let agents = PolicyAgents::start(client(HUB), None, clock, random, metrics);
                for member in &self.members {
                    agents.add_member(member, client(member));
                }
                self.agents = tokio::spawn(agents.run());
            }
        }
    }

    async fn edit(&self, text: &str) {
        let policy = banner_policy(text);
        let patch = json!({"spec": policy["spec"]});
        self.fleet.merge(HUB, &policy, patch).await;
    }

    async fn stage(&self) -> Value {
        let root = self.fleet.get(HUB, &banner_policy("")).await;
        root.unwrap()["status"]["rolloutStatus"].clone()
    }

    /// Waits until the rollout is there.
    async fn until(&self, stage: &str) {
        let is_there =
            |it: Option<&Value>| it.is_some_and(|it| it["status"]["rolloutStatus"] == stage);
        let root = banner_policy("");
        let what = format!("the rollout is {stage}");
        self.fleet.until(HUB, &root, &what, is_there).await;
    }

    /// True if the rollout of this text is complete.
    async fn is_done(&self, text: &str) -> bool {
        let texts = self.texts().await;
        texts.iter().all(|it| it == text) && self.stage().await == "Succeeded"
    }

    /// The texts that members have, in their order.
    async fn texts(&self) -> Vec<Value> {
        let mut texts = Vec::new();
        for member in &self.members {
            let found = self.fleet.get(member, &banner("")).await;
            texts.push(found.unwrap_or_default()["data"]["text"].clone());
        }
        texts
    }
}

#[tokio::test(start_paused = true)]
async fn one_member_of_fifty_that_cannot_comply_stops_the_others_until_it_is_repaired() {
    let clients: Clients = Box::new(|fleet, _, cluster| fleet.controller_client(cluster));
    let together = Together::start(50, 5, 15, clients).await;
    let fleet = &together.fleet;
    fleet.create(HUB, banner_policy("one")).await;
    together.until("Succeeded").await;
    assert_eq!(together.texts().await, vec![json!("one"); 50]);
    // Nobody can change the data of an immutable ConfigMap.
    let immutable = json!({"immutable": true});
    fleet.merge("cluster03", &banner(""), immutable).await;
    fleet.pass(1000).await;
    together.edit("two").await;
    together.until("Failed").await;
    // A member that waits is told to inform, and changes nothing, whatever happens there.
    fleet
        .merge("cluster20", &banner(""), json!({"data": {"text": "drift"}}))
        .await;
    fleet.pass(120_000).await;
    let texts = together.texts().await;
    let of_canaries = ["two", "two", "one", "two", "two"];
    assert_eq!(&texts[..5], of_canaries);
    assert_eq!(texts[19], "drift");
    let others = texts[5..].iter().filter(|it| **it != "drift");
    assert!(others.clone().all(|it| *it == "one") && others.count() == 44);
    assert_eq!(together.stage().await, "Failed");
    fleet.delete("cluster03", &banner("")).await;
    together.until("Succeeded").await;
    assert_eq!(together.texts().await, vec![json!("two"); 50]);
}

/// One thing that was written.
#[derive(Debug)]
enum Entry {
    /// A replica, as the hub has it after a write of its spec or of its status.
    Replica(Box<Policy>),
    /// The banner of a member, which is about to have this text.
    Banner(String, String),
}

/// Everything that hub and agents write, in one order for all clusters; and when one of them is ended.
struct Journal {
    entries: Mutex<Vec<Entry>>,
    dice: Dice,
    /// How many requests are left until somebody is ended.
    left: AtomicI64,
    ended: tokio::sync::watch::Sender<Option<Side>>,
}

impl Journal {
    fn new(seed: u64) -> Arc<Self> {
        Arc::new(Self {
            entries: Mutex::default(),
            dice: Dice(AtomicU64::new(seed)),
            left: AtomicI64::new(-1),
            ended: tokio::sync::watch::Sender::new(None),
        })
    }

    fn clients(self: &Arc<Self>) -> Clients {
        let journal = Arc::clone(self);
        Box::new(move |fleet, side, cluster| {
            let identity = Identity::administrator("controller");
            let recorded = Recorded {
                inner: fleet.server.service(cluster, identity),
                cluster: cluster.to_owned(),
                side,
                journal: Arc::clone(&journal),
            };
            Client::new(recorded, "default")
        })
    }

    /// Lets hub and agents work for a while, and returns who of them is to be ended then.
    async fn next_end(&self) -> Side {
        let most = if self.dice.roll(2) == 0 { 30 } else { 600 };
        let left = i64::try_from(self.dice.roll(most)).unwrap();
        let mut ended = self.ended.subscribe();
        self.left.store(left, Ordering::SeqCst);
        let wait = ended.wait_for(Option::is_some);
        let found = tokio::time::timeout(Duration::from_secs(5), wait).await;
        let side = found.ok().and_then(|found| *found.unwrap());
        self.left.store(-1, Ordering::SeqCst);
        self.ended.send_replace(None);
        // Where there is nothing to do, either may be ended.
        let sides = [Side::Hub, Side::Agents];
        side.unwrap_or_else(|| sides[usize::try_from(self.dice.roll(2)).unwrap()])
    }

    /// True for the request at which a side is ended.
    fn is_last(&self, side: Side) -> bool {
        let is_last = self.left.fetch_sub(1, Ordering::SeqCst) == 0;
        if is_last {
            self.ended.send_replace(Some(side));
        }
        is_last
    }

    /// Checks that nobody got a version as it is meant before all groups before complied with it, and that
    /// members did nothing that they were not told to do.
    fn check(&self, members: &[String], group: impl Fn(usize) -> usize) -> usize {
        let group_of = |name: &str| {
            let place = members.iter().position(|it| it == name);
            group(place.unwrap())
        };
        let mut complied: BTreeSet<(String, String)> = BTreeSet::new();
        let mut released: BTreeSet<(String, String)> = BTreeSet::new();
        for entry in &*self.entries.lock() {
            match entry {
                Entry::Banner(member, text) => {
                    let is_told = released.contains(&(member.clone(), text.clone()));
                    assert!(is_told, "{member} enforces {text} early");
                }
                Entry::Replica(replica) if is_enforced(replica) => {
                    let cluster = replica.metadata.namespace.clone().unwrap();
                    let version = replica.metadata.annotations.as_ref().unwrap()[HASH].clone();
                    for member in members
                        .iter()
                        .filter(|it| group_of(it) < group_of(&cluster))
                    {
                        let is_done = complied.contains(&(version.clone(), member.clone()));
                        assert!(is_done, "{cluster} is released before {member} complied");
                    }
                    released.insert((cluster.clone(), text_of(replica)));
                    let status = replica.status_or_default();
                    if status.observed_generation == replica.metadata.generation
                        && status.compliant == Some(ComplianceState::Compliant)
                    {
                        complied.insert((version, cluster));
                    }
                }
                Entry::Replica(_) => {}
            }
        }
        let versions: BTreeSet<&String> = complied.iter().map(|(version, _)| version).collect();
        versions.len()
    }
}

/// A cluster, to which nothing is written that is not in the journal.
#[derive(Clone)]
struct Recorded {
    inner: ClusterService,
    cluster: String,
    side: Side,
    journal: Arc<Journal>,
}

type Content = UnsyncBoxBody<Bytes, std::io::Error>;

impl Recorded {
    /// Notes what a request is about to write on a member.
    async fn note(&self, request: Request<Body>) -> Request<Body> {
        let query = request.uri().query().unwrap_or_default();
        let is_write = [Method::POST, Method::PUT].contains(request.method());
        let is_banner = request.uri().path().contains("/configmaps");
        if self.cluster == HUB || !is_write || !is_banner || query.contains("dryRun") {
            return request;
        }
        let (parts, body) = request.into_parts();
        let bytes = body.collect().await.unwrap().to_bytes();
        let object: Value = serde_json::from_slice(&bytes).unwrap_or_default();
        let text = object["data"]["text"].as_str().unwrap_or_default();
        let entry = Entry::Banner(self.cluster.clone(), text.to_owned());
        self.journal.entries.lock().push(entry);
        Request::from_parts(parts, Body::from(bytes.to_vec()))
    }

    async fn answer(mut self, request: Request<Body>) -> Result<Response<Content>, std::io::Error> {
        if request.uri().to_string().contains("watch=true") {
            let Ok(answer) = self.inner.call(request).await;
            return Ok(answer.map(|body| body.map_err(std::io::Error::other).boxed_unsync()));
        }
        let is_last = self.journal.is_last(self.side);
        if is_last && self.journal.dice.roll(2) == 0 {
            // It never gets there.
            return std::future::pending().await;
        }
        let is_replica = self.cluster == HUB
            && request.method() != Method::GET
            && request.uri().path().contains("/policies");
        let request = self.note(request).await;
        let Ok(answer) = self.inner.call(request).await;
        let (parts, body) = answer.into_parts();
        let bytes = body.collect().await.map_err(std::io::Error::other)?;
        let bytes = bytes.to_bytes();
        if is_replica
            && let Ok(policy) = serde_json::from_slice::<Policy>(&bytes)
            && let Some(labels) = &policy.metadata.labels
            && labels.contains_key(ROOT)
        {
            let entry = Entry::Replica(Box::new(policy));
            self.journal.entries.lock().push(entry);
        }
        if is_last {
            // It took effect, but nobody is there to hear of it.
            return std::future::pending().await;
        }
        let body = Full::from(bytes).map_err(|never| match never {});
        Ok(Response::from_parts(parts, body.boxed_unsync()))
    }
}

impl tower::Service<Request<Body>> for Recorded {
    type Response = Response<Content>;
    type Error = std::io::Error;
    type Future = Pin<Box<dyn Future<Output = Result<Response<Content>, std::io::Error>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), std::io::Error>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        Box::pin(self.clone().answer(request))
    }
}

#[tokio::test(start_paused = true)]
async fn hub_and_agents_that_end_at_any_request_enforce_nothing_early_and_come_to_the_same_end() {
    #[expect(
        clippy::disallowed_methods,
        reason = "how large a fleet to look at is the caller's choice"
    )]
    let members = std::env::var("BELLWETHER_POLICY_MEMBERS");
    let members = members
        .ok()
        .and_then(|it| it.parse().ok())
        .unwrap_or(9_usize);
    let canaries = members.div_ceil(5);
    let per_group = (members - canaries).div_ceil(2);
    let journal = Journal::new(11);
    let mut together = Together::start(members, canaries, per_group, journal.clients()).await;
    let mut version = 1;
    let text = |version: usize| format!("version {version}");
    together
        .fleet
        .create(HUB, banner_policy(&text(version)))
        .await;
    for _ in 0..KILLS {
        let side = journal.next_end().await;
        together.restart(side);
        if together.is_done(&text(version)).await {
            version += 1;
            together.edit(&text(version)).await;
        }
    }
    for _ in 0..1000 {
        if together.is_done(&text(version)).await {
            break;
        }
        together.fleet.pass(100).await;
    }
    assert!(together.is_done(&text(version)).await, "it comes to an end");
    let versions = journal.check(&together.members, |place| {
        match place.checked_sub(canaries) {
            None => 0,
            Some(place) => 1 + place / per_group,
        }
    });
    // In a large fleet fewer versions go to all members between so many kills.
    let least = if members > 9 { 1 } else { 2 };
    assert!(
        version > least && versions >= version - 1,
        "{versions} of {version}"
    );
}
