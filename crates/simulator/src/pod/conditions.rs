//! Conditions of a pod, derived from what its containers do.

use bellwether_api::workload::pod::{
    CONTAINERS_NOT_INITIALIZED, CONTAINERS_NOT_READY, CONTAINERS_READY, FAILED, INITIALIZED,
    POD_COMPLETED, POD_FAILED, READINESS_GATES_NOT_READY, READY, READY_TO_START, SCHEDULED,
    SUCCEEDED,
};
use bellwether_api::workload::status::{FALSE, TRUE};
use jiff::Timestamp;
use k8s_openapi::api::core::v1::{Pod, PodCondition, PodStatus};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

use super::container::{has_initialized, init};

/// Status, reason and message.
type Verdict = (&'static str, Option<&'static str>, Option<String>);

const HOLDS: Verdict = (TRUE, None, None);

/// Brings the conditions in line with the rest of the status. Those of others are left alone.
pub(super) fn set(pod: &Pod, status: &mut PodStatus, now: Timestamp) {
    let phase = status.phase.clone().unwrap_or_default();
    let old = status.conditions.take().unwrap_or_default();
    let containers = containers_ready(status, &phase);
    let ready = pod_ready(pod, &old, &containers);
    let wanted = [
        (READY_TO_START, ready_to_start(status, &phase)),
        (INITIALIZED, initialized(pod, status, &phase)),
        (READY, ready),
        (CONTAINERS_READY, containers),
        (SCHEDULED, HOLDS),
    ];
    let mut conditions: Vec<PodCondition> = wanted
        .into_iter()
        .map(|(kind, verdict)| condition(pod, &old, kind, verdict, now))
        .collect();
    let others = old
        .into_iter()
        .filter(|found| !conditions.iter().any(|known| known.type_ == found.type_));
    let others: Vec<_> = others.collect();
    conditions.extend(others);
    status.conditions = Some(conditions);
}

fn condition(
    pod: &Pod,
    old: &[PodCondition],
    kind: &str,
    (status, reason, message): Verdict,
    now: Timestamp,
) -> PodCondition {
    let before = old.iter().find(|found| found.type_ == kind);
    let since = before
        .filter(|found| found.status == status)
        .and_then(|found| found.last_transition_time.clone());
    PodCondition {
        type_: kind.to_owned(),
        status: status.to_owned(),
        reason: reason.map(str::to_owned),
        message,
        last_transition_time: Some(since.unwrap_or(Time(now))),
        last_probe_time: None,
        observed_generation: pod.metadata.generation,
    }
}

fn has_ended(phase: &str) -> bool {
    matches!(phase, SUCCEEDED | FAILED)
}

fn ready_to_start(status: &PodStatus, phase: &str) -> Verdict {
    if status.pod_ip.is_some() && !has_ended(phase) {
        HOLDS
    } else {
        (FALSE, None, None)
    }
}

fn initialized(pod: &Pod, status: &PodStatus, phase: &str) -> Verdict {
    if phase == SUCCEEDED {
        return (TRUE, Some(POD_COMPLETED), None);
    }
    if has_initialized(status) {
        return HOLDS;
    }
    let names: Vec<_> = init(pod).map(|container| container.name.as_str()).collect();
    let message = format!("containers with incomplete status: [{}]", names.join(" "));
    (FALSE, Some(CONTAINERS_NOT_INITIALIZED), Some(message))
}

fn containers_ready(status: &PodStatus, phase: &str) -> Verdict {
    match phase {
        SUCCEEDED => return (FALSE, Some(POD_COMPLETED), None),
        FAILED => return (FALSE, Some(POD_FAILED), None),
        _ => {}
    }
    let statuses = status.container_statuses.iter().flatten();
    let unready: Vec<_> = statuses
        .filter(|status| !status.ready)
        .map(|status| status.name.as_str())
        .collect();
    if unready.is_empty() {
        return HOLDS;
    }
    let message = format!("containers with unready status: [{}]", unready.join(" "));
    (FALSE, Some(CONTAINERS_NOT_READY), Some(message))
}

fn pod_ready(pod: &Pod, old: &[PodCondition], containers: &Verdict) -> Verdict {
    if containers.0 != TRUE {
        return containers.clone();
    }
    let gates = pod
        .spec
        .iter()
        .flat_map(|spec| spec.readiness_gates.iter().flatten());
    let problems: Vec<String> = gates
        .filter_map(|gate| {
            let name = &gate.condition_type;
            match old.iter().find(|found| found.type_ == *name) {
                None => Some(format!(
                    "corresponding condition of pod readiness gate {name:?} does not exist."
                )),
                Some(found) if found.status != TRUE => Some(format!(
                    "the status of pod readiness gate {name:?} is not \"True\", but {}",
                    found.status
                )),
                Some(_) => None,
            }
        })
        .collect();
    if problems.is_empty() {
        HOLDS
    } else {
        (
            FALSE,
            Some(READINESS_GATES_NOT_READY),
            Some(problems.join(", ")),
        )
    }
}
