//! The `metrics.k8s.io` group: what pods and nodes use. It is answered where somebody measures, and
//! never stored.

use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, Time};
use schemars::JsonSchema;
use std::collections::BTreeMap;

use crate::Resource;

/// The API group.
pub const GROUP: &str = "metrics.k8s.io";

const VERSION: &str = "v1beta1";
const READ: &[&str] = &["get", "list"];

/// What the containers of a pod use.
#[derive(JsonSchema)]
#[schemars(rename = "io.k8s.metrics.pkg.apis.metrics.v1beta1.PodMetrics")]
#[serde(rename_all = "camelCase")]
#[expect(dead_code, reason = "only its schema is used")]
struct PodMetrics {
    /// Name and namespace of the pod.
    metadata: ObjectMeta,
    /// When the measurement ended.
    timestamp: Time,
    /// How long it took.
    window: String,
    /// One entry for each container.
    containers: Vec<ContainerMetrics>,
}

/// What a container uses.
#[derive(JsonSchema)]
#[schemars(rename = "io.k8s.metrics.pkg.apis.metrics.v1beta1.ContainerMetrics")]
#[expect(dead_code, reason = "only its schema is used")]
struct ContainerMetrics {
    /// The name of the container.
    name: String,
    /// Processor time and memory.
    usage: BTreeMap<String, Quantity>,
}

/// What a node uses.
#[derive(JsonSchema)]
#[schemars(rename = "io.k8s.metrics.pkg.apis.metrics.v1beta1.NodeMetrics")]
#[expect(dead_code, reason = "only its schema is used")]
struct NodeMetrics {
    /// Name of the node.
    metadata: ObjectMeta,
    /// When the measurement ended.
    timestamp: Time,
    /// How long it took.
    window: String,
    /// Processor time and memory.
    usage: BTreeMap<String, Quantity>,
}

/// The resources of the group.
pub static RESOURCES: [Resource; 2] = [
    Resource {
        verbs: READ,
        ..Resource::cluster::<NodeMetrics>(GROUP, VERSION, "NodeMetrics", "nodes")
    },
    Resource {
        verbs: READ,
        ..Resource::namespaced::<PodMetrics>(GROUP, VERSION, "PodMetrics", "pods")
    },
];
