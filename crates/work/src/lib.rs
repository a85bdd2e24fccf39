//! Manifests on a member: what to write, what to report, when they are done.
//!
//! | module | decides |
//! |---|---|
//! | [`options`], [`strategy`] | how one object is treated, by the configurations that match it |
//! | [`record`] | what a work has on its cluster |
//! | [`executor`] | what has to be asked before a write |
//! | [`rules`] | what is concluded from an object |
//! | [`feedback`] | which values of it come back |
//! | [`events`] | which Events are recorded about it |
//! | [`status`], [`work_api`] | what is said of a work, in the words of its interface |
//! | `tree` | how a work is shown to people |
//! | [`lifecycle`] | when a work is done, when it goes, when leftovers are evicted |
//! | [`replica_set`] | which works a replica set has, on which clusters, and how far they are |
//! | [`admission`] | which works are refused |
//!
//! What to write for an object that is treated so is decided by `bellwether_apply`.
//!
//! Plain values go in, plans with reasons come out. Nothing here reads a clock, a file or the
//! network; expressions of users run under a budget.

#![cfg_attr(
    test,
    allow(clippy::needless_pass_by_value, reason = "tables are written in place")
)]

pub mod admission;
pub mod cause;
mod conditions;
pub mod events;
pub mod executor;
pub mod feedback;
pub mod lifecycle;
pub mod options;
mod programs;
pub mod record;
pub mod replica_set;
pub mod rules;
pub mod status;
pub mod strategy;
pub mod work_api;

pub use conditions::in_whole_seconds;
pub use programs::Programs;
