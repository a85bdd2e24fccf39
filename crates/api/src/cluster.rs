//! Who is in the fleet, and who is selected: `cluster.open-cluster-management.io`.

mod add_on_placement_score;
pub mod agent_identity;
mod cluster_claim;
mod managed_cluster;
mod managed_cluster_set;
mod managed_cluster_set_binding;
pub mod names;
pub mod party;
mod placement;
mod placement_decision;
mod rollout_strategy;
mod selector;

pub use add_on_placement_score::{
    AddOnPlacementScore, AddOnPlacementScoreItem, AddOnPlacementScoreStatus,
};
pub use cluster_claim::{ClusterClaim, ClusterClaimSpec};
pub use managed_cluster::{
    ClientConfig, ClusterSetManagedNamespace, DEFAULT_LEASE_DURATION, ManagedCluster,
    ManagedClusterClaim, ManagedClusterSpec, ManagedClusterStatus, ManagedClusterVersion, Taint,
    TaintEffect,
};
pub use managed_cluster_set::{
    ManagedClusterSelector, ManagedClusterSet, ManagedClusterSetSpec, ManagedClusterSetStatus,
    ManagedNamespace, SelectorType,
};
pub use managed_cluster_set_binding::{
    ManagedClusterSetBinding, ManagedClusterSetBindingSpec, ManagedClusterSetBindingStatus,
};
pub use placement::{
    AddOnScore, ClusterPredicate, DecisionGroup, DecisionGroupStatus, DecisionSortOrder,
    DecisionStrategy, GroupStrategy, Placement, PlacementSpec, PlacementStatus, PrioritizerConfig,
    PrioritizerPolicy, PrioritizerPolicyMode, ScoreCoordinate, ScoreCoordinateType,
    SpreadConstraint, SpreadPolicy, Toleration, TolerationOperator, TopologyKeyType,
    UnsatisfiableSpread,
};
pub use placement_decision::{ClusterDecision, PlacementDecision, PlacementDecisionStatus};
pub use rollout_strategy::{
    MandatoryDecisionGroup, RolloutAll, RolloutProgressive, RolloutProgressivePerGroup,
    RolloutStrategy, RolloutStrategyType,
};
pub use selector::{CelSelector, ClaimSelector, ClusterSelector, GroupClusterSelector};

/// The API group of these kinds.
pub const GROUP: &str = "cluster.open-cluster-management.io";
