//! An add-on of one cluster.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::config::{
    AddOnConfig, AddOnMeta, ConfigCoordinates, ConfigGroupResource, ConfigSpecHash, Subject,
};
use super::{DEFAULT_INSTALL_NAMESPACE, GROUP};
use crate::TypeTag;
use crate::kind::kind;
use crate::meta::{self, Condition, ObjectMeta, Unknown};
use crate::open_enum::open_enum;
use crate::structural::{filled_with, keyed_by_both, open};

/// An add-on of the cluster in whose namespace it is, and its state.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ManagedClusterAddOn {
    /// Group, version and kind.
    #[serde(flatten)]
    #[schemars(skip)]
    pub types: TypeTag<Self>,
    /// Name, labels and so on.
    #[serde(default)]
    #[schemars(skip)]
    pub metadata: ObjectMeta,
    /// Installation of the add-on.
    pub spec: ManagedClusterAddOnSpec,
    /// The state of the add-on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(transform = open)]
    pub status: Option<ManagedClusterAddOnStatus>,
    /// Fields that this version does not know.
    #[serde(flatten)]
    #[schemars(skip)]
    pub other: Unknown,
}

kind! {
    ManagedClusterAddOn: GROUP, "v1alpha1", "managedclusteraddons", "managedclusteraddon", Namespaced;
    spec: ManagedClusterAddOnSpec;
    status: ManagedClusterAddOnStatus;
    also_served: ["v1beta1"];
    short: ["mca", "mcas"];
    columns: [
        ("Available", "string", r#".status.conditions[?(@.type=="Available")].status"#),
        ("Degraded", "string", r#".status.conditions[?(@.type=="Degraded")].status"#),
        ("Progressing", "string", r#".status.conditions[?(@.type=="Progressing")].status"#),
        ("Age", "date", ".metadata.creationTimestamp"),
    ];
}

/// Installation of an add-on on a cluster.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ManagedClusterAddOnSpec {
    /// Namespace on the cluster in which the agent of the add-on runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(
        length(max = 63),
        regex(pattern = "^[a-z0-9]([-a-z0-9]*[a-z0-9])?$"),
        transform = filled_with(DEFAULT_INSTALL_NAMESPACE)
    )]
    pub install_namespace: Option<String>,
    /// Objects that configure the add-on on this cluster.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub configs: Vec<AddOnConfig>,
    /// Fields that this version does not know.
    #[serde(flatten)]
    #[schemars(skip)]
    pub other: Unknown,
}

/// The state of an add-on on a cluster.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ManagedClusterAddOnStatus {
    /// Conditions: whether the add-on is available, degraded, and up to date.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "meta::conditions")]
    pub conditions: Vec<Condition>,
    /// Other objects that say more.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub related_objects: Vec<ObjectReference>,
    /// Display name and description of the add-on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub add_on_meta: Option<AddOnMeta>,
    /// Superseded by configReferences.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub add_on_configuration: Option<ConfigCoordinates>,
    /// Kinds of objects that spec.configs may name.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(transform = keyed_by_both("group", "resource"))]
    pub supported_configs: Vec<ConfigGroupResource>,
    /// Objects that configure the add-on.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub config_references: Vec<ConfigReference>,
    /// Namespace on the cluster in which the agent of the add-on runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
    /// Certificates of the agent of the add-on for the hub.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub registrations: Vec<RegistrationConfig>,
    /// Health check of the add-on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub health_check: Option<HealthCheck>,
    /// Fields that this version does not know.
    #[serde(flatten)]
    #[schemars(skip)]
    pub other: Unknown,
}

/// An object.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ObjectReference {
    /// Its group.
    pub group: String,
    /// Its resource.
    pub resource: String,
    /// Its namespace, if it has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
    /// Its name.
    pub name: String,
    /// Fields that this version does not know.
    #[serde(flatten)]
    #[schemars(skip)]
    pub other: Unknown,
}

/// An object that configures an add-on, and how far that is.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ConfigReference {
    /// Group of the object.
    #[serde(default)]
    #[schemars(transform = filled_with(""))]
    pub group: String,
    /// Resource of the object.
    #[schemars(length(min = 1))]
    pub resource: String,
    /// Namespace of the object; none for an object of the whole cluster. Superseded by desiredConfig.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
    /// Name of the object. Superseded by desiredConfig.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Generation of the object that was last seen.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_observed_generation: Option<i64>,
    /// The configuration that the add-on is to have.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub desired_config: Option<ConfigSpecHash>,
    /// The configuration that it has.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_applied_config: Option<ConfigSpecHash>,
    /// Fields that this version does not know.
    #[serde(flatten)]
    #[schemars(skip)]
    pub other: Unknown,
}

/// A certificate of the agent of an add-on for the hub: a request is made for each.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RegistrationConfig {
    /// The signer that is asked.
    #[schemars(length(min = 5, max = 571))]
    pub signer_name: String,
    /// User and groups of the agent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub subject: Option<Subject>,
    /// Fields that this version does not know.
    #[serde(flatten)]
    #[schemars(skip)]
    pub other: Unknown,
}

/// Health check of an add-on.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct HealthCheck {
    /// Lease: its agent renews a lease on the cluster. Customized: its agent writes the conditions.
    #[serde(default)]
    #[schemars(transform = filled_with("Lease"))]
    pub mode: HealthCheckMode,
    /// Fields that this version does not know.
    #[serde(flatten)]
    #[schemars(skip)]
    pub other: Unknown,
}

open_enum! {
    /// Health check of an add-on.
    pub enum HealthCheckMode {
        /// By a lease.
        Lease = "Lease",
        /// It says so itself.
        Customized = "Customized",
    }
}
