//! The controllers of a hub: each observes, has something decided, and acts. Those of members are in the crate `agent`.
//!
//! | module | brings about |
//! |---|---|
//! | [`hub`] | what the controllers of a hub share: the client, the clock, caches |
//! | [`adopt`] | a hub of other controllers taken over, and given back |
//! | [`application`] | applications: revisions, delivery, state, removal |
//! | [`application_configuration`] | workloads and traits of ApplicationConfigurations, applied once or always |
//! | [`cluster_set`] | the sets that every hub has, and what can be said of sets and bindings |
//! | [`definition`] | revisions of definitions |
//! | [`egress`] | where the hub connects to on behalf of its users |
//! | [`component`] | revisions of Components |
//! | [`placement`] | PlacementDecisions for every Placement |
//! | [`policy_propagator`] | a replica of a policy for every cluster that its bindings choose |
//! | [`registry`] | the controllers of a hub by name |
//! | [`distribution`] | components of applications distributed over clusters |
//! | [`registration`] | membership: joining, heartbeats, rights, leaving |
//! | [`replica_set`] | a work for every cluster that placements of a replica set choose |
//! | [`rights`] | what processes need besides what controllers declare, and what of it is missing |
//! | [`rollout`] | replicas and requests moved between two revisions of applications |
//! | [`template`] | Applications that come from charts and folders elsewhere |
//! | [`work_config`] | which of several configurations for a kind counts |
//! | [`workflow`] | carries out workflows of any owner |
//! | [`workflow_run`] | WorkflowRuns |
//! | [`work_ttl`] | the end of works that are complete, where agents leave it to the hub |
//!
//! A controller is a future that never ends; dropping it ends the controller. It knows its clusters
//! as `kube::Client`s, and cannot tell an embedded one from a real one. What is decided is in the
//! crates of the layer below; what is here reads, keeps in memory what it has read, and writes.

pub mod adopt;
pub mod application;
pub mod application_configuration;
pub mod cluster_set;
pub mod component;
pub mod definition;
pub mod distribution;
pub mod egress;
pub mod hub;
mod hub_key;
pub mod placement;
pub mod policy_propagator;
pub mod registration;
pub mod registry;
pub mod replica_set;
mod reported;
pub mod rights;
pub mod rollout;
pub mod template;
pub mod work_config;
pub mod work_ttl;
pub mod workflow;
pub mod workflow_run;

pub use hub::Hub;
