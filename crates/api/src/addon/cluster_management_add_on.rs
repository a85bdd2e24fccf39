//! An add-on that clusters can have.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::GROUP;
use super::config::{AddOnConfig, AddOnMeta, ConfigCoordinates, ConfigReferent, ConfigSpecHash};
use crate::TypeTag;
use crate::cluster::RolloutStrategy;
use crate::kind::kind;
use crate::meta::{self, Condition, ObjectMeta, Unknown};
use crate::open_enum::open_enum;
use crate::structural::{filled_with, keyed_by_both, open};

/// An add-on that clusters can have. Its name is that of the ManagedClusterAddOns on clusters.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ClusterManagementAddOn {
    /// Group, version and kind.
    #[serde(flatten)]
    #[schemars(skip)]
    pub types: TypeTag<Self>,
    /// Name, labels and so on.
    #[serde(default)]
    #[schemars(skip)]
    pub metadata: ObjectMeta,
    /// Description of the add-on, and where it is installed.
    pub spec: ClusterManagementAddOnSpec,
    /// Progress of the installation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(transform = open)]
    pub status: Option<ClusterManagementAddOnStatus>,
    /// Fields that this version does not know.
    #[serde(flatten)]
    #[schemars(skip)]
    pub other: Unknown,
}

kind! {
    ClusterManagementAddOn: GROUP, "v1alpha1", "clustermanagementaddons", "clustermanagementaddon", Cluster;
    spec: ClusterManagementAddOnSpec;
    status: ClusterManagementAddOnStatus;
    also_served: ["v1beta1"];
    short: ["cma", "cmas"];
    columns: [
        ("DISPLAY NAME", "string", ".spec.addOnMeta.displayName"),
        ("CRD NAME", "string", ".spec.addOnConfiguration.crdName"),
    ];
}

/// Description of an add-on, and where it is installed.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ClusterManagementAddOnSpec {
    /// Display name and description of the add-on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub add_on_meta: Option<AddOnMeta>,
    /// Superseded by supportedConfigs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub add_on_configuration: Option<ConfigCoordinates>,
    /// Kinds of objects that configure the add-on, and those that do so by default.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(transform = keyed_by_both("group", "resource"))]
    pub supported_configs: Vec<ConfigMeta>,
    /// On which clusters the add-on is installed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(transform = filled_with(json!({"type": "Manual"})))]
    pub install_strategy: Option<InstallStrategy>,
    /// Fields that this version does not know.
    #[serde(flatten)]
    #[schemars(skip)]
    pub other: Unknown,
}

/// A kind of objects that configure an add-on.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ConfigMeta {
    /// Group of the objects.
    #[serde(default)]
    #[schemars(transform = filled_with(""))]
    pub group: String,
    /// Resource of the objects.
    #[schemars(length(min = 1))]
    pub resource: String,
    /// The object that counts where no other is named.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub default_config: Option<ConfigReferent>,
    /// Fields that this version does not know.
    #[serde(flatten)]
    #[schemars(skip)]
    pub other: Unknown,
}

/// On which clusters an add-on is installed.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct InstallStrategy {
    /// Manual: where a ManagedClusterAddOn is created. Placements: where a placement selects.
    #[serde(default, rename = "type")]
    #[schemars(transform = filled_with("Manual"))]
    pub kind: InstallStrategyType,
    /// Placements, for Placements.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(transform = keyed_by_both("namespace", "name"))]
    pub placements: Vec<PlacementStrategy>,
    /// Fields that this version does not know.
    #[serde(flatten)]
    #[schemars(skip)]
    pub other: Unknown,
}

open_enum! {
    /// Method of selecting the clusters of an add-on.
    pub enum InstallStrategyType {
        /// People.
        Manual = "Manual",
        /// Placements.
        Placements = "Placements",
    }
}

/// A placement on whose clusters an add-on is installed.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PlacementStrategy {
    /// Namespace of the placement.
    #[schemars(length(min = 1))]
    pub namespace: String,
    /// Name of the placement.
    #[schemars(length(min = 1))]
    pub name: String,
    /// Objects that configure the add-on on these clusters.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub configs: Vec<AddOnConfig>,
    /// Rollout strategy for these clusters.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(transform = filled_with(json!({"type": "All"})))]
    pub rollout_strategy: Option<RolloutStrategy>,
    /// Fields that this version does not know.
    #[serde(flatten)]
    #[schemars(skip)]
    pub other: Unknown,
}

/// Progress of the installation of an add-on.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ClusterManagementAddOnStatus {
    /// Objects that configure the add-on by default.
    #[serde(
        default,
        skip_serializing_if = "Vec::is_empty",
        rename = "defaultconfigReferences"
    )]
    pub default_config_references: Vec<DefaultConfigReference>,
    /// Progress of the installation, by placement.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub install_progressions: Vec<InstallProgression>,
    /// Fields that this version does not know.
    #[serde(flatten)]
    #[schemars(skip)]
    pub other: Unknown,
}

/// An object that configures an add-on by default.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DefaultConfigReference {
    /// Group of the object.
    #[serde(default)]
    #[schemars(transform = filled_with(""))]
    pub group: String,
    /// Resource of the object.
    #[schemars(length(min = 1))]
    pub resource: String,
    /// The configuration that the add-on is to have.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub desired_config: Option<ConfigSpecHash>,
    /// Fields that this version does not know.
    #[serde(flatten)]
    #[schemars(skip)]
    pub other: Unknown,
}

/// Progress of the installation of an add-on on the clusters of a placement.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct InstallProgression {
    /// Namespace of the placement.
    pub namespace: String,
    /// Name of the placement.
    pub name: String,
    /// Objects that configure the add-on.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub config_references: Vec<InstallConfigReference>,
    /// Conditions of the installation.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "meta::conditions")]
    pub conditions: Vec<Condition>,
    /// Fields that this version does not know.
    #[serde(flatten)]
    #[schemars(skip)]
    pub other: Unknown,
}

/// An object that configures an add-on, and how far that is.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct InstallConfigReference {
    /// Group of the object.
    #[serde(default)]
    #[schemars(transform = filled_with(""))]
    pub group: String,
    /// Resource of the object.
    #[schemars(length(min = 1))]
    pub resource: String,
    /// The configuration that add-ons are to have.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub desired_config: Option<ConfigSpecHash>,
    /// The configuration that all of them had last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_known_good_config: Option<ConfigSpecHash>,
    /// The configuration that was applied last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_applied_config: Option<ConfigSpecHash>,
    /// Fields that this version does not know.
    #[serde(flatten)]
    #[schemars(skip)]
    pub other: Unknown,
}
