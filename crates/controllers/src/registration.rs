//! Joining a fleet, heartbeats, and leaving it.
//!
//! On the hub, [`clusters`] gives accepted clusters a namespace and rights in it, hears their
//! heartbeats, and cleans up after them; [`requests`] approves certificates, for those to whom that
//! is promised. On a member, [`agent`] asks to join, keeps its certificate fresh, and reports.
//!
//! Nothing of a member can be written by another: rights are on its own ManagedCluster and on its own
//! namespace ([`rights`]). Certificate requests are the exception, as in Open Cluster Management; an
//! embedded hub shows everybody their own only.

pub mod agent;
mod cleanup;
mod cluster_events;
pub mod clusters;
mod decide;
mod guard;
mod heartbeats;
mod kept;
mod leases;
mod loss;
pub mod names;
mod request;
pub mod requests;
pub mod rights;

#[cfg(test)]
mod tests;
