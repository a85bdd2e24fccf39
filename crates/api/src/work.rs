//! What a cluster shall run: `work.open-cluster-management.io`.

mod applied_manifest_work;
mod kept_fields;
mod manifest_config;
mod manifest_work;
mod manifest_work_replica_set;
mod manifest_work_status;
pub mod names;

pub use applied_manifest_work::{
    AppliedManifestWork, AppliedManifestWorkSpec, AppliedManifestWorkStatus, AppliedResource,
};
pub use kept_fields::{Affect, FieldRetention, KeptFields};
pub use manifest_config::{
    CelExpression, ConditionRule, ConditionRuleType, FeedbackRule, FeedbackScrapeType,
    FeedbackType, IgnoreField, IgnoreFieldsCondition, JsonPath, ManifestConfig, ResourceIdentifier,
    ServerSideApply, UpdateStrategy, UpdateStrategyType,
};
pub use manifest_work::{
    DeleteOption, DeletePropagationPolicy, Executor, ExecutorServiceAccount, ExecutorSubject,
    ExecutorSubjectType, ManifestWork, ManifestWorkSpec, SelectivelyOrphan, Workload,
};
pub use manifest_work_replica_set::{
    CascadeDeletionPolicy, ManifestWorkReplicaSet, ManifestWorkReplicaSetSpec,
    ManifestWorkReplicaSetStatus, PlacementReference, PlacementSummary, WorkSummary,
};
pub use manifest_work_status::{
    FeedbackValue, FieldValue, ManifestCondition, ManifestResourceMeta, ManifestResourceStatus,
    ManifestWorkStatus, StatusFeedback, ValueType,
};

/// The API group of these kinds.
pub const GROUP: &str = "work.open-cluster-management.io";
