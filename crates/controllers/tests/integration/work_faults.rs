//! Whatever goes wrong on the way, agents come to the same end: errors before and after a write took
//! effect, answers that never come, refusals, conflicts, watches that end at any time, and a crash
//! between any two requests.
//!
//! Each seed is one history. `BELLWETHER_FAULT_SEEDS` says how many are tried, and
//! `BELLWETHER_FAULT_FIRST` from which on.

#![allow(clippy::unwrap_used, clippy::needless_pass_by_value, reason = "tests")]

use crate::fleet;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use bellwether_agent::work::{AgentOptions, WorkAgents};
use bellwether_apiserver::{ClusterService, HUB, Identity};
use bytes::Bytes;
use fleet::*;
use futures::StreamExt as _;
use http::{Request, Response};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt as _, Full, StreamBody};
use kube::Client;
use kube::client::Body;
use serde_json::{Value, json};
use tower::Service as _;

/// A stream of numbers that depends on a seed alone.
pub(crate) struct Dice(pub(crate) AtomicU64);

impl Dice {
    pub(crate) fn roll(&self, sides: u64) -> u64 {
        // SplitMix64: every state gives one number, and any seed is a good one.
        let state = self.0.fetch_add(0x9E37_79B9_7F4A_7C15, Ordering::SeqCst);
        let mut z = state.wrapping_add(0x9E37_79B9_7F4A_7C15);
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        (z ^ (z >> 31)) % sides
    }
}

/// What goes wrong, while it is switched on.
struct Faults {
    dice: Dice,
    on: AtomicBool,
    crash: tokio::sync::Notify,
}

/// One of so many requests goes wrong in each way below.
const SIDES: u64 = 30;

/// What happens to a request.
enum Fault {
    /// It never gets there.
    LostBefore,
    /// It takes effect, but its answer gets lost.
    LostAfter,
    /// The agent ends while it is under way.
    Crash,
    /// It takes a while.
    Slow(Duration),
    /// Nobody ever answers.
    Hangs,
    /// The server refuses it, with this code and reason.
    Refused(u16, &'static str),
    /// Somebody else changes the object first.
    Overtaken,
}

impl Faults {
    fn next(&self) -> Option<Fault> {
        if !self.on.load(Ordering::SeqCst) {
            return None;
        }
        Some(match self.dice.roll(SIDES) {
            0 | 1 => Fault::LostBefore,
            2 => Fault::LostAfter,
            3 => Fault::Crash,
            4 => Fault::Slow(Duration::from_millis(self.dice.roll(500))),
            5 => Fault::Hangs,
            6 => Fault::Refused(500, "InternalError"),
            7 => Fault::Refused(429, "TooManyRequests"),
            8 => Fault::Refused(409, "Conflict"),
            9 | 10 => Fault::Overtaken,
            _ => return None,
        })
    }

    /// How long a watch lives.
    fn life(&self) -> Duration {
        if self.on.load(Ordering::SeqCst) {
            Duration::from_millis(self.dice.roll(3000))
        } else {
            Duration::from_hours(1)
        }
    }
}

/// A server that may fail before or after it did what was asked, or end a watch at any time.
#[derive(Clone)]
struct Faulty {
    inner: ClusterService,
    faults: Arc<Faults>,
}

type Content = UnsyncBoxBody<Bytes, std::io::Error>;

fn lost() -> std::io::Error {
    std::io::Error::other("connection lost")
}

fn refusal(code: u16, reason: &str) -> Response<Content> {
    let status = json!({"kind": "Status", "apiVersion": "v1", "status": "Failure",
        "message": format!("injected: {reason}"), "reason": reason, "code": code});
    let body = Full::from(status.to_string()).map_err(|never| match never {});
    let answer = Response::builder().status(code);
    answer.body(body.boxed_unsync()).unwrap()
}

impl Faulty {
    /// Changes an object a little, so that anyone who saw it before saw an old one.
    async fn touch(&mut self, path: &str) {
        let number = self.faults.dice.roll(1_000_000).to_string();
        let body = json!({"metadata": {"annotations": {"somebody-else": number}}});
        let request = Request::builder()
            .method("PATCH")
            .uri(path.trim_end_matches("/status"))
            .header("content-type", "application/merge-patch+json")
            .body(Body::from(body.to_string().into_bytes()))
            .unwrap();
        let _ = self.inner.call(request).await;
    }

    async fn answer(mut self, request: Request<Body>) -> Result<Response<Content>, std::io::Error> {
        let path = request.uri().path().to_owned();
        let is_watch = request.uri().to_string().contains("watch=true");
        let is_change = matches!(request.method().as_str(), "PATCH" | "PUT");
        match self.faults.next() {
            Some(Fault::LostBefore) => return Err(lost()),
            Some(Fault::LostAfter) => {
                let _ = self.inner.call(request).await;
                return Err(lost());
            }
            Some(Fault::Crash) => {
                self.faults.crash.notify_one();
                // Long enough for the crash to come first.
                tokio::time::sleep(Duration::from_secs(1)).await;
                return Err(lost());
            }
            Some(Fault::Slow(time)) => tokio::time::sleep(time).await,
            Some(Fault::Hangs) => {
                tokio::time::sleep(Duration::from_mins(10)).await;
                return Err(lost());
            }
            Some(Fault::Refused(code, reason)) if code != 409 || is_change => {
                return Ok(refusal(code, reason));
            }
            Some(Fault::Overtaken) if is_change => self.touch(&path).await,
            _ => {}
        }
        let Ok(answer) = self.inner.call(request).await;
        if !is_watch {
            return Ok(answer.map(|body| body.map_err(std::io::Error::other).boxed_unsync()));
        }
        // A watch may end in the middle, with or without a word.
        let end = tokio::time::sleep(self.faults.life());
        let ends_badly = self.faults.dice.roll(2) == 0;
        Ok(answer.map(|body| {
            let frames = body.into_data_stream().map(|data| match data {
                Ok(data) => Ok(http_body::Frame::data(data)),
                Err(error) => Err(std::io::Error::other(error)),
            });
            let last = ends_badly.then(|| Err(lost()));
            let cut = frames.take_until(end).chain(futures::stream::iter(last));
            StreamBody::new(cut).boxed_unsync()
        }))
    }
}

/// A hub that nobody reaches while it is away.
#[derive(Clone)]
struct Absent {
    inner: ClusterService,
    is_away: tokio::sync::watch::Receiver<bool>,
}

impl Absent {
    async fn answer(mut self, request: Request<Body>) -> Result<Response<Content>, std::io::Error> {
        if *self.is_away.borrow() {
            return Err(lost());
        }
        let Ok(answer) = self.inner.call(request).await;
        // Watches that are open break when it goes away.
        let mut is_away = self.is_away;
        let gone = async move { drop(is_away.wait_for(|is_away| *is_away).await) };
        Ok(answer.map(|body| {
            let frames = body.into_data_stream().map(|data| match data {
                Ok(data) => Ok(http_body::Frame::data(data)),
                Err(error) => Err(std::io::Error::other(error)),
            });
            StreamBody::new(frames.take_until(Box::pin(gone))).boxed_unsync()
        }))
    }
}

#[tokio::test(start_paused = true)]
async fn a_hub_that_is_away_changes_nothing_on_the_member() {
    let mut fleet = Fleet::without_agents(AgentOptions::default(), &[MEMBER]).await;
    let (away, is_away) = tokio::sync::watch::channel(false);
    let agents = Identity::administrator("agent");
    let inner = fleet.server.service(HUB, agents.clone());
    let absent = Absent { inner, is_away };
    let hub = tower::service_fn(move |request| absent.clone().answer(request));
    let hub = Client::new(hub, "default");
    let (clock, options) = (fleet.clock.clone(), AgentOptions::default());
    let agents_of_hub = WorkAgents::start(hub, ADDRESS, None, clock, options).await;
    agents_of_hub.add_member(MEMBER, fleet.server.client(MEMBER, agents));
    fleet.run(agents_of_hub.run());
    let (stays, goes) = (
        work("stays", json!([config_map("a", "1")])),
        work("goes", json!([config_map("b", "1")])),
    );
    for work in [&stays, &goes] {
        fleet.create(HUB, work.clone()).await;
        fleet.until_condition(work, "Applied", "True").await;
    }
    away.send_replace(true);
    fleet.pass(1000).await;
    // Nobody hears of what happens on the hub, for much longer than works may be missing.
    fleet.delete(HUB, &goes).await;
    let change = json!({"spec": {"workload": {"manifests": [config_map("a", "2")]}}});
    fleet.merge(HUB, &stays, change).await;
    fleet.pass(3 * 3_600_000).await;
    let value = async |name: &str| {
        let object = fleet.get(MEMBER, &config_map(name, "")).await;
        object.map(|object| object["data"]["key"].clone())
    };
    assert_eq!(value("a").await, Some(json!("1")));
    assert_eq!(value("b").await, Some(json!("1")));
    // What somebody does on the member is repaired all the same.
    fleet.delete(MEMBER, &config_map("a", "")).await;
    fleet.pass(1000).await;
    assert_eq!(value("a").await, Some(json!("1")));
    away.send_replace(false);
    fleet.pass(60_000).await;
    assert_eq!(value("a").await, Some(json!("2")));
    assert_eq!(value("b").await, None);
    assert!(fleet.get(HUB, &goes).await.is_none());
    fleet.until_current(&stays, "Applied", "True").await;
}

struct Agents {
    task: tokio::task::JoinHandle<()>,
}

fn start(fleet: &Fleet, faults: &Arc<Faults>) -> Agents {
    let client = |cluster: &str| {
        let inner = fleet
            .server
            .service(cluster, Identity::administrator("agent"));
        let broken = Faulty {
            inner,
            faults: Arc::clone(faults),
        };
        let service = tower::service_fn(move |request| broken.clone().answer(request));
        Client::new(service, "default")
    };
    let (hub, member) = (client(HUB), client(MEMBER));
    let clock = fleet.clock.clone();
    let task = tokio::spawn(async move {
        let agents = WorkAgents::start(hub, ADDRESS, None, clock, AgentOptions::default()).await;
        agents.add_member(MEMBER, member);
        agents.run().await;
    });
    Agents { task }
}

fn strip(object: &Value) -> Value {
    let mut object = object.clone();
    let metadata = object["metadata"].as_object_mut().unwrap();
    for field in [
        "uid",
        "resourceVersion",
        "creationTimestamp",
        "managedFields",
        "generation",
        // What the faults leave behind.
        "annotations",
    ] {
        metadata.remove(field);
    }
    if let Some(owners) = object["metadata"]["ownerReferences"].as_array_mut() {
        for owner in owners {
            owner["uid"] = json!("");
        }
    }
    object
}

/// What is to be the same in the end: objects of the member, and what the hub was told.
async fn outcome(fleet: &Fleet) -> Value {
    let maps = fleet
        .list(MEMBER, "/api/v1/namespaces/default/configmaps")
        .await;
    let maps: Vec<Value> = maps.iter().map(strip).collect();
    let jobs = fleet
        .list(MEMBER, "/apis/batch/v1/namespaces/default/jobs")
        .await;
    let jobs: Vec<&Value> = jobs.iter().map(|job| &job["metadata"]["name"]).collect();
    let records = fleet
        .list(
            MEMBER,
            "/apis/work.open-cluster-management.io/v1/appliedmanifestworks",
        )
        .await;
    let records: Vec<Value> = records
        .iter()
        .map(|record| {
            let mut entries = record["status"]["appliedResources"].clone();
            for entry in entries.as_array_mut().into_iter().flatten() {
                entry["uid"] = json!("");
            }
            json!([record["metadata"]["name"], entries])
        })
        .collect();
    let works = fleet
        .list(
            HUB,
            "/apis/work.open-cluster-management.io/v1/manifestworks",
        )
        .await;
    let works: Vec<Value> = works
        .iter()
        .map(|work| {
            let mut conditions = work["status"]["conditions"].clone();
            for condition in conditions.as_array_mut().into_iter().flatten() {
                condition["lastTransitionTime"] = json!("");
            }
            if let Some(list) = conditions.as_array_mut() {
                list.sort_by_key(|condition| condition["type"].to_string());
            }
            json!([work["metadata"]["name"], conditions])
        })
        .collect();
    json!({"maps": maps, "jobs": jobs, "records": records, "works": works})
}

/// One history: works come, change and go while agents fail and crash.
async fn history(seed: u64, with_faults: bool) -> Value {
    let fleet = Fleet::of_works(AgentOptions::default(), &[MEMBER]).await;
    let faults = Arc::new(Faults {
        dice: Dice(AtomicU64::new(seed)),
        on: AtomicBool::new(with_faults),
        crash: tokio::sync::Notify::new(),
    });
    let mut agents = start(&fleet, &faults);
    let rules = json!({"manifestConfigs": [{
        "resourceIdentifier": {"group": "batch", "resource": "jobs", "name": "once", "namespace": "default"},
        "conditionRules": [{"type": "WellKnownCompletions"}]}]});
    let (kept, gone) = (
        work("kept", json!([config_map("a", "1"), config_map("b", "1")])),
        work("gone", json!([config_map("x", "1")])),
    );
    let done = work_with("done", json!([job("once")]), rules);
    let steps = 6;
    for step in 0..steps {
        match step {
            0 => drop(fleet.create(HUB, kept.clone()).await),
            1 => {
                fleet.create(HUB, gone.clone()).await;
                fleet.create(HUB, done.clone()).await;
            }
            2 => {
                let change = json!({"spec": {"workload": {"manifests": [config_map("b", "2"), config_map("c", "1")]}}});
                fleet.merge(HUB, &kept, change).await;
            }
            3 => fleet.delete(HUB, &gone).await,
            4 => {
                if let Some(object) = fleet.get(MEMBER, &config_map("c", "")).await {
                    fleet
                        .merge(MEMBER, &object, json!({"data": {"key": "drift"}}))
                        .await;
                }
            }
            _ => {}
        }
        // Let them work for a while; a crash ends the agents, and new ones begin.
        let pause = Duration::from_millis(
            50 + if with_faults {
                faults.dice.roll(2000)
            } else {
                500
            },
        );
        let end = tokio::time::Instant::now() + pause;
        loop {
            tokio::select! {
                () = tokio::time::sleep_until(end) => break,
                () = faults.crash.notified() => {
                    agents.task.abort();
                    agents = start(&fleet, &faults);
                }
            }
        }
    }
    faults.on.store(false, Ordering::SeqCst);
    agents.task.abort();
    let agents = start(&fleet, &faults);
    fleet.pass(130_000).await;
    if fleet.get(MEMBER, &job("once")).await.is_some() {
        fleet
            .merge_status(
                MEMBER,
                &job("once"),
                json!({"conditions": [{"type": "Complete", "status": "True"}]}),
            )
            .await;
    }
    fleet.pass(5_000).await;
    let end = outcome(&fleet).await;
    agents.task.abort();
    end
}

/// One history in a runtime of its own.
fn run(seed: u64, with_faults: bool) -> Value {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .start_paused(true)
        .build()
        .unwrap();
    runtime.block_on(history(seed, with_faults))
}

#[test]
fn every_history_comes_to_the_same_end() {
    let expected = run(0, false);
    assert_eq!(
        expected["maps"].as_array().unwrap().len(),
        2,
        "{expected:#}"
    );
    #[expect(
        clippy::disallowed_methods,
        reason = "how long to look for trouble is the caller's choice"
    )]
    let number = |name: &str| std::env::var(name).ok().and_then(|it| it.parse().ok());
    let first = number("BELLWETHER_FAULT_FIRST").unwrap_or(1);
    let last = first + number("BELLWETHER_FAULT_SEEDS").unwrap_or(25);
    let next = AtomicU64::new(first);
    std::thread::scope(|scope| {
        for _ in 0..std::thread::available_parallelism().map_or(1, usize::from) {
            scope.spawn(|| {
                loop {
                    let seed = next.fetch_add(1, Ordering::SeqCst);
                    if seed >= last {
                        break;
                    }
                    let found = run(seed, true);
                    assert_eq!(found, expected, "seed {seed}: {found:#}");
                }
            });
        }
    });
}
