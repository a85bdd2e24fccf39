//! Steps that several runs and Applications share.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::GROUP;
use super::step::{WorkflowExecuteMode, WorkflowStep};
use crate::TypeTag;
use crate::kind::kind;
use crate::meta::{ObjectMeta, Unknown};

/// Steps that runs and Applications of the same namespace can refer to.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Workflow {
    /// Group, version and kind.
    #[serde(flatten)]
    #[schemars(skip)]
    pub types: TypeTag<Self>,
    /// Name, labels and so on.
    #[serde(default)]
    #[schemars(skip)]
    pub metadata: ObjectMeta,
    /// Order of steps.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mode: Option<WorkflowExecuteMode>,
    /// The steps.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub steps: Vec<WorkflowStep>,
    /// Fields that this version does not know.
    #[serde(flatten)]
    #[schemars(skip)]
    pub other: Unknown,
}

kind! {
    Workflow: GROUP, "v1alpha1", "workflows", "workflow", Namespaced;
    categories: ["oam"];
}
