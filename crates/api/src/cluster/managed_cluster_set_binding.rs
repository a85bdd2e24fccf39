//! What lets a namespace select from a set.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::GROUP;
use crate::TypeTag;
use crate::kind::kind;
use crate::meta::{self, Condition, ObjectMeta, Unknown};

/// Lets placements of its namespace select clusters of a set.
///
/// It has the name of the set. To create one takes the right to create managedclustersets/bind.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ManagedClusterSetBinding {
    /// Group, version and kind.
    #[serde(flatten)]
    #[schemars(skip)]
    pub types: TypeTag<Self>,
    /// Name, labels and so on.
    #[serde(default)]
    #[schemars(skip)]
    pub metadata: ObjectMeta,
    /// Name of the set.
    pub spec: ManagedClusterSetBindingSpec,
    /// Status as observed by the hub.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<ManagedClusterSetBindingStatus>,
    /// Fields that this version does not know.
    #[serde(flatten)]
    #[schemars(skip)]
    pub other: Unknown,
}

kind! {
    ManagedClusterSetBinding: GROUP, "v1beta2", "managedclustersetbindings", "managedclustersetbinding", Namespaced;
    spec: ManagedClusterSetBindingSpec;
    status: ManagedClusterSetBindingStatus;
    short: ["mclsetbinding", "mclsetbindings"];
}

/// The set that a namespace is bound to.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ManagedClusterSetBindingSpec {
    /// Name of the set, which is also the name of this object.
    #[schemars(length(min = 1))]
    pub cluster_set: String,
    /// Fields that this version does not know.
    #[serde(flatten)]
    #[schemars(skip)]
    pub other: Unknown,
}

/// Status of a binding.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ManagedClusterSetBindingStatus {
    /// Conditions: whether the set exists.
    #[serde(default)]
    #[schemars(schema_with = "meta::conditions")]
    pub conditions: Vec<Condition>,
    /// Fields that this version does not know.
    #[serde(flatten)]
    #[schemars(skip)]
    pub other: Unknown,
}
