//! What an application was, with everything that it is rendered by.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::GROUP;
use super::compression::{Compressed, inflated};
use crate::kind::kind;
use crate::meta::{ObjectMeta, Unknown, any_object};
use crate::workflow::WorkflowStatus;
use crate::{CompactJson, SharedObject, TypeTag};

/// An application at one revision, with all definitions it is rendered from.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ApplicationRevision {
    /// Group, version and kind.
    #[serde(flatten)]
    #[schemars(skip)]
    pub types: TypeTag<Self>,
    /// Name, labels and so on.
    #[serde(default)]
    #[schemars(skip)]
    pub metadata: ObjectMeta,
    /// The application and its definitions.
    #[serde(deserialize_with = "inflated")]
    pub spec: ApplicationRevisionSpec,
    /// Status of the revision.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<ApplicationRevisionStatus>,
    /// Fields that this version does not know.
    #[serde(flatten)]
    #[schemars(skip)]
    pub other: Unknown,
}

kind! {
    ApplicationRevision: GROUP, "v1beta1", "applicationrevisions", "applicationrevision", Namespaced;
    spec: ApplicationRevisionSpec;
    status: ApplicationRevisionStatus;
    short: ["apprev"];
    categories: ["oam"];
    columns: [
        ("AGE", "date", ".metadata.creationTimestamp"),
        ("PUBLISH_VERSION", "string", ".metadata.annotations['app\\.oam\\.dev\\/publishVersion']"),
        ("SUCCEEDED", "string", ".status.succeeded"),
    ];
}

/// An application and its definitions.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ApplicationRevisionSpec {
    /// The application without its status.
    #[schemars(schema_with = "any_object")]
    pub application: CompactJson,
    /// Definitions of its components.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(schema_with = "objects_by_name")]
    pub component_definitions: BTreeMap<String, SharedObject>,
    /// Definitions of workloads.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(schema_with = "objects_by_name")]
    pub workload_definitions: BTreeMap<String, SharedObject>,
    /// Definitions of its traits.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(schema_with = "objects_by_name")]
    pub trait_definitions: BTreeMap<String, SharedObject>,
    /// Definitions of its policies.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(schema_with = "objects_by_name")]
    pub policy_definitions: BTreeMap<String, SharedObject>,
    /// Definitions of its steps.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(schema_with = "objects_by_name")]
    pub workflow_step_definitions: BTreeMap<String, SharedObject>,
    /// Policies that it shares with others, by namespace and name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(schema_with = "objects_by_name")]
    pub policies: BTreeMap<String, Value>,
    /// The Workflow that it refers to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "any_object")]
    pub workflow: Option<Value>,
    /// Objects of the hub that it copies.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "crate::meta::manifests")]
    pub referred_objects: Vec<Value>,
    /// The ConfigMap with what the components are rendered to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resources_config_map: Option<ConfigMapReference>,
    /// Everything else, if it is compressed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub compression: Option<RevisionCompression>,
    /// Fields that this version does not know.
    #[serde(flatten)]
    #[schemars(skip)]
    pub other: Unknown,
}

impl Compressed for ApplicationRevisionSpec {
    fn inflate(&mut self) {
        let content = self
            .compression
            .as_ref()
            .and_then(RevisionCompression::content::<Self>);
        if let Some(mut content) = content {
            content.resources_config_map = self.resources_config_map.take();
            content.other.append(&mut self.other);
            *self = content;
        }
    }
}

/// A ConfigMap of the same namespace.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ConfigMapReference {
    /// Its name.
    pub name: String,
    /// Fields that this version does not know.
    #[serde(flatten)]
    #[schemars(skip)]
    pub other: Unknown,
}

/// Content that is compressed.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RevisionCompression {
    /// By what: gzip or zstd.
    #[serde(rename = "type", default, skip_serializing_if = "String::is_empty")]
    pub compression_type: String,
    /// The content in base64.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub data: String,
    /// Fields that this version does not know.
    #[serde(flatten)]
    #[schemars(skip)]
    pub other: Unknown,
}

/// Result of a revision.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ApplicationRevisionStatus {
    /// True if its workflow succeeded.
    #[serde(default)]
    pub succeeded: bool,
    /// Status of its workflow at the end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workflow: Option<WorkflowStatus>,
    /// Values that its steps handed on.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub workflow_context: BTreeMap<String, String>,
    /// Fields that this version does not know.
    #[serde(flatten)]
    #[schemars(skip)]
    pub other: Unknown,
}

/// The schema of objects by their names.
fn objects_by_name(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
    schemars::json_schema!({
        "type": "object",
        "additionalProperties": {"type": "object", "x-kubernetes-preserve-unknown-fields": true},
    })
}
