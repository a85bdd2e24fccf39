//! The kinds that Bellwether serves: Rust types, their definitions, and every string that has a
//! meaning in their interface.
//!
//! | group | kinds |
//! |---|---|
//! | [`cluster`] | who is in the fleet, and who is selected |
//! | [`addon`] | add-ons of clusters, as data for agents of Open Cluster Management |
//! | [`delivery`] | replicas moved between revisions and distributed over clusters, for steps of workflows |
//! | [`oam`] | applications: components, traits and policies, rendered by definitions |
//! | [`policy`] | what clusters have to be like, and how far that is enforced |
//! | [`work`] | what a cluster shall run |
//! | [`workflow`] | steps that are carried out in order, where they stand, and what happened |
//! | [`multicluster`] | the same in the smaller interface of the work API, with status to be synced |
//!
//! What is not ours is here too, if our controllers speak of it: [`about`] has a kind by which clusters
//! say what they are, [`workload`] the strings of Kubernetes' workloads, [`simulator`] the annotations
//! that steer simulated ones.
//!
//! [`admission`] is the interface of rules that writes to these kinds have to pass.
//!
//! [`definitions`] has all of them as CustomResourceDefinitions. A type is a [`Kind`], and a
//! `kube_core::Resource`, so that any client can be typed with it.
//!
//! Three rules hold for all types:
//!
//! * What this version does not know survives reading and writing: every structure keeps unknown
//!   fields in `other`, and every enumeration unknown values in `Other`. Only metadata, conditions
//!   and label selectors are types of Kubernetes itself, and know what these have. A list that is
//!   empty may be left out.
//! * The documentation of a field is its description in the published schema.
//! * What a server fills in is said by the schema, never by what Rust takes for an
//!   absent field.
//!
//! Nothing here reads or writes anything.

mod compact;
mod kind;
pub mod meta;
mod open_enum;
mod shared;
mod structural;

pub mod about;
pub mod addon;
pub mod admission;
pub mod adoption;
pub mod cluster;
pub mod delivery;
pub mod multicluster;
pub mod oam;
pub mod policy;
pub mod records;
pub mod simulator;
pub mod work;
pub mod workflow;
pub mod workload;

pub use compact::CompactJson;
pub use kind::{Column, Kind, KindNames, Scope, TypeTag, definition};
pub use shared::SharedObject;

use serde_json::Value;

/// The definitions that members need: records of what is applied, claims, and policies that are kept there.
pub fn member_definitions() -> Vec<Value> {
    vec![
        definition::<cluster::ClusterClaim>(),
        definition::<multicluster::AppliedWork>(),
        policy::template_definition::<policy::CertificatePolicy>(),
        policy::template_definition::<policy::ConfigurationPolicy>(),
        policy::template_definition::<policy::OperatorPolicy>(),
        definition::<policy::Policy>(),
        definition::<work::AppliedManifestWork>(),
    ]
}

/// Makes one definition.
type Definition = fn() -> Value;

/// All definitions, by group and kind; their order is always the same. Each is made when its turn comes: together
/// they are several megabytes.
pub fn definitions() -> impl ExactSizeIterator<Item = Value> {
    DEFINITIONS.iter().map(|definition| definition())
}

const DEFINITIONS: &[Definition] = &[
    definition::<addon::AddOnDeploymentConfig>,
    definition::<addon::AddOnTemplate>,
    definition::<addon::ClusterManagementAddOn>,
    definition::<addon::ManagedClusterAddOn>,
    definition::<policy::PlacementRule>,
    definition::<cluster::AddOnPlacementScore>,
    definition::<cluster::ClusterClaim>,
    definition::<cluster::ManagedCluster>,
    definition::<cluster::ManagedClusterSet>,
    definition::<cluster::ManagedClusterSetBinding>,
    definition::<cluster::Placement>,
    definition::<cluster::PlacementDecision>,
    definition::<oam::Application>,
    definition::<oam::ApplicationConfiguration>,
    definition::<oam::ApplicationRevision>,
    definition::<oam::Component>,
    definition::<oam::ComponentDefinition>,
    definition::<oam::ContainerizedWorkload>,
    definition::<oam::DefinitionRevision>,
    definition::<oam::ManualScalerTrait>,
    definition::<oam::Policy>,
    definition::<oam::PolicyDefinition>,
    definition::<oam::ResourceTracker>,
    definition::<oam::TraitDefinition>,
    definition::<workflow::Workflow>,
    definition::<workflow::WorkflowRun>,
    definition::<oam::WorkflowStepDefinition>,
    definition::<oam::WorkloadDefinition>,
    definition::<multicluster::AppliedWork>,
    definition::<multicluster::Work>,
    definition::<multicluster::WorkManifestConfig>,
    policy::template_definition::<policy::CertificatePolicy>,
    policy::template_definition::<policy::ConfigurationPolicy>,
    policy::template_definition::<policy::OperatorPolicy>,
    definition::<policy::PlacementBinding>,
    definition::<policy::Policy>,
    definition::<policy::PolicyAutomation>,
    definition::<policy::PolicySet>,
    definition::<delivery::Rollout>,
    definition::<work::AppliedManifestWork>,
    definition::<work::ManifestWork>,
    definition::<work::ManifestWorkReplicaSet>,
    definition::<delivery::Distribution>,
    definition::<workflow::HelmTemplate>,
    definition::<workflow::KustomizePatch>,
    definition::<workflow::WorkflowHistory>,
];
