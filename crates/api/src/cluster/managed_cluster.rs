//! A member of the fleet.

use std::collections::BTreeMap;
use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::GROUP;
use crate::TypeTag;
use crate::kind::kind;
use crate::meta::{self, ByteString, Condition, ObjectMeta, Quantity, Time, Unknown};
use crate::open_enum::open_enum;
use crate::structural::{filled_with, keyed_by_both, nullable};

/// A cluster that belongs to the fleet, or asks to.
///
/// Both sides have to agree: the cluster's agent creates this object with a request for a
/// certificate, and somebody on the hub approves the certificate and sets spec.hubAcceptsClient.
/// The hub then keeps what the cluster shall run in a namespace of the cluster's name.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ManagedCluster {
    /// Group, version and kind.
    #[serde(flatten)]
    #[schemars(skip)]
    pub types: TypeTag<Self>,
    /// Name, labels and so on.
    #[serde(default)]
    #[schemars(skip)]
    pub metadata: ObjectMeta,
    /// Settings of the hub for the cluster.
    #[serde(default)]
    pub spec: ManagedClusterSpec,
    /// Status reported by the cluster and the hub.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<ManagedClusterStatus>,
    /// Fields that this version does not know.
    #[serde(flatten)]
    #[schemars(skip)]
    pub other: Unknown,
}

kind! {
    ManagedCluster: GROUP, "v1", "managedclusters", "managedcluster", Cluster;
    spec: ManagedClusterSpec;
    status: ManagedClusterStatus;
    short: ["mcl", "mcls"];
    columns: [
        ("Hub Accepted", "boolean", ".spec.hubAcceptsClient"),
        ("Managed Cluster URLs", "string", ".spec.managedClusterClientConfigs[*].url"),
        ("Joined", "string", r#".status.conditions[?(@.type=="ManagedClusterJoined")].status"#),
        (
            "Available",
            "string",
            r#".status.conditions[?(@.type=="ManagedClusterConditionAvailable")].status"#
        ),
        ("Age", "date", ".metadata.creationTimestamp"),
    ];
}

/// Default interval at which an agent renews its lease.
pub const DEFAULT_LEASE_DURATION: Duration = Duration::from_mins(1);

impl ManagedCluster {
    /// Interval at which the agent of the cluster has to renew its lease.
    pub fn lease_duration(&self) -> Duration {
        let seconds = self.spec.lease_duration_seconds.unwrap_or(0);
        match u64::try_from(seconds) {
            Ok(0) | Err(_) => DEFAULT_LEASE_DURATION,
            Ok(seconds) => Duration::from_secs(seconds),
        }
    }
}

/// Settings of the hub for a cluster.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ManagedClusterSpec {
    /// True if the hub accepts the cluster. Setting it to true takes the right to update
    /// managedclusters/accept. Setting it back to false takes the agent's rights away.
    #[serde(default)]
    pub hub_accepts_client: bool,
    /// Interval in seconds at which the agent renews its lease; 0 is read as 60. A cluster whose agent is
    /// silent for five times as long is taken to be unreachable.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(transform = filled_with(60))]
    pub lease_duration_seconds: Option<i32>,
    /// Addresses of the API server of the cluster, if it can be reached.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub managed_cluster_client_configs: Vec<ClientConfig>,
    /// Marks that keep placements away which do not tolerate them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub taints: Vec<Taint>,
    /// Fields that this version does not know.
    #[serde(flatten)]
    #[schemars(skip)]
    pub other: Unknown,
}

/// An address of a cluster's API server.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ClientConfig {
    /// The address, which begins with https.
    pub url: String,
    /// The certificates that the server is trusted by; those of the system if there are none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "meta::bytes")]
    pub ca_bundle: Option<ByteString>,
    /// Fields that this version does not know.
    #[serde(flatten)]
    #[schemars(skip)]
    pub other: Unknown,
}

/// A mark on a cluster that keeps placements away which do not tolerate it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Taint {
    /// Name of the mark, such as example.com/maintenance.
    #[schemars(length(max = 316), regex(pattern = meta::QUALIFIED_NAME))]
    pub key: String,
    /// Value of the mark.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 1024))]
    pub value: Option<String>,
    /// Effect. NoSelect: the cluster is not selected, and dropped if it was.
    /// NoSelectIfNew: it is not selected unless it already is. PreferNoSelect: others come first.
    pub effect: TaintEffect,
    /// Time when the taint was set; written by the hub.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "meta::time", transform = nullable)]
    pub time_added: Option<Time>,
    /// Fields that this version does not know.
    #[serde(flatten)]
    #[schemars(skip)]
    pub other: Unknown,
}

open_enum! {
    /// Effect of a taint on placements that do not tolerate it.
    pub enum TaintEffect {
        /// The cluster is not selected, and no longer if it was.
        NoSelect = "NoSelect",
        /// Other clusters come first.
        PreferNoSelect = "PreferNoSelect",
        /// The cluster is not selected unless it already is.
        NoSelectIfNew = "NoSelectIfNew",
    }
}

/// Status reported by a cluster and the hub.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ManagedClusterStatus {
    /// Conditions, such as HubAcceptedManagedCluster and ManagedClusterConditionAvailable.
    #[schemars(schema_with = "meta::conditions")]
    pub conditions: Vec<Condition>,
    /// Capacity of all nodes together.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(schema_with = "meta::quantities")]
    pub capacity: BTreeMap<String, Quantity>,
    /// Allocatable resources of all schedulable nodes together.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(schema_with = "meta::quantities")]
    pub allocatable: BTreeMap<String, Quantity>,
    /// Software versions of the cluster.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<ManagedClusterVersion>,
    /// Claims of the cluster about itself.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub cluster_claims: Vec<ManagedClusterClaim>,
    /// Namespaces that the cluster's sets manage on it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(transform = keyed_by_both("clusterSet", "name"))]
    pub managed_namespaces: Vec<ClusterSetManagedNamespace>,
    /// Fields that this version does not know.
    #[serde(flatten)]
    #[schemars(skip)]
    pub other: Unknown,
}

/// Software versions of a cluster.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ManagedClusterVersion {
    /// The version of Kubernetes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kubernetes: Option<String>,
    /// Fields that this version does not know.
    #[serde(flatten)]
    #[schemars(skip)]
    pub other: Unknown,
}

/// Something that a cluster says about itself.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ManagedClusterClaim {
    /// Name of the claim, and of the ClusterClaim on the cluster.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 253))]
    pub name: Option<String>,
    /// The value, which means what the name says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 1024))]
    pub value: Option<String>,
    /// Fields that this version does not know.
    #[serde(flatten)]
    #[schemars(skip)]
    pub other: Unknown,
}

/// A namespace on a cluster that one of its sets manages.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ClusterSetManagedNamespace {
    /// Name of the namespace.
    #[schemars(length(max = 63), regex(pattern = "^[a-z0-9]([-a-z0-9]*[a-z0-9])?$"))]
    pub name: String,
    /// Name of the set.
    pub cluster_set: String,
    /// Conditions of the namespace.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "meta::conditions")]
    pub conditions: Vec<Condition>,
    /// Fields that this version does not know.
    #[serde(flatten)]
    #[schemars(skip)]
    pub other: Unknown,
}
