//! How far a rollout is: counts and conditions.

use bellwether_api::workload::deployment::{
    AVAILABLE, DEADLINE_EXCEEDED, MINIMUM_AVAILABLE, MINIMUM_UNAVAILABLE, NEW_SET_AVAILABLE,
    PROGRESSING, REPLICA_FAILURE, SET_UPDATED,
};
use bellwether_api::workload::status::{FALSE, TRUE};
use jiff::Timestamp;
use k8s_openapi::api::apps::v1::{Deployment, DeploymentCondition, DeploymentStatus};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

use super::sets::{Limits, Set};
use crate::pods::nonzero;
use crate::time::seconds_after;

/// A condition of a deployment.
pub(super) fn condition<'a>(
    status: &'a DeploymentStatus,
    kind: &str,
) -> Option<&'a DeploymentCondition> {
    let mut conditions = status.conditions.iter().flatten();
    conditions.find(|condition| condition.type_ == kind)
}

fn remove_condition(status: &mut DeploymentStatus, kind: &str) {
    if let Some(conditions) = &mut status.conditions {
        conditions.retain(|condition| condition.type_ != kind);
    }
    status.conditions = status
        .conditions
        .take()
        .filter(|conditions| !conditions.is_empty());
}

/// Sets a condition; one with the same status and reason stays as it is, words included.
pub(super) fn set_condition(
    status: &mut DeploymentStatus,
    kind: &str,
    value: &str,
    reason: &str,
    message: String,
    now: Timestamp,
) {
    let known = condition(status, kind);
    if known.is_some_and(|known| known.status == value && known.reason.as_deref() == Some(reason)) {
        return;
    }
    replace_condition(status, kind, value, reason, message, now);
}

/// Sets a condition, whatever it was.
fn replace_condition(
    status: &mut DeploymentStatus,
    kind: &str,
    value: &str,
    reason: &str,
    message: String,
    now: Timestamp,
) {
    let known = condition(status, kind).filter(|known| known.status == value);
    let since = known.and_then(|known| known.last_transition_time.clone());
    remove_condition(status, kind);
    status
        .conditions
        .get_or_insert_default()
        .push(DeploymentCondition {
            type_: kind.to_owned(),
            status: value.to_owned(),
            reason: Some(reason.to_owned()),
            message: Some(message),
            last_update_time: Some(Time(now)),
            last_transition_time: Some(since.unwrap_or(Time(now))),
        });
}

/// Counts, and whether enough is available.
pub(super) fn calculate(
    deployment: &Deployment,
    limits: &Limits,
    new: Option<&Set>,
    old: &[Set],
    before: &DeploymentStatus,
    now: Timestamp,
) -> DeploymentStatus {
    let all = || new.into_iter().chain(old);
    let sum = |count: fn(&Set) -> i32| all().map(count).sum::<i32>();
    let ready = |set: &Set| {
        set.object
            .status
            .as_ref()
            .and_then(|status| status.ready_replicas)
            .unwrap_or(0)
    };
    let terminating = |set: &Set| {
        set.object
            .status
            .as_ref()
            .and_then(|status| status.terminating_replicas)
    };
    let available = sum(|set| set.available);
    let mut status = DeploymentStatus {
        observed_generation: deployment.metadata.generation,
        replicas: nonzero(sum(|set| set.actual)),
        updated_replicas: nonzero(new.map_or(0, |set| set.actual)),
        ready_replicas: nonzero(sum(ready)),
        available_replicas: nonzero(available),
        unavailable_replicas: nonzero((sum(Set::specified_size) - available).max(0)),
        terminating_replicas: Some(all().filter_map(terminating).sum()),
        collision_count: before.collision_count,
        conditions: before.conditions.clone(),
    };
    let (value, reason, message) = if available >= limits.fewest() {
        (
            TRUE,
            MINIMUM_AVAILABLE,
            "Deployment has minimum availability.",
        )
    } else {
        (
            FALSE,
            MINIMUM_UNAVAILABLE,
            "Deployment does not have minimum availability.",
        )
    };
    set_condition(
        &mut status,
        AVAILABLE,
        value,
        reason,
        message.to_owned(),
        now,
    );
    status
}

fn deadline(deployment: &Deployment) -> Option<i32> {
    let spec = deployment.spec.as_ref()?;
    spec.progress_deadline_seconds
        .filter(|seconds| *seconds != i32::MAX)
}

/// Says whether the rollout has come to its end, goes on, or is stuck.
pub(super) fn measure(
    deployment: &Deployment,
    limits: &Limits,
    new: Option<&str>,
    old: &DeploymentStatus,
    status: &mut DeploymentStatus,
    now: Timestamp,
) {
    let Some(deadline) = deadline(deployment) else {
        remove_condition(status, PROGRESSING);
        return;
    };
    let current = condition(old, PROGRESSING);
    let reason = current.and_then(|current| current.reason.as_deref());
    if status.replicas == status.updated_replicas && reason == Some(NEW_SET_AVAILABLE) {
        return;
    }
    let name = deployment.metadata.name.as_deref().unwrap_or_default();
    let who = new.map_or_else(
        || format!("Deployment {name:?}"),
        |new| format!("ReplicaSet {new:?}"),
    );
    if is_complete(deployment, limits, status) {
        let message = format!("{who} has successfully progressed.");
        set_condition(status, PROGRESSING, TRUE, NEW_SET_AVAILABLE, message, now);
    } else if has_progressed(old, status) {
        // Every bit of progress counts from again, so this is written even if the words are the same.
        let message = format!("{who} is progressing.");
        replace_condition(status, PROGRESSING, TRUE, SET_UPDATED, message, now);
    } else if has_timed_out(status, deadline, now) {
        let message = format!("{who} has timed out progressing.");
        set_condition(status, PROGRESSING, FALSE, DEADLINE_EXCEEDED, message, now);
    }
}

/// Whether every replica is new and available.
pub(super) fn is_complete(
    deployment: &Deployment,
    limits: &Limits,
    status: &DeploymentStatus,
) -> bool {
    let is_all = |count: Option<i32>| count.unwrap_or(0) == limits.replicas;
    is_all(status.updated_replicas)
        && is_all(status.replicas)
        && is_all(status.available_replicas)
        && status.observed_generation >= deployment.metadata.generation
}

fn has_progressed(old: &DeploymentStatus, new: &DeploymentStatus) -> bool {
    let left = |status: &DeploymentStatus| {
        status.replicas.unwrap_or(0) - status.updated_replicas.unwrap_or(0)
    };
    new.updated_replicas > old.updated_replicas
        || left(new) < left(old)
        || new.ready_replicas > old.ready_replicas
        || new.available_replicas > old.available_replicas
}

fn has_timed_out(status: &DeploymentStatus, deadline: i32, now: Timestamp) -> bool {
    let Some(current) = condition(status, PROGRESSING) else {
        return false;
    };
    match current.reason.as_deref() {
        Some(NEW_SET_AVAILABLE) => false,
        Some(DEADLINE_EXCEEDED) => true,
        _ => expiry(current, deadline).is_some_and(|time| time < now),
    }
}

fn expiry(condition: &DeploymentCondition, deadline: i32) -> Option<Timestamp> {
    let updated = condition.last_update_time.as_ref()?;
    Some(seconds_after(updated.0, i64::from(deadline)))
}

/// When to see whether the rollout is stuck.
pub(super) fn next_check(
    deployment: &Deployment,
    limits: &Limits,
    status: &DeploymentStatus,
) -> Option<Timestamp> {
    let deadline = deadline(deployment)?;
    let current = condition(status, PROGRESSING)?;
    let over = matches!(
        current.reason.as_deref(),
        Some(DEADLINE_EXCEEDED | NEW_SET_AVAILABLE)
    );
    if over || is_complete(deployment, limits, status) {
        return None;
    }
    // A second later, since times are written without their fractions.
    expiry(current, deadline).map(|time| seconds_after(time, 1))
}

/// Shows what keeps replica sets from creating pods.
pub(super) fn copy_failures(
    new: Option<&Set>,
    old: &[Set],
    status: &mut DeploymentStatus,
    now: Timestamp,
) {
    let found = new.into_iter().chain(old).find_map(|set| {
        let conditions = set.object.status.as_ref()?.conditions.as_ref()?;
        conditions
            .iter()
            .find(|condition| condition.type_ == REPLICA_FAILURE)
    });
    match found {
        None => remove_condition(status, REPLICA_FAILURE),
        Some(failure) => {
            let reason = failure.reason.clone().unwrap_or_default();
            let message = failure.message.clone().unwrap_or_default();
            set_condition(
                status,
                REPLICA_FAILURE,
                &failure.status,
                &reason,
                message,
                now,
            );
        }
    }
}
