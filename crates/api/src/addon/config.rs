//! What several kinds of add-ons say: which objects configure them, and who their agents are.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::meta::Unknown;
use crate::structural::filled_with;

/// Display name and description of an add-on.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AddOnMeta {
    /// The name that is shown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub display_name: Option<String>,
    /// Description of the add-on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// Fields that this version does not know.
    #[serde(flatten)]
    #[schemars(skip)]
    pub other: Unknown,
}

/// The definition and the object that configure an add-on. Superseded by supportedConfigs.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ConfigCoordinates {
    /// Name of the CustomResourceDefinition.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub crd_name: Option<String>,
    /// Name of the object, where it is the same for all clusters.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cr_name: Option<String>,
    /// Generation of the object that was last seen.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_observed_generation: Option<i64>,
    /// Fields that this version does not know.
    #[serde(flatten)]
    #[schemars(skip)]
    pub other: Unknown,
}

/// A kind of objects that configure add-ons.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ConfigGroupResource {
    /// Group of the objects.
    #[serde(default)]
    #[schemars(transform = filled_with(""))]
    pub group: String,
    /// Resource of the objects.
    #[schemars(length(min = 1))]
    pub resource: String,
    /// Fields that this version does not know.
    #[serde(flatten)]
    #[schemars(skip)]
    pub other: Unknown,
}

/// The name of an object that configures an add-on.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ConfigReferent {
    /// Namespace of the object; none for an object of the whole cluster.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
    /// Name of the object.
    #[schemars(length(min = 1))]
    pub name: String,
    /// Fields that this version does not know.
    #[serde(flatten)]
    #[schemars(skip)]
    pub other: Unknown,
}

/// An object that configures an add-on.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct AddOnConfig {
    /// Group of the object.
    #[serde(default)]
    #[schemars(transform = filled_with(""))]
    pub group: String,
    /// Resource of the object.
    #[schemars(length(min = 1))]
    pub resource: String,
    /// Namespace of the object; none for an object of the whole cluster.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
    /// Name of the object.
    #[schemars(length(min = 1))]
    pub name: String,
    /// Fields that this version does not know.
    #[serde(flatten)]
    #[schemars(skip)]
    pub other: Unknown,
}

/// An object that configures an add-on, as of one state of its spec.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ConfigSpecHash {
    /// Namespace of the object; none for an object of the whole cluster.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
    /// Name of the object.
    #[schemars(length(min = 1))]
    pub name: String,
    /// Hash of the spec.
    #[serde(default)]
    pub spec_hash: String,
    /// Fields that this version does not know.
    #[serde(flatten)]
    #[schemars(skip)]
    pub other: Unknown,
}

/// Identity of the agent of an add-on on the hub.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Subject {
    /// Its user.
    pub user: String,
    /// Its groups.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub groups: Vec<String>,
    /// Its organizational units.
    #[serde(
        default,
        skip_serializing_if = "Vec::is_empty",
        rename = "organizationUnit"
    )]
    pub organization_units: Vec<String>,
    /// Fields that this version does not know.
    #[serde(flatten)]
    #[schemars(skip)]
    pub other: Unknown,
}
