//! What a member says itself about workloads that its works report as failing.

use bellwether_api::work::ManifestWork;
use bellwether_work::cause::{self, Cause};
use kube::Client;
use serde_json::Value;

use super::rollout::Trouble;
use crate::error::Error;
use crate::request::{self, JSON, escape, with_query};

/// Asks a member about the pods of the failing workloads of a work.
pub(super) async fn troubles(client: &Client, work: &ManifestWork) -> Result<Vec<Trouble>, Error> {
    let name = work.metadata.name.as_deref().unwrap_or_default();
    let mut found = Vec::new();
    for cause in &cause::of_work(work) {
        let Some(pods) = pods_of(client, name, cause).await? else {
            continue;
        };
        if let Some(text) = trouble(&pods) {
            let cause = cause.clone();
            found.push(Trouble { cause, text });
        }
    }
    Ok(found)
}

/// The pods of a workload; nothing if it is of a kind without pods, gone, or not of that work: a
/// context of the name of a cluster may be another cluster.
async fn pods_of(client: &Client, work: &str, cause: &Cause) -> Result<Option<Vec<Value>>, Error> {
    let (namespace, name) = (escape(&cause.namespace), escape(&cause.name));
    let path = match cause.kind.as_str() {
        "Deployment" | "StatefulSet" | "DaemonSet" | "ReplicaSet" => {
            let plural = format!("{}s", cause.kind.to_lowercase());
            format!("/apis/apps/v1/namespaces/{namespace}/{plural}/{name}")
        }
        "Job" => format!("/apis/batch/v1/namespaces/{namespace}/jobs/{name}"),
        "Pod" => format!("/api/v1/namespaces/{namespace}/pods/{name}"),
        _ => return Ok(None),
    };
    let object = match request::get(client, &path, JSON).await {
        Err(error) if error.is_not_found() => return Ok(None),
        answer => answer?,
    };
    if !is_applied_by(&object, work) {
        return Ok(None);
    }
    if cause.kind == "Pod" {
        return Ok(Some(vec![object]));
    }
    let labels = object["spec"]["selector"]["matchLabels"].as_object();
    let labels: Vec<String> = labels
        .into_iter()
        .flatten()
        .map(|(key, value)| format!("{key}={}", text(value)))
        .collect();
    if labels.is_empty() {
        return Ok(None);
    }
    let query = [("labelSelector", labels.join(","))];
    let query = query.each_ref().map(|(key, value)| (*key, value.as_str()));
    let path = with_query(&format!("/api/v1/namespaces/{namespace}/pods"), &query);
    let list = request::get(client, &path, JSON).await?;
    let pods = list["items"].as_array().cloned();
    Ok(Some(pods.unwrap_or_default()))
}

/// True if an object belongs to the record of a work.
fn is_applied_by(object: &Value, work: &str) -> bool {
    let owners = object["metadata"]["ownerReferences"].as_array();
    let is_record = |owner: &Value| {
        let name = text(&owner["name"]).strip_suffix(work);
        owner["kind"] == "AppliedManifestWork" && name.is_some_and(|hub| hub.ends_with('-'))
    };
    owners.is_some_and(|owners| owners.iter().any(is_record))
}

/// Why pods do not run: the first one that does not, and how many others say the same.
fn trouble(pods: &[Value]) -> Option<String> {
    let mut troubles = pods
        .iter()
        .filter_map(|pod| Some((text(&pod["metadata"]["name"]), why_not_running(pod)?)));
    let (name, why) = troubles.next()?;
    let same = troubles.filter(|(_, other)| *other == why).count();
    Some(match same {
        0 => format!("pod {name}: {why}"),
        more => format!("pod {name} and {more} more: {why}"),
    })
}

fn why_not_running(pod: &Value) -> Option<String> {
    let containers = ["initContainerStatuses", "containerStatuses"]
        .into_iter()
        .filter_map(|list| pod["status"][list].as_array())
        .flatten();
    for container in containers {
        let waiting = &container["state"]["waiting"];
        let reason = text(&waiting["reason"]);
        if !matches!(reason, "" | "ContainerCreating" | "PodInitializing") {
            return Some(joined(reason, text(&waiting["message"])));
        }
        let ended = &container["state"]["terminated"];
        let code = ended["exitCode"].as_i64().unwrap_or_default();
        if code != 0 {
            let why = joined(text(&ended["reason"]), text(&ended["message"]));
            return Some(format!("{why} (exit code {code})"));
        }
    }
    let conditions = pod["status"]["conditions"].as_array()?;
    let is_unplaced = |it: &&Value| it["type"] == "PodScheduled" && it["status"] == "False";
    let unplaced = conditions.iter().find(is_unplaced)?;
    Some(joined(
        text(&unplaced["reason"]),
        text(&unplaced["message"]),
    ))
}

fn joined(reason: &str, message: &str) -> String {
    // A scheduler adds that preemption would not help either.
    let message = message.split(" preemption:").next().unwrap_or_default();
    match (reason, message.trim().trim_end_matches('.')) {
        (reason, "") => reason.to_owned(),
        ("", message) => message.to_owned(),
        (reason, message) => format!("{reason}: {message}"),
    }
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn check(pods: &Value, expected: Option<&str>) {
        let pods = pods.as_array().unwrap();
        assert_eq!(trouble(pods).as_deref(), expected);
    }

    fn pod(name: &str, status: &Value) -> Value {
        json!({"metadata": {"name": name}, "status": status})
    }

    #[test]
    fn an_object_belongs_to_the_work_whose_record_owns_it() {
        let owned = |kind: &str, name: &str| {
            let owner = json!({"kind": kind, "name": name});
            is_applied_by(&json!({"metadata": {"ownerReferences": [owner]}}), "web")
        };
        assert!(owned("AppliedManifestWork", "8f3a-web"));
        assert!(!owned("AppliedManifestWork", "8f3a-cobweb"));
        assert!(!owned("ReplicaSet", "8f3a-web"));
        assert!(!is_applied_by(&json!({"metadata": {}}), "web"));
    }

    #[test]
    fn the_first_pod_that_does_not_run_says_why() {
        let running = pod(
            "a",
            &json!({"containerStatuses": [{"state": {"running": {}}}]}),
        );
        let waiting = json!({"reason": "CrashLoopBackOff", "message": "back-off 10s."});
        let crashing = json!({"containerStatuses": [{"state": {"waiting": waiting}}]});
        let unplaced = json!({"conditions": [{"type": "PodScheduled", "status": "False",
            "reason": "Unschedulable", "message": "0/1 nodes are available. preemption: no."}]});
        let ended = json!({"state": {"terminated": {"exitCode": 3, "reason": "Error"}}});
        let ended = json!({"containerStatuses": [ended]});
        check(&json!([running]), None);
        check(&json!([]), None);
        check(
            &json!([running, pod("b", &crashing), pod("c", &crashing)]),
            Some("pod b and 1 more: CrashLoopBackOff: back-off 10s"),
        );
        check(
            &json!([pod("b", &unplaced)]),
            Some("pod b: Unschedulable: 0/1 nodes are available"),
        );
        check(
            &json!([pod("b", &ended)]),
            Some("pod b: Error (exit code 3)"),
        );
    }
}
