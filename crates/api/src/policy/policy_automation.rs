//! Jobs that run when a policy is violated. Bellwether keeps them as data and runs none.

use std::collections::BTreeMap;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::GROUP;
use crate::TypeTag;
use crate::kind::kind;
use crate::meta::{self, ObjectMeta, Unknown};
use crate::open_enum::open_enum;
use crate::structural::filled_with;

/// A job that is to run when a policy is violated. Bellwether stores it and runs nothing.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PolicyAutomation {
    /// Group, version and kind.
    #[serde(flatten)]
    #[schemars(skip)]
    pub types: TypeTag<Self>,
    /// Name, labels and so on.
    #[serde(default)]
    #[schemars(skip)]
    pub metadata: ObjectMeta,
    /// The job, its policy, and when it runs.
    pub spec: PolicyAutomationSpec,
    /// Clusters that had a job.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<PolicyAutomationStatus>,
    /// Fields that this version does not know.
    #[serde(flatten)]
    #[schemars(skip)]
    pub other: Unknown,
}

kind! {
    PolicyAutomation: GROUP, "v1beta1", "policyautomations", "policyautomation", Namespaced;
    spec: PolicyAutomationSpec;
    status: PolicyAutomationStatus;
    short: ["plca"];
}

/// The job, its policy, and when it runs.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PolicyAutomationSpec {
    /// The job.
    pub automation_def: AutomationDef,
    /// Name of the policy in the same namespace.
    #[schemars(length(min = 1))]
    pub policy_ref: String,
    /// Mode: how often it runs.
    pub mode: AutomationMode,
    /// Event that triggers it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "event_hook", transform = filled_with("noncompliant"))]
    pub event_hook: Option<String>,
    /// Reserved.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rescan_after: Option<String>,
    /// Minimum time between jobs for the same cluster.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "not_negative")]
    pub delay_after_run_seconds: Option<i64>,
    /// Fields that this version does not know.
    #[serde(flatten)]
    #[schemars(skip)]
    pub other: Unknown,
}

open_enum! {
    /// Mode of an automation: how often it runs.
    pub enum AutomationMode {
        /// Never.
        Disabled = "disabled",
        /// At the next violation.
        Once = "once",
        /// At each violation.
        EveryEvent = "everyEvent",
    }
}

fn event_hook(_: &mut SchemaGenerator) -> Schema {
    json_schema!({"type": "string", "enum": ["noncompliant"]})
}

fn not_negative(_: &mut SchemaGenerator) -> Schema {
    json_schema!({"type": "integer", "minimum": 0})
}

/// A job.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AutomationDef {
    /// Type of job, such as AnsibleJob.
    #[serde(default, skip_serializing_if = "Option::is_none", rename = "type")]
    pub kind: Option<String>,
    /// Name of the job template.
    #[schemars(length(min = 1))]
    pub name: String,
    /// Variables of the job.
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        rename = "extra_vars"
    )]
    #[schemars(schema_with = "meta::any_object")]
    pub extra_vars: Option<Value>,
    /// Name of the Secret with the credentials of the tower.
    #[schemars(length(min = 1))]
    pub secret: String,
    /// Time in seconds for which a job is kept after it ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "not_negative")]
    pub job_ttl: Option<i64>,
    /// Maximum number of violations passed to a job; 0 for all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "not_negative")]
    pub policy_violations_limit: Option<i64>,
    /// Fields that this version does not know.
    #[serde(flatten)]
    #[schemars(skip)]
    pub other: Unknown,
}

/// Clusters that had a job.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PolicyAutomationStatus {
    /// The last job of each cluster, by its name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub clusters_with_event: BTreeMap<String, AutomationEvent>,
    /// Fields that this version does not know.
    #[serde(flatten)]
    #[schemars(skip)]
    pub other: Unknown,
}

/// The last job of a cluster.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AutomationEvent {
    /// Start time of the job.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub automation_start_time: Option<String>,
    /// Time when the violation was reported.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub event_time: Option<String>,
    /// Fields that this version does not know.
    #[serde(flatten)]
    #[schemars(skip)]
    pub other: Unknown,
}
