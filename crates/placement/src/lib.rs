//! Which clusters are chosen, who goes next, and why.
//!
//! | module | for |
//! |---|---|
//! | [`rollout`] | given groups of clusters and how far each is: who may go now, and why others wait |
//! | [`schedule`] | given a placement and all clusters: who is chosen, in which groups, and why not others |
//! | [`admission`] | who may join a fleet, accept clusters, and move them between sets |
//!
//! Nothing here reads a clock, a file or the network: the same input gives the same answer.

pub mod admission;
pub mod rollout;
pub mod schedule;
