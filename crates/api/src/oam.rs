//! Applications: components, traits and policies rendered by definitions, `core.oam.dev`.
//!
//! | version | kinds |
//! |---|---|
//! | v1beta1 | [`Application`] and its [`ApplicationRevision`]; the definitions of components, traits, policies and steps with their [`DefinitionRevision`]; [`ResourceTracker`], which records what an application applied |
//! | v1alpha1 | [`Policy`], which applications share |
//! | v1alpha2 | [`ApplicationConfiguration`] and [`Component`], the interface before Applications |
//!
//! Workflows, which applications have too, are in [`workflow`](crate::workflow).

mod application;
mod application_configuration;
mod application_revision;
mod application_status;
mod component;
mod compression;
mod data_passing;
mod definition;
mod definition_revision;
pub mod names;
mod policy;
mod resource_tracker;
mod workload;

pub use application::{
    Application, ApplicationComponent, ApplicationPolicy, ApplicationSpec, ApplicationTrait,
    ApplicationWorkflow,
};
pub use application_configuration::{
    ApplicationConfiguration, ApplicationConfigurationComponent, ApplicationConfigurationSpec,
    ApplicationConfigurationStatus, AppliedTrait, AppliedWorkload, ComponentScope, ComponentTrait,
    HistoryWorkload, ObjectReference, ParameterValue,
};
pub use application_revision::{
    ApplicationRevision, ApplicationRevisionSpec, ApplicationRevisionStatus, ConfigMapReference,
    RevisionCompression,
};
pub use application_status::{
    ApplicationStatus, AppliedApplicationPolicy, AppliedResource, ComponentService,
    RevisionReference, ServiceTrait, WorkloadKind,
};
pub use component::{Component, ComponentParameter, ComponentSpec, ComponentStatus};
pub use data_passing::{
    DataCondition, DataInput, DataInputSource, DataOperator, DataOutput, DataValueSource,
    DependencyEnd, DependencyStart, DependencyStatus, UnsatisfiedDependency,
};
pub use definition::{
    ChildResourceKind, ComponentDefinition, ComponentDefinitionSpec, CueTemplate,
    DefinitionReference, DefinitionStatus, PolicyDefinition, PolicyDefinitionSpec, Schematic,
    StatusTemplates, TraitDefinition, TraitDefinitionSpec, TraitStage, WorkflowStepDefinition,
    WorkflowStepDefinitionSpec, WorkloadDefinition, WorkloadDefinitionSpec, WorkloadReference,
};
pub use definition_revision::{DefinitionRevision, DefinitionRevisionSpec, DefinitionType};
pub use policy::Policy;
pub use resource_tracker::{
    ManagedResource, ResourceTracker, ResourceTrackerSpec, ResourceTrackerType,
};
pub use workload::{
    ContainerizedWorkload, ContainerizedWorkloadSpec, ManualScalerTrait, ManualScalerTraitSpec,
};

/// The API group of these kinds.
pub const GROUP: &str = "core.oam.dev";
