//! Policies that applications share.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::GROUP;
use crate::TypeTag;
use crate::kind::kind;
use crate::meta::{ObjectMeta, Unknown, any_object};

/// A policy that steps of applications in the same namespace refer to by name.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Policy {
    /// Group, version and kind.
    #[serde(flatten)]
    #[schemars(skip)]
    pub types: TypeTag<Self>,
    /// Name, labels and so on.
    #[serde(default)]
    #[schemars(skip)]
    pub metadata: ObjectMeta,
    /// Type of the policy.
    #[serde(rename = "type")]
    pub policy_type: String,
    /// Parameters of the type.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "any_object")]
    pub properties: Option<Value>,
    /// Fields that this version does not know.
    #[serde(flatten)]
    #[schemars(skip)]
    pub other: Unknown,
}

kind! {
    Policy: GROUP, "v1alpha1", "policies", "policy", Namespaced;
    categories: ["oam"];
    columns: [
        ("TYPE", "string", ".type"),
    ];
}
