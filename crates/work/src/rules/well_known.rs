//! What is known about common kinds: when they are done, on their way, or not as they should be.

use bellwether_api::work::names::condition;
use serde_json::{Value, json};

use super::{Conclusion, Past};

/// Conditions that rollouts look at.
pub const OF_ROLLOUTS: [&str; 2] = [condition::PROGRESSING, condition::DEGRADED];

/// What is known about a condition of an object of a common kind; nothing of others.
pub fn conclude(name: &str, object: &Value, past: Past) -> Option<Conclusion> {
    let (holds, message) = facts(name, object, past)?;
    Some(match message {
        Some(message) => Conclusion::with_message(name, holds, message),
        None => Conclusion::plain(name, holds),
    })
}

/// Group, resource, version and kind of the kinds that well-known rules are about.
const KINDS: [[&str; 4]; 9] = [
    ["", "pods", "v1", "Pod"],
    ["", "persistentvolumeclaims", "v1", "PersistentVolumeClaim"],
    ["apps", "deployments", "apps/v1", "Deployment"],
    ["apps", "statefulsets", "apps/v1", "StatefulSet"],
    ["apps", "daemonsets", "apps/v1", "DaemonSet"],
    ["batch", "jobs", "batch/v1", "Job"],
    ["batch", "cronjobs", "batch/v1", "CronJob"],
    [
        "apiextensions.k8s.io",
        "customresourcedefinitions",
        "apiextensions.k8s.io/v1",
        "CustomResourceDefinition",
    ],
    [
        "apiregistration.k8s.io",
        "apiservices",
        "apiregistration.k8s.io/v1",
        "APIService",
    ],
];

/// Returns true if there is a well-known rule for a condition of objects that are named by their
/// resource. Without a group, the resource may be of any.
pub fn is_supported(name: &str, group: &str, resource: &str) -> bool {
    let mut kinds = KINDS.iter();
    kinds.any(|[known_group, known_resource, api_version, kind]| {
        let object = json!({"apiVersion": api_version, "kind": kind});
        *known_resource == resource
            && (group.is_empty() || *known_group == group)
            && facts(name, &object, Past::default()).is_some()
    })
}

type Fact = Option<(bool, Option<String>)>;

fn facts(name: &str, object: &Value, past: Past) -> Fact {
    let api_version = object["apiVersion"].as_str().unwrap_or_default();
    let kind = object["kind"].as_str().unwrap_or_default();
    match (name, api_version, kind) {
        (condition::COMPLETE, "batch/v1", "Job") => {
            let done = has(object, "Complete") || has(object, "Failed");
            Some((done, None))
        }
        (condition::COMPLETE, "v1", "Pod") => {
            let phase = object["status"]["phase"].as_str().unwrap_or_default();
            Some((matches!(phase, "Succeeded" | "Failed"), None))
        }
        (condition::COMPLETE, "batch/v1", "CronJob") => {
            Some((last_run(object) == Run::Succeeded, None))
        }
        (condition::PROGRESSING, _, _) => progressing(api_version, kind, object),
        (condition::DEGRADED, _, _) => degraded(api_version, kind, object, past),
        (condition::AVAILABLE, _, _) => available(api_version, kind, object),
        _ => None,
    }
}

fn progressing(api_version: &str, kind: &str, object: &Value) -> Fact {
    let status = &object["status"];
    let is_current = is_observed(object);
    let behind = |what: &str, have: i64, want: i64| {
        let on_its_way = !is_current || have < want;
        let message = format!("{have} of {want} {what}");
        Some((on_its_way, Some(message)))
    };
    match (api_version, kind) {
        ("apps/v1", "Deployment") => {
            let want = count(&object["spec"], "replicas", 1);
            let have =
                count(status, "updatedReplicas", 0).min(count(status, "availableReplicas", 0));
            let surplus = count(status, "replicas", 0) > count(status, "updatedReplicas", 0);
            let (on_its_way, message) = behind("replicas are updated and available", have, want)?;
            Some((on_its_way || surplus, message))
        }
        ("apps/v1", "StatefulSet") => {
            let want = count(&object["spec"], "replicas", 1);
            let have = if status["updateRevision"] == status["currentRevision"] {
                count(status, "readyReplicas", 0)
            } else {
                count(status, "updatedReplicas", 0).min(count(status, "readyReplicas", 0))
            };
            behind("replicas are updated and ready", have, want)
        }
        ("apps/v1", "DaemonSet") => {
            let want = count(status, "desiredNumberScheduled", 0);
            let have =
                count(status, "updatedNumberScheduled", 0).min(count(status, "numberAvailable", 0));
            behind("nodes are updated and available", have, want)
        }
        // It is where it should be as soon as it is there: when it runs is another matter.
        ("batch/v1", "CronJob") => Some((false, None)),
        // One that failed will not be done: to a rollout it is on its way, and degraded.
        ("batch/v1", "Job") => Some((!has(object, "Complete"), None)),
        ("v1", "Pod") => {
            let phase = status["phase"].as_str().unwrap_or_default();
            // One that failed will not be done either.
            let done = phase == "Succeeded" || has(object, "Ready");
            Some((!done, Some(format!("Pod is in phase {phase}"))))
        }
        ("v1", "PersistentVolumeClaim") => {
            let phase = status["phase"].as_str().unwrap_or_default();
            Some((
                phase != "Bound",
                Some(format!("PersistentVolumeClaim is in phase {phase}")),
            ))
        }
        ("apiextensions.k8s.io/v1", "CustomResourceDefinition") => {
            Some((!has(object, "Established"), None))
        }
        ("apiregistration.k8s.io/v1", "APIService") => Some((!has(object, "Available"), None)),
        _ => None,
    }
}

fn degraded(api_version: &str, kind: &str, object: &Value, past: Past) -> Fact {
    match (api_version, kind) {
        ("apps/v1", "Deployment") => {
            let stuck = condition_in(object, "Progressing").filter(|found| {
                found["status"] == "False" || found["reason"] == "ProgressDeadlineExceeded"
            });
            let failing =
                condition_in(object, "ReplicaFailure").filter(|found| found["status"] == "True");
            let why = stuck.or(failing);
            Some((why.is_some(), why.and_then(message_of)))
        }
        // They do not say themselves that they are stuck. What starts is on its way, for as long as
        // it takes; what had all that it needs and lacks some of it is degraded.
        ("apps/v1", "StatefulSet") => Some(lost(lacking_replicas(object), past)),
        ("apps/v1", "DaemonSet") => Some(lost(lacking_nodes(object), past)),
        ("batch/v1", "CronJob") => {
            let has_failed = last_run(object) == Run::Failed;
            let message = has_failed.then(|| "the last run did not succeed".to_owned());
            Some((has_failed, message))
        }
        ("batch/v1", "Job") => {
            let why = condition_in(object, "Failed").filter(|found| found["status"] == "True");
            Some((why.is_some(), why.and_then(message_of)))
        }
        ("v1", "Pod") => {
            let phase = object["status"]["phase"].as_str().unwrap_or_default();
            let waiting = waiting_badly(object);
            let message = waiting
                .clone()
                .or_else(|| Some(format!("Pod is in phase {phase}")));
            Some((phase == "Failed" || waiting.is_some(), message))
        }
        ("v1", "PersistentVolumeClaim") => {
            let phase = object["status"]["phase"].as_str().unwrap_or_default();
            Some((
                phase == "Lost",
                Some(format!("PersistentVolumeClaim is in phase {phase}")),
            ))
        }
        ("apiextensions.k8s.io/v1", "CustomResourceDefinition") => {
            let why =
                condition_in(object, "NamesAccepted").filter(|found| found["status"] == "False");
            Some((why.is_some(), why.and_then(message_of)))
        }
        ("apiregistration.k8s.io/v1", "APIService") => {
            let why = condition_in(object, "Available").filter(|found| found["status"] == "False");
            Some((why.is_some(), why.and_then(message_of)))
        }
        _ => None,
    }
}

fn available(api_version: &str, kind: &str, object: &Value) -> Fact {
    match (api_version, kind) {
        ("apps/v1", "Deployment") => {
            // A few may be missing while it is updated, and it says so itself.
            let want = count(&object["spec"], "replicas", 1);
            let have = count(&object["status"], "availableReplicas", 0);
            Some((has(object, "Available") || have >= want, None))
        }
        ("apps/v1", "StatefulSet") => {
            let want = count(&object["spec"], "replicas", 1);
            Some((count(&object["status"], "readyReplicas", 0) >= want, None))
        }
        ("apps/v1", "DaemonSet") => {
            let status = &object["status"];
            let want = count(status, "desiredNumberScheduled", 0);
            Some((
                is_observed(object) && count(status, "numberAvailable", 0) >= want,
                None,
            ))
        }
        ("v1", "Pod") => {
            let is_done = object["status"]["phase"] == "Succeeded";
            Some((is_done || has(object, "Ready"), None))
        }
        ("v1", "PersistentVolumeClaim") => Some((object["status"]["phase"] == "Bound", None)),
        ("apiextensions.k8s.io/v1", "CustomResourceDefinition") => {
            Some((has(object, "Established"), None))
        }
        ("apiregistration.k8s.io/v1", "APIService") => Some((has(object, "Available"), None)),
        _ => None,
    }
}

/// What a workload that had everything lacks now.
fn lost(lacking: Option<String>, past: Past) -> (bool, Option<String>) {
    let lost = lacking.filter(|_| past.had_arrived);
    (lost.is_some(), lost)
}

/// What a StatefulSet lacks whose update is over.
fn lacking_replicas(object: &Value) -> Option<String> {
    let status = &object["status"];
    let want = count(&object["spec"], "replicas", 1);
    let is_updated = status["updateRevision"] == status["currentRevision"]
        || count(status, "updatedReplicas", 0) >= want;
    let ready = count(status, "readyReplicas", 0);
    (is_observed(object) && is_updated && ready < want)
        .then(|| format!("only {ready} of {want} replicas are ready any more"))
}

/// What a DaemonSet lacks whose update is over, or has too much of.
fn lacking_nodes(object: &Value) -> Option<String> {
    let status = &object["status"];
    let want = count(status, "desiredNumberScheduled", 0);
    if !is_observed(object) || count(status, "updatedNumberScheduled", 0) < want {
        return None;
    }
    let available = count(status, "numberAvailable", 0);
    let misplaced = count(status, "numberMisscheduled", 0);
    if available < want {
        Some(format!(
            "only on {available} of {want} nodes it is available any more"
        ))
    } else {
        (misplaced > 0).then(|| format!("it runs on {misplaced} nodes where it should not"))
    }
}

/// How the last run of a CronJob ended.
#[derive(Debug, PartialEq, Eq)]
enum Run {
    /// There was none, or it is not over.
    Open,
    Succeeded,
    Failed,
}

fn last_run(object: &Value) -> Run {
    // Times of one form compare as texts.
    let time = |field: &str| object["status"][field].as_str().unwrap_or_default();
    let (begun, done) = (time("lastScheduleTime"), time("lastSuccessfulTime"));
    if has_active(object) || begun.is_empty() && done.is_empty() {
        Run::Open
    } else if done >= begun {
        Run::Succeeded
    } else {
        Run::Failed
    }
}

/// Whether the status speaks of the object as it is now.
fn is_observed(object: &Value) -> bool {
    let generation = object["metadata"]["generation"]
        .as_i64()
        .unwrap_or_default();
    object["status"]["observedGeneration"]
        .as_i64()
        .unwrap_or_default()
        >= generation
}

fn count(value: &Value, field: &str, absent: i64) -> i64 {
    value.get(field).and_then(Value::as_i64).unwrap_or(absent)
}

fn has_active(object: &Value) -> bool {
    object["status"]["active"]
        .as_array()
        .is_some_and(|list| !list.is_empty())
}

fn condition_in<'a>(object: &'a Value, name: &str) -> Option<&'a Value> {
    let list = object["status"]["conditions"].as_array()?;
    list.iter().find(|found| found["type"] == name)
}

/// Whether a condition of the object's own status is True.
fn has(object: &Value, name: &str) -> bool {
    condition_in(object, name).is_some_and(|found| found["status"] == "True")
}

fn message_of(condition: &Value) -> Option<String> {
    let text = condition["message"]
        .as_str()
        .filter(|text| !text.is_empty());
    text.map(str::to_owned)
}

/// Why a container will not start by itself, if one will not.
fn waiting_badly(object: &Value) -> Option<String> {
    const BAD: [&str; 5] = [
        "CrashLoopBackOff",
        "ImagePullBackOff",
        "ErrImagePull",
        "InvalidImageName",
        "CreateContainerConfigError",
    ];
    let containers = object["status"]["containerStatuses"].as_array()?;
    containers.iter().find_map(|container| {
        let reason = container["state"]["waiting"]["reason"].as_str()?;
        let name = container["name"].as_str().unwrap_or_default();
        BAD.contains(&reason)
            .then(|| format!("container {name} is waiting: {reason}"))
    })
}

#[cfg(test)]
mod tests;
