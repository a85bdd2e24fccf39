//! Components of an application, distributed over clusters by shares of their replicas.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::DISTRIBUTION_GROUP;
use super::rollout::share;
use crate::TypeTag;
use crate::kind::kind;
use crate::meta::{Condition, IntOrString, ObjectMeta, Unknown, conditions};

/// Components of an application, distributed over clusters by shares of their replicas.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Distribution {
    /// Group, version and kind.
    #[serde(flatten)]
    #[schemars(skip)]
    pub types: TypeTag<Self>,
    /// Name, labels and so on.
    #[serde(default)]
    #[schemars(skip)]
    pub metadata: ObjectMeta,
    /// Distribution of components over clusters.
    #[serde(default)]
    pub spec: DistributionSpec,
    /// Components by cluster.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<DistributionStatus>,
    /// Fields that this version does not know.
    #[serde(flatten)]
    #[schemars(skip)]
    pub other: Unknown,
}

kind! {
    Distribution: DISTRIBUTION_GROUP, "v1alpha1", "distributions", "distribution", Namespaced;
    spec: DistributionSpec;
    status: DistributionStatus;
    categories: ["oam"];
    columns: [
        ("REVISION", "string", ".spec.appRevision"),
        ("MESSAGE", "string", ".status.message"),
        ("AGE", "date", ".metadata.creationTimestamp"),
    ];
}

/// Distribution of components over clusters.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DistributionSpec {
    /// The revision of the application whose objects are distributed, such as shop-v2.
    #[serde(default)]
    pub app_revision: String,
    /// Names of components; all of them if there are none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub components: Vec<String>,
    /// Clusters and their shares.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub placement: Vec<DistributionPlacement>,
    /// Fields that this version does not know.
    #[serde(flatten)]
    #[schemars(skip)]
    pub other: Unknown,
}

/// Clusters, and how much they get together.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DistributionPlacement {
    /// Labels of the clusters; all clusters if there are none.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub cluster_selector: BTreeMap<String, String>,
    /// Total of their replicas, as a number or a percentage of those of the component; default: all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "share")]
    pub replicas: Option<IntOrString>,
    /// The namespace that objects go to instead of their own.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub namespace: String,
    /// Fields that this version does not know.
    #[serde(flatten)]
    #[schemars(skip)]
    pub other: Unknown,
}

/// Components by cluster.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DistributionStatus {
    /// The generation that this is about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// Message: what is waited for, or what could not be placed.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub message: String,
    /// The clusters that have something, sorted by name.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub clusters: Vec<DistributionCluster>,
    /// Conditions.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "conditions")]
    pub conditions: Vec<Condition>,
    /// Fields that this version does not know.
    #[serde(flatten)]
    #[schemars(skip)]
    pub other: Unknown,
}

/// Components on a cluster.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct DistributionCluster {
    /// Its name.
    #[serde(default)]
    pub name: String,
    /// Replicas that it gets, by component.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub replicas: BTreeMap<String, i64>,
    /// True if everything is there and available.
    #[serde(default)]
    pub available: bool,
    /// Reason if it is not available.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub message: String,
    /// Fields that this version does not know.
    #[serde(flatten)]
    #[schemars(skip)]
    pub other: Unknown,
}
