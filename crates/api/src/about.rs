//! What the about API of Kubernetes' multicluster group says of a cluster: `about.k8s.io`.
//!
//! The kind is not ours: anyone who runs a cluster defines it there, and agents read it.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::TypeTag;
use crate::kind::kind;
use crate::meta::{ObjectMeta, Unknown};

/// The API group of this kind.
pub const GROUP: &str = "about.k8s.io";

/// A property of the cluster that it lives on, such as `cluster.clusterset.k8s.io`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ClusterProperty {
    /// Group, version and kind.
    #[serde(flatten)]
    #[schemars(skip)]
    pub types: TypeTag<Self>,
    /// Name, labels and so on.
    #[serde(default)]
    #[schemars(skip)]
    pub metadata: ObjectMeta,
    /// Value of the claim.
    #[serde(default)]
    pub spec: ClusterPropertySpec,
    /// Fields that this version does not know.
    #[serde(flatten)]
    #[schemars(skip)]
    pub other: Unknown,
}

kind! {
    ClusterProperty: GROUP, "v1alpha1", "clusterproperties", "clusterproperty", Cluster;
    spec: ClusterPropertySpec;
}

/// Value of a property.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ClusterPropertySpec {
    /// The value, which means what the name of the property says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 131_072))]
    pub value: Option<String>,
    /// Fields that this version does not know.
    #[serde(flatten)]
    #[schemars(skip)]
    pub other: Unknown,
}
