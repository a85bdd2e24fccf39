//! Add-ons of clusters: `addon.open-cluster-management.io`.
//!
//! A hub serves these kinds as data, for agents and add-on controllers of Open Cluster Management;
//! nothing of Bellwether acts on them, except that the add-ons of a cluster are removed with it. They
//! are stored as v1alpha1, and served as v1beta1 as well, for newer agents; what differs between the two
//! is not converted.

mod add_on_deployment_config;
mod add_on_template;
mod cluster_management_add_on;
mod config;
mod managed_cluster_add_on;

pub use add_on_deployment_config::{
    AddOnDeploymentConfig, AddOnDeploymentConfigSpec, ContainerResourceRequirements,
    CustomizedVariable, ImageMirror, ProxyConfig, ReplicaConfig,
};
pub use add_on_template::{
    AddOnTemplate, AddOnTemplateSpec, CustomSignerRegistration, HubPermission,
    HubPermissionBinding, KubeClientRegistration, RegistrationSpec, RegistrationType, SigningCa,
    SingleNamespaceBinding,
};
pub use cluster_management_add_on::{
    ClusterManagementAddOn, ClusterManagementAddOnSpec, ClusterManagementAddOnStatus, ConfigMeta,
    DefaultConfigReference, InstallConfigReference, InstallProgression, InstallStrategy,
    InstallStrategyType, PlacementStrategy,
};
pub use config::{
    AddOnConfig, AddOnMeta, ConfigCoordinates, ConfigGroupResource, ConfigReferent, ConfigSpecHash,
    Subject,
};
pub use managed_cluster_add_on::{
    ConfigReference, HealthCheck, HealthCheckMode, ManagedClusterAddOn, ManagedClusterAddOnSpec,
    ManagedClusterAddOnStatus, ObjectReference, RegistrationConfig,
};

/// Types of conditions.
pub mod condition {
    /// ManagedClusterAddOn: its agent is there.
    pub const AVAILABLE: &str = "Available";
    /// ManagedClusterAddOn: its agent does less than it should.
    pub const DEGRADED: &str = "Degraded";
    /// ManagedClusterAddOn: a configuration is being applied.
    pub const PROGRESSING: &str = "Progressing";
}

/// The API group of these kinds.
pub const GROUP: &str = "addon.open-cluster-management.io";

/// The namespace on a member in which agents of add-ons are installed by default.
pub const DEFAULT_INSTALL_NAMESPACE: &str = "open-cluster-management-agent-addon";
