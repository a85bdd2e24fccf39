//! Every string with a meaning in this group.

/// Finalizers.
pub mod finalizer {
    /// On a Work until what it applied is gone.
    pub const WORK: &str = "multicluster.x-k8s.io/work-cleanup";
    /// On an AppliedWork until what it names is gone.
    pub const APPLIED_WORK: &str = "multicluster.x-k8s.io/applied-work-cleanup";
}

/// Keys of annotations.
pub mod annotation {}

/// Groups of resources that a kind is listed with.
pub mod category {
    /// Everything that belongs to a fleet.
    pub const FLEET: &str = "fleet";
}

/// Languages of scripts.
pub mod language {
    /// The Common Expression Language.
    pub const CEL: &str = "CEL";
}

/// Types of conditions.
pub mod condition {
    /// Work and manifest: it was applied.
    pub const APPLIED: &str = "Applied";
    /// Manifest: it is on the cluster.
    pub const AVAILABLE: &str = "Available";
    /// Manifest: its synced status is current.
    pub const STATUS_SYNCED: &str = "StatusSynced";
    /// WorkManifestConfig: it is the one that counts for its kind.
    pub const IN_USE: &str = "InUse";
}

/// Reasons of conditions.
pub mod reason {
    /// A manifest is applied.
    pub const APPLIED_MANIFEST_COMPLETE: &str = "AppliedManifestComplete";
    /// A manifest is not applied.
    pub const APPLIED_MANIFEST_FAILED: &str = "AppliedManifestFailed";
    /// A work is applied.
    pub const APPLIED_WORK_COMPLETE: &str = "AppliedWorkComplete";
    /// A work is not applied.
    pub const APPLIED_WORK_FAILED: &str = "AppliedWorkFailed";
    /// A manifest is available.
    pub const RESOURCE_AVAILABLE: &str = "ResourceAvailable";
    /// Synced status is current.
    pub const STATUS_SYNCED: &str = "StatusSynced";
    /// Synced status is not current.
    pub const STATUS_SYNC_FAILED: &str = "StatusSyncFailed";
    /// A configuration counts for its kind.
    pub const IN_USE: &str = "InUse";
    /// Another configuration counts for the kind.
    pub const ANOTHER_IN_USE: &str = "AnotherInUse";
}

/// Messages that are always the same.
pub mod message {
    /// A manifest is applied.
    pub const APPLY_MANIFEST_COMPLETE: &str = "Apply manifest complete";
    /// A work is applied.
    pub const APPLY_WORK_COMPLETE: &str = "Apply work complete";
    /// A work is not applied.
    pub const APPLY_WORK_FAILED: &str = "Failed to apply work";
    /// A manifest is available.
    pub const RESOURCE_AVAILABLE: &str = "Resource is available";
}
