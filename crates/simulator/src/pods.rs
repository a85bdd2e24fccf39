//! What controllers ask of the pods that they own.

use std::cmp::Reverse;

use bellwether_api::workload::deployment::POD_DELETION_COST;
use bellwether_api::workload::pod::{FAILED, PENDING, READY, RUNNING, SUCCEEDED};
use bellwether_api::workload::status::TRUE;
use jiff::Timestamp;
use k8s_openapi::api::core::v1::{Pod, PodCondition, PodTemplateSpec};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;

use crate::kind::{Reference, annotation, is_deleting};
use crate::time::seconds_after;

/// The phase that a pod is in.
pub(crate) fn phase(pod: &Pod) -> &str {
    let status = pod.status.as_ref();
    status
        .and_then(|status| status.phase.as_deref())
        .unwrap_or(PENDING)
}

/// Whether all its containers have ended for good.
pub(crate) fn has_ended(pod: &Pod) -> bool {
    matches!(phase(pod), SUCCEEDED | FAILED)
}

/// Whether it counts as a replica: it has not ended, and nobody wants it gone.
pub(crate) fn is_active(pod: &Pod) -> bool {
    !has_ended(pod) && !is_deleting(&pod.metadata)
}

/// A condition of a pod.
pub(crate) fn condition<'a>(pod: &'a Pod, kind: &str) -> Option<&'a PodCondition> {
    let conditions = pod.status.as_ref()?.conditions.as_ref()?;
    conditions.iter().find(|condition| condition.type_ == kind)
}

/// Whether it can be used.
pub(crate) fn is_ready(pod: &Pod) -> bool {
    condition(pod, READY).is_some_and(|condition| condition.status == TRUE)
}

/// Since when it can be used.
pub(crate) fn ready_since(pod: &Pod) -> Option<Timestamp> {
    let condition = condition(pod, READY).filter(|condition| condition.status == TRUE)?;
    condition.last_transition_time.as_ref().map(|time| time.0)
}

/// When a pod that can be used counts as available; nothing for one that cannot.
pub(crate) fn available_at(pod: &Pod, min_ready_seconds: i32) -> Option<Timestamp> {
    let since = ready_since(pod)?;
    Some(seconds_after(since, i64::from(min_ready_seconds)))
}

/// How many of a kind there are, and when there will be more without anybody doing anything.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Counts {
    pub(crate) ready: i32,
    pub(crate) available: i32,
    pub(crate) next: Option<Timestamp>,
}

/// Counts pods that are ready, and those that have been so for long enough.
pub(crate) fn count<'a>(
    pods: impl IntoIterator<Item = &'a Pod>,
    min_ready_seconds: i32,
    now: Timestamp,
) -> Counts {
    let mut counts = Counts::default();
    for pod in pods.into_iter().filter(|pod| is_ready(pod)) {
        counts.ready += 1;
        match available_at(pod, min_ready_seconds) {
            Some(time) if time <= now => counts.available += 1,
            Some(time) => {
                counts.next = Some(counts.next.map_or(time, |next| next.min(time)));
            }
            None => {}
        }
    }
    counts
}

/// What a pod is worth when some have to go: the smallest goes first.
type Worth<'a> = (
    bool,
    u8,
    bool,
    i64,
    Reverse<Timestamp>,
    Reverse<i32>,
    Reverse<Timestamp>,
    &'a str,
);

/// The order in which surplus pods are deleted (`ActivePodsWithRanks` in Kubernetes): not on a node
/// before on one, pending before running, not ready before ready, cheap before dear, ready for a
/// short time before long, restarted often before seldom, young before old.
pub(crate) fn worth(pod: &Pod) -> Worth<'_> {
    let status = pod.status.as_ref();
    let on_node = pod
        .spec
        .as_ref()
        .is_some_and(|spec| spec.node_name.is_some());
    let phase = match phase(pod) {
        PENDING => 0,
        RUNNING => 2,
        _ => 1,
    };
    let cost = annotation(&pod.metadata, POD_DELETION_COST);
    let cost = cost.and_then(|text| text.parse::<i64>().ok()).unwrap_or(0);
    let restarts = status
        .into_iter()
        .flat_map(|status| status.container_statuses.iter().flatten());
    let restarts = restarts
        .map(|status| status.restart_count)
        .max()
        .unwrap_or(0);
    let created = pod
        .metadata
        .creation_timestamp
        .as_ref()
        .map_or(Timestamp::MAX, |time| time.0);
    (
        on_node,
        phase,
        is_ready(pod),
        cost,
        Reverse(ready_since(pod).unwrap_or(Timestamp::MIN)),
        Reverse(restarts),
        Reverse(created),
        pod.metadata.name.as_deref().unwrap_or_default(),
    )
}

/// A pod made from a template, whose name begins with that of its owner.
pub(crate) fn from_template(template: &PodTemplateSpec, owner: &Reference) -> Pod {
    let metadata = template.metadata.clone().unwrap_or_default();
    Pod {
        metadata: ObjectMeta {
            generate_name: Some(prefix(&owner.key.name)),
            namespace: Some(owner.key.namespace.to_string()),
            labels: metadata.labels,
            annotations: metadata.annotations,
            finalizers: metadata.finalizers,
            owner_references: Some(vec![owner.controller()]),
            ..ObjectMeta::default()
        },
        spec: Some(template.spec.clone().unwrap_or_default()),
        status: None,
    }
}

/// The beginning of generated names; with a hyphen if that leaves a valid name.
fn prefix(owner: &str) -> String {
    format!("{owner}-")
}

/// A count as statuses write it: none if there is nothing to count.
pub(crate) fn nonzero(count: i32) -> Option<i32> {
    (count != 0).then_some(count)
}

/// How many there are, as statuses write it.
pub(crate) fn number(count: usize) -> i32 {
    i32::try_from(count).unwrap_or(i32::MAX)
}
