//! Disruption budgets: how many pods could go without anybody missing them.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use bellwether_api::workload::scaling::{
    DISRUPTION_ALLOWED, INSUFFICIENT_PODS, SUFFICIENT_PODS, SYNC_FAILED,
};
use bellwether_api::workload::status::{FALSE, TRUE};
use jiff::Timestamp;
use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::api::policy::v1::{
    PodDisruptionBudget, PodDisruptionBudgetSpec, PodDisruptionBudgetStatus,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;

use crate::kind::{Reference, controller_of, is_deleting};
use crate::plan::{Event, Plan};
use crate::pods::{self, number};
use crate::scale::{Round, resolve};
use crate::select;
use crate::time::after;

/// The name that Kubernetes' disruption controller goes by.
const COMPONENT: &str = "controllermanager";
/// How long after its eviction a pod is expected to be deleted.
const DELETION_TIMEOUT: Duration = Duration::from_mins(2);

/// What decides how many pods a controller has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Scale {
    /// The controller that has the number in its spec: a deployment, not its replica set.
    pub(crate) uid: String,
    pub(crate) replicas: i32,
}

/// Everything that the decision may look at.
#[derive(Debug)]
pub(crate) struct View<'a> {
    pub(crate) budget: &'a PodDisruptionBudget,
    /// The pods that it selects.
    pub(crate) pods: &'a [Arc<Pod>],
    /// How many pods each of their controllers wants, by its uid, or why that cannot be said.
    pub(crate) scales: &'a BTreeMap<String, Result<Scale, String>>,
    pub(crate) now: Timestamp,
}

/// How many pods there should be.
#[derive(Debug, Default, PartialEq, Eq)]
struct Expectation {
    pods: i32,
    healthy: i32,
    /// Some pods belong to nobody, and cannot be counted.
    unmanaged: bool,
}

/// What has to be done for a budget: only its status is ours.
pub(crate) fn decide(view: &View<'_>) -> Plan {
    let mut plan = Plan::default();
    let Some(spec) = &view.budget.spec else {
        return plan;
    };
    let old = view.budget.status.clone().unwrap_or_default();
    let expected = expectation(view, spec);
    let status = match &expected {
        Ok(expected) => healthy_status(view, &old, expected, &mut plan),
        Err(why) => PodDisruptionBudgetStatus {
            disruptions_allowed: 0,
            conditions: Some(conditions(view, &old, (FALSE, SYNC_FAILED, why))),
            ..old.clone()
        },
    };
    plan.status(view.budget, &old, &status);
    if plan.actions.is_empty() {
        return plan;
    }
    let subject = || Reference::to(view.budget);
    if view.pods.is_empty() {
        let message = "No matching pods found";
        plan.record_event(Event::normal(subject(), COMPONENT, "NoPods", message));
    }
    match expected {
        Ok(Expectation { unmanaged, .. }) if unmanaged => {
            let message = unmanaged_message(spec);
            let event = Event::warning(subject(), COMPONENT, "UnmanagedPods", message);
            plan.record_event(event);
        }
        Ok(_) => {}
        Err(why) => {
            let message = format!("Failed to calculate the number of expected pods: {why}");
            let reason = "CalculateExpectedPodCountFailed";
            plan.record_event(Event::warning(subject(), COMPONENT, reason, message));
        }
    }
    plan
}

fn unmanaged_message(spec: &PodDisruptionBudgetSpec) -> String {
    let selector = spec.selector.as_ref().map(select::go_form);
    let selector = selector.unwrap_or_else(|| "nil".to_owned());
    format!(
        "Pods selected by this PodDisruptionBudget (selector: {selector}) were found to be unmanaged. \
         As a result, the status of the PDB cannot be calculated correctly, which may result in \
         undefined behavior. To account for these pods please set \".spec.minAvailable\" field of the \
         PDB to an integer value."
    )
}

fn healthy_status(
    view: &View<'_>,
    old: &PodDisruptionBudgetStatus,
    expected: &Expectation,
    plan: &mut Plan,
) -> PodDisruptionBudgetStatus {
    let disrupted = still_disrupted(view, old, plan);
    let stays = |pod: &&Arc<Pod>| {
        let name = pod.metadata.name.as_deref().unwrap_or_default();
        !is_deleting(&pod.metadata) && pods::is_ready(pod) && !disrupted.contains_key(name)
    };
    let healthy = number(view.pods.iter().filter(stays).count());
    let allowed = if expected.pods > 0 {
        (healthy - expected.healthy).max(0)
    } else {
        0
    };
    let (value, reason) = if allowed > 0 {
        (TRUE, SUFFICIENT_PODS)
    } else {
        (FALSE, INSUFFICIENT_PODS)
    };
    PodDisruptionBudgetStatus {
        current_healthy: healthy,
        desired_healthy: expected.healthy,
        expected_pods: expected.pods,
        disruptions_allowed: allowed,
        observed_generation: view.budget.metadata.generation,
        disrupted_pods: (!disrupted.is_empty()).then_some(disrupted),
        conditions: Some(conditions(view, old, (value, reason, ""))),
    }
}

/// The pods whose eviction was allowed, and that are about to be deleted.
fn still_disrupted(
    view: &View<'_>,
    old: &PodDisruptionBudgetStatus,
    plan: &mut Plan,
) -> BTreeMap<String, Time> {
    let mut disrupted = BTreeMap::new();
    let noted = old.disrupted_pods.as_ref();
    for pod in view.pods.iter().filter(|pod| !is_deleting(&pod.metadata)) {
        let name = pod.metadata.name.as_deref().unwrap_or_default();
        let Some(time) = noted.and_then(|noted| noted.get(name)) else {
            continue;
        };
        let end = after(time.0, DELETION_TIMEOUT);
        if end >= view.now {
            plan.wake_at(end);
            disrupted.insert(name.to_owned(), time.clone());
        }
    }
    disrupted
}

/// How many pods there should be, and how many of them have to stay; or why that cannot be said.
fn expectation(view: &View<'_>, spec: &PodDisruptionBudgetSpec) -> Result<Expectation, String> {
    if let Some(most) = &spec.max_unavailable {
        let expected = by_controllers(view)?;
        let gone = resolve(Some(most), expected.pods, Round::Up);
        return Ok(Expectation {
            healthy: (expected.pods - gone).max(0),
            ..expected
        });
    }
    match &spec.min_available {
        Some(IntOrString::Int(fewest)) => Ok(Expectation {
            pods: number(view.pods.len()),
            healthy: *fewest,
            unmanaged: false,
        }),
        Some(fewest) => {
            let expected = by_controllers(view)?;
            Ok(Expectation {
                healthy: resolve(Some(fewest), expected.pods, Round::Up),
                ..expected
            })
        }
        None => Ok(Expectation::default()),
    }
}

/// How many pods their controllers want, together.
fn by_controllers(view: &View<'_>) -> Result<Expectation, String> {
    let mut scales = BTreeMap::new();
    let mut unmanaged = false;
    for pod in view.pods {
        let Some(owner) = controller_of(&pod.metadata) else {
            unmanaged = true;
            continue;
        };
        match view.scales.get(&owner.uid) {
            Some(Ok(scale)) => scales.insert(&scale.uid, scale.replicas),
            Some(Err(why)) => return Err(why.clone()),
            None => {
                let name = pod.metadata.name.as_deref().unwrap_or_default();
                return Err(format!("found no controllers for pod {name:?}"));
            }
        };
    }
    Ok(Expectation {
        pods: scales.into_values().sum(),
        healthy: 0,
        unmanaged,
    })
}

fn conditions(
    view: &View<'_>,
    old: &PodDisruptionBudgetStatus,
    (status, reason, message): (&str, &str, &str),
) -> Vec<Condition> {
    let mut conditions = old.conditions.clone().unwrap_or_default();
    let known = conditions
        .iter()
        .find(|found| found.type_ == DISRUPTION_ALLOWED && found.status == status);
    let since = known.map(|found| found.last_transition_time.clone());
    conditions.retain(|found| found.type_ != DISRUPTION_ALLOWED);
    conditions.push(Condition {
        type_: DISRUPTION_ALLOWED.to_owned(),
        status: status.to_owned(),
        reason: reason.to_owned(),
        message: message.to_owned(),
        last_transition_time: since.unwrap_or(Time(view.now)),
        observed_generation: view.budget.metadata.generation,
    });
    conditions
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::Action;
    use serde_json::{Value, json};

    #[track_caller]
    fn check(spec: Value, pods: usize, ready: usize, expected: [i64; 4]) {
        let budget: PodDisruptionBudget =
            serde_json::from_value(json!({"metadata": {"name": "b"}, "spec": spec})).unwrap();
        let pods: Vec<Arc<Pod>> = (0..pods)
            .map(|number| {
                let ready = if number < ready { "True" } else { "False" };
                let pod = json!({
                    "metadata": {"name": format!("p{number}"), "ownerReferences": [
                        {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "r", "uid": "r", "controller": true}]},
                    "status": {"phase": "Running", "conditions": [{"type": "Ready", "status": ready}]},
                });
                Arc::new(serde_json::from_value(pod).unwrap())
            })
            .collect();
        let scale = Scale {
            uid: "d".to_owned(),
            replicas: 4,
        };
        let scales = BTreeMap::from([("r".to_owned(), Ok(scale))]);
        let view = View {
            budget: &budget,
            pods: &pods,
            scales: &scales,
            now: Timestamp::UNIX_EPOCH,
        };
        let plan = decide(&view);
        let Some(Action::Patch { patch, .. }) = plan.actions.into_iter().next() else {
            panic!("nothing to do");
        };
        let status = &patch["status"];
        let found = [
            "currentHealthy",
            "desiredHealthy",
            "expectedPods",
            "disruptionsAllowed",
        ]
        .map(|name| status[name].as_i64().unwrap_or(0));
        assert_eq!(found, expected);
    }

    #[test]
    fn budgets_allow_what_can_be_spared() {
        check(json!({"minAvailable": 2}), 4, 4, [4, 2, 4, 2]);
        check(json!({"minAvailable": 2}), 4, 1, [1, 2, 4, 0]);
        check(json!({"minAvailable": "50%"}), 3, 3, [3, 2, 4, 1]);
        check(json!({"maxUnavailable": 1}), 4, 4, [4, 3, 4, 1]);
        check(json!({"maxUnavailable": "30%"}), 4, 3, [3, 2, 4, 1]);
        check(json!({"minAvailable": 0}), 0, 0, [0, 0, 0, 0]);
    }

    fn pod(name: &str, owner: Option<&str>) -> Arc<Pod> {
        let owners = owner.map(|uid| {
            json!([{"apiVersion": "v1", "kind": "X", "name": "x", "uid": uid, "controller": true}])
        });
        let pod = json!({
            "metadata": {"name": name, "ownerReferences": owners},
            "status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]},
        });
        Arc::new(serde_json::from_value(pod).unwrap())
    }

    /// The status that is written, and the events that are recorded.
    fn outcome(budget: Value, pods: &[Arc<Pod>], now: &str) -> (Value, Vec<String>) {
        let budget: PodDisruptionBudget = serde_json::from_value(budget).unwrap();
        let scales = BTreeMap::from([(
            "daemon".to_owned(),
            Err("daemonsets.apps does not implement the scale subresource".to_owned()),
        )]);
        let plan = decide(&View {
            budget: &budget,
            pods,
            scales: &scales,
            now: now.parse().unwrap(),
        });
        let mut status = Value::Null;
        let mut events = Vec::new();
        for action in plan.actions {
            match action {
                Action::Patch { patch, .. } => status = patch["status"].clone(),
                Action::RecordEvent(event) => {
                    events.push(format!("{}: {}", event.reason, event.message));
                }
                _ => {}
            }
        }
        (status, events)
    }

    #[test]
    fn pods_that_cannot_be_counted_are_said_to_be_so() {
        let budget = |spec: Value| json!({"metadata": {"name": "b"}, "spec": spec});
        let spec = json!({"maxUnavailable": 1, "selector": {"matchLabels": {"app": "a"}}});
        let (status, events) = outcome(
            budget(spec.clone()),
            &[pod("p", None)],
            "2026-01-01T00:00:00Z",
        );
        assert_eq!(
            status["disruptionsAllowed"],
            Value::Null,
            "nothing is allowed"
        );
        assert!(
            events[0].starts_with(
                "UnmanagedPods: Pods selected by this PodDisruptionBudget (selector: \
                 &LabelSelector{MatchLabels:map[string]string{app: a,},MatchExpressions:[]LabelSelectorRequirement{},}) \
                 were found to be unmanaged."
            ),
            "{events:?}"
        );
        let (status, events) = outcome(
            budget(spec),
            &[pod("p", Some("daemon"))],
            "2026-01-01T00:00:00Z",
        );
        let why = "daemonsets.apps does not implement the scale subresource";
        assert_eq!(status["conditions"][0]["reason"], SYNC_FAILED);
        assert_eq!(status["conditions"][0]["message"], why);
        assert_eq!(
            events,
            [format!(
                "CalculateExpectedPodCountFailed: Failed to calculate the number of expected pods: {why}"
            )]
        );
    }

    #[test]
    fn an_evicted_pod_counts_as_gone_until_it_should_have_been_deleted() {
        let budget = json!({
            "metadata": {"name": "b"}, "spec": {"minAvailable": 1},
            "status": {"disruptionsAllowed": 0, "currentHealthy": 0, "desiredHealthy": 0, "expectedPods": 0,
                       "disruptedPods": {"p": "2026-01-01T00:00:00Z", "gone": "2026-01-01T00:00:00Z"}},
        });
        let pods = [pod("p", None), pod("q", None)];
        let (status, _) = outcome(budget.clone(), &pods, "2026-01-01T00:01:00Z");
        assert_eq!(status["currentHealthy"], 1);
        assert_eq!(status["disruptedPods"], json!({"gone": null}));
        let (status, _) = outcome(budget, &pods, "2026-01-01T00:03:00Z");
        assert_eq!(
            (&status["currentHealthy"], &status["disruptionsAllowed"]),
            (&json!(2), &json!(1))
        );
        assert_eq!(status["disruptedPods"], Value::Null);
    }
}
