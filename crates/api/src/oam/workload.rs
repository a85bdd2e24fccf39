//! Workloads and traits that ApplicationConfigurations have always had.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::GROUP;
use super::application_configuration::ObjectReference;
use crate::TypeTag;
use crate::kind::kind;
use crate::meta::{ObjectMeta, Unknown, any_object};

/// Containers that run on any cluster.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ContainerizedWorkload {
    /// Group, version and kind.
    #[serde(flatten)]
    #[schemars(skip)]
    pub types: TypeTag<Self>,
    /// Name, labels and so on.
    #[serde(default)]
    #[schemars(skip)]
    pub metadata: ObjectMeta,
    /// Selection of containers.
    pub spec: ContainerizedWorkloadSpec,
    /// Fields that this version does not know.
    #[serde(flatten)]
    #[schemars(skip)]
    pub other: Unknown,
}

kind! {
    ContainerizedWorkload: GROUP, "v1alpha2", "containerizedworkloads", "containerizedworkload", Namespaced;
    spec: ContainerizedWorkloadSpec;
    categories: ["oam"];
}

/// Selection of containers.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ContainerizedWorkloadSpec {
    /// Operating system that they need.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub os_type: Option<String>,
    /// Processor that they need.
    #[serde(rename = "arch", default, skip_serializing_if = "Option::is_none")]
    pub cpu_architecture: Option<String>,
    /// The containers.
    #[schemars(schema_with = "containers")]
    pub containers: Vec<Value>,
    /// Fields that this version does not know.
    #[serde(flatten)]
    #[schemars(skip)]
    pub other: Unknown,
}

/// Sets how many pods a workload has.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ManualScalerTrait {
    /// Group, version and kind.
    #[serde(flatten)]
    #[schemars(skip)]
    pub types: TypeTag<Self>,
    /// Name, labels and so on.
    #[serde(default)]
    #[schemars(skip)]
    pub metadata: ObjectMeta,
    /// Desired number of pods.
    pub spec: ManualScalerTraitSpec,
    /// Fields that this version does not know.
    #[serde(flatten)]
    #[schemars(skip)]
    pub other: Unknown,
}

kind! {
    ManualScalerTrait: GROUP, "v1alpha2", "manualscalertraits", "manualscalertrait", Namespaced;
    spec: ManualScalerTraitSpec;
    categories: ["oam"];
}

/// Number of pods of a workload.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ManualScalerTraitSpec {
    /// Desired number of pods.
    pub replica_count: i32,
    /// Reference to the workload.
    #[serde(
        rename = "workloadRef",
        default,
        skip_serializing_if = "Option::is_none"
    )]
    pub workload_ref: Option<ObjectReference>,
    /// Fields that this version does not know.
    #[serde(flatten)]
    #[schemars(skip)]
    pub other: Unknown,
}

/// The schema of a list of containers.
fn containers(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
    let item = any_object(generator);
    schemars::json_schema!({"type": "array", "items": item})
}
