//! Components of an ApplicationConfiguration.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::GROUP;
use super::application_status::RevisionReference;
use crate::TypeTag;
use crate::kind::kind;
use crate::meta::{Condition, ObjectMeta, Unknown, any_object, conditions};

/// A workload that ApplicationConfigurations use.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Component {
    /// Group, version and kind.
    #[serde(flatten)]
    #[schemars(skip)]
    pub types: TypeTag<Self>,
    /// Name, labels and so on.
    #[serde(default)]
    #[schemars(skip)]
    pub metadata: ObjectMeta,
    /// The workload.
    pub spec: ComponentSpec,
    /// Status of the component.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<ComponentStatus>,
    /// Fields that this version does not know.
    #[serde(flatten)]
    #[schemars(skip)]
    pub other: Unknown,
}

kind! {
    Component: GROUP, "v1alpha2", "components", "component", Namespaced;
    spec: ComponentSpec;
    status: ComponentStatus;
    categories: ["oam"];
    columns: [
        ("WORKLOAD-KIND", "string", ".spec.workload.kind"),
        ("AGE", "date", ".metadata.creationTimestamp"),
    ];
}

/// A workload and its parameters.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ComponentSpec {
    /// The workload, a whole object.
    #[schemars(schema_with = "embedded")]
    pub workload: Value,
    /// A chart. Not supported.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "any_object")]
    pub helm: Option<Value>,
    /// Parameters that ApplicationConfigurations give.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub parameters: Vec<ComponentParameter>,
    /// Fields that this version does not know.
    #[serde(flatten)]
    #[schemars(skip)]
    pub other: Unknown,
}

/// A parameter of a component.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ComponentParameter {
    /// Its name.
    pub name: String,
    /// Fields of the workload that get its value.
    #[serde(default)]
    pub field_paths: Vec<String>,
    /// True if a value is required.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub required: Option<bool>,
    /// Description of the parameter.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// Fields that this version does not know.
    #[serde(flatten)]
    #[schemars(skip)]
    pub other: Unknown,
}

/// Status of a component.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ComponentStatus {
    /// The generation that this is about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// Conditions.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "conditions")]
    pub conditions: Vec<Condition>,
    /// Its latest revision.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub latest_revision: Option<RevisionReference>,
    /// Fields that this version does not know.
    #[serde(flatten)]
    #[schemars(skip)]
    pub other: Unknown,
}

/// The schema of a whole object.
pub(super) fn embedded(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
    schemars::json_schema!({
        "type": "object",
        "x-kubernetes-embedded-resource": true,
        "x-kubernetes-preserve-unknown-fields": true,
    })
}
