//! Autoscalers: nothing here uses any processor, so all that is left are the bounds.
//!
//! What people see is what they would see on a cluster that has no source of metrics.

mod metrics;

use std::time::Duration;

use bellwether_api::workload::scaling::{ABLE_TO_SCALE, SCALING_ACTIVE};
use bellwether_api::workload::status::{FALSE, TRUE};
use jiff::Timestamp;
use k8s_openapi::api::autoscaling::v2::{
    HorizontalPodAutoscaler, HorizontalPodAutoscalerCondition, HorizontalPodAutoscalerSpec,
    HorizontalPodAutoscalerStatus, MetricStatus,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use serde_json::json;

use crate::kind::Reference;
use crate::plan::{Action, Event, Part, Plan};
use crate::time::after;
use metrics::missing;

const COMPONENT: &str = "horizontal-pod-autoscaler";
/// How often an autoscaler looks at its target.
const INTERVAL: Duration = Duration::from_secs(15);
const RESCALED: &str = "SucceededRescale";

/// What an autoscaler scales.
#[derive(Debug, Clone)]
pub(crate) struct Target {
    pub(crate) reference: Reference,
    /// The size in its spec.
    pub(crate) wanted: i32,
    /// The size that it has.
    pub(crate) actual: i32,
}

/// What has to be done for an autoscaler.
pub(crate) fn decide(
    autoscaler: &HorizontalPodAutoscaler,
    target: Option<&Target>,
    now: Timestamp,
) -> Plan {
    let mut plan = Plan::default();
    let Some(spec) = &autoscaler.spec else {
        return plan;
    };
    let old = autoscaler.status.clone().unwrap_or_default();
    let mut status = old.clone();
    status.observed_generation = autoscaler.metadata.generation;
    match target {
        None => miss_target(autoscaler, spec, &mut status, now, &mut plan),
        Some(target) => match (out_of_bounds(spec, target), just_scaled(&old, now)) {
            (Some(bound), _) => {
                status.current_replicas = Some(target.actual);
                rescale(autoscaler, target, bound, &mut status, now, &mut plan);
            }
            (None, Some(next)) => plan.wake_at(next),
            (None, None) => {
                status.current_replicas = Some(target.actual);
                rest(autoscaler, spec, target, &mut status, now, &mut plan);
            }
        },
    }
    plan.status(autoscaler, &old, &status);
    plan
}

/// When to reconcile a target again that has just been scaled.
fn just_scaled(status: &HorizontalPodAutoscalerStatus, now: Timestamp) -> Option<Timestamp> {
    let rescaled = status
        .conditions
        .iter()
        .flatten()
        .any(|found| found.type_ == ABLE_TO_SCALE && found.reason.as_deref() == Some(RESCALED));
    let scaled = status.last_scale_time.as_ref().filter(|_| rescaled)?;
    Some(after(scaled.0, INTERVAL)).filter(|next| *next > now)
}

/// The size that a target has to have instead of its own, and why.
fn out_of_bounds(
    spec: &HorizontalPodAutoscalerSpec,
    target: &Target,
) -> Option<(i32, &'static str)> {
    let min = spec.min_replicas.unwrap_or(1);
    if target.wanted > spec.max_replicas {
        let why = "Current number of replicas above Spec.MaxReplicas";
        Some((spec.max_replicas, why))
    } else if target.wanted < min && target.wanted > 0 {
        Some((min, "Current number of replicas below Spec.MinReplicas"))
    } else {
        None
    }
}

/// There is nothing of that name to scale.
fn miss_target(
    autoscaler: &HorizontalPodAutoscaler,
    spec: &HorizontalPodAutoscalerSpec,
    status: &mut HorizontalPodAutoscalerStatus,
    now: Timestamp,
    plan: &mut Plan,
) {
    let wanted = &spec.scale_target_ref;
    let resource = format!("{}s", wanted.kind.to_lowercase());
    let version = wanted.api_version.as_deref();
    let resource = match version.and_then(|version| version.split_once('/')) {
        Some((group, _)) => format!("{resource}.{group}"),
        None => resource,
    };
    let error = format!("{resource} {:?} not found", wanted.name);
    let message =
        format!("the HPA controller was unable to get the target's current scale: {error}");
    let reason = "FailedGetScale";
    if set_condition(status, ABLE_TO_SCALE, FALSE, reason, message, now) {
        let subject = Reference::to(autoscaler);
        plan.record_event(Event::warning(subject, COMPONENT, reason, error));
    }
}

/// The target gets the size that the bounds allow.
fn rescale(
    autoscaler: &HorizontalPodAutoscaler,
    target: &Target,
    (size, why): (i32, &str),
    status: &mut HorizontalPodAutoscalerStatus,
    now: Timestamp,
    plan: &mut Plan,
) {
    plan.actions.push(Action::Patch {
        subject: target.reference.clone(),
        part: Part::Scale,
        patch: json!({"spec": {"replicas": size}}),
    });
    let message = format!("New size: {size}; reason: {why}");
    let subject = Reference::to(autoscaler);
    plan.record_event(Event::normal(
        subject,
        COMPONENT,
        "SuccessfulRescale",
        message,
    ));
    let message = format!("the HPA controller was able to update the target scale to {size}");
    set_condition(status, ABLE_TO_SCALE, TRUE, RESCALED, message, now);
    status.desired_replicas = size;
    status.last_scale_time = Some(Time(now));
}

/// The target is within the bounds, and there is nothing else to go by.
fn rest(
    autoscaler: &HorizontalPodAutoscaler,
    spec: &HorizontalPodAutoscalerSpec,
    target: &Target,
    status: &mut HorizontalPodAutoscalerStatus,
    now: Timestamp,
    plan: &mut Plan,
) {
    let message = "the HPA controller was able to get the target's current scale";
    set_condition(
        status,
        ABLE_TO_SCALE,
        TRUE,
        "SucceededGetScale",
        message.to_owned(),
        now,
    );
    if target.wanted == 0 && spec.min_replicas != Some(0) {
        status.desired_replicas = 0;
        let message = "scaling is disabled since the replica count of the target is zero";
        set_condition(
            status,
            SCALING_ACTIVE,
            FALSE,
            "ScalingDisabled",
            message.to_owned(),
            now,
        );
        return;
    }
    let specs = spec.metrics.as_deref().unwrap_or_default();
    let namespace = autoscaler.metadata.namespace.as_deref().unwrap_or_default();
    let failures: Vec<_> = specs
        .iter()
        .map(|metric| missing(metric, namespace))
        .collect();
    status.current_metrics = Some(vec![MetricStatus::default(); failures.len()]);
    let Some(first) = failures.first() else {
        return;
    };
    let message = format!(
        "the HPA was unable to compute the replica count: {}",
        first.error
    );
    if set_condition(status, SCALING_ACTIVE, FALSE, first.reason, message, now) {
        let warning =
            |reason, message| Event::warning(Reference::to(autoscaler), COMPONENT, reason, message);
        for failure in &failures {
            plan.record_event(warning(failure.reason, failure.error.clone()));
        }
        let (count, error) = (failures.len(), &first.wrapped);
        let message =
            format!("invalid metrics ({count} invalid out of {count}), first error is: {error}");
        plan.record_event(warning("FailedComputeMetricsReplicas", message));
    }
}

/// Sets a condition; returns whether that is news.
fn set_condition(
    status: &mut HorizontalPodAutoscalerStatus,
    kind: &str,
    value: &str,
    reason: &str,
    message: String,
    now: Timestamp,
) -> bool {
    let conditions = status.conditions.get_or_insert_default();
    let mut condition = HorizontalPodAutoscalerCondition {
        type_: kind.to_owned(),
        status: value.to_owned(),
        reason: Some(reason.to_owned()),
        message: Some(message),
        last_transition_time: Some(Time(now)),
    };
    match conditions.iter_mut().find(|found| found.type_ == kind) {
        None => conditions.push(condition),
        Some(found) => {
            if found.status == value {
                condition
                    .last_transition_time
                    .clone_from(&found.last_transition_time);
            }
            if *found == condition {
                return false;
            }
            *found = condition;
        }
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kind::Kind;
    use bellwether_runtime::ObjectKey;

    #[track_caller]
    fn check(wanted: Option<i32>, scaled_to: Option<i32>, reasons: [&str; 2]) {
        let autoscaler: HorizontalPodAutoscaler = serde_json::from_value(json!({
            "metadata": {"name": "web", "namespace": "default", "uid": "h", "generation": 1},
            "spec": {"minReplicas": 2, "maxReplicas": 5,
                     "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"},
                     "metrics": [{"type": "Resource", "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 80}}}]},
        }))
        .unwrap();
        let target = wanted.map(|wanted| Target {
            reference: Reference {
                kind: Kind::Deployment,
                key: ObjectKey::new("default", "web"),
                uid: "d".to_owned(),
            },
            wanted,
            actual: wanted,
        });
        let plan = decide(&autoscaler, target.as_ref(), Timestamp::UNIX_EPOCH);
        let mut scaled = None;
        let mut found = [String::new(), String::new()];
        for action in plan.actions {
            match action {
                Action::Patch {
                    part: Part::Scale,
                    patch,
                    ..
                } => scaled = patch["spec"]["replicas"].as_i64(),
                Action::Patch { patch, .. } => {
                    for condition in patch["status"]["conditions"].as_array().unwrap() {
                        let place = usize::from(condition["type"] == SCALING_ACTIVE);
                        found[place] = condition["reason"].as_str().unwrap().to_owned();
                    }
                }
                _ => {}
            }
        }
        assert_eq!(scaled, scaled_to.map(i64::from));
        assert_eq!(found, reasons);
    }

    #[test]
    fn bounds_are_kept() {
        check(Some(1), Some(2), ["SucceededRescale", ""]);
        check(Some(9), Some(5), ["SucceededRescale", ""]);
        check(
            Some(3),
            None,
            ["SucceededGetScale", "FailedGetResourceMetric"],
        );
        check(Some(0), None, ["SucceededGetScale", "ScalingDisabled"]);
        check(None, None, ["FailedGetScale", ""]);
    }
}
