//! What the server sets of a pod by itself, and what parts of it can be written on their own.

use bellwether_json::time;
use jiff::Timestamp;
use serde_json::{Value, json};

use super::qos;
use crate::Creation;
use crate::value::{
    Fill, at, by_name, existing, int, is_zero, items, list, restore, restore_at, text,
};

const GRACE: &str = "terminationGracePeriodSeconds";
/// How long pods stay on a node that is lost.
const EVICTION_SECONDS: i64 = 300;

/// Sets the first status of a pod, and what the admission plugins of every cluster set.
pub(super) fn create(pod: &mut Value, creation: &Creation<'_>) {
    tolerate_lost_nodes(pod);
    if int(pod, &["spec", GRACE]) < 0
        && let Some(spec) = existing(pod, &["spec"])
    {
        spec.insert(GRACE.to_owned(), 1.into());
    }
    let class = qos::class(at(pod, &["spec"]));
    let gated = !list(pod, &["spec", "schedulingGates"]).is_empty();
    let Some(status) = existing(pod, &["status"]) else {
        return;
    };
    status.insert("phase".to_owned(), "Pending".into());
    status.insert("qosClass".to_owned(), class.into());
    if gated {
        let condition = json!([{
            "type": "PodScheduled",
            "status": "False",
            "lastProbeTime": null,
            "lastTransitionTime": time::format_time(creation.now),
            "reason": "SchedulingGated",
            "message": "Scheduling is blocked due to non-empty scheduling gates",
        }]);
        status.insert("conditions".to_owned(), condition);
    }
}

/// Sets the priority of a pod by its class: the PriorityClass that it names, or the one that is the
/// default of the cluster; without one, the priority is 0. A pod that names no known class, or says
/// something else than its class does, is refused; one that repeats it, as copies do, is not.
pub fn set_priority(pod: &mut Value, class: Option<&Value>) -> Result<(), String> {
    let name = text(pod, &["spec", "priorityClassName"]);
    let value = match (class, name) {
        (Some(class), _) => int(class, &["value"]),
        (None, "system-node-critical") => 2_000_001_000,
        (None, "system-cluster-critical") => 2_000_000_000,
        (None, "") => 0,
        (None, name) => return Err(format!("no PriorityClass with name {name} was found")),
    };
    let policy = match class.map(|class| text(class, &["preemptionPolicy"])) {
        None | Some("") => "PreemptLowerPriority",
        Some(policy) => policy,
    };
    let Some(spec) = existing(pod, &["spec"]) else {
        return Ok(());
    };
    if let Some(given) = spec.get("priority").filter(|given| **given != value) {
        return Err(format!(
            "the integer value of priority ({given}) must not be provided in pod spec; priority admission controller computed {value} from the given PriorityClass name"
        ));
    }
    if let Some(given) = spec.get("preemptionPolicy").and_then(Value::as_str)
        && given != policy
    {
        return Err(format!(
            "the string value of PreemptionPolicy ({given}) must not be provided in pod spec; priority admission controller computed {policy} from the given PriorityClass name"
        ));
    }
    if let Some(class) = class {
        spec.fill_zero(
            "priorityClassName",
            at(class, &["metadata", "name"]).clone(),
        );
    }
    spec.insert("priority".to_owned(), value.into());
    spec.fill("preemptionPolicy", policy);
    Ok(())
}

/// Pods stay for a while on nodes that are not ready or not reachable, unless they say otherwise.
fn tolerate_lost_nodes(pod: &mut Value) {
    for key in [
        "node.kubernetes.io/not-ready",
        "node.kubernetes.io/unreachable",
    ] {
        let tolerations = list(pod, &["spec", "tolerations"]);
        let tolerated = tolerations.iter().any(|toleration| {
            ["", key].contains(&text(toleration, &["key"]))
                && matches!(text(toleration, &["effect"]), "" | "NoExecute")
        });
        let Some(spec) = existing(pod, &["spec"]) else {
            return;
        };
        if tolerated {
            continue;
        }
        spec.fill_zero("tolerations", Value::Array(Vec::new()));
        if let Some(Value::Array(tolerations)) = spec.get_mut("tolerations") {
            tolerations.push(json!({
                "key": key,
                "operator": "Exists",
                "effect": "NoExecute",
                "tolerationSeconds": EVICTION_SECONDS,
            }));
        }
    }
}

/// Restores what does not belong to the part that is written.
pub(super) fn part(part: &str, new: &mut Value, old: &Value, _now: Timestamp) {
    match part {
        "status" => status(new, old),
        "ephemeralcontainers" => only(new, old, |new, old| {
            let added = at(new, &["spec", "ephemeralContainers"]).clone();
            restore(new, old, "spec");
            if let Some(spec) = existing(new, &["spec"])
                && !is_zero(&added)
            {
                spec.insert("ephemeralContainers".to_owned(), added);
            }
        }),
        "resize" => only(new, old, resize),
        _ => {}
    }
}

fn status(new: &mut Value, old: &Value) {
    restore_at(new, old, &["metadata"], "ownerReferences");
    if text(new, &["status", "qosClass"]).is_empty() {
        restore_at(new, old, &["status"], "qosClass");
    }
}

/// Restores everything but what `change` leaves of the new spec.
fn only(new: &mut Value, old: &Value, change: fn(&mut Value, &Value)) {
    restore(new, old, "status");
    for field in ["labels", "annotations", "finalizers", "ownerReferences"] {
        restore_at(new, old, &["metadata"], field);
    }
    change(new, old);
}

/// Keeps the resources of containers that were there before, and nothing else.
fn resize(new: &mut Value, old: &Value) {
    let wanted = at(new, &["spec"]).clone();
    restore(new, old, "spec");
    for kind in ["containers", "initContainers"] {
        let wanted = by_name(list(&wanted, &[kind]));
        for container in items(new, &["spec", kind]) {
            let Some(wanted) = wanted.get(text(container, &["name"])) else {
                continue;
            };
            restore(container, wanted, "resources");
            restore(container, wanted, "resizePolicy");
        }
    }
}
