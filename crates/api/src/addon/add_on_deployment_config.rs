//! How the agent of an add-on runs.

use k8s_openapi::ByteString;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{DEFAULT_INSTALL_NAMESPACE, GROUP};
use crate::TypeTag;
use crate::kind::kind;
use crate::meta::{self, ObjectMeta, Unknown};
use crate::structural::{filled_with, keyed_by};

/// Settings of the agent of an add-on: nodes, images and variables.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct AddOnDeploymentConfig {
    /// Group, version and kind.
    #[serde(flatten)]
    #[schemars(skip)]
    pub types: TypeTag<Self>,
    /// Name, labels and so on.
    #[serde(default)]
    #[schemars(skip)]
    pub metadata: ObjectMeta,
    /// Settings of the agent.
    pub spec: AddOnDeploymentConfigSpec,
    /// Fields that this version does not know.
    #[serde(flatten)]
    #[schemars(skip)]
    pub other: Unknown,
}

kind! {
    AddOnDeploymentConfig: GROUP, "v1alpha1", "addondeploymentconfigs", "addondeploymentconfig", Namespaced;
    spec: AddOnDeploymentConfigSpec;
    also_served: ["v1beta1"];
}

/// Settings of the agent of an add-on.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AddOnDeploymentConfigSpec {
    /// Variables that manifests of the add-on may use.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(transform = keyed_by("name"))]
    pub customized_variables: Vec<CustomizedVariable>,
    /// The nodes on which the agent runs: nodeSelector and tolerations, as pods have them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "meta::any_object")]
    pub node_placement: Option<Value>,
    /// Images that are taken from elsewhere.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub registries: Vec<ImageMirror>,
    /// Proxy for connections of the agent to the hub.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub proxy_config: Option<ProxyConfig>,
    /// Namespace on the cluster in which the agent runs. Empty: that which the template names.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(
        length(max = 63),
        regex(pattern = "^([a-z0-9]([-a-z0-9]*[a-z0-9])?)?$"),
        transform = filled_with(DEFAULT_INSTALL_NAMESPACE)
    )]
    pub agent_install_namespace: Option<String>,
    /// Resource requirements of containers of the agent. Of several that match a container, the last one counts.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(transform = keyed_by("containerID"))]
    pub resource_requirements: Vec<ContainerResourceRequirements>,
    /// Number of replicas of workloads of the agent. Of several that match, the last one counts.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub replica_configs: Vec<ReplicaConfig>,
    /// Fields that this version does not know.
    #[serde(flatten)]
    #[schemars(skip)]
    pub other: Unknown,
}

/// A variable that manifests of an add-on may use.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CustomizedVariable {
    /// Its name.
    #[schemars(length(max = 255), regex(pattern = "^[a-zA-Z_][_a-zA-Z0-9]*$"))]
    pub name: String,
    /// Its value.
    #[serde(default)]
    #[schemars(length(max = 1024))]
    pub value: String,
    /// Fields that this version does not know.
    #[serde(flatten)]
    #[schemars(skip)]
    pub other: Unknown,
}

/// Images that are taken from elsewhere.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ImageMirror {
    /// Registry to pull the images from.
    pub mirror: String,
    /// Prefix of the names of the images; all images if it is empty.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<String>,
    /// Fields that this version does not know.
    #[serde(flatten)]
    #[schemars(skip)]
    pub other: Unknown,
}

/// Proxy for connections of an agent to the hub.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ProxyConfig {
    /// URL of the proxy for HTTP.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub http_proxy: Option<String>,
    /// URL of the proxy for HTTPS.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub https_proxy: Option<String>,
    /// Certificates by which the proxy is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "meta::bytes")]
    pub ca_bundle: Option<ByteString>,
    /// Hosts and networks that are reached without the proxy, separated by commas.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub no_proxy: Option<String>,
    /// Fields that this version does not know.
    #[serde(flatten)]
    #[schemars(skip)]
    pub other: Unknown,
}

/// Resource requirements of some containers of an agent.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ContainerResourceRequirements {
    /// The containers, as resource:name:container; each part may be *.
    #[serde(rename = "containerID")]
    #[schemars(regex(
        pattern = r"^(deployments|daemonsets|statefulsets|replicasets|jobs|cronjobs|pods|\*):.+:.+$"
    ))]
    pub container_id: String,
    /// Resource requirements, as in containers.
    #[schemars(schema_with = "meta::any_object")]
    pub resources: Value,
    /// Fields that this version does not know.
    #[serde(flatten)]
    #[schemars(skip)]
    pub other: Unknown,
}

/// Number of replicas of some workloads of an agent.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ReplicaConfig {
    /// The workloads, as resource:name; each part may be *.
    #[serde(rename = "workloadID")]
    #[schemars(regex(pattern = r"^(deployments|statefulsets|\*):.+$"))]
    pub workload_id: String,
    /// Number of replicas.
    #[schemars(range(min = 0))]
    pub replicas: i32,
    /// Fields that this version does not know.
    #[serde(flatten)]
    #[schemars(skip)]
    pub other: Unknown,
}
