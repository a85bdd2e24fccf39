//! Joining a fleet, heartbeats, and leaving it.
//!
//! [`clusters`] gives accepted clusters a namespace and rights in it, hears their
//! heartbeats, and cleans up after them; [`requests`] approves certificates, for those to whom that
//! is promised. The side of members is the crate `agent`: it asks to join, keeps its certificate fresh, and reports.
//!
//! Nothing of a member can be written by another: rights are on its own ManagedCluster and on its own
//! namespace ([`rights`]). Certificate requests are the exception, as in Open Cluster Management; an
//! embedded hub shows everybody their own only.

mod cleanup;
mod cluster_events;
pub mod clusters;
mod decide;
mod guard;
mod heartbeats;
mod kept;
mod leases;
mod loss;
mod request;
pub mod requests;
pub mod rights;

#[cfg(test)]
mod tests;
