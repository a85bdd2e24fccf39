//! A hub that ends at any request, while applications are created, changed and deleted: nothing is left over, and nothing is
//! deleted that should stay.

use std::collections::{BTreeMap, BTreeSet};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use bellwether_apiserver::{ClusterService, Identity};
use bytes::Bytes;
use http::{Request, Response};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt as _, Full};
use kube::Client;
use kube::client::Body;
use tokio::task::JoinHandle;
use tower::Service as _;

use super::*;
use crate::work_faults::Dice;

/// How often the hub is ended in the middle of something, unless `BELLWETHER_APP_KILLS` says otherwise.
const KILLS: usize = 40;
/// The applications that are there all the time, or not.
const NAMES: [&str; 4] = ["alpha", "beta", "gamma", "delta"];

/// When the hub is ended.
pub(crate) struct Fate {
    dice: Dice,
    /// How many requests are left.
    left: AtomicI64,
    ended: tokio::sync::Notify,
}

impl Fate {
    /// Nothing is ended yet.
    pub(crate) fn new(seed: u64) -> Arc<Self> {
        Arc::new(Self {
            dice: Dice(AtomicU64::new(seed)),
            left: AtomicI64::new(-1),
            ended: tokio::sync::Notify::new(),
        })
    }

    pub(crate) fn roll(&self, sides: u64) -> u64 {
        self.dice.roll(sides)
    }

    /// Lets the hub work for a while, until it is to be ended.
    pub(crate) async fn next_end(&self) {
        let most = if self.roll(2) == 0 { 15 } else { 150 };
        let left = i64::try_from(self.roll(most)).unwrap();
        self.left.store(left, Ordering::SeqCst);
        // Where there is nothing to do, it is ended all the same.
        let _ = tokio::time::timeout(Duration::from_secs(3), self.ended.notified()).await;
        self.left.store(-1, Ordering::SeqCst);
    }
}

/// The hub's way to its server, which may end at any request.
#[derive(Clone)]
pub(crate) struct Mortal {
    pub(crate) inner: ClusterService,
    pub(crate) fate: Arc<Fate>,
}

pub(crate) type Content = UnsyncBoxBody<Bytes, std::io::Error>;

impl Mortal {
    async fn answer(mut self, request: Request<Body>) -> Result<Response<Content>, std::io::Error> {
        if request.uri().to_string().contains("watch=true") {
            let Ok(answer) = self.inner.call(request).await;
            return Ok(answer.map(|body| body.map_err(std::io::Error::other).boxed_unsync()));
        }
        let is_last = self.fate.left.fetch_sub(1, Ordering::SeqCst) == 0;
        if is_last && self.fate.roll(2) == 0 {
            // It never gets there.
            self.fate.ended.notify_one();
            return std::future::pending().await;
        }
        let Ok(answer) = self.inner.call(request).await;
        if is_last {
            // It took effect, but nobody is there to hear of it.
            self.fate.ended.notify_one();
            return std::future::pending().await;
        }
        let (parts, body) = answer.into_parts();
        let bytes = body.collect().await.map_err(std::io::Error::other)?;
        let body = Full::from(bytes.to_bytes()).map_err(|never| match never {});
        Ok(Response::from_parts(parts, body.boxed_unsync()))
    }
}

impl tower::Service<Request<Body>> for Mortal {
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

/// A fleet, and what people want to have in it.
struct Story {
    fleet: Fleet,
    fate: Arc<Fate>,
    hub: Vec<JoinHandle<()>>,
    /// By application: its components with their values, and whether they go to the member.
    wanted: BTreeMap<&'static str, Version>,
    /// The object that all versions of an application have, since it was created.
    constant: BTreeMap<&'static str, Value>,
}

#[derive(Clone)]
struct Version {
    components: BTreeMap<String, String>,
    is_on_member: bool,
}

impl Story {
    async fn start(seed: u64) -> Self {
        let fleet = Fleet::embedded().await;
        register_member(&fleet).await;
        for name in ["bystander", "alpha-bystander"] {
            let mut map = map(name);
            map["data"] = json!({"key": "theirs"});
            fleet.create(HUB, map.clone()).await;
            fleet.create(MEMBER, map).await;
        }
        let fate = Fate::new(seed);
        let mut story = Self {
            fleet,
            fate,
            hub: Vec::new(),
            wanted: BTreeMap::new(),
            constant: BTreeMap::new(),
        };
        story.restart();
        story
    }

    /// Ends the hub at once, whatever it is doing, and starts it again.
    fn restart(&mut self) {
        self.fleet.writes.change_from_outside();
        for task in self.hub.drain(..) {
            task.abort();
        }
        let inner = self
            .fleet
            .server
            .service(HUB, Identity::administrator("controller"));
        let fate = Arc::clone(&self.fate);
        let client = Client::new(Mortal { inner, fate }, "default");
        let hub = Hub::new(client, self.fleet.clock.clone());
        self.hub.push(tokio::spawn(definition::run(hub.clone())));
        self.hub.push(tokio::spawn(application::run(
            hub,
            WorkflowOptions::default(),
        )));
    }

    fn any_version(&self, name: &str) -> Version {
        let mut components = BTreeMap::new();
        let value = format!("{}", self.fate.roll(5));
        components.insert(format!("{name}-constant"), value);
        for part in ["a", "b", "c"] {
            if self.fate.roll(2) == 0 {
                let value = format!("{}", self.fate.roll(3));
                components.insert(format!("{name}-{part}"), value);
            }
        }
        Version {
            components,
            is_on_member: self.fate.roll(3) == 0,
        }
    }

    fn spec(version: &Version) -> Value {
        let components = version.components.iter();
        let components: Vec<Value> = components
            .map(|(name, value)| settings(name, value))
            .collect();
        let clusters = if version.is_on_member {
            json!([MEMBER])
        } else {
            json!(["local"])
        };
        json!({"components": components,
            "policies": [{"name": "there", "type": "topology", "properties": {"clusters": clusters}}]})
    }

    /// Somebody creates, changes or deletes an application.
    async fn act(&mut self) {
        let name = NAMES[usize::try_from(self.fate.roll(4)).unwrap()];
        let stored = self.fleet.get(HUB, &app_named(name, json!({}))).await;
        let is_leaving = stored
            .as_ref()
            .is_some_and(|app| app["metadata"]["deletionTimestamp"].is_string());
        match (stored.is_some(), self.fate.roll(4)) {
            _ if is_leaving => {}
            (true, 0) => {
                self.wanted.remove(name);
                self.constant.remove(name);
                self.fleet.delete(HUB, &app_named(name, json!({}))).await;
            }
            (true, _) => {
                let mut version = self.any_version(name);
                // An object that moves to another cluster is another object.
                version.is_on_member = self.wanted[name].is_on_member;
                let spec = Self::spec(&version);
                let app = app_named(name, json!({}));
                self.fleet.merge(HUB, &app, json!({"spec": spec})).await;
                self.wanted.insert(name, version);
            }
            (false, _) => {
                let version = self.any_version(name);
                let app = app_named(name, Self::spec(&version));
                self.fleet.create(HUB, app).await;
                self.wanted.insert(name, version);
            }
        }
    }

    /// An object that all versions have is never deleted, nor created again.
    async fn check_constants(&mut self) {
        for (name, version) in self.wanted.clone() {
            let cluster = if version.is_on_member { MEMBER } else { HUB };
            let object = map(&format!("{name}-constant"));
            let found = self.fleet.get(cluster, &object).await;
            let uid = found.map(|found| found["metadata"]["uid"].clone());
            match (self.constant.get(name), uid) {
                (None, Some(uid)) => drop(self.constant.insert(name, uid)),
                (None, None) => {}
                (Some(known), found) => {
                    assert_eq!(Some(known), found.as_ref(), "{name} has lost its object");
                }
            }
        }
    }

    /// The maps of applications on a cluster, with their values.
    async fn found(&self, cluster: &str) -> BTreeMap<String, String> {
        let all = "/api/v1/namespaces/default/configmaps";
        let maps = self.fleet.list(cluster, all).await;
        let own = maps.iter().filter(|map| {
            let labels = &map["metadata"]["labels"];
            labels["app.oam.dev/component"].is_string()
        });
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        own.map(|map| (text(&map["metadata"]["name"]), text(&map["data"]["key"])))
            .collect()
    }

    fn expected(&self, is_on_member: bool) -> BTreeMap<String, String> {
        let versions = self.wanted.values();
        let there = versions.filter(|version| version.is_on_member == is_on_member);
        there
            .flat_map(|version| version.components.clone())
            .collect()
    }

    async fn is_settled(&self) -> bool {
        self.found(HUB).await == self.expected(false)
            && self.found(MEMBER).await == self.expected(true)
            && self.leftovers().await.is_empty()
    }

    /// Trackers, revisions and works of applications that are gone, or of versions that are.
    async fn leftovers(&self) -> Vec<String> {
        let mut left = Vec::new();
        let names: BTreeSet<&str> = self.wanted.keys().copied().collect();
        for (path, most) in [
            ("/apis/core.oam.dev/v1beta1/resourcetrackers", 1),
            (
                "/apis/work.open-cluster-management.io/v1/namespaces/cluster1/manifestworks",
                1,
            ),
            (
                "/apis/core.oam.dev/v1beta1/namespaces/default/applicationrevisions",
                11,
            ),
        ] {
            let mut counts: BTreeMap<String, usize> = BTreeMap::new();
            for object in self.fleet.list(HUB, path).await {
                let owner = object["metadata"]["labels"]["app.oam.dev/name"].as_str();
                *counts
                    .entry(owner.unwrap_or_default().to_owned())
                    .or_default() += 1;
            }
            for (owner, count) in counts {
                if !names.contains(owner.as_str()) || count > most {
                    left.push(format!("{count} of {owner:?} in {path}"));
                }
            }
        }
        left
    }
}

async fn play(seed: u64, kills: usize) {
    let mut story = Story::start(seed).await;
    for _ in 0..kills {
        story.act().await;
        story.fate.next_end().await;
        story.restart();
        story.check_constants().await;
    }
    for _ in 0..600 {
        if story.is_settled().await {
            break;
        }
        story.fleet.pass(500).await;
    }
    assert_eq!(story.found(HUB).await, story.expected(false), "seed {seed}");
    assert_eq!(
        story.found(MEMBER).await,
        story.expected(true),
        "seed {seed}"
    );
    assert_eq!(story.leftovers().await, Vec::<String>::new(), "seed {seed}");
    story.check_constants().await;
    for cluster in [HUB, MEMBER] {
        for name in ["bystander", "alpha-bystander"] {
            let found = story.fleet.get(cluster, &map(name)).await.unwrap();
            assert_eq!(found["data"]["key"], "theirs", "{cluster} {name}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_hub_that_ends_at_any_request_leaves_nothing_behind_and_deletes_nothing_else() {
    #[expect(
        clippy::disallowed_methods,
        reason = "how long to look for trouble is the caller's choice"
    )]
    let kills = std::env::var("BELLWETHER_APP_KILLS").ok();
    let kills = kills.map_or(KILLS, |kills| kills.parse().unwrap());
    play(17, kills).await;
}
