//! Rollouts that people pause, abort and retry, and what is recorded of them.

use super::*;
use crate::replica_set::control::Request;
use crate::replica_set::transition::RolloutSnapshot;

/// A replica set on a hub, step by step.
struct Story {
    set: ManifestWorkReplicaSet,
    works: Vec<Arc<ManifestWork>>,
    snapshot: Option<RolloutSnapshot>,
    now: Timestamp,
}

impl Story {
    fn new(strategy: Value) -> Self {
        Self {
            set: set(strategy),
            works: Vec::new(),
            snapshot: None,
            now: NOW.parse().unwrap(),
        }
    }

    fn ask(&mut self, request: Request) {
        for (key, value) in request.annotations(&self.set, self.now) {
            let map = self.set.metadata.annotations.get_or_insert_default();
            match value {
                Some(value) => map.insert(key.to_owned(), value),
                None => map.remove(key),
            };
        }
    }

    fn pass(&mut self, seconds: i64) {
        self.now += jiff::SignedDuration::from_secs(seconds);
    }

    /// The agent of a cluster reports.
    fn reports(&mut self, cluster: &str, conditions: &[(&str, &str)]) {
        let now = self.now.to_string();
        for work in &mut self.works {
            if work.metadata.namespace.as_deref() == Some(cluster) {
                let mut value = serde_json::to_value(&**work).unwrap();
                let list: Vec<Value> = conditions
                    .iter()
                    .map(|(name, status)| {
                        json!({"type": name, "status": status, "reason": "R", "message": "",
                            "observedGeneration": 1, "lastTransitionTime": now})
                    })
                    .collect();
                let meta = json!({"ordinal": 0, "kind": "Deployment", "name": "m"});
                let broken = json!({"type": "Degraded", "status": "True", "reason": "R",
                    "message": "no image", "lastTransitionTime": now});
                let manifest = json!({"resourceMeta": meta, "conditions":
                    if conditions == FAILED { json!([broken]) } else { json!([]) }});
                value["status"] = json!({"conditions": list,
                    "resourceStatus": {"manifests": [manifest]}});
                *work = Arc::new(serde_json::from_value(value).unwrap());
            }
        }
    }

    /// The hub looks at it, and does as it decides: who starts, and which events are recorded.
    fn reconcile(&mut self) -> (Vec<String>, Vec<String>) {
        let placements = chosen(&["a", "b", "c"]);
        let observed = Observed {
            set: &self.set,
            placements: &placements,
            works: &self.works,
            cluster: &|_| None,
            now: self.now,
        };
        let (plan, report) = plan_and_report(&observed, &Programs::default(), &Memo::default());
        let report = report.unwrap();
        let before = self.snapshot.take();
        let before = before.unwrap_or_else(|| RolloutSnapshot::before(&self.set, &report));
        let events = before.transitions(&report);
        self.snapshot = Some(RolloutSnapshot::of(&report));
        let mut started = Vec::new();
        for work in &plan.write {
            let cluster = work.metadata.namespace.clone().unwrap();
            match self
                .works
                .iter_mut()
                .find(|it| it.metadata.namespace == work.metadata.namespace)
            {
                Some(known) => {
                    let status = known.status.clone();
                    let known = Arc::make_mut(known);
                    *known = ManifestWork {
                        status,
                        ..work.clone()
                    };
                }
                None => self.works.extend(stored(std::slice::from_ref(work), &[])),
            }
            started.push(cluster);
        }
        self.set.status = plan.status.or(self.set.status.take());
        let tell = |it: &crate::replica_set::transition::Transition| {
            format!("{}: {}", it.reason, it.message)
        };
        (started, events.iter().map(tell).collect())
    }

    fn starts(&mut self) -> Vec<String> {
        self.reconcile().0
    }

    fn said(&self) -> String {
        let status = self.set.status.as_ref().unwrap();
        let found = crate::lifecycle::find(&status.conditions, "PlacementRolledOut").unwrap();
        found.message.clone()
    }
}

fn one_by_one() -> Value {
    json!({"type": "Progressive", "progressive": {"maxConcurrency": 1}})
}

#[test]
fn a_paused_rollout_starts_nothing_until_it_is_resumed() {
    let mut story = Story::new(one_by_one());
    assert_eq!(story.starts(), ["a"]);
    story.ask(Request::Pause);
    story.reports("a", &WELL);
    assert!(story.starts().is_empty());
    assert_eq!(
        story.said(),
        "the rollout is paused; p: 1 of 3 clusters are done"
    );
    // A hub that starts again knows it from the object.
    story.snapshot = None;
    assert!(story.starts().is_empty());
    story.ask(Request::Resume);
    assert_eq!(story.starts(), ["b"]);
}

#[test]
fn an_aborted_rollout_leaves_the_others_until_the_template_changes() {
    let mut story = Story::new(one_by_one());
    assert_eq!(story.starts(), ["a"]);
    story.reports("a", &FAILED);
    story.ask(Request::Abort);
    assert!(story.starts().is_empty());
    assert!(story.said().starts_with("the rollout is aborted; "));
    let template = story.set.spec.manifest_work_template.as_mut().unwrap();
    template.workload.as_mut().unwrap().manifests[0]["data"] = json!({"fixed": "yes"});
    assert_eq!(story.starts(), ["a"], "the next template is rolled out");
}

#[test]
fn a_retry_gives_failed_clusters_another_minute() {
    let mut story = Story::new(one_by_one());
    assert_eq!(story.starts(), ["a"]);
    story.reports("a", &FAILED);
    assert!(story.starts().is_empty());
    let stopped = "p: stopped, the rollout has 1 failure, 0 tolerated; 0 of 3 clusters are done; \
                   a failed: Deployment m: no image";
    assert_eq!(story.said(), stopped);
    story.pass(10);
    story.ask(Request::Retry);
    assert_eq!(
        story.starts(),
        ["a"],
        "its works tell that it is tried again"
    );
    assert!(story.starts().is_empty(), "once");
    assert_eq!(story.said(), "p: 0 of 3 clusters are done");
    story.pass(59);
    story.starts();
    assert_eq!(story.said(), "p: 0 of 3 clusters are done");
    story.pass(1);
    story.starts();
    assert_eq!(story.said(), stopped, "it still fails");
    story.pass(1);
    story.ask(Request::Retry);
    story.starts();
    story.reports("a", &WELL);
    assert_eq!(story.starts(), ["b"], "it has recovered");
    story.pass(1);
    story.reports("b", &FAILED);
    story.starts();
    assert!(
        story.said().contains("b failed"),
        "a failure after a retry counts at once"
    );
}

#[test]
fn a_retry_restarts_deadlines() {
    let strategy = json!({"type": "Progressive", "progressive":
        {"maxConcurrency": 1, "progressDeadline": "5m"}});
    let mut story = Story::new(strategy);
    story.starts();
    story.pass(301);
    story.starts();
    assert!(story.said().contains("a timed out"), "{}", story.said());
    story.ask(Request::Retry);
    story.starts();
    story.starts();
    assert_eq!(story.said(), "p: 0 of 3 clusters are done");
    story.pass(301);
    story.starts();
    assert!(story.said().contains("a timed out"), "{}", story.said());
}

#[test]
fn what_happens_to_a_rollout_is_recorded_once() {
    let strategy = json!({"type": "Progressive", "progressive":
        {"maxConcurrency": 2, "minSuccessTime": "30s"}});
    let mut story = Story::new(strategy);
    let events = |story: &mut Story| {
        let told = story.reconcile().1;
        assert!(story.reconcile().1.is_empty(), "once");
        told
    };
    story.reconcile();
    assert_eq!(events(&mut story), ["ClustersStarted: started: a, b"]);
    story.reports("a", &WELL);
    let soaking = "ClustersSoaking: soaking until 2026-01-01T00:10:30Z: a";
    assert_eq!(events(&mut story), [soaking]);
    story.reports("b", &FAILED);
    let failed = "b failed: Deployment m: no image";
    let stopped = format!(
        "RolloutStopped: p: stopped, the rollout has 1 failure, 0 tolerated; \
         0 of 3 clusters are done; {failed}"
    );
    assert_eq!(
        events(&mut story),
        [format!("ClustersFailing: {failed}"), stopped]
    );
    story.ask(Request::Pause);
    let paused = "RolloutPaused: the rollout is paused: no further cluster starts";
    assert_eq!(events(&mut story), [paused]);
    story.ask(Request::Resume);
    story.pass(1);
    story.ask(Request::Retry);
    story.reconcile();
    let resumed = "RolloutResumed: the rollout goes on; p: 0 of 3 clusters are done";
    assert_eq!(events(&mut story), [resumed]);
    // What a hub that starts again sees first has been recorded by the one before.
    story.snapshot = None;
    assert!(events(&mut story).is_empty());
    story.reports("b", &WELL);
    story.pass(60);
    story.reconcile();
    story.reports("c", &WELL);
    story.reconcile();
    story.pass(60);
    let complete = "RolloutComplete: p: 3 of 3 clusters are done";
    assert_eq!(events(&mut story), [complete]);
}
