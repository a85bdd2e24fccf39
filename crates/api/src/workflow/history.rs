//! What happened in a workflow, in order: what its status is made from.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::HISTORY_GROUP;
use crate::TypeTag;
use crate::kind::kind;
use crate::meta::{MicroTime, ObjectMeta, Unknown, time};
use crate::structural::open;

/// Events of the workflow of its owner. The hub writes them; others read them.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct WorkflowHistory {
    /// Group, version and kind.
    #[serde(flatten)]
    #[schemars(skip)]
    pub types: TypeTag<Self>,
    /// Name, labels and so on.
    #[serde(default)]
    #[schemars(skip)]
    pub metadata: ObjectMeta,
    /// Events, in order.
    #[serde(default)]
    pub entries: Vec<HistoryEntry>,
    /// Fields that this version does not know.
    #[serde(flatten)]
    #[schemars(skip)]
    pub other: Unknown,
}

kind! {
    WorkflowHistory: HISTORY_GROUP, "v1alpha1", "workflowhistories", "workflowhistory", Namespaced;
    categories: ["oam"];
}

/// One thing that happened.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(transform = open)]
pub struct HistoryEntry {
    /// Its number; later entries have higher ones.
    pub seq: u64,
    /// Time of the event.
    #[schemars(schema_with = "time")]
    pub time: MicroTime,
    /// Type of the event, such as StepFinished.
    pub event: String,
    /// Details; the fields depend on the event.
    #[serde(flatten)]
    #[schemars(skip)]
    pub details: Map<String, Value>,
}
