//! Replica sets and replication controllers: as many pods as wanted, no more and no fewer.
//!
//! A replication controller is a replica set of an older make: its selector is plain labels, and its
//! status has fewer fields. [`Subject`] hides the difference.

use std::sync::Arc;

use bellwether_api::workload::deployment::{
    FAILED_CREATE, REPLICA_FAILURE, SUCCESSFUL_CREATE, SUCCESSFUL_DELETE,
};
use bellwether_api::workload::status::TRUE;
use jiff::Timestamp;
use k8s_openapi::api::apps::v1::{
    ReplicaSet, ReplicaSetCondition, ReplicaSetSpec, ReplicaSetStatus,
};
use k8s_openapi::api::core::v1::{Pod, PodTemplateSpec, ReplicationController};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{LabelSelector, ObjectMeta, Time};

use crate::kind::{Kind, Reference, is_deleting};
use crate::plan::{Event, Plan};
use crate::pods::{self, nonzero, number};
use crate::select::{matches, selects};

/// How many pods are created or deleted at a time.
const BURST: usize = 500;

/// What is to have so many pods.
#[derive(Debug, Clone)]
pub(crate) struct Subject {
    reference: Reference,
    metadata: ObjectMeta,
    spec: ReplicaSetSpec,
    status: ReplicaSetStatus,
}

impl Subject {
    /// A replica set; nothing if it says nothing.
    pub(crate) fn of_set(set: &ReplicaSet) -> Option<Self> {
        Some(Self {
            reference: Reference::to(set),
            metadata: set.metadata.clone(),
            spec: set.spec.clone()?,
            status: set.status.clone().unwrap_or_default(),
        })
    }

    /// A replication controller; nothing if it says nothing, or has no template.
    pub(crate) fn of_controller(controller: &ReplicationController) -> Option<Self> {
        let spec = controller.spec.as_ref()?;
        let status = controller.status.clone().unwrap_or_default();
        let conditions = status.conditions.map(|conditions| {
            let conditions = conditions.into_iter();
            let convert = conditions.map(|found| ReplicaSetCondition {
                type_: found.type_,
                status: found.status,
                reason: found.reason,
                message: found.message,
                last_transition_time: found.last_transition_time,
            });
            convert.collect()
        });
        Some(Self {
            reference: Reference::to(controller),
            metadata: controller.metadata.clone(),
            spec: ReplicaSetSpec {
                replicas: spec.replicas,
                min_ready_seconds: spec.min_ready_seconds,
                selector: LabelSelector {
                    match_labels: spec.selector.clone(),
                    ..LabelSelector::default()
                },
                template: spec.template.clone(),
            },
            status: ReplicaSetStatus {
                replicas: status.replicas,
                fully_labeled_replicas: status.fully_labeled_replicas,
                ready_replicas: status.ready_replicas,
                available_replicas: status.available_replicas,
                terminating_replicas: None,
                observed_generation: status.observed_generation,
                conditions,
            },
        })
    }

    /// The name that events about it go by.
    fn component(&self) -> &'static str {
        match self.reference.kind {
            Kind::ReplicationController => "replication-controller",
            _ => "replicaset-controller",
        }
    }

    fn template(&self) -> Option<&PodTemplateSpec> {
        self.spec.template.as_ref()
    }

    fn owner(&self) -> Reference {
        self.reference.clone()
    }
}

/// Everything that the decision may look at.
#[derive(Debug)]
pub(crate) struct View<'a> {
    pub(crate) subject: &'a Subject,
    /// Its pods.
    pub(crate) pods: &'a [Arc<Pod>],
    /// Pods in its namespace that nobody controls.
    pub(crate) orphans: &'a [Arc<Pod>],
    /// Why the last pod could not be created.
    pub(crate) trouble: Option<&'a str>,
    pub(crate) now: Timestamp,
}

/// What has to be done for a replica set or replication controller.
pub(crate) fn decide(view: &View<'_>) -> Plan {
    let mut plan = Plan::default();
    let Subject { spec, status, .. } = view.subject;
    let deleting = is_deleting(&view.subject.metadata);
    if !deleting && claim(view, &mut plan) {
        // What follows is decided when the pods are ours, or no longer ours.
        return plan;
    }
    let active: Vec<&Pod> = view
        .pods
        .iter()
        .map(AsRef::as_ref)
        .filter(|pod| pods::is_active(pod))
        .collect();
    if !deleting {
        let wanted = usize::try_from(spec.replicas.unwrap_or(1)).unwrap_or(0);
        adjust(view, &active, wanted, &mut plan);
    }
    let counts = pods::count(
        active.iter().copied(),
        spec.min_ready_seconds.unwrap_or(0),
        view.now,
    );
    if let Some(next) = counts.next {
        plan.wake_at(next);
    }
    plan.status_of(
        view.subject.owner(),
        status,
        &new_status(view, &active, counts),
    );
    plan
}

/// Takes pods that match and belong to nobody, and lets go of those that do not match any more.
fn claim(view: &View<'_>, plan: &mut Plan) -> bool {
    let owner = &view.subject.reference;
    let selector = &view.subject.spec.selector;
    let fits = |pod: &Pod| matches(selector, pod.metadata.labels.as_ref());
    for pod in view
        .orphans
        .iter()
        .filter(|pod| fits(pod) && pods::is_active(pod))
    {
        plan.adopt(pod.as_ref(), owner);
    }
    for pod in view
        .pods
        .iter()
        .filter(|pod| !fits(pod) && !is_deleting(&pod.metadata))
    {
        plan.release(pod.as_ref(), owner);
    }
    !plan.actions.is_empty()
}

/// Creates what is missing and deletes what is too much.
fn adjust(view: &View<'_>, active: &[&Pod], wanted: usize, plan: &mut Plan) {
    let Some(template) = view.subject.template() else {
        return;
    };
    let owner = || view.subject.owner();
    let component = view.subject.component();
    let missing = wanted.saturating_sub(active.len()).min(BURST);
    for _ in 0..missing {
        let event = Event::normal(owner(), component, SUCCESSFUL_CREATE, "Created pod: {}");
        let failed = Event::warning(owner(), component, FAILED_CREATE, "Error creating: {}");
        let pod = pods::from_template(template, &view.subject.reference);
        plan.create(&pod, Some(owner()), Some(event), Some(failed));
    }
    let surplus = active.len().saturating_sub(wanted).min(BURST);
    let mut candidates = active.to_vec();
    candidates.sort_by(|one, other| pods::worth(one).cmp(&pods::worth(other)));
    for pod in candidates.into_iter().take(surplus) {
        plan.delete(pod);
        let name = pod.metadata.name.as_deref().unwrap_or_default();
        let message = format!("Deleted pod: {name}");
        plan.record_event(Event::normal(
            owner(),
            component,
            SUCCESSFUL_DELETE,
            message,
        ));
    }
}

fn new_status(view: &View<'_>, active: &[&Pod], counts: pods::Counts) -> ReplicaSetStatus {
    let template = view.subject.template();
    let labels = template.and_then(|template| template.metadata.as_ref()?.labels.as_ref());
    let labelled = active
        .iter()
        .filter(|pod| selects(labels, pod.metadata.labels.as_ref()));
    let terminating = view
        .pods
        .iter()
        .filter(|pod| is_deleting(&pod.metadata) && !pods::has_ended(pod));
    // Replication controllers have no such field.
    let counts_terminating = view.subject.reference.kind == Kind::ReplicaSet;
    ReplicaSetStatus {
        replicas: number(active.len()),
        fully_labeled_replicas: nonzero(number(labelled.count())),
        ready_replicas: nonzero(counts.ready),
        available_replicas: nonzero(counts.available),
        terminating_replicas: counts_terminating.then(|| number(terminating.count())),
        observed_generation: view.subject.metadata.generation,
        conditions: conditions(view),
    }
}

fn conditions(view: &View<'_>) -> Option<Vec<ReplicaSetCondition>> {
    let mut conditions = view.subject.status.conditions.clone().unwrap_or_default();
    let known = conditions
        .iter()
        .any(|found| found.type_ == REPLICA_FAILURE);
    match view.trouble {
        Some(trouble) if !known => conditions.push(ReplicaSetCondition {
            type_: REPLICA_FAILURE.to_owned(),
            status: TRUE.to_owned(),
            reason: Some(FAILED_CREATE.to_owned()),
            message: Some(trouble.to_owned()),
            last_transition_time: Some(Time(view.now)),
        }),
        None => conditions.retain(|found| found.type_ != REPLICA_FAILURE),
        Some(_) => {}
    }
    (!conditions.is_empty()).then_some(conditions)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::Action;
    use serde_json::json;

    /// A pod as `name state`; states are `ready`, `starting`, `waiting`, `ended`, `leaving`, `other`.
    fn pod(text: &str) -> Arc<Pod> {
        let (name, state) = text.split_once(' ').unwrap();
        let ready = if state == "ready" { "True" } else { "False" };
        let phase = match state {
            "ended" => "Failed",
            "waiting" => "Pending",
            _ => "Running",
        };
        let mut pod = json!({
            "metadata": {"name": name, "uid": name, "creationTimestamp": "2026-01-01T00:00:00Z",
                         "labels": {"app": if state == "other" { "other" } else { "web" }}},
            "spec": {"containers": [], "nodeName": if state == "waiting" { None } else { Some("n") }},
            "status": {"phase": phase, "conditions": [{"type": "Ready", "status": ready, "lastTransitionTime": "2026-01-01T00:00:00Z"}]},
        });
        if state == "leaving" {
            pod["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
        }
        Arc::new(serde_json::from_value(pod).unwrap())
    }

    #[track_caller]
    fn check(replicas: i32, pods: &[&str], orphans: &[&str], expected: &[&str]) {
        let set: ReplicaSet = serde_json::from_value(json!({
            "metadata": {"name": "r", "namespace": "default", "uid": "r", "generation": 1},
            "spec": {"replicas": replicas, "selector": {"matchLabels": {"app": "web"}},
                     "template": {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": []}}},
        }))
        .unwrap();
        let pods: Vec<_> = pods.iter().map(|text| pod(text)).collect();
        let orphans: Vec<_> = orphans.iter().map(|text| pod(text)).collect();
        let view = View {
            subject: &Subject::of_set(&set).unwrap(),
            pods: &pods,
            orphans: &orphans,
            trouble: None,
            now: "2026-01-01T00:01:00Z".parse().unwrap(),
        };
        let plan = decide(&view);
        let done: Vec<String> = plan
            .actions
            .iter()
            .filter_map(|action| match action {
                Action::Create(_) => Some("+".to_owned()),
                Action::Delete { subject, .. } => Some(format!("-{}", subject.key.name)),
                Action::Patch { patch, subject, .. } if patch["status"].is_null() => {
                    let owners = patch["metadata"]["ownerReferences"]
                        .as_array()
                        .map_or(0, Vec::len);
                    Some(format!("{} owned by {owners}", subject.key.name))
                }
                Action::Patch { patch, .. } => {
                    let status = &patch["status"];
                    Some(format!(
                        "{}/{}",
                        status["readyReplicas"].as_i64().unwrap_or(0),
                        status["replicas"].as_i64().unwrap_or(0)
                    ))
                }
                _ => None,
            })
            .collect();
        assert_eq!(done, expected);
    }

    #[test]
    fn there_are_as_many_pods_as_wanted() {
        check(2, &[], &[], &["+", "+", "0/0"]);
        check(2, &["a ready", "b ready"], &[], &["2/2"]);
        check(2, &["a ready", "b ended", "c leaving"], &[], &["+", "1/1"]);
        check(0, &["a ready"], &[], &["-a", "1/1"]);
    }

    #[test]
    fn the_least_useful_pods_go_first() {
        check(
            1,
            &["a ready", "b starting", "c waiting"],
            &[],
            &["-c", "-b", "1/3"],
        );
        check(1, &["b ready", "a ready"], &[], &["-a", "2/2"]);
    }

    #[test]
    fn pods_are_adopted_and_released_by_their_labels() {
        check(
            2,
            &["a other"],
            &["b ready"],
            &["b owned by 1", "a owned by 0"],
        );
    }

    #[test]
    fn a_replication_controller_is_a_replica_set_by_another_name() {
        let controller: ReplicationController = serde_json::from_value(json!({
            "metadata": {"name": "r", "namespace": "default", "uid": "r", "generation": 1},
            "spec": {"replicas": 1, "selector": {"app": "web"},
                     "template": {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": []}}},
        }))
        .unwrap();
        let plan = decide(&View {
            subject: &Subject::of_controller(&controller).unwrap(),
            pods: &[],
            orphans: &[],
            trouble: None,
            now: "2026-01-01T00:01:00Z".parse().unwrap(),
        });
        let [Action::Create(create), Action::Patch { patch, subject, .. }] =
            plan.actions.as_slice()
        else {
            panic!("{plan:#?}");
        };
        let owner = &create.object["metadata"]["ownerReferences"][0];
        assert_eq!(
            (&owner["apiVersion"], &owner["kind"]),
            (&json!("v1"), &json!("ReplicationController"))
        );
        let event = create.event.as_ref().unwrap();
        assert_eq!(event.source.component, "replication-controller");
        assert_eq!(subject.kind, Kind::ReplicationController);
        assert_eq!(patch["status"], json!({"observedGeneration": 1}));
    }
}
