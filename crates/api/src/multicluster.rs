//! The smaller interface of the work API: `multicluster.x-k8s.io`.

mod applied_work;
pub mod names;
mod work;
mod work_manifest_config;

pub use applied_work::{AppliedResourceMeta, AppliedWork, AppliedWorkSpec, AppliedWorkStatus};
pub use work::{
    FieldValue, ManifestCondition, StatusSyncResult, SyncValue, ValueType, Work,
    WorkResourceIdentifier, WorkSpec, WorkStatus, WorkloadTemplate,
};
pub use work_manifest_config::{
    JsonPath, ManifestGvk, ResourceStatusSync, Script, StatusSyncRule, SyncType,
    WorkManifestConfig, WorkManifestConfigSpec, WorkManifestConfigStatus,
};

/// The API group of these kinds.
pub const GROUP: &str = "multicluster.x-k8s.io";
