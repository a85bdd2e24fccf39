//! Policies of Open Cluster Management, as pure functions.
//!
//! [`template`] resolves the Go templates in policies: those of the hub (`{{hub … hub}}`) and those
//! of managed clusters (`{{ … }}`). [`config_policy`] evaluates what objects of a cluster have to be
//! like, and [`dryrun`] does that without a cluster.

pub mod config_policy;
pub mod dryrun;
pub mod template;
