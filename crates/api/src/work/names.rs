//! Every string with a meaning in this group: labels, annotations, finalizers, conditions...

/// Keys of labels.
pub mod label {
    /// On a ManifestWork: namespace and name, with a dot between, of the replica set that made it.
    pub const REPLICA_SET: &str = "work.open-cluster-management.io/manifestworkreplicaset";
    /// On a ManifestWork: the Placement for which a replica set made it.
    pub const PLACEMENT_NAME: &str = "work.open-cluster-management.io/placementname";
    /// On a ManifestWork of a replica set whose template is too large for one: which part it is.
    pub const PART: &str = "work.bellwether.dev/part";
}

/// Keys of annotations.
pub mod annotation {
    /// On an applied object: the hash of what was applied, where fields are ignored.
    pub const CONFIG_SPEC_HASH: &str = "open-cluster-management.io/config-spec-hash";
    /// On the record of a work: objects that are about to be created, as JSON.
    pub const INTENT: &str = "work.bellwether.dev/intent";
    /// On the record of a work: the UID of the work and those of its objects that are complete, as
    /// JSON.
    pub const COMPLETED: &str = "work.bellwether.dev/completed";
    /// On a ManifestWork of a replica set: when its present content was written.
    pub const ROLLED_OUT_AT: &str = "work.bellwether.dev/rolled-out-at";
    /// On a ManifestWorkReplicaSet: `cel` if texts of its template have expressions in `${}`.
    pub const TEMPLATE_VALUES: &str = "work.bellwether.dev/template-values";
    /// On a ManifestWorkReplicaSet: no further cluster starts while it is there, unless it is
    /// `false`. `bellwether rollout pause` writes the time.
    pub const ROLLOUT_PAUSED: &str = "work.bellwether.dev/rollout-paused";
    /// On a ManifestWorkReplicaSet: no further cluster starts. The value is the digest of the template
    /// whose rollout was aborted, so that another template is rolled out again; `true` aborts the
    /// rollout of every template.
    pub const ROLLOUT_ABORTED: &str = "work.bellwether.dev/rollout-aborted";
    /// On a ManifestWorkReplicaSet: clusters that failed before this time are tried again. On the
    /// works of such a cluster: when that happened.
    pub const ROLLOUT_RETRIED_AT: &str = "work.bellwether.dev/rollout-retried-at";
    /// On a ManifestWork: objects that are not created again after others deleted them, until the work
    /// changes, such as `deployments.apps shop/web,configmaps shop/settings`.
    pub const KEEP_DELETED: &str = "work.bellwether.dev/keep-deleted";
    /// On a ManifestWork: fields of objects that keep the values that others gave them, as JSON, such as
    /// `{"deployments.apps shop/web": {"paths": ["spec.replicas"], "affect": "onUpdate"}}`.
    pub const KEPT_FIELDS: &str = "work.bellwether.dev/kept-fields";
    /// On an AppliedWork: since when its work is missing on the hub.
    pub const EVICTION_START: &str = "work.bellwether.dev/eviction-start-time";
}

/// Finalizers.
pub mod finalizer {
    /// On a ManifestWork until what it applied is gone.
    pub const MANIFEST_WORK: &str = "cluster.open-cluster-management.io/manifest-work-cleanup";
    /// On an AppliedManifestWork until what it names is gone.
    pub const APPLIED_MANIFEST_WORK: &str =
        "cluster.open-cluster-management.io/applied-manifest-work-cleanup";
    /// On a ManifestWorkReplicaSet until its works are gone.
    pub const REPLICA_SET: &str = "work.open-cluster-management.io/manifest-work-cleanup";
}

/// The field manager of applied objects, and what the name of any other has to begin with.
pub const FIELD_MANAGER: &str = "work-agent";

/// Types of conditions.
pub mod condition {
    /// Work and manifest: it was applied.
    pub const APPLIED: &str = "Applied";
    /// Work and manifest: it is on the cluster.
    pub const AVAILABLE: &str = "Available";
    /// Work and manifest, by rules: it is on its way.
    pub const PROGRESSING: &str = "Progressing";
    /// Work and manifest, by rules: it is not as it should be.
    pub const DEGRADED: &str = "Degraded";
    /// Work and manifest, by rules: it is done, and no longer touched.
    pub const COMPLETE: &str = "Complete";
    /// Work: it is being removed.
    pub const DELETING: &str = "Deleting";
    /// Manifest: its feedback is current.
    pub const STATUS_FEEDBACK_SYNCED: &str = "StatusFeedbackSynced";
    /// Manifest of the work API: its synced status is current. Here only so that no rule takes the
    /// name.
    pub const STATUS_SYNCED: &str = "StatusSynced";
    /// Names that no rule may use, because the agent gives them a meaning of its own.
    pub const RESERVED: [&str; 5] = [
        APPLIED,
        AVAILABLE,
        STATUS_FEEDBACK_SYNCED,
        STATUS_SYNCED,
        DELETING,
    ];
    /// ManifestWorkReplicaSet: its placements exist and select clusters.
    pub const PLACEMENT_VERIFIED: &str = "PlacementVerified";
    /// ManifestWorkReplicaSet: all selected clusters have succeeded.
    pub const PLACEMENT_ROLLED_OUT: &str = "PlacementRolledOut";
    /// ManifestWorkReplicaSet: all its works are available.
    pub const MANIFESTWORK_APPLIED: &str = "ManifestworkApplied";
}

/// Reasons of conditions, by what they belong to.
pub mod reason {
    /// A manifest is applied.
    pub const APPLIED_MANIFEST_COMPLETE: &str = "AppliedManifestComplete";
    /// A manifest is not applied.
    pub const APPLIED_MANIFEST_FAILED: &str = "AppliedManifestFailed";
    /// A manifest is not applied: fields to be ignored cannot be found out.
    pub const APPLIED_MANIFEST_SSA_IGNORE_FIELD_ERROR: &str = "AppliedManifestSSAIgnoreFieldError";
    /// A manifest is available.
    pub const RESOURCE_AVAILABLE: &str = "ResourceAvailable";
    /// A manifest is not available.
    pub const RESOURCE_NOT_AVAILABLE: &str = "ResourceNotAvailable";
    /// It is unknown whether a manifest is available: it cannot be read.
    pub const FETCHING_RESOURCE_FAILED: &str = "FetchingResourceFailed";
    /// It is unknown whether a manifest is available: it has no name or type.
    pub const INCOMPLETE_RESOURCE_META: &str = "IncompleteResourceMeta";
    /// There is no feedback to be synced.
    pub const NO_STATUS_FEEDBACK_SYNCED: &str = "NoStatusFeedbackSynced";
    /// Feedback is current.
    pub const STATUS_FEEDBACK_SYNCED: &str = "StatusFeedbackSynced";
    /// Feedback is not current.
    pub const STATUS_FEEDBACK_SYNC_FAILED: &str = "StatusFeedbackSyncFailed";
    /// All rules of a condition hold.
    pub const CONDITION_RULES_PASSED: &str = "ConditionRulesPassed";
    /// Not all rules of a condition hold.
    pub const CONDITION_RULES_FAILED: &str = "ConditionRulesFailed";
    /// A rule is of an unknown type.
    pub const CONDITION_RULE_INVALID: &str = "ConditionRuleInvalid";
    /// A well-known rule is about a kind that it does not cover.
    pub const CONDITION_RULE_UNSUPPORTED: &str = "ConditionRuleUnsupported";
    /// Prefix of reasons of conditions that come from rules.
    pub const CONDITION_RULE_PREFIX: &str = "ConditionRule";
    /// A work is applied.
    pub const APPLIED_MANIFEST_WORK_COMPLETE: &str = "AppliedManifestWorkComplete";
    /// A work is not applied.
    pub const APPLIED_MANIFEST_WORK_FAILED: &str = "AppliedManifestWorkFailed";
    /// A work is available.
    pub const RESOURCES_AVAILABLE: &str = "ResourcesAvailable";
    /// A work is not available.
    pub const RESOURCES_NOT_AVAILABLE: &str = "ResourcesNotAvailable";
    /// It is unknown whether a work is available.
    pub const RESOURCES_STATUS_UNKNOWN: &str = "ResourcesStatusUnknown";
    /// A work is being removed.
    pub const WORK_DELETING: &str = "WorkDeleting";
    /// A replica set is as it should be.
    pub const AS_EXPECTED: &str = "AsExpected";
    /// A replica set is not as it should be.
    pub const NOT_AS_EXPECTED: &str = "NotAsExpected";
    /// A replica set has works that are on their way.
    pub const PROCESSING: &str = "Processing";
    /// A replica set names a placement that does not exist.
    pub const PLACEMENT_DECISION_NOT_FOUND: &str = "PlacementDecisionNotFound";
    /// A replica set has no works.
    pub const PLACEMENT_DECISION_EMPTY: &str = "PlacementDecisionEmpty";
    /// A replica set is rolled out.
    pub const COMPLETE: &str = "Complete";
    /// A replica set is being rolled out.
    pub const PROGRESSING: &str = "Progressing";
    /// A replica set has a name that is too long for a label.
    pub const INVALID_MANIFEST_WORK_NAME: &str = "InvalidManifestWorkName";
}

/// Reasons of events.
pub mod event {
    /// On a work: all of it is applied.
    pub const APPLIED: &str = "Applied";
    /// On a work: something cannot be applied.
    pub const APPLY_FAILED: &str = "ApplyFailed";
    /// On a work: it has come to its end.
    pub const COMPLETE: &str = "Complete";
    /// On a work: it was complete for as long as it was to stay.
    pub const TTL_EXPIRED: &str = "TTLExpired";
    /// On a work: its time to live is over, but its agent may not delete it.
    pub const TTL_LEFT_TO_HUB: &str = "TTLLeftToHub";
    /// On a work: what it applied is gone.
    pub const DELETED: &str = "Deleted";
    /// On a work: what it applied does not go.
    pub const DELETION_WAITING: &str = "DeletionWaiting";
    /// On a work: what others changed was repaired.
    pub const DRIFT_REPAIRED: &str = "DriftRepaired";
    /// On a replica set: clusters start with its present template.
    pub const ROLLOUT_STARTED: &str = "ClustersStarted";
    /// On a replica set: clusters succeeded, and are observed before others start.
    pub const ROLLOUT_SOAKING: &str = "ClustersSoaking";
    /// On a replica set: clusters failed or timed out.
    pub const ROLLOUT_FAILING: &str = "ClustersFailing";
    /// On a replica set: more clusters failed than are tolerated, so that nothing starts.
    pub const ROLLOUT_STOPPED: &str = "RolloutStopped";
    /// On a replica set: all clusters have its present template and succeeded.
    pub const ROLLOUT_COMPLETE: &str = "RolloutComplete";
    /// On a replica set: somebody paused the rollout.
    pub const ROLLOUT_PAUSED: &str = "RolloutPaused";
    /// On a replica set: somebody aborted the rollout.
    pub const ROLLOUT_ABORTED: &str = "RolloutAborted";
    /// On a replica set: the rollout is no longer paused, aborted or stopped.
    pub const ROLLOUT_RESUMED: &str = "RolloutResumed";
    /// On a replica set: somebody had the failed clusters tried again.
    pub const ROLLOUT_RETRIED: &str = "RolloutRetried";
    /// On a replica set: the hub refuses one of its works.
    pub const WORK_REFUSED: &str = "WorkRefused";
}

/// Messages that are always the same.
pub mod message {
    /// A manifest is applied.
    pub const APPLY_MANIFEST_COMPLETE: &str = "Apply manifest complete";
    /// A manifest is available.
    pub const RESOURCE_AVAILABLE: &str = "Resource is available";
    /// A manifest is not available.
    pub const RESOURCE_NOT_AVAILABLE: &str = "Resource is not available";
    /// It is unknown whether a manifest is available.
    pub const RESOURCE_META_INCOMPLETE: &str = "Resource meta is incomplete";
    /// A work is applied.
    pub const APPLY_MANIFEST_WORK_COMPLETE: &str = "Apply manifest work complete";
    /// A work is not applied.
    pub const APPLY_MANIFEST_WORK_FAILED: &str = "Failed to apply manifest work";
    /// A work is available.
    pub const ALL_RESOURCES_AVAILABLE: &str = "All resources are available";
    /// A work is being removed.
    pub const MANIFEST_WORK_DELETING: &str = "ManifestWork is being deleted";
}
