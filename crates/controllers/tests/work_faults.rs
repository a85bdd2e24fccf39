//! Whatever goes wrong on the way, agents come to the same end: errors before and after a write took
//! effect, conflicts, lost watches, and a crash between any two requests.
//!
//! Each seed is one history. `BELLWETHER_FAULT_SEEDS` says how many are tried.

#![allow(clippy::unwrap_used, clippy::needless_pass_by_value, reason = "tests")]

mod fleet;

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::task::{Context, Poll};

use bellwether_apiserver::{ClusterService, HUB, Identity};
use bellwether_controllers::work_agent::{AgentOptions, WorkAgents};
use fleet::*;
use http::{Request, Response};
use kube::Client;
use kube::client::Body;
use serde_json::{Value, json};

/// A stream of numbers that depends on a seed alone.
struct Dice(AtomicU64);

impl Dice {
    fn roll(&self, sides: u64) -> u64 {
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

/// A server that may fail before or after it did what was asked, or end a watch at once.
#[derive(Clone)]
struct Faulty {
    inner: ClusterService,
    faults: Arc<Faults>,
}

type Answer = Response<bellwether_apiserver::Body>;

impl tower::Service<Request<Body>> for Faulty {
    type Response = Answer;
    type Error = std::io::Error;
    type Future = Pin<Box<dyn Future<Output = Result<Answer, std::io::Error>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), std::io::Error>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let (mut inner, faults) = (self.inner.clone(), Arc::clone(&self.faults));
        Box::pin(async move {
            let lost = || Err(std::io::Error::other("connection lost"));
            let fault = if faults.on.load(Ordering::SeqCst) {
                faults.dice.roll(24)
            } else {
                99
            };
            match fault {
                0 | 1 => return lost(),
                2 => {
                    // The answer gets lost, but not the write.
                    let _ = inner.call(request).await;
                    return lost();
                }
                3 => {
                    faults.crash.notify_one();
                    // Long enough for the crash to come first.
                    tokio::time::sleep(std::time::Duration::from_secs(1)).await;
                    return lost();
                }
                4 => {
                    tokio::time::sleep(std::time::Duration::from_millis(faults.dice.roll(500)))
                        .await;
                }
                _ => {}
            }
            let Ok(answer) = inner.call(request).await;
            Ok(answer)
        })
    }
}

struct Agents {
    task: tokio::task::JoinHandle<()>,
}

fn start(fleet: &Fleet, faults: &Arc<Faults>) -> Agents {
    let client = |cluster: &str| {
        let inner = fleet
            .server
            .service(cluster, Identity::administrator("agent"));
        Client::new(
            Faulty {
                inner,
                faults: Arc::clone(faults),
            },
            "default",
        )
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
    let fleet = Fleet::without_agents(AgentOptions::default(), &[MEMBER]).await;
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
        let pause = std::time::Duration::from_millis(
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

#[test]
fn every_history_comes_to_the_same_end() {
    let run = |seed: u64, with_faults: bool| {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .start_paused(true)
            .build()
            .unwrap();
        runtime.block_on(history(seed, with_faults))
    };
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
    let seeds = std::env::var("BELLWETHER_FAULT_SEEDS")
        .ok()
        .and_then(|it| it.parse().ok())
        .unwrap_or(25);
    for seed in 1..=seeds {
        let found = run(seed, true);
        assert_eq!(found, expected, "seed {seed}: {found:#}");
    }
}
