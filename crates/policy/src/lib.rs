//! Policies of Open Cluster Management, as pure functions.
//!
//! | module | decides |
//! |---|---|
//! | [`admission`] | what policies the hub refuses |
//! | [`binding`] | which clusters a policy goes to, through bindings, sets and placements |
//! | [`certificate`] | whether certificates of a cluster are good for long enough |
//! | [`compliance`] | what a cluster reports about the templates of a policy |
//! | [`config_policy`] | whether the objects of a cluster are as a policy says |
//! | [`dryrun`] | the same without a cluster |
//! | [`operator`] | what is said of policies about operators |
//! | [`propagation`] | what a cluster gets: the replica of a root policy |
//! | [`report`] | how far a policy is, for people |
//! | [`rollout`] | what to write now: which cluster enforces a new version next |
//! | [`status`] | what a root policy and a set of policies report |
//! | [`template`] | what Go templates in policies resolve to: those of the hub (`{{hub … hub}}`) and those of managed clusters (`{{ … }}`) |
//! | [`template_sync`] | which objects of a cluster the templates of a policy become |

pub mod admission;
pub mod binding;
pub mod certificate;
pub mod compliance;
pub mod config_policy;
pub mod dryrun;
mod field_names;
pub mod operator;
pub mod propagation;
pub mod report;
pub mod rollout;
pub mod status;
pub mod template;
pub mod template_sync;
