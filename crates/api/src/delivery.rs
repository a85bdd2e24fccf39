//! What steps of workflows leave to controllers: replicas moved between two revisions, components distributed over clusters.
//!
//! A step writes the object and waits for its conditions; the controller goes on after the workflow has ended.

mod distribution;
pub mod names;
mod rollout;

pub use distribution::{
    Distribution, DistributionCluster, DistributionPlacement, DistributionSpec, DistributionStatus,
};
pub use rollout::{
    Rollout, RolloutComponent, RolloutPhase, RolloutPromotion, RolloutResource, RolloutSide,
    RolloutSpec, RolloutStatus, RolloutTraffic, RolloutWorkload,
};

/// The API group of rollouts.
pub const ROLLOUT_GROUP: &str = "standard.oam.dev";
/// The API group of distributions, which is our own.
pub const DISTRIBUTION_GROUP: &str = "workflow.bellwether.dev";
