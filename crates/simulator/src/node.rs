//! The node of a simulated cluster, and the storage class that comes with it.

use bellwether_api::simulator::PROVISIONER;
use bellwether_api::workload::pod::READY;
use bellwether_api::workload::status::{FALSE, TRUE};
use bellwether_api::workload::volume::DEFAULT_CLASS;
use bellwether_json::time::format_time;
use jiff::Timestamp;
use k8s_openapi::api::core::v1::{Node, Taint};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use serde_json::{Value, json};

use crate::plan::Plan;

/// The address of the first node; each further one has the next.
const NETWORK: [u8; 2] = [172, 18];
/// The version that nodes seem to run: that of the API server.
const VERSION: &str = "v1.35.4";

/// Keeps pods away until the node is ready; the server gives it to every new node.
const NOT_READY: &str = "node.kubernetes.io/not-ready";
/// Keeps pods away from a node that was cordoned.
const UNSCHEDULABLE: &str = "node.kubernetes.io/unschedulable";

/// What has to be done for a node: its taints have to say what its status and spec say.
pub(crate) fn decide(node: &Node, now: Timestamp) -> Plan {
    let mut plan = Plan::default();
    let spec = node.spec.as_ref();
    let old = spec
        .and_then(|spec| spec.taints.clone())
        .unwrap_or_default();
    let cordoned = spec.and_then(|spec| spec.unschedulable).unwrap_or(false);
    let mut taints = old.clone();
    if is_ready(node) {
        taints.retain(|taint| taint.key != NOT_READY);
    }
    if !cordoned {
        taints.retain(|taint| taint.key != UNSCHEDULABLE);
    } else if !taints.iter().any(|taint| taint.key == UNSCHEDULABLE) {
        taints.push(Taint {
            key: UNSCHEDULABLE.to_owned(),
            effect: "NoSchedule".to_owned(),
            time_added: Some(Time(now)),
            value: None,
        });
    }
    if taints != old {
        let taints = if taints.is_empty() {
            Value::Null
        } else {
            crate::plan::to_json(&taints)
        };
        plan.patch(node, json!({"spec": {"taints": taints}}));
    }
    plan
}

/// Whether a node says that it can take pods.
pub(crate) fn is_ready(node: &Node) -> bool {
    let conditions = node
        .status
        .as_ref()
        .and_then(|status| status.conditions.as_ref());
    conditions.is_some_and(|conditions| {
        let mut conditions = conditions.iter();
        conditions.any(|found| found.type_ == READY && found.status == TRUE)
    })
}

/// The name of the node of a cluster.
pub(crate) fn name(cluster: &str) -> String {
    format!("{cluster}-node")
}

/// The address of a node, from its status.
pub(crate) fn address(node: &Node) -> Option<&str> {
    let addresses = node.status.as_ref()?.addresses.as_ref()?;
    let internal = addresses
        .iter()
        .find(|address| address.type_ == "InternalIP")?;
    Some(&internal.address)
}

/// The node of a new cluster. It is large, since nothing really runs on it.
pub(crate) fn new_node(cluster: &str, now: Timestamp) -> Value {
    let name = name(cluster);
    let time = format_time(now);
    let condition = |kind: &str, status: &str, reason: &str, message: &str| {
        json!({
            "type": kind, "status": status, "reason": reason, "message": message,
            "lastHeartbeatTime": time, "lastTransitionTime": time,
        })
    };
    let resources = json!({
        "cpu": "64", "memory": "256Gi", "ephemeral-storage": "1Ti", "pods": "512",
        "hugepages-1Gi": "0", "hugepages-2Mi": "0",
    });
    let [first, second] = NETWORK;
    json!({
        "apiVersion": "v1", "kind": "Node",
        "metadata": {"name": name, "labels": {
            "kubernetes.io/hostname": name, "kubernetes.io/os": "linux", "kubernetes.io/arch": "amd64",
            "beta.kubernetes.io/os": "linux", "beta.kubernetes.io/arch": "amd64",
        }},
        "spec": {"podCIDR": "10.244.0.0/16", "podCIDRs": ["10.244.0.0/16"]},
        "status": {
            "capacity": resources, "allocatable": resources,
            "addresses": [
                {"type": "InternalIP", "address": format!("{first}.{second}.0.2")},
                {"type": "Hostname", "address": name},
            ],
            "conditions": [
                condition("MemoryPressure", FALSE, "KubeletHasSufficientMemory", "kubelet has sufficient memory available"),
                condition("DiskPressure", FALSE, "KubeletHasNoDiskPressure", "kubelet has no disk pressure"),
                condition("PIDPressure", FALSE, "KubeletHasSufficientPID", "kubelet has sufficient PID available"),
                condition(READY, TRUE, "KubeletReady", "kubelet is posting ready status"),
            ],
            "daemonEndpoints": {"kubeletEndpoint": {"Port": 10250}},
            "nodeInfo": {
                "machineID": "", "systemUUID": "", "bootID": "", "kernelVersion": "simulated",
                "osImage": "Bellwether simulator", "containerRuntimeVersion": "simulated://1",
                "kubeletVersion": VERSION, "kubeProxyVersion": "", "operatingSystem": "linux",
                "architecture": "amd64",
            },
        },
    })
}

/// The storage class that claims get if they name none.
pub(crate) fn storage_class() -> Value {
    json!({
        "apiVersion": "storage.k8s.io/v1", "kind": "StorageClass",
        "metadata": {"name": "standard", "annotations": {DEFAULT_CLASS: "true"}},
        "provisioner": PROVISIONER, "reclaimPolicy": "Delete", "volumeBindingMode": "Immediate",
        "allowVolumeExpansion": true,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::Action;

    #[track_caller]
    fn check(spec: Value, ready: &str, expected: Option<Value>) {
        let node: Node = serde_json::from_value(json!({
            "metadata": {"name": "n"}, "spec": spec,
            "status": {"conditions": [{"type": "Ready", "status": ready}]},
        }))
        .unwrap();
        let plan = decide(&node, Timestamp::UNIX_EPOCH);
        let patch = plan.actions.into_iter().next().map(|action| match action {
            Action::Patch { patch, .. } => patch["spec"]["taints"].clone(),
            other => panic!("{other:?}"),
        });
        assert_eq!(patch, expected);
    }

    #[test]
    fn taints_say_what_the_node_says() {
        let not_ready = json!({"key": NOT_READY, "effect": "NoSchedule"});
        let own = json!({"key": "team", "effect": "NoSchedule"});
        check(
            json!({"taints": [not_ready, own]}),
            "True",
            Some(json!([own])),
        );
        check(json!({"taints": [not_ready]}), "True", Some(Value::Null));
        check(json!({"taints": [not_ready]}), "False", None);
        let cordoned = json!({"key": UNSCHEDULABLE, "effect": "NoSchedule", "timeAdded": "1970-01-01T00:00:00Z"});
        check(
            json!({"unschedulable": true}),
            "True",
            Some(json!([cordoned])),
        );
        check(
            json!({"unschedulable": true, "taints": [cordoned]}),
            "True",
            None,
        );
        check(json!({"taints": [cordoned]}), "True", Some(Value::Null));
    }
}
