//! Policies of Open Cluster Management, as pure functions.
//!
//! [`template`] resolves the Go templates in policies: those of the hub (`{{hub … hub}}`) and those
//! of managed clusters (`{{ … }}`). [`config_policy`] evaluates what objects of a cluster have to be
//! like, and [`dryrun`] does that without a cluster. [`template_sync`] makes objects of a cluster of the
//! templates of a policy, and [`compliance`] reports about them.

pub mod compliance;
pub mod config_policy;
pub mod dryrun;
pub mod template;
pub mod template_sync;
