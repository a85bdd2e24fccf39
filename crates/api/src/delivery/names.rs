//! Every string with a meaning in these kinds.

/// Keys of labels.
pub mod label {
    /// On a ManifestWork: name of the Distribution that it belongs to.
    pub const DISTRIBUTION: &str = "workflow.bellwether.dev/distribution";
    /// On a ManifestWork: namespace of the Distribution that it belongs to.
    pub const DISTRIBUTION_NAMESPACE: &str = "workflow.bellwether.dev/distribution-namespace";
}

/// Keys of annotations.
pub mod annotation {
    /// On a Rollout: the new revision is not wanted; the value says why.
    pub const REJECT: &str = "rollout.bellwether.dev/reject";
    /// On an Ingress: it takes a share of the requests of another one.
    pub const INGRESS_CANARY: &str = "nginx.ingress.kubernetes.io/canary";
    /// On an Ingress: the share, in percent.
    pub const INGRESS_CANARY_WEIGHT: &str = "nginx.ingress.kubernetes.io/canary-weight";
}

/// Finalizers.
pub mod finalizer {
    /// On a Distribution: its works are deleted first.
    pub const WORKS: &str = "workflow.bellwether.dev/works";
}

/// Types of conditions.
pub mod condition {
    /// Of a Rollout: the share of the replicas that was asked for is of the new revision, and ready.
    pub const PARTITIONED: &str = "Partitioned";
    /// Of a Rollout: the share of the requests that was asked for goes to the new revision.
    pub const SHIFTED: &str = "Shifted";
    /// Of a Rollout: somebody approved the new revision, or nobody has to.
    pub const APPROVED: &str = "Approved";
    /// Of a Rollout: everything is of the new revision.
    pub const PROMOTED: &str = "Promoted";
    /// Of a Rollout: everything is of the old revision again.
    pub const ROLLED_BACK: &str = "RolledBack";
    /// Of a Distribution: all clusters have what they should have, and it is available.
    pub const DISTRIBUTED: &str = "Distributed";
}

/// Reasons of conditions and events.
pub mod reason {
    /// It is so.
    pub const DONE: &str = "Done";
    /// It will be so.
    pub const WAITING: &str = "Waiting";
    /// It was not asked for.
    pub const NOT_REQUESTED: &str = "NotRequested";
    /// It cannot be so before somebody changes something.
    pub const INVALID: &str = "Invalid";
    /// Somebody has to approve.
    pub const PAUSED: &str = "Paused";
    /// Somebody approved.
    pub const APPROVED: &str = "Approved";
    /// Everything is of the new revision.
    pub const PROMOTED: &str = "Promoted";
    /// The old revision is brought back.
    pub const ROLLING_BACK: &str = "RollingBack";
    /// Everything is of the old revision again.
    pub const ROLLED_BACK: &str = "RolledBack";
}
