//! Disruption budgets: how many pods could go without anybody missing them.

use std::collections::BTreeMap;
use std::sync::Arc;

use bellwether_api::workload::scaling::DISRUPTION_ALLOWED;
use bellwether_api::workload::status::{FALSE, TRUE};
use jiff::Timestamp;
use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::api::policy::v1::{
    PodDisruptionBudget, PodDisruptionBudgetSpec, PodDisruptionBudgetStatus,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;

use crate::kind::{Reference, controller_of};
use crate::plan::{Event, Plan};
use crate::pods::{self, number};
use crate::scale::{Round, resolve};

/// The name that Kubernetes' disruption controller goes by.
const COMPONENT: &str = "controllermanager";

/// Everything that the decision may look at.
#[derive(Debug)]
pub(crate) struct View<'a> {
    pub(crate) budget: &'a PodDisruptionBudget,
    /// The pods that it selects.
    pub(crate) pods: &'a [Arc<Pod>],
    /// How many pods each of their controllers wants, by its uid.
    pub(crate) scales: &'a BTreeMap<String, i32>,
    pub(crate) now: Timestamp,
}

/// What has to be done for a budget: only its status is ours.
pub(crate) fn decide(view: &View<'_>) -> Plan {
    let mut plan = Plan::default();
    let Some(spec) = &view.budget.spec else {
        return plan;
    };
    let alive: Vec<&Arc<Pod>> = view
        .pods
        .iter()
        .filter(|pod| !pods::has_ended(pod))
        .collect();
    let healthy = alive
        .iter()
        .filter(|pod| pods::is_active(pod) && pods::is_ready(pod));
    let healthy = number(healthy.count());
    let (expected, desired) = expectations(view, spec, &alive);
    let old = view.budget.status.clone().unwrap_or_default();
    let allowed = if expected > 0 {
        (healthy - desired).max(0)
    } else {
        0
    };
    let status = PodDisruptionBudgetStatus {
        current_healthy: healthy,
        desired_healthy: desired,
        expected_pods: expected,
        disruptions_allowed: allowed,
        observed_generation: view.budget.metadata.generation,
        disrupted_pods: None,
        conditions: Some(conditions(view, &old, allowed)),
    };
    plan.status(view.budget, &old, &status);
    if view.pods.is_empty() && !plan.actions.is_empty() {
        let subject = Reference::to(view.budget);
        let message = "No matching pods found";
        plan.tell(Event::normal(subject, COMPONENT, "NoPods", message));
    }
    plan
}

/// How many pods there should be, and how many of them have to stay.
fn expectations(
    view: &View<'_>,
    spec: &PodDisruptionBudgetSpec,
    alive: &[&Arc<Pod>],
) -> (i32, i32) {
    let by_controllers = || {
        let mut uids: Vec<&str> = alive
            .iter()
            .filter_map(|pod| Some(controller_of(&pod.metadata)?.uid.as_str()))
            .collect();
        uids.sort_unstable();
        uids.dedup();
        uids.into_iter()
            .filter_map(|uid| view.scales.get(uid))
            .sum::<i32>()
    };
    if let Some(most) = &spec.max_unavailable {
        let expected = by_controllers();
        let gone = resolve(Some(most), expected, Round::Up);
        return (expected, (expected - gone).max(0));
    }
    match &spec.min_available {
        Some(IntOrString::Int(fewest)) => (number(alive.len()), *fewest),
        Some(fewest) => {
            let expected = by_controllers();
            (expected, resolve(Some(fewest), expected, Round::Up))
        }
        None => (number(alive.len()), 0),
    }
}

fn conditions(view: &View<'_>, old: &PodDisruptionBudgetStatus, allowed: i32) -> Vec<Condition> {
    let mut conditions = old.conditions.clone().unwrap_or_default();
    let (status, reason) = if allowed > 0 {
        (TRUE, "SufficientPods")
    } else {
        (FALSE, "InsufficientPods")
    };
    let known = conditions
        .iter()
        .find(|found| found.type_ == DISRUPTION_ALLOWED && found.status == status);
    let since = known.map(|found| found.last_transition_time.clone());
    conditions.retain(|found| found.type_ != DISRUPTION_ALLOWED);
    conditions.push(Condition {
        type_: DISRUPTION_ALLOWED.to_owned(),
        status: status.to_owned(),
        reason: reason.to_owned(),
        message: String::new(),
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
        let scales = BTreeMap::from([("r".to_owned(), 4)]);
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
}
