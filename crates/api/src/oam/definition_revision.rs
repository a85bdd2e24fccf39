//! What a definition was.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::GROUP;
use crate::TypeTag;
use crate::kind::kind;
use crate::meta::{ObjectMeta, Unknown, any_object};
use crate::open_enum::open_enum;

/// A definition at one revision.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct DefinitionRevision {
    /// Group, version and kind.
    #[serde(flatten)]
    #[schemars(skip)]
    pub types: TypeTag<Self>,
    /// Name, labels and so on.
    #[serde(default)]
    #[schemars(skip)]
    pub metadata: ObjectMeta,
    /// The definition.
    pub spec: DefinitionRevisionSpec,
    /// Fields that this version does not know.
    #[serde(flatten)]
    #[schemars(skip)]
    pub other: Unknown,
}

kind! {
    DefinitionRevision: GROUP, "v1beta1", "definitionrevisions", "definitionrevision", Namespaced;
    spec: DefinitionRevisionSpec;
    short: ["defrev"];
    categories: ["oam"];
    columns: [
        ("REVISION", "integer", ".spec.revision"),
        ("HASH", "string", ".spec.revisionHash"),
        ("TYPE", "string", ".spec.definitionType"),
    ];
}

open_enum! {
    /// Of what a revision is.
    pub enum DefinitionType {
        /// A ComponentDefinition.
        Component = "Component",
        /// A TraitDefinition.
        Trait = "Trait",
        /// A PolicyDefinition.
        Policy = "Policy",
        /// A WorkflowStepDefinition.
        WorkflowStep = "WorkflowStep",
    }
}

/// A definition at one revision.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DefinitionRevisionSpec {
    /// Number of the revision.
    pub revision: i64,
    /// Hash of its content.
    pub revision_hash: String,
    /// Of what it is.
    pub definition_type: DefinitionType,
    /// The definition, if it is of this type.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "any_object")]
    pub component_definition: Option<Value>,
    /// The definition, if it is of this type.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "any_object")]
    pub trait_definition: Option<Value>,
    /// The definition, if it is of this type.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "any_object")]
    pub policy_definition: Option<Value>,
    /// The definition, if it is of this type.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "any_object")]
    pub workflow_step_definition: Option<Value>,
    /// Fields that this version does not know.
    #[serde(flatten)]
    #[schemars(skip)]
    pub other: Unknown,
}
