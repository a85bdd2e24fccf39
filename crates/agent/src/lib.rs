//! The agent of a member: it joins the hub, carries out works and policies there are for its cluster, and reports.
//!
//! | module | brings about |
//! |---|---|
//! | [`registration`] | membership: joining, certificates, heartbeats, what the hub knows of the cluster |
//! | [`work`] | on members, what works on the hub say |
//! | [`policy`] | on members, what policies on the hub say |
//!
//! An agent knows its hub and its cluster as `kube::Client`s, and cannot tell an embedded one from a real one. What is decided is in the
//! crates of the layer below. Agents and the controllers of a hub share no code but `runtime`: an agent's process runs
//! through this crate alone, which keeps its memory small.

pub mod policy;
pub mod registration;
pub mod work;
