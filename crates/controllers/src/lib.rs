//! The controllers of a hub and of its members: each observes, has something decided, and acts.
//!
//! | module | brings about |
//! |---|---|
//! | [`hub`] | what the controllers of a hub share: the client, the clock, caches |
//! | [`application`] | applications: revisions, delivery, state, removal |
//! | [`cluster_set`] | the sets that every hub has, and what can be said of sets and bindings |
//! | [`placement`] | PlacementDecisions for every Placement |
//! | [`policy_propagator`] | a replica of a policy for every cluster that its bindings choose |
//! | [`policy_agent`] | on members, what policies on the hub say |
//! | [`registry`] | the controllers of a hub by name |
//! | [`registration`] | membership: joining, heartbeats, rights, leaving |
//! | [`replica_set`] | a work for every cluster that placements of a replica set choose |
//! | [`work_agent`] | on members, what works on the hub say |
//! | [`work_config`] | which of several configurations for a kind counts |
//! | [`workflow`] | what carries out workflows, whoever owns them |
//! | [`workflow_run`] | WorkflowRuns |
//! | [`work_ttl`] | the end of works that are complete, where agents leave it to the hub |
//!
//! A controller is a future that never ends; dropping it ends the controller. It knows its clusters
//! as `kube::Client`s, and cannot tell an embedded one from a real one. What is decided is in the
//! crates of the layer below; what is here reads, keeps in memory what it has read, and writes.

pub mod application;
pub mod cluster_set;
pub mod hub;
mod objects;
pub mod placement;
pub mod policy_agent;
pub mod policy_propagator;
pub mod registration;
pub mod registry;
pub mod replica_set;
pub mod work_agent;
pub mod work_config;
pub mod work_ttl;
pub mod workflow;
pub mod workflow_run;

pub use hub::Hub;
