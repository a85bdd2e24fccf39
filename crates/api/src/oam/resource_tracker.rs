//! What an application applied, so that it can be deleted.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::GROUP;
use super::compression::{Compressed, inflated};
use crate::kind::kind;
use crate::meta::{ObjectMeta, Unknown, any_object};
use crate::open_enum::open_enum;
use crate::{CompactJson, TypeTag};

/// Objects of an application, recorded before they are applied.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ResourceTracker {
    /// Group, version and kind.
    #[serde(flatten)]
    #[schemars(skip)]
    pub types: TypeTag<Self>,
    /// Name, labels and so on.
    #[serde(default)]
    #[schemars(skip)]
    pub metadata: ObjectMeta,
    /// Tracked objects.
    #[serde(default, deserialize_with = "inflated")]
    pub spec: ResourceTrackerSpec,
    /// Fields that this version does not know.
    #[serde(flatten)]
    #[schemars(skip)]
    pub other: Unknown,
}

kind! {
    ResourceTracker: GROUP, "v1beta1", "resourcetrackers", "resourcetracker", Cluster;
    spec: ResourceTrackerSpec;
    short: ["rt"];
    categories: ["oam"];
    columns: [
        ("TYPE", "string", ".spec.type"),
        ("APP", "string", ".metadata.labels['app\\.oam\\.dev\\/name']"),
        ("APP-NS", "string", ".metadata.labels['app\\.oam\\.dev\\/namespace']"),
        ("APP-GEN", "integer", ".spec.applicationGeneration"),
    ];
}

open_enum! {
    /// Lifetime of objects of a tracker.
    pub enum ResourceTrackerType {
        /// Until another version of the application is applied.
        Versioned = "versioned",
        /// As long as the application.
        Root = "root",
        /// Component revisions of old applications.
        ComponentRevision = "component-revision",
    }
}

/// Objects of an application.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ResourceTrackerSpec {
    /// Lifetime of the objects.
    #[serde(rename = "type", default)]
    pub tracker_type: ResourceTrackerType,
    /// Generation of the application.
    #[serde(default)]
    pub application_generation: i64,
    /// The objects.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[serde(deserialize_with = "crate::compact::exact")]
    pub managed_resources: Vec<ManagedResource>,
    /// The objects, if they are compressed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub compression: Option<super::RevisionCompression>,
    /// Fields that this version does not know.
    #[serde(flatten)]
    #[schemars(skip)]
    pub other: Unknown,
}

impl Compressed for ResourceTrackerSpec {
    fn inflate(&mut self) {
        let resources = self.compression.as_ref();
        let resources = resources.and_then(super::RevisionCompression::content);
        if let Some(resources) = resources {
            self.managed_resources = resources;
            self.compression = None;
        }
    }
}

/// An object of an application.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ManagedResource {
    /// Cluster that it is on; empty for the hub.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub cluster: String,
    /// Cause of the application: workflow or policy.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub creator: String,
    /// Group and version.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub api_version: String,
    /// Kind.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub kind: String,
    /// Namespace.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub namespace: String,
    /// Name.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub name: String,
    /// Identifier of the object.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub uid: String,
    /// Component that it belongs to.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub component: String,
    /// Trait that it belongs to.
    #[serde(rename = "trait", default, skip_serializing_if = "String::is_empty")]
    pub resource_trait: String,
    /// The object as it was applied; without it, drift is kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "any_object")]
    pub raw: Option<CompactJson>,
    /// True if it is to be deleted.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub deleted: bool,
    /// True if it stays when the application is deleted.
    #[serde(rename = "skipGC", default, skip_serializing_if = "std::ops::Not::not")]
    pub skip_gc: bool,
    /// Fields that this version does not know.
    #[serde(flatten)]
    #[schemars(skip)]
    pub other: Unknown,
}
