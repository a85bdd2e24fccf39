use std::collections::BTreeMap;

use bellwether_api::meta::IntOrString;
use bellwether_api::oam::names::label;
use proptest::prelude::*;
use serde_json::json;

use super::*;

/// A cluster that does what plans say.
#[derive(Clone, Default)]
struct World {
    objects: BTreeMap<String, Value>,
}

fn key(object: &Value) -> String {
    format!(
        "{}/{}",
        object["kind"].as_str().unwrap(),
        object["metadata"]["name"].as_str().unwrap()
    )
}

impl World {
    fn seen(&self, asked: &[Value]) -> Seen {
        let mut seen = Seen::default();
        for object in asked {
            seen.insert(object, self.objects.get(&key(object)).cloned());
        }
        seen
    }

    fn carry_out(&mut self, plan: &Plan) {
        let Some(objects) = &plan.objects else { return };
        for object in objects {
            let known = self
                .objects
                .get(&key(object))
                .cloned()
                .unwrap_or(json!({"metadata": {"generation": 0}}));
            let mut new = object.clone();
            let changed = i64::from(known["spec"] != new["spec"]);
            new["metadata"]["generation"] =
                json!(known["metadata"]["generation"].as_i64().unwrap_or(0) + changed);
            new["status"] = known["status"].clone();
            self.objects.insert(key(object), new);
        }
        if plan.may_prune {
            let wanted: Vec<String> = objects.iter().map(key).collect();
            self.objects.retain(|name, _| wanted.contains(name));
        }
    }

    /// Workloads become ready, but for those whose name is given.
    fn settle(&mut self, broken: &str) {
        for (name, object) in &mut self.objects {
            let generation = object["metadata"]["generation"].clone();
            if workload::is_replicated(object) {
                let replicas = object["spec"]["replicas"].as_i64().unwrap();
                let ready = if !broken.is_empty() && name.contains(broken) {
                    0
                } else {
                    replicas
                };
                object["status"] = json!({"observedGeneration": generation, "replicas": replicas, "readyReplicas": ready});
            }
            if object["kind"] == "HTTPRoute" {
                let condition = |kind: &str| json!({"type": kind, "status": "True", "observedGeneration": generation});
                object["status"] = json!({"parents": [{"conditions": [condition("Accepted"), condition("ResolvedRefs")]}]});
            }
        }
    }

    fn replicas(&self, name: &str) -> Option<i64> {
        self.objects.get(&format!("Deployment/{name}"))?["spec"]["replicas"].as_i64()
    }

    fn weights(&self) -> Vec<(String, i64)> {
        let backends = self.objects["HTTPRoute/web"]
            .pointer("/spec/rules/0/backendRefs")
            .unwrap()
            .as_array()
            .unwrap()
            .clone();
        backends
            .iter()
            .map(|it| {
                (
                    it["name"].as_str().unwrap().to_owned(),
                    it["weight"].as_i64().unwrap_or(-1),
                )
            })
            .collect()
    }
}

fn object(kind: &str, api_version: &str, resource_type: &str, spec: &Value) -> RenderedObject {
    RenderedObject {
        component: "web".to_owned(),
        object: json!({"apiVersion": api_version, "kind": kind, "spec": spec,
            "metadata": {"name": "web", "namespace": "default", "labels": {label::RESOURCE_TYPE: resource_type}}}),
    }
}

/// A web server with a Service and a route.
fn rendered(image: &str, replicas: i64) -> Vec<RenderedObject> {
    vec![
        object(
            "Deployment",
            "apps/v1",
            "WORKLOAD",
            &json!({"replicas": replicas, "selector": {"matchLabels": {"app": "web"}},
            "template": {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [{"name": "web", "image": image}]}}}),
        ),
        object(
            "Service",
            "v1",
            "TRAIT",
            &json!({"selector": {"app": "web"}, "ports": [{"port": 80}]}),
        ),
        object(
            "HTTPRoute",
            "gateway.networking.k8s.io/v1",
            "TRAIT",
            &json!({"rules": [{"backendRefs": [{"name": "web", "port": 80}]}]}),
        ),
    ]
}

/// A rollout that is played step by step.
#[derive(Clone)]
struct Play {
    world: World,
    rollout: Rollout,
    workflow: WorkflowState,
    blue: Vec<RenderedObject>,
    green: Vec<RenderedObject>,
    resumes: usize,
}

impl Play {
    /// The first revision is in use.
    fn started(replicas: i64) -> Self {
        let mut play = Self {
            world: World::default(),
            rollout: Rollout::default(),
            workflow: WorkflowState::Running,
            blue: Vec::new(),
            green: rendered("web:1", replicas),
            resumes: 0,
        };
        play.rollout.spec.app_revision = "shop-v1".to_owned();
        play.rollout.spec.partition = Some(IntOrString::String("50%".to_owned()));
        play.rollout.spec.run = "one".to_owned();
        play.until_calm("");
        assert_eq!(play.phase(), RolloutPhase::Promoted);
        play
    }

    fn next(mut self, image: &str, replicas: i64, partition: &str) -> Self {
        self.blue = std::mem::replace(&mut self.green, rendered(image, replicas));
        self.rollout.spec.app_revision = "shop-v2".to_owned();
        self.rollout.spec.partition = Some(IntOrString::String(partition.to_owned()));
        self.rollout.spec.run = "two".to_owned();
        self
    }

    fn shift(&mut self, partition: &str) {
        let traffic = self.rollout.spec.traffic.get_or_insert_default();
        traffic.partition = Some(IntOrString::String(partition.to_owned()));
    }

    fn ask_for_approval(&mut self, rollback: bool) {
        let promotion = self.rollout.spec.promotion.get_or_insert_default();
        (
            promotion.manual_approval,
            promotion.rollback_if_not_approved,
        ) = (true, rollback);
    }

    fn decide(&self) -> Plan {
        let mut asked: Vec<Value> = Vec::new();
        loop {
            let seen = self.world.seen(&asked);
            let observed = Observed {
                rollout: &self.rollout,
                workflow: self.workflow,
                blue: &self.blue,
                green: &self.green,
                seen: &seen,
            };
            let plan = decide(&observed, Timestamp::UNIX_EPOCH);
            let missing = seen.take_missing();
            if missing.is_empty() {
                return plan;
            }
            asked.extend(missing);
        }
    }

    /// One reconcile; true if something changed.
    fn once(&mut self) -> bool {
        let before = (self.world.objects.clone(), self.rollout.status.clone());
        let plan = self.decide();
        self.world.carry_out(&plan);
        self.resumes += usize::from(plan.resume_workflow);
        if plan.resume_workflow {
            self.workflow = WorkflowState::Running;
        }
        let stable = stable_revision(&self.rollout).to_owned();
        self.rollout.status = Some(plan.status);
        // The controller reads what the revision in use was rendered to.
        if stable_revision(&self.rollout) != stable {
            self.blue.clone_from(&self.green);
        }
        before != (self.world.objects.clone(), self.rollout.status.clone())
    }

    fn until_calm(&mut self, broken: &str) {
        for _ in 0..50 {
            let changed = self.once();
            let before = self.world.objects.clone();
            self.world.settle(broken);
            if !changed && before == self.world.objects {
                return;
            }
        }
        panic!("it never comes to rest");
    }

    fn phase(&self) -> RolloutPhase {
        self.rollout.status.as_ref().unwrap().phase.clone()
    }

    fn holds(&self, kind: &str) -> bool {
        meta::is_true(&self.rollout.status.as_ref().unwrap().conditions, kind)
    }
}

#[test]
fn the_first_revision_comes_whole_and_needs_no_approval() {
    let mut play = Play::started(4);
    assert_eq!(play.world.replicas("web-v1"), Some(4));
    play.shift("50%");
    play.ask_for_approval(true);
    play.until_calm("");
    assert_eq!(play.phase(), RolloutPhase::Promoted);
    assert!(
        play.holds(condition::PARTITIONED)
            && play.holds(condition::SHIFTED)
            && play.holds(condition::PROMOTED)
    );
    assert_eq!(play.world.weights(), [("web".to_owned(), -1)]);
}

#[test]
fn replicas_and_requests_move_by_shares_until_somebody_approves() {
    let mut play = Play::started(4).next("web:2", 4, "50%");
    play.until_calm("");
    assert_eq!(
        (play.world.replicas("web-v1"), play.world.replicas("web-v2")),
        (Some(2), Some(2))
    );
    assert!(play.holds(condition::PARTITIONED) && !play.holds(condition::SHIFTED));
    assert_eq!(play.phase(), RolloutPhase::Waiting);
    assert_eq!(
        play.world.weights(),
        [("web-v1".to_owned(), 100), ("web-v2".to_owned(), 0)]
    );
    play.shift("30%");
    play.until_calm("");
    assert!(play.holds(condition::SHIFTED));
    assert_eq!(
        play.world.weights(),
        [("web-v1".to_owned(), 70), ("web-v2".to_owned(), 30)]
    );
    play.ask_for_approval(true);
    play.workflow = WorkflowState::Suspended;
    play.until_calm("");
    assert_eq!(
        (play.phase(), play.rollout.status.as_ref().unwrap().pause),
        (RolloutPhase::Paused, true)
    );
    assert_eq!(play.resumes, 0);
    play.rollout.status.as_mut().unwrap().pause = false;
    play.until_calm("");
    assert_eq!(play.phase(), RolloutPhase::Promoted);
    assert_eq!(
        (play.world.replicas("web-v1"), play.world.replicas("web-v2")),
        (None, Some(4))
    );
    assert_eq!(play.world.weights(), [("web".to_owned(), -1)]);
    assert!(play.resumes > 0);
    let status = play.rollout.status.as_ref().unwrap();
    assert_eq!(
        (status.stable_revision.as_str(), status.green.is_none()),
        ("shop-v2", true)
    );
    assert!(
        !play.world.objects.contains_key("Service/web-v1"),
        "what belongs to the old revision is gone"
    );
}

#[test]
fn a_broken_revision_takes_nothing_away() {
    let mut play = Play::started(4).next("web:2", 4, "50%");
    play.shift("50%");
    play.until_calm("web-v2");
    assert_eq!(
        (play.world.replicas("web-v1"), play.world.replicas("web-v2")),
        (Some(4), Some(2))
    );
    assert_eq!(
        play.world.weights(),
        [("web-v1".to_owned(), 100), ("web-v2".to_owned(), 0)]
    );
    assert!(!play.holds(condition::PARTITIONED) && !play.holds(condition::SHIFTED));
    assert_eq!(
        play.rollout.status.as_ref().unwrap().message,
        "Deployment web-v2: 0 of 2 replicas are ready"
    );
}

#[test]
fn a_workflow_that_ends_early_brings_the_old_revision_back() {
    for step in 0..3 {
        let mut play = Play::started(4).next("web:2", 4, "50%");
        if step > 0 {
            play.shift("50%");
        }
        if step > 1 {
            play.ask_for_approval(true);
        }
        play.until_calm("");
        play.workflow = WorkflowState::Aborted;
        play.until_calm("");
        assert_eq!(play.phase(), RolloutPhase::RolledBack, "step {step}");
        assert_eq!(
            (play.world.replicas("web-v1"), play.world.replicas("web-v2")),
            (Some(4), None)
        );
        assert_eq!(play.world.weights(), [("web".to_owned(), -1)]);
        assert!(!play.world.objects.contains_key("Service/web-v2"));
    }
}

#[test]
fn without_rollback_an_unapproved_revision_stays_where_it_is() {
    let mut play = Play::started(4).next("web:2", 4, "50%");
    play.ask_for_approval(false);
    play.until_calm("");
    play.workflow = WorkflowState::Aborted;
    play.until_calm("");
    assert_eq!(
        (play.world.replicas("web-v1"), play.world.replicas("web-v2")),
        (Some(2), Some(2))
    );
}

#[test]
fn a_rejected_revision_goes_and_the_workflow_hears_of_it() {
    let mut play = Play::started(4).next("web:2", 4, "50%");
    play.ask_for_approval(true);
    play.until_calm("");
    play.workflow = WorkflowState::Suspended;
    play.rollout.metadata.annotations =
        Some([(annotation::REJECT.to_owned(), "too slow".to_owned())].into());
    play.until_calm("");
    assert_eq!(play.phase(), RolloutPhase::RolledBack);
    assert!(play.resumes > 0);
}

#[test]
fn resuming_the_workflow_approves() {
    let mut play = Play::started(4).next("web:2", 4, "50%");
    play.ask_for_approval(true);
    play.until_calm("");
    assert_eq!(play.phase(), RolloutPhase::Paused);
    play.rollout.spec.promotion.as_mut().unwrap().approved = true;
    play.until_calm("");
    assert_eq!(play.phase(), RolloutPhase::Promoted);
}

#[test]
fn another_execution_begins_again() {
    let mut play = Play::started(4).next("web:2", 4, "50%");
    play.until_calm("");
    play.workflow = WorkflowState::Aborted;
    play.until_calm("");
    assert_eq!(play.phase(), RolloutPhase::RolledBack);
    play.rollout.spec.run = "three".to_owned();
    play.workflow = WorkflowState::Running;
    play.until_calm("");
    assert_eq!(
        (play.phase(), play.world.replicas("web-v2")),
        (RolloutPhase::Waiting, Some(2))
    );
}

#[test]
fn what_did_not_change_stays() {
    let mut play = Play::started(4).next("web:1", 4, "50%");
    play.until_calm("");
    assert_eq!(
        (play.world.replicas("web-v1"), play.world.replicas("web-v2")),
        (Some(4), None)
    );
    assert!(play.holds(condition::PARTITIONED));
}

#[test]
fn an_impossible_share_changes_nothing() {
    let mut play = Play::started(4).next("web:2", 4, "half");
    let before = play.world.objects.clone();
    play.until_calm("");
    assert_eq!(play.phase(), RolloutPhase::Invalid);
    assert_eq!(play.world.objects, before);
    assert_eq!(
        play.rollout.status.as_ref().unwrap().message,
        "spec.partition: \"half\" is not a number or a percentage, such as 2 or \"50%\""
    );
}

#[test]
fn the_state_of_another_execution_says_nothing() {
    let status = |phase: &str| -> WorkflowStatus {
        serde_json::from_value(json!({"status": phase, "suspend": false, "terminated": true, "finished": true, "mode": "", "steps": [{"id": "two", "name": "a", "type": "b"}]})).unwrap()
    };
    assert_eq!(
        workflow_state(Some(&status("terminated")), "two"),
        WorkflowState::Aborted
    );
    assert_eq!(
        workflow_state(Some(&status("terminated")), "one"),
        WorkflowState::Unknown
    );
    assert_eq!(
        workflow_state(Some(&status("succeeded")), "two"),
        WorkflowState::Succeeded
    );
    assert_eq!(workflow_state(None, "two"), WorkflowState::Unknown);
}

/// Something that happens while a rollout goes on.
#[derive(Debug, Clone)]
enum Happening {
    Ready,
    Broken,
    Shift(i64),
    Ask,
    Approve,
    Abort,
    Reconcile,
}

fn happening() -> impl Strategy<Value = Happening> {
    prop_oneof![
        3 => Just(Happening::Ready),
        1 => Just(Happening::Broken),
        1 => (0i64..=100).prop_map(Happening::Shift),
        1 => Just(Happening::Ask),
        1 => Just(Happening::Approve),
        1 => Just(Happening::Abort),
        3 => Just(Happening::Reconcile),
    ]
}

proptest! {
    #[test]
    fn the_new_revision_never_has_more_than_its_share(
        replicas in 1i64..12,
        percent in 0i64..=100,
        happenings in proptest::collection::vec(happening(), 0..25),
    ) {
        let mut play = Play::started(replicas).next("web:2", replicas, &format!("{percent}%"));
        let allowed = Partition::Percent(percent).of(replicas);
        let (mut shift, mut was_approved) = (0, false);
        for it in happenings {
            match it {
                Happening::Ready => play.world.settle(""),
                Happening::Broken => play.world.settle("web-v2"),
                Happening::Shift(share) => { shift = share; play.shift(&format!("{share}%")); }
                Happening::Ask => play.ask_for_approval(true),
                Happening::Approve => if let Some(status) = &mut play.rollout.status { status.pause = false; },
                Happening::Abort => play.workflow = WorkflowState::Aborted,
                Happening::Reconcile => {}
            }
            play.once();
            // What was approved once goes only when the old revision is back.
            was_approved |= play.holds(condition::APPROVED);
            if !was_approved {
                prop_assert!(play.world.replicas("web-v2").unwrap_or(0) <= allowed);
                let weight = play.rollout.status.as_ref().unwrap().green.as_ref().and_then(|it| it.weight).unwrap_or(0);
                prop_assert!(weight <= shift);
            }
            if play.holds(condition::PROMOTED) {
                // There is nothing left to come back to.
                continue;
            }
            // What is wanted of the old revision and ready of the new one is never less than there was.
            let old = play.world.replicas("web-v1").unwrap_or(0);
            let new = play.world.objects.get("Deployment/web-v2").map_or(0, |it| it["status"]["readyReplicas"].as_i64().unwrap_or(0));
            prop_assert!(old + new >= replicas, "{} + {} of {}", old, new, replicas);
        }
        play.until_calm("");
        prop_assert_eq!(play.decide().status, play.rollout.status.clone().unwrap());
    }
}
